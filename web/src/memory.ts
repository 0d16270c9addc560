// Memory: how full it was, what lay where, what was there at the peak, and what went to outer memory.

import type { MemoryTotal, Placement, RouteTotal } from "./contract";
import { arena } from "./arena_map";
import { samples, stepChart, type Line } from "./charts";
import { partsBar } from "./engines";
import { comparing, firstRows } from "./table";
import { el, meter, nothing, section } from "./dom";
import { bytes, count, decimal, percent, time } from "./format";
import { memoryStack } from "./memory_stack";
import { provenance } from "./provenance";
import type { App } from "./state";
import { shorten } from "./text";

const MOST_LINES = 4;
const MOST_ROWS = 12;
const MOST_MEMORIES = 8;
const NEAR = 0.3; // of the capacity; a memory less full is drawn by itself

export function memory(app: App): HTMLElement {
  const { summary, counters, resources } = app.model.data;
  return el(
    "div",
    {},
    section("Memories", memories(app, summary.memory)),
    resources ? memoryStack(app, resources) : "",
    el(
      "div",
      { class: "columns" },
      section("Occupancy over time", chart(app, "bytes", "The run has no counter of bytes in use.")),
      section("Bandwidth over time", chart(app, "GB/s", "The run has no counter of bandwidth.")),
    ),
    arena(app),
    el(
      "div",
      { class: "columns" },
      section("Outer against local memory", placement(summary.placement)),
      section("Routes", routes(summary.routes)),
    ),
    counters.length
      ? ""
      : el("p", { class: "note" }, "Counters over time come with decoded captures; imported files rarely have them."),
  );
}

function memories(app: App, rows: MemoryTotal[]): HTMLElement {
  if (!rows.length) return nothing("The run says nothing about memory.");
  const place = (row: MemoryTotal): string => `device ${row.device}${row.core === null ? "" : `, core ${row.core}`}`;
  const full = (row: MemoryTotal): number | null =>
    row.peak_bytes !== null && row.capacity_bytes ? row.peak_bytes / row.capacity_bytes : null;
  const shared = rows.filter((row) => row.core === null);
  const fullest = rows.filter((row) => row.core !== null).sort(comparing(full, true));
  const body = [...shared, ...fullest].map((row) => [
    shorten(row.name, 30),
    place(row),
    full(row) === null ? "" : meter(full(row)!),
    bytes(row.peak_bytes),
    bytes(row.capacity_bytes),
    bytes(row.mean_bytes),
    bytes(row.read_bytes),
    bytes(row.write_bytes),
  ]);
  const heads = ["Memory", "Of", "", "Peak", "Capacity", "Mean", "Read", "Written"];
  const note = el("p", { class: "note" }, "of one inference ", provenance(app.model.data.info.provenance));
  return el("div", {}, firstRows(heads, 3, body, MOST_MEMORIES, 2), note);
}

function chart(app: App, unit: string, reason: string): HTMLElement {
  const box = el("div");
  void app.ready.then(() => {
    const found = app.model.data.counters.filter((counter) => counter.unit === unit);
    const all = found.flatMap((counter) => samples(app, counter) ?? []);
    const lines = all.length > MOST_LINES ? fullest(all) : all;
    const capacity =
      unit === "bytes"
        ? app.model.data.summary.memory.find(
            (row) => row.capacity_bytes !== null && found.some((counter) => counter.name.startsWith(row.name)),
          )?.capacity_bytes
        : null;
    const near = capacity && Math.max(...lines.map(peakValue), 0) > NEAR * capacity; // else all else would be flat
    box.replaceChildren(
      lines.length
        ? stepChart(app, lines, unit, capacity && near ? { label: "capacity", value: capacity } : null)
        : nothing(reason),
      capacity && lines.length && !near
        ? el("p", { class: "note" }, `capacity ${bytes(capacity)}, far above this picture`)
        : "",
      all.length > lines.length
        ? el("p", { class: "note" }, `the ${lines.length} fullest of ${count(all.length)}; the timeline has all`)
        : "",
    );
  });
  return box;
}

/** The lines that rise highest, in their own order. */
function fullest(lines: Line[]): Line[] {
  const least = lines.map(peakValue).sort((a, b) => b - a)[MOST_LINES - 1]!;
  return lines.filter((line) => peakValue(line) >= least).slice(0, MOST_LINES);
}

const peakValue = (line: Line): number => line.values.reduce((most, value) => Math.max(most, value), 0);

function placement(rows: Placement[]): HTMLElement {
  if (!rows.length) return nothing("The run does not say in which memory operands lay.");
  const most = Math.max(...rows.map((row) => row.local_ns + row.outer_ns), 1);
  const body = rows.map((row) => {
    const rest = most - row.local_ns - row.outer_ns;
    const bar = partsBar([
      ["busy", row.local_ns],
      ["outer", row.outer_ns],
      ["idle", rest],
    ]);
    return [shorten(row.kind, 32), shorten(row.group, 16), bar, time(row.local_ns), time(row.outer_ns)];
  });
  const heads = ["Commands", "On", "", "All local", `With one in ${shorten(rows[0]!.outer_memory, 12)}`];
  const note = "time of commands with all operands in local memory, and with one in outer memory";
  return el("div", {}, firstRows(heads, 3, body, MOST_ROWS, 2), el("p", { class: "note" }, note));
}

function routes(rows: RouteTotal[]): HTMLElement {
  if (!rows.length) return nothing("The run has no transfers of bytes.");
  const body = rows.map((row) => [
    shorten(row.route, 24),
    row.core === null ? "all cores" : `core ${row.core}`,
    count(row.transfers),
    bytes(row.bytes),
    time(row.busy_ns),
    row.busy_ns ? `${decimal(row.bytes / row.busy_ns, 3)} GB/s` : "—",
    count(row.most_in_flight),
  ]);
  const outer = rows.filter((row) => row.core === null);
  const all = outer.reduce((sum, row) => sum + row.bytes, 0);
  const shares = outer.map((row) => `${shorten(row.route, 24)} ${percent(row.bytes / all, 0)}`).join(", ");
  const heads = ["Route", "Of", "Transfers", "Bytes", "In flight", "Rate", "At once"];
  const table = firstRows(heads, 2, body, MOST_ROWS);
  return el("div", {}, table, all ? el("p", { class: "note" }, `${shares} of the bytes moved`) : "");
}
