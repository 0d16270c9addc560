// Memory: how full it was, what lay where, what was there at the peak, and what went to outer memory.

import type { MemoryTotal, Placement, RouteTotal } from "./contract";
import { blocksOf, heldAt, peakOf, tensorOf, type Block, type Place } from "./arena";
import { samples, stepChart, type Line } from "./charts";
import { partsBar } from "./engines";
import { plainTable } from "./table";
import { el, meter, nothing, section } from "./dom";
import { bytes, count, decimal, moment, percent, time } from "./format";
import { opLink } from "./overview";
import { provenance } from "./provenance";
import type { App } from "./state";
import { shorten, tailOf } from "./text";

const MOST = 40;
const MOST_LINES = 4;
const MOST_ROWS = 24;
const MOST_MEMORIES = 200;
const NEAR = 0.3; // of the capacity; a memory less full is drawn by itself

export function memory(app: App): HTMLElement {
  const { summary, counters } = app.model.data;
  return el(
    "div",
    {},
    section("Memories", memories(app, summary.memory)),
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
  const body = rows
    .slice(0, MOST_MEMORIES)
    .map((row) => [
      shorten(row.name, 30),
      place(row),
      row.peak_bytes !== null && row.capacity_bytes ? meter(row.peak_bytes / row.capacity_bytes) : "",
      bytes(row.peak_bytes),
      bytes(row.capacity_bytes),
      bytes(row.mean_bytes),
      bytes(row.read_bytes),
      bytes(row.write_bytes),
    ]);
  const heads = ["Memory", "Of", "", "Peak", "Capacity", "Mean", "Read", "Written"];
  const note = el("p", { class: "note" }, "of one inference ", provenance(app.model.data.info.provenance));
  return el("div", {}, plainTable(heads, 3, body, 2), note);
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

function arena(app: App): HTMLElement {
  const box = el("div");
  void app.ready.then(() => {
    const places = placesOf(app);
    if (!places.length)
      return box.replaceChildren(
        section("Arena map", nothing("The run does not say where commands put their results.")),
      );
    const choice = el(
      "select",
      { "aria-label": "Core" },
      ...places.map((place, i) => el("option", { value: i }, `Device ${place.device}, core ${place.core}`)),
    );
    const body = el("div");
    const draw = (): void => body.replaceChildren(...arenaOf(app, places[Number(choice.value)]!));
    choice.addEventListener("change", draw);
    draw();
    return box.replaceChildren(
      el("section", { class: "card" }, el("div", { class: "tools" }, el("h2", {}, "Arena map"), choice), body),
    );
  });
  return box;
}

function placesOf(app: App): Place[] {
  const [device, core, size] = ["device", "core", "local_bytes"].map((name) => app.model.column(name));
  if (!device || !core || !size) return [];
  const found = new Map<string, Place>();
  for (let i = 0; i < size.length; i++)
    if (size[i]) found.set(`${device[i]}/${core[i]}`, { device: device[i]!, core: core[i]! });
  return [...found.values()].sort((a, b) => a.device - b.device || a.core - b.core);
}

function arenaOf(app: App, place: Place): HTMLElement[] {
  const blocks = blocksOf(app.model, place);
  if (!blocks.length) return [nothing("No block of this core has a time in the timeline.")];
  const peak = peakOf(blocks);
  const canvas = el("canvas", {
    class: "arena",
    role: "img",
    "aria-label": `Blocks of local memory over time; most, ${bytes(peak.bytes)}, at ${time(peak.moment)}`,
  });
  const said = el(
    "p",
    { class: "note" },
    `${count(blocks.length)} blocks by time (across) and address (up), each from its start until the last command that depends on it is done; dashed: the peak. `,
  );
  const paint = (): void => paintArena(app, canvas, blocks, peak.moment);
  new ResizeObserver(paint).observe(canvas);
  app.onTheme(paint);
  canvas.addEventListener("pointermove", (event) => {
    const found = hit(app, canvas, blocks, event);
    said.textContent = found
      ? `${shorten(tensorOf(app.model, found.command), 100)}: ${bytes(found.bytes)} at 0x${found.address.toString(16)}, ${time(found.from, 5)} to ${time(found.to, 5)}`
      : "Point at a block for its tensor.";
  });
  return [canvas, said, ...atPeak(app, heldAt(blocks, peak.moment), peak)];
}

function atPeak(app: App, held: Block[], peak: { moment: number; bytes: number }): HTMLElement[] {
  const rows = held.slice(0, MOST).map((block) => {
    const tensor = tensorOf(app.model, block.command);
    return [
      el("span", { title: shorten(tensor, 300) }, tailOf(tensor, 60)),
      opOf(app, block),
      meter(block.bytes / held[0]!.bytes),
      `0x${block.address.toString(16)}`,
      bytes(block.bytes),
      time(block.to - block.from),
    ];
  });
  const title = el("h3", {}, `At the peak, ${bytes(peak.bytes)} at ${moment(peak.moment, 1000)}`);
  const table = plainTable(["Tensor", "Made by", "", "Address", "Size", "Held for"], 3, rows);
  const left = held.length - MOST;
  return [title, table, ...(left > 0 ? [el("p", { class: "note" }, `and ${count(left)} smaller ones`)] : [])];
}

function opOf(app: App, block: Block): HTMLElement | string {
  const op = app.model.data.ops[app.model.commandValue("op", block.command) ?? -1];
  return op ? opLink(app, op.name, 40) : "—";
}

type Frame = { width: number; height: number; from: number; span: number; top: number };

function frameOf(app: App, canvas: HTMLCanvasElement, blocks: Block[]): Frame {
  const capacity = app.model.data.summary.memory.find((row) => row.core !== null && row.capacity_bytes)?.capacity_bytes;
  const top = Math.max(
    capacity ?? 0,
    blocks.reduce((most, block) => Math.max(most, block.address + block.bytes), 1),
  );
  return {
    width: canvas.clientWidth,
    height: canvas.clientHeight,
    from: 0,
    span: Math.max(app.model.data.spans.end_ns, 1),
    top,
  };
}

function paintArena(app: App, canvas: HTMLCanvasElement, blocks: Block[], peak: number): void {
  const ratio = devicePixelRatio || 1;
  const frame = frameOf(app, canvas, blocks);
  const context = canvas.getContext("2d");
  if (!context || !frame.width) return;
  canvas.width = Math.round(frame.width * ratio);
  canvas.height = Math.round(frame.height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = app.theme.panel;
  context.fillRect(0, 0, frame.width, frame.height);
  for (const block of blocks) {
    const [x, y, width, height] = boxOf(frame, block);
    const op = app.model.commandValue("op", block.command) ?? -1;
    context.fillStyle = op < 0 ? app.theme.other : app.theme.colours[op % 8]!;
    context.globalAlpha = 0.82;
    context.fillRect(x, y, Math.max(width - 0.5, 1), Math.max(height - 0.5, 1));
  }
  context.globalAlpha = 1;
  context.strokeStyle = app.theme.path;
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(((peak - frame.from) / frame.span) * frame.width, 0);
  context.lineTo(((peak - frame.from) / frame.span) * frame.width, frame.height);
  context.stroke();
}

function boxOf(frame: Frame, block: Block): [number, number, number, number] {
  const x = ((block.from - frame.from) / frame.span) * frame.width;
  const height = (block.bytes / frame.top) * frame.height;
  return [
    x,
    frame.height - (block.address / frame.top) * frame.height - height,
    ((block.to - block.from) / frame.span) * frame.width,
    height,
  ];
}

function hit(app: App, canvas: HTMLCanvasElement, blocks: Block[], event: PointerEvent): Block | null {
  const frame = frameOf(app, canvas, blocks);
  const ns = (event.offsetX / frame.width) * frame.span;
  const address = (1 - event.offsetY / frame.height) * frame.top;
  return (
    blocks.find(
      (block) =>
        block.from <= ns && block.to >= ns && block.address <= address && block.address + block.bytes >= address,
    ) ?? null
  );
}

function placement(rows: Placement[]): HTMLElement {
  if (!rows.length) return nothing("The run does not say in which memory operands lay.");
  const most = Math.max(...rows.map((row) => row.local_ns + row.outer_ns), 1);
  const body = rows.slice(0, MOST_ROWS).map((row) => {
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
  return el("div", {}, plainTable(heads, 3, body, 2), el("p", { class: "note" }, note));
}

function routes(rows: RouteTotal[]): HTMLElement {
  if (!rows.length) return nothing("The run has no transfers of bytes.");
  const body = rows
    .slice(0, MOST_ROWS)
    .map((row) => [
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
  const table = plainTable(["Route", "Of", "Transfers", "Bytes", "In flight", "Rate", "At once"], 2, body);
  return el("div", {}, table, all ? el("p", { class: "note" }, `${shares} of the bytes moved`) : "");
}
