// What the run takes of its target, on the overview: whether it fits, key numbers, what binds it, facts of model and target.

import { layerChart, type LayerLine } from "./charts";
import type { LayerResources, MemoryStack, MemoryUse, Range, Resources, Share } from "./contract";
import { el, nothing, section, type Child } from "./dom";
import { bytes, count, counted, hertz, joules, percent, short, time, UNKNOWN, watts } from "./format";
import type { Card } from "./overview";
import { provenance } from "./provenance";
import { causeClass, shareBar } from "./shares";
import type { App } from "./state";
import { plainTable } from "./table";
import { prose, shorten } from "./text";
import { timeOrLeast } from "./unknown";

const MOST_LISTED = 12;
const NO_RANGE = "no range: the target’s figures are single values";
const FITS: Record<string, [string, string, string]> = {
  OK: ["good", "✓", "Fits"],
  WARNING: ["tight", "!", "Fits, but memory is tight"],
  CRITICAL: ["tight", "!", "Fits with almost no memory to spare"],
  "DOES NOT FIT": ["bad", "✕", "Does not fit"],
};

export const ns = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1e9);

/** Of the RAM: the sum of the known parts. */
export const peakBytes = (memory: MemoryStack): number =>
  memory.arena_bytes + memory.scratch_bytes + (memory.runtime_bytes ?? 0);

/** How full a memory is; null: it has no room at all. */
export const fullness = (use: MemoryUse): number | null =>
  use.available_bytes ? use.required_bytes / use.available_bytes : null;

/** "low – high"; empty where it is a single value. */
function spread(range: Range | null, text: (value: number) => string): string {
  return range === null || range.low === range.high ? "" : `${text(range.low)} – ${text(range.high)}`;
}

/** A word before a count that some layers could not be counted into. */
export const atLeast = (resources: Resources): string =>
  resources.layers.every((layer) => layer.work_known) ? "" : "at least ";

/** The same before the RAM, where tensors have no size. */
const ramLeast = ({ memory }: Pick<Resources, "memory">): string => (memory.unknown_tensors ? "at least " : "");

/** What a layer's time is made of; of runs that do not tell, the resource that takes longest. */
function spent(layer: LayerResources): [string, number][] {
  const parts = layer.costs.filter((part) => part.binds);
  const whole = parts.reduce((sum, part) => sum + part.cycles, 0);
  const seconds = layer.latency_s ?? 0;
  return whole ? parts.map((part) => [part.resource, (seconds * part.cycles) / whole]) : [[layer.bound, seconds]];
}

/** Time by the resources that layers take it of, longest first. */
export function bindings(layers: LayerResources[]): (Share & { layers: number })[] {
  const found = new Map<string, { ns: number; layers: number }>();
  let whole = 0;
  for (const [resource, seconds] of layers.flatMap(spent)) {
    if (!seconds) continue;
    const sum = found.get(resource) ?? { ns: 0, layers: 0 };
    found.set(resource, { ns: sum.ns + seconds * 1e9, layers: sum.layers + 1 });
    whole += seconds * 1e9;
  }
  return [...found]
    .map(([cause, sum]) => ({ cause, ...sum, share: sum.ns / whole }))
    .sort((a, b) => b.ns - a.ns || a.cause.localeCompare(b.cause, "en"));
}

/** Does it fit, how full is each memory, and what binds it. */
export function fit({ memory, totals, layers }: Resources): HTMLElement {
  const [name, sign, headline] = FITS[memory.status] ?? ["tight", "!", shorten(memory.status, 60)];
  const [most] = bindings(layers);
  const known = totals.latency_s === null ? " that is known" : "";
  const details = [
    ...memory.uses.map(useText),
    most ? `${shorten(most.cause, 48)} binds ${percent(most.share)} of the time${known}` : "",
  ].filter(Boolean);
  return el(
    "p",
    { class: `fit ${name}` },
    el("span", { class: "sign", "aria-hidden": "true" }, sign),
    el("span", {}, el("b", {}, `${headline}. `), `${details.join(" · ")}.`),
  );
}

function useText(use: MemoryUse): string {
  const name = shorten(use.name, 48);
  return use.required_bytes > use.available_bytes
    ? `${name} needs ${bytes(use.required_bytes)} of ${bytes(use.available_bytes)}`
    : `${name} ${percent(fullness(use))} full`;
}

export function latencyNote({ totals }: Resources): string {
  const text = (seconds: number): string => time(seconds * 1e9);
  return prose(totals.withheld, 300) || spread(totals.latency_s, text) || NO_RANGE;
}

export function resourceCards(resources: Resources, from: string): Card[] {
  const { totals, layers, model } = resources;
  const unknown = totals.unknown_layers.length;
  return [
    ...memoryCards(resources, from),
    {
      label: "MACs",
      value: `${atLeast(resources)}${short(totals.macs)}`,
      from,
      note: `${atLeast(resources)}${count(totals.macs)} per inference`,
    },
    {
      label: "Energy",
      value: joules(totals.energy_j?.value),
      from,
      note: energyNote(resources),
    },
    {
      label: "Accelerated",
      value: `${count(totals.accelerated_layers)} of ${count(model.layer_count)}`,
      from,
      share: layers.length ? totals.accelerated_layers / model.layer_count : null,
      note: `${count(totals.cpu_layers)} not accelerated${unknown ? `, ${count(unknown)} of unknown cost` : ""}`,
    },
  ];
}

const energyNote = ({ totals }: Resources): string =>
  prose([spread(totals.energy_j, joules), totals.energy_note].filter(Boolean).join("; "), 300);

function memoryCards({ memory, totals }: Resources, from: string): Card[] {
  const [ram, store] = memory.uses;
  const least = memory.unknown_tensors
    ? `; a lower bound: ${counted(memory.unknown_tensors, "tensor")} without a size`
    : "";
  const parameters = totals.parameter_bytes;
  const stored = store && store.required_bytes !== parameters ? `runs as ${bytes(store.required_bytes)}, ` : "";
  const together = ram && !store ? `with parameters ${bytes(ram.required_bytes)}, ` : "";
  return [
    {
      label: "Peak RAM",
      value: `${ramLeast({ memory })}${bytes(peakBytes(memory))}`,
      from,
      share: ram ? fullness(ram) : null,
      note: `${ram ? `${together}${usedText(ram)}` : ""}${least}`,
    },
    {
      label: "Parameters",
      value: bytes(parameters),
      from,
      share: store ? fullness(store) : null,
      note: store ? `${stored}${usedText(store)}` : "as stored in the file",
    },
  ];
}

const usedText = (use: MemoryUse): string =>
  `${percent(fullness(use))} of ${bytes(use.available_bytes)} ${shorten(use.name, 20)}`;

export function boundSection(resources: Resources, from: string): HTMLElement {
  const title = "Time by binding resource";
  const shares = bindings(resources.layers);
  if (!shares.length) return section(title, nothing("No layer has a known time above zero."));
  const rows = shares.map((part, number) => [
    el("span", { class: `swatch ${causeClass(part.cause, number)}` }, shorten(part.cause, 40)),
    time(part.ns),
    percent(part.share),
    count(part.layers),
  ]);
  return section(
    title,
    shareBar(shares),
    plainTable(["Resource", "Time", "Share", "Layers"], 1, rows),
    el(
      "p",
      { class: "note" },
      "Engines and memories hide behind the slowest of them; starts, changes of layout and exchanges come on top. ",
      unknownNote(resources),
      provenance(from),
    ),
  );
}

const unknownNote = ({ totals }: Resources): string =>
  totals.unknown_layers.length ? `Not here, cost unknown: ${counted(totals.unknown_layers.length, "layer")}. ` : "";

/** A bar per layer, in the colour of what binds it. */
export function timeByLayer(app: App, resources: Resources): HTMLElement {
  const title = "Time per layer in execution order";
  const shares = bindings(resources.layers);
  if (!shares.length) return section(title, nothing("No layer has a known time above zero."));
  const lines: LayerLine[] = shares.map((part, number) => ({
    label: shorten(part.cause, 40),
    colour: Number(causeClass(part.cause, number).slice(1)),
    values: resources.layers.map((layer) => (layer.bound === part.cause ? ns(layer.latency_s) : null)),
  }));
  const drawn = lines.filter((line) => line.values.some((value) => value !== null));
  return section(
    title,
    layerChart(app, drawn, "ns", { bars: true, limit: null }),
    el("p", { class: "note" }, "in the colour of what takes most of each layer. ", unknownNote(resources)),
  );
}

/** Label, value, and what explains the value or why it is missing. */
export type Fact = [string, Child, string?];

export function factList(rows: Fact[]): HTMLElement {
  const list = el("dl", { class: "facts wide" });
  for (const [label, value, why] of rows)
    list.append(
      el("dt", {}, label),
      el("dd", {}, el("span", { class: "fact" }, value), why ? el("span", { class: "why" }, why) : ""),
    );
  return list;
}

export function modelSection({ model }: Resources): HTMLElement {
  return section(
    "Model",
    factList([
      ["Name", shorten(model.name, 300)],
      ["Path", shorten(model.path, 300)],
      ["Framework", shorten(model.framework, 80)],
      ["File size", bytes(model.file_bytes), `${count(model.file_bytes)} B`],
      ["Parameters", bytes(model.parameter_bytes), `${count(model.parameter_bytes)} B`],
      ["Data type", shorten(model.dtype, 40), "the type that most parameter bytes are stored in"],
      ["Layers", count(model.layer_count), "that run, after folding and fusing"],
      ["Operators", count(model.op_count), "in the file"],
      ["SHA-256", model.sha256 ? shorten(model.sha256, 80) : UNKNOWN, model.sha256 ? "" : "not asked for"],
    ]),
  );
}

export function hardwareSection(app: App, resources: Resources): HTMLElement {
  const { totals, target_title: title } = resources;
  const { info } = app.model.data;
  const why = prose(totals.withheld, 300);
  const clock = info.clocks_hz["core"];
  const least = atLeast(resources);
  return section(
    "Hardware and totals",
    factList([
      ["Target", shorten(title, 120), shorten(info.target, 120)],
      ["Devices × cores used", `${count(info.devices)} × ${count(info.cores)}`],
      ["Total cycles", count(totals.cycles), why || (clock === undefined ? "" : `at ${hertz(clock)}`)],
      ["Latency", timeOrLeast(ns(totals.latency_s?.value ?? null), ns(totals.known_latency_s)), latencyNote(resources)],
      ["Energy", joules(totals.energy_j?.value), energyNote(resources)],
      ["Power", watts(totals.power_w), prose(totals.power_note, 300)],
      ["Peak RAM", `${ramLeast(resources)}${bytes(peakBytes(resources.memory))}`, shorten(resources.memory.status, 40)],
      ["MACs", `${least}${count(totals.macs)}`],
      ["Element operations", `${least}${count(totals.element_ops)}`, "work that is not a MAC"],
      ["Accelerated layers", count(totals.accelerated_layers)],
      ["CPU-only layers", count(totals.cpu_layers), "not on an accelerator, unknown ones included"],
      ["Layers of unknown cost", count(totals.unknown_layers.length), unknownLayers(totals.unknown_layers)],
    ]),
    el("p", { class: "note" }, "of one inference ", provenance(info.provenance)),
  );
}

function unknownLayers(numbers: number[]): string {
  const listed = numbers.slice(0, MOST_LISTED).join(", ");
  return numbers.length ? `layers ${listed}${numbers.length > MOST_LISTED ? ", …" : ""}` : "";
}
