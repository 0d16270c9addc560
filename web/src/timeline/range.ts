// What happened between two moments: time by type of op, over all lanes.

import { meter } from "../dom";
import { count, percent, time } from "../format";
import type { Model } from "../model";
import { BARRIER, KINDS, PHASE, WAIT } from "../spans";
import { plainTable } from "../table";
import { shorten } from "../text";

const MOST = 12;

export type Part = { label: string; ns: number; spans: number };

/** Time of every type of op, and of waits, inside the range; a span that crosses its ends counts for what is inside. */
export function partsOf(model: Model, [from, to]: [number, number]): Part[] {
  const { spans, data } = model;
  const sums = new Map<string, Part>();
  for (let row = 0; row < spans.rows; row++) {
    const inside = Math.min(spans.start[row]! + spans.length[row]!, to) - Math.max(spans.start[row]!, from);
    const kind = spans.kind[row]!;
    if (inside <= 0 || kind === PHASE) continue;
    const op = data.ops[spans.op[row]!];
    const label =
      kind === WAIT || kind === BARRIER ? `${KINDS[kind]}s` : op?.type || data.names[spans.name[row]!] || "";
    const part = sums.get(label) ?? { label, ns: 0, spans: 0 };
    part.ns += inside;
    part.spans++;
    sums.set(label, part);
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

export function rangeTable(model: Model, range: [number, number]): HTMLElement {
  const parts = partsOf(model, range);
  const whole = parts.reduce((sum, part) => sum + part.ns, 0) || 1;
  const share = (part: Part): number => part.ns / whole;
  const rows = parts
    .slice(0, MOST)
    .map((part) => [
      shorten(part.label, 48),
      meter(share(part)),
      time(part.ns),
      percent(share(part)),
      count(part.spans),
    ]);
  return plainTable(["Type", "", "Time of all lanes", "Share", "Spans"], 2, rows);
}
