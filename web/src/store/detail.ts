// One cell: what it is, every figure that it has, and the way to its run.

import { el, section, type Child } from "../dom";
import { count } from "../format";
import { provenance } from "../provenance";
import { plainTable } from "../table";
import { prose, shorten } from "../text";
import { type Cells } from "./cells";

const MOST_OTHERS = 50;

/** Choose a cell among those that fall together. */
export function detail(cells: Cells, row: number, others: ArrayLike<number>, pick: (row: number) => void): HTMLElement {
  const { axes, metrics } = cells.data;
  const facts = el("dl", { class: "facts" });
  axes.forEach((axis, number) => {
    const word = cells.word(number, row);
    if (word !== "—") facts.append(el("dt", {}, axis.name), el("dd", {}, shorten(word, 200)));
  });
  facts.append(el("dt", {}, "made"), el("dd", {}, cells.when(row)));
  facts.append(el("dt", {}, "id"), el("dd", {}, el("code", {}, `${cells.id(row)}…`)));
  const values = metrics
    .map((_, number) => number)
    .filter((number) => !Number.isNaN(cells.metric(number)[row]!))
    .map((number): Child[] => [
      metrics[number]!.name,
      cells.text(number, row),
      cells.range(number, row),
      provenance(metrics[number]!.sql ? cells.named("provenance", row) : "given"),
    ]);
  const title = `${shorten(cells.word(0, row), 60)} on ${shorten(cells.named("target", row), 60)}`;
  const reason = cells.reason(row);
  return section(
    title,
    reason ? el("p", { class: "reason" }, el("b", {}, `${statusOf(cells, row)}: `), prose(reason, 400)) : "",
    runLink(cells, row, "Open the page of its run") ?? "",
    el(
      "div",
      { class: "columns" },
      el("div", {}, values.length ? plainTable(["Metric", "Value", "Range", ""], 1, values) : ""),
      el("div", {}, facts, together(cells, row, others, pick)),
    ),
  );
}

/** Of a cell that a reason was kept for: where it has figures, some are not known. */
export const statusOf = (cells: Cells, row: number): string =>
  cells.isOk(row) ? "not known" : cells.named("status", row);

/** A link to the page of a cell's run; null: it was not kept. */
export function runLink(cells: Cells, row: number, words: string): HTMLElement | null {
  const address = cells.run(row);
  return address === null ? null : el("a", { class: "link", href: address }, words);
}

function together(cells: Cells, row: number, others: ArrayLike<number>, pick: (row: number) => void): Child {
  if (others.length < 2) return "";
  const box = el(
    "select",
    { "aria-label": "Cells in this place" },
    ...Array.from(others)
      .slice(0, MOST_OTHERS)
      .map((other) => el("option", { value: other, selected: other === row }, shorten(tellingOf(cells, other), 90))),
  );
  box.addEventListener("change", () => pick(Number(box.value)));
  return el(
    "p",
    { class: "note" },
    `${count(others.length)} cells fall into this place, and the map shows the best: `,
    box,
  );
}

const tellingOf = (cells: Cells, row: number): string =>
  cells.data.axes
    .map((axis, number) => (["model", "target", "status"].includes(axis.name) ? "" : cells.word(number, row)))
    .filter((word) => word && word !== "—")
    .join(" · ");
