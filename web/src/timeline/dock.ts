// Below the timeline: what is selected, in a sentence and in full.

import { el, nothing } from "../dom";
import { time } from "../format";
import type { Model } from "../model";
import { details, sentence } from "./details";
import { rangeTable } from "./range";
import type { Pick } from "./scene";

const HINT = "Click a span for its operands, cost and dependencies. Shift-drag measures a range; ? lists the keys.";

export class Dock {
  readonly root = el("section", { class: "dock", "aria-label": "Selection" });
  private readonly said = el("p", { class: "said", id: "timeline-said", role: "status", "aria-live": "polite" });

  constructor(
    private readonly model: Model,
    private readonly jump: (row: number) => void,
  ) {
    this.show(null);
  }

  show(pick: Pick | null): void {
    if (pick) this.fill(sentence(this.model, pick), details(this.model, pick, this.jump));
    else this.fill("Nothing is selected.", nothing(HINT));
    this.root.classList.toggle("empty", !pick);
    this.root.scrollTop = 0;
  }

  showRange(range: [number, number]): void {
    const text = `Range of ${time(range[1] - range[0])}, from ${time(Math.max(range[0], 0), 6)}`;
    this.fill(text, rangeTable(this.model, range));
    this.root.classList.remove("empty");
  }

  private fill(text: string, body: HTMLElement): void {
    this.said.textContent = text;
    this.root.replaceChildren(this.said, body);
  }
}
