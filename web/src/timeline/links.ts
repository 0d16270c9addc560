// What a selection adds to the picture: its outline, arrows from what it came after and to what came after it, a range.

import type { Model } from "../model";
import { pixelOf, placeOfLane, RULER, xOf, type Scene } from "./scene";

const MOST_ARROWS = 200;

type End = { lane: number; ns: number };

export class Links {
  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly model: Model,
  ) {}

  outline(scene: Scene): void {
    const { context } = this;
    for (const [pick, width] of [
      [scene.hovered, 1],
      [scene.picked, 2],
    ] as const) {
      if (!pick) continue;
      const place = placeOfLane(scene, this.model, pick.lane);
      if (!place) continue;
      const left = xOf(scene, pick.spans.start[pick.row]!);
      const wide = Math.max(pick.spans.length[pick.row]! / pixelOf(scene), 2);
      context.strokeStyle = scene.theme.select;
      context.lineWidth = width;
      context.strokeRect(left, place.y + 1.5, wide, place.height - 2.5);
    }
  }

  arrows(scene: Scene): void {
    const pick = scene.picked;
    if (!pick) return;
    const { model } = this;
    const command = pick.spans.command[pick.row]!;
    const inference = pick.spans.inference[pick.row]!;
    const start: End = { lane: pick.lane, ns: pick.spans.start[pick.row]! };
    if (pick.spans.waitsOn[pick.row]! >= 0)
      this.arrow(
        scene,
        this.endOf(model.rowOf(pick.spans.waitsOn[pick.row]!, inference)),
        start,
        scene.theme.before,
        true,
      );
    if (command < 0) return;
    for (const { command: source, data } of model.before(command).slice(0, MOST_ARROWS))
      this.arrow(scene, this.endOf(model.rowOf(source, inference)), start, scene.theme.before, data);
    const end = this.endOf(model.rowOf(command, inference)) ?? {
      lane: pick.lane,
      ns: start.ns + pick.spans.length[pick.row]!,
    };
    for (const { command: target, data } of model.following(command).slice(0, MOST_ARROWS))
      this.arrow(scene, end, this.startOf(model.rowOf(target, inference)), scene.theme.after, data);
  }

  private startOf(row: number): End | null {
    return row < 0 ? null : { lane: this.model.laneOf(row), ns: this.model.spans.start[row]! };
  }

  private endOf(row: number): End | null {
    return row < 0
      ? null
      : { lane: this.model.laneOf(row), ns: this.model.spans.start[row]! + this.model.spans.length[row]! };
  }

  private arrow(scene: Scene, source: End | null, target: End | null, colour: string, data: boolean): void {
    const from = source && placeOfLane(scene, this.model, source.lane);
    const to = target && placeOfLane(scene, this.model, target.lane);
    if (!source || !target || !from || !to) return;
    const { context } = this;
    const x0 = xOf(scene, source.ns);
    const x1 = xOf(scene, target.ns);
    const y0 = from.y + from.height / 2;
    const y1 = to.y + to.height / 2;
    const bend = Math.max(Math.abs(x1 - x0) / 2, 18);
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = data ? 1.5 : 1;
    context.setLineDash(data ? [] : [4, 3]);
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x1 - 6, y1 - 3.5);
    context.lineTo(x1 - 6, y1 + 3.5);
    context.fill();
  }

  range(scene: Scene, [from, to]: [number, number]): void {
    const { context } = this;
    const left = xOf(scene, from);
    const wide = xOf(scene, to) - left;
    context.globalAlpha = 0.16;
    context.fillStyle = scene.theme.before;
    context.fillRect(left, RULER, wide, scene.height);
    context.globalAlpha = 1;
    context.fillRect(left, RULER, 1, scene.height);
    context.fillRect(left + wide, RULER, 1, scene.height);
  }
}
