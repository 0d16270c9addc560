// What all views of a store share: choices, the filter, and the SQL that they stand for.

import { button, el, type Child } from "../dom";
import { count } from "../format";
import { clean, shorten } from "../text";
import { UNKNOWN_WORD, wordOf, type Cells } from "./cells";

const MOST_LISTED = 300;
const FILTERS = ["target", "backend", "precision", "batch", "cores", "devices", "provenance", "status", "commit"];

/** A choice from a list, with its label before it. */
export function choice<Value extends string | number>(
  label: string,
  options: [Value, string][],
  chosen: Value,
  act: (value: Value) => void,
): HTMLElement {
  const box = el(
    "select",
    {},
    ...options.map(([value, text]) => el("option", { value, selected: value === chosen }, shorten(text, 40))),
  );
  box.addEventListener("change", () => act(options[box.selectedIndex]![0]));
  return el("label", { class: "choice" }, el("span", {}, label), box);
}

/** Metrics to choose from, those first that are no parts of others. */
export const metricOptions = (cells: Cells): [number, string][] =>
  cells.data.metrics.map((metric, number) => [number, metric.sql ? metric.name : `${metric.name} (given)`]);

export const axisOptions = (cells: Cells): [number, string][] =>
  cells.data.axes.map((axis, number) => [number, axis.name]);

/** SQL to copy, which changes with what is shown. */
export class Question {
  readonly root: HTMLElement;
  private readonly text = el("textarea", { class: "whole-name sql", readonly: true, rows: 2, "aria-label": "SQL" });

  constructor() {
    this.text.addEventListener("focus", () => this.text.select());
    this.root = el("details", { class: "question" }, el("summary", {}, "As SQL"), this.text);
  }

  set(sql: string): void {
    this.text.value = sql;
  }
}

/** Words of a model's name, and lists to tick; on a server also a condition in SQL. */
export function filterBar(cells: Cells): HTMLElement {
  const search = el("input", { type: "search", placeholder: "Models …", "aria-label": "Models whose name has" });
  search.addEventListener("input", () => {
    cells.search = search.value;
    cells.change();
  });
  const hits = el("span", { class: "hits", role: "status" });
  const lists = cells.data.axes.flatMap((axis, number) =>
    axis.words.length > 1 && (FILTERS.includes(axis.name) || axis.sql.startsWith("options["))
      ? [ticks(cells, number)]
      : [],
  );
  const clear = button("Clear", () => {
    search.value = cells.search = "";
    cells.choices.forEach((chosen) => chosen.clear());
    cells.change();
  });
  const draw = (): void => {
    const newest = Array.from(cells.column("newest")).filter(Boolean).length;
    hits.textContent = `${count(cells.rows.length)} of ${count(newest)} cells`;
    clear.hidden = !cells.search && cells.choices.every((chosen) => !chosen.size);
    lists.forEach((list) => list.draw());
  };
  cells.onChange(draw);
  draw();
  return el(
    "div",
    { class: "filters tools", role: "search", "aria-label": "Which cells" },
    search,
    ...lists.map((list) => list.root),
    clear,
    hits,
    el("span", { class: "gap" }),
    cells.data.served ? conditionField(cells) : cells.data.where ? el("code", {}, shorten(cells.data.where, 120)) : "",
  );
}

function ticks(cells: Cells, number: number): { root: HTMLElement; draw: () => void } {
  const axis = cells.data.axes[number]!;
  const chosen = cells.choices[number]!;
  const words = axis.words.map((_, word) => word);
  if (cells.axis(number).includes(UNKNOWN_WORD)) words.push(UNKNOWN_WORD);
  const summary = el("summary", {});
  const list = el("div", { class: "ticks" });
  const root = el("details", { class: "filter" }, summary, list);
  const draw = (): void => {
    const [only] = chosen;
    const some = chosen.size === 1 ? shorten(wordOf(axis, only!), 18) : count(chosen.size);
    summary.textContent = chosen.size ? `${axis.name}: ${some}` : axis.name;
    summary.classList.toggle("chosen", chosen.size > 0);
    list.querySelectorAll("input").forEach((box) => (box.checked = chosen.has(Number(box.value))));
  };
  const fill = (): void => {
    if (list.childElementCount) return;
    const boxes = words.slice(0, MOST_LISTED).map((word) => {
      const box = el("input", { type: "checkbox", value: word });
      box.addEventListener("change", () => {
        if (box.checked) chosen.add(word);
        else chosen.delete(word);
        cells.change();
      });
      return el("label", {}, box, " ", shorten(wordOf(axis, word), 60));
    });
    const left = words.length - boxes.length;
    list.append(...boxes, left > 0 ? el("p", { class: "note" }, `${count(left)} more are not listed`) : "");
    draw();
  };
  root.addEventListener("toggle", () => {
    if (!root.open) return;
    fill();
    document.querySelectorAll<HTMLDetailsElement>("details.filter[open]").forEach((other) => {
      if (other !== root) other.open = false;
    });
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") root.open = false;
  });
  addEventListener("pointerdown", (event) => {
    if (!root.contains(event.target as Node)) root.open = false;
  });
  draw();
  return { root, draw };
}

/** A condition that the server asks the store, for what ticks cannot say and for cells that the page has no room for. */
function conditionField(cells: Cells): HTMLElement {
  const field = el("input", {
    type: "search",
    class: "sql",
    value: clean(cells.data.where),
    placeholder: "SQL, such as seconds > 1",
    "aria-label": "Condition in SQL",
  });
  const go = (): void => {
    const words = field.value.trim();
    location.href = words ? `?where=${encodeURIComponent(words)}` : location.pathname;
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go();
  });
  return el("span", { class: "together" }, field, button("Ask", go));
}

/** A view that is worked out and drawn only while it is seen: `renew` when a choice of its own changes. */
export function lazily(
  box: HTMLElement,
  cells: Cells,
  work: () => void,
  draw: () => void = () => undefined,
): { redraw: () => void; renew: () => void } {
  let stale = true;
  const redraw = (): void => {
    if (!box.clientWidth) return;
    if (stale) work();
    stale = false;
    draw();
  };
  new ResizeObserver(redraw).observe(box);
  const renew = (): void => {
    stale = true;
    redraw();
  };
  cells.onChange(renew);
  return { redraw, renew };
}

export const note = (...words: Child[]): HTMLElement => el("p", { class: "note" }, ...words);
