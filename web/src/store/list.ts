// Every cell that fits, as rows to sort.

import { button, el, section } from "../dom";
import { provenance } from "../provenance";
import { SortTable, type Col } from "../table";
import { shorten } from "../text";
import { TOLD_AFTERWARDS, type Fleet } from "./cells";
import { choice, lazily, metricOptions, Question } from "./controls";
import { detail, runLink } from "./detail";

export function list(fleet: Fleet): HTMLElement {
  const { cells } = fleet;
  const { axes, metrics } = cells.data;
  let metric = Math.max(cells.metricNamed("latency"), 0);
  const card = el("div", {});
  const question = new Question();
  const open = (row: number): void => {
    card.replaceChildren(detail(cells, row, [], open));
    card.scrollIntoView({ block: "nearest" });
  };
  const shown = axes
    .map((_, number) => number)
    .filter(
      (number) =>
        number > 0 && (!TOLD_AFTERWARDS.has(axes[number]!.name) || ["status", "bound"].includes(axes[number]!.name)),
    );
  const columns: Col<number>[] = [
    {
      label: "Model",
      value: (row) => cells.axis(0)[row]!, // words are in their order
      cell: (row) => button(shorten(cells.word(0, row), 60), () => open(row), { class: "link" }),
    },
    {
      label: "Value",
      number: true,
      value: (row) => (Number.isNaN(cells.metric(metric)[row]!) ? null : cells.metric(metric)[row]!),
      cell: (row) => cells.text(metric, row),
    },
    ...shown.map((number): Col<number> => ({
      label: axes[number]!.name,
      number: axes[number]!.number,
      value: (row) => (cells.axis(number)[row]! < 0 ? null : cells.axis(number)[row]!),
      cell: (row) =>
        axes[number]!.name === "provenance" && cells.axis(number)[row]! >= 0
          ? provenance(cells.word(number, row))
          : shorten(cells.word(number, row), 40),
    })),
    {
      label: "Run",
      value: (row) => (cells.run(row) === null ? null : 0),
      cell: (row) => runLink(cells, row, "page") ?? "—",
    },
  ];
  const table = new SortTable(columns, 0, false, "Cells");
  const root = el("div", {});
  const { renew } = lazily(root, cells, () => {
    table.set(Array.from(cells.rows));
    question.set(cells.sql(["model", ...shown.map((number) => axes[number]!.sql), metrics[metric]!.sql, "run"]));
  });
  root.append(
    card,
    section(
      "Cells",
      el(
        "div",
        { class: "tools" },
        choice("Value", metricOptions(cells), metric, (value) => {
          metric = value;
          renew();
        }),
      ),
      table.root,
      question.root,
    ),
  );
  return root;
}
