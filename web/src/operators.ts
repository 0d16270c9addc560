// Operators: every op, or ops added up by type, module, layer, block, engine or place.

import type { OpSlack, OpTotal } from "./contract";
import { el, meter, nothing, section } from "./dom";
import { bytes, count, percent, short, time, UNKNOWN } from "./format";
import { LayerTable, moduleColumn, reasons, reconciliation } from "./layers";
import { opLink } from "./overview";
import { provenance } from "./provenance";
import type { App } from "./state";
import { SortTable, type Col } from "./table";
import { longText } from "./timeline/details";
import { shorten } from "./text";

type Rollup = "ops" | "op_types" | "module" | "layers" | "blocks" | "engine" | "placed" | "location";
const ROLLUPS: [Rollup, string][] = [
  ["ops", "Ops"],
  ["op_types", "Types"],
  ["module", "Modules"],
  ["layers", "Layers"],
  ["blocks", "Blocks"],
  ["engine", "Engines"],
  ["placed", "Memories"],
  ["location", "Locations"],
];

/** Ops with the same word, added up. What one of them does not know is not known of all; wall times overlap. */
export function rollup(ops: OpTotal[], wordOf: (op: OpTotal) => string): OpTotal[] {
  const sums = new Map<string, OpTotal>();
  const plus = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b);
  for (const op of ops) {
    const name = wordOf(op) || UNKNOWN;
    const sum = sums.get(name);
    if (!sum) sums.set(name, { ...op, name, type: "", wall_ns: null, reason: "" });
    else
      for (const part of ["busy_ns", "wait_ns", "share", "commands", "out_bytes", "moved_bytes", "macs"] as const)
        sum[part] = plus(sum[part], op[part]);
  }
  return [...sums.values()];
}

export function operators(app: App): HTMLElement {
  const { summary, info, resources } = app.model.data;
  if (!summary.ops.length) return section("Operators", nothing("The run has no times per op."));
  const box = el("div");
  const filter = el("input", {
    type: "search",
    placeholder: "Filter by name, type, engine",
    "aria-label": "Filter ops",
  });
  const shown = el("span", { class: "hits", role: "status" });
  let current: Rollup = "ops";
  const tables = new Map<Rollup, SortTable<OpTotal>>();
  const layers = resources && new LayerTable(app, resources, slackOf(app));
  const infos = new Map(app.model.data.ops.map((op) => [op.name, op]));
  const hasModules = app.model.data.ops.some((op) => op.module);
  const rowsOf = (which: Rollup): OpTotal[] => {
    if (which === "location" || which === "module")
      return rollup(summary.ops, (op) => infos.get(op.name)?.[which] ?? "");
    return which === "engine" || which === "placed" ? rollup(summary.ops, (op) => op[which]) : summary[which];
  };
  const drawLayers = (layers: LayerTable): void => {
    const found = layers.show(filter.value.trim().toLowerCase());
    shown.textContent = `${count(found)} of ${count(resources!.layers.length)}`;
    box.replaceChildren(layers.table.root);
  };
  const draw = (): void => {
    if (current === "ops" && layers) return drawLayers(layers);
    let table = tables.get(current);
    if (!table)
      tables.set(current, (table = new SortTable(columns(app, current), current === "ops" ? 3 : 2, true, "Operators")));
    const words = filter.value.trim().toLowerCase();
    const all = rowsOf(current);
    const rows = words
      ? all.filter((op) =>
          `${op.name}\n${op.type}\n${op.engine}\n${op.placed}\n${op.reason}\n${infos.get(op.name)?.module ?? ""}`
            .toLowerCase()
            .includes(words),
        )
      : all;
    table.set(rows);
    shown.textContent = `${count(rows.length)} of ${count(all.length)}`;
    box.replaceChildren(all.length ? table.root : nothing("The run does not have this table."));
  };
  const choices = el(
    "div",
    { class: "segmented", role: "radiogroup", "aria-label": "Add up by" },
    ...ROLLUPS.filter(([key]) => key !== "module" || hasModules).map(([key, label]) => {
      const input = el("input", {
        type: "radio",
        name: "rollup",
        value: key,
        id: `rollup-${key}`,
        checked: key === "ops",
      });
      input.addEventListener("change", () => {
        current = key;
        draw();
      });
      return el("span", {}, input, el("label", { for: `rollup-${key}` }, label));
    }),
  );
  filter.addEventListener("input", draw);
  draw();
  const table = el(
    "section",
    { class: "card whole-height" },
    el(
      "div",
      { class: "tools" },
      el("h2", {}, "Operators"),
      choices,
      filter,
      shown,
      el("span", { class: "gap" }),
      provenance(info.provenance),
    ),
    box,
    resources ? reconciliation(resources) : "",
  );
  return resources ? el("div", {}, table, reasons(resources)) : table;
}

/** How late each op could have been, where its name tells it from all others. */
function slackOf(app: App): Map<string, OpSlack> {
  const { summary, findings } = app.model.data;
  const named = unique(summary.ops, (op) => op.name);
  return unique(
    (findings?.slack ?? []).filter((item) => named.has(item.op)),
    (item) => item.op,
  );
}

/** Items by their name; those that share one cannot be told apart by it, and are left out. */
export function unique<Item>(items: readonly Item[], nameOf: (item: Item) => string): Map<string, Item> {
  const found = new Map<string, Item | null>();
  for (const item of items) found.set(nameOf(item), found.has(nameOf(item)) ? null : item);
  return new Map([...found].filter((pair): pair is [string, Item] => pair[1] !== null));
}

function columns(app: App, which: Rollup): Col<OpTotal>[] {
  const most = Math.max(...(which === "ops" ? app.model.data.summary.ops : []).map((op) => op.share ?? 0), 1e-9);
  const scale = which === "ops" ? most : 1;
  const columns: Col<OpTotal>[] = [
    {
      label: "Name",
      value: (op) => op.name,
      cell: (op) => (which === "ops" ? opLink(app, op.name, 46) : longText(op.name, 80)),
    },
    ...(which === "ops" ? moduleColumn(app, (op: OpTotal) => op.op) : []),
    {
      label: "Share",
      title: "of the busy time of all ops",
      number: true,
      value: (op) => op.share,
      cell: (op) =>
        el(
          "span",
          { class: "with-bar" },
          op.share === null ? "" : meter(op.share / scale),
          el("span", {}, percent(op.share)),
        ),
    },
    {
      label: "Busy",
      title: "time of all lanes together",
      number: true,
      value: (op) => op.busy_ns,
      cell: (op) => time(op.busy_ns),
    },
    {
      label: "Wall",
      title: "time in which at least one of its commands is at work or in flight",
      number: true,
      value: (op) => op.wall_ns,
      cell: (op) => time(op.wall_ns),
    },
    {
      label: "Wait",
      title: "that lanes stood before its commands",
      number: true,
      value: (op) => op.wait_ns,
      cell: (op) => time(op.wait_ns),
    },
    { label: "Commands", number: true, value: (op) => op.commands, cell: (op) => count(op.commands) },
    { label: "MACs", number: true, value: (op) => op.macs, cell: (op) => short(op.macs) },
    {
      label: "Moved",
      title: "bytes on routes between memories",
      number: true,
      value: (op) => op.moved_bytes,
      cell: (op) => bytes(op.moved_bytes),
    },
    {
      label: "Out",
      title: "bytes that it makes",
      number: true,
      value: (op) => op.out_bytes,
      cell: (op) => bytes(op.out_bytes),
    },
  ];
  const slack = slackOf(app);
  if (which === "ops" && slack.size) {
    columns.splice(
      4,
      0,
      {
        label: "On path",
        title: "of the critical path; not known where several ops share a name",
        number: true,
        value: (op) => slack.get(op.name)?.path_ns ?? null,
        cell: (op) => time(slack.get(op.name)?.path_ns),
      },
      {
        label: "Slack",
        title:
          "how much later it could have ended without the run ending later; not known where several ops share a name",
        number: true,
        value: (op) => slack.get(op.name)?.slack_ns ?? null,
        cell: (op) => time(slack.get(op.name)?.slack_ns),
      },
    );
  }
  if (which === "ops" && app.model.data.summary.ops.some((op) => op.kernel))
    columns.splice(1, 0, {
      label: "Kernel",
      title: "the routine that did most of it",
      value: (op) => op.kernel || null,
      cell: (op) => (op.kernel ? el("span", { title: about(op) }, shorten(op.kernel, 28)) : UNKNOWN),
    });
  if (which === "ops")
    columns.splice(1, 0, { label: "Type", value: (op) => op.type, cell: (op) => shorten(op.type, 28) });
  if (which !== "engine")
    columns.push({
      label: "Engine",
      value: (op) => op.engine || null,
      cell: (op) => (op.engine ? el("span", { title: shorten(op.reason, 300) }, shorten(op.engine, 24)) : UNKNOWN),
    });
  if (which !== "placed")
    columns.push({
      label: "Memory",
      title: "local, or the outer memory that one of its operands lies in",
      value: (op) => op.placed || null,
      cell: (op) => shorten(op.placed, 16) || UNKNOWN,
    });
  return columns;
}

/** What a kernel worked on, and which other ops of the model it did the work of. */
function about(op: OpTotal): string {
  const covers = op.covers.length ? [`also does ${op.covers.join(", ")}`] : [];
  return shorten([op.shape, ...covers].filter(Boolean).join("\n"), 300);
}
