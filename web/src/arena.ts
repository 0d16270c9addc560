// Local memory as a map: what lay where, from its start until its last reader was done.

import type { Model } from "./model";
import { after, OP, TRANSFER } from "./spans";

export type Block = { command: number; from: number; to: number; address: number; bytes: number };
export type Place = { device: number; core: number };

/** Blocks of one core in the first inference that the run has. A reader is known by its dependency: a lower bound. */
export function blocksOf(model: Model, place: Place): Block[] {
  const [device, core, address, size] = ["device", "core", "local_address", "local_bytes"].map((name) =>
    model.column(name),
  );
  if (!device || !core || !address || !size) return [];
  const inference = firstInference(model);
  const [start, end] = timesOf(model, size.length, inference);
  const blocks: Block[] = [];
  for (let command = 0; command < size.length; command++) {
    if (
      !size[command] ||
      device[command] !== place.device ||
      core[command] !== place.core ||
      Number.isNaN(start[command]!)
    )
      continue;
    let to = end[command]!;
    for (const { command: reader, data } of model.following(command)) if (data && end[reader]! > to) to = end[reader]!;
    blocks.push({ command, from: start[command]!, to, address: address[command]!, bytes: size[command]! });
  }
  return blocks;
}

export function firstInference(model: Model): number {
  const { spans } = model;
  let least = Infinity;
  for (let row = 0; row < spans.rows; row++)
    if (spans.kind[row] === OP && spans.inference[row]! < least) least = spans.inference[row]!;
  return least;
}

function timesOf(model: Model, commands: number, inference: number): [Float64Array, Float64Array] {
  const { spans } = model;
  const start = new Float64Array(commands).fill(NaN);
  const end = new Float64Array(commands).fill(NaN);
  for (let row = 0; row < spans.rows; row++) {
    const command = spans.command[row]!;
    if (
      command < 0 ||
      command >= commands ||
      spans.inference[row] !== inference ||
      (spans.kind[row] !== OP && spans.kind[row] !== TRANSFER)
    )
      continue;
    const from = spans.start[row]!;
    const to = from + spans.length[row]!;
    if (!(start[command]! <= from)) start[command] = from;
    if (!(end[command]! >= to)) end[command] = to;
  }
  return [start, end];
}

/** The moment at which most bytes are held, and how many. */
export function peakOf(blocks: Block[]): { moment: number; bytes: number } {
  const starts = blocks.slice().sort((a, b) => a.from - b.from);
  const ends = Float64Array.from(blocks, (block) => block.to).sort();
  const order = blocks.slice().sort((a, b) => a.to - b.to);
  const freed = new Float64Array(order.length + 1);
  order.forEach((block, i) => (freed[i + 1] = freed[i]! + block.bytes));
  let held = 0;
  let best = { moment: 0, bytes: 0 };
  starts.forEach((block, i) => {
    held += block.bytes;
    if (starts[i + 1]?.from === block.from) return;
    const now = held - freed[after(ends, block.from)]!;
    if (now > best.bytes) best = { moment: block.from, bytes: now };
  });
  return best;
}

export const heldAt = (blocks: Block[], moment: number): Block[] =>
  blocks.filter((block) => block.from <= moment && block.to > moment).sort((a, b) => b.bytes - a.bytes);

/** The tensor that a command writes, as its operands call it; else what the command is called. */
export function tensorOf(model: Model, command: number): string {
  const words = model.data.commands;
  const detail = model.commandValue("detail", command);
  const operands = (words && detail !== null && words.operands[detail]) || [];
  const out = operands.find((text) => text.startsWith("out ")) ?? operands[0];
  return (
    (out && /^(?:in|out) \S+ \S+ (.*) \S+ <[^<>]*>(?: \d+KB)?$/.exec(out)?.[1]) ||
    words?.names[detail ?? -1] ||
    `command ${command}`
  );
}
