// Which colour a span has: by the type of its op, its layer or its engine; the largest get a colour of their own.

import type { Model } from "../model";
import { colourNumbers } from "../palette";
import { BARRIER, HOST, PHASE, WAIT } from "../spans";

export type ColourBy = "type" | "layer" | "name";
export const COLOUR_BY: Record<ColourBy, string> = { type: "op type", layer: "layer", name: "command" };

export type Colouring = { ofOp: Uint8Array; ofName: Uint8Array; legend: { label: string; number: number }[] };

/** The part of a name up to and including its first number: the layer it is of. */
export function layerOf(name: string): string {
  const match = /^(.*?\d+)(?=[/._:]|$)/.exec(name.slice(0, 400));
  if (match) return match[1]!;
  const slash = name.slice(0, 400).lastIndexOf("/");
  return slash > 0 ? name.slice(0, slash) : name.slice(0, 400);
}

export function colouring(model: Model, by: ColourBy): Colouring {
  const { spans, data } = model;
  const opKey = data.ops.map((op) => (by === "type" ? op.type || op.name : by === "layer" ? layerOf(op.name) : ""));
  const opTime = new Float64Array(data.ops.length);
  const nameTime = new Float64Array(data.names.length);
  for (let row = 0; row < spans.rows; row++) {
    const kind = spans.kind[row];
    if (kind === WAIT || kind === BARRIER || kind === PHASE) continue;
    const op = spans.op[row]!;
    if (kind === HOST && op < 0) continue; // calls around the work would take the colours of the work
    if (op >= 0 && by !== "name") opTime[op]! += spans.length[row]!;
    else nameTime[spans.name[row]!]! += spans.length[row]!;
  }
  const weights = new Map<string, number>();
  const add = (key: string, time: number): void => void (time > 0 && weights.set(key, (weights.get(key) ?? 0) + time));
  opKey.forEach((key, op) => add(key, opTime[op]!));
  data.names.forEach((name, number) => add(name, nameTime[number]!));
  const numbers = colourNumbers(weights);
  const number = (key: string): number => numbers.get(key) ?? 8;
  const legend = [...numbers.entries()]
    .filter(([, place]) => place < 8)
    .map(([label, place]) => ({ label, number: place }));
  return { ofOp: Uint8Array.from(opKey, number), ofName: Uint8Array.from(data.names, number), legend };
}
