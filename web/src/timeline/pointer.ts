// Mouse, pen and fingers on the canvas: drag, measure, pinch, wheel, click.

export type PointerActs = {
  click: (x: number, y: number) => void;
  drag: (dx: number, dy: number) => void; // since the last call, in pixels
  measure: (from: number, to: number) => void;
  zoom: (factor: number, x: number) => void;
  hover: (event: PointerEvent | null) => void; // null: nowhere
  double: () => void;
};

const STILL = 3; // pixels that a click may move

type Touch = { x: number; y: number };

export class Pointer {
  private readonly down = new Map<number, Touch>();
  private start: Touch = { x: 0, y: 0 };
  private moved = false;
  private measuring = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly acts: PointerActs,
  ) {
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event, true));
    canvas.addEventListener("pointercancel", (event) => this.release(event, false));
    canvas.addEventListener("pointerleave", () => acts.hover(null));
    canvas.addEventListener("dblclick", () => acts.double());
  }

  private at(event: PointerEvent): Touch {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private wheel(event: WheelEvent): void {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey || event.altKey) this.acts.zoom(Math.exp(-event.deltaY * 0.0025), event.offsetX);
    else if (event.shiftKey || sideways) this.acts.drag(-(sideways ? event.deltaX : event.deltaY), 0);
    else return; // rows scroll by themselves
    event.preventDefault();
  }

  private press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, this.at(event));
    this.start = this.at(event);
    this.moved = this.down.size > 1;
    this.measuring = event.shiftKey;
  }

  private move(event: PointerEvent): void {
    const before = this.down.get(event.pointerId);
    if (!before) return this.acts.hover(event);
    const now = this.at(event);
    this.moved ||= Math.abs(now.x - this.start.x) > STILL || Math.abs(now.y - this.start.y) > STILL;
    if (!this.moved) return;
    this.acts.hover(null);
    if (this.down.size > 1) this.pinch(event.pointerId, before, now);
    else if (this.measuring) this.acts.measure(Math.min(this.start.x, now.x), Math.max(this.start.x, now.x));
    else this.acts.drag(now.x - before.x, now.y - before.y);
    this.down.set(event.pointerId, now);
  }

  /** Two fingers: the distance between them zooms, around the one that rests. */
  private pinch(id: number, before: Touch, now: Touch): void {
    const other = [...this.down].find(([known]) => known !== id)?.[1];
    if (!other) return;
    const distance = (touch: Touch): number => Math.max(Math.hypot(touch.x - other.x, touch.y - other.y), 8);
    this.acts.zoom(distance(now) / distance(before), other.x);
  }

  private release(event: PointerEvent, done: boolean): void {
    if (this.down.delete(event.pointerId) && done && !this.moved) this.acts.click(this.start.x, this.start.y);
  }
}
