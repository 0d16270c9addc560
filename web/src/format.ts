// Numbers as text: the same words, steps and digits as the reports on the terminal. Unknown is a dash, never zero.

export const UNKNOWN = "—";
type Maybe = number | null | undefined;

const known = (value: Maybe): value is number => value !== null && value !== undefined && Number.isFinite(value);

const WRITERS = new Map<number, Intl.NumberFormat>(); // one is dear to make: a heat map writes hundreds of numbers a frame

function digits(value: number, significant: number): string {
  const places = Math.abs(value) >= 10 ** (significant - 1) ? 0 : significant; // 0: whole
  let written = WRITERS.get(places);
  if (!written) {
    const options = places ? { maximumSignificantDigits: places } : { maximumFractionDigits: 0 };
    WRITERS.set(places, (written = new Intl.NumberFormat("en-US", options)));
  }
  return written.format(value);
}

function scaled(value: number, steps: readonly (readonly [string, number])[], significant: number): string {
  for (const [unit, step] of steps) if (Math.abs(value) >= step) return `${digits(value / step, significant)} ${unit}`;
  const [unit, step] = steps[steps.length - 1]!;
  return `${digits(value / step, significant)} ${unit}`;
}

const TIMES = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
] as const;
const SIZES = [
  ["GB", 1024 ** 3],
  ["MB", 1024 ** 2],
  ["KB", 1024],
  ["B", 1],
] as const;
const ENERGIES = [
  ["J", 1],
  ["mJ", 1e-3],
  ["µJ", 1e-6],
  ["nJ", 1e-9],
] as const;
const POWERS = [
  ["W", 1],
  ["mW", 1e-3],
  ["µW", 1e-6],
] as const;
const PLAIN = [
  ["T", 1e12],
  ["G", 1e9],
  ["M", 1e6],
  ["k", 1e3],
  ["", 1],
] as const;

export const time = (ns: Maybe, significant = 4): string => (known(ns) ? scaled(ns, TIMES, significant) : UNKNOWN);
export const bytes = (size: Maybe): string => (known(size) ? scaled(size, SIZES, 4) : UNKNOWN);
export const joules = (energy: Maybe): string => (known(energy) ? scaled(energy, ENERGIES, 4) : UNKNOWN);
export const watts = (power: Maybe): string => (known(power) ? scaled(power, POWERS, 4) : UNKNOWN);
export const count = (value: Maybe): string =>
  known(value) ? value.toLocaleString("en-US", { maximumFractionDigits: 0 }) : UNKNOWN;
/** "1 op", "2 ops". */
export const counted = (value: number, word: string): string => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const percent = (share: Maybe, places = 1): string =>
  known(share) ? `${(100 * share).toFixed(places)}%` : UNKNOWN;
export const short = (value: Maybe, unit = ""): string =>
  known(value) ? `${scaled(value, PLAIN, 3)}${unit}`.trim() : UNKNOWN;
export const decimal = (value: Maybe, significant = 4): string => (known(value) ? digits(value, significant) : UNKNOWN);
export const hertz = (value: Maybe): string => (known(value) ? `${scaled(value, PLAIN, 5)}Hz` : UNKNOWN);
export const signed = (value: number, text: string): string => (value > 0 ? `+${text}` : text.replace("-", "−"));

/** A value of a counter in its own unit; bytes and times are scaled. */
export function inUnit(value: Maybe, unit: string): string {
  if (!known(value)) return UNKNOWN;
  if (unit === "ns") return time(value);
  if (unit === "J") return joules(value);
  if (unit === "1/s") return `${decimal(value)}/s`;
  return unit === "bytes" ? bytes(value) : `${decimal(value)} ${unit === "1" ? "" : unit}`.trim();
}

/** Steps of 1, 2 or 5 × a power of ten, about so many in the range. */
export function niceStep(range: number, about: number): number {
  const rough = range / Math.max(about, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-12)));
  const rest = rough / power;
  return (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10) * power;
}

/** A moment on the axis with as many digits as the step between ticks needs. */
export function moment(ns: number, step: number): string {
  if (ns === 0) return "0";
  const [unit, size] = TIMES.find(([, size]) => Math.abs(ns) >= size) ?? TIMES[3];
  const places = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(ns / size).toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })} ${unit}`;
}
