// What a picture of the timeline shows, and where on the canvas a moment, a row or a lane is.

import { niceStep } from "../format";
import type { Model } from "../model";
import type { Theme } from "../palette";
import type { Spans } from "../spans";
import type { Colouring } from "./colours";
import { rowAt, type Layout, type Row } from "./rows";

export const RULER = 22; // pixels of the axis at the top

export type Flags = { op: Uint8Array; name: Uint8Array } | null;
export type Pick = { spans: Spans; row: number; lane: number };

export type Scene = {
  layout: Layout;
  from: number;
  to: number;
  scroll: number;
  width: number;
  height: number;
  gutter: number;
  theme: Theme;
  colours: Colouring;
  picked: Pick | null;
  hovered: Pick | null;
  matches: Flags;
  showPath: boolean;
  range: [number, number] | null;
};

export const pixelOf = (scene: Scene): number => (scene.to - scene.from) / (scene.width - scene.gutter);

export const xOf = (scene: Scene, ns: number): number => scene.gutter + (ns - scene.from) / pixelOf(scene);

export const topOf = (scene: Scene, row: Row): number => RULER + row.top - scene.scroll;

export function inView(scene: Scene): Row[] {
  const { rows } = scene.layout;
  const found: Row[] = [];
  const first = Math.max(rowAt(scene.layout, scene.scroll), 0);
  for (let i = first; i < rows.length && topOf(scene, rows[i]!) < scene.height; i++) found.push(rows[i]!);
  return found;
}

/** Where a lane is drawn: its own row, or the head of its closed group. */
export function placeOfLane(scene: Scene, model: Model, lane: number): { y: number; height: number } | null {
  const number = scene.layout.laneRow.get(lane);
  const item = model.data.lanes[lane];
  const row =
    number !== undefined
      ? scene.layout.rows[number]
      : scene.layout.rows.find((row) => row.type === "group" && item && row.key === `${item.device}/${item.core}`);
  return row ? { y: topOf(scene, row), height: row.height } : null;
}

export const stepOf = (scene: Scene): number => niceStep(scene.to - scene.from, (scene.width - scene.gutter) / 110);

/** Place and moment of every tick of the axis. */
export function* ticks(scene: Scene): Generator<[number, number]> {
  const step = stepOf(scene);
  for (let number = Math.ceil(scene.from / step); number * step <= scene.to; number++)
    yield [xOf(scene, number * step), number * step];
}
