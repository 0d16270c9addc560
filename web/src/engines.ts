// Engines: at work, waiting, idle. Where there are many, the mean over cores first.

import type { LaneTotal } from "./contract";
import { el, nothing, type Child } from "./dom";
import { count, percent } from "./format";
import { plainTable } from "./table";
import { shorten } from "./text";

const MANY = 8;
const MOST = 200;

// Waits that are not told are in idle.
const wall = (lane: LaneTotal): number => Math.max(lane.busy_ns + (lane.wait_ns ?? 0) + lane.idle_ns, 1);
export const utilization = (lane: LaneTotal): number => lane.busy_ns / wall(lane);

/** Where a lane is; the device is named where there are several. */
export function placeWords(lane: LaneTotal, lanes: LaneTotal[]): string {
  if (lane.device < 0) return "host";
  if (lane.core < 0) return `device ${lane.device}`;
  return lanes.some(({ device }) => device > 0) ? `device ${lane.device}, core ${lane.core}` : `core ${lane.core}`;
}

/** All lanes of a name as one: the mean of each part. */
export function means(lanes: LaneTotal[]): { lane: LaneTotal; lanes: LaneTotal[] }[] {
  const named = new Map<string, LaneTotal[]>();
  for (const lane of lanes) named.set(lane.name, [...(named.get(lane.name) ?? []), lane]);
  return [...named.values()].map((all) => {
    const mean = (key: "busy_ns" | "idle_ns"): number => all.reduce((sum, lane) => sum + lane[key], 0) / all.length;
    const meanIfTold = (key: "wait_ns" | "barrier_ns"): number | null => {
      const told = all.map((lane) => lane[key]).filter((ns) => ns !== null);
      return told.length < all.length ? null : told.reduce((sum, ns) => sum + ns, 0) / all.length;
    };
    const parts = { busy_ns: mean("busy_ns"), wait_ns: meanIfTold("wait_ns"), idle_ns: mean("idle_ns") };
    return { lane: { ...all[0]!, ...parts, barrier_ns: meanIfTold("barrier_ns") }, lanes: all };
  });
}

export function partsBar(parts: (readonly [string, number])[]): HTMLElement {
  const bar = el("div", { class: "lane-bar", "aria-hidden": "true" });
  for (const [name, size] of parts) {
    const piece = el("i", { class: name });
    piece.style.flexGrow = String(size);
    bar.append(piece);
  }
  return bar;
}

function row(place: string, lane: LaneTotal): Child[] {
  const bar = partsBar([
    ["busy", lane.busy_ns],
    ["wait", lane.wait_ns ?? 0],
    ["idle", lane.idle_ns],
  ]);
  const waits = lane.wait_ns === null ? null : lane.wait_ns / wall(lane);
  return [place, shorten(lane.name, 26), bar, percent(utilization(lane)), percent(waits)];
}

export function engines(lanes: LaneTotal[]): HTMLElement {
  if (!lanes.length) return nothing("The run has no totals per engine.");
  const heads = ["Where", "Engine", "", "Busy", "Wait"];
  const each = plainTable(
    heads,
    3,
    lanes.slice(0, MOST).map((lane) => row(placeWords(lane, lanes), lane)),
    2,
  );
  if (lanes.length <= MANY) return each;
  const rows = means(lanes).map(({ lane, lanes: all }) =>
    row(all.length > 1 ? `mean of ${count(all.length)}` : placeWords(lane, lanes), lane),
  );
  const more = el("details", {}, el("summary", {}, `All ${count(lanes.length)} lanes`), each);
  return el("div", {}, plainTable(heads, 3, rows, 2), more);
}
