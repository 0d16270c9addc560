// Ops whose cost is not known: the totals are of the others, and so a lower bound.

import type { OpInfo, PageData } from "./contract";
import { count, time } from "./format";
import { notice } from "./notices";
import { prose, shorten } from "./text";

const MOST_NAMED = 5;

export const unknownOps = (data: Pick<PageData, "ops">): OpInfo[] => data.ops.filter((op) => op.unknown);

/** "2 of 14 ops have no known cost" */
export function howMany(data: Pick<PageData, "ops">): string {
  const unknown = unknownOps(data).length;
  return `${count(unknown)} of ${count(data.ops.length)} ops ${unknown === 1 ? "has" : "have"} no known cost`;
}

/** A line for every reason, with the ops it is true of; the first few ops, then how many more there are. */
export function reasons(data: Pick<PageData, "ops">): string[] {
  const unknown = unknownOps(data);
  const shown = unknown.slice(0, MOST_NAMED);
  const lines = [...new Set(shown.map((op) => op.unknown))].map((reason) => {
    const names = shown.filter((op) => op.unknown === reason);
    return `${names.map((op) => `${shorten(op.name, 80)} (${shorten(op.type, 40)})`).join(", ")}: ${prose(reason, 300)}`;
  });
  return unknown.length > shown.length ? [...lines, `and ${count(unknown.length - shown.length)} more`] : lines;
}

/** The notice; nothing where every cost is known. */
export function unknownNotice(data: Pick<PageData, "ops">): HTMLElement | string {
  if (!unknownOps(data).length) return "";
  return notice(howMany(data), "Times, MACs and bytes on this page are of the others.", reasons(data));
}

/** A time, or the least that it can be. */
export const timeOrLeast = (value: number | null, low: number | null): string =>
  value === null && low !== null ? `at least ${time(low)}` : time(value);
