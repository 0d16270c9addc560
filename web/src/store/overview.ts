// What the store holds, in a line of key numbers, and why some cells have no figures.

import { el, section } from "../dom";
import { count, counted } from "../format";
import { firstRows } from "../table";
import { prose, shorten } from "../text";
import type { Cells } from "./cells";
import { lazily } from "./controls";
import { statusOf } from "./detail";

const FIRST_REASONS = 8;

/** Key numbers of what the filter lets through. */
export function summary(cells: Cells): HTMLElement {
  const box = el("div", { class: "cards many summary" });
  lazily(box, cells, () => {
    const words = (name: string): Map<string, number> => cells.counted(cells.axisNamed(name));
    const distinct = (name: string): number => words(name).size;
    const with_ = (status: string): number => words("status").get(status) ?? 0;
    const newest = cells.rows.reduce((most, row) => Math.max(most, cells.column("created")[row]!), 0);
    const card = (label: string, value: string, note: string): HTMLElement =>
      el(
        "div",
        { class: "key-number", "data-key": label.toLowerCase() },
        el("p", { class: "label" }, label),
        el("p", { class: "value" }, value),
        el("p", { class: "card-note" }, note),
      );
    box.replaceChildren(
      card(
        "Cells",
        count(cells.rows.length),
        `${count(with_("ok"))} with figures${cells.all.length > cells.rows.length ? `; ${count(cells.all.length)} with earlier ones` : ""}`,
      ),
      card(
        "Models",
        count(distinct("model")),
        distinct("precision") ? counted(distinct("precision"), "precision") : "as they are",
      ),
      card("Targets", count(distinct("target")), counted(distinct("backend"), "backend")),
      card("Failed", count(with_("failed")), "crashed, or took too long or too much memory"),
      card("Refused", count(with_("refused")), "opscope or the backend said why"),
      card(
        "Newest",
        newest ? new Date(1000 * newest).toISOString().slice(0, 10) : "—",
        shorten([...words("provenance").keys()].join(", "), 60),
      ),
    );
  });
  return box;
}

/** Reasons, those of most cells first. */
export function reasons(cells: Cells): HTMLElement {
  const box = el("div", {});
  lazily(box, cells, () => {
    const groups = new Map<string, { cells: number; models: Set<string>; targets: Set<string> }>();
    for (const row of cells.rows) {
      if (cells.isOk(row) && !cells.reason(row)) continue;
      const key = `${statusOf(cells, row)}\n${cells.reason(row)}`;
      const group = groups.get(key) ?? { cells: 0, models: new Set(), targets: new Set() };
      group.cells++;
      group.models.add(cells.word(0, row));
      group.targets.add(cells.named("target", row));
      groups.set(key, group);
    }
    const some = (words: Set<string>): string =>
      words.size > 2 ? `${count(words.size)}` : shorten([...words].join(", "), 60);
    const rows = [...groups.entries()]
      .sort((a, b) => b[1].cells - a[1].cells)
      .map(([key, group]) => {
        const [status, reason] = key.split("\n") as [string, string];
        return [
          el("span", { class: "words" }, prose(reason || "no reason was kept", 300)),
          status,
          some(group.models),
          some(group.targets),
          count(group.cells),
        ];
      });
    box.replaceChildren(
      ...(rows.length
        ? [
            section(
              "Cells without figures, or without totals",
              firstRows(["Reason", "Status", "Models", "Targets", "Cells"], 4, rows, FIRST_REASONS),
            ),
          ]
        : []),
    );
  });
  return box;
}
