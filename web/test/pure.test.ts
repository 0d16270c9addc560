import assert from "node:assert/strict";
import { test } from "node:test";
import { peakOf, heldAt, type Block } from "../src/arena";
import type {
  ComparedRun,
  LaneTotal,
  LayerResources,
  MemoryTotal,
  OpTotal,
  PageData,
  Resources,
} from "../src/contract";
import { changeText, differences, judged, ratioOf, ratioText } from "../src/compare";
import { means, utilization } from "../src/engines";
import * as format from "../src/format";
import { grouped } from "../src/model";
import { network } from "../src/network";
import { addressStep } from "../src/arena_map";
import { unique } from "../src/operators";
import { reconcile } from "../src/layers";
import { bindings, fullness } from "../src/resources";
import { relative } from "../src/suggestions";
import { prose } from "../src/text";
import { rollup } from "../src/operators";
import { outerTraffic } from "../src/outer";
import { range } from "../src/overview";
import { colourNumbers } from "../src/palette";
import { comparing } from "../src/table";
import { clean, shorten, tailOf } from "../src/text";
import { layerOf } from "../src/timeline/colours";
import { brokenLaws } from "../src/notices";
import { howMany, reasons, timeOrLeast } from "../src/unknown";
import { layOut, rowAt } from "../src/timeline/rows";
import { View } from "../src/timeline/view";

test("numbers read as they do on the terminal; unknown is a dash", () => {
  assert.equal(format.time(3982344), "3.982 ms");
  assert.equal(format.time(0), "0 ns");
  assert.equal(format.time(null), "—");
  assert.equal(format.bytes(3590234), "3.424 MB");
  assert.equal(format.percent(0.0881868), "8.8%");
  assert.equal(format.count(1234567.4), "1,234,567");
  assert.equal(format.short(2415919104), "2.42 G");
  assert.equal(format.moment(1_500_000, 100_000), "1.5 ms");
  assert.equal(format.niceStep(1000, 8), 200);
});

test("text that hides or reorders is made visible, and long text is cut in the middle", () => {
  assert.equal(clean("a\u202eb\u0007c"), "a\ufffdb\u2407c");
  assert.equal(clean("ok 😀 שלום"), "ok 😀 שלום");
  assert.equal(shorten("x".repeat(100_000), 21).length, 21);
  assert.equal(shorten("abc", 3), "abc");
  assert.ok(!/[\ud800-\udfff]/.test(shorten("😀".repeat(50), 21).replace(/[\ud800-\udbff][\udc00-\udfff]/g, "")));
  assert.equal(tailOf("/encoder/layer.0/output/dense/MatMul", 24), "…/output/dense/MatMul");
});

test("a view never leaves the run and zooms around the pointer", () => {
  const view = new View(1000);
  view.zoom(4, 250);
  assert.ok(Math.abs((250 - view.from) / view.span - 0.25) < 1e-9);
  assert.ok(Math.abs(view.span - 250) < 1e-9);
  view.pan(-1e9);
  assert.ok(view.from >= -0.1 * 1000 && view.from <= 0);
  view.zoom(1e-9, 0);
  assert.ok(view.span <= 1100.0001);
  view.zoom(1e12, 500);
  assert.ok(view.span >= 20 && view.from >= 0);
});

test("positions are grouped by key, those without one left out", () => {
  const { first, order } = grouped([2, 0, -1, 2, 1]);
  assert.deepEqual([...first], [0, 1, 2, 4]);
  assert.deepEqual([...order], [1, 4, 0, 3]);
});

test("unknown sorts last whichever way", () => {
  const rows = [{ v: 1 }, { v: null }, { v: 3 }];
  assert.deepEqual(
    [...rows].sort(comparing((row) => row.v, true)).map((row) => row.v),
    [3, 1, null],
  );
  assert.deepEqual(
    [...rows].sort(comparing((row) => row.v, false)).map((row) => row.v),
    [1, 3, null],
  );
});

test("the largest get a colour of their own", () => {
  assert.deepEqual(
    [
      ...colourNumbers(
        new Map([
          ["a", 1],
          ["b", 5],
          ["c", 3],
        ]),
        2,
      ),
    ],
    [
      ["b", 0],
      ["c", 1],
      ["a", 2],
    ],
  );
});

test("a layer is a name up to its first number", () => {
  assert.equal(layerOf("/encoder/layer.10/output/dense/MatMul"), "/encoder/layer.10");
  assert.equal(layerOf("/pooler/dense/Gemm"), "/pooler/dense");
});

const op = (name: string, part: Partial<OpTotal>): OpTotal => ({
  name,
  type: "T",
  wall_ns: 1,
  busy_ns: 1,
  wait_ns: 1,
  share: 0.1,
  commands: 1,
  out_bytes: 1,
  moved_bytes: 1,
  macs: 1,
  engine: "E",
  placed: "local",
  energy_j: null,
  op: null,
  does: "compute",
  on_cpu: false,
  carries: "",
  reason: "",
  kernel: "",
  shape: "",
  covers: [],
  vector_bytes: null,
  threads: null,
  engine_threads: null,
  ...part,
});

test("a rollup adds what is known and does not invent the rest", () => {
  const [first, second] = rollup(
    [op("a", { busy_ns: 5 }), op("b", { busy_ns: 7, macs: null }), op("c", { engine: "F" })],
    (part) => part.engine,
  );
  assert.deepEqual([first!.name, first!.busy_ns, first!.macs, first!.wall_ns], ["E", 12, null, null]);
  assert.equal(second!.name, "F");
});

test("the peak is where most bytes are held; a block that ends makes room at once", () => {
  const block = (from: number, to: number, bytes: number): Block => ({ command: 0, from, to, address: 0, bytes });
  const blocks = [block(0, 10, 5), block(5, 20, 7), block(10, 30, 6), block(10, 12, 1)];
  assert.deepEqual(peakOf(blocks), { moment: 10, bytes: 14 });
  assert.deepEqual(
    heldAt(blocks, 10).map((held) => held.bytes),
    [7, 6, 1],
  );
});

function page(ops: string[], edges: [number, number][]): PageData {
  const lanes = [
    ["HMX", 0],
    ["HMX DMA read", 0],
    ["HMX DMA read 2", 0],
    ["Execution", -1],
  ].map(([name, core]) => ({ device: 0, core: core as number, name: name as string, thread: -1, first: 0, rows: 1 }));
  return {
    ops: ops.map((name) => ({ name, type: "T", kind: "", location: "" })),
    graph: { sources: edges.map(([a]) => a), targets: edges.map(([, b]) => b) },
    summary: { ops: ops.map((name) => op(name, { busy_ns: 10 })) },
    lanes,
    counters: [{ device: 0, core: 0, name: "in use", unit: "bytes", first: 0, rows: 1 }],
    info: { devices: 1 },
    spans: { window_ns: 0 },
  } as unknown as PageData;
}

test("a large network is closed into layers, and an opened layer shows its ops", () => {
  const ops = Array.from({ length: 400 }, (_, i) => `/layer.${Math.floor(i / 40)}/op${i % 40}/Add`);
  const data = page(
    ops,
    ops.slice(1).map((_, i) => [i, i + 1]),
  );
  const closed = network(data, new Set());
  assert.equal(closed.nodes.length, 10);
  assert.equal(closed.edges.length, 9);
  assert.equal(
    closed.nodes.reduce((sum, node) => sum + (node.ns ?? 0), 0),
    4000,
  );
  assert.equal(network(data, new Set(["/layer.3"])).nodes.length, 9 + 40);
  assert.equal(
    network(
      page(ops.slice(0, 5), [
        [0, 1],
        [1, 2],
      ]),
      new Set(),
    ).hidden,
    2,
  );
});

test("rows go from the device to its cores, transfers below engines, overflow beside its lane", () => {
  const layout = layOut(page([], []), new Set());
  assert.deepEqual(
    layout.rows.map((row) => (row.type === "group" ? row.label : row.label || "+")),
    ["Device 0", "whole", "Core 0", "HMX", "read · HMX", "+", "in use"],
  );
  layout.rows.forEach((row, i) => assert.equal(rowAt(layout, row.top + row.height / 2), i));
  assert.equal(rowAt(layout, layout.height + 1), -1);
  assert.equal(layOut(page([], []), new Set(["0/0"])).rows.length, 3);
});

test("barriers of the threads of an engine stand below one name, each saying its thread", () => {
  const barrier = (thread: number) => ({ device: 0, core: 0, name: "HVX Barrier", thread, first: 0, rows: 0 });
  const data = page([], []);
  const { rows } = layOut({ ...data, lanes: [...data.lanes, barrier(0), barrier(1)] }, new Set());
  const found = rows.flatMap((row) => (row.type === "lane" && /Barrier/.test(row.title) ? [row] : []));
  assert.deepEqual(
    found.map(({ label, title }) => [label, title]),
    [
      ["HVX Barrier", "HVX Barrier, thread 0"],
      ["", "HVX Barrier, thread 1"],
    ],
  );
  assert.ok(found[1]!.height < found[0]!.height);
});

const memory = (name: string, core: number | null, read_bytes: number | null): MemoryTotal => ({
  name,
  device: 0,
  core,
  peak_bytes: null,
  mean_bytes: null,
  capacity_bytes: null,
  read_bytes,
  write_bytes: read_bytes,
});

test("outer traffic is of one memory, the outermost, never of local memory beside it", () => {
  assert.deepEqual(outerTraffic([memory("VTCM", 0, 5), memory("DDR", null, 70), memory("DDR", null, 3)]), {
    name: "DDR",
    read_bytes: 73,
    write_bytes: 73,
  });
  assert.equal(outerTraffic([memory("VTCM", 0, null)]), null);
});

test("an op that a run has without a time leaves the change unknown; one that it has not costs it nothing", () => {
  const run = (ops: OpTotal[]): ComparedRun => ({ label: "", info: {}, summary: { ops } }) as unknown as ComparedRun;
  const found = differences([
    run([op("a", { busy_ns: null })]),
    run([op("a", { busy_ns: 9 }), op("b", { busy_ns: 2 })]),
  ]);
  assert.deepEqual(
    found.map(({ name, how, change }) => [name, how, change]),
    [
      ["b", "added", 2],
      ["a", "", null],
    ],
  );
});

test("what reads as no change is neither better nor worse, nor is a number of ops", () => {
  assert.equal(judged({ less: true }, 100_000, 100_001), "");
  assert.equal(judged({ less: true }, 100, 90), "better");
  assert.equal(judged({ less: false }, 100, 90), "worse");
  assert.equal(judged({ less: null }, 100, 90), "");
});

test("a range that reads the same at both ends is none", () => {
  assert.equal(range(3_750_100, 3_750_200, format.time), "");
  assert.equal(range(1e6, 2e6, format.time), ", 1 ms – 2 ms");
  assert.equal(range(null, 2e6, format.time), "");
});

test("differences are of the last run against the first; what one lacks is unknown in it", () => {
  const run = (ops: OpTotal[]): ComparedRun => ({ label: "", info: {}, summary: { ops } }) as unknown as ComparedRun;
  const found = differences([
    run([op("a", { busy_ns: 10 }), op("b", { busy_ns: 4 })]),
    run([op("a", { busy_ns: 13 }), op("c", { busy_ns: 9 })]),
  ]);
  assert.deepEqual(
    found.map(({ name, values, change }) => [name, values, change]),
    [
      ["c", [null, 9], 9],
      ["b", [4, null], -4],
      ["a", [10, 13], 3],
    ],
  );
  assert.equal(changeText(100, 105), "+5.0%");
  assert.equal(changeText(100, null), "—");
});

test("a ratio is of the last run to the first, and none of a time that is nothing or not known", () => {
  assert.equal(ratioOf([100, 250]), 2.5);
  assert.equal(ratioOf([0, 250]), null);
  assert.equal(ratioOf([100, null]), null);
  assert.deepEqual([2.5, 1, 0.004, 1234].map(ratioText), ["×2.50", "×1.00", "×0.004", "×1,234"]);
});

test("the mean of lanes one of which does not tell its waits tells none; its waits are in idle", () => {
  const lane = (part: Partial<LaneTotal>): LaneTotal => ({
    ...{ device: 0, core: 0, name: "E", busy_ns: 40, wait_ns: 20, idle_ns: 40, barrier_ns: 4, engine: "E" },
    ...part,
  });
  const told = means([lane({}), lane({ core: 1, wait_ns: 40, idle_ns: 20 })])[0]!.lane;
  assert.deepEqual([told.busy_ns, told.wait_ns, told.idle_ns, told.barrier_ns], [40, 30, 30, 4]);
  const untold = means([lane({}), lane({ core: 1, wait_ns: null, idle_ns: 60, barrier_ns: null })])[0]!.lane;
  assert.deepEqual([untold.busy_ns, untold.wait_ns, untold.idle_ns, untold.barrier_ns], [40, null, 50, null]);
  assert.equal(utilization(lane({ wait_ns: null, idle_ns: 60 })), 0.4);
});

test("what is counted agrees with its number", () => {
  assert.deepEqual(
    [format.counted(0, "op"), format.counted(1, "op"), format.counted(1200, "op")],
    ["0 ops", "1 op", "1,200 ops"],
  );
});

test("sentences have the units of the page; names that end so are left alone", () => {
  assert.equal(prose("takes 73.4 us, not 9 us; bonus 3", 100), "takes 73.4 µs, not 9 µs; bonus 3");
  assert.equal(prose("/layer.7 user", 100), "/layer.7 user");
});

test("items that share a name are told apart by nothing, and left out", () => {
  const found = unique([{ n: "a" }, { n: "b" }, { n: "a" }, { n: "a" }], (item) => item.n);
  assert.deepEqual([...found.keys()], ["b"]);
});

test("addresses are marked at powers of two, about as many as asked for", () => {
  for (const top of [1, 4096, 687 * 1024, 8 * 1024 ** 2]) {
    const step = addressStep(top, 5);
    assert.equal(Math.log2(step) % 1, 0);
    assert.ok(top / step <= 5 && (top / step > 2 || step === 1), String(step));
  }
});

const layer: LayerResources = {
  op: 0,
  dtype: "i8",
  sources: [],
  trips: 1,
  engine: "cpu",
  accelerated: false,
  reason: "",
  cycles: 100,
  latency_s: 1e-6,
  energy_j: null,
  power_w: null,
  bound: "cpu",
  costs: [],
  macs: 10,
  element_ops: 0,
  work_known: true,
  parameter_bytes: 40,
  shared_bytes: 0,
  live_bytes: 0,
  out_bytes: 0,
  moved_bytes: 0,
  constant_shapes: [],
};

test("time by binding resource leaves out layers without a time, and its shares are of what is known", () => {
  const found = bindings([
    layer,
    { ...layer, bound: "RAM", latency_s: 3e-6 },
    { ...layer, bound: "", latency_s: null },
    { ...layer, bound: "", latency_s: 0 },
  ]);
  assert.deepEqual(
    found.map((part) => [part.cause, part.share, part.layers]),
    [
      ["RAM", 0.75, 1],
      ["cpu", 0.25, 1],
    ],
  );
});

test("time by binding resource counts parts that come on top, and none that hide", () => {
  const costs = [
    { resource: "cpu", cycles: 60, binds: true },
    { resource: "RAM", cycles: 50, binds: false },
    { resource: "launch", cycles: 20, binds: true },
  ];
  const found = bindings([{ ...layer, costs, latency_s: 4e-6 }]);
  assert.deepEqual(
    found.map((part) => [part.cause, format.percent(part.share)]),
    [
      ["cpu", "75.0%"],
      ["launch", "25.0%"],
    ],
  );
});

test("parameters of layers, less what they share, plus what was converted, are those of the model", () => {
  const layers = [layer, { ...layer, shared_bytes: 40 }];
  const totals = { parameter_bytes: 30 } as Resources["totals"];
  assert.deepEqual(reconcile({ layers, totals } as Resources), { column: 80, shared: 40, converted: -10, total: 30 });
});

test("a change says how much less or more, and which of both is better", () => {
  assert.deepEqual(relative(200, 100), ["−50.0%", "better"]);
  assert.deepEqual(relative(100, 125), ["+25.0%", "worse"]);
  assert.deepEqual(relative(100, 100.01), ["±0%", ""]);
  assert.deepEqual(relative(null, 1), ["", ""]);
  assert.deepEqual(relative(1, null), ["", ""]);
});

test("a memory without room is not full: it is not known how full it is", () => {
  const use = { name: "RAM", holds: "", required_bytes: 10, available_bytes: 0 };
  assert.equal(fullness(use), null);
  assert.equal(fullness({ ...use, available_bytes: 40 }), 0.25);
});

test("ops without a known cost are counted, and named by reason; a time without a value is at least its low end", () => {
  const op = (name: string, unknown: string) => ({
    name,
    type: "T",
    kind: "",
    location: "",
    unknown,
    module: "",
    line: "",
  });
  const data = { ops: [op("a", ""), op("b", "no shape"), op("c", "custom"), op("d", "no shape")] };
  assert.equal(howMany(data), "3 of 4 ops have no known cost");
  assert.deepEqual(reasons(data), ["b (T), d (T): no shape", "c (T): custom"]);
  const many = { ops: [..."abcdefg"].map((name) => op(name, "no shape")) };
  assert.equal(reasons(many)[1], "and 2 more");
  assert.deepEqual(
    [timeOrLeast(null, 1000), timeOrLeast(2000, 1000), timeOrLeast(null, null)],
    ["at least 1 µs", "2 µs", "—"],
  );
});

test("a broken law is a line with both numbers; one that holds or is not known is none", () => {
  const law = (name: string, holds: boolean | null) => ({ name, holds, detail: "216.8 and 137.0 GB/s" });
  const page = (checks: ReturnType<typeof law>[]) => ({ findings: { checks } }) as unknown as PageData;
  assert.deepEqual(brokenLaws(page([law("a", true), law("b", null)])), []);
  assert.deepEqual(brokenLaws({ findings: null } as unknown as PageData), []);
  assert.deepEqual(brokenLaws(page([law("DDR ≤ peak", false), law("b", true)])), ["DDR ≤ peak: 216.8 and 137.0 GB/s"]);
  assert.deepEqual(brokenLaws(page(Array.from({ length: 9 }, () => law("x", false)))).at(-1), "and 1 more");
});
