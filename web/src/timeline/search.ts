// Search over names of ops and commands: which spans match, in order of time.

import type { Model } from "../model";
import { PHASE } from "../spans";
import type { Flags } from "./scene";

const MOST = 100_000; // rows to step through

export type Found = { flags: Flags; rows: Int32Array; total: number };

export function search(model: Model, words: string): Found | null {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return null;
  const has = (text: string): number => (text.toLowerCase().includes(wanted) ? 1 : 0);
  const flags = {
    op: Uint8Array.from(model.data.ops, (op) => has(op.name) | has(op.type)),
    name: Uint8Array.from(model.data.names, has),
  };
  return { flags, ...matching(model, flags) };
}

/** Rows of certain ops, for a link from another tab. */
export function rowsOfOps(model: Model, ops: Iterable<number>): Found {
  const flags = { op: new Uint8Array(model.data.ops.length), name: new Uint8Array(model.data.names.length) };
  for (const op of ops) flags.op[op] = 1;
  return { flags, ...matching(model, flags) };
}

function matching(model: Model, flags: NonNullable<Flags>): { rows: Int32Array; total: number } {
  const { spans } = model;
  const rows: number[] = [];
  let total = 0;
  for (let row = 0; row < spans.rows; row++) {
    const op = spans.op[row]!;
    if (spans.kind[row] === PHASE || !((op >= 0 && flags.op[op]) || flags.name[spans.name[row]!])) continue;
    total++;
    if (rows.length < MOST) rows.push(row);
  }
  const sorted = Int32Array.from(rows).sort((a, b) => spans.start[a]! - spans.start[b]! || a - b);
  return { rows: sorted, total };
}
