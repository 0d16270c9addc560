// Lines over time, by uPlot, in the colours of the page.

import uPlot from "uplot";
import { el } from "./dom";
import type { PageCounter } from "./contract";
import { inUnit, moment } from "./format";
import type { App } from "./state";
import { shorten } from "./text";

const HEIGHT = 190;
const BYTE_STEPS = Array.from({ length: 50 }, (_, power) => 2 ** power);

export type Line = { label: string; times: Float64Array; values: Float64Array };

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
export function stepChart(
  app: App,
  lines: Line[],
  unit: string,
  limit: { label: string; value: number } | null,
): HTMLElement {
  const box = el("div", { class: "chart" });
  const data = uPlot.join(lines.map((line) => [line.times, line.values] as unknown as uPlot.AlignedData));
  if (limit) (data as unknown[]).push((data[0] as number[]).map(() => limit.value));
  let plot: uPlot | null = null;
  const draw = (): void => {
    const width = box.clientWidth;
    if (!width) return;
    plot?.destroy();
    plot = new uPlot(options(app, lines, unit, limit, width), data, box);
  };
  new ResizeObserver(() => (plot ? plot.setSize({ width: box.clientWidth, height: HEIGHT }) : draw())).observe(box);
  app.onTheme(draw);
  return box;
}

function options(
  app: App,
  lines: Line[],
  unit: string,
  limit: { label: string; value: number } | null,
  width: number,
): uPlot.Options {
  const { theme } = app;
  const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
  const series: uPlot.Series[] = [{ label: "time", value: (_, x) => (x === null ? "—" : moment(x, 1000)) }];
  lines.forEach((line, number) =>
    series.push({
      label: line.label,
      stroke: theme.colours[number % 8]!,
      width: 1.5,
      dash: dashes[Math.floor(number / 8) % 4]!,
      spanGaps: true,
      points: { show: false },
      ...(lines.length <= 4 ? { fill: `${theme.colours[number % 8]}22` } : {}),
      paths: uPlot.paths.stepped!({ align: 1 }),
      value: (_, y) => inUnit(y, unit),
    }),
  );
  if (limit)
    series.push({
      label: limit.label,
      stroke: theme.path,
      width: 1,
      dash: [5, 4],
      points: { show: false },
      value: (_, y) => inUnit(y, unit),
    });
  return {
    width,
    height: HEIGHT,
    series,
    legend: { live: true },
    cursor: { drag: { x: true, y: false }, points: { size: 6 } },
    scales: { x: { time: false }, y: { range: (_, __, high) => [0, high * 1.06 || 1] } },
    axes: [
      { ...axis(app, (ns, step) => moment(ns, step)), size: 28 },
      { ...axis(app, (value) => inUnit(value, unit)), size: 66, ...(unit === "bytes" ? { incrs: BYTE_STEPS } : {}) },
    ],
  };
}

export function axis(app: App, text: (value: number, step: number) => string): uPlot.Axis {
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
