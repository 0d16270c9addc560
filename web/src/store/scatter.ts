// Points on two axes of powers, with a line through some of them; many points stay one picture.

import uPlot from "uplot";
import { powerAxis } from "../charts";
import { el } from "../dom";
import type { Themed } from "../state";

const HEIGHT = 420;
const MANY = 5000; // from here on points are squares, which are quicker
const REACH = 18; // pixels around the pointer

export type Across = { label: string; unit: string; text: (value: number) => string };
export type Group = { colour: number; dots: { x: number; y: number }[]; line: { x: number; y: number }[] };

export class Scatter {
  readonly root = el("div", { class: "chart scatter" });
  private plot: uPlot | null = null;
  private places = new Float32Array(0); // of dots, group by group, in pixels of the canvas
  private near: { x: number; y: number } | null = null;

  constructor(
    private readonly themed: Themed,
    private readonly shown: () => { groups: Group[]; x: Across; y: Across },
    private readonly point: (dot: { x: number; y: number } | null, click: boolean) => void,
  ) {
    this.root.addEventListener("click", () => this.near && this.point(this.near, true));
  }

  draw(): void {
    const { groups, x, y } = this.shown();
    this.plot?.destroy();
    this.plot = null;
    this.near = null;
    const all = groups.flatMap((group) => group.dots);
    if (!all.length) return;
    const ends = (of: (dot: { x: number; y: number }) => number): [number, number] => {
      let [low, high] = [Infinity, 0];
      for (const dot of all) [low, high] = [Math.min(low, of(dot)), Math.max(high, of(dot))];
      return [low / 1.6, high * 1.6];
    };
    const range = ends((dot) => dot.x);
    this.plot = new uPlot(
      {
        width: this.root.clientWidth,
        height: this.root.clientWidth < 500 ? 320 : HEIGHT,
        series: [{}, { show: false }],
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false } },
        scales: { x: { time: false, distr: 3, range }, y: { distr: 3, range: ends((dot) => dot.y) } },
        axes: [
          powerAxis(this.themed, x.label, x.unit, x.text, 28),
          powerAxis(this.themed, y.label, y.unit, y.text, 72),
        ],
        hooks: { draw: [(self) => this.paint(self, groups)], setCursor: [(self) => this.seek(self, groups)] },
      },
      [range, [null, null]],
      this.root,
    );
  }

  private paint(plot: uPlot, groups: Group[]): void {
    const { ctx } = plot;
    const { theme } = this.themed;
    const many = groups.reduce((sum, group) => sum + group.dots.length, 0) > MANY;
    const size = (many ? 3 : 8) * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    ctx.clip();
    const every = groups.flatMap((group) => group.dots);
    this.places = new Float32Array(2 * every.length);
    every.forEach((dot, i) => {
      this.places[2 * i] = plot.valToPos(dot.x, "x", true);
      this.places[2 * i + 1] = plot.valToPos(dot.y, "y", true);
    });
    let after = every.length;
    for (const group of [...groups].reverse()) {
      after -= group.dots.length;
      const isOther = group.colour >= OTHERS;
      const colour = isOther ? theme.other : theme.colours[group.colour]!;
      ctx.fillStyle = ctx.strokeStyle = colour;
      ctx.globalAlpha = many ? 0.5 : 0.75;
      for (let i = after; i < after + group.dots.length; i++) {
        const [left, top] = [this.places[2 * i]!, this.places[2 * i + 1]!];
        if (many) ctx.fillRect(left - size / 2, top - size / 2, size, size);
        else shape(ctx, group.colour, left, top, size);
      }
      if (isOther) continue; // of the others, all in one colour, lines would say nothing
      ctx.globalAlpha = 1;
      ctx.lineWidth = 1.75 * devicePixelRatio;
      ctx.beginPath();
      group.line.forEach((dot, i) => {
        const [left, top] = [plot.valToPos(dot.x, "x", true), plot.valToPos(dot.y, "y", true)];
        if (i) ctx.lineTo(left, plot.valToPos(group.line[i - 1]!.y, "y", true));
        ctx.lineTo(left, top);
      });
      ctx.stroke();
    }
    ctx.restore();
  }

  private seek(plot: uPlot, groups: Group[]): void {
    const [left, top] = [plot.cursor.left ?? -1, plot.cursor.top ?? -1];
    const [x, y] = [left * devicePixelRatio + plot.bbox.left, top * devicePixelRatio + plot.bbox.top];
    let best = (REACH * devicePixelRatio) ** 2;
    let found = -1;
    for (let i = 0; left >= 0 && i < this.places.length; i += 2) {
      const away = (this.places[i]! - x) ** 2 + (this.places[i + 1]! - y) ** 2;
      if (away < best) [best, found] = [away, i / 2];
    }
    this.near = found < 0 ? null : dotAt(groups, found);
    this.point(this.near, false);
  }
}

function dotAt(groups: Group[], place: number): { x: number; y: number } | null {
  let rest = place;
  for (const { dots } of groups) {
    if (rest < dots.length) return dots[rest]!;
    rest -= dots.length;
  }
  return null;
}

/** Groups differ in shape as well as in colour. */
export const SHAPES = ["●", "■", "▲", "◆", "▼", "✚", "✖", "·"];
export const OTHERS = 7; // groups from here on have one colour

function shape(ctx: CanvasRenderingContext2D, number: number, x: number, y: number, size: number): void {
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.font = `${size * 1.5}px system-ui, sans-serif`;
  ctx.fillText(SHAPES[Math.min(number, OTHERS)]!, x, y);
}
