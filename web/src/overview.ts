// Overview: what bounds the run, the key numbers, where the time goes.

import { button, el, meter, nothing, section, type Child } from "./dom";
import { engines, placeWords, utilization } from "./engines";
import { bytes, count, counted, decimal, hertz, joules, percent, time, UNKNOWN } from "./format";
import { outerTraffic } from "./outer";
import { provenance } from "./provenance";
import { boundSection, fit, hardwareSection, latencyNote, modelSection, resourceCards, timeByLayer } from "./resources";
import { causeClass, shareBar } from "./shares";
import type { App } from "./state";
import { comparing, plainTable } from "./table";
import { prose, shorten, tailOf } from "./text";
import { brokenNotice } from "./notices";
import { howMany, timeOrLeast, unknownNotice, unknownOps } from "./unknown";

const TOP = 8;

export const BOUND_WORDS: Record<string, string> = {
  compute: "Compute bound",
  memory: "Memory bound",
  link: "Bound by links between cores",
  "host-link": "Bound by transfers between host and device",
  wait: "Bound by waiting",
  layout: "Bound by layout changes",
  launch: "Bound by launches",
  host: "Bound by the host",
  unknown: "Bound by nothing that was recorded",
};

export function overview(app: App): HTMLElement {
  const { data } = app.model;
  const { resources } = data;
  const from = data.info.provenance;
  return el(
    "div",
    { class: "overview" },
    verdict(app),
    unknownNotice(data),
    brokenNotice(data),
    resources ? fit(resources) : "",
    cards(app),
    el(
      "div",
      { class: "columns" },
      el(
        "div",
        {},
        breakdown(app),
        resources ? boundSection(resources, from) : "",
        section("Engines", engines(data.summary.lanes)),
        host(app),
      ),
      el("div", {}, section("Costliest ops", topOps(app)), topFindings(app)),
    ),
    resources ? timeByLayer(app, resources) : "",
    resources ? el("div", { class: "columns" }, modelSection(resources), hardwareSection(app, resources)) : "",
    section("This run", facts(app)),
    data.notes.length
      ? section("Left out of this page", el("ul", {}, ...data.notes.map((note) => el("li", {}, shorten(note, 400)))))
      : "",
  );
}

function verdict(app: App): HTMLElement {
  const { findings, summary, info, resources } = app.model.data;
  const unknown = unknownOps(app.model.data).length ? howMany(app.model.data) : "";
  const withheld = resources?.totals.withheld || unknown;
  const target = resources
    ? `${shorten(resources.target_title, 120)} (${shorten(info.target, 60)})`
    : shorten(info.target, 60);
  const shares = summary.breakdown;
  const largest = [...shares].sort((a, b) => b.share - a.share)[0];
  const bound = withheld
    ? "The latency is not known"
    : findings
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
  const wall =
    whole === null ? "" : `${time(whole)} wall time${findings && summary.host.length ? ", host included" : ""}: `;
  const told = largest ? `${wall}${parts.join(", ")}` : "The run has times per op, but no breakdown of its time.";
  const detail = withheld ? prose(withheld, 600) : told;
  return el(
    "div",
    { class: "verdict" },
    el(
      "div",
      {},
      el("p", { class: "eyebrow" }, `${shorten(info.network, 60)} on ${target}`),
      el("h2", { class: "headline" }, shorten(bound, 80)),
      el("p", {}, detail),
    ),
  );
}

export type Card = { label: string; value: string; note: Child; from: string; share?: number | null };

function cards(app: App): HTMLElement {
  const { summary, info, resources } = app.model.data;
  const { latency } = summary;
  const list: Card[] = [
    {
      label: "Latency",
      value: timeOrLeast(latency.value_ns, latency.low_ns),
      from: latency.provenance,
      note: resources
        ? latencyNote(resources)
        : latency.value_ns === null
          ? unknownOps(app.model.data).length
            ? howMany(app.model.data)
            : "the run does not say it"
          : `${summary.host.length ? "on the device" : "of one inference"}${range(latency.low_ns, latency.high_ns, time)}${info.basis ? `; ${info.basis}` : ""}`,
    },
    {
      label: "Throughput",
      value: summary.throughput_per_s === null ? UNKNOWN : `${decimal(summary.throughput_per_s)}/s`,
      from: latency.provenance,
      note: `batch ${count(summary.batch)}`,
    },
    ...(resources ? resourceCards(resources, info.provenance) : runCards(app)),
  ];
  return el(
    "div",
    { class: list.length > 6 ? "cards many" : "cards" },
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

function runCards(app: App): Card[] {
  const { info, spans, ops } = app.model.data;
  return [
    ...memoryCards(app),
    ...energyCard(app),
    ...engineCard(app),
    {
      label: "Spans",
      value: count(spans.spans),
      from: info.provenance,
      note: `${counted(ops.length, "op")} on ${count(info.devices)} × ${count(info.cores)} core${info.devices * info.cores === 1 ? "" : "s"}`,
    },
  ];
}

/** ", low – high"; nothing where both read the same. */
export function range(low: number | null, high: number | null, text: (value: number | null) => string): string {
  return low === null || high === null || text(low) === text(high) ? "" : `, ${text(low)} – ${text(high)}`;
}

function memoryCards(app: App): Card[] {
  const { summary, info } = app.model.data;
  const least = unknownOps(app.model.data).length ? "at least " : "";
  const cards: Card[] = [];
  const local = summary.memory
    .filter((row) => row.peak_bytes !== null && row.capacity_bytes)
    .sort((a, b) => b.peak_bytes! / b.capacity_bytes! - a.peak_bytes! / a.capacity_bytes!)[0];
  if (local)
    cards.push({
      label: "Peak memory",
      value: `${least}${bytes(local.peak_bytes)}`,
      share: local.peak_bytes! / local.capacity_bytes!,
      from: info.provenance,
      note: `of ${bytes(local.capacity_bytes)} ${shorten(local.name, 20)}${local.core === null ? "" : `, core ${local.core}`}`,
    });
  const outer = outerTraffic(summary.memory);
  if (outer)
    cards.push({
      label: `${shorten(outer.name, 20)} traffic`,
      value: `${least}${bytes(
        outer.read_bytes === null || outer.write_bytes === null ? null : outer.read_bytes + outer.write_bytes,
      )}`,
      from: info.provenance,
      note: `${bytes(outer.read_bytes)} read, ${bytes(outer.write_bytes)} written`,
    });
  return cards;
}

function energyCard(app: App): Card[] {
  const { energy } = app.model.data.summary;
  if (energy === null) return [];
  const note = energy.note || `of one inference${range(energy.low_j, energy.high_j, joules)}`;
  return [{ label: "Energy", value: joules(energy.value_j), from: energy.provenance, note }];
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
          note: `${shorten(best.name, 30)}, ${placeWords(best, summary.lanes)}`,
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
  const note = el(
    "p",
    { class: "note" },
    `of the wall time${unknownOps(app.model.data).length ? " of ops whose cost is known" : ""}, by what holds the end of the run back `,
    provenance(findings?.provenance ?? info.provenance),
  );
  return section("Where the time goes", shareBar(shares), plainTable(["", "", ""], 1, rows), note);
}

export function opLink(app: App, name: string, limit = 44): HTMLElement {
  const number = app.model.opsNamed(name)[0];
  const info = number === undefined ? null : app.model.data.ops[number];
  const title = shorten([name, info?.module, info?.line].filter(Boolean).join(" · "), 300);
  return info
    ? button(tailOf(name, limit), () => app.showOp(name), { class: "link", title })
    : el("span", { title }, tailOf(name, limit));
}

function topOps(app: App): HTMLElement {
  const { ops } = app.model.data.summary;
  if (!ops.length) return nothing("The run has no times per op.");
  const costliest = [...ops].sort(comparing((op) => op.busy_ns, true)).slice(0, TOP);
  const most = Math.max(...costliest.map((op) => op.busy_ns ?? 0), 1e-9);
  const rows = costliest.map((op) => [
    opLink(app, op.name),
    shorten(op.type, 18),
    meter((op.busy_ns ?? 0) / most),
    time(op.busy_ns),
    percent(op.share),
  ]);
  const all = button(ops.length === 1 ? "1 op" : `All ${count(ops.length)} ops`, () => app.open("operators"), {
    class: "link",
  });
  const lanes = app.model.data.summary.lanes.length > 1 ? "busy: on all lanes together. " : "";
  return el(
    "div",
    {},
    plainTable(["Op", "Type", "", "Busy", "Share"], 3, rows),
    el("p", { class: "note" }, lanes, all),
  );
}

function topFindings(app: App): HTMLElement {
  const { findings } = app.model.data;
  if (!findings) return section("Findings", nothing("This run was not analysed; opscope analyze looks for causes."));
  if (!findings.findings.length) return section("Findings", nothing("No rule found anything that costs time."));
  const items = findings.findings.slice(0, 4).map((found, number) =>
    el(
      "li",
      {},
      button(prose(found.title, 120), () => showFinding(app, number), { class: "link" }),
      found.cost_ns === null && found.share === null
        ? ""
        : el("span", { class: "cost" }, `${time(found.cost_ns)} · ${percent(found.share)}`),
    ),
  );
  return section(
    "Findings",
    el("ol", { class: "short-findings" }, ...items),
    el(
      "p",
      { class: "note" },
      button(
        findings.findings.length === 1 ? "1 finding" : `All ${count(findings.findings.length)} findings`,
        () => app.open("findings"),
        { class: "link" },
      ),
    ),
  );
}

/** Its card, with all it says. */
function showFinding(app: App, number: number): void {
  app.open("findings");
  const card = document.getElementById(`finding-${number}`);
  card?.scrollIntoView({ block: "center" });
  card?.focus({ preventScroll: true });
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
      el(
        "p",
        { class: "note" },
        `${unknownOps(app.model.data).length ? "at least " : ""}${time(whole)} in all; the median of each over all inferences `,
        provenance(latency.provenance),
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
  fact("Made", `${shorten(info.created, 40)} by ${producer.name} ${producer.version}`.trim());
  fact(
    "Clocks",
    Object.entries(info.clocks_hz)
      .map(([name, value]) => `${shorten(name, 30)} ${hertz(value)}`)
      .join(", "),
  );
  fact(
    "Options",
    Object.entries(info.options)
      .filter(([name]) => !name.endsWith("_key")) // by which a run is used again: run.json has them
      .map(([name, value]) => `${shorten(name, 40)} ${shorten(String(value), 80)}`)
      .join(", "),
  );
  return list;
}
