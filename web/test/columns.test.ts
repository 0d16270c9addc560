import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { inflate, readTable } from "../src/columns";

// Typed by hand from docs/formats/page.md: three rows; `time` in steps, `kind` constant, `value` a float.
const HEAD = [0x4f, 0x53, 0x43, 0x31, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
const name = (text: string): number[] => [...text].map((c) => c.charCodeAt(0)).concat(Array(16 - text.length).fill(0));
const TIME = [...name("time"), 1, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0]; // steps, two bytes, base 10
const KIND = [...name("kind"), 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]; // plain, no bytes, base -1
const VALUE = [...name("value"), 2, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const planes = (rows: number[][]): number[] => rows[0]!.flatMap((_, plane) => rows.map((row) => row[plane]!));
const one = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
const half = [0, 0, 0, 0, 0, 0, 0xe0, 0x3f];
const GOLDEN = new Uint8Array([
  ...HEAD,
  ...TIME,
  ...KIND,
  ...VALUE,
  0,
  0x2c,
  0,
  0,
  0x01,
  0,
  ...planes([one, half, one]),
]);

test("a table typed by hand from the format page is read", () => {
  const { rows, columns } = readTable(GOLDEN);
  assert.equal(rows, 3);
  assert.deepEqual([...columns.get("time")!], [10, 10 + 10 + 300, 10 + 10 + 300 + 10]);
  assert.deepEqual([...columns.get("kind")!], [-1, -1, -1]);
  assert.deepEqual([...columns.get("value")!], [1, 0.5, 1]);
});

test("a deflated table is inflated first", async () => {
  const inflated = await inflate(new Uint8Array(deflateSync(GOLDEN)));
  assert.deepEqual(inflated, GOLDEN);
});

test("a table that is cut short or of another kind is refused", () => {
  assert.throws(() => readTable(GOLDEN.slice(0, GOLDEN.length - 1)), /cut short/);
  assert.throws(() => readTable(new Uint8Array(40)), /not a table/);
});
