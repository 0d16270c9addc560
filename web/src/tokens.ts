// Tokens: a language model at every batch, prompt and context that was asked for, or measured.

import { curveChart, type Curve, type CurvePoint, type Limit } from "./charts";
import type { LanguageModel, Ranged, TokenPoint } from "./contract";
import { button, el, nothing, section, type Child } from "./dom";
import { bytes, count, counted, decimal, joules, percent, time, UNKNOWN } from "./format";
import { provenance } from "./provenance";
import type { App } from "./state";
import { SortTable, type Col } from "./table";
import { shorten } from "./text";

type Of = (point: TokenPoint) => number | null;
const MOST_CURVES = 8;

export function tokens(app: App, found: LanguageModel): HTMLElement {
  const { points } = found;
  const kinds = [...new Set(points.map((point) => point.provenance))];
  const table = new SortTable(columns(found), 0, false, "Every point");
  table.set([...points]);
  const charts: [string, HTMLElement | null][] = [
    [
      "Time to the first token, by prompt",
      curves(
        app,
        found,
        "tokens of the prompt",
        "ns",
        (p) => p.prompt,
        batchOf,
        (p) => scaled(p.ttft_ms, 1e6),
      ),
    ],
    [
      "Time to the next token, by context",
      curves(
        app,
        found,
        "tokens in the cache",
        "ns",
        (p) => p.context,
        batchOf,
        (p) => scaled(p.tpot_ms, 1e6),
      ),
    ],
    [
      "Tokens per second of all users, by batch",
      curves(
        app,
        found,
        "users at once",
        "1/s",
        (p) => p.batch,
        contextOf,
        (p) => p.decode_tokens_per_s,
      ),
    ],
    [
      "Weights and cache, by context",
      curves(app, found, "tokens in the cache", "bytes", (p) => p.context, batchOf, needed, capacityOf(points)),
    ],
  ];
  const drawn = charts.filter(([, chart]) => chart);
  const pairs: Child[] = [];
  for (let first = 0; first < drawn.length; first += 2)
    pairs.push(
      el("div", { class: "columns" }, ...drawn.slice(first, first + 2).map(([title, chart]) => section(title, chart))),
    );
  return el(
    "div",
    {},
    section(
      "Language model",
      el("p", {}, shorten(head(found), 300), " ", ...kinds.map(provenance)),
      largest(found),
      without(found),
      el(
        "p",
        { class: "tools" },
        button("Timeline of one prompt and one token", () => app.open("timeline")),
        button("Roofline of both phases", () => app.open("roofline")),
      ),
      ...found.notes.map((note) => el("p", { class: "note" }, shorten(note, 400))),
    ),
    ...(pairs.length ? pairs : [nothing("No point has a time.")]),
    section("Every point", table.root),
  );
}

function head(found: LanguageModel): string {
  const cards = found.cards === null ? "" : ` (${counted(found.cards, "card")})`;
  return [
    `${found.model} on ${found.target}`,
    found.devices === null ? "" : `${counted(found.devices, "device")}${cards}`,
    found.weights && `weights ${found.weights}`,
    found.kv && `cache ${found.kv}`,
    found.parallel && (found.devices ?? 1) > 1 ? `${found.parallel} parallel` : "",
  ]
    .filter(Boolean)
    .join(", ");
}

function largest(found: LanguageModel): Child {
  if (found.largest.length)
    return el(
      "p",
      {},
      "Largest that fits: ",
      found.largest.map((fit) => `batch ${count(fit.batch)} × context ${count(fit.context)}`).join("; "),
    );
  return found.points.some((point) => point.fits === false)
    ? el("p", {}, "Nothing fits: the weights alone are larger than the memory.")
    : "";
}

function without(found: LanguageModel): Child {
  const number = found.points.filter((point) => point.fits === false).length;
  const words = `${counted(number, "point")} of ${count(found.points.length)} do not fit: their times are those of a larger memory.`;
  return number ? el("p", {}, words) : "";
}

const batchOf = (point: TokenPoint): string => (point.batch === null ? "" : `batch ${count(point.batch)}`);
const contextOf = (point: TokenPoint): string => (point.context === null ? "" : `context ${count(point.context)}`);

const needed = (point: TokenPoint): Ranged | null =>
  point.weight_bytes === null || point.kv_bytes === null
    ? null
    : { value: point.weight_bytes + point.kv_bytes, low: null, high: null };

function scaled(found: Ranged | null, factor: number): Ranged | null {
  const times = (value: number | null): number | null => (value === null ? null : value * factor);
  return found && { value: found.value * factor, low: times(found.low), high: times(found.high) };
}

/** The line above which nothing fits. */
function capacityOf(points: readonly TokenPoint[]): Limit {
  const known = points.map((point) => point.capacity_bytes).filter((size) => size !== null);
  return known.length ? { label: "what there is", value: known[0]! } : null;
}

/** A curve for each label; null: no point has such a figure. */
function curves(
  app: App,
  found: LanguageModel,
  across: string,
  unit: string,
  x: Of,
  label: (point: TokenPoint) => string,
  y: (point: TokenPoint) => Ranged | null,
  limit: Limit = null,
): HTMLElement | null {
  const lines = new Map<string, Map<number, CurvePoint>>();
  for (const point of found.points) {
    const [place, value, name] = [x(point), y(point), label(point)];
    if (place === null || value === null) continue;
    const line = lines.get(name) ?? new Map<number, CurvePoint>();
    if (!line.has(place)) line.set(place, { x: place, y: value.value, low: value.low, high: value.high });
    lines.set(name, line);
  }
  if (!lines.size) return null;
  const all: Curve[] = [...lines].map(([name, line]) => ({
    label: name || "measured",
    points: [...line.values()].sort((a, b) => a.x - b.x),
  }));
  const chart = curveChart(
    app,
    across,
    all.slice(0, MOST_CURVES),
    unit,
    limit,
    `By ${across}; the table has every value`,
  );
  if (all.length <= MOST_CURVES) return chart;
  return el("div", {}, chart, el("p", { class: "note" }, `${all.length - MOST_CURVES} more curves are in the table.`));
}

function columns(found: LanguageModel): Col<TokenPoint>[] {
  const ranged = (value: Ranged | null, text: (value: number) => string): string => {
    if (value === null) return UNKNOWN;
    if (value.low === null || value.high === null) return text(value.value);
    const [low, high] = [text(value.low), text(value.high)];
    return low === high ? text(value.value) : `${text(value.value)} (${low} – ${high})`;
  };
  const rate = (value: number): string => decimal(value, 3);
  const column = (
    label: string,
    of: (point: TokenPoint) => Ranged | null,
    text: (value: number) => string,
  ): Col<TokenPoint> => ({
    label,
    number: true,
    value: (point) => of(point)?.value ?? null,
    cell: (point) => ranged(of(point), text),
  });
  const tokensIn = (label: string, of: Of): Col<TokenPoint> => ({
    label,
    number: true,
    value: of,
    cell: (point) => count(of(point)),
  });
  const size = (label: string, of: Of): Col<TokenPoint> => ({ ...tokensIn(label, of), cell: (p) => bytes(of(p)) });
  const word = (label: string, of: (point: TokenPoint) => string): Col<TokenPoint> => ({
    label,
    value: of,
    cell: (point) => of(point) || UNKNOWN,
  });
  const per = (parts: number | null) => (point: TokenPoint) =>
    parts === null ? null : scaled(point.decode_tokens_per_s, 1 / parts);
  const all = [
    tokensIn("Batch", (point) => point.batch),
    tokensIn("Prompt", (point) => point.prompt),
    tokensIn("Context", (point) => point.context),
    column(
      "First token",
      (point) => point.ttft_ms,
      (value) => time(value * 1e6, 3),
    ),
    word("Prompt bound", (point) => point.bound_prefill),
    column(
      "Next token",
      (point) => point.tpot_ms,
      (value) => time(value * 1e6, 3),
    ),
    word("Decode bound", (point) => point.bound_decode),
    column("Tokens/s", per(1), rate),
    column("Per device", per(found.devices === 1 ? null : found.devices), rate),
    column("Per card", per(found.cards === 1 && found.devices === 1 ? null : found.cards), rate),
    size("Weights", (point) => point.weight_bytes),
    size("KV cache", (point) => point.kv_bytes),
    word("Fits", fits),
    column(
      "Energy per token",
      (point) => point.energy_per_token_mj,
      (value) => joules(value / 1e3),
    ),
    word("Decode, by block", (point) => shares(point.shares_decode)),
  ];
  return all.filter((each) => found.points.some((point) => ![null, ""].includes(each.value(point) as string | null)));
}

function fits(point: TokenPoint): string {
  if (point.fits === null) return "";
  const need = needed(point)?.value;
  const share = need && point.capacity_bytes ? ` (${percent(need / point.capacity_bytes, 0)})` : "";
  return `${point.fits ? "yes" : "no"}${share}`;
}

const shares = (parts: Record<string, number>): string =>
  Object.entries(parts)
    .sort(([, a], [, b]) => b - a)
    .filter(([, share]) => share >= 0.005)
    .map(([block, share]) => `${block} ${percent(share, 0)}`)
    .join(", ");
