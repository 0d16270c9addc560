// How a metric goes with batch, cores or any other number: a line per configuration.

import uPlot from "uplot";
import { powerAxis } from "../charts";
import { el, nothing, section } from "../dom";
import { count, decimal, percent } from "../format";
import { SortTable, type Col } from "../table";
import { shorten } from "../text";
import { differing, labelOf, show, TOLD_AFTERWARDS, type Fleet } from "./cells";
import { choice, lazily, metricOptions, note, Question } from "./controls";

const LINES = 8;
const HEIGHT = 360;

type Line = { label: string; row: number; xs: number[]; ys: number[] };

const last = (values: number[]): number => values[values.length - 1]!;
const gain = (line: Line): number => last(line.ys) / line.ys[0]!;

export function scaling(fleet: Fleet): HTMLElement {
  const { cells } = fleet;
  const { axes, metrics } = cells.data;
  const numbers = axes.flatMap((one, number): [number, string][] =>
    one.number && one.words.length > 1 ? [[number, one.name]] : [],
  );
  if (!numbers.length)
    return section("Scaling", nothing("No axis of numbers, such as batch or cores, has two values."));
  let x = numbers[0]![0];
  let metric = Math.max(cells.metricNamed("throughput"), 0);
  let lines: Line[] = [];
  let chosen: Line[] = [];
  const box = el("div", { class: "chart" });
  const hint = note();
  const question = new Question();
  let plot: uPlot | null = null;

  const work = (): void => {
    lines = linesOf(fleet, x, metric);
    chosen = lines.slice(0, LINES);
    table.set(lines);
    question.set(
      cells.sql([...axes.flatMap((one) => (TOLD_AFTERWARDS.has(one.name) ? [] : [one.sql])), metrics[metric]!.sql]),
    );
  };
  const toggle = (line: Line): void => {
    chosen = chosen.includes(line) ? chosen.filter((other) => other !== line) : [...chosen, line].slice(-LINES);
    table.set(lines);
    draw();
  };
  const columns: Col<Line>[] = [
    {
      label: "Configuration",
      value: (line) => line.label,
      cell: (line) => {
        const box = el("input", { type: "checkbox", checked: chosen.includes(line) });
        box.addEventListener("change", () => toggle(line));
        return el("label", {}, box, ` ${shorten(line.label, 90)}`);
      },
    },
    { label: "Points", number: true, value: (line) => line.xs.length, cell: (line) => count(line.xs.length) },
    {
      label: "From",
      number: true,
      value: (line) => line.ys[0]!,
      cell: (line) => `${show(metrics[metric]!, line.ys[0]!)} at ${count(line.xs[0]!)}`,
    },
    {
      label: "To",
      number: true,
      value: (line) => last(line.ys),
      cell: (line) => `${show(metrics[metric]!, last(line.ys))} at ${count(last(line.xs))}`,
    },
    { label: "Times", number: true, value: gain, cell: (line) => `${decimal(gain(line), 3)}×` },
    {
      label: "Of ideal",
      title: "times as much, for so many times the resources",
      number: true,
      value: (line) => ideal(line),
      cell: (line) => percent(ideal(line), 0),
    },
  ];
  const ideal = (line: Line): number | null =>
    metrics[metric]!.better === "more" ? gain(line) / (last(line.xs) / line.xs[0]!) : null;
  const table = new SortTable(columns, 4, true, "Configurations");
  const draw = (): void => {
    plot?.destroy();
    plot = null;
    box.replaceChildren();
    hint.textContent =
      lines.length > chosen.length
        ? `${count(chosen.length)} of ${count(lines.length)} lines are drawn; the table shows others.`
        : "";
    if (!chosen.length) return void box.append(nothing("No configuration has two values of it."));
    plot = new uPlot(
      options(fleet, chosen, axes[x]!.name, metric, box.clientWidth),
      aligned(chosen, metrics[metric]!.better === "more"),
      box,
    );
  };
  const { redraw, renew } = lazily(box, cells, work, draw);
  fleet.onTheme(redraw);
  const choose = (set: (value: number) => void) => {
    return (value: number): void => {
      set(value);
      renew();
    };
  };
  return el(
    "div",
    {},
    section(
      "Scaling",
      el(
        "div",
        { class: "tools" },
        choice(
          "Metric",
          metricOptions(cells),
          metric,
          choose((value) => (metric = value)),
        ),
        choice(
          "By",
          numbers,
          x,
          choose((value) => (x = value)),
        ),
      ),
      box,
      hint,
      question.root,
    ),
    section("Configurations", table.root),
  );
}

/** Configurations that have at least two values on an axis, those that gain most first. */
function linesOf(fleet: Fleet, x: number, metric: number): Line[] {
  const { cells } = fleet;
  const { axes } = cells.data;
  const others = axes
    .map((_, number) => number)
    .filter((number) => number !== x && !TOLD_AFTERWARDS.has(axes[number]!.name));
  const values = cells.metric(metric);
  const known = cells.rows.filter((row) => cells.axis(x)[row]! >= 0 && !Number.isNaN(values[row]!));
  const keys = cells.together(known, others);
  const groups = new Map<number, number[]>();
  known.forEach((row, i) => {
    const group = groups.get(keys[i]!);
    if (group) group.push(row);
    else groups.set(keys[i]!, [row]);
  });
  const telling = differing(cells, cells.rows, [x]);
  const at = (row: number): number => Number(axes[x]!.words[cells.axis(x)[row]!]);
  return [...groups.values()]
    .map((rows) => {
      const points = new Map(rows.map((row) => [at(row), values[row]!]));
      const xs = [...points.keys()].sort((a, b) => a - b);
      return {
        label: labelOf(cells, telling.length ? telling : [0], rows[0]!),
        row: rows[0]!,
        xs,
        ys: xs.map((value) => points.get(value)!),
      };
    })
    .filter((line) => line.xs.length > 1)
    .sort((a, b) => gain(b) - gain(a));
}

/** Lines on the values that any has; last the first line as it would be if it grew with what is across. */
function aligned(lines: Line[], ideal: boolean): uPlot.AlignedData {
  const xs = [...new Set(lines.flatMap((line) => line.xs))].sort((a, b) => a - b);
  const found = lines.map((line) => xs.map((x) => line.ys[line.xs.indexOf(x)] ?? null));
  const [first] = lines;
  if (ideal) found.push(xs.map((x) => (first!.ys[0]! * x) / first!.xs[0]!));
  return [xs, ...found] as uPlot.AlignedData;
}

function options(fleet: Fleet, lines: Line[], across: string, metric: number, width: number): uPlot.Options {
  const shown = fleet.cells.data.metrics[metric]!;
  const value = (_: uPlot, y: number | null): string => show(shown, y ?? NaN);
  const series: uPlot.Series[] = lines.map((line, number) => ({
    label: shorten(line.label, 60),
    width: 1.75,
    stroke: fleet.theme.colours[number % LINES]!,
    spanGaps: true,
    points: { show: true, size: 6 },
    value,
  }));
  if (shown.better === "more")
    series.push({
      label: "the first, if it grew as much",
      stroke: fleet.theme.path,
      width: 1,
      dash: [5, 4],
      points: { show: false },
      value,
    });
  return {
    width,
    height: HEIGHT,
    series: [{ label: across, value: (_, x) => (x === null ? "—" : count(x)) }, ...series],
    legend: { live: true },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: false, distr: 3, log: 2, range: (_, low, high) => [low / 1.1, high * 1.1] },
      y: { distr: 3, range: (_, low, high) => [low / 1.3, high * 1.3] },
    },
    axes: [
      {
        ...powerAxis(fleet, across, "", (at) => count(at), 28),
        splits: () => [...new Set(lines.flatMap((line) => line.xs))],
      },
      powerAxis(fleet, shown.name, shown.unit, (at) => show(shown, at), 72),
    ],
  };
}
