// The cells of a store in columns, the filter that they are under, and that filter as SQL.

import type { Column } from "../columns";
import type { StoreAxis, StoreData, StoreMetric } from "../contract";
import { inUnit } from "../format";
import { block } from "../model";
import type { Themed } from "../state";

export const UNKNOWN_WORD = -1;

export type Fleet = Themed & { cells: Cells };

export class Cells {
  readonly choices: Set<number>[]; // by axis: words that are let through; none: all
  search = "";
  rows: Uint32Array = new Uint32Array(0); // that fit, the newest of each series
  all: Uint32Array = new Uint32Array(0); // that fit, earlier ones too
  private readonly listeners: (() => void)[] = [];
  private columns = new Map<string, Column>();
  private statuses: Column = new Int32Array(0);
  private fine = UNKNOWN_WORD; // the word for a cell that has figures

  constructor(readonly data: StoreData) {
    this.choices = data.axes.map(() => new Set());
  }

  async load(): Promise<void> {
    const table = await block("cells");
    if (!table) throw new Error("the cells of this page are missing");
    this.columns = table.columns;
    const status = this.axisNamed("status");
    this.statuses = this.axis(status);
    this.fine = this.data.axes[status]!.words.indexOf("ok");
    this.apply();
  }

  column(name: string): Column {
    return this.columns.get(name)!;
  }

  axis = (number: number): Column => this.column(`a${number}`);
  metric = (number: number): Column => this.column(`m${number}`);
  axisNamed = (name: string): number => this.data.axes.findIndex((axis) => axis.name === name);
  metricNamed = (name: string): number => this.data.metrics.findIndex((metric) => metric.name === name);

  /** The word of a row on an axis; a dash where it is not known. */
  word(axis: number, row: number): string {
    return wordOf(this.data.axes[axis]!, this.axis(axis)[row]!);
  }

  /** The word on an axis that not every store has. */
  named(name: string, row: number): string {
    const axis = this.axisNamed(name);
    return axis < 0 ? "" : this.word(axis, row);
  }

  id(row: number): string {
    const half = (name: string): string => this.column(name)[row]!.toString(16).padStart(8, "0");
    return half("id0") + half("id1");
  }

  reason = (row: number): string => this.data.reasons[this.column("reason")[row]!] ?? "";
  run = (row: number): string | null => this.data.runs[this.column("run")[row]!] ?? null;
  isOk = (row: number): boolean => this.statuses[row] === this.fine;
  when = (row: number): string =>
    new Date(1000 * this.column("created")[row]!).toISOString().slice(0, 16).replace("T", " ") + " UTC";

  /** A value for people, and its range where that says more. */
  text(metric: number, row: number): string {
    return show(this.data.metrics[metric]!, this.metric(metric)[row]!);
  }

  range(metric: number, row: number): string {
    if (!this.data.metrics[metric]!.ranged) return "";
    const [low, high] = ["l", "h"].map((end) =>
      show(this.data.metrics[metric]!, this.column(`${end}${metric}`)[row]!),
    ) as [string, string];
    return low === high ? "" : `${low} – ${high}`;
  }

  /** How many of the rows that fit have each word of an axis. */
  counted(axis: number): Map<string, number> {
    if (axis < 0) return new Map();
    const { words } = this.data.axes[axis]!;
    const column = this.axis(axis);
    const counts = new Uint32Array(words.length);
    for (const row of this.rows) if (column[row]! >= 0) counts[column[row]!]!++;
    return new Map(words.map((word, number): [string, number] => [word, counts[number]!]).filter(([, n]) => n));
  }

  /** A number for each row, the same for rows that have the same words on all of the axes. */
  together(rows: ArrayLike<number>, axes: number[]): Float64Array {
    const found = new Float64Array(rows.length);
    for (const axis of axes) {
      const column = this.axis(axis);
      const size = this.data.axes[axis]!.words.length + 1;
      const numbers = new Map<number, number>();
      for (let i = 0; i < rows.length; i++) {
        const key = found[i]! * size + column[rows[i]!]! + 1;
        let number = numbers.get(key);
        if (number === undefined) numbers.set(key, (number = numbers.size));
        found[i] = number;
      }
    }
    return found;
  }

  onChange(act: () => void): void {
    this.listeners.push(act);
  }

  change(): void {
    this.apply();
    this.listeners.forEach((act) => act());
  }

  private apply(): void {
    const { rows, axes } = this.data;
    const fits = new Uint8Array(rows).fill(1);
    this.choices.forEach((chosen, number) => {
      if (!chosen.size) return;
      const column = this.axis(number);
      for (let row = 0; row < rows; row++) if (!chosen.has(column[row]!)) fits[row] = 0;
    });
    const words = this.search.trim().toLowerCase();
    if (words) {
      const found = axes[0]!.words.map((word) => word.toLowerCase().includes(words));
      const column = this.axis(0);
      for (let row = 0; row < rows; row++) if (!found[column[row]!]) fits[row] = 0;
    }
    const newest = this.column("newest");
    this.all = new Uint32Array(fits.reduce((sum, fit) => sum + fit, 0));
    for (let row = 0, place = 0; row < rows; row++) if (fits[row]) this.all[place++] = row;
    this.rows = this.all.filter((row) => newest[row]);
  }

  /** The same rows of `latest` (or of `cells`), asked of the store itself. */
  sql(columns: string[], { from = "latest", more = [] as string[] } = {}): string {
    const parts = [this.data.where ? `(${this.data.where})` : "", ...this.conditions(), ...more].filter(Boolean);
    const where = parts.length ? ` WHERE ${parts.join(" AND ")}` : "";
    return `SELECT ${[...new Set(columns)].filter(Boolean).join(", ")} FROM ${from}${where} ORDER BY ALL`;
  }

  private conditions(): string[] {
    const found = this.choices.map((chosen, number) => condition(this.data.axes[number]!, chosen));
    const words = this.search.trim().toLowerCase();
    return words ? [...found, `contains(lower(model), ${quoted(words)})`] : found;
  }
}

export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export function condition(axis: StoreAxis, chosen: Set<number>): string {
  if (!chosen.size) return "";
  const words = [...chosen].filter((word) => word >= 0).sort((a, b) => a - b);
  const listed = words.length ? `${axis.sql} IN (${words.map((word) => quoted(axis.words[word]!)).join(", ")})` : "";
  const unknown = chosen.has(UNKNOWN_WORD) ? `${axis.sql} IS NULL` : "";
  return listed && unknown ? `(${listed} OR ${unknown})` : listed || unknown;
}

export const wordOf = (axis: StoreAxis, word: number): string => axis.words[word] ?? "—";

export const show = (metric: StoreMetric, value: number): string =>
  inUnit(Number.isNaN(value) ? null : value, metric.unit);

/** Whether one value is better; a metric without a better way has none. */
export function isBetter(metric: StoreMetric, value: number, than: number): boolean {
  if (Number.isNaN(value)) return false;
  return Number.isNaN(than) || (metric.better === "more" ? value > than : value < than);
}

/** What cells of one configuration share: every axis that somebody chose, and how figures were obtained. */
export const TOLD_AFTERWARDS = new Set(["status", "bound", "finding", "commit", "sweep", "host"]);

/** Axes on which some of the rows that have figures differ. */
export function differing(cells: Cells, rows: ArrayLike<number>, without: number[] = []): number[] {
  return cells.data.axes
    .map((_, number) => number)
    .filter((number) => {
      if (without.includes(number) || TOLD_AFTERWARDS.has(cells.data.axes[number]!.name)) return false;
      const column = cells.axis(number);
      let first: number | undefined;
      for (let i = 0; i < rows.length; i++) {
        if (!cells.isOk(rows[i]!)) continue;
        first ??= column[rows[i]!]!;
        if (column[rows[i]!] !== first) return true;
      }
      return false;
    });
}

/** `resnet50 · aic100-std · precision=i8`: models and targets by their names, other axes with theirs. */
export function labelOf(cells: Cells, axes: number[], row: number): string {
  return axes
    .map((number) => {
      const { name } = cells.data.axes[number]!;
      const word = cells.word(number, row);
      return ["model", "target", "provenance", "backend"].includes(name) ? word : `${name}=${word}`;
    })
    .join(" · ");
}
