// Two or more runs: metrics side by side, and what changed per op.

import type { CompareData, ComparedOp, ComparedRun, TokenPoint } from "./contract";
import { el, nothing, scrollBox, section } from "./dom";
import { bytes, count, decimal, joules, percent, time, UNKNOWN } from "./format";
import { outerTraffic } from "./outer";
import { provenance } from "./provenance";
import { causeClass, shareBar } from "./shares";
import { plainTable, SortTable, type Col } from "./table";
import { shorten, tailOf } from "./text";
import { longText } from "./timeline/details";

type Metric = {
  name: string;
  less: boolean | null; // null: neither way is better
  of: (run: ComparedRun) => number | null;
  text: (value: number | null) => string;
  from: (run: ComparedRun) => string;
};

const total = (run: ComparedRun, key: "read_bytes" | "write_bytes"): number | null =>
  outerTraffic(run.summary.memory)?.[key] ?? null;
const peak = (run: ComparedRun): number | null =>
  run.summary.memory.reduce<number | null>(
    (most, row) => (row.peak_bytes === null ? most : Math.max(most ?? 0, row.peak_bytes)),
    null,
  );
const busy = (run: ComparedRun): number | null =>
  run.summary.ops.length && run.summary.ops.every((op) => op.busy_ns !== null)
    ? run.summary.ops.reduce((sum, op) => sum + op.busy_ns!, 0)
    : null;

const METRICS: Metric[] = [
  {
    name: "Latency",
    less: true,
    of: (run) => run.summary.latency.value_ns,
    text: (value) => time(value),
    from: (run) => run.summary.latency.provenance,
  },
  {
    name: "Throughput",
    less: false,
    of: (run) => run.summary.throughput_per_s,
    text: (value) => (value === null ? UNKNOWN : `${decimal(value)}/s`),
    from: (run) => run.summary.latency.provenance,
  },
  {
    name: "Busy time of all ops",
    less: true,
    of: busy,
    text: (value) => time(value),
    from: (run) => run.info.provenance,
  },
  { name: "Peak memory", less: true, of: peak, text: bytes, from: (run) => run.info.provenance },
  {
    name: "Outer memory read",
    less: true,
    of: (run) => total(run, "read_bytes"),
    text: bytes,
    from: (run) => run.info.provenance,
  },
  {
    name: "Outer memory written",
    less: true,
    of: (run) => total(run, "write_bytes"),
    text: bytes,
    from: (run) => run.info.provenance,
  },
  {
    name: "Energy",
    less: true,
    of: (run) => run.summary.energy?.value_j ?? null,
    text: joules,
    from: (run) => run.summary.energy?.provenance ?? run.info.provenance,
  },
  { name: "Ops", less: null, of: (run) => run.summary.ops.length, text: count, from: (run) => run.info.provenance },
];

/** Of the first point that knows it; runs of other models have none. */
const token = (
  name: string,
  less: boolean,
  of: (point: TokenPoint) => number | null | undefined,
  text: (value: number | null) => string,
): Metric => ({
  name,
  less,
  of: (run) => run.summary.language_model?.points.map(of).find((value) => typeof value === "number") ?? null,
  text,
  from: (run) => run.summary.language_model?.points[0]?.provenance ?? run.info.provenance,
});
const TOKEN_METRICS: Metric[] = [
  token(
    "Time to the first token",
    true,
    (point) => point.ttft_ms && 1e6 * point.ttft_ms.value,
    (value) => time(value),
  ),
  token(
    "Time to the next token",
    true,
    (point) => point.tpot_ms && 1e6 * point.tpot_ms.value,
    (value) => time(value),
  ),
  token(
    "Tokens per second",
    false,
    (point) => point.decode_tokens_per_s?.value,
    (value) => decimal(value),
  ),
  token("Weights", true, (point) => point.weight_bytes, bytes),
  token("KV cache", true, (point) => point.kv_bytes, bytes),
];

export function compare(data: CompareData): HTMLElement {
  return el(
    "div",
    {},
    verdict(data),
    section("Metrics", metrics(data)),
    families(data),
    breakdowns(data),
    explanation(data),
    section("Ops", opTable(data)),
    section("Runs", runs(data)),
  );
}

export function changeText(base: number | null, now: number | null): string {
  if (base === null || now === null) return UNKNOWN;
  if (base === now) return "unchanged";
  if (base === 0) return "from nothing";
  const change = now / base - 1;
  return `${change > 0 ? "+" : "−"}${percent(Math.abs(change))}`;
}

/** A word beside the colour: better, worse, or neither; what reads as no change is none. */
export function judged(metric: Pick<Metric, "less">, base: number | null, now: number | null): string {
  if (metric.less === null || base === null || now === null || base === now) return "";
  if (base !== 0 && percent(Math.abs(now / base - 1)) === percent(0)) return "";
  return now < base === metric.less ? "better" : "worse";
}

/** Whether one method told all of it; between two, a ratio says how far they are apart, and nothing is better. */
const ofOneKind = (data: CompareData): boolean => new Set(data.runs.map((run) => run.info.provenance)).size === 1;

function verdict(data: CompareData): HTMLElement {
  const [base, now] = [data.runs[0]!, data.runs[data.runs.length - 1]!];
  const [a, b] = [base.summary.latency.value_ns, now.summary.latency.value_ns];
  const word = data.compared?.checks.length // without a limit there is nothing to pass
    ? ({ pass: "Pass", fail: "Fail", unknown: "Cannot be judged" }[data.compared.verdict] ?? data.compared.verdict)
    : null;
  const text =
    a === null || b === null
      ? "Latency is not known of all runs"
      : a === b
        ? "Latency is unchanged"
        : ofOneKind(data)
          ? `Latency ${changeText(a, b)}`
          : `Latency: ${now.summary.latency.provenance} is ${ratioText(b / a)} of ${base.summary.latency.provenance}`;
  const checks = data.compared?.checks ?? [];
  return el(
    "div",
    { class: `verdict ${data.compared?.verdict ?? ""}` },
    el(
      "div",
      {},
      el("p", { class: "eyebrow" }, data.runs.map((run) => shorten(run.label, 40)).join(" → ")),
      el("h1", {}, word ? `${word}: ${text}` : text),
      checks.length
        ? el(
            "ul",
            {},
            ...checks.map((check) => el("li", {}, `${check.passed ? "✓" : "✕"} ${shorten(check.reason, 300)}`)),
          )
        : "",
    ),
  );
}

function metrics(data: CompareData): HTMLElement {
  const heads = [
    "Metric",
    ...data.runs.map((run) => shorten(run.label, 30)),
    ...data.runs.slice(1).map((run) => (data.runs.length > 2 ? `Change to ${shorten(run.label, 20)}` : "Change")),
  ];
  const tells = data.runs.some((run) => run.summary.language_model);
  const known = [...(tells ? TOKEN_METRICS : []), ...METRICS];
  const rows = known.map((told) => {
    const metric = ofOneKind(data) ? told : { ...told, less: null };
    const base = metric.of(data.runs[0]!);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, metric.name),
      ...data.runs.map((run) =>
        el(
          "td",
          { class: "number" },
          metric.text(metric.of(run)),
          " ",
          metric.of(run) === null ? "" : provenance(metric.from(run)),
        ),
      ),
      ...data.runs
        .slice(1)
        .map((run) =>
          el(
            "td",
            { class: `number ${judged(metric, base, metric.of(run))}` },
            changeText(base, metric.of(run)),
            judged(metric, base, metric.of(run)) ? el("small", {}, ` ${judged(metric, base, metric.of(run))}`) : "",
          ),
        ),
    );
  });
  return scrollBox(
    "Metrics",
    el(
      "table",
      { class: "plain" },
      el(
        "thead",
        {},
        el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: i ? "number" : "" }, head))),
      ),
      el("tbody", {}, ...rows),
    ),
  );
}

type Diff = { name: string; type: string; how: string; values: (number | null)[]; change: number | null };

/** Ops by name; those with the same name are added up. A run that has no such op spends nothing on it; one that has
 * it without a time leaves the change unknown. */
export function differences(runs: ComparedRun[]): Diff[] {
  const found = new Map<string, Diff & { has: boolean[] }>();
  runs.forEach((run, number) => {
    for (const op of run.summary.ops) {
      const none = { name: op.name, type: op.type, how: "", values: runs.map(() => null), change: null };
      const diff = found.get(op.name) ?? { ...none, has: runs.map(() => false) };
      const before = diff.has[number] ? diff.values[number]! : 0;
      diff.values[number] = op.busy_ns === null || before === null ? null : before + op.busy_ns;
      diff.has[number] = true;
      found.set(op.name, diff);
    }
  });
  const end = runs.length - 1;
  return [...found.values()]
    .map(({ has, ...diff }) => {
      const [first, last] = [0, end].map((number) => (has[number] ? diff.values[number]! : 0)) as [Known, Known];
      const how = has[0] === has[end] ? "" : has[end] ? "added" : "removed";
      const change = (has[0] || has[end]) && first !== null && last !== null ? last - first : null;
      return { ...diff, how, change };
    })
    .sort((a, b) => Math.abs(b.change ?? 0) - Math.abs(a.change ?? 0));
}

type Known = number | null;

/** Ops as a comparison matched them: through other names, fusion and splitting. */
function matched(ops: ComparedOp[]): Diff[] {
  return ops.map((op) => ({ ...op, values: [op.base_ns, op.new_ns], change: op.change_ns }));
}

function signedBar(change: number | null, most: number): HTMLElement {
  const bar = el("span", { class: "signed-bar", "aria-hidden": "true" }, el("i"));
  const piece = bar.firstElementChild as HTMLElement;
  const width = change === null ? 0 : (50 * Math.abs(change)) / most;
  piece.className = change !== null && change > 0 ? "worse" : "better";
  piece.style.width = `${width}%`;
  piece.style.left = change !== null && change > 0 ? "50%" : `${50 - width}%`;
  return bar;
}

const signedTime = (ns: number): string => (ns === 0 ? "0" : `${ns > 0 ? "+" : "−"}${time(Math.abs(ns))}`);

const FARTHEST = 2; // doublings at which the colour of a ratio is full

/** A ratio on a scale of colours around 1 ×: how strong it is goes with its logarithm, ×2 and ×½ alike. */
function ratioCell(ratio: number | null): HTMLElement {
  if (ratio === null) return el("span", {}, UNKNOWN);
  const cell = el("span", { class: `ratio ${ratio > 1 ? "over" : "under"}` }, ratioText(ratio));
  cell.style.setProperty(
    "--strength",
    `${Math.round((100 * Math.min(FARTHEST, Math.abs(Math.log2(ratio)))) / FARTHEST)}%`,
  );
  return cell;
}

export const ratioText = (ratio: number): string =>
  `×${ratio >= 100 ? count(Math.round(ratio)) : ratio >= 0.01 ? ratio.toFixed(2) : ratio.toPrecision(1)}`;

/** Of the last run to the first; none where a time is nothing or not known. */
export const ratioOf = (values: (number | null)[]): number | null => {
  const [base, now] = [values[0], values[values.length - 1]];
  return base && now ? now / base : null;
};

/** By type of ops, how far a prediction is from the measurement, what costs most first. */
function families(data: CompareData): HTMLElement | string {
  const rows = data.compared?.families ?? [];
  if (!rows.length) return "";
  type Row = (typeof rows)[number];
  const most = Math.max(...rows.map((row) => Math.abs(row.measured_ns - row.predicted_ns)), 1);
  const columns: Col<Row>[] = [
    { label: "Type", value: (row) => row.name, cell: (row) => shorten(row.name || UNKNOWN, 40) },
    { label: "Ops", number: true, value: (row) => row.ops, cell: (row) => count(row.ops) },
    { label: "Predicted", number: true, value: (row) => row.predicted_ns, cell: (row) => time(row.predicted_ns) },
    { label: "Measured", number: true, value: (row) => row.measured_ns, cell: (row) => time(row.measured_ns) },
    {
      label: "Measured ÷ predicted",
      number: true,
      value: (row) => row.measured_ns / row.predicted_ns,
      cell: (row) => ratioCell(row.measured_ns / row.predicted_ns),
    },
    differenceColumn((row: Row) => row.measured_ns - row.predicted_ns, most),
  ];
  const table = new SortTable(columns, columns.length - 1, true, "Families of ops");
  table.set(rows);
  return section(
    "Where the prediction is off",
    table.root,
    el("p", { class: "note" }, "times of ops that both runs have, by type; what is off most in time comes first"),
  );
}

function differenceColumn<Row>(change: (row: Row) => number | null, most: number): Col<Row> {
  const size = (found: number | null): number | null => (found === null ? null : Math.abs(found));
  return {
    label: "Difference",
    number: true,
    value: (row) => size(change(row)),
    cell: (row) => {
      const found = change(row);
      const text = found === null ? UNKNOWN : signedTime(found);
      return el("span", { class: "with-bar" }, signedBar(found, most), el("span", {}, text));
    },
  };
}

function opTable(data: CompareData): HTMLElement {
  const given = data.compared?.ops ?? [];
  const rows = given.length ? matched(given) : differences(data.runs);
  if (!rows.length) return nothing("No run has times per op.");
  const most = Math.max(...rows.map((row) => Math.abs(row.change ?? 0)), 1);
  const columns: Col<Diff>[] = [
    { label: "Op", value: (row) => row.name, cell: (row) => longText(tailOf(row.name, 64), 80) },
    { label: "Type", value: (row) => row.type, cell: (row) => shorten(row.type, 24) },
    { label: "Matched by", value: (row) => row.how || "name", cell: (row) => shorten(row.how || "name", 20) },
    ...data.runs.map((run, number): Col<Diff> => ({
      label: shorten(run.label, 24),
      number: true,
      value: (row) => row.values[number]!,
      cell: (row) => time(row.values[number]!),
    })),
    {
      label: "Ratio",
      number: true,
      value: (row) => ratioOf(row.values),
      cell: (row) => ratioCell(ratioOf(row.values)),
    },
    differenceColumn((row: Diff) => row.change, most),
  ];
  const table = new SortTable(columns, columns.length - 1, true, `${given.length ? "Wall" : "Busy"} time of ops`);
  table.set(rows);
  return el(
    "div",
    {},
    table.root,
    el(
      "p",
      { class: "note" },
      given.length
        ? "wall time of ops, matched by name, place or structure, through fusion and splitting"
        : "busy time of ops of the same name; of the last run against the first",
    ),
  );
}

function breakdowns(data: CompareData): HTMLElement | string {
  const known = data.runs.filter((run) => run.summary.breakdown.length);
  if (!known.length) return "";
  const longest = Math.max(...known.map((run) => run.summary.breakdown.reduce((sum, part) => sum + part.ns, 0)), 1);
  const causes = [...new Set(known.flatMap((run) => run.summary.breakdown.map((part) => part.cause)))];
  const rows = known.map((run) => {
    const parts = causes.map(
      (cause) => run.summary.breakdown.find((part) => part.cause === cause) ?? { cause, ns: 0, share: 0 },
    );
    const whole = parts.reduce((sum, part) => sum + part.ns, 0);
    const bar = shareBar(parts);
    bar.style.width = `${(100 * whole) / longest}%`;
    return el(
      "tr",
      {},
      el("td", {}, shorten(run.label, 30)),
      el("td", { class: "most" }, bar),
      el("td", { class: "number" }, time(whole)),
    );
  });
  return section(
    "Where the time goes",
    el("table", { class: "plain" }, el("tbody", {}, ...rows)),
    el(
      "p",
      { class: "legend" },
      ...causes.map((cause, number) =>
        el("span", { class: `swatch ${causeClass(cause, number)}` }, shorten(cause, 30)),
      ),
    ),
    el("p", { class: "note" }, "of the wall time, by what holds the end of the run back; on one scale"),
  );
}

function explanation(data: CompareData): HTMLElement | string {
  const found = data.compared;
  if (!found || found.change_ns === null)
    return found?.notes.length ? section("Notes", ...found.notes.map((note) => el("p", {}, shorten(note, 400)))) : "";
  const most = Math.max(...found.parts.map((part) => Math.abs(part.ns)), 1);
  const rows = found.parts.map((part) => [
    tailOf(part.name, 60),
    shorten(part.how, 20),
    signedBar(part.ns, most),
    signedTime(part.ns),
  ]);
  return section(
    "What explains the change of latency",
    plainTable(["Op", "Matched by", "", "Change"], 3, rows, 2),
    ...found.notes.map((note) => el("p", { class: "note" }, shorten(note, 400))),
  );
}

const ORIGIN = new Set(["imported_from", "program_key", "run_key", "target_file"]);

/** Options that were chosen differently in two of the runs, and the precision; not where a run comes from. */
function choices(data: CompareData): string[] {
  const names = new Set(data.runs.flatMap((run) => Object.keys(run.info.options)));
  return [...names]
    .filter((name) => !ORIGIN.has(name))
    .filter((name) => name === "precision" || new Set(data.runs.map((run) => run.info.options[name])).size > 1)
    .sort();
}

function runs(data: CompareData): HTMLElement {
  const facts: [string, (run: ComparedRun) => string][] = [
    ["Model", (run) => run.info.model],
    ["SHA-256", (run) => run.info.sha256 ?? UNKNOWN],
    ["Network", (run) => run.info.network],
    ["Target", (run) => run.info.target],
    ["Devices × cores", (run) => `${count(run.info.devices)} × ${count(run.info.cores)}`],
    ["Batch", (run) => count(run.info.batch)],
    ...choices(data).map((name): [string, (run: ComparedRun) => string] => [
      name.replaceAll("_", " "),
      (run) => String(run.info.options[name] ?? UNKNOWN),
    ]),
    ["Provenance", (run) => run.info.provenance],
    ["Made", (run) => run.info.created],
    ["Command", (run) => run.info.command.join(" ")],
  ];
  const rows = facts.map(([label, of]) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, label),
      ...data.runs.map((run) =>
        el("td", { class: new Set(data.runs.map(of)).size > 1 ? "differs" : "" }, shorten(of(run), 160)),
      ),
    ),
  );
  return scrollBox(
    "Runs",
    el(
      "table",
      { class: "plain runs" },
      el(
        "thead",
        {},
        el("tr", {}, el("td"), ...data.runs.map((run) => el("th", { scope: "col" }, shorten(run.label, 40)))),
      ),
      el("tbody", {}, ...rows),
    ),
    el("p", { class: "note" }, "Rows that differ are bold."),
  );
}
