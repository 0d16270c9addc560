// Which cells no other beats: Pareto fronts, one for each group, so that figures of two kinds are never weighed.

import type { StoreMetric } from "../contract";
import type { Cells } from "./cells";

export type Dot = { row: number; x: number; y: number; group: number };

/** Cells that have both figures. */
export function dots(cells: Cells, x: number, y: number, groupOf: ArrayLike<number>): Dot[] {
  const [xs, ys] = [cells.metric(x), cells.metric(y)];
  const found: Dot[] = [];
  cells.rows.forEach((row, i) => {
    const [left, up] = [xs[row]!, ys[row]!];
    if (left > 0 && up > 0) found.push({ row, x: left, y: up, group: groupOf[i]! }); // 0 has no place among powers
  });
  return found;
}

/** The front of some dots, from the best on one axis to the best on the other. */
export function front(all: Dot[], x: StoreMetric, y: StoreMetric): Dot[] {
  const sign = (metric: StoreMetric): number => (metric.better === "more" ? -1 : 1);
  const [sx, sy] = [sign(x), sign(y)];
  const sorted = [...all].sort((a, b) => sx * (a.x - b.x) || sy * (a.y - b.y));
  const found: Dot[] = [];
  let least = Infinity;
  for (const dot of sorted)
    if (sy * dot.y < least) {
      least = sy * dot.y;
      found.push(dot);
    }
  return found;
}
