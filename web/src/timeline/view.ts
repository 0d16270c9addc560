// What part of the axis is in view, and how it moves: pure arithmetic.

export const LEAST_NS = 20; // shown at most zoom

export class View {
  from = 0;
  to: number;

  readonly end: number;

  constructor(end: number) {
    this.end = this.to = Math.max(end, LEAST_NS); // a run may be a single moment
  }

  get span(): number {
    return this.to - this.from;
  }

  /** Show a part of the axis; a little of what is beyond its ends may be seen, no more. */
  set(from: number, to: number): void {
    const whole = this.end;
    const span = Math.min(Math.max(to - from, LEAST_NS), whole * 1.1);
    const middle = (from + to) / 2;
    const spare = Math.max(span * 0.05, (span - whole) / 2 + whole * 0.05);
    const left = Math.min(Math.max(middle - span / 2, -spare), whole + spare - span);
    this.from = left;
    this.to = left + span;
  }

  pan(ns: number): void {
    this.set(this.from + ns, this.to + ns);
  }

  /** Larger than 1 shows less; the moment under the pointer stays where it is. */
  zoom(factor: number, around: number): void {
    const span = Math.min(Math.max(this.span / factor, LEAST_NS), this.end * 1.1);
    const share = (around - this.from) / this.span;
    this.set(around - share * span, around + (1 - share) * span);
  }

  whole(): void {
    this.set(-0.01 * this.end, 1.01 * this.end);
  }

  /** A stretch with room on both sides. */
  around(from: number, to: number, room = 1.5): void {
    const length = Math.max(to - from, LEAST_NS / 4);
    this.set(from - length * room, to + length * room);
  }
}
