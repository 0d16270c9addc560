// What a resource report suggests: each change with the numbers before and after, and the layers that weigh most.

import type { LayerAdvice, Resources, Suggestion } from "./contract";
import { el, nothing, section, words, type Child } from "./dom";
import { bytes, count, joules, time, UNKNOWN } from "./format";
import { opLink } from "./overview";
import { provenance } from "./provenance";
import { ns } from "./resources";
import type { App } from "./state";
import { plainTable } from "./table";
import { prose, shorten } from "./text";

const MOST_SHAPES = 4;
const UNSEEN = 0.0005; // a change below it is none

export function suggestions(app: App, { suggestions: ideas }: Resources): HTMLElement {
  const title = "Suggestions";
  if (!ideas.length)
    return section(title, nothing("No change that was tried makes the model smaller or faster on this target."));
  return section(
    title,
    plainTable(["Suggestion", "Latency", "Peak RAM", "Parameters", "Energy"], 1, ideas.map(ideaRow)),
    el(
      "p",
      { class: "note" },
      "best first. Each was tried by estimating the changed graph on the same target; peak RAM here is arena and scratch, without the runtime ",
      provenance(app.model.data.info.provenance),
    ),
  );
}

function ideaRow({ kind, text, before, after }: Suggestion): Child[] {
  return [
    el("span", { class: "words" }, el("span", { class: "kind" }, shorten(kind, 30)), " ", prose(text, 1000)),
    change(ns(before.latency_s), ns(after.latency_s), time),
    change(before.peak_bytes, after.peak_bytes, bytes),
    change(before.parameter_bytes, after.parameter_bytes, bytes),
    change(before.energy_j, after.energy_j, joules),
  ];
}

/** "−39.1%", and whether less is better; nothing where one of both is not known. */
export function relative(before: number | null, after: number | null): [string, string] {
  if (!before || after === null) return ["", ""];
  const part = after / before - 1;
  if (Math.abs(part) < UNSEEN) return ["±0%", ""];
  const text = `${part > 0 ? "+" : "−"}${Math.abs(100 * part).toFixed(1)}%`;
  return [text, part < 0 ? "better" : "worse"];
}

function change(before: number | null, after: number | null, text: (value: number | null) => string): Child {
  const [percents, name] = relative(before, after);
  return el(
    "span",
    { class: "change" },
    el("span", { class: "why" }, `${text(before)} → `),
    el("b", {}, text(after)),
    el("span", { class: name || "why" }, ` ${percents}`),
  );
}

export function heavyLayers(app: App, resources: Resources): (HTMLElement | string)[] {
  return [
    heavy(app, resources, resources.heavy_memory, "Layers with most parameter memory"),
    heavy(app, resources, resources.heavy_macs, "Layers with most MACs"),
  ];
}

function heavy(app: App, resources: Resources, advice: LayerAdvice[], title: string): HTMLElement | string {
  const rows = advice.flatMap(({ layer: number, suggestion }) => {
    const layer = resources.layers[number];
    const op = layer && app.model.data.ops[layer.op];
    if (!layer || !op) return []; // left out of the page
    const shapes = layer.constant_shapes.slice(0, MOST_SHAPES).map((shape) => `[${shape.join(", ")}]`);
    const more = layer.constant_shapes.length > MOST_SHAPES ? " …" : "";
    return [
      [
        opLink(app, op.name),
        shorten(op.type, 28),
        shapes.length ? shorten(shapes.join(" ") + more, 80) : UNKNOWN,
        words(prose(suggestion, 1000)),
        count(layer.op),
        bytes(layer.parameter_bytes),
        count(layer.macs),
      ],
    ];
  });
  if (!rows.length) return "";
  const heads = ["Name", "Operator", "Constants", "Suggestion", "Layer", "Parameters", "MACs"];
  return section(title, plainTable(heads, 4, rows, -1, title));
}
