// Names from outside: nothing in them hides or reorders what stands beside them, and none is longer than its place.

// controls, marks that reorder text, line separators, lone halves of surrogate pairs, non-characters
const HARMFUL =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function clean(text: string): string {
  return text.replace(HARMFUL, (found) =>
    found.charCodeAt(0) < 0x20 ? String.fromCharCode(0x2400 + found.charCodeAt(0)) : "\ufffd",
  );
}

/** A sentence of the analysis, which writes for terminals, with the units of the page. */
export const prose = (text: string, limit: number): string => shorten(text.replace(/(\d) us\b/g, "$1 µs"), limit);

/** Cut in the middle: both ends of a name tell more than its beginning alone. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return clean(text);
  const tail = Math.floor((limit - 1) / 2);
  return clean(`${wholeEnd(text.slice(0, limit - 1 - tail))}…${wholeStart(text.slice(text.length - tail))}`);
}

const wholeEnd = (text: string): string => text.replace(/[\ud800-\udbff]$/, "");
const wholeStart = (text: string): string => text.replace(/^[\udc00-\udfff]/, "");

/** The last parts of a path-like name, as many as fit. */
export function tailOf(name: string, limit: number): string {
  if (name.length <= limit) return clean(name);
  const parts = name.slice(-limit * 2).split(/(?=[/])/);
  let tail = "";
  while (parts.length && tail.length + parts[parts.length - 1]!.length < limit) tail = parts.pop()! + tail;
  return tail ? clean(`…${tail}`) : shorten(name, limit);
}
