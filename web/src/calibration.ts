// A fit to measurements: predicted against measured, errors by what rows have in common, and the figures that moved.

import type { CalibrationData, CalibrationFigure, CalibrationGroup, CalibrationRow } from "./contract";
import { el, nothing, section } from "./dom";
import { count, percent, time, UNKNOWN } from "./format";
import type { Themed } from "./state";
import { choice } from "./store/controls";
import { OTHERS, Scatter, SHAPES, type Group } from "./store/scatter";
import { SortTable, type Col } from "./table";
import { shorten } from "./text";

type Row = CalibrationRow;
type Dot = { x: number; y: number; row: Row };
type Key = { name: string; of: (row: Row) => string };

const HINT = "Point at a measurement for its network. On the line, predicted is measured.";
const STEPS = 400;
const KEYS: Key[] = [
  { name: "precision", of: (row) => row.precision },
  { name: "chip", of: (row) => row.chip || UNKNOWN },
  { name: "what rules the time", of: (row) => row.ruled_by },
  { name: "in or out of the range", of: (row) => (row.inside ? "in the range" : "out of the range") },
];

export function calibration(data: CalibrationData, themed: Themed): HTMLElement {
  const list = (lines: string[]): HTMLElement => el("ul", {}, ...lines.map((line) => el("li", {}, shorten(line, 400))));
  const all = new SortTable(rowColumns(), 5, true, "Every measurement");
  all.set(data.rows);
  const moved = new SortTable(figureColumns(), 5, true, "Fitted figures");
  moved.set(data.figures);
  return el(
    "div",
    {},
    el("p", { class: "note" }, data.head),
    picture(data, themed),
    ...data.groups.map(({ by, groups }) => {
      const table = new SortTable(groupColumns(by), 2, true, `Errors by ${by}`);
      table.set(groups);
      return section(
        by === "all" ? "Errors" : `Errors by ${by === "ruled by" ? "what rules the time" : by}`,
        table.root,
      );
    }),
    section(
      "Not explained",
      data.unexplained.length ? list(data.unexplained) : nothing("No network lies outside of its range mostly."),
    ),
    section("Measure next", el("p", {}, data.next || "Nothing stands out: no family of work has a wide range.")),
    section("Figures", moved.root),
    section("Measurements", all.root),
    data.skipped.length ? section("Left out", list(data.skipped)) : "",
  );
}

/** Points of one colour for each value of what is chosen; the line on which both are equal. */
function picture(data: CalibrationData, themed: Themed): HTMLElement {
  let key = KEYS[0]!;
  const said = el("p", { class: "note", role: "status" }, HINT);
  const legend = el("p", { class: "legend" });
  const groups = (): (Group & { dots: Dot[]; name: string })[] => {
    const names = [...new Set(data.rows.map(key.of))];
    return names.map((name, number) => {
      const rows = data.rows.filter((row) => key.of(row) === name);
      return {
        name,
        colour: Math.min(number, OTHERS),
        dots: rows.map((row) => ({ x: row.measured_ns, y: row.predicted_ns, row })),
        line: number ? [] : diagonal(data.rows),
      };
    });
  };
  const chart = new Scatter(
    themed,
    () => ({
      groups: groups(),
      x: { label: "measured", unit: "ns", text: (value) => time(value) },
      y: { label: "predicted", unit: "ns", text: (value) => time(value) },
    }),
    (dot) => (said.textContent = dot ? tell((dot as Dot).row) : HINT),
  );
  const renew = (): void => {
    legend.replaceChildren(
      ...groups().map((group) =>
        el(
          "span",
          { class: `shape t${group.colour}` },
          el("i", {}, SHAPES[group.colour]!),
          ` ${shorten(group.name, 40)} `,
        ),
      ),
    );
    chart.draw();
  };
  themed.onTheme(() => chart.draw());
  new ResizeObserver(() => chart.draw()).observe(chart.root);
  requestAnimationFrame(renew);
  const by = choice(
    "Colour by",
    KEYS.map((each, number): [number, string] => [number, each.name]),
    0,
    (number) => {
      key = KEYS[number]!;
      renew();
    },
  );
  return section("Predicted against measured", el("div", { class: "tools" }, by), chart.root, legend, said);
}

/** Where predicted is measured, in steps too small to see: the chart joins points by steps. */
export function diagonal(rows: Row[]): { x: number; y: number }[] {
  const times = rows.flatMap((row) => [row.measured_ns, row.predicted_ns]);
  const [low, high] = [Math.min(...times), Math.max(...times)];
  return Array.from({ length: STEPS + 1 }, (_, step) => low * (high / low) ** (step / STEPS)).map((end) => ({
    x: end,
    y: end,
  }));
}

const ratio = (row: Row): number => row.predicted_ns / row.measured_ns;
const signed = (value: number): string => `${value > 0 ? "+" : ""}${percent(value)}`;

function tell(row: Row): string {
  const range = `${time(row.low_ns, 3)} – ${time(row.high_ns, 3)}`;
  const where = [shorten(row.network, 60), row.chip, row.precision].filter(Boolean).join(", ");
  return `${where}: measured ${time(row.measured_ns, 3)}, predicted ${time(row.predicted_ns, 3)} (${range}), ruled by ${row.ruled_by}`;
}

function rowColumns(): Col<Row>[] {
  return [
    { label: "Network", value: (row) => row.network, cell: (row) => shorten(row.network, 40) },
    { label: "Chip", value: (row) => row.chip, cell: (row) => shorten(row.chip || UNKNOWN, 40) },
    { label: "Precision", value: (row) => row.precision, cell: (row) => row.precision },
    { label: "Measured", number: true, value: (row) => row.measured_ns, cell: (row) => time(row.measured_ns, 3) },
    {
      label: "Predicted",
      number: true,
      value: (row) => row.predicted_ns,
      cell: (row) => `${time(row.predicted_ns, 3)} (${time(row.low_ns, 3)} – ${time(row.high_ns, 3)})`,
    },
    {
      label: "Off by",
      title: "Sorted by the ratio of the two, whichever is larger",
      number: true,
      value: (row) => Math.abs(Math.log(ratio(row))),
      cell: (row) => signed(ratio(row) - 1),
    },
    { label: "In range", value: (row) => Number(row.inside), cell: (row) => (row.inside ? "yes" : "no") },
    { label: "Ruled by", value: (row) => row.ruled_by, cell: (row) => row.ruled_by },
  ];
}

function groupColumns(by: string): Col<CalibrationGroup>[] {
  return [
    { label: by === "all" ? "" : by, value: (row) => row.name, cell: (row) => shorten(row.name || UNKNOWN, 60) },
    { label: "Rows", number: true, value: (row) => row.rows, cell: (row) => count(row.rows) },
    { label: "Median error", number: true, value: (row) => row.median_error, cell: (row) => percent(row.median_error) },
    { label: "90th percentile", number: true, value: (row) => row.p90_error, cell: (row) => percent(row.p90_error) },
    { label: "Bias", number: true, value: (row) => row.bias, cell: (row) => signed(row.bias) },
    { label: "In range", number: true, value: (row) => row.coverage, cell: (row) => percent(row.coverage, 0) },
    {
      label: "Width",
      title: "High ÷ low of the range, in the median",
      number: true,
      value: (row) => row.width,
      cell: (row) => `× ${row.width.toFixed(2)}`,
    },
  ];
}

function figureColumns(): Col<CalibrationFigure>[] {
  const figure = (value: number): string =>
    Math.abs(value) < 0.01 ? value.toPrecision(4) : Number(value.toPrecision(4)).toLocaleString("en");
  return [
    { label: "Figure", value: (row) => row.key, cell: (row) => row.key },
    { label: "Data sheet", number: true, value: (row) => row.data_sheet, cell: (row) => figure(row.data_sheet) },
    { label: "Fitted", number: true, value: (row) => row.value, cell: (row) => figure(row.value) },
    {
      label: "Range",
      number: true,
      value: (row) => row.high / row.low,
      cell: (row) => `${figure(row.low)} – ${figure(row.high)}`,
    },
    { label: "Most of a time", number: true, value: (row) => row.most, cell: (row) => percent(row.most, 0) },
    {
      label: "Moved by",
      number: true,
      value: (row) => Math.abs(Math.log(row.value / row.data_sheet)),
      cell: (row) => `× ${(row.value / row.data_sheet).toFixed(2)}`,
    },
  ];
}
