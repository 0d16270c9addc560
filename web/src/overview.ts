// Overview: what bounds the run, the key numbers, where the time goes.

import { button, el, meter, nothing, section, type Child } from "./dom";
import { engines, utilization } from "./engines";
import { bytes, count, decimal, hertz, joules, percent, time, UNKNOWN } from "./format";
import { provenance } from "./provenance";
import { causeClass, shareBar } from "./shares";
import type { App } from "./state";
import { plainTable } from "./table";
import { shorten, tailOf } from "./text";

const TOP = 8;

export const BOUND_WORDS: Record<string, string> = {
  compute: "Compute bound",
  memory: "Memory bound",
  link: "Bound by links between cores",
  wait: "Bound by waiting",
  layout: "Bound by layout changes",
  launch: "Bound by launches",
  host: "Bound by the host",
  unknown: "Bound by nothing that was recorded",
};

export function overview(app: App): HTMLElement {
  const { data } = app.model;
  return el(
    "div",
    { class: "overview" },
    verdict(app),
    cards(app),
    el(
      "div",
      { class: "columns" },
      el("div", {}, breakdown(app), section("Engines", engines(data.summary.lanes)), host(app)),
      el("div", {}, section("Costliest ops", topOps(app)), topFindings(app)),
    ),
    section("This run", facts(app)),
    data.notes.length
      ? section("Left out of this page", el("ul", {}, ...data.notes.map((note) => el("li", {}, shorten(note, 400)))))
      : "",
  );
}

function verdict(app: App): HTMLElement {
  const { findings, summary, info } = app.model.data;
  const shares = findings?.breakdown.length ? findings.breakdown : summary.breakdown;
  const largest = [...shares].sort((a, b) => b.share - a.share)[0];
  const bound = findings
    ? (BOUND_WORDS[findings.bound] ?? findings.bound)
    : largest
      ? `Mostly ${largest.cause}`
      : "Not analysed";
  const whole = findings?.wall_ns ?? summary.latency.value_ns;
  const parts = [...shares]
    .sort((a, b) => b.share - a.share)
    .filter((part) => part.share >= 0.005)
    .slice(0, 4)
    .map((part) => `${percent(part.share, 0)} ${shorten(part.cause, 30)}`);
  const detail = largest
    ? `${whole === null ? "" : `${time(whole)} wall time: `}${parts.join(", ")}`
    : "The run has times per op, but no breakdown of its time.";
  return el(
    "div",
    { class: "verdict" },
    el(
      "div",
      {},
      el("p", { class: "eyebrow" }, `${shorten(info.network, 60)} on ${shorten(info.target, 60)}`),
      el("h1", {}, shorten(bound, 80)),
      el("p", {}, detail),
    ),
  );
}

type Card = { label: string; value: string; note: Child; from: string; share?: number | null };

function cards(app: App): HTMLElement {
  const { summary, info } = app.model.data;
  const { latency } = summary;
  const list: Card[] = [
    {
      label: "Latency",
      value: time(latency.value_ns),
      from: latency.provenance,
      note:
        latency.low_ns !== null
          ? `${time(latency.low_ns)} – ${time(latency.high_ns)}`
          : latency.value_ns === null
            ? "the run does not say it"
            : "of one inference on the device",
    },
    {
      label: "Throughput",
      value: summary.throughput_per_s === null ? UNKNOWN : `${decimal(summary.throughput_per_s)}/s`,
      from: latency.provenance,
      note: `batch ${count(summary.batch)}`,
    },
    ...memoryCards(app),
    ...energyCard(app),
    ...engineCard(app),
    {
      label: "Spans",
      value: count(app.model.data.spans.spans),
      from: info.provenance,
      note: `${count(app.model.data.ops.length)} ops on ${count(info.devices)} × ${count(info.cores)} core${info.devices * info.cores === 1 ? "" : "s"}`,
    },
  ];
  return el(
    "div",
    { class: "cards" },
    ...list.map((card) =>
      el(
        "div",
        { class: "key-number", "data-key": card.label.toLowerCase() },
        el("p", { class: "label" }, el("span", {}, card.label), provenance(card.from)),
        el("p", { class: "value" }, card.value),
        card.share === undefined || card.share === null ? "" : meter(card.share),
        el("p", { class: "card-note" }, card.note),
      ),
    ),
  );
}

function memoryCards(app: App): Card[] {
  const { summary, info } = app.model.data;
  const cards: Card[] = [];
  const local = summary.memory
    .filter((row) => row.peak_bytes !== null && row.capacity_bytes)
    .sort((a, b) => b.peak_bytes! / b.capacity_bytes! - a.peak_bytes! / a.capacity_bytes!)[0];
  if (local)
    cards.push({
      label: "Peak memory",
      value: bytes(local.peak_bytes),
      share: local.peak_bytes! / local.capacity_bytes!,
      from: info.provenance,
      note: `of ${bytes(local.capacity_bytes)} ${shorten(local.name, 20)}${local.core === null ? "" : `, core ${local.core}`}`,
    });
  const outer = summary.memory.filter((row) => row.read_bytes !== null || row.write_bytes !== null);
  const sum = (key: "read_bytes" | "write_bytes"): number | null =>
    outer.length ? outer.reduce((all, row) => all + (row[key] ?? 0), 0) : null;
  if (outer.length)
    cards.push({
      label: `${shorten(outer[0]!.name, 20)} traffic`,
      value: bytes((sum("read_bytes") ?? 0) + (sum("write_bytes") ?? 0)),
      from: info.provenance,
      note: `${bytes(sum("read_bytes"))} read, ${bytes(sum("write_bytes"))} written`,
    });
  return cards;
}

function energyCard(app: App): Card[] {
  const { energy } = app.model.data.summary;
  if (energy === null) return [];
  const range = energy.low_j === null ? "of one inference" : `${joules(energy.low_j)} – ${joules(energy.high_j)}`;
  return [{ label: "Energy", value: joules(energy.value_j), from: energy.provenance, note: energy.note || range }];
}

function engineCard(app: App): Card[] {
  const { summary, info } = app.model.data;
  const best = summary.lanes.filter((lane) => lane.device >= 0).sort((a, b) => utilization(b) - utilization(a))[0];
  return best
    ? [
        {
          label: "Busiest engine",
          value: percent(utilization(best)),
          share: utilization(best),
          from: info.provenance,
          note: `${shorten(best.name, 30)}${best.core < 0 ? "" : `, core ${best.core}`}`,
        },
      ]
    : [];
}

function breakdown(app: App): HTMLElement {
  const { findings, summary, info } = app.model.data;
  const shares = findings?.breakdown.length ? findings.breakdown : summary.breakdown;
  if (!shares.length)
    return section("Where the time goes", nothing("The run does not say: its file has times per op only."));
  const rows = shares.map((part, number) => [
    el("span", { class: `swatch ${causeClass(part.cause, number)}` }, shorten(part.cause, 50)),
    time(part.ns),
    percent(part.share),
  ]);
  const what = findings ? "by what holds the end of the run back" : "mean over cores";
  const note = el(
    "p",
    { class: "note" },
    `of the wall time, ${what} `,
    provenance(findings?.provenance ?? info.provenance),
  );
  return section("Where the time goes", shareBar(shares), plainTable(["", "", ""], 1, rows), note);
}

export function opLink(app: App, name: string, limit = 44): HTMLElement {
  const known = app.model.opsNamed(name).length > 0;
  return known
    ? button(tailOf(name, limit), () => app.showOp(name), { class: "link", title: shorten(name, 300) })
    : el("span", { title: shorten(name, 300) }, tailOf(name, limit));
}

function topOps(app: App): HTMLElement {
  const { ops } = app.model.data.summary;
  if (!ops.length) return nothing("The run has no times per op.");
  const most = Math.max(...ops.slice(0, TOP).map((op) => op.share ?? 0), 1e-9);
  const rows = ops
    .slice(0, TOP)
    .map((op) => [
      opLink(app, op.name),
      shorten(op.type, 18),
      meter((op.share ?? 0) / most),
      time(op.busy_ns),
      percent(op.share),
    ]);
  const all = button(`All ${count(ops.length)} ops`, () => app.open("operators"), { class: "link" });
  return el("div", {}, plainTable(["Op", "Type", "", "Busy", "Share"], 3, rows), el("p", { class: "note" }, all));
}

function topFindings(app: App): HTMLElement {
  const { findings } = app.model.data;
  if (!findings) return section("Findings", nothing("This run was not analysed; opscope analyze looks for causes."));
  if (!findings.findings.length) return section("Findings", nothing("No rule found anything that costs time."));
  const items = findings.findings
    .slice(0, 4)
    .map((found) =>
      el(
        "li",
        {},
        el("b", {}, shorten(found.title, 120)),
        el("span", { class: "cost" }, `${time(found.cost_ns)} · ${percent(found.share)}`),
      ),
    );
  return section(
    "Findings",
    el("ol", { class: "short-findings" }, ...items),
    el(
      "p",
      { class: "note" },
      button(`All ${count(findings.findings.length)} findings`, () => app.open("findings"), { class: "link" }),
    ),
  );
}

function host(app: App): HTMLElement | string {
  const { host: stages, samples_ns: samples, latency } = app.model.data.summary;
  const parts: Child[] = [];
  if (stages.length) {
    const whole = stages.reduce((sum, stage) => sum + stage.ns, 0) || 1;
    parts.push(
      el(
        "table",
        { class: "plain" },
        el(
          "tbody",
          {},
          ...stages.map((stage) =>
            el(
              "tr",
              {},
              el("td", {}, shorten(stage.name, 40)),
              el("td", {}, meter(stage.ns / whole)),
              el("td", { class: "number" }, time(stage.ns)),
            ),
          ),
        ),
      ),
    );
  }
  if (samples.length > 1) {
    const sorted = [...samples].sort((a, b) => a - b);
    const at = (share: number): number => sorted[Math.min(Math.floor(share * sorted.length), sorted.length - 1)]!;
    parts.push(
      el(
        "p",
        {},
        `${count(samples.length)} inferences: least ${time(sorted[0])}, median ${time(at(0.5))}, 99 % below ${time(at(0.99))}, most ${time(sorted[sorted.length - 1])} `,
        provenance(latency.provenance),
      ),
    );
  }
  return parts.length ? section("As the application sees it", ...parts) : "";
}

function facts(app: App): HTMLElement {
  const { info, producer } = app.model.data;
  const list = el("dl", { class: "facts wide" });
  const fact = (label: string, value: string): void =>
    void list.append(el("dt", {}, label), el("dd", {}, value || UNKNOWN));
  fact("Model", shorten(info.model, 120));
  fact("SHA-256", info.sha256 ? shorten(info.sha256, 80) : "");
  fact("Target", shorten(info.target, 120));
  fact("Command", shorten(info.command.join(" "), 400));
  fact("Made", `${shorten(info.created, 40)} by ${producer.name} ${producer.version}`);
  fact(
    "Clocks",
    Object.entries(info.clocks_hz)
      .map(([name, value]) => `${shorten(name, 30)} ${hertz(value)}`)
      .join(", "),
  );
  fact(
    "Options",
    Object.entries(info.options)
      .map(([name, value]) => `${shorten(name, 40)} ${shorten(String(value), 80)}`)
      .join(", "),
  );
  return list;
}
