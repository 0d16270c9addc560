// Graph: the network, coloured by time. Layout by dagre.

import dagre from "@dagrejs/dagre";
import { button, el, nothing, section, svg } from "./dom";
import { count, percent, time, UNKNOWN } from "./format";
import { network, type Network, type Node } from "./network";
import { provenance } from "./provenance";
import type { App } from "./state";
import { shorten, tailOf } from "./text";

const WIDTH = 206;
const HEIGHT = 40;
const WORDS = 34; // characters of the second line
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
  app.onTheme(() => picture.fit());
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
      el("span", { class: "gap" }),
      button("−", () => picture.zoom(1.4), { "aria-label": "Zoom out" }),
      button("+", () => picture.zoom(1 / 1.4), { "aria-label": "Zoom in" }),
      button("All", () => picture.fit()),
      close,
      provenance(data.info.provenance),
    ),
    box,
    said,
  );
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
  private moved = false;

  constructor(private readonly parent: HTMLElement) {
    parent.append(this.root);
    this.root.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.root.addEventListener("pointerdown", (event) => this.drag(event));
    this.root.addEventListener("click", (event) => this.moved && event.stopPropagation(), { capture: true });
    new ResizeObserver(() => this.fit()).observe(parent);
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
    this.fit();
    const place = around === undefined ? -1 : net.nodes.findIndex((node) => node.ops.includes(around));
    if (place < 0) return;
    this.box.x = laid.nodes[place]!.x - this.box.width / 2;
    this.box.y = laid.nodes[place]!.y - this.box.height / 4;
    this.apply();
    (nodes[place] as SVGElement).focus({ preventScroll: true });
  }

  /** From the top, as wide as it needs to be read. */
  fit(): void {
    const { clientWidth, clientHeight } = this.parent;
    if (!clientWidth || !clientHeight) return;
    const across = clientWidth / (this.size.width + 40);
    const paper = document.documentElement.dataset["printing"] !== undefined; // it does not scroll: all of it
    const scale = paper
      ? Math.min(across, clientHeight / (this.size.height + 40), 1)
      : Math.max(Math.min(across, 1), 0.45);
    this.box = {
      width: clientWidth / scale,
      height: clientHeight / scale,
      x: this.left + this.size.width / 2 - clientWidth / scale / 2,
      y: -16,
    };
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
