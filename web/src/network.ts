// The network as a graph to lay out: ops, or layers where there are too many ops for a picture.

import type { PageData } from "./contract";
import { layerOf } from "./timeline/colours";

export const MOST_NODES = 180;

export type Node = {
  key: string;
  label: string;
  detail: string;
  ops: number[];
  ns: number | null;
  share: number | null;
  expands: boolean;
};
export type Network = { nodes: Node[]; edges: [number, number][]; collapsed: boolean; hidden: number };

/** Time, or share, of every op, by its name; ops that have a name in common share what it has. */
export function ofOps(data: PageData, key: "busy_ns" | "share"): (number | null)[] {
  const times = new Map<string, { value: number | null; left: number }>();
  for (const op of data.summary.ops) {
    const known = times.get(op.name);
    if (known) known.value = known.value === null || op[key] === null ? null : known.value + op[key];
    else times.set(op.name, { value: op[key], left: 0 });
  }
  for (const op of data.ops) {
    const known = times.get(op.name);
    if (known) known.left++;
  }
  return data.ops.map((op) => {
    const known = times.get(op.name);
    return known && known.value !== null ? known.value / Math.max(known.left, 1) : null;
  });
}

export function network(data: PageData, opened: ReadonlySet<string>, most = MOST_NODES): Network {
  const used = new Set<number>([...data.graph.sources, ...data.graph.targets]);
  const all = data.ops.map((_, op) => op).filter((op) => used.has(op));
  const collapsed = all.length > most;
  const keyOf = keys(data, all, collapsed, most);
  const times = ofOps(data, "busy_ns");
  const shares = ofOps(data, "share");
  const nodes = new Map<string, Node>();
  const nodeOf = new Map<number, string>();
  const sizes = new Map<string, number>();
  for (const op of all) sizes.set(keyOf(op), (sizes.get(keyOf(op)) ?? 0) + 1);
  for (const op of all) {
    const group = keyOf(op);
    const single = !collapsed || opened.has(group) || sizes.get(group) === 1;
    const key = single ? `op ${op}` : group;
    nodeOf.set(op, key);
    const node = nodes.get(key);
    if (node) {
      node.ops.push(op);
      node.ns = plus(node.ns, times[op]!);
      node.share = plus(node.share, shares[op]!);
    } else
      nodes.set(key, {
        key: single ? key : group,
        label: single ? data.ops[op]!.name : group,
        detail: data.ops[op]!.type,
        ops: [op],
        ns: times[op]!,
        share: shares[op]!,
        expands: !single,
      });
  }
  return {
    nodes: [...nodes.values()],
    edges: edges(data, nodes, nodeOf),
    collapsed,
    hidden: data.ops.length - all.length,
  };
}

/** A layer takes what its ops are known to take. */
const plus = (a: number | null, b: number | null): number | null => (a === null || b === null ? (a ?? b) : a + b);

function keys(data: PageData, all: number[], collapsed: boolean, most: number): (op: number) => string {
  if (!collapsed) return (op) => String(op);
  const layers = new Set(all.map((op) => layerOf(data.ops[op]!.name)));
  if (layers.size <= most) return (op) => layerOf(data.ops[op]!.name);
  const each = Math.ceil(all.length / most); // names tell nothing: neighbours go together
  const place = new Map(all.map((op, i) => [op, i]));
  return (op) => {
    const first = Math.floor((place.get(op) ?? 0) / each) * each;
    return `ops ${first + 1} – ${Math.min(first + each, all.length)}`;
  };
}

function edges(data: PageData, nodes: Map<string, Node>, nodeOf: Map<number, string>): [number, number][] {
  const number = new Map([...nodes.keys()].map((key, i) => [key, i]));
  const found = new Map<number, [number, number]>();
  data.graph.sources.forEach((source, i) => {
    const a = number.get(nodeOf.get(source) ?? "");
    const b = number.get(nodeOf.get(data.graph.targets[i]!) ?? "");
    if (a !== undefined && b !== undefined && a !== b) found.set(a * nodes.size + b, [a, b]);
  });
  return [...found.values()];
}
