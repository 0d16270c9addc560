// Spans by lane and time in typed arrays, and the levels of detail above them.

import type { PageData } from "./contract";
import type { Table } from "./columns";

export const OP = 1,
  WAIT = 2,
  BARRIER = 3,
  TRANSFER = 4,
  HOST = 5,
  PHASE = 6;
export const KINDS = ["", "op", "wait", "barrier", "transfer", "host", "phase"] as const;
const FACTOR = 4; // between the windows of two levels
const LEAST = 512; // rows of a lane below which another level saves nothing

/** Rows of the page, or of the whole run when a server has it. */
export type Spans = {
  rows: number;
  laneFirst: Float64Array; // row of the first span of every lane, and one more
  start: Float64Array;
  length: Float64Array;
  kind: Uint8Array;
  op: Int32Array;
  name: Int32Array;
  inference: Int32Array;
  command: Int32Array;
  waitsOn: Int32Array;
  count: Int32Array | null; // spans of the run in the row; null: one each
  ucycles: Float64Array | null;
  pcycles: Float64Array | null;
};

/** Spans of one lane put together in windows of time: parts in order, each known by its longest span. */
export type Level = { window: number; start: Float64Array; end: Float64Array; filled: Float32Array; row: Int32Array };

export function emptySpans(rows: number, laneFirst: Float64Array, thinned: boolean): Spans {
  return {
    rows,
    laneFirst,
    start: new Float64Array(rows),
    length: new Float64Array(rows),
    kind: new Uint8Array(rows),
    op: new Int32Array(rows),
    name: new Int32Array(rows),
    inference: new Int32Array(rows),
    command: new Int32Array(rows).fill(-1),
    waitsOn: new Int32Array(rows).fill(-1),
    count: thinned ? new Int32Array(rows) : null,
    ucycles: null,
    pcycles: null,
  };
}

export function pageSpans(data: PageData): Spans {
  const first = Float64Array.from([...data.lanes.map((lane) => lane.first), data.spans.rows]);
  return emptySpans(data.spans.rows, first, data.spans.window_ns > 0);
}

/** Put a piece into its place. */
export function fill(spans: Spans, table: Table, at: number): void {
  const into = {
    start: spans.start,
    length: spans.length,
    kind: spans.kind,
    op: spans.op,
    name: spans.name,
    inference: spans.inference,
    command: spans.command,
    waits_on: spans.waitsOn,
  };
  for (const [name, target] of Object.entries(into)) {
    const column = table.columns.get(name);
    if (column) target.set(column as ArrayLike<number>, at);
  }
  const count = table.columns.get("count");
  if (count && spans.count) spans.count.set(count, at);
  for (const name of ["ucycles", "pcycles"] as const) {
    const column = table.columns.get(name);
    if (column) (spans[name] ??= new Float64Array(spans.rows).fill(-1)).set(column, at);
  }
}

/** All levels of one lane, finest first; none where the lane has few rows. */
export function levelsOf(spans: Spans, lane: number): Level[] {
  const first = spans.laneFirst[lane]!;
  const last = spans.laneFirst[lane + 1]!;
  if (last - first <= LEAST) return [];
  const whole = spans.start[last - 1]! + spans.length[last - 1]! - spans.start[first]!;
  const levels: Level[] = [];
  let window = 2 ** Math.ceil(Math.log2(Math.max(whole / (last - first), 1)));
  let below: Level | null = null;
  for (;;) {
    const level: Level = below ? merged(below, window) : firstLevel(spans, first, last, window);
    levels.push(level);
    if (level.start.length <= LEAST) return levels;
    below = level;
    window *= FACTOR;
  }
}

function firstLevel(spans: Spans, first: number, last: number, window: number): Level {
  const rows = last - first;
  const plain: Level = {
    window: 0,
    start: spans.start.subarray(first, last),
    end: new Float64Array(rows),
    filled: new Float32Array(rows),
    row: new Int32Array(rows),
  };
  for (let i = 0; i < rows; i++) {
    plain.end[i] = spans.start[first + i]! + spans.length[first + i]!;
    plain.filled[i] = spans.length[first + i]!;
    plain.row[i] = first + i;
  }
  return merged(plain, window, spans.length);
}

/** Neighbours that start in the same window become one. */
export function merged(below: Level, window: number, lengths?: Float64Array): Level {
  const rows = below.start.length;
  const start = new Float64Array(rows),
    end = new Float64Array(rows),
    filled = new Float32Array(rows),
    row = new Int32Array(rows);
  let parts = -1;
  let bucket = NaN;
  let longest = 0;
  for (let i = 0; i < rows; i++) {
    const here = Math.floor(below.start[i]! / window);
    const length = lengths ? lengths[below.row[i]!]! : below.filled[i]!;
    if (here !== bucket) {
      bucket = here;
      parts++;
      start[parts] = below.start[i]!;
      end[parts] = below.end[i]!;
      filled[parts] = below.filled[i]!;
      row[parts] = below.row[i]!;
      longest = length;
      continue;
    }
    if (below.end[i]! > end[parts]!) end[parts] = below.end[i]!;
    filled[parts]! += below.filled[i]!;
    if (length > longest) {
      longest = length;
      row[parts] = below.row[i]!;
    }
  }
  const used = parts + 1;
  return {
    window,
    start: start.slice(0, used),
    end: end.slice(0, used),
    filled: filled.slice(0, used),
    row: row.slice(0, used),
  };
}

/** First position in [low, high) whose value is greater than `value`; the values rise. */
export function after(values: ArrayLike<number>, value: number, low = 0, high = values.length): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The span of a lane at a moment, or the nearest within `reach` ns. */
export function spanAt(spans: Spans, lane: number, ns: number, reach: number): number {
  return spanWithin(spans, spans.laneFirst[lane]!, spans.laneFirst[lane + 1]!, ns, reach);
}

/** The same among the rows from `first` up to `last`, all of one lane. */
export function spanWithin(spans: Spans, first: number, last: number, ns: number, reach: number): number {
  const next = after(spans.start, ns, first, last);
  let best = -1;
  let distance = reach;
  for (const row of [next - 1, next]) {
    if (row < first || row >= last) continue;
    const start = spans.start[row]!;
    const end = start + spans.length[row]!;
    const away = ns < start ? start - ns : ns > end ? ns - end : 0;
    if (away <= distance) {
      best = row;
      distance = away;
    }
  }
  return best;
}
