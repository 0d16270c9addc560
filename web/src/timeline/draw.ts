// Painting: the rows that are in view, each at the level of detail that a pixel can show.

import type { Model } from "../model";
import type { Theme } from "../palette";
import type { Served } from "../served";
import { after, BARRIER, levelsOf, PHASE, WAIT, type Level, type Spans } from "../spans";
import { shorten, tailOf } from "../text";
import { Batches } from "./batches";
import { Frame } from "./frame";
import { Links } from "./links";
import { Pixels } from "./pixels";
import type { Row } from "./rows";
import { inView, pixelOf, placeOfLane, RULER, topOf, xOf, type Scene } from "./scene";

const LABEL_FONT = "11px system-ui, sans-serif";
const [OTHER, STILL, THREADS, WHOLE] = [8, 9, 10, 11]; // colours after the palette: grey, waits, barriers, phases
const FAINT = 0.22;
const CROWDED = 160; // spans of a lane in view that are written as pixels rather than drawn as rectangles
const LEAST_LABEL = 26; // pixels

export class Painter {
  private readonly levels = new Map<number, Level[]>();
  private readonly clear = new Batches();
  private readonly faint = new Batches();
  private readonly pixels = new Pixels();
  private ratio = 1;
  private labels: { x: number; y: number; width: number; text: string; colour: number }[] = [];
  private readonly words = new Map<number, string>();
  private styles: (string | CanvasPattern)[] = [];
  private styled: Theme | null = null;
  private character = 6; // mean width of a letter in pixels
  private readonly frame: Frame;
  private readonly links: Links;
  painted = 0; // spans, or spans put together, in the last picture

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly model: Model,
    private readonly served: Served | null,
  ) {
    this.frame = new Frame(context, model);
    this.links = new Links(context, model);
  }

  /** Levels of every lane, ahead of the first picture. */
  prepare(): void {
    this.context.font = LABEL_FONT;
    this.character = this.context.measureText("embeddings/layer.0/MatMul").width / 25;
    this.model.data.lanes.forEach((_, lane) => this.levels.set(lane, levelsOf(this.model.spans, lane)));
  }

  paint(scene: Scene, ratio: number): void {
    const { context } = this;
    const { theme, width, height } = scene;
    this.ratio = ratio;
    this.painted = 0;
    this.style(theme);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(scene.gutter, RULER, width - scene.gutter, height - RULER);
    context.clip();
    this.frame.grid(scene);
    const rows = inView(scene);
    this.bands(scene, rows);
    this.lanes(scene, rows);
    if (scene.showPath) this.path(scene);
    if (scene.range) this.links.range(scene, scene.range);
    this.links.arrows(scene);
    this.links.outline(scene);
    context.restore();
    this.frame.gutter(scene, rows);
    this.frame.ruler(scene);
  }

  private style(theme: Theme): void {
    if (this.styled === theme) return;
    this.styled = theme;
    const whole = theme.dark ? "#333b46" : "#d3d9e1";
    this.pixels.setTheme(theme, {
      colours: [...theme.colours, theme.other, theme.wait, theme.wait, whole],
      still: STILL,
      threads: THREADS,
      faint: FAINT,
    });
    this.styles = [...theme.colours, theme.other, hatch(this.context, theme, 6), hatch(this.context, theme, 3), whole];
  }

  private bands(scene: Scene, rows: Row[]): void {
    const { context } = this;
    for (const row of rows) {
      const y = topOf(scene, row);
      if (row.type === "group") {
        context.fillStyle = scene.theme.panel;
        context.fillRect(scene.gutter, y, scene.width, row.height);
        if (!row.open) this.closed(scene, row);
      } else if (row.type === "lane" && !row.sub) {
        context.fillStyle = scene.theme.grid;
        context.fillRect(scene.gutter, y, scene.width, 1);
      } else if (row.type === "counter") this.frame.counter(scene, row);
    }
  }

  /** A closed group shows the work of all its lanes in one line. */
  private closed(scene: Scene, row: Extract<Row, { type: "group" }>): void {
    const [device, core] = row.key.split("/").map(Number);
    const { y, height } = this.line(scene, topOf(scene, row) + 4, row.height - 8);
    this.model.data.lanes.forEach((lane, number) => {
      if (lane.device === device && lane.core === core && lane.name !== "Execution")
        this.crowd(scene, number, height, null);
    });
    this.pixels.paint(this.context, Math.round(scene.gutter * this.ratio), y, height);
  }

  private lanes(scene: Scene, rows: Row[]): void {
    const { context } = this;
    this.clear.clear();
    this.faint.clear();
    this.labels = [];
    for (const row of rows) {
      if (row.type !== "lane") continue;
      const gap = row.sub ? 1 : 2;
      this.lane(scene, row.lane, topOf(scene, row) + gap, row.height - gap - (row.sub ? 0 : 1), row.height >= 16);
    }
    context.globalAlpha = FAINT;
    this.faint.flush(context, this.styles);
    context.globalAlpha = 1;
    this.clear.flush(context, this.styles);
    this.write(scene);
  }

  private lane(scene: Scene, lane: number, y: number, height: number, labelled: boolean): void {
    const { spans } = this.model;
    const first = spans.laneFirst[lane]!;
    const last = spans.laneFirst[lane + 1]!;
    if (first === last) return;
    const pixel = pixelOf(scene);
    const finer =
      this.served && pixel < this.model.data.spans.window_ns ? this.served.stretches(lane, scene.from, scene.to) : null;
    if (finer) {
      for (const part of finer) this.each(scene, part.spans, part.first, part.last, y, height, pixel, labelled);
      return;
    }
    const seen = after(spans.start, scene.to, first, last) - after(spans.start, scene.from, first, last);
    if (seen <= CROWDED) return this.each(scene, spans, first, last, y, height, pixel, labelled);
    const line = this.line(scene, y, height);
    this.crowd(scene, lane, line.height, labelled ? y + height / 2 : null);
    this.pixels.paint(this.context, Math.round(scene.gutter * this.ratio), line.y, line.height);
  }

  /** A line of pixels of the screen, empty. */
  private line(scene: Scene, y: number, height: number): { y: number; height: number } {
    this.pixels.begin(Math.max(Math.round(scene.width * this.ratio) - Math.round(scene.gutter * this.ratio), 1));
    return { y: Math.round(y * this.ratio), height: Math.max(Math.round(height * this.ratio), 1) };
  }

  private crowd(scene: Scene, lane: number, height: number, middle: number | null): void {
    const { spans } = this.model;
    const pixel = (scene.to - scene.from) / this.pixels.width;
    const level = this.levelFor(lane, pixel);
    if (level) this.parts(scene, level, height, pixel);
    else this.rows(scene, spans.laneFirst[lane]!, spans.laneFirst[lane + 1]!, height, pixel, middle);
  }

  private levelFor(lane: number, pixel: number): Level | null {
    const levels = this.levels.get(lane);
    if (!levels) return null;
    let found: Level | null = null;
    for (const level of levels) if (level.window <= pixel * 1.5) found = level;
    return found;
  }

  /** Spans put together, as tall as they are dense. */
  private parts(scene: Scene, level: Level, height: number, pixel: number): void {
    const { start, end, filled, row } = level;
    const { from, to } = scene;
    for (let i = Math.max(after(start, from) - 1, 0); i < start.length && start[i]! < to; i++) {
      const left = Math.floor((start[i]! - from) / pixel);
      const right = Math.max(Math.ceil((end[i]! - from) / pixel), left + 1);
      const full = filled[i]! / Math.max(end[i]! - start[i]!, 1);
      this.pixels.add(
        left,
        right,
        this.colourOf(scene, this.model.spans, row[i]!),
        this.isFaint(scene, this.model.spans, row[i]!),
        full > 0.9 ? height : Math.max(Math.round(height * full), 2),
      );
      this.painted++;
    }
  }

  private rows(scene: Scene, first: number, last: number, height: number, pixel: number, middle: number | null): void {
    const { start, length } = this.model.spans;
    const { from, to } = scene;
    for (let i = Math.max(after(start, from, first, last) - 1, first); i < last && start[i]! < to; i++) {
      const left = Math.floor((start[i]! - from) / pixel);
      const right = Math.max(Math.floor((start[i]! + length[i]! - from) / pixel), left + 1);
      const faint = this.isFaint(scene, this.model.spans, i);
      this.pixels.add(
        left,
        right - left > 3 * this.ratio ? right - 1 : right,
        this.colourOf(scene, this.model.spans, i),
        faint,
        height,
      );
      this.painted++;
      const wide = (right - Math.max(left, 0)) / this.ratio;
      if (middle !== null && wide > LEAST_LABEL && !faint)
        this.labels.push({
          x: scene.gutter + Math.max(left, 0) / this.ratio,
          y: middle,
          width: wide,
          text: this.word(this.model.spans, i, wide),
          colour: this.colourOf(scene, this.model.spans, i),
        });
    }
  }

  private each(
    scene: Scene,
    spans: Spans,
    first: number,
    last: number,
    y: number,
    height: number,
    pixel: number,
    labelled: boolean,
  ): void {
    const { start, length } = spans;
    const { gutter, from, to } = scene;
    let i = Math.max(after(start, from, first, last) - 1, first);
    for (; i < last && start[i]! < to; i++) {
      const end = start[i]! + length[i]!;
      if (end < from) continue;
      const x = gutter + Math.max((start[i]! - from) / pixel, -1);
      const right = gutter + Math.min((end - from) / pixel, scene.width);
      const wide = right - x;
      const drawn = wide > 4 ? wide - 1 : Math.max(wide, 1); // a gap tells neighbours apart
      const faint = this.put(scene, spans, i, x, y, drawn, height);
      if (labelled && wide > LEAST_LABEL && !faint)
        this.labels.push({
          x: Math.max(x, gutter),
          y: y + height / 2,
          width: right - Math.max(x, gutter),
          text: this.word(spans, i, right - Math.max(x, gutter)),
          colour: this.colourOf(scene, spans, i),
        });
    }
  }

  /** Into the batch of its colour; true: it stays in the background. */
  private put(scene: Scene, spans: Spans, row: number, x: number, y: number, width: number, height: number): boolean {
    const faint = this.isFaint(scene, spans, row);
    (faint ? this.faint : this.clear).add(this.colourOf(scene, spans, row), x, y, width, height);
    this.painted++;
    return faint;
  }

  private isFaint(scene: Scene, { kind, op, name }: Spans, row: number): boolean {
    if (kind[row] === PHASE) return false; // a frame, not a thing to be found
    const { matches } = scene;
    return matches ? !(op[row]! >= 0 && matches.op[op[row]!]) && !matches.name[name[row]!] : scene.showPath;
  }

  private colourOf(scene: Scene, { kind, op, name }: Spans, row: number): number {
    const what = kind[row]!;
    if (what === WAIT) return STILL;
    if (what === BARRIER) return THREADS;
    if (what === PHASE) return WHOLE;
    const colour = op[row]! >= 0 ? (scene.colours.ofOp[op[row]!] ?? OTHER) : OTHER;
    return colour === OTHER ? (scene.colours.ofName[name[row]!] ?? OTHER) : colour;
  }

  private word(spans: Spans, row: number, width: number): string {
    const fits = Math.floor((width - 7) / this.character);
    const names = this.model.data.names.length;
    const key = ((spans.op[row]! + 1) * names + spans.name[row]!) * 2 + (spans.kind[row] === WAIT ? 1 : 0);
    let words = this.words.get(key);
    if (words === undefined) {
      const op = spans.kind[row] === WAIT ? null : this.model.data.ops[spans.op[row]!];
      words = op ? tailOf(op.name, 60) : shorten(this.model.data.names[spans.name[row]!] ?? "", 60);
      this.words.set(key, words);
    }
    if (words.length <= fits) return words;
    const slash = words.lastIndexOf("/");
    const tail = slash >= 0 ? words.slice(slash + 1) : words;
    return tail.length <= fits ? tail : fits > 2 ? `${tail.slice(0, fits - 1)}…` : "";
  }

  private write(scene: Scene): void {
    const { context } = this;
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const label of this.labels) {
      context.fillStyle = scene.theme.words[label.colour] ?? scene.theme.dim;
      context.fillText(label.text, label.x + 4, label.y + 0.5);
    }
  }

  /** The critical path: its spans in full colour, underlined and joined. */
  private path(scene: Scene): void {
    const { context, model } = this;
    const path = model.path;
    if (!path) return;
    const at = (ns: number): number => xOf(scene, ns);
    this.clear.clear();
    this.labels = [];
    const marks: [number, number, number][] = [];
    let i = Math.max(after(path.start, scene.from) - 1, 0);
    for (; i < path.rows && path.start[i]! < scene.to; i++) {
      const row = path.row[i]!;
      const place = row < 0 ? null : placeOfLane(scene, model, model.laneOf(row));
      if (!place) continue;
      const left = at(path.start[i]!);
      const right = at(path.start[i]! + path.length[i]!);
      const before = marks[marks.length - 1];
      if (before && right - before[0] < 0.5 && before[2] === place.y + place.height) continue;
      const plain = { ...scene, showPath: false, matches: null };
      this.put(
        plain,
        model.spans,
        row,
        Math.max(left, scene.gutter - 1),
        place.y + 2,
        Math.max(Math.min(right, scene.width) - Math.max(left, scene.gutter - 1) - (right - left > 4 ? 1 : 0), 1),
        place.height - 3,
      );
      if (right - left > LEAST_LABEL && place.height >= 16)
        this.labels.push({
          x: Math.max(left, scene.gutter),
          y: place.y + place.height / 2 + 0.5,
          width: right - left,
          text: this.word(model.spans, row, right - Math.max(left, scene.gutter)),
          colour: this.colourOf(scene, model.spans, row),
        });
      marks.push([left, Math.max(right, left + 1), place.y + place.height]);
    }
    this.clear.flush(context, this.styles);
    this.write(scene);
    context.fillStyle = context.strokeStyle = scene.theme.path;
    context.lineWidth = 1;
    context.beginPath();
    let end: [number, number] | null = null;
    for (const [left, right, y] of marks) {
      context.fillRect(left, y - 2, right - left, 2);
      if (end && (end[1] !== y || left - end[0] > 1)) {
        context.moveTo(end[0], end[1] - 1);
        context.lineTo(left, y - 1);
      }
      end = [right, y];
    }
    context.stroke();
  }
}

/** Slanted lines: waiting, told apart without colour. */
function hatch(context: CanvasRenderingContext2D, theme: Theme, size: number): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const drawn = tile.getContext("2d");
  if (!drawn) return theme.wait;
  drawn.fillStyle = theme.wait;
  drawn.fillRect(0, 0, size, size);
  drawn.strokeStyle = theme.hatch;
  drawn.lineWidth = 1;
  drawn.beginPath();
  for (const shift of [-size, 0, size]) {
    drawn.moveTo(shift, size);
    drawn.lineTo(shift + size, 0);
  }
  drawn.stroke();
  return context.createPattern(tile, "repeat") ?? theme.wait;
}
