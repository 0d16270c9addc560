// Lanes and counters as rows from top to bottom: host, then each device, then each of its cores.

import type { PageCounter, PageData, PageLane } from "../contract";
import { count } from "../format";

export type Row =
  | {
      type: "group";
      key: string;
      label: string;
      note: string;
      depth: number;
      top: number;
      height: number;
      open: boolean;
    }
  | { type: "lane"; lane: number; label: string; title: string; sub: boolean; top: number; height: number }
  | { type: "counter"; counter: number; label: string; title: string; top: number; height: number };

export type Layout = { rows: Row[]; height: number; laneRow: Map<number, number> };

const GROUP = 22,
  LANE = 20,
  SUB = 11,
  TRANSFER = 13,
  COUNTER = 34,
  PHASE = 12;
const THREAD_NUMBER = / (\d+)$/;

/** A lane that another one overflows into: "HMX DMA read 2" is a second row of "HMX DMA read". */
export function baseOf(lane: PageLane, names: Set<string>): string | null {
  const match = THREAD_NUMBER.exec(lane.name);
  if (!match) return null;
  const base = lane.name.slice(0, match.index);
  return names.has(base) ? base : null;
}

const WHOLE = 0,
  PORT = 1,
  ENGINE = 2,
  ROUTE = 3,
  BARRIER = 4;

function place(name: string): number {
  if (/^Execution$/.test(name)) return WHOLE;
  if (/Port/.test(name)) return PORT;
  if (/ Barrier$/.test(name)) return BARRIER;
  return / DMA /.test(name) ? ROUTE : ENGINE;
}

function labelOf(lane: PageLane): string {
  const route = / DMA (.*)$/.exec(lane.name);
  if (route) return `${route[1]} · ${lane.name.slice(0, route.index)}`;
  if (lane.name === "Execution") return "whole";
  return lane.name;
}

type Place = { device: number; core: number };
const keyOf = ({ device, core }: Place): string => `${device}/${core}`;

function groups(data: PageData): Place[] {
  const found = new Map<string, Place>();
  for (const item of [...data.lanes, ...data.counters])
    found.set(keyOf(item), { device: item.device, core: item.core });
  return [...found.values()].sort((a, b) => a.device - b.device || a.core - b.core);
}

function groupLabel(place: Place, data: PageData): string {
  if (place.device < 0) return "Host";
  const devices = data.info.devices > 1 || data.lanes.some((lane) => lane.device > 0);
  if (place.core < 0) return `Device ${place.device}`;
  return devices ? `Device ${place.device} · core ${place.core}` : `Core ${place.core}`;
}

export function layOut(data: PageData, closed: ReadonlySet<string>): Layout {
  const rows: Row[] = [];
  const laneRow = new Map<number, number>();
  let top = 0;
  const put = (row: Row): void => {
    if (row.type === "lane") laneRow.set(row.lane, rows.length);
    rows.push(row);
    top += row.height;
  };
  for (const group of groups(data)) {
    const key = keyOf(group);
    const lanes = lanesOf(data, key);
    const spans = lanes.reduce((sum, { lane }) => sum + lane.rows, 0);
    const open = !closed.has(key);
    put({
      type: "group",
      key,
      label: groupLabel(group, data),
      note: spans === 1 ? "1 span" : `${count(spans)} ${data.spans.window_ns ? "rows" : "spans"}`,
      depth: group.core < 0 ? 0 : 1,
      top,
      height: GROUP,
      open,
    });
    if (!open) continue;
    for (const { number, lane, sub } of lanes) {
      const kind = place(lane.name);
      const height = kind === WHOLE ? PHASE : sub ? SUB : kind >= ROUTE ? TRANSFER : LANE;
      const title = kind === BARRIER ? `${lane.name}, thread ${lane.thread}` : lane.name;
      put({ type: "lane", lane: number, label: sub ? "" : labelOf(lane), title, sub, top, height });
    }
    data.counters.forEach((counter, number) => {
      if (keyOf(counter) === key) put(counterRow(counter, number, top));
    });
  }
  return { rows, height: top, laneRow };
}

function counterRow(counter: PageCounter, number: number, top: number): Row {
  return {
    type: "counter",
    counter: number,
    label: counter.name,
    title: `${counter.name} (${counter.unit})`,
    top,
    height: COUNTER,
  };
}

function lanesOf(data: PageData, key: string): { number: number; lane: PageLane; sub: boolean }[] {
  const found = data.lanes.map((lane, number) => ({ lane, number })).filter(({ lane }) => keyOf(lane) === key);
  const names = new Set(found.map(({ lane }) => lane.name));
  const first = new Map(found.map(({ lane, number }) => [lane.name, number] as const).reverse());
  const isNext = (lane: PageLane, number: number): boolean =>
    place(lane.name) === BARRIER && first.get(lane.name) !== number; // of the same engine: its next thread
  return found
    .map(({ lane, number }) => ({ lane, number, sub: baseOf(lane, names) !== null || isNext(lane, number) }))
    .sort((a, b) => place(a.lane.name) - place(b.lane.name) || a.number - b.number);
}

/** The row under a height, or -1. */
export function rowAt(layout: Layout, y: number): number {
  let low = 0;
  let high = layout.rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (layout.rows[middle]!.top + layout.rows[middle]!.height <= y) low = middle + 1;
    else high = middle;
  }
  return low < layout.rows.length && y >= 0 ? low : -1;
}
