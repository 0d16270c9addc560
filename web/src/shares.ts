// Parts of the wall time: a bar, and the same colour for the same cause on every page.

import type { Share } from "./contract";
import { el } from "./dom";
import { percent, time } from "./format";
import { shorten } from "./text";

const CAUSES: Record<string, number> = {
  compute: 0, memory: 1, layout: 2, wait: 3, link: 4, launch: 5, "host-link": 6, host: 7, unknown: 8,
}; // prettier-ignore
const LEAST_LABEL = 0.03;

/** Class of a cause; those that are not known by name take their turn. */
export const causeClass = (cause: string, number: number): string => `c${CAUSES[cause] ?? number % 8}`;

export function shareBar(shares: Share[]): HTMLElement {
  const words = shares.map((part) => `${part.cause} ${percent(part.share)}`).join(", ");
  const bar = el("div", { class: "share-bar", role: "img", "aria-label": words });
  shares.forEach((part, number) => {
    const title = `${shorten(part.cause, 80)}: ${time(part.ns)}, ${percent(part.share)}`;
    const piece = el("i", { class: causeClass(part.cause, number), title });
    piece.style.flexGrow = String(Math.max(part.share, 0));
    if (part.share >= LEAST_LABEL) piece.append(el("b", {}, shorten(part.cause, 18)));
    bar.append(piece);
  });
  return bar;
}
