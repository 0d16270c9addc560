// Lanes with more spans than room for rectangles: one colour and one height per column of pixels, written at once.

import type { Theme } from "../palette";

const FAINT_BIT = 16;
const NONE = 255;

export type Style = { colours: string[]; still: number; threads: number; faint: number };

/** "#rrggbb" as the browser keeps a pixel: red in the lowest byte. */
function packed(colour: string): number {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

function blended(over: number, under: number, share: number): number {
  let found = 0xff000000;
  for (const shift of [0, 8, 16])
    found |= Math.round(((over >>> shift) & 255) * share + ((under >>> shift) & 255) * (1 - share)) << shift;
  return found >>> 0;
}

export class Pixels {
  private colour = new Uint8Array(0);
  private tall = new Uint8Array(0);
  private readonly images = new Map<number, { image: ImageData; words: Uint32Array }>();
  private tints = new Uint32Array(32);
  private hatches = new Uint32Array(2);
  private background = 0;
  private style: Style | null = null;
  width = 0;

  setTheme(theme: Theme, style: Style): void {
    this.style = style;
    this.background = packed(theme.background);
    this.hatches[0] = packed(theme.hatch);
    this.hatches[1] = blended(this.hatches[0], this.background, style.faint);
    style.colours.forEach((colour, number) => {
      this.tints[number] = packed(colour);
      this.tints[number + FAINT_BIT] = blended(this.tints[number]!, this.background, style.faint);
    });
  }

  /** A new line of so many pixels. */
  begin(width: number): void {
    if (width !== this.width) {
      this.width = width;
      this.colour = new Uint8Array(width);
      this.tall = new Uint8Array(width);
      this.images.clear();
    }
    this.colour.fill(NONE);
    this.tall.fill(0);
  }

  /** Columns from `left` up to `right`; of several in one column the tallest is seen. */
  add(left: number, right: number, colour: number, faint: boolean, tall: number): void {
    const last = Math.min(right, this.width);
    const value = faint ? colour | FAINT_BIT : colour;
    for (let x = Math.max(left, 0); x < last; x++) {
      if (tall < this.tall[x]!) continue;
      this.tall[x] = tall;
      this.colour[x] = value;
    }
  }

  paint(context: CanvasRenderingContext2D, left: number, y: number, height: number): void {
    const { image, words } = this.imageOf(context, height);
    const { colour, tall, tints, width, background, style } = this;
    for (let row = 0, at = 0; row < height; row++) {
      const from = height - row;
      for (let x = 0; x < width; x++, at++) {
        if (tall[x]! < from) {
          words[at] = background;
          continue;
        }
        const what = colour[x]!;
        const plain = what & 15;
        const lined = plain === style!.still ? (x + row) % 6 === 0 : plain === style!.threads && (x + row) % 3 === 0;
        words[at] = lined ? this.hatches[what >> 4]! : tints[what]!;
      }
    }
    context.putImageData(image, left, y);
  }

  private imageOf(context: CanvasRenderingContext2D, height: number): { image: ImageData; words: Uint32Array } {
    let found = this.images.get(height);
    if (!found) {
      const image = context.createImageData(this.width, height);
      found = { image, words: new Uint32Array(image.data.buffer) };
      this.images.set(height, found);
    }
    return found;
  }
}
