// What stands around the spans: the axis, the names of rows, counters.

import { inUnit, moment } from "../format";
import type { Model } from "../model";
import { after } from "../spans";
import { shorten } from "../text";
import type { Row } from "./rows";
import { RULER, stepOf, ticks, topOf, xOf, type Scene } from "./scene";

export class Frame {
  private readonly limits = new Map<number, [number, number]>(); // of every counter

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly model: Model,
  ) {}

  grid(scene: Scene): void {
    const { context } = this;
    context.fillStyle = scene.theme.grid;
    for (const [x] of ticks(scene)) context.fillRect(Math.round(x), RULER, 1, scene.height);
  }

  counter(scene: Scene, row: Extract<Row, { type: "counter" }>): void {
    const { context, model } = this;
    const track = model.data.counters[row.counter]!;
    const times = model.counters?.columns.get("time");
    const values = model.counters?.columns.get("value");
    if (!times || !values || !track.rows) return;
    const [low, high] = this.limitsOf(row.counter);
    const bottom = topOf(scene, row) + row.height - 3;
    const scale = (row.height - 8) / Math.max(high - low, 1e-12);
    const last = track.first + track.rows;
    const x = (i: number): number => xOf(scene, times[i]!);
    context.beginPath();
    let i = Math.max(after(times, scene.from, track.first, last) - 1, track.first);
    context.moveTo(Math.max(x(i), scene.gutter), bottom);
    for (; i < last && times[i]! <= scene.to; i++) {
      const y = bottom - (values[i]! - low) * scale;
      context.lineTo(Math.max(x(i), scene.gutter), y);
      context.lineTo(i + 1 < last ? Math.min(x(i + 1), scene.width) : x(i), y);
    }
    context.lineTo(Math.min(i < last ? scene.width : x(last - 1), scene.width), bottom);
    context.closePath();
    const colour = scene.theme.colours[6]!;
    context.globalAlpha = 0.35;
    context.fillStyle = colour;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.stroke();
  }

  private limitsOf(counter: number): [number, number] {
    const track = this.model.data.counters[counter]!;
    const values = this.model.counters?.columns.get("value") ?? [];
    const found = this.limits.get(counter) ?? limits(values, track.first, track.rows);
    this.limits.set(counter, found);
    return found;
  }

  gutter(scene: Scene, rows: Row[]): void {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(0, RULER, scene.gutter, scene.height);
    context.clip();
    context.fillStyle = scene.theme.panel;
    context.fillRect(0, RULER, scene.gutter, scene.height);
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const row of rows) this.label(scene, row);
    context.fillStyle = scene.theme.grid;
    context.fillRect(scene.gutter - 1, RULER, 1, scene.height);
    context.restore();
  }

  private label(scene: Scene, row: Row): void {
    const { context } = this;
    const y = topOf(scene, row);
    const middle = y + row.height / 2 + 0.5;
    if (row.type === "group") {
      context.fillStyle = scene.theme.grid;
      context.fillRect(0, y, scene.width, 1);
      context.fillStyle = scene.theme.text;
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(`${row.open ? "▾" : "▸"} ${row.label}`, 8 + row.depth * 6, middle);
      if (scene.gutter > 150) {
        context.fillStyle = scene.theme.dim;
        context.font = "10px system-ui, sans-serif";
        context.textAlign = "right";
        context.fillText(row.note, scene.gutter - 8, middle);
        context.textAlign = "left";
      }
      return;
    }
    if (!row.label) return;
    const small = row.height < 16;
    context.fillStyle = small || row.type === "counter" ? scene.theme.dim : scene.theme.text;
    context.font = small ? "10px system-ui, sans-serif" : "11.5px system-ui, sans-serif";
    const left = scene.gutter > 150 ? 26 : 14;
    context.fillText(this.fitting(row.label, scene.gutter - left - 8), left, row.type === "counter" ? y + 11 : middle);
    if (row.type !== "counter") return;
    const track = this.model.data.counters[row.counter]!;
    const [low, high] = this.limitsOf(row.counter);
    context.font = "10px system-ui, sans-serif";
    context.fillText(
      this.fitting(
        low > 0 ? `${inUnit(low, track.unit)} – ${inUnit(high, track.unit)}` : `max ${inUnit(high, track.unit)}`,
        scene.gutter - left - 8,
      ),
      left,
      y + 24,
    );
  }

  /** As much of a text as there is room for, in the font that is set. */
  private fitting(text: string, room: number): string {
    const width = this.context.measureText(text).width;
    return width <= room ? text : shorten(text, Math.max(Math.floor((text.length * room) / width) - 1, 3));
  }

  ruler(scene: Scene): void {
    const { context } = this;
    context.fillStyle = scene.theme.panel;
    context.fillRect(0, 0, scene.width, RULER);
    context.fillStyle = scene.theme.grid;
    context.fillRect(0, RULER - 1, scene.width, 1);
    context.font = "10.5px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "left";
    const step = stepOf(scene);
    for (const [x, ns] of ticks(scene)) {
      context.fillStyle = scene.theme.grid;
      context.fillRect(Math.round(x), RULER - 6, 1, 6);
      context.fillStyle = scene.theme.dim;
      const words = moment(ns, step);
      if (x >= scene.gutter - 1 && x + 4 + context.measureText(words).width <= scene.width)
        context.fillText(words, x + 4, RULER / 2);
    }
    context.fillStyle = scene.theme.panel;
    context.fillRect(0, 0, scene.gutter, RULER - 1);
    context.fillStyle = scene.theme.dim;
    context.fillText(`${moment(scene.to - scene.from, (scene.to - scene.from) / 100)} in view`, 10, RULER / 2);
  }
}

function limits(values: ArrayLike<number>, first: number, rows: number): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (let i = first; i < first + rows; i++) {
    if (values[i]! < low) low = values[i]!;
    if (values[i]! > high) high = values[i]!;
  }
  return low > 0.8 * high ? [low - (high - low) * 0.2, high] : [Math.min(low, 0), high]; // a clock hardly moves: show how
}
