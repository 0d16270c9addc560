// Models by targets, or any other two axes, as a heat map. Only what is seen is drawn, on one canvas.

import { el, section } from "../dom";
import { count, decimal } from "../format";
import { shorten } from "../text";
import { differing, labelOf, type Fleet } from "./cells";
import { axisOptions, choice, lazily, metricOptions, Question } from "./controls";
import { detail } from "./detail";
import { bests, EMPTY, MOST_PLACES, pivot, ratio, STEPS, stepOf, type Best, type Pivot } from "./pivot";

const ROW = 24;
const HEAD = 54;
const FONT = "12px system-ui, sans-serif";
const NONE = -1;
const HINT = "Point at a place for what it says; a click, or arrows and Enter, shows the cell.";

type Spot = { row: number; column: number };

export function map(fleet: Fleet): HTMLElement {
  return new HeatMap(fleet).root;
}

class HeatMap {
  readonly root = el("div", {});
  private readonly said = el("p", { class: "note", role: "status", id: "map-said" }, HINT);
  private readonly canvas = el("canvas", {
    class: "heat-map",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": "Cells by row and column; arrows move, Enter shows a cell",
    "aria-describedby": "map-said",
  });
  private readonly size = el("div", { class: "heat-size" }, this.canvas);
  private readonly scroll = el("div", { class: "heat-scroll" }, this.size);
  private readonly legend = el("p", { class: "legend heat-legend" });
  private readonly question = new Question();
  private readonly shown = el("div", { class: "shown" });
  private readonly renew: () => void;
  private metric: number;
  private down: number[];
  private across: number;
  private best: Best = "row";
  private asRatio = false;
  private found: Pivot | null = null;
  private against: Float64Array = new Float64Array(0);
  private spot: Spot | null = null;
  private labels = 0;
  private wide = 0;
  private readonly fitted = new Map<string, string>(); // texts as far as they fit, for one layout
  private ground = ""; // colour of the card

  constructor(private readonly fleet: Fleet) {
    const { cells } = fleet;
    this.metric = Math.max(cells.metricNamed("latency"), 0);
    this.down = [cells.axisNamed("model")];
    this.across = cells.axisNamed("target");
    const act = <Value>(set: (value: Value) => void) => {
      return (value: Value): void => {
        set(value);
        this.renew();
      };
    };
    const tools = el(
      "div",
      { class: "tools" },
      choice(
        "Metric",
        metricOptions(cells),
        this.metric,
        act((value: number) => (this.metric = value)),
      ),
      choice(
        "Rows",
        axisOptions(cells),
        this.down[0]!,
        act((value: number) => (this.down = [value, ...this.down.slice(1)])),
      ),
      choice(
        "and",
        [[NONE, "nothing else"], ...axisOptions(cells)],
        NONE,
        act((value: number) => (this.down = [this.down[0]!, ...(value === NONE ? [] : [value])])),
      ),
      choice(
        "Columns",
        axisOptions(cells),
        this.across,
        act((value: number) => (this.across = value)),
      ),
      choice(
        "Show",
        [
          ["value", "the value"],
          ["ratio", "times the best"],
        ],
        "value",
        act((value: string) => (this.asRatio = value === "ratio")),
      ),
      choice(
        "Best of",
        [
          ["row", "its row"],
          ["column", "its column"],
          ["map", "all"],
        ],
        "row",
        act((value: Best) => (this.best = value)),
      ),
    );
    const { redraw, renew } = lazily(
      this.root,
      cells,
      () => this.work(),
      () => this.draw(),
    );
    this.renew = renew;
    this.scroll.addEventListener("scroll", () => this.paint(), { passive: true });
    this.listen();
    fleet.onTheme(redraw);
    this.root.append(section("Cells", tools, this.scroll, this.legend, this.said, this.question.root), this.shown);
  }

  private work(): void {
    this.spot = null;
    const { cells } = this.fleet;
    const { axes, metrics } = cells.data;
    this.found = pivot(cells, this.down, this.across, this.metric);
    this.against = this.found ? bests(cells, this.found, this.metric, this.best) : new Float64Array(0);
    const named = [...this.down, this.across].map((axis) => axes[axis]!.sql);
    this.question.set(cells.sql([...named, "provenance", "status", "reason", metrics[this.metric]!.sql]));
    this.said.textContent = this.found ? HINT : `More than ${count(MOST_PLACES)} places; a filter makes them fewer.`;
    this.explain();
  }

  private explain(): void {
    const { cells } = this.fleet;
    const metric = cells.data.metrics[this.metric]!;
    const kinds = new Set(this.found?.columns.map((column) => column.provenance).filter(Boolean));
    const edges = ["best", ...STEPS.slice(1).map((most) => `≤ ${most}×`), `> ${STEPS[STEPS.length - 1]}×`];
    this.legend.replaceChildren(
      ...edges.map((words, step) => el("span", { class: `swatch heat h${step}` }, words)),
      el("span", { class: "swatch wait" }, "failed or refused"),
      el("span", {}, "— not known; empty: not run"),
      metric.better
        ? ""
        : el("span", {}, `neither more nor less ${metric.name} is better: the least stands for the best`),
      kinds.size > 1 ? el("span", {}, "each held against those of the same provenance") : "",
    );
  }

  /** Room for labels of rows, and for a column. */
  private measure(): void {
    const { found, scroll } = this;
    const width = scroll.clientWidth;
    const longest = Math.max(6, ...found!.rows.slice(0, 2000).map((row) => row.label.length));
    this.labels = Math.min(14 + 6.6 * longest, width * 0.34, 300);
    const even = (width - this.labels) / found!.columns.length;
    this.wide = Math.min(Math.max(even, width < 500 ? 76 : 84), 170);
    this.fitted.clear();
  }

  private draw(): void {
    const { found } = this;
    this.scroll.hidden = !found || !found.at.length;
    if (!found || !found.at.length) {
      if (found) this.said.textContent = "No cell fits the filter.";
      return;
    }
    this.measure();
    const height = HEAD + ROW * found.rows.length;
    this.scroll.style.height = `${Math.min(height + 2, Math.max(innerHeight - 260, 260))}px`;
    this.size.style.width = `${Math.floor(this.labels + this.wide * found.columns.length)}px`;
    this.size.style.height = `${height}px`;
    this.paint();
  }

  private paint(): void {
    const { found, canvas, scroll } = this;
    if (!found || !scroll.clientWidth) return;
    const { theme } = this.fleet;
    const [width, height] = [scroll.clientWidth, scroll.clientHeight];
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const ctx = canvas.getContext("2d")!;
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    this.ground = getComputedStyle(this.root.firstElementChild!).backgroundColor;
    ctx.fillStyle = this.ground;
    ctx.fillRect(0, 0, width, height);
    ctx.textBaseline = "middle";
    ctx.font = FONT;
    const { labels, wide } = this;
    const first = Math.floor(scroll.scrollTop / ROW);
    const last = Math.min(found.rows.length, Math.ceil((scroll.scrollTop + height - HEAD) / ROW));
    const left = Math.floor(scroll.scrollLeft / wide);
    const right = Math.min(found.columns.length, Math.ceil((scroll.scrollLeft + width - labels) / wide));
    for (let row = first; row < last; row++)
      for (let column = left; column < right; column++)
        this.place(
          ctx,
          { row, column },
          labels + column * wide - scroll.scrollLeft,
          HEAD + row * ROW - scroll.scrollTop,
        );
    this.rowLabels(ctx, first, last);
    this.heads(ctx, left, right);
    ctx.fillStyle = this.ground;
    ctx.fillRect(0, 0, labels, HEAD);
    ctx.fillStyle = theme.dim;
    ctx.fillText(
      this.fit(ctx, this.down.map((axis) => this.fleet.cells.data.axes[axis]!.name).join(" · "), labels - 8),
      2,
      HEAD - 12,
    );
    ctx.fillStyle = theme.grid;
    ctx.fillRect(0, HEAD - 1, width, 1);
  }

  private place(ctx: CanvasRenderingContext2D, spot: Spot, x: number, y: number): void {
    const { theme, cells } = this.fleet;
    const { wide } = this;
    const at = this.at(spot);
    const cell = this.found!.at[at]!;
    const [w, h] = [wide - 2, ROW - 2];
    if (cell === EMPTY) {
      ctx.fillStyle = theme.stripe;
      ctx.fillRect(x, y, w, h);
    } else {
      const value = cells.metric(this.metric)[cell]!;
      const known = !Number.isNaN(value);
      const times = ratio(cells.data.metrics[this.metric]!.better, value, this.against[at]!);
      const step = known ? stepOf(times) : 0;
      ctx.fillStyle = known ? theme.heat[step]! : theme.wait;
      ctx.fillRect(x, y, w, h);
      if (!cells.isOk(cell)) hatch(ctx, theme.hatch, x, y, w, h);
      ctx.fillStyle = known ? theme.heatWords[step]! : theme.dim;
      ctx.textAlign = "right";
      ctx.font = known && times === 1 ? `600 ${FONT}` : FONT;
      const words = this.words(cell, at);
      if (!cells.isOk(cell)) {
        const size = ctx.measureText(words).width;
        ctx.fillStyle = theme.wait;
        ctx.fillRect(x + w - size - 11, y + 3, size + 8, h - 6);
        ctx.fillStyle = theme.text;
      }
      ctx.fillText(words.length < 11 ? words : this.fit(ctx, words, w - 12), x + w - 7, y + h / 2 + 0.5);
      ctx.font = FONT;
      ctx.textAlign = "left";
    }
    if (this.spot && this.spot.row === spot.row && this.spot.column === spot.column) {
      ctx.strokeStyle = theme.select;
      ctx.lineWidth = 2;
      ctx.strokeRect(x + 1, y + 1, w - 2, h - 2);
    }
  }

  private words(cell: number, at: number): string {
    const { cells } = this.fleet;
    if (!cells.isOk(cell)) return cells.named("status", cell);
    const value = cells.metric(this.metric)[cell]!;
    if (!this.asRatio || Number.isNaN(value)) return cells.text(this.metric, cell);
    const times = ratio(cells.data.metrics[this.metric]!.better, value, this.against[at]!);
    return times === 1 ? "best" : `${decimal(times, 3)}×`;
  }

  private rowLabels(ctx: CanvasRenderingContext2D, first: number, last: number): void {
    const { theme } = this.fleet;
    ctx.fillStyle = this.ground;
    ctx.fillRect(0, HEAD, this.labels - 2, this.canvas.height);
    ctx.fillStyle = theme.text;
    for (let row = first; row < last; row++)
      ctx.fillText(
        this.fit(ctx, this.found!.rows[row]!.label, this.labels - 10),
        2,
        HEAD + row * ROW - this.scroll.scrollTop + (ROW - 2) / 2,
      );
  }

  private heads(ctx: CanvasRenderingContext2D, left: number, right: number): void {
    const { theme } = this.fleet;
    ctx.fillStyle = this.ground;
    ctx.fillRect(0, 0, this.scroll.clientWidth, HEAD);
    ctx.textAlign = "right";
    for (let column = left; column < right; column++) {
      const head = this.found!.columns[column]!;
      const x = this.labels + (column + 1) * this.wide - this.scroll.scrollLeft - 9;
      ctx.fillStyle = theme.text;
      const lines = inTwo(head.label, ctx.measureText(head.label).width > this.wide - 12);
      lines.forEach((line, number) =>
        ctx.fillText(this.fit(ctx, line, this.wide - 10), x, 26 - 13 * (lines.length - 1 - number)),
      );
      ctx.fillStyle = theme.dim;
      ctx.font = "10.5px system-ui, sans-serif";
      ctx.fillText(head.provenance || "no figures", x, 41);
      ctx.font = FONT;
    }
    ctx.textAlign = "left";
  }

  /** As much of a text as there is room for. */
  private fit(ctx: CanvasRenderingContext2D, text: string, room: number): string {
    const key = `${text}\n${room}`;
    const known = this.fitted.get(key);
    if (known !== undefined) return known;
    let length = Math.min(text.length, 80);
    let shown = shorten(text, length);
    while (length > 3 && ctx.measureText(shown).width > room) {
      length -= Math.max(1, Math.floor(length / 8));
      shown = shorten(text, length);
    }
    this.fitted.set(key, shown);
    return shown;
  }

  private at = ({ row, column }: Spot): number => row * this.found!.columns.length + column;

  private listen(): void {
    this.canvas.addEventListener("pointermove", (event) => {
      const spot = this.under(event);
      this.said.textContent = spot ? this.tell(spot) : HINT;
      this.canvas.style.cursor = spot && this.found!.at[this.at(spot)] !== EMPTY ? "pointer" : "default";
    });
    this.canvas.addEventListener("click", (event) => {
      const spot = this.under(event);
      if (spot) this.choose(spot, true);
    });
    this.canvas.addEventListener("keydown", (event) => this.press(event));
  }

  private under(event: PointerEvent | MouseEvent): Spot | null {
    if (!this.found) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (x < this.labels || y < HEAD) return null;
    const spot = {
      row: Math.floor((y - HEAD + this.scroll.scrollTop) / ROW),
      column: Math.floor((x - this.labels + this.scroll.scrollLeft) / this.wide),
    };
    return spot.row < this.found.rows.length && spot.column < this.found.columns.length ? spot : null;
  }

  private press(event: KeyboardEvent): void {
    const { found } = this;
    if (!found) return;
    const now = this.spot ?? { row: 0, column: -1 };
    const page = Math.max(1, Math.floor((this.scroll.clientHeight - HEAD) / ROW) - 1);
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      PageUp: [-page, 0],
      PageDown: [page, 0],
    };
    const move = moves[event.key];
    if (move) {
      const within = (value: number, size: number): number => Math.min(Math.max(value, 0), size - 1);
      this.choose(
        {
          row: within(now.row + move[0], found.rows.length),
          column: within(now.column + move[1], found.columns.length),
        },
        false,
      );
    } else if (event.key === "Enter" && this.spot) this.choose(this.spot, true);
    else return;
    event.preventDefault();
  }

  private choose(spot: Spot, open: boolean): void {
    this.spot = spot;
    const [x, y] = [this.labels + spot.column * this.wide, HEAD + spot.row * ROW];
    const { scroll } = this;
    if (y - HEAD < scroll.scrollTop) scroll.scrollTop = y - HEAD;
    if (y + ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = y + ROW - scroll.clientHeight;
    if (x - this.labels < scroll.scrollLeft) scroll.scrollLeft = x - this.labels;
    if (x + this.wide > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = x + this.wide - scroll.clientWidth;
    this.said.textContent = this.tell(spot);
    this.paint();
    const cell = this.found!.at[this.at(spot)]!;
    if (open && cell !== EMPTY) this.open(spot, cell);
  }

  private open(spot: Spot, cell: number): void {
    const others = this.together(spot);
    const card = detail(this.fleet.cells, cell, others, (row) => this.open(spot, row));
    this.shown.replaceChildren(card);
    card.scrollIntoView({ block: "nearest" });
  }

  /** Every cell that falls into a place. */
  private together({ row, column }: Spot): Uint32Array {
    const { cells } = this.fleet;
    const [line, head] = [this.found!.rows[row]!, this.found!.columns[column]!];
    const kinds = cells.axisNamed("provenance");
    return cells.rows.filter((cell) => {
      const kind = kinds < 0 ? -1 : cells.axis(kinds)[cell]!;
      return (
        cells.axis(this.across)[cell] === head.word &&
        (kind < 0 || kind === head.kind) &&
        this.down.every((axis, i) => cells.axis(axis)[cell] === line.words[i])
      );
    });
  }

  private tell(spot: Spot): string {
    const { cells } = this.fleet;
    const at = this.at(spot);
    const cell = this.found!.at[at]!;
    const place = `${shorten(this.found!.rows[spot.row]!.label, 60)}, ${shorten(this.found!.columns[spot.column]!.label, 60)}: `;
    if (cell === EMPTY) return `${place}not run`;
    if (!cells.isOk(cell)) return `${place}${cells.named("status", cell)}; ${shorten(cells.reason(cell), 300)}`;
    const metric = cells.data.metrics[this.metric]!;
    const value = cells.metric(this.metric)[cell]!;
    if (Number.isNaN(value)) return `${place}${metric.name} is not known; ${shorten(cells.reason(cell), 300)}`;
    const times = ratio(metric.better, value, this.against[at]!);
    const held = times === 1 ? ", the best" : `, ${decimal(times, 3)} times the best`;
    const several = this.found!.several[at]!;
    const which = several > 1 ? `; of ${count(several)} cells the one with ${this.telling(spot, cell)}` : "";
    return `${place}${metric.name} ${cells.text(this.metric, cell)} ${this.found!.columns[spot.column]!.provenance}${held} of ${this.best === "map" ? "all" : `its ${this.best}`}${which}`;
  }

  private telling(spot: Spot, cell: number): string {
    const { cells } = this.fleet;
    const axes = differing(cells, this.together(spot), [...this.down, this.across]);
    return axes.length ? shorten(labelOf(cells, axes, cell), 90) : "the best value";
  }
}

/** A name on two lines, cut where its parts meet nearest to the middle. */
function inTwo(name: string, isLong: boolean): string[] {
  const cuts = isLong ? [...name.matchAll(/[-_. /]/g)].map((found) => found.index + 1) : [];
  const middle = name.length / 2;
  const [cut] = cuts.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
  return cut ? [name.slice(0, cut), name.slice(cut)] : [name];
}

function hatch(ctx: CanvasRenderingContext2D, colour: string, x: number, y: number, w: number, h: number): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let at = -h; at < w; at += 6) {
    ctx.moveTo(x + at, y + h);
    ctx.lineTo(x + at + h, y);
  }
  ctx.stroke();
  ctx.restore();
}
