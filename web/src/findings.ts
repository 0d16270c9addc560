// Findings: causes, costliest first, each with its evidence in the timeline.

import type { Finding, Findings } from "./contract";
import { button, el, meter, nothing, section, type Child } from "./dom";
import { bytes, count, percent, time } from "./format";
import { BOUND_WORDS, opLink } from "./overview";
import { provenance } from "./provenance";
import { shareBar } from "./shares";
import { heavyLayers, suggestions } from "./suggestions";
import type { App } from "./state";
import { firstRows, plainTable } from "./table";
import { prose, shorten } from "./text";

const MOST_OPS = 8;
const MOST_ROWS = 12;

export function findings(app: App): HTMLElement {
  const { findings: found, resources } = app.model.data;
  if (!found)
    return section(
      "Findings",
      nothing(
        "This run was not analysed. opscope analyze RUN finds the critical path and the causes, and writes this page again.",
      ),
    );
  return el(
    "div",
    {},
    section(
      BOUND_WORDS[found.bound] ?? shorten(found.bound, 80),
      found.breakdown.length ? shareBar(found.breakdown) : "",
      el("p", { class: "note" }, wallWords(found), provenance(found.provenance)),
    ),
    resources ? suggestions(app, resources) : trials(app),
    found.findings.length
      ? el("ol", { class: "findings" }, ...found.findings.map((item, number) => card(app, item, number)))
      : section("Findings", nothing("No rule found anything that costs time.")),
    ...(resources ? heavyLayers(app, resources) : []),
    el("div", { class: "columns" }, waits(app), gaps(app)),
    coverage(app),
    checks(app),
  );
}

function trials(app: App): HTMLElement | string {
  const found = app.model.data.findings;
  if (!found?.trials.length) return "";
  const body = found.trials.map((row) => [
    shorten(row.change, 80),
    meter(1 / row.speedup),
    time(row.latency_ns),
    `${row.speedup.toFixed(2)} × as fast`,
  ]);
  return section(
    "Changes tried",
    plainTable(["Change", "Time left", "Latency", "Against the run"], 2, body, 1),
    el(
      "p",
      { class: "note" },
      "each with one thing changed; the others are as in this run ",
      provenance(found.provenance),
    ),
  );
}

function waits(app: App): HTMLElement {
  const rows = app.model.data.findings?.waits ?? [];
  if (!rows.length) return section("Who waits for what", nothing("No wait is recorded."));
  const most = Math.max(...rows.map((row) => row.wait_ns), 1);
  const body = rows.map((row) => [
    shorten(row.engine, 24),
    shorten(row.cause, 40),
    row.op ? opLink(app, row.op, 30) : "",
    meter(row.wait_ns / most),
    time(row.wait_ns),
    count(row.count),
  ]);
  return section(
    "Who waits for what",
    firstRows(["Engine", "Waits for", "Mostly", "", "Time", "Times"], 4, body, MOST_ROWS),
  );
}

function gaps(app: App): HTMLElement {
  const rows = app.model.data.findings?.gaps ?? [];
  if (!rows.length) return section("Longest gaps", nothing("No lane stood without work for long."));
  const body = rows.map((row) => {
    const name = `${row.core >= 0 ? `core ${row.core} ` : ""}${shorten(row.lane, 24)}`;
    const lane = button(name, () => app.showTime(row.start_ns, row.end_ns), { class: "link" });
    const ended = el("span", { title: shorten(row.ended_by, 300) }, shorten(row.ended_by, 44));
    return [lane, ended, time(row.start_ns), time(row.end_ns - row.start_ns)];
  });
  return section("Longest gaps", firstRows(["Lane", "Ended by", "From", "Length"], 2, body, MOST_ROWS));
}

function checks(app: App): HTMLElement | string {
  const rows = app.model.data.findings?.checks ?? [];
  if (!rows.length) return "";
  const word = (holds: boolean | null): Child =>
    holds === null ? "— not known" : holds ? "✓ holds" : el("span", { class: "worse" }, "✕ broken");
  const held = rows.filter((row) => row.holds).length;
  const unknown = rows.filter((row) => row.holds === null).length;
  const body = rows.map((row) => [shorten(row.name, 80), word(row.holds), prose(row.detail, 200)]);
  const all = el("summary", {}, "All laws");
  return section(
    "Do the numbers add up?",
    el("p", {}, `${count(held)} of ${count(rows.length)} laws hold, ${count(unknown)} cannot be judged from this run.`),
    el("details", { open: held + unknown < rows.length }, all, plainTable(["Law", "", "Detail"], 3, body)),
  );
}

const wallWords = (found: Findings): string =>
  found.unknown_ops.length ? "of the time of ops whose cost is known " : `of ${time(found.wall_ns)} wall time `;

function card(app: App, found: Finding, number: number): HTMLElement {
  const { predicted } = found;
  const wall = app.model.data.findings?.wall_ns;
  const cost: Child[] =
    found.cost_ns === null && found.share === null
      ? ["its cost is not known"]
      : [el("b", {}, time(found.cost_ns)), ` ${percent(found.share)} of the time`];
  if (found.bytes !== null) cost.push(` · ${bytes(found.bytes)}`);
  const item = el(
    "li",
    { class: "card finding", id: `finding-${number}`, tabindex: "-1" },
    el("header", {}, el("h2", {}, `${number + 1}. `, prose(found.title, 200)), el("code", {}, shorten(found.id, 60))),
    el("p", { class: "cost" }, found.share === null ? "" : meter(found.share, "warm"), ...cost),
    el("p", {}, prose(found.detail, 1500)),
  );
  if (found.action) item.append(el("p", { class: "action" }, el("b", {}, "Do: "), prose(found.action, 600)));
  if (predicted)
    item.append(
      el(
        "p",
        { class: "predicted" },
        el("b", {}, "Would gain: "),
        `${time(predicted.gain_ns)}; ${time(wall)} would be ${time(predicted.latency_ns)} (${shorten(predicted.basis, 40)})${predicted.text ? `: ${prose(predicted.text, 300)}` : ""}`,
      ),
    );
  if (found.ops.length)
    item.append(
      el(
        "p",
        { class: "chips" },
        ...found.ops.slice(0, MOST_OPS).map((name) => opLink(app, name, 40)),
        found.ops.length > MOST_OPS ? ` and ${count(found.ops.length - MOST_OPS)} more` : "",
      ),
    );
  const rows = found.spans.filter((row) => row >= 0);
  if (rows.length)
    item.append(button("Show in the timeline", () => app.showRows(rows, found.title), { class: "show" }));
  return item;
}

function coverage(app: App): HTMLElement | string {
  const found = app.model.data.findings?.coverage;
  if (!found) return "";
  const list = el("dl", { class: "facts wide" });
  const fact = (label: string, value: string): void => void list.append(el("dt", {}, label), el("dd", {}, value));
  fact("Wall time with something recorded", percent(found.share));
  fact("Records lost", count(found.lost_records));
  if (found.ops_without_time.length) fact("Ops without a time", shorten(found.ops_without_time.join(", "), 600));
  return section(
    "How much of the run was caught",
    list,
    ...found.notes.map((note) => el("p", { class: "note" }, prose(note, 400))),
  );
}
