// RAM as a resource report plans it: its parts from the ground up, what each memory must hold, the peak, and what to do.

import { layerChart } from "./charts";
import type { Resources } from "./contract";
import { el, nothing, section } from "./dom";
import { bytes, percent } from "./format";
import { factList, fullness, peakBytes } from "./resources";
import type { App } from "./state";
import { plainTable } from "./table";
import { prose, shorten, tailOf } from "./text";

const LIMIT_WITHIN = 4; // what is available is drawn up to so many times the peak; beyond that it would flatten the curve

export function memoryStack(app: App, resources: Resources): HTMLElement {
  const { issues, recommendations } = resources.memory;
  return el(
    "div",
    {},
    el(
      "div",
      { class: "columns" },
      el("div", {}, parts(resources), listed("Issues", issues), listed("Recommendations", recommendations)),
      el("div", {}, uses(resources), peak(app, resources)),
    ),
    live(app, resources),
  );
}

function parts({ memory }: Resources): HTMLElement {
  const above = memory.bound_bytes ? memory.arena_bytes / memory.bound_bytes - 1 : 0;
  return section(
    "RAM from the ground up",
    factList([
      ["Live bound", bytes(memory.bound_bytes), "the most bytes alive at once; no plan can need less"],
      [
        "Planned arena",
        bytes(memory.arena_bytes),
        `placed ${prose(memory.planner, 80)}, ${percent(above)} above the bound`,
      ],
      ["Kernel scratch", bytes(memory.scratch_bytes), "added by working buffers of kernels"],
      [
        "Runtime",
        bytes(memory.runtime_bytes),
        memory.runtime_bytes === null ? "the target file does not say; not in the peak" : "",
      ],
      ["Peak RAM", bytes(peakBytes(memory)), "arena, scratch and what is known of the runtime"],
      ["Status", shorten(memory.status, 40)],
    ]),
  );
}

function uses({ memory }: Resources): HTMLElement {
  const rows = memory.uses.map((use) => {
    const over = use.required_bytes > use.available_bytes;
    const used = `${percent(fullness(use))}${over ? " ✕" : ""}`;
    return [
      shorten(use.name, 30),
      shorten(use.holds, 60),
      bytes(use.required_bytes),
      bytes(use.available_bytes),
      over ? el("b", { class: "worse" }, used) : used,
    ];
  });
  return section(
    "What each memory must hold",
    plainTable(["Memory", "Holds", "Required", "Available", "Used"], 2, rows),
  );
}

function peak(app: App, { memory, layers }: Resources): HTMLElement | string {
  const layer = memory.peak_layer === null ? undefined : layers[memory.peak_layer];
  const op = layer && app.model.data.ops[layer.op];
  if (!op) return "";
  const rows = memory.peak_tensors.map((tensor) => [
    el("span", { title: shorten(tensor.name, 300) }, tailOf(tensor.name, 60)),
    bytes(tensor.size_bytes),
  ]);
  const where = `layer ${memory.peak_layer}, ${shorten(op.type, 48)} ${shorten(op.name, 48)}`;
  return section(
    "Largest tensors alive at the peak",
    plainTable(["Tensor", "Size"], 1, rows),
    el("p", { class: "note" }, where),
  );
}

function listed(title: string, lines: string[]): HTMLElement | string {
  if (!lines.length) return "";
  return section(title, el("ul", { class: "listed" }, ...lines.map((line) => el("li", {}, prose(line, 1000)))));
}

function live(app: App, { memory, layers }: Resources): HTMLElement {
  const title = "Live activation bytes over the layers";
  if (!layers.length) return section(title, nothing("No layer runs."));
  const values = layers.map((layer) => layer.live_bytes);
  const [ram] = memory.uses;
  const near = ram && ram.available_bytes <= LIMIT_WITHIN * memory.bound_bytes;
  const limit = ram && near ? { label: `available ${shorten(ram.name, 20)}`, value: ram.available_bytes } : null;
  const far = ram && !near ? ` ${bytes(ram.available_bytes)} are available, far above this picture.` : "";
  return section(
    title,
    layerChart(app, [{ label: "live", colour: 0, values }], "bytes", { bars: false, limit }),
    el(
      "p",
      { class: "note" },
      `bytes that must be alive while each layer runs; scratch and runtime come on top.${far}`,
    ),
  );
}
