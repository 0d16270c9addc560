// Lines over time, by uPlot, in the colours of the page.

import uPlot from "uplot";
import { el } from "./dom";
import type { PageCounter } from "./contract";
import { count, inUnit, moment } from "./format";
import type { App, Themed } from "./state";
import { shorten } from "./text";

const HEIGHT = 190;
const WHOLE_STEPS = Array.from({ length: 6 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

export type Line = { label: string; times: Float64Array; values: Float64Array };
export type Limit = { label: string; value: number } | null;
/** A value per layer, in execution order; null: none of this line. */
export type LayerLine = { label: string; colour: number; values: (number | null)[] };

/** Samples of a counter. */
export function samples(app: App, counter: PageCounter): Line | null {
  const times = app.model.counters?.columns.get("time");
  const values = app.model.counters?.columns.get("value");
  if (!times || !values || !counter.rows) return null;
  const part = (column: ArrayLike<number>): Float64Array =>
    Float64Array.from({ length: counter.rows }, (_, i) => column[counter.first + i]!);
  const device = counter.device >= 0 && app.model.data.info.devices > 1 ? `device ${counter.device}` : "";
  const core = counter.core >= 0 ? `core ${counter.core}` : "";
  return {
    label: [shorten(counter.name, 40), device, core].filter(Boolean).join(", "),
    times: part(times),
    values: part(values),
  };
}

/** Steps over time, one line per counter, and a dashed line where a limit is known. */
export function stepChart(app: App, lines: Line[], unit: string, limit: Limit): HTMLElement {
  const data = uPlot.join(lines.map((line) => [line.times, line.values] as unknown as uPlot.AlignedData));
  const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
  const series = lines.map((line, number) => ({
    label: line.label,
    width: 1.5,
    dash: dashes[Math.floor(number / 8) % 4]!,
    spanGaps: true,
    paths: uPlot.paths.stepped!({ align: 1 }),
    ...colours(app, number, lines.length <= 4 ? "22" : ""),
  }));
  return chartOf(app, { label: "time", text: moment, whole: false }, series, data, unit, limit);
}

/** A bar per layer, or steps from layer to layer. */
export function layerChart(
  app: App,
  lines: LayerLine[],
  unit: string,
  { bars, limit }: { bars: boolean; limit: Limit },
): HTMLElement {
  const layers = lines[0]?.values.length ?? 0;
  const last = bars ? [] : [layers]; // the last step is as wide as the others
  const data = [
    [...Array(layers).keys(), ...last],
    ...lines.map((line) => [...line.values, ...last.map(() => line.values[layers - 1] ?? null)]),
  ] as uPlot.AlignedData;
  const paths = bars ? uPlot.paths.bars!({ size: [0.8, 60] }) : uPlot.paths.stepped!({ align: 1 });
  const series = lines.map((line) => ({
    label: line.label,
    width: bars ? 0 : 1.5,
    paths,
    ...colours(app, line.colour, bars ? "" : "22"),
    ...(bars ? { fill: () => colourOf(app, line.colour) } : {}),
  }));
  return chartOf(app, { label: "layer", text: (x) => count(x), whole: bars }, series, data, unit, limit);
}

const colourOf = (app: App, number: number): string => app.theme.colours[number] ?? app.theme.other;

/** Of a line and of what is below it, as the theme has them when they are drawn. */
function colours(app: App, number: number, below: string): Pick<uPlot.Series, "stroke" | "fill"> {
  const stroke = (): string => colourOf(app, number % 8);
  return below ? { stroke, fill: () => `${stroke()}${below}` } : { stroke };
}

/** What goes from left to right; `whole`: every value has the room of one to itself. */
type Across = { label: string; text: (value: number, step: number) => string; whole: boolean };

function chartOf(
  app: App,
  across: Across,
  series: uPlot.Series[],
  data: uPlot.AlignedData,
  unit: string,
  limit: Limit,
): HTMLElement {
  const box = el("div", { class: "chart" });
  const all = limit ? [...data, data[0].map(() => limit.value)] : data;
  let plot: uPlot | null = null;
  const draw = (): void => {
    const width = box.clientWidth;
    if (!width) return;
    plot?.destroy();
    plot = new uPlot(options(app, across, series, unit, limit, width), all as uPlot.AlignedData, box);
  };
  new ResizeObserver(() => (plot ? plot.setSize({ width: box.clientWidth, height: HEIGHT }) : draw())).observe(box);
  app.onTheme(draw);
  return box;
}

function options(
  app: App,
  across: Across,
  lines: uPlot.Series[],
  unit: string,
  limit: Limit,
  width: number,
): uPlot.Options {
  const value = (_: uPlot, y: number | null): string => inUnit(y, unit);
  const series: uPlot.Series[] = [
    { label: across.label, value: (_, x) => (x === null ? "—" : across.text(x, 1000)) },
    ...lines.map((line) => ({ ...line, points: { show: false }, value })),
  ];
  if (limit)
    series.push({
      label: limit.label,
      stroke: app.theme.path,
      width: 1,
      dash: [5, 4],
      points: { show: false },
      value,
    });
  const room = (_: uPlot, low: number, high: number): [number, number] =>
    across.whole ? [low - 0.5, high + 0.5] : [low, high];
  return {
    width,
    height: HEIGHT,
    series,
    legend: { live: true },
    cursor: { drag: { x: true, y: false }, points: { size: 6 } },
    scales: { x: { time: false, range: room }, y: { range: (_, __, high) => [0, high * 1.06 || 1] } },
    axes: [
      {
        ...axis(app, across.text),
        size: 28,
        ...(across.label === "layer" ? { incrs: WHOLE_STEPS } : {}),
      },
      { ...axis(app, (value) => inUnit(value, unit)), size: 66, ...(unit === "bytes" ? { incrs: BYTE_STEPS } : {}) },
    ],
  };
}

/** Places for ticks on an axis of powers: of ten, with 2 and 5 between them where there is room; of two for bytes. */
export function powers(low: number, high: number, unit: string, room: number): number[] {
  const steps = unit === "bytes" ? [1, 4, 16, 64, 256] : [1, 2, 5];
  const base = unit === "bytes" ? 1024 : 10;
  const found: number[] = [];
  for (let power = Math.floor(Math.log(low) / Math.log(base)); base ** power <= high; power++)
    for (const step of steps) found.push(step * base ** power);
  const within = found.filter((value) => value >= low && value <= high);
  if (within.length <= room) return within;
  const whole = within.filter((value) => Number.isInteger(Math.round(1e6 * (Math.log(value) / Math.log(base))) / 1e6));
  const each = Math.ceil(whole.length / room);
  return whole.length < 2 ? within : whole.filter((_, place) => place % each === 0);
}

/** An axis of powers of a metric, with its name. */
export function powerAxis(
  app: Themed,
  label: string,
  unit: string,
  text: (value: number) => string,
  size: number,
): uPlot.Axis {
  return {
    ...axis(app, text),
    size,
    label,
    labelSize: 20,
    labelFont: "11px system-ui, sans-serif",
    splits: (plot, number, low, high) => powers(low, high, unit, number ? plot.height / 30 : plot.width / 80),
    filter: (_, splits) => splits,
  };
}

export function axis(app: Themed, text: (value: number, step: number) => string): uPlot.Axis {
  const { theme } = app;
  return {
    stroke: theme.dim,
    font: "11px system-ui, sans-serif",
    grid: { stroke: theme.grid, width: 1 },
    ticks: { stroke: theme.grid, width: 1, size: 4 },
    values: (_, values) =>
      values.map((value) => (value === null ? "" : text(value, Math.abs((values[1] ?? 1) - (values[0] ?? 0)) || 1))),
  };
}

/** One value of a curve, with its range where that is known. */
export type CurvePoint = { x: number; y: number; low: number | null; high: number | null };
export type Curve = { label: string; points: CurvePoint[] };

/** Curves over a number that doubles from tick to tick, each with the band of its ranges, and a dashed limit. */
export function curveChart(
  app: Themed,
  across: string,
  curves: Curve[],
  unit: string,
  limit: Limit,
  title: string,
): HTMLElement {
  const box = el("div", { class: "chart curves", role: "group", "aria-label": title });
  const xs = [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b);
  const at = curves.map((curve) => new Map(curve.points.map((point) => [point.x, point])));
  const text = (number: number, place: number | null): string => {
    const point = place === null ? undefined : at[number]!.get(xs[place]!);
    if (!point) return "—";
    const value = inUnit(point.y, unit);
    const [low, high] = [inUnit(point.low, unit), inUnit(point.high, unit)];
    return point.low === null || point.high === null || low === high ? value : `${value} (${low} – ${high})`;
  };
  const colour = (number: number): string => app.theme.colours[number % 8]!;
  const bands = (plot: uPlot): void => {
    const { ctx } = plot;
    ctx.save();
    curves.forEach((curve, number) => {
      const ends = curve.points.filter((point) => point.low !== null && point.high !== null);
      const place = (x: number, y: number): [number, number] => [
        plot.valToPos(x, "x", true),
        plot.valToPos(y, "y", true),
      ];
      ctx.beginPath();
      ends.forEach((point) => ctx.lineTo(...place(point.x, point.high!)));
      [...ends].reverse().forEach((point) => ctx.lineTo(...place(point.x, point.low!)));
      ctx.globalAlpha = 0.14;
      ctx.fillStyle = colour(number);
      ctx.fill();
    });
    ctx.restore();
  };
  const most = Math.max(
    ...curves.flatMap((curve) => curve.points.map((point) => point.high ?? point.y)),
    limit?.value ?? 0,
  );
  const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
  const series: uPlot.Series[] = [
    { label: across, value: (_, x) => count(x) },
    ...curves.map((curve, number) => ({
      label: curve.label,
      stroke: () => colour(number),
      width: 1.5,
      dash: dashes[number % 4]!,
      spanGaps: true,
      points: { show: true, size: 6 },
      value: (_: uPlot, __: number, ___: number, place: number | null) => text(number, place),
    })),
    ...(limit
      ? [
          {
            label: limit.label,
            stroke: () => app.theme.path,
            width: 1,
            dash: [5, 4],
            points: { show: false },
            value: () => inUnit(limit.value, unit),
          },
        ]
      : []),
  ];
  const data = [
    xs,
    ...at.map((points) => xs.map((x) => points.get(x)?.y ?? null)),
    ...(limit ? [xs.map(() => limit.value)] : []),
  ] as uPlot.AlignedData;
  let plot: uPlot | null = null;
  const draw = (): void => {
    const width = box.clientWidth;
    if (!width) return;
    plot?.destroy();
    plot = new uPlot(
      {
        width,
        height: 240,
        series,
        legend: { live: true },
        cursor: { drag: { x: false, y: false }, points: { size: 7 } },
        scales: {
          x: { time: false, distr: 3, log: 2, range: [xs[0]! / 1.2, xs[xs.length - 1]! * 1.2] },
          y: { range: [0, most * 1.06 || 1] },
        },
        axes: [
          {
            ...axis(app, (value) => count(value)),
            size: 28,
            label: across,
            labelSize: 20,
            labelFont: "11px system-ui, sans-serif",
            splits: () => (xs.length <= 8 ? xs : xs.filter((_, place) => place % Math.ceil(xs.length / 8) === 0)),
            filter: (_, splits) => splits,
          },
          {
            ...axis(app, (value) => inUnit(value, unit)),
            size: 72,
            ...(unit === "bytes" ? { incrs: BYTE_STEPS } : {}),
          },
        ],
        hooks: { drawSeries: [(self, number) => number === 1 && bands(self)] },
      },
      data,
      box,
    );
  };
  new ResizeObserver(() => (plot ? plot.setSize({ width: box.clientWidth, height: 240 }) : draw())).observe(box);
  app.onTheme(draw);
  return box;
}
