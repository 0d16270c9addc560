// The picture of local memory: blocks by time and address, with axes, and what was held at the peak.

import { blocksOf, firstInference, heldAt, peakOf, tensorOf, type Block, type Place } from "./arena";
import { el, meter, nothing, section } from "./dom";
import { bytes, count, moment, niceStep, time } from "./format";
import { opLink } from "./overview";
import type { App } from "./state";
import { firstRows } from "./table";
import { shorten, tailOf } from "./text";

const MOST = 20;
const LEFT = 58; // room for addresses
const BOTTOM = 20; // room for moments
const OTHER = 8; // behind the colours: of what belongs to no op
const LETTER = 6; // pixels, and of a line of them
const LINE = 14;
const FEWEST_LETTERS = 12; // fewer tell no name from another
const HINT = "Point at a block for its tensor; click to see it in the timeline.";

export function arena(app: App): HTMLElement {
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
      el(
        "section",
        { class: "card" },
        el("div", { class: "tools" }, el("h2", {}, "Arena map"), places.length > 1 ? choice : ""),
        body,
      ),
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
  const about = `${count(blocks.length)} blocks by time and address, each from its start until the last command that depends on it is done; dashed: the peak. ${HINT}`;
  const said = el("p", { class: "note" }, about);
  const paint = (): void => paintArena(app, canvas, blocks, peak.moment);
  new ResizeObserver(paint).observe(canvas);
  app.onTheme(paint);
  canvas.addEventListener("pointermove", (event) => {
    const found = hit(frameOf(app, canvas, blocks), blocks, event);
    canvas.style.cursor = found ? "pointer" : "";
    said.textContent = found
      ? `${shorten(tensorOf(app.model, found.command), 100)}: ${bytes(found.bytes)} at 0x${found.address.toString(16)}, ${time(found.from, 5)} to ${time(found.to, 5)}`
      : about;
  });
  canvas.addEventListener("click", (event) => {
    const found = hit(frameOf(app, canvas, blocks), blocks, event);
    if (found) app.showRows([app.model.rowOf(found.command, firstInference(app.model))], "");
  });
  return [canvas, said, ...atPeak(app, heldAt(blocks, peak.moment), peak), ...holes(app, blocks, peak.bytes)];
}

/** Where a memory is needed up to its highest block, and not only as much as is held at once. */
function holes(app: App, blocks: Block[], held: number): HTMLElement[] {
  const top = topOf(blocks);
  const memory = app.model.data.summary.memory.find((row) => row.peak_bytes === top);
  if (!memory || top === held) return [];
  const text = `${shorten(memory.name, 30)} is needed up to the end of the highest block, ${bytes(top)}: ${bytes(top - held)} below it are free at the peak, between blocks that cannot be moved.`;
  return [el("p", { class: "note" }, text)];
}

const topOf = (blocks: Block[]): number =>
  blocks.reduce((most, block) => Math.max(most, block.address + block.bytes), 0);

function atPeak(app: App, held: Block[], peak: { moment: number; bytes: number }): HTMLElement[] {
  const rows = held.map((block) => {
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
  return [title, firstRows(["Tensor", "Made by", "", "Address", "Size", "Held for"], 3, rows, MOST)];
}

function opOf(app: App, block: Block): HTMLElement | string {
  const op = app.model.data.ops[app.model.commandValue("op", block.command) ?? -1];
  return op ? opLink(app, op.name, 40) : "—";
}

type Frame = { width: number; height: number; span: number; top: number }; // of the blocks, without the axes

function frameOf(app: App, canvas: HTMLCanvasElement, blocks: Block[]): Frame {
  const capacity = app.model.data.summary.memory.find((row) => row.core !== null && row.capacity_bytes)?.capacity_bytes;
  return {
    width: Math.max(canvas.clientWidth - LEFT, 1),
    height: Math.max(canvas.clientHeight - BOTTOM, 1),
    span: Math.max(app.model.data.spans.end_ns, 1),
    top: Math.max(topOf(blocks), capacity ?? 1),
  };
}

function paintArena(app: App, canvas: HTMLCanvasElement, blocks: Block[], peak: number): void {
  const ratio = devicePixelRatio || 1;
  const context = canvas.getContext("2d");
  if (!context || !canvas.clientWidth) return;
  const frame = frameOf(app, canvas, blocks);
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = app.theme.panel;
  context.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  paintAxes(app, context, frame);
  for (const block of blocks) paintBlock(app, context, frame, block);
  context.strokeStyle = app.theme.path;
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(LEFT + (peak / frame.span) * frame.width, 0);
  context.lineTo(LEFT + (peak / frame.span) * frame.width, frame.height);
  context.stroke();
}

/** A block, with the name of its tensor where there is room for it. */
function paintBlock(app: App, context: CanvasRenderingContext2D, frame: Frame, block: Block): void {
  const op = app.model.commandValue("op", block.command) ?? -1;
  const colour = op < 0 ? OTHER : op % OTHER;
  const [x, y, width, height] = boxOf(frame, block);
  context.globalAlpha = 0.82;
  context.fillStyle = app.theme.colours[colour] ?? app.theme.other;
  context.fillRect(x, y, Math.max(width - 0.5, 1), Math.max(height - 0.5, 1));
  context.globalAlpha = 1;
  const letters = Math.floor((width - 8) / LETTER);
  if (letters < FEWEST_LETTERS || height < LINE) return;
  context.textAlign = "left";
  context.fillStyle = app.theme.words[colour]!;
  context.fillText(tailOf(tensorOf(app.model, block.command), letters), x + 4, y + height / 2, width - 8);
}

function paintAxes(app: App, context: CanvasRenderingContext2D, frame: Frame): void {
  const { width, height, span, top } = frame;
  const line = (x: number, y: number, across: number, up: number): void => {
    context.fillStyle = app.theme.grid;
    context.fillRect(Math.round(x), Math.round(y), across, up);
  };
  const words = (text: string, x: number, y: number): void => {
    context.fillStyle = app.theme.dim;
    context.fillText(text, x, y);
  };
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  const size = addressStep(top, height / 48);
  for (let address = 0; address <= top; address += size) {
    const y = height - (address / top) * height;
    line(LEFT, y, width, 1);
    words(bytes(address), LEFT - 6, Math.min(Math.max(y, 7), height - 2));
  }
  context.textAlign = "center";
  const step = niceStep(span, width / 110);
  for (let ns = 0; ns <= span; ns += step) {
    const x = LEFT + (ns / span) * width;
    const text = moment(ns, step);
    line(x, 0, 1, height + 4);
    if (x + context.measureText(text).width / 2 <= LEFT + width) words(text, x, height + BOTTOM / 2 + 2);
  }
}

/** A power of two: addresses are. */
export const addressStep = (top: number, about: number): number =>
  2 ** Math.ceil(Math.log2(Math.max(top / Math.max(about, 1), 1)));

function boxOf(frame: Frame, block: Block): [number, number, number, number] {
  const height = (block.bytes / frame.top) * frame.height;
  return [
    LEFT + (block.from / frame.span) * frame.width,
    frame.height - (block.address / frame.top) * frame.height - height,
    ((block.to - block.from) / frame.span) * frame.width,
    height,
  ];
}

function hit(frame: Frame, blocks: Block[], event: MouseEvent): Block | null {
  const ns = ((event.offsetX - LEFT) / frame.width) * frame.span;
  const address = (1 - event.offsetY / frame.height) * frame.top;
  return (
    blocks.find(
      (block) =>
        block.from <= ns && block.to >= ns && block.address <= address && block.address + block.bytes >= address,
    ) ?? null
  );
}
