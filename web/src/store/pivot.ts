// Cells spread out over two axes: which of them stands where, and what it is compared with.

import { isBetter, UNKNOWN_WORD, wordOf, type Cells } from "./cells";

export const MOST_PLACES = 20_000_000;
export const EMPTY = -1;
export type Best = "row" | "column" | "map";

export type Pivot = {
  rows: { words: number[]; label: string }[];
  columns: { word: number; kind: number; label: string; provenance: string }[];
  at: Int32Array; // cell in each place, rows outermost: the best of several
  several: Uint16Array; // how many cells fall together there
};

/** Null: the axes have more places than can be drawn. */
export function pivot(cells: Cells, down: number[], across: number, metric: number): Pivot | null {
  const { axes } = cells.data;
  const kinds = cells.axisNamed("provenance");
  const downward = down.map((axis) => ({ column: cells.axis(axis), size: axes[axis]!.words.length + 1 }));
  const keyOf = (row: number): number => downward.reduce((key, axis) => key * axis.size + axis.column[row]! + 1, 0);
  const kindCount = kinds < 0 ? 1 : axes[kinds]!.words.length + 1;
  const kindColumn = kinds < 0 ? null : cells.axis(kinds);
  const kindOf = (row: number): number => kindColumn?.[row] ?? UNKNOWN_WORD;
  const acrossColumn = cells.axis(across);
  const headOf = (row: number): number => (acrossColumn[row]! + 1) * kindCount + kindOf(row) + 1;

  const keys = Float64Array.from(cells.rows, keyOf);
  const rowKeys = [...new Set(keys)].sort((a, b) => a - b);
  const heads = new Set<number>();
  const named = new Map<number, number[]>(); // word across → its columns; each column is of one provenance
  for (const row of cells.rows) if (kindOf(row) !== UNKNOWN_WORD) heads.add(headOf(row));
  for (const head of heads) {
    const word = Math.floor(head / kindCount) - 1;
    named.set(word, [...(named.get(word) ?? []), head]);
  }
  for (const row of cells.rows) {
    const word = acrossColumn[row]!;
    if (kindOf(row) === UNKNOWN_WORD && !named.has(word)) {
      named.set(word, [headOf(row)]);
      heads.add(headOf(row));
    }
  }
  const headKeys = [...heads].sort((a, b) => a - b);
  if (rowKeys.length * headKeys.length > MOST_PLACES) return null;
  const rowAt = new Map(rowKeys.map((key, place) => [key, place]));
  const headAt = new Map(headKeys.map((key, place) => [key, place]));
  const at = new Int32Array(rowKeys.length * headKeys.length).fill(EMPTY);
  const several = new Uint16Array(at.length);
  const values = cells.metric(metric);
  const sort = cells.data.metrics[metric]!;
  cells.rows.forEach((row, i) => {
    // cells without figures have no provenance: they stand in every column of their name
    const into = kindOf(row) === UNKNOWN_WORD ? named.get(acrossColumn[row]!)! : [headOf(row)];
    for (const head of into) {
      const place = rowAt.get(keys[i]!)! * headKeys.length + headAt.get(head)!;
      const now = at[place]!;
      several[place] = Math.min(several[place]! + 1, 65535);
      const betterKind = now === EMPTY || (cells.isOk(row) && !cells.isOk(now));
      const sameKind = now !== EMPTY && cells.isOk(row) === cells.isOk(now);
      if (betterKind || (sameKind && isBetter(sort, values[row]!, values[now]!))) at[place] = row;
    }
  });
  return {
    rows: rowKeys.map((key) => {
      const found = unkeyed(cells, down, key);
      return { words: found, label: found.map((word, i) => wordOf(axes[down[i]!]!, word)).join(" · ") };
    }),
    columns: headKeys.map((head) => {
      const word = Math.floor(head / kindCount) - 1;
      const kind = (head % kindCount) - 1;
      return {
        word,
        kind,
        label: wordOf(axes[across]!, word),
        provenance: kinds < 0 || kind < 0 ? "" : wordOf(axes[kinds]!, kind),
      };
    }),
    at,
    several,
  };
}

function unkeyed(cells: Cells, down: number[], key: number): number[] {
  const words: number[] = [];
  let rest = key;
  for (const axis of [...down].reverse()) {
    const size = cells.data.axes[axis]!.words.length + 1;
    words.unshift((rest % size) - 1);
    rest = Math.floor(rest / size);
  }
  return words;
}

/** The best value that each place is held against: of its row, its column, or all; always of one provenance. */
export function bests(cells: Cells, found: Pivot, metric: number, of: Best): Float64Array {
  const width = found.columns.length;
  const values = cells.metric(metric);
  const sort = cells.data.metrics[metric]!;
  const keyOf = (place: number): number => {
    const column = place % width;
    const kind = found.columns[column]!.kind + 1;
    if (of === "column") return column;
    return of === "map" ? kind : Math.floor(place / width) * 64 + kind;
  };
  const best = new Map<number, number>();
  for (let place = 0; place < found.at.length; place++) {
    const row = found.at[place]!;
    if (row === EMPTY) continue;
    const key = keyOf(place);
    const value = values[row]!;
    if (isBetter(sort, value, best.get(key) ?? NaN)) best.set(key, value);
  }
  return Float64Array.from(found.at, (_, place) => best.get(keyOf(place)) ?? NaN);
}

/** How many times worse than the best; 1 is the best. */
export function ratio(better: string, value: number, best: number): number {
  if (value === best) return 1;
  return better === "more" ? best / value : value / best;
}

export const STEPS = [1.05, 1.5, 2, 4, 10, 30]; // up to which a colour goes

export const stepOf = (found: number): number => {
  const at = STEPS.findIndex((most) => found <= most);
  return at < 0 ? STEPS.length : at;
};
