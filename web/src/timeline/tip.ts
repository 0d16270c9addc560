// Beside the pointer: what it is on.

import { el } from "../dom";
import { inUnit, time } from "../format";
import type { Model } from "../model";
import { after } from "../spans";
import { shorten } from "../text";
import { placeOf } from "./details";
import type { Pick } from "./scene";

export class Tip {
  readonly root = el("div", { class: "tip", hidden: true });

  constructor(private readonly model: Model) {}

  hide(): void {
    this.root.hidden = true;
  }

  show({ spans, row, lane }: Pick, event: PointerEvent, around: DOMRect): void {
    const { names, ops } = this.model.data;
    const op = ops[spans.op[row]!];
    this.root.replaceChildren(
      el("b", {}, shorten(names[spans.name[row]!] ?? "", 70)),
      el("span", {}, time(spans.length[row])),
      op ? el("div", {}, shorten(op.name, 90)) : "",
      el("small", {}, placeOf(this.model, lane)),
    );
    this.appear(event, around);
  }

  /** The value of a counter at a moment. */
  showCounter(counter: number, ns: number, event: PointerEvent, around: DOMRect): void {
    const track = this.model.data.counters[counter];
    const times = this.model.counters?.columns.get("time");
    const values = this.model.counters?.columns.get("value");
    if (!track || !times || !values) return this.hide();
    const at = after(times, ns, track.first, track.first + track.rows) - 1;
    if (at < track.first) return this.hide();
    const value = el("span", {}, inUnit(values[at], track.unit));
    this.root.replaceChildren(el("b", {}, shorten(track.name, 70)), value, el("div", {}, time(ns, 6)));
    return this.appear(event, around);
  }

  private appear(event: PointerEvent, around: DOMRect): void {
    this.root.hidden = false;
    this.moveTo(event.clientX - around.left, event.clientY - around.top, around);
  }

  /** Right of and below the pointer, unless there is no room. */
  private moveTo(x: number, y: number, around: DOMRect): void {
    const left = Math.max(Math.min(x + 14, around.width - this.root.offsetWidth - 8), 4);
    const below = y + 18;
    const fits = below + this.root.offsetHeight <= around.height;
    this.root.style.transform = `translate(${left}px, ${fits ? below : y - this.root.offsetHeight - 12}px)`;
  }
}
