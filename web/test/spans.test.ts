import assert from "node:assert/strict";
import { test } from "node:test";
import { after, emptySpans, levelsOf, merged, spanAt, type Level, type Spans } from "../src/spans";

function random(seed: number): () => number {
  return () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
}

function lane(rows: number, seed = 1): Spans {
  const next = random(seed);
  const spans = emptySpans(rows, Float64Array.from([0, rows]), false);
  let now = 0;
  for (let row = 0; row < rows; row++) {
    now += Math.floor(next() * 50);
    spans.start[row] = now;
    spans.length[row] = 1 + Math.floor(next() ** 4 * 5000);
    now += spans.length[row]!;
  }
  return spans;
}

/** The obvious way: one window after the other. */
function slow(spans: Spans, window: number): { start: number; end: number; filled: number; row: number }[] {
  const parts = new Map<number, { start: number; end: number; filled: number; row: number; longest: number }>();
  for (let row = 0; row < spans.rows; row++) {
    const [start, length] = [spans.start[row]!, spans.length[row]!];
    const key = Math.floor(start / window);
    const part = parts.get(key);
    if (!part) parts.set(key, { start, end: start + length, filled: length, row, longest: length });
    else {
      part.end = Math.max(part.end, start + length);
      part.filled += length;
      if (length > part.longest) [part.longest, part.row] = [length, row];
    }
  }
  return [...parts.values()].map(({ start, end, filled, row }) => ({ start, end, filled, row }));
}

test("the first level is what one window after the other gives", () => {
  const spans = lane(4000);
  const level = levelsOf(spans, 0)[0]!;
  const wanted = slow(spans, level.window);
  assert.equal(level.start.length, wanted.length);
  wanted.forEach((part, i) =>
    assert.deepEqual({ start: level.start[i], end: level.end[i], filled: level.filled[i], row: level.row[i] }, part),
  );
});

test("every level keeps all time, covers the same stretch and is coarser than the one below", () => {
  for (let seed = 1; seed < 6; seed++) {
    const spans = lane(9000, seed);
    const whole = spans.length.reduce((sum, length) => sum + length, 0);
    let rows = spans.rows;
    for (const level of levelsOf(spans, 0)) {
      assert.ok(level.start.length <= rows);
      rows = level.start.length;
      assert.equal(
        level.filled.reduce((sum, ns) => sum + ns, 0),
        whole,
      );
      assert.equal(level.start[0], spans.start[0]);
      assert.equal(Math.max(...level.end), spans.start[8999]! + spans.length[8999]!);
      level.start.forEach((start, i) => i && assert.ok(start > level.start[i - 1]!));
    }
    assert.ok(rows <= 512);
  }
});

test("a short lane has no levels", () => assert.deepEqual(levelsOf(lane(100), 0), []));

test("neighbours of one window become one, known by its longest span", () => {
  const level: Level = {
    window: 0,
    start: Float64Array.of(0, 4, 9, 21),
    end: Float64Array.of(3, 9, 10, 30),
    filled: Float32Array.of(3, 5, 1, 9),
    row: Int32Array.of(0, 1, 2, 3),
  };
  const found = merged(level, 10);
  assert.deepEqual([...found.start], [0, 21]);
  assert.deepEqual([...found.end], [10, 30]);
  assert.deepEqual([...found.filled], [9, 9]);
  assert.deepEqual([...found.row], [1, 3]);
});

test("a span is found at its moment, beside it within reach, and nowhere else", () => {
  const spans = emptySpans(2, Float64Array.of(0, 2), false);
  spans.start.set([100, 200]);
  spans.length.set([50, 10]);
  assert.equal(spanAt(spans, 0, 120, 0), 0);
  assert.equal(spanAt(spans, 0, 155, 10), 0);
  assert.equal(spanAt(spans, 0, 195, 10), 1);
  assert.equal(spanAt(spans, 0, 175, 10), -1);
});

test("after() is the first position behind a value", () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((value) => after([1, 2, 2, 4], value)),
    [0, 1, 3, 3],
  );
});
