// What is known of one span: a list to read, and the same in one sentence for those who cannot see the canvas.

import { append, button, el, nothing } from "../dom";
import { bytes, count, time } from "../format";
import type { Dependency, Model } from "../model";
import { KINDS, WAIT } from "../spans";
import { clean, shorten, tailOf } from "../text";
import type { Pick } from "./scene";

const SHORT = 160;
const MOST = 40; // dependencies listed

export function placeOf(model: Model, lane: number): string {
  const item = model.data.lanes[lane];
  if (!item) return "";
  if (item.device < 0) return `host, ${shorten(item.name, 80)}`;
  return `device ${item.device}${item.core < 0 ? "" : `, core ${item.core}`}, ${shorten(item.name, 80)}`;
}

export function sentence(model: Model, pick: Pick): string {
  const { spans, row, lane } = pick;
  const op = model.data.ops[spans.op[row]!];
  const what = shorten(model.data.names[spans.name[row]!] ?? "", 80);
  const many = spans.count && spans.count[row]! > 1 ? ` (the longest of ${count(spans.count[row])} spans)` : "";
  return `${KINDS[spans.kind[row]!]} ${what}${many}${op ? ` of ${shorten(op.name, 80)}` : ""} on ${placeOf(model, lane)}: from ${time(spans.start[row], 6)} for ${time(spans.length[row])}`;
}

/** A long text, cut, with a way to see all of it. */
export function longText(text: string, limit = SHORT): HTMLElement {
  if (text.length <= limit) return el("span", { class: "name", dir: "ltr" }, clean(text));
  const box = el("span", { class: "name", dir: "ltr" }, shorten(text, limit), " ");
  box.append(
    button(
      `show all ${count(text.length)} characters`,
      () =>
        box.replaceChildren(
          el("textarea", { class: "whole-name", readonly: true, rows: 6, "aria-label": "whole name" }, clean(text)),
        ),
      { class: "link" },
    ),
  );
  return box;
}

type Jump = (row: number) => void;

export function details(model: Model, pick: Pick, jump: Jump): HTMLElement {
  const { spans, row, lane } = pick;
  const op = model.data.ops[spans.op[row]!] ?? null;
  const facts = el("dl", { class: "facts" });
  const fact = (label: string, value: string | Node | null): void => {
    if (value !== null && value !== "") facts.append(el("dt", {}, label), el("dd", {}, value));
  };
  fact("Name", longText(model.data.names[spans.name[row]!] ?? "—"));
  if (op) fact("Op", longText(op.name));
  if (op)
    fact(
      "Type",
      shorten(
        [op.type, op.kind && op.kind !== op.type.toLowerCase() ? `(${op.kind})` : "", op.location]
          .filter(Boolean)
          .join(" · "),
        120,
      ),
    );
  if (op?.module) fact("Module", longText(op.module));
  if (op?.line) fact("Code", longText(op.line));
  fact("Where", placeOf(model, lane));
  fact("Start", time(spans.start[row], 7));
  fact("Duration", time(spans.length[row], 6));
  if (spans.count && spans.count[row]! > 1)
    fact("Spans", `${count(spans.count[row])} together; the longest is described`);
  if (spans.ucycles && spans.ucycles[row]! >= 0) fact("Timer ticks", count(spans.ucycles[row]));
  if (spans.pcycles && spans.pcycles[row]! >= 0) fact("Core cycles", count(spans.pcycles[row]));
  if (spans.inference[row]! >= 0) fact("Inference", count(spans.inference[row]));
  const slack = op ? model.data.findings?.slack.find((item) => item.op === op.name) : null;
  if (slack) fact("Slack", `${time(slack.slack_ns)}; ${time(slack.path_ns)} of the critical path`);
  return el(
    "div",
    { class: "details-columns" },
    el("div", {}, el("h2", {}, KINDS[spans.kind[row]!] === "wait" ? "Wait" : "Span"), facts),
    el("div", {}, el("h2", {}, "Command"), commandFacts(model, spans.command[row]!)),
    el("div", {}, el("h2", {}, "Dependencies"), dependencies(model, pick, jump)),
  );
}

function commandFacts(model: Model, command: number): HTMLElement {
  const words = model.data.commands;
  if (!words || command < 0 || command >= words.rows)
    return nothing(
      model.data.commands ? "This span belongs to no command." : "The run does not say what commands were made of.",
    );
  const detail = model.commandValue("detail", command) ?? 0;
  const facts = el("dl", { class: "facts" });
  const fact = (label: string, value: string | Node): void =>
    void (value !== "" && facts.append(el("dt", {}, label), el("dd", {}, value)));
  const number = (name: string): number => model.commandValue(name, command) ?? 0;
  fact("Kind", shorten(words.kinds[number("kind")] ?? "", 80));
  fact("Shape", shorten(words.shapes[detail] ?? "", 200));
  const operands = words.operands[detail] ?? [];
  if (operands.length)
    fact(
      "Operands",
      el("ul", { class: "operands" }, ...operands.map((operand) => el("li", {}, longText(operand, 120)))),
    );
  fact("Attributes", shorten((words.attributes[detail] ?? "").replace(/^\{\}$/, ""), 200));
  const parts = costParts(model, command);
  if (parts.length) fact("Cost parts", parts.join(" · "));
  if (number("local_bytes") > 0)
    fact("Local memory", `${bytes(number("local_bytes"))} at 0x${number("local_address").toString(16)}`);
  return facts;
}

function costParts(model: Model, command: number): string[] {
  const words = model.data.commands!;
  const value = (name: string): number => model.commandValue(name, command) ?? 0;
  const route = words.routes[value("route")];
  const parts = [
    value("cycles") > 0
      ? `${count(value("cycles"))} cycles${value("route") >= 0 ? " to issue" : " of the slowest thread"}`
      : "",
  ];
  if (value("macs") > 0) parts.push(`${count(value("macs"))} MACs`);
  if (value("out_bytes") > 0) parts.push(`${bytes(value("out_bytes"))} out`);
  if (value("moved_bytes") > 0)
    parts.push(
      `${bytes(value("moved_bytes"))}${route && value("route") >= 0 ? ` by ${shorten(route, 40)}` : " moved"}`,
    );
  return parts.filter(Boolean);
}

function dependencies(model: Model, pick: Pick, jump: Jump): HTMLElement {
  const { spans, row } = pick;
  const box = el("div", { class: "dependencies" });
  const waited = spans.waitsOn[row]!;
  if (waited >= 0)
    append(box, [el("h3", {}, "Waited for"), list(model, pick, [{ command: waited, data: true }], jump)]);
  else if (spans.kind[row] === WAIT) box.append(nothing("The run does not say what it waited for."));
  const command = spans.command[row]!;
  const before = command >= 0 ? model.before(command) : [];
  const following = command >= 0 ? model.following(command) : [];
  if (before.length)
    append(box, [
      el("h3", {}, el("i", { class: "key before" }), `After (${count(before.length)})`),
      list(model, pick, before, jump),
    ]);
  if (following.length)
    append(box, [
      el("h3", {}, el("i", { class: "key after" }), `Before (${count(following.length)})`),
      list(model, pick, following, jump),
    ]);
  if (!box.childElementCount)
    box.append(nothing(model.hasEdges ? "None is recorded." : "The run has no dependencies."));
  return box;
}

function list(model: Model, pick: Pick, items: Dependency[], jump: Jump): HTMLElement {
  const inference = pick.spans.inference[pick.row]!;
  const lines = items.slice(0, MOST).map(({ command, data }) => {
    const row = model.rowOf(command, inference);
    const sign = data ? "data" : "order";
    if (row < 0) return el("li", {}, `command ${count(command)} · ${sign}`);
    const op = model.opOf(row);
    const label = `${shorten(model.nameOf(row), 40)}${op ? ` ${tailOf(op.name, 44)}` : ""}`;
    return el(
      "li",
      {},
      button(label, () => jump(row), { class: "link" }),
      ` ${sign}, ${placeOf(model, model.laneOf(row))}`,
    );
  });
  if (items.length > MOST) lines.push(el("li", {}, `and ${count(items.length - MOST)} more`));
  return el("ul", {}, ...lines);
}
