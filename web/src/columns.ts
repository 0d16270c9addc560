// Tables of numbers as `page_columns.py` packs them: docs/formats/page.md.

const MAGIC = 0x3143534f; // "OSC1", little-endian
const HEAD = 16;
const COLUMN = 32;
const STEPS = 1;
const FLOAT = 2;

export type Column = Int32Array | Float64Array;
export type Table = { rows: number; columns: Map<string, Column> };

export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const plain = atob(text);
  const bytes = new Uint8Array(plain.length);
  for (let i = 0; i < plain.length; i++) bytes[i] = plain.charCodeAt(i);
  return bytes;
}

export async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A table, inflated. Whole numbers that fit 32 bits come as such, all others as doubles. */
export function readTable(bytes: Uint8Array): Table {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.byteLength < HEAD || view.getUint32(0, true) !== MAGIC) throw new Error("not a table of this page");
  const rows = view.getUint32(4, true);
  const count = view.getUint32(8, true);
  const columns = new Map<string, Column>();
  let place = HEAD + count * COLUMN;
  for (let number = 0; number < count; number++) {
    const head = HEAD + number * COLUMN;
    const coding = view.getUint8(head + 16);
    const width = view.getUint8(head + 17);
    const base = Number(view.getBigInt64(head + 24, true));
    if (place + rows * width > view.byteLength) throw new Error("a table of this page is cut short");
    const planes = bytes.subarray(place, place + rows * width);
    columns.set(nameOf(bytes, head), column(planes, rows, coding, width, base));
    place += rows * width;
  }
  return { rows, columns };
}

function nameOf(bytes: Uint8Array, head: number): string {
  let name = "";
  for (let i = head; i < head + 16 && bytes[i]; i++) name += String.fromCharCode(bytes[i]!);
  return name;
}

function column(planes: Uint8Array, rows: number, coding: number, width: number, base: number): Column {
  if (coding === FLOAT) return floats(planes, rows);
  const small = coding !== STEPS && width <= 3 && base >= -(2 ** 30) && base < 2 ** 30;
  const found = small ? new Int32Array(rows) : new Float64Array(rows);
  found.fill(base);
  for (let plane = 0, weight = 1; plane < width; plane++, weight *= 256) {
    const from = plane * rows;
    for (let i = 0; i < rows; i++) found[i]! += planes[from + i]! * weight;
  }
  if (coding === STEPS) for (let i = 1; i < rows; i++) found[i]! += found[i - 1]!;
  return found;
}

function floats(planes: Uint8Array, rows: number): Float64Array {
  const bytes = new Uint8Array(rows * 8);
  for (let plane = 0; plane < 8; plane++)
    for (let i = 0; i < rows; i++) bytes[i * 8 + plane] = planes[plane * rows + i]!;
  return new Float64Array(bytes.buffer);
}
