// The layers of a resource report: cycles, energy, parameters, memory, what binds each, and why it is where it is.

import type { LayerResources, Resources, OpSlack } from "./contract";
import { el, meter, section, words, type Child } from "./dom";
import { bytes, count, joules, percent, time, UNKNOWN, watts } from "./format";
import { opLink } from "./overview";
import { atLeast, ns } from "./resources";
import type { App } from "./state";
import { plainTable, SortTable, type Col } from "./table";
import { prose, shorten } from "./text";

const MOST_REASONS = 12;
const MOST_SOURCES = 8;

export class LayerTable {
  readonly table: SortTable<LayerResources>;
  private readonly words: string[];

  constructor(
    private readonly app: App,
    private readonly resources: Resources,
    slack: ReadonlyMap<string, OpSlack>,
  ) {
    const columns = [...layerColumns(app, resources), ...(slack.size ? slackColumns(app, slack) : [])];
    this.table = new SortTable(columns, 0, false, "Operators");
    this.table.foot(footer(resources, columns.length));
    this.words = resources.layers.map((layer) => this.wordsOf(layer));
  }

  /** Shows the layers that have these words somewhere; how many they are. */
  show(text: string): number {
    const found = this.resources.layers.filter((_, number) => this.words[number]!.includes(text));
    this.table.set(found);
    return found.length;
  }

  private wordsOf(layer: LayerResources): string {
    const op = this.app.model.data.ops[layer.op];
    const place = layer.accelerated ? "accelerated" : "cpu";
    return [op?.name, op?.type, op?.module, layer.engine, layer.bound, layer.reason, place].join("\n").toLowerCase();
  }
}

function layerColumns(app: App, resources: Resources): Col<LayerResources>[] {
  const opOf = (layer: LayerResources) => app.model.data.ops[layer.op];
  const whole = resources.totals.latency_s?.value ?? null;
  const share = (layer: LayerResources): number | null =>
    layer.latency_s === null || whole === null ? null : whole ? layer.latency_s / whole : 0;
  const most = Math.max(...resources.layers.map((layer) => share(layer) ?? 0), 1e-9);
  const costly = (label: string, value: (layer: LayerResources) => number | null, text: typeof count) => ({
    label,
    number: true,
    value,
    cell: (layer: LayerResources): Child => titled(text(value(layer)), value(layer) === null ? layer.reason : ""),
  });
  const work = (label: string, value: (layer: LayerResources) => number) => ({
    label,
    number: true,
    value: (layer: LayerResources): number | null => (layer.work_known ? value(layer) : null),
    cell: (layer: LayerResources): Child =>
      layer.work_known ? count(value(layer)) : titled(UNKNOWN, `at least ${count(value(layer))}; ${layer.reason}`),
  });
  return [
    {
      label: "#",
      number: true,
      value: (layer) => layer.op,
      cell: (layer) => titled(count(layer.op), opOf(layer)?.location ?? ""),
    },
    { label: "Name", value: (layer) => opOf(layer)?.name ?? null, cell: (layer) => nameOf(app, layer) },
    ...moduleColumn(app, (layer: LayerResources) => layer.op),
    {
      label: "Operator",
      value: (layer) => opOf(layer)?.type ?? null,
      cell: (layer) => titled(shorten(opOf(layer)?.type ?? "", 28), tripsOf(layer)),
    },
    {
      label: "Engine",
      value: (layer) => layer.engine,
      cell: (layer) =>
        layer.engine === null
          ? titled(UNKNOWN, layer.reason)
          : titled(shorten(layer.engine, 24), `computes in ${layer.dtype}`),
    },
    { label: "Accelerated", value: (layer) => (layer.accelerated ? "yes" : "no"), cell: placeOf },
    costly("Cycles", (layer) => layer.cycles, count),
    costly("Latency", (layer) => ns(layer.latency_s), time),
    {
      label: "Share",
      number: true,
      value: share,
      cell: (layer) =>
        el(
          "span",
          { class: "with-bar" },
          share(layer) === null ? "" : meter(share(layer)! / most),
          el("span", {}, percent(share(layer))),
        ),
    },
    work("MACs", (layer) => layer.macs),
    work("Element ops", (layer) => layer.element_ops),
    {
      label: "Parameters",
      title: "bytes of all its constants",
      number: true,
      value: (layer) => layer.parameter_bytes,
      cell: parametersOf,
    },
    {
      label: "Live memory",
      title: "activations alive while it runs",
      number: true,
      value: (layer) => layer.live_bytes,
      cell: (layer) => bytes(layer.live_bytes),
    },
    { label: "Bound by", value: (layer) => layer.bound || null, cell: boundOf },
    costly("Energy", (layer) => layer.energy_j, joules),
    costly("Power", (layer) => layer.power_w, watts),
    {
      label: "Out",
      title: "bytes that it makes",
      number: true,
      value: (layer) => layer.out_bytes,
      cell: (layer) => bytes(layer.out_bytes),
    },
    {
      label: "Moved",
      title: "bytes to and from memories",
      number: true,
      value: (layer) => layer.moved_bytes,
      cell: (layer) => bytes(layer.moved_bytes),
    },
  ];
}

function slackColumns(app: App, slack: ReadonlyMap<string, OpSlack>): Col<LayerResources>[] {
  const row = (layer: LayerResources) => slack.get(app.model.data.ops[layer.op]?.name ?? "");
  const path = (layer: LayerResources): number | null => row(layer)?.path_ns ?? null;
  const left = (layer: LayerResources): number | null => row(layer)?.slack_ns ?? null;
  return [
    {
      label: "On path",
      title: "of the critical path; not known where several ops share a name",
      number: true,
      value: path,
      cell: (layer) => time(path(layer)),
    },
    {
      label: "Slack",
      title:
        "how much later it could have ended without the run ending later; not known where several ops share a name",
      number: true,
      value: left,
      cell: (layer) => time(left(layer)),
    },
  ];
}

const titled = (text: string, title: string): Child =>
  title ? el("span", { title: shorten(title, 300) }, text) : text;

/** The module of PyTorch that an op comes from, with the line of its code; no column where none is known. */
export function moduleColumn<Row>(app: App, numberOf: (row: Row) => number | null): Col<Row>[] {
  const { ops } = app.model.data;
  if (!ops.some((op) => op.module)) return [];
  const infoOf = (row: Row) => ops[numberOf(row) ?? -1];
  return [
    {
      label: "Module",
      title: "of PyTorch, and the line of code",
      value: (row) => infoOf(row)?.module ?? null,
      cell: (row) => {
        const { module = "", line = "" } = infoOf(row) ?? {};
        const code = line && ` (${line.slice(line.lastIndexOf("/") + 1)})`;
        return el("span", { title: shorten(`${module} ${line}`, 300) }, shorten(module + code, 60));
      },
    },
  ];
}

function nameOf(app: App, layer: LayerResources): Child {
  const name = app.model.data.ops[layer.op]?.name ?? "";
  const sources = layer.sources.slice(0, MOST_SOURCES).map((source) => shorten(source, 80));
  const link = opLink(app, name, 46);
  if (sources.length) link.title = `${shorten(name, 120)}; runs ${sources.join(" + ")}`;
  return link;
}

function tripsOf(layer: LayerResources): string {
  if (layer.trips === null) return "runs in a loop of unknown length; counted once";
  return layer.trips === 1 ? "" : `runs ${count(layer.trips)} times; the numbers are for all of them`;
}

function placeOf(layer: LayerResources): Child {
  const why = layer.reason
    ? el("span", { class: "why", title: shorten(layer.reason, 300) }, shorten(layer.reason, 48))
    : "";
  return el("span", {}, layer.accelerated ? "yes" : "no", why);
}

function parametersOf(layer: LayerResources): Child {
  if (!layer.shared_bytes) return titled(bytes(layer.parameter_bytes), `${count(layer.parameter_bytes)} B`);
  const title = `${count(layer.parameter_bytes)} B, of which ${count(layer.shared_bytes)} B are counted at an earlier layer too`;
  return el("span", { title }, bytes(layer.parameter_bytes), el("span", { class: "why" }, "shared"));
}

function boundOf(layer: LayerResources): Child {
  if (layer.cycles === null) return titled(UNKNOWN, layer.reason);
  const costs = layer.costs.map((part) => `${shorten(part.resource, 40)} ${count(part.cycles)} cycles`).join(", ");
  return titled(shorten(layer.bound, 24) || "no work", costs);
}

/** Totals under their columns; the column of live bytes shows its peak, not a sum. */
function footer(resources: Resources, columns: number): Child[] {
  const { totals, memory, model } = resources;
  const why = totals.withheld;
  const least = atLeast(resources);
  const cells: Child[] = [
    "",
    "Total",
    "",
    "",
    `${count(totals.accelerated_layers)} of ${count(model.layer_count)}`,
    titled(count(totals.cycles), why),
    titled(time(ns(totals.latency_s?.value ?? null)), why),
    totals.latency_s === null ? UNKNOWN : percent(1),
    `${least}${count(totals.macs)}`,
    `${least}${count(totals.element_ops)}`,
    titled(bytes(totals.parameter_bytes), `${count(totals.parameter_bytes)} B`),
    `peak ${bytes(memory.bound_bytes)}`,
    "",
    titled(joules(totals.energy_j?.value), totals.energy_note),
    titled(watts(totals.power_w), totals.power_note),
  ];
  return [...cells, ...Array<Child>(columns - cells.length).fill("")];
}

export type Reconciliation = { column: number; shared: number; converted: number; total: number };

/** How the column of parameters adds up to the total; constants are folded, and stored in the type that the target computes in. */
export function reconcile({ layers, totals }: Resources): Reconciliation {
  const column = layers.reduce((sum, layer) => sum + layer.parameter_bytes, 0);
  const shared = layers.reduce((sum, layer) => sum + layer.shared_bytes, 0);
  return { column, shared, converted: totals.parameter_bytes - (column - shared), total: totals.parameter_bytes };
}

export function reconciliation(resources: Resources): HTMLElement | string {
  if (resources.layers.length < resources.model.layer_count) return ""; // some were left out of the page
  const { column, shared, converted, total } = reconcile(resources);
  const differs = converted
    ? `, ${converted > 0 ? "plus" : "less"} ${count(Math.abs(converted))} B by which the file differs from what runs (constants folded, or stored in the type the target computes in)`
    : "";
  const text = `Parameters: the column adds up to ${count(column)} B; less ${count(shared)} B that are shared with an earlier layer${differs}, that is the model’s ${count(total)} B.`;
  return el("p", { class: "note", id: "reconciliation" }, text);
}

/** Why layers are where they are, the most frequent reason first. */
export function reasons({ layers }: Resources): HTMLElement | string {
  const counted = new Map<string, number>();
  for (const { reason } of layers) if (reason) counted.set(reason, (counted.get(reason) ?? 0) + 1);
  if (!counted.size) return "";
  const rows = [...counted]
    .sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0], "en"))
    .slice(0, MOST_REASONS)
    .map(([reason, layers]) => [words(prose(reason, 300)), count(layers)]);
  return section("Why layers are not on a faster engine, or have no cost", plainTable(["Reason", "Layers"], 1, rows));
}
