// The Run behind a page: data, and the blocks beside it, unpacked when first needed.

import { bytesOf, inflate, readTable, type Column, type Table } from "./columns";
import type { PageData } from "./contract";
import { fill, pageSpans, type Spans } from "./spans";

export type Dependency = { command: number; data: boolean };
export type Path = {
  rows: number;
  start: Float64Array;
  length: Float64Array;
  row: Int32Array;
  cause: Int32Array;
  after: Int32Array;
};

type Lists = { first: Int32Array; item: Int32Array; data: Uint8Array };

export class Model {
  readonly spans: Spans;
  commands: Table | null = null;
  counters: Table | null = null;
  path: Path | null = null;
  private edges: Table | null = null;
  private incoming: Lists | null = null;
  private outgoing: Lists | null = null;
  private rowsByCommand: { first: Int32Array; row: Int32Array } | null = null;
  private opNumbers: Map<string, number[]> | null = null;
  private rowsByOp: { first: Int32Array; row: Int32Array } | null = null;

  constructor(readonly data: PageData) {
    this.spans = pageSpans(data);
  }

  /** Unpack every block that the document holds. */
  async load(): Promise<void> {
    const named = await Promise.all(["commands", "edges", "counters", "path"].map(block));
    [this.commands, this.edges, this.counters] = named as [Table | null, Table | null, Table | null, Table | null];
    const path = named[3];
    if (path) this.path = pathOf(path);
    const { pieces, piece_rows } = this.data.spans;
    await Promise.all(
      Array.from({ length: pieces }, async (_, number) => {
        const table = await block(`spans-${number}`);
        if (!table) throw new Error(`block spans-${number} is missing`);
        fill(this.spans, table, number * piece_rows);
      }),
    );
  }

  column(name: string): Column | null {
    return this.commands?.columns.get(name) ?? null;
  }

  commandValue(name: string, command: number): number | null {
    const column = this.column(name);
    return column && command >= 0 && command < column.length ? column[command]! : null;
  }

  get hasEdges(): boolean {
    return this.edges !== null;
  }

  /** What a command waits for. */
  before(command: number): Dependency[] {
    this.incoming ??= this.lists("target", "source");
    return listed(this.incoming, command);
  }

  /** What waits for a command. */
  following(command: number): Dependency[] {
    this.outgoing ??= this.lists("source", "target");
    return listed(this.outgoing, command);
  }

  private lists(by: string, of: string): Lists {
    const keys = this.edges?.columns.get(by) ?? new Int32Array(0);
    const items = this.edges?.columns.get(of) ?? new Int32Array(0);
    const data = this.edges?.columns.get("data") ?? new Int32Array(0);
    const { first, order } = grouped(keys);
    return { first, item: Int32Array.from(order, (i) => items[i]!), data: Uint8Array.from(order, (i) => data[i]!) };
  }

  /** Rows of the timeline that a command left, all inferences. */
  rowsOf(command: number): number[] {
    if (!this.rowsByCommand) {
      const { first, order } = grouped(this.spans.command);
      this.rowsByCommand = { first, row: order };
    }
    const { first, row } = this.rowsByCommand;
    return command >= 0 && command + 1 < first.length ? [...row.subarray(first[command]!, first[command + 1]!)] : [];
  }

  /** The row of a command in one inference: where it works, rather than where it waits. */
  rowOf(command: number, inference: number): number {
    const rows = this.rowsOf(command).filter((row) => this.spans.inference[row] === inference);
    const rank = (row: number): number => (this.spans.kind[row] === 4 ? 0 : this.spans.kind[row] === 1 ? 1 : 2);
    return rows.sort((a, b) => rank(a) - rank(b))[0] ?? -1;
  }

  /** Rows of one op. */
  rowsOfOp(op: number): Int32Array {
    if (!this.rowsByOp) {
      const { first, order } = grouped(this.spans.op);
      this.rowsByOp = { first, row: order };
    }
    const { first, row } = this.rowsByOp;
    return op >= 0 && op + 1 < first.length ? row.subarray(first[op]!, first[op + 1]!) : new Int32Array(0);
  }

  opsNamed(name: string): number[] {
    this.opNumbers ??= this.data.ops.reduce((all, op, number) => {
      const known = all.get(op.name);
      if (known) known.push(number);
      else all.set(op.name, [number]);
      return all;
    }, new Map<string, number[]>());
    return this.opNumbers.get(name) ?? [];
  }

  laneOf(row: number): number {
    const { laneFirst } = this.spans;
    let low = 0;
    let high = laneFirst.length - 1;
    while (low + 1 < high) {
      const middle = (low + high) >>> 1;
      if (laneFirst[middle]! <= row) low = middle;
      else high = middle;
    }
    return low;
  }

  nameOf(row: number): string {
    return this.data.names[this.spans.name[row]!] ?? "";
  }

  opOf(row: number): PageData["ops"][number] | null {
    return this.data.ops[this.spans.op[row]!] ?? null;
  }
}

/** Positions by key, keys below 0 left out: a counting sort. */
export function grouped(keys: ArrayLike<number>): { first: Int32Array; order: Int32Array } {
  let most = -1;
  for (let i = 0; i < keys.length; i++) if (keys[i]! > most) most = keys[i]!;
  const first = new Int32Array(most + 2);
  for (let i = 0; i < keys.length; i++) if (keys[i]! >= 0) first[keys[i]! + 1]!++;
  for (let i = 1; i < first.length; i++) first[i]! += first[i - 1]!;
  const next = first.slice();
  const order = new Int32Array(first[first.length - 1] ?? 0);
  for (let i = 0; i < keys.length; i++) if (keys[i]! >= 0) order[next[keys[i]!]!++] = i;
  return { first, order };
}

function listed(lists: Lists, command: number): Dependency[] {
  if (command < 0 || command + 1 >= lists.first.length) return [];
  const found: Dependency[] = [];
  for (let i = lists.first[command]!; i < lists.first[command + 1]!; i++)
    found.push({ command: lists.item[i]!, data: lists.data[i] === 1 });
  return found;
}

function pathOf(table: Table): Path {
  const whole = (name: string): Int32Array => Int32Array.from(table.columns.get(name) ?? []);
  const real = (name: string): Float64Array => Float64Array.from(table.columns.get(name) ?? []);
  return {
    rows: table.rows,
    start: real("start"),
    length: real("length"),
    row: whole("row"),
    cause: whole("cause"),
    after: whole("after"),
  };
}

/** A table of numbers that the document holds; null: it has none of that name. */
export async function block(name: string): Promise<Table | null> {
  const element = document.getElementById(`block-${name}`);
  if (!element) return null;
  const table = readTable(await inflate(bytesOf(element.textContent ?? "")));
  element.remove(); // its text is as large as the table
  return table;
}
