// The whole run in a strip: how busy the lanes are, where the critical path is not at work, and what is in view.

import type { Model } from "../model";
import type { Theme } from "../palette";
import { BARRIER, PHASE, TRANSFER, WAIT } from "../spans";
import type { View } from "./view";

const POINTS = 1024;

/** Mean number of lanes at work, and of transfers in flight, in equal windows. */
export function density(model: Model, end: number): { work: Float64Array; moving: Float64Array } {
  const work = new Float64Array(POINTS);
  const moving = new Float64Array(POINTS);
  const { spans } = model;
  const window = Math.max(end, 1) / POINTS;
  for (let row = 0; row < spans.rows; row++) {
    const kind = spans.kind[row];
    if (kind === WAIT || kind === BARRIER || kind === PHASE) continue;
    const target = kind === TRANSFER ? moving : work;
    const from = spans.start[row]! / window;
    const to = from + spans.length[row]! / window;
    let at = Math.floor(from);
    const last = Math.min(Math.ceil(to), POINTS);
    for (; at < last; at++) target[at]! += Math.min(to, at + 1) - Math.max(from, at);
  }
  return { work, moving };
}

export class Minimap {
  readonly canvas = document.createElement("canvas");
  private picture: HTMLCanvasElement | null = null;
  private points: ReturnType<typeof density> | null = null;
  private key = "";

  constructor(
    private readonly model: Model,
    private readonly view: View,
    private readonly moved: () => void,
  ) {
    this.canvas.className = "minimap";
    this.canvas.setAttribute("aria-hidden", "true");
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
  }

  private drag(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    const go = (at: PointerEvent): void => {
      const box = this.canvas.getBoundingClientRect();
      const middle = ((at.clientX - box.left) / box.width) * this.view.end;
      this.view.set(middle - this.view.span / 2, middle + this.view.span / 2);
      this.moved();
    };
    go(event);
    this.canvas.onpointermove = go;
    this.canvas.onpointerup = () => (this.canvas.onpointermove = null);
  }

  paint(theme: Theme): void {
    const ratio = devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (!width) return;
    const key = `${width}×${height}×${ratio}×${theme.dark}`;
    if (key !== this.key) {
      this.key = key;
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.picture = this.draw(theme, width, height, ratio);
    }
    const context = this.canvas.getContext("2d");
    if (!context || !this.picture) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.picture, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const left = (Math.max(this.view.from, 0) / this.view.end) * width;
    const right = (Math.min(this.view.to, this.view.end) / this.view.end) * width;
    context.fillStyle = theme.dark ? "rgba(0,0,0,.5)" : "rgba(80,90,105,.28)";
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.fillStyle = theme.before;
    context.fillRect(left, 0, Math.max(right - left, 2), 2);
  }

  private draw(theme: Theme, width: number, height: number, ratio: number): HTMLCanvasElement {
    this.points ??= density(this.model, this.view.end);
    const picture = document.createElement("canvas");
    picture.width = Math.round(width * ratio);
    picture.height = Math.round(height * ratio);
    const context = picture.getContext("2d");
    if (!context) return picture;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, width, height);
    for (const [values, colour, alpha] of [
      [this.points.moving, theme.colours[1]!, 0.75],
      [this.points.work, theme.colours[0]!, 0.8],
    ] as const) {
      const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
      context.globalAlpha = alpha;
      context.fillStyle = colour;
      context.beginPath();
      context.moveTo(0, height);
      values.forEach((value, i) =>
        context.lineTo(((i + 0.5) / POINTS) * width, height - (value / most) * (height - 5)),
      );
      context.lineTo(width, height);
      context.fill();
    }
    return picture;
  }
}
