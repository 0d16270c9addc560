// A table to sort and filter. Only so many rows are in the document; the rest come when asked for.

import { button, el, scrollBox, type Child } from "./dom";
import { count } from "./format";

const STEP = 200;

export type Col<Row> = {
  label: string;
  title?: string;
  value: (row: Row) => number | string | null; // to sort by; null: unknown, always last
  cell: (row: Row) => Child;
  number?: boolean;
};

export class SortTable<Row> {
  readonly root = el("div", { class: "table-box" });
  private readonly body = el("tbody");
  private readonly totals = el("tfoot");
  private readonly more = el("p", { class: "more" });
  private readonly heads: HTMLTableCellElement[];
  private rows: Row[] = [];
  private shown = STEP;

  constructor(
    private readonly columns: Col<Row>[],
    private sorted: number,
    private descending: boolean,
    caption: string,
  ) {
    this.heads = columns.map((column, number) => {
      const head = el("th", { scope: "col", class: column.number ? "number" : "", title: column.title ?? null });
      head.append(button(column.label, () => this.sortBy(number)));
      return head;
    });
    const table = el(
      "table",
      { class: "sortable" },
      el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, ...this.heads)),
      this.body,
      this.totals,
    );
    this.root.append(
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table),
      this.more,
    );
  }

  set(rows: Row[]): void {
    this.rows = [...rows];
    this.shown = STEP;
    this.order();
  }

  /** A last row that stays where it is, a cell per column. */
  foot(cells: Child[]): void {
    this.totals.replaceChildren(this.row((_, number) => cells[number]));
  }

  private row(cell: (column: Col<Row>, number: number) => Child): HTMLElement {
    const cells = this.columns.map((column, number) =>
      el("td", { class: column.number ? "number" : "" }, cell(column, number)),
    );
    return el("tr", {}, ...cells);
  }

  private sortBy(number: number): void {
    this.descending = number === this.sorted ? !this.descending : this.columns[number]!.number === true;
    this.sorted = number;
    this.order();
  }

  private order(): void {
    this.rows.sort(comparing(this.columns[this.sorted]!.value, this.descending));
    this.heads.forEach((head, number) => {
      if (number === this.sorted) head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.draw();
  }

  private draw(): void {
    this.body.replaceChildren(...this.rows.slice(0, this.shown).map((row) => this.row((column) => column.cell(row))));
    const left = this.rows.length - this.shown;
    this.more.replaceChildren(
      ...(left > 0
        ? [
            `${count(this.shown)} of ${count(this.rows.length)} rows. `,
            button(`Show ${count(Math.min(left, STEP))} more`, () => {
              this.shown += STEP;
              this.draw();
            }),
          ]
        : []),
    );
  }
}

export function comparing<Row>(
  value: (row: Row) => number | string | null,
  descending: boolean,
): (a: Row, b: Row) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const x = value(a);
    const y = value(b);
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    if (typeof x === "string" || typeof y === "string")
      return sign * String(x).localeCompare(String(y), "en", { numeric: true });
    return sign * (x - y);
  };
}

/** A table to read that starts with so many rows; the others come when asked for. */
export function firstRows(heads: string[], numbers: number, rows: Child[][], most: number, wide = -1): HTMLElement {
  const box = el("div", {}, plainTable(heads, numbers, rows.slice(0, most), wide));
  if (rows.length > most)
    box.append(
      el(
        "p",
        { class: "more" },
        button(
          `All ${count(rows.length)} rows`,
          () => {
            box.replaceChildren(plainTable(heads, numbers, rows, wide));
            box.querySelector<HTMLElement>(".scroll")!.focus();
          },
          { class: "link" },
        ),
      ),
    );
  return box;
}

/** A table to read: text first, numbers from column `numbers` on; a bar may take what room there is. Tables with the same
 * heads need a label each. */
export function plainTable(
  heads: string[],
  numbers: number,
  rows: Child[][],
  wide = -1,
  label = heads.filter(Boolean).join(", ") || "Table",
): HTMLElement {
  const name = (i: number): string => (i >= numbers ? "number" : i === wide ? "wide" : "");
  const head = el(
    "tr",
    {},
    ...heads.map((label, i) =>
      label ? el("th", { scope: "col", class: name(i) }, label) : el("td", { class: name(i) }),
    ),
  );
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell, i) => el("td", { class: name(i) }, cell))));
  const table = el(
    "table",
    { class: "plain" },
    heads.some(Boolean) ? el("thead", {}, head) : "",
    el("tbody", {}, ...body),
  );
  return scrollBox(label, table);
}
