import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { CompareData, PageData, StoreData } from "../src/contract";

const schema = JSON.parse(readFileSync("contract.schema.json", "utf8")) as { $defs: Record<string, object> };
const ajv = new Ajv2020({ strict: false });

const validator = (name: string) => ajv.compile({ $ref: `#/$defs/${name}`, $defs: schema.$defs });

// the compiler holds these to the types, the validator to the schema: they must agree
const latency = { value_ns: 5, low_ns: null, high_ns: null, provenance: "simulated" };
const summary: PageData["summary"] = {
  latency,
  throughput_per_s: null,
  batch: 1,
  lanes: [],
  memory: [],
  breakdown: [],
  occupancy: [],
  op_types: [],
  ops: [],
  layers: [],
  blocks: [],
  routes: [],
  waits: [],
  producers: [],
  balance: [],
  placement: [],
  histogram: [],
  host: [],
  samples_ns: [],
  language_model: null,
  energy: null,
};
const info: PageData["info"] = {
  command: [],
  created: "",
  model: "",
  sha256: null,
  target: "",
  provenance: "simulated",
  network: "",
  devices: 1,
  cores: 1,
  batch: 1,
  clocks_hz: {},
  inferences: [0],
  options: { a: 1 },
  limits: {},
  caveats: [],
  basis: "",
  classified: [],
  classified_rows: {},
  words: null,
};
const producer = { name: "opscope", version: "1" };
const page: PageData = {
  schema: "opscope.page/1",
  producer,
  info,
  summary,
  findings: null,
  ops: [],
  lanes: [{ device: 0, core: 0, name: "HMX", thread: -1, first: 0, rows: 0 }],
  counters: [],
  names: [],
  spans: { spans: 0, rows: 0, window_ns: 0, piece_rows: 1, pieces: 0, end_ns: 0, served: null },
  commands: null,
  path: null,
  graph: { sources: [], targets: [] },
  resources: null,
  notes: [],
};
const compare: CompareData = {
  schema: "opscope.compare-page/1",
  producer,
  runs: [{ label: "a", info, summary }],
  compared: { verdict: "pass", checks: [], change_ns: null, parts: [], ops: [], families: [], notes: [] },
};

const store: StoreData = {
  schema: "opscope.store-page/1",
  producer,
  store: "fleet.store",
  where: "",
  served: false,
  cells: 1,
  rows: 1,
  axes: [{ name: "model", sql: "model", words: ["a"], number: false }],
  metrics: [{ name: "latency", unit: "ns", better: "less", sql: "latency_ns", ranged: true }],
  reasons: [],
  runs: [],
  changes: [
    {
      metric: 0,
      row: 0,
      before: 1,
      after: 2,
      low: null,
      high: null,
      note: "",
      cause: null,
      ops: [{ name: "a", ns: 1 }],
    },
  ],
  notes: [],
};

test("what the types accept, the schema accepts", () => {
  for (const [name, data] of [
    ["PageData", page],
    ["CompareData", compare],
    ["StoreData", store],
  ] as const) {
    const valid = validator(name);
    assert.ok(valid(data), JSON.stringify(valid.errors));
  }
});

test("the schema refuses what the types refuse", () => {
  const valid = validator("PageData");
  assert.ok(!valid({ ...page, spans: { ...page.spans, rows: "many" } }));
  assert.ok(!valid({ ...page, schema: "opscope.page/2" }));
  const { notes: _, ...less } = page;
  assert.ok(!valid(less));
  assert.ok(!valid({ ...page, more: 1 }));
});
