// Graph: the network, coloured by time. Layout by dagre.

import dagre from "@dagrejs/dagre";
import { button, el, nothing, section, svg } from "./dom";
import type { PageData } from "./contract";
import { count, counted, percent, time, UNKNOWN } from "./format";
import { network, type Network, type Node } from "./network";
import { provenance } from "./provenance";
import type { App } from "./state";
import { shorten, tailOf } from "./text";

const WIDTH = 206;
const HEIGHT = 40;
const WORDS = 34; // characters of the second line
const LEGIBLE = 0.8; // the least scale at which names can be read
const STILL = 3; // pixels that a click may move

export function graph(app: App): HTMLElement {
  const { data } = app.model;
  if (!data.graph.sources.length)
    return section("Graph", nothing("The run does not say which op gives data to which."));
  const opened = new Set<string>();
  const box = el("div", { class: "graph-box" });
  const said = el("p", { class: "note", role: "status" });
  const picture = new Picture(box);
  const draw = (around?: number): void => {
    const net = network(data, opened);
    const most = net.nodes.reduce((high, node) => Math.max(high, node.ns ?? 0), 1);
    const open = (node: Node) => (): void => {
      opened.add(node.key);
      draw(node.ops[0]);
    };
    picture.show(net, (node) => nodeOf(app, node, most, open(node), said), around);
    said.textContent = [
      net.collapsed ? "Layers are closed; click one to see its ops." : "Click an op to see it in the timeline.",
      net.hidden ? `${count(net.hidden)} ops that no data flow is known of are not shown.` : "",
      "Darker takes more time.",
    ]
      .filter(Boolean)
      .join(" ");
  };
  draw();
  app.onTheme(() => picture.read());
  const find = searchBox(data.ops, (op) => {
    const node = network(data, opened).nodes.find((node) => node.ops.includes(op));
    if (!node) return;
    if (node.expands) opened.add(node.key);
    draw(op);
  });
  const close = button("Close layers", () => {
    opened.clear();
    draw();
  });
  return el(
    "section",
    { class: "card whole-height" },
    el(
      "div",
      { class: "tools" },
      el("h2", {}, "Graph"),
      ...find,
      el("span", { class: "gap" }),
      button("−", () => picture.zoom(1.4), { "aria-label": "Zoom out" }),
      button("+", () => picture.zoom(1 / 1.4), { "aria-label": "Zoom in" }),
      button("All", () => picture.whole(), { "aria-label": "Whole network", title: "Whole network" }),
      close,
      provenance(data.info.provenance),
    ),
    box,
    said,
  );
}

/** A field that goes from one op that has the words in its name or type to the next, at Enter. */
function searchBox(ops: PageData["ops"], show: (op: number) => void): HTMLElement[] {
  const input = el("input", { type: "search", placeholder: "Find an op", "aria-label": "Find an op in the graph" });
  const hits = el("span", { class: "hits", role: "status" });
  let at = -1;
  const found = (): number[] => {
    const words = input.value.trim().toLowerCase();
    return words
      ? ops.flatMap((op, number) => (`${op.name}\n${op.type}`.toLowerCase().includes(words) ? [number] : []))
      : [];
  };
  input.addEventListener("input", () => {
    at = -1;
    hits.textContent = input.value.trim() ? counted(found().length, "op") : "";
  });
  input.addEventListener("keydown", (event) => {
    const rows = found();
    if (event.key !== "Enter" || !rows.length) return;
    at = (at + (event.shiftKey ? -1 : 1) + rows.length) % rows.length;
    hits.textContent = `${count(at + 1)} of ${counted(rows.length, "op")}`;
    show(rows[at]!);
    input.focus({ preventScroll: true }); // Enter again goes on
  });
  return [input, hits];
}

function nodeOf(app: App, node: Node, most: number, open: () => void, said: HTMLElement): SVGElement {
  const heat = Math.min(Math.ceil(6 * Math.sqrt((node.ns ?? 0) / most)), 6);
  const label = node.expands ? `${shorten(node.label, 24)} (${count(node.ops.length)})` : tailOf(node.label, 28);
  const cost = node.ns === null ? UNKNOWN : `${time(node.ns)} · ${percent(node.share)}`;
  const what = node.expands ? `${count(node.ops.length)} ops` : shorten(node.detail, 40);
  const words = `${what} · ${cost}`;
  const room = Math.max(WORDS - cost.length - 3, 4); // the time is never what is cut
  const group = svg(
    "g",
    {
      class: `node heat${node.ns === null ? "-unknown" : heat}`,
      tabindex: "0",
      role: "button",
      "aria-label": `${shorten(node.label, 120)}, ${words}${node.expands ? ", closed layer" : ""}`,
    },
    svg("rect", { width: WIDTH, height: HEIGHT, rx: 5 }),
    svg("text", { x: 9, y: 16, class: "node-name" }, label),
    svg("text", { x: 9, y: 31, class: "node-time" }, [shorten(what, room), cost].filter(Boolean).join(" · ")),
    svg("title", {}, shorten(node.label, 300)),
  );
  const act = (): void => (node.expands ? open() : app.showOp(node.label));
  group.addEventListener("click", act);
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act();
    }
  });
  group.addEventListener("focus", () => (said.textContent = `${shorten(node.label, 160)}: ${words}`));
  group.addEventListener("pointerenter", () => (said.textContent = `${shorten(node.label, 160)}: ${words}`));
  return group;
}

/** A drawing to move and zoom. */
class Picture {
  private readonly root = svg("svg", { class: "graph", role: "group", "aria-label": "Network" });
  private box = { x: 0, y: 0, width: 1, height: 1 };
  private size = { width: 1, height: 1 };
  private left = 0;
  private top = 0; // where across the work at the top lies
  private moved = false;

  constructor(private readonly parent: HTMLElement) {
    parent.append(this.root);
    this.root.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.root.addEventListener("pointerdown", (event) => this.drag(event));
    this.root.addEventListener("click", (event) => this.moved && event.stopPropagation(), { capture: true });
    new ResizeObserver(() => this.read()).observe(parent);
  }

  /** Draws the network from its top, or around one of its ops. */
  show(net: Network, draw: (node: Node) => SVGElement, around?: number): void {
    const laid = layOut(net);
    this.size = laid.size;
    this.left = laid.left;
    const lines = laid.edges.map((points) => svg("path", { class: "edge", d: curve(points) }));
    const nodes = net.nodes.map((node, i) => {
      const drawn = draw(node);
      drawn.setAttribute("transform", `translate(${laid.nodes[i]!.x - WIDTH / 2} ${laid.nodes[i]!.y - HEIGHT / 2})`);
      return drawn;
    });
    const tip = svg(
      "marker",
      { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      svg("path", { d: "M0 0 8 4 0 8z" }),
    );
    this.root.replaceChildren(svg("defs", {}, tip), ...lines, ...nodes);
    this.top = topOf(net, laid.nodes);
    this.read();
    const place = around === undefined ? -1 : net.nodes.findIndex((node) => node.ops.includes(around));
    if (place < 0) return;
    this.box.x = laid.nodes[place]!.x - this.box.width / 2;
    this.box.y = laid.nodes[place]!.y - this.box.height / 4;
    this.apply();
    nodes[place]!.classList.add("found");
    (nodes[place] as SVGElement).focus({ preventScroll: true });
  }

  /** From the top, as large as it needs to be read; what does not fit lies around the work at the top. */
  read(): void {
    if (document.documentElement.dataset["printing"] !== undefined) return this.whole(); // paper does not scroll
    const across = this.parent.clientWidth / (this.size.width + 40);
    return across < LEGIBLE ? this.place(LEGIBLE, this.top) : this.place(Math.min(across, 1), this.middle);
  }

  /** All of it, however small. */
  whole(): void {
    const { clientWidth, clientHeight } = this.parent;
    const scale = Math.min(clientWidth / (this.size.width + 40), clientHeight / (this.size.height + 40), 1);
    this.place(scale, this.middle);
  }

  private get middle(): number {
    return this.left + this.size.width / 2;
  }

  private place(scale: number, x: number): void {
    const { clientWidth, clientHeight } = this.parent;
    if (!clientWidth || !clientHeight) return;
    const [width, height] = [clientWidth / scale, clientHeight / scale];
    this.box = { width, height, x: x - width / 2, y: -16 };
    this.apply();
  }

  zoom(factor: number, x = this.box.x + this.box.width / 2, y = this.box.y + this.box.height / 2): void {
    const limited = Math.min(Math.max(this.box.width * factor, 150), 60_000) / this.box.width;
    this.box = {
      x: x - (x - this.box.x) * limited,
      y: y - (y - this.box.y) * limited,
      width: this.box.width * limited,
      height: this.box.height * limited,
    };
    this.apply();
  }

  private apply(): void {
    const { x, y, width, height } = this.box;
    this.root.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const scale = this.box.width / this.parent.clientWidth;
    if (event.ctrlKey || event.metaKey)
      return this.zoom(
        Math.exp(event.deltaY * 0.002),
        this.box.x + event.offsetX * scale,
        this.box.y + event.offsetY * scale,
      );
    this.box.x += (event.shiftKey ? event.deltaY : event.deltaX) * scale;
    this.box.y += event.shiftKey ? 0 : event.deltaY * scale;
    return this.apply();
  }

  private drag(event: PointerEvent): void {
    const start = { ...this.box, clientX: event.clientX, clientY: event.clientY };
    const scale = this.box.width / this.parent.clientWidth;
    const done = new AbortController();
    this.moved = false;
    const move = (at: PointerEvent): void => {
      const [dx, dy] = [at.clientX - start.clientX, at.clientY - start.clientY];
      this.moved ||= Math.hypot(dx, dy) > STILL;
      this.box.x = start.x - dx * scale;
      this.box.y = start.y - dy * scale;
      this.apply();
    };
    addEventListener("pointermove", move, { signal: done.signal });
    for (const end of ["pointerup", "pointercancel"])
      addEventListener(end, () => done.abort(), { signal: done.signal });
  }
}

type Point = { x: number; y: number };

/** Where across the costliest of the first nodes lies. */
function topOf(net: Network, places: Point[]): number {
  const first = places.map((place, i) => ({ x: place.x, y: place.y, ns: net.nodes[i]!.ns ?? 0 }));
  const near = first.sort((a, b) => a.y - b.y).slice(0, 12);
  return near.reduce((best, node) => (node.ns > best.ns ? node : best), near[0] ?? { x: 0, y: 0, ns: 0 }).x;
}

function layOut(net: Network): {
  size: { width: number; height: number };
  left: number;
  nodes: Point[];
  edges: Point[][];
} {
  const drawing = new dagre.graphlib.Graph();
  drawing.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: 10, marginy: 10 });
  drawing.setDefaultEdgeLabel(() => ({}));
  net.nodes.forEach((_, i) => drawing.setNode(String(i), { width: WIDTH, height: HEIGHT }));
  net.edges.forEach(([a, b]) => drawing.setEdge(String(a), String(b)));
  dagre.layout(drawing);
  const nodes = net.nodes.map((_, i) => drawing.node(String(i)) as unknown as Point);
  const edges = net.edges.map(
    ([a, b]) => (drawing.edge(String(a), String(b)) as unknown as { points?: Point[] }).points ?? [],
  );
  const across = [
    ...nodes.flatMap(({ x }) => [x - WIDTH / 2, x + WIDTH / 2]),
    ...edges.flatMap((points) => points.map(({ x }) => x)),
  ]; // edges may leave the box that dagre reports
  const left = across.reduce((least, x) => Math.min(least, x), 0);
  const right = across.reduce((most, x) => Math.max(most, x), 1);
  return {
    size: { width: right - left, height: nodes.reduce((most, { y }) => Math.max(most, y + HEIGHT), 1) },
    left,
    nodes,
    edges,
  };
}

function curve(points: Point[]): string {
  if (points.length < 2) return "";
  let path = `M${points[0]!.x} ${points[0]!.y}`;
  for (let i = 1; i < points.length - 1; i++)
    path += ` Q${points[i]!.x} ${points[i]!.y} ${(points[i]!.x + points[i + 1]!.x) / 2} ${(points[i]!.y + points[i + 1]!.y) / 2}`;
  const last = points[points.length - 1]!;
  return `${path} L${last.x} ${last.y}`;
}
