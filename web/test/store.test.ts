import assert from "node:assert/strict";
import { test } from "node:test";
import { powers } from "../src/charts";
import type { StoreAxis, StoreMetric } from "../src/contract";
import { condition, isBetter, quoted } from "../src/store/cells";
import { front, type Dot } from "../src/store/fronts";
import { ratio, stepOf } from "../src/store/pivot";

const metric = (better: string): StoreMetric => ({ name: "m", unit: "1", better, sql: "m", ranged: false });
const dot = (x: number, y: number): Dot => ({ row: 0, x, y, group: 0 });

test("a front has the dots that no other beats on both", () => {
  const all = [dot(1, 9), dot(2, 5), dot(3, 6), dot(4, 5), dot(5, 1)];
  assert.deepEqual(front(all, metric("less"), metric("less")), [dot(1, 9), dot(2, 5), dot(5, 1)]);
  assert.deepEqual(front(all, metric("more"), metric("less")), [dot(5, 1)]);
  assert.deepEqual(front(all, metric("less"), metric("more")), [dot(1, 9)]);
});

test("a filter is a condition whose words cannot leave their quotes", () => {
  const axis: StoreAxis = { name: "target", sql: "target", words: ["a", "b'; DROP"], number: false };
  assert.equal(condition(axis, new Set()), "");
  assert.equal(condition(axis, new Set([1, 0])), "target IN ('a', 'b''; DROP')");
  assert.equal(condition(axis, new Set([-1])), "target IS NULL");
  assert.equal(condition(axis, new Set([0, -1])), "(target IN ('a') OR target IS NULL)");
  assert.equal(quoted("it's"), "'it''s'");
});

test("unknown is never better, and a ratio is how many times worse", () => {
  assert.ok(!isBetter(metric("less"), NaN, 1));
  assert.ok(isBetter(metric("less"), 1, NaN));
  assert.ok(isBetter(metric("more"), 2, 1));
  assert.equal(ratio("less", 4, 2), 2);
  assert.equal(ratio("more", 2, 4), 2);
  assert.equal(ratio("less", 0, 0), 1);
  assert.deepEqual([1, 1.4, 2, 31].map(stepOf), [0, 1, 2, 6]);
});

test("ticks of powers fit their room", () => {
  assert.deepEqual(powers(8, 120, "ns", 9), [10, 20, 50, 100]);
  assert.deepEqual(powers(8, 1200, "ns", 4), [10, 100, 1000]);
  assert.deepEqual(powers(1, 1e8, "ns", 5), [1, 100, 1e4, 1e6, 1e8]);
  assert.deepEqual(powers(900, 5000, "bytes", 9), [1024, 4096]);
});
