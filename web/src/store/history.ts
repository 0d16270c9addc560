// How a metric of each series went from commit to commit, and where it changed in a way that noise does not explain.

import uPlot from "uplot";
import { axis } from "../charts";
import type { StoreChange } from "../contract";
import { button, el, nothing, section, type Child } from "../dom";
import { count, counted, percent, signed, time } from "../format";
import { provenance } from "../provenance";
import { SortTable, type Col } from "../table";
import { prose, shorten } from "../text";
import { differing, labelOf, show, type Fleet } from "./cells";
import { choice, lazily, metricOptions, note, Question } from "./controls";
import { runLink } from "./detail";

const HEIGHT = 300;

type Series = { label: string; rows: number[]; changes: StoreChange[] }; // oldest first

export function history(fleet: Fleet): HTMLElement {
  const { cells } = fleet;
  const { metrics, changes } = cells.data;
  let metric = Math.max(cells.metricNamed("latency"), 0);
  let all: Series[] = [];
  let chosen: Series | null = null;
  let plot: uPlot | null = null;
  const box = el("div", { class: "chart" });
  const title = el("h3", {});
  const told = el("div", {});
  const looked = note();
  const question = new Question();

  const work = (): void => {
    all = seriesOf(fleet, metric);
    chosen = all[0] ?? null;
    table.set(all);
    const known = changes.some((change) => change.metric === metric);
    looked.textContent = known
      ? "Figures that are exact change where they differ; measured ones where noise does not explain it, by the statistics of the gate."
      : `No change point of ${metrics[metric]!.name} is known: they are looked for in latency, peak_memory and energy.`;
    question.set(
      cells.sql(["series", "created", "commit", "model", "target", metrics[metric]!.sql], { from: "cells" }),
    );
  };
  const draw = (): void => {
    plot?.destroy();
    plot = null;
    box.replaceChildren();
    title.textContent = chosen ? shorten(chosen.label, 140) : "";
    told.replaceChildren(...(chosen ? [tell(chosen)] : []));
    if (!chosen) return void box.append(nothing("No series has two points: history begins with the second commit."));
    plot = chart(fleet, chosen, metric, box);
  };
  const tell = (series: Series): HTMLElement =>
    series.changes.length
      ? el("ul", { class: "changes" }, ...series.changes.map((found) => el("li", {}, ...changeWords(fleet, found))))
      : nothing(`No change in ${counted(series.rows.length, "point")}.`);
  const largest = (series: Series): number =>
    Math.max(0, ...series.changes.map((found) => Math.abs(found.after / found.before - 1)));
  const last = (series: Series): number => cells.metric(metric)[series.rows[series.rows.length - 1]!]!;
  const columns: Col<Series>[] = [
    {
      label: "Series",
      value: (series) => series.label,
      cell: (series) =>
        button(
          shorten(series.label, 90),
          () => {
            chosen = series;
            draw();
            title.scrollIntoView({ block: "center" });
          },
          { class: "link" },
        ),
    },
    {
      label: "Points",
      number: true,
      value: (series) => series.rows.length,
      cell: (series) => count(series.rows.length),
    },
    {
      label: "Changes",
      number: true,
      value: (series) => series.changes.length,
      cell: (series) => count(series.changes.length),
    },
    {
      label: "Largest",
      number: true,
      value: largest,
      cell: (series) => (series.changes.length ? percent(largest(series)) : "—"),
    },
    { label: "Now", number: true, value: last, cell: (series) => show(metrics[metric]!, last(series)) },
  ];
  const table = new SortTable(columns, 3, true, "Series");
  const { redraw, renew } = lazily(box, cells, work, draw);
  fleet.onTheme(redraw);
  return el(
    "div",
    {},
    section(
      "History",
      el(
        "div",
        { class: "tools" },
        choice("Metric", metricOptions(cells), metric, (value) => {
          metric = value;
          renew();
        }),
      ),
      title,
      box,
      told,
      looked,
      question.root,
    ),
    section("Series", table.root),
  );
}

/** Series with at least two points, those with the largest change first. */
function seriesOf(fleet: Fleet, metric: number): Series[] {
  const { cells } = fleet;
  const column = cells.column("series");
  const created = cells.column("created");
  const values = cells.metric(metric);
  const kinds = cells.axisNamed("provenance");
  const groups = new Map<number, number[]>();
  for (const row of cells.all) {
    if (Number.isNaN(values[row]!)) continue;
    const key = column[row]! * 64 + (kinds < 0 ? 0 : cells.axis(kinds)[row]! + 1); // kinds of provenance are few
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  const found = new Map<number, StoreChange[]>();
  for (const change of cells.data.changes)
    if (change.metric === metric) found.set(change.row, [...(found.get(change.row) ?? []), change]);
  const telling = differing(cells, cells.all);
  const size = (series: Series): number =>
    Math.max(0, ...series.changes.map((change) => Math.abs(change.after / change.before - 1)));
  return [...groups.values()]
    .filter((rows) => rows.length > 1)
    .map((rows) => {
      rows.sort((a, b) => created[a]! - created[b]! || b - a);
      const label = labelOf(cells, telling.length ? telling : [0], rows[rows.length - 1]!);
      return { label, rows, changes: rows.flatMap((row) => found.get(row) ?? []) };
    })
    .sort((a, b) => size(b) - size(a) || (a.label < b.label ? -1 : 1));
}

function changeWords(fleet: Fleet, change: StoreChange): Child[] {
  const { cells } = fleet;
  const metric = cells.data.metrics[change.metric]!;
  const grew = change.after > change.before;
  const better = metric.better ? grew === (metric.better === "more") : null;
  const size = change.after / change.before - 1;
  const interval =
    change.low === null || change.high === null
      ? ""
      : ` (95 % interval ${percent(change.low)} to ${percent(change.high)})`;
  const moved = (ns: number): string => signed(ns, `${ns < 0 ? "-" : ""}${time(Math.abs(ns))}`);
  const parts = [
    change.cause ? `cause ${shorten(change.cause.name, 40)} ${moved(change.cause.ns)}` : "",
    ...change.ops.map((op) => `${shorten(op.name, 60)} ${moved(op.ns)}`),
  ].filter(Boolean);
  return [
    el("b", {}, place(fleet, change.row)),
    ` ${show(metric, change.before)} → ${show(metric, change.after)}, `,
    el(
      "span",
      { class: better === null ? "" : better ? "better" : "worse" },
      `${signed(size, percent(size))}${better === null ? "" : better ? " better" : " worse"}`,
    ),
    `${interval} `,
    provenance(cells.named("provenance", change.row)),
    parts.length ? el("div", { class: "why" }, parts.join(" · ")) : "",
    change.note ? el("div", { class: "why" }, prose(change.note, 200)) : "",
    runLink(cells, change.row, "its run") ?? "",
  ];
}

const place = (fleet: Fleet, row: number): string => {
  const commit = fleet.cells.named("commit", row);
  return commit && commit !== "—" ? `commit ${shorten(commit, 16)}` : fleet.cells.when(row);
};

function chart(fleet: Fleet, series: Series, metric: number, box: HTMLElement): uPlot {
  const { cells, theme } = fleet;
  const shown = cells.data.metrics[metric]!;
  const values = series.rows.map((row) => cells.metric(metric)[row]!);
  const starts = new Set(series.changes.map((change) => series.rows.indexOf(change.row)));
  const most = Math.max(...values);
  const least = Math.min(...values);
  const room = (most - least || most || 1) * 0.25;
  const names = (at: number): string =>
    series.rows[at] === undefined ? "" : place(fleet, series.rows[at]!).replace("commit ", "");
  return new uPlot(
    {
      width: box.clientWidth,
      height: HEIGHT,
      series: [
        { label: "at", value: (_, x) => (x === null ? "—" : names(x)) },
        {
          label: shown.name,
          stroke: theme.colours[0]!,
          width: 1.75,
          paths: uPlot.paths.stepped!({ align: 1 }),
          points: { show: true, size: 6 },
          value: (_, y) => show(shown, y ?? NaN),
        },
      ],
      legend: { live: true },
      cursor: { drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: [-0.5, values.length - 0.5] },
        y: { range: [Math.max(0, least - room), most + room] },
      },
      axes: [
        {
          ...axis(fleet, (at) => (Number.isInteger(at) ? shorten(names(at), 12) : "")),
          size: 28,
          space: 90,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
        },
        { ...axis(fleet, (at) => show(shown, at)), size: 72 },
      ],
      hooks: {
        draw: [
          (self) => {
            const { ctx, bbox } = self;
            ctx.save();
            ctx.strokeStyle = theme.path;
            ctx.lineWidth = 1.5 * devicePixelRatio;
            ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
            for (const at of starts) {
              const x = self.valToPos(at, "x", true);
              ctx.beginPath();
              ctx.moveTo(x, bbox.top);
              ctx.lineTo(x, bbox.top + bbox.height);
              ctx.stroke();
            }
            ctx.restore();
          },
        ],
      },
    },
    [values.map((_, at) => at), values],
    box,
  );
}
