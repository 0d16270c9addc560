// One model on many chips: latency against memory or energy with the front of each kind of number, and every row.

import type { BakeoffData, BakeoffPageRow } from "./contract";
import { el, nothing, section, words } from "./dom";
import { bytes, counted, joules, percent, time, UNKNOWN } from "./format";
import { provenance } from "./provenance";
import type { Themed } from "./state";
import { choice } from "./store/controls";
import { Scatter, SHAPES, type Group } from "./store/scatter";
import { plainTable, SortTable, type Col } from "./table";
import { shorten } from "./text";

type Row = BakeoffPageRow;
type Dot = { x: number; y: number; row: Row };
type Up = { name: string; unit: string; value: (row: Row) => number | null; text: (value: number) => string };

const HINT = "Point at a chip for its name. A line joins those of a kind that no other of it beats on both.";
const UPS: Up[] = [
  { name: "peak memory", unit: "bytes", value: (row) => row.peak_bytes, text: bytes },
  { name: "energy", unit: "J", value: (row) => (row.energy_whole ? row.energy_j : null), text: joules },
  {
    name: "compile time",
    unit: "ns",
    value: (row) => (row.compile_s === null ? null : 1e9 * row.compile_s),
    text: time,
  },
];

export function bakeoff(data: BakeoffData, themed: Themed): HTMLElement {
  const timed = data.rows.filter((row) => row.kind);
  const chosen = new Set(data.kinds.map((kind) => kind.name));
  const ups = UPS.filter((up) => timed.some((row) => (up.value(row) ?? 0) > 0));
  let up = ups[0];
  const said = el("p", { class: "note", role: "status" }, HINT);
  const legend = el("p", { class: "legend" });
  const without = el("p", { class: "note" });

  const groups = (): (Group & { dots: Dot[] })[] => {
    if (!up) return [];
    const { value } = up;
    return data.kinds
      .map((kind, colour) => {
        const rows = timed.filter((row) => row.kind === kind.name && chosen.has(row.kind));
        const dots = rows
          .map((row) => ({ x: row.latency_ns ?? 0, y: value(row) ?? 0, row }))
          .filter((dot) => dot.x > 0 && dot.y > 0); // 0 has no place among powers
        return { colour, dots, line: lineThrough(dots.filter((dot) => dot.row.fits !== false)) };
      })
      .filter((group) => group.dots.length);
  };
  const chart = new Scatter(
    themed,
    () => ({
      groups: groups(),
      x: { label: "latency, less is better", unit: "ns", text: (value) => time(value) },
      y: { label: `${up?.name ?? ""}, less is better`, unit: up?.unit ?? "", text: up?.text ?? String },
    }),
    (dot) => (said.textContent = dot ? tell((dot as Dot).row) : HINT),
  );
  const table = new SortTable(columns(timed), 1, false, "Chips by kind of number and latency");
  const renew = (): void => {
    const shown = timed.filter((row) => chosen.has(row.kind));
    table.set(shown);
    const drawn = groups();
    const dots = drawn.reduce((sum, group) => sum + group.dots.length, 0);
    legend.replaceChildren(
      ...drawn.map((group) =>
        el(
          "span",
          { class: `shape t${group.colour}` },
          el("i", {}, SHAPES[group.colour]!),
          ` ${group.dots[0]!.row.kind} `,
        ),
      ),
    );
    without.textContent =
      up && shown.length > dots
        ? `${counted(shown.length - dots, "row")} of the table without a place here: no ${up.name}.`
        : "";
    chart.draw();
  };
  const picture = ups.length
    ? section(
        "Latency against what it takes",
        el(
          "div",
          { class: "tools" },
          choice(
            "Up",
            ups.map((each, number): [number, string] => [number, each.name]),
            0,
            (number) => {
              up = ups[number];
              renew();
            },
          ),
        ),
        chart.root,
        legend,
        said,
        without,
      )
    : nothing("No row has a memory or an energy to draw its latency against.");
  themed.onTheme(() => chart.draw());
  new ResizeObserver(() => chart.draw()).observe(chart.root);
  requestAnimationFrame(renew);
  const failed = data.rows.filter((row) => !row.kind);
  return el(
    "div",
    {},
    el("p", { class: "note" }, data.head),
    kindFilter(data, timed, chosen, renew),
    picture,
    section("Chips", table.root, ...data.notes.map((line) => el("p", { class: "note" }, shorten(line, 600)))),
    failed.length ? section("Without a latency", reasons(failed)) : "",
  );
}

/** Kinds to show; each is ranked alone. */
function kindFilter(data: BakeoffData, timed: Row[], chosen: Set<string>, act: () => void): HTMLElement {
  const boxes = data.kinds.map(({ name, why }) => {
    const box = el("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(name);
      else chosen.delete(name);
      act();
    });
    return el("label", { title: why }, box, ` ${name} (${timed.filter((row) => row.kind === name).length})`);
  });
  return el("div", { class: "tools", role: "group", "aria-label": "Kinds of numbers to show" }, ...boxes);
}

/** From the least of one to the least of the other; a step that is no better is left out. */
export function lineThrough(dots: Dot[]): Dot[] {
  const found: Dot[] = [];
  for (const dot of [...dots].sort((a, b) => a.x - b.x || a.y - b.y))
    if (!found.length || dot.y < found[found.length - 1]!.y) found.push(dot);
  return found;
}

function tell(row: Row): string {
  const facts = [time(row.latency_ns), bytes(row.peak_bytes), row.energy_text].filter((text) => text !== UNKNOWN);
  return `${shorten(row.title, 80)}, by ${row.backend} (${row.kind}), ${row.precision}: ${facts.join(", ")}`;
}

function columns(rows: Row[]): Col<Row>[] {
  const kinds = [...new Set(rows.map((row) => row.kind))];
  const latency = (row: Row): string =>
    row.low_ns === null || row.high_ns === null
      ? time(row.latency_ns, 3)
      : `${time(row.latency_ns, 3)} (${time(row.low_ns, 3)} – ${time(row.high_ns, 3)})`;
  const all: (Col<Row> & { known?: (row: Row) => boolean })[] = [
    {
      label: "Chip",
      value: (row) => row.target,
      cell: (row) =>
        el("span", { title: row.title }, row.is_on_front ? el("b", {}, "● ") : "", shorten(row.target, 40)),
    },
    {
      label: "Kind, then latency",
      title: "Rows of two kinds are not ranked against each other",
      // a latency never reaches into the next kind: an hour of ns is below 1e13
      value: (row) => kinds.indexOf(row.kind) * 1e13 + (row.latency_ns ?? 0),
      cell: (row) => provenance(row.kind),
    },
    { label: "Told by", value: (row) => row.backend, cell: (row) => row.backend },
    { label: "Precision", value: (row) => row.precision, cell: (row) => row.precision },
    { label: "Latency", number: true, value: (row) => row.latency_ns, cell: latency },
    { label: "Peak memory", number: true, value: (row) => row.peak_bytes, cell: (row) => bytes(row.peak_bytes) },
    { label: "Fits", value: (row) => row.fits_text, cell: (row) => shorten(row.fits_text, 40) },
    { label: "Energy", number: true, value: (row) => row.energy_j, cell: (row) => row.energy_text },
    { label: "NPU time", number: true, value: (row) => row.time_share, cell: (row) => percent(row.time_share, 0) },
    { label: "NPU ops", number: true, value: (row) => row.op_share, cell: (row) => percent(row.op_share, 0) },
    { label: "Ops on the CPU", value: (row) => row.cpu_ops, cell: (row) => shorten(row.cpu_ops, 40) },
    {
      label: "Compile",
      number: true,
      value: (row) => row.compile_s,
      cell: (row) => time(row.compile_s === null ? null : 1e9 * row.compile_s, 3),
    },
    { label: "Copy error", number: true, value: (row) => row.sqnr_db, cell: (row) => row.error_text },
  ];
  return all.filter((column) => rows.some((row) => ![null, UNKNOWN].includes(column.value(row) as string | null)));
}

function reasons(rows: Row[]): HTMLElement {
  return plainTable(
    ["Chip", "Told by", "Precision", "Why"],
    4,
    rows.map((row) => [shorten(row.target, 40), row.backend, row.precision, words(shorten(row.why, 400))]),
  );
}
