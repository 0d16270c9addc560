// Rectangles by colour.

export const CLASSES = 12; // eight of the palette, then grey, waits, barriers, phases

/** Rectangles by colour, so that the colour is set once for many. */
export class Batches {
  private readonly values: Float32Array[] = Array.from({ length: CLASSES }, () => new Float32Array(4096));
  private readonly used = new Int32Array(CLASSES);

  clear(): void {
    this.used.fill(0);
  }

  add(colour: number, x: number, y: number, width: number, height: number): void {
    let values = this.values[colour]!;
    const at = this.used[colour]!;
    if (at + 4 > values.length) {
      const larger = new Float32Array(values.length * 2);
      larger.set(values);
      values = this.values[colour] = larger;
    }
    // what touches the rectangle before it, at the same height, makes it longer
    if (
      at > 0 &&
      values[at - 3] === y &&
      values[at - 1] === height &&
      values[at - 4]! + values[at - 2]! >= x - 0.01 &&
      width <= 1.01
    ) {
      values[at - 2] = x + width - values[at - 4]!;
      return;
    }
    values[at] = x;
    values[at + 1] = y;
    values[at + 2] = width;
    values[at + 3] = height;
    this.used[colour] = at + 4;
  }

  flush(context: CanvasRenderingContext2D, styles: (string | CanvasPattern)[]): void {
    for (let colour = 0; colour < CLASSES; colour++) {
      const values = this.values[colour]!;
      const used = this.used[colour]!;
      if (!used) continue;
      context.fillStyle = styles[colour]!;
      for (let i = 0; i < used; i += 4) context.fillRect(values[i]!, values[i + 1]!, values[i + 2]!, values[i + 3]!);
    }
  }
}
