// Roofline: every op against what the machine could do with its bytes.

import uPlot from "uplot";
import type { RooflineOp } from "./contract";
import { axis } from "./charts";
import { el, nothing, section } from "./dom";
import { bytes, count, decimal, percent, short, time, UNKNOWN } from "./format";
import { opLink } from "./overview";
import { colourNumbers } from "./palette";
import { provenance } from "./provenance";
import type { App } from "./state";
import { SortTable, type Col } from "./table";
import { shorten } from "./text";

type Point = RooflineOp & { intensity: number; macs_per_s: number };
const SHAPES = ["●", "■", "▲", "◆", "▼", "✚", "✖", "★"];

export function roofline(app: App): HTMLElement {
  const { findings, info } = app.model.data;
  if (!findings)
    return section(
      "Roofline",
      nothing("This run was not analysed; opscope analyze compares every op with the limits of the target."),
    );
  const points = findings.roofline.filter(
    (op): op is Point => op.intensity !== null && op.macs_per_s !== null && op.intensity > 0 && op.macs_per_s > 0,
  );
  if (!findings.roofline.length)
    return section("Roofline", nothing("The run does not know the MACs and bytes of its ops."));
  const said = el(
    "p",
    { class: "note", role: "status" },
    "Point at an op for its name; click to see it in the timeline.",
  );
  const chart = points.length ? scatter(app, points, said) : nothing("No op has both MACs and bytes of outer memory.");
  const table = new SortTable(columns(app), 5, true, "Ops against their limits");
  table.set(findings.roofline);
  const without = findings.roofline.length - points.length;
  const limits = [
    info.limits["macs_per_s"] === undefined ? "" : `${short(info.limits["macs_per_s"])} MACs/s`,
    info.limits["outer_bytes_per_s"] === undefined
      ? ""
      : `${decimal(info.limits["outer_bytes_per_s"] / 1e9, 4)} GB/s of outer memory`,
  ].filter(Boolean);
  return el(
    "div",
    {},
    section(
      "Roofline",
      chart,
      said,
      el(
        "p",
        { class: "note" },
        limits.length
          ? `The target can do ${limits.join(" and ")}. `
          : "The limits of the target are not in this run. ",
        without && points.length
          ? `${count(without)} ops without bytes of outer memory, or without MACs, are in the table only. `
          : "",
        provenance(findings.provenance),
      ),
    ),
    section("Ops against their limits", table.root),
  );
}

function columns(app: App): Col<RooflineOp>[] {
  const reached = (op: RooflineOp): number | null =>
    op.macs_per_s !== null && op.attainable_macs_per_s ? op.macs_per_s / op.attainable_macs_per_s : null;
  return [
    { label: "Op", value: (op) => op.op, cell: (op) => opLink(app, op.op, 60) },
    { label: "MACs", number: true, value: (op) => op.macs, cell: (op) => short(op.macs) },
    { label: "Outer bytes", number: true, value: (op) => op.outer_bytes, cell: (op) => bytes(op.outer_bytes) },
    { label: "MACs per byte", number: true, value: (op) => op.intensity, cell: (op) => decimal(op.intensity, 3) },
    { label: "MACs/s", number: true, value: (op) => op.macs_per_s, cell: (op) => short(op.macs_per_s) },
    { label: "Wall", number: true, value: (op) => op.wall_ns, cell: (op) => time(op.wall_ns) },
    {
      label: "Lower bound",
      title: "of its time, by compute and by bandwidth",
      number: true,
      value: (op) => op.bound_ns,
      cell: (op) => time(op.bound_ns),
    },
    {
      label: "Reached",
      title: "of what is attainable",
      number: true,
      value: reached,
      cell: (op) => (reached(op) === null ? UNKNOWN : percent(reached(op))),
    },
  ];
}

function scatter(app: App, all: Point[], said: HTMLElement): HTMLElement {
  const points = [...all].sort((a, b) => a.intensity - b.intensity);
  const type = (point: Point): string => app.model.data.ops[app.model.opsNamed(point.op)[0] ?? -1]?.type ?? "op";
  const numbers = colourNumbers(
    points.reduce(
      (sums, point) => sums.set(type(point), (sums.get(type(point)) ?? 0) + point.wall_ns),
      new Map<string, number>(),
    ),
    7,
  );
  const box = el("div", { class: "chart roofline" });
  const most = Math.max(...points.map((point) => point.wall_ns), 1);
  const roof = (x: number): number | null => {
    const { macs_per_s: peak, outer_bytes_per_s: rate } = app.model.data.info.limits;
    return peak === undefined || rate === undefined ? null : Math.min(peak, x * rate);
  };
  let nearest = -1;
  const draw = (): uPlot => {
    box.replaceChildren();
    const below = (value: number): number => 10 ** Math.floor(Math.log10(value));
    const above = (value: number): number => 10 ** Math.ceil(Math.log10(value));
    const bend =
      (app.model.data.info.limits["macs_per_s"] ?? 0) / (app.model.data.info.limits["outer_bytes_per_s"] ?? 1);
    const low = below(Math.min(points[0]!.intensity / 1.5, bend > 0 ? bend : Infinity));
    const high = above(Math.max(points[points.length - 1]!.intensity * 1.5, bend));
    const xs = [...points.map((point) => point.intensity), low, high, ...(bend > 0 ? [bend] : [])].sort(
      (a, b) => a - b,
    );
    const roofs = xs.map(roof);
    const tops = [
      ...points.map((point) => point.macs_per_s),
      ...roofs.filter((value): value is number => value !== null),
    ];
    const plot = new uPlot(
      {
        width: box.clientWidth || 800,
        height: 380,
        series: [{}, { label: "attainable", stroke: app.theme.path, width: 2, points: { show: false } }],
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, points: { show: false } },
        scales: {
          x: { time: false, distr: 3, range: [low, high] },
          y: {
            distr: 3,
            range: [below(Math.min(...points.map((point) => point.macs_per_s)) / 1.5), above(Math.max(...tops) * 1.2)],
          },
        },
        axes: [
          {
            ...axis(app, (value) => short(value)),
            size: 28,
            label: "MACs per byte of outer memory",
            labelSize: 20,
            labelFont: "11px system-ui, sans-serif",
          },
          {
            ...axis(app, (value) => short(value)),
            label: "MACs per second",
            labelSize: 20,
            size: 60,
            labelFont: "11px system-ui, sans-serif",
          },
        ],
        hooks: {
          draw: [(self) => paint(self)],
          setCursor: [
            (self) => {
              nearest = near(self, points, self.cursor.left ?? -1, self.cursor.top ?? -1);
              const point = points[nearest];
              said.textContent = point
                ? `${shorten(point.op, 90)}: ${decimal(point.intensity, 3)} MACs per byte, ${short(point.macs_per_s)} MACs/s${point.attainable_macs_per_s ? `, ${percent(point.macs_per_s / point.attainable_macs_per_s)} of what is attainable` : ""}`
                : "Point at an op for its name; click to see it in the timeline.";
            },
          ],
        },
      },
      [xs, roofs],
      box,
    );
    return plot;
  };
  const paint = (self: uPlot): void => {
    const { ctx } = self;
    ctx.save();
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (const point of points) {
      const number = numbers.get(type(point)) ?? 7;
      const size = (9 + 15 * Math.sqrt(point.wall_ns / most)) * devicePixelRatio;
      ctx.font = `${size}px system-ui, sans-serif`;
      ctx.globalAlpha = 0.8;
      ctx.fillStyle = number < 7 ? app.theme.colours[number]! : app.theme.other;
      ctx.fillText(
        SHAPES[number]!,
        self.valToPos(point.intensity, "x", true),
        self.valToPos(point.macs_per_s, "y", true),
      );
    }
    ctx.restore();
    roofWords(app, self);
  };
  new ResizeObserver(() => box.clientWidth && draw()).observe(box);
  app.onTheme(() => void (box.clientWidth && draw()));
  box.addEventListener("click", () => points[nearest] && app.showOp(points[nearest]!.op));
  const legend = el(
    "p",
    { class: "legend" },
    ...[...numbers.entries()]
      .slice(0, 8)
      .map(([label, number]) =>
        el(
          "span",
          { class: `shape t${Math.min(number, 7)}` },
          el("i", {}, SHAPES[number]!),
          ` ${number < 7 ? shorten(label, 24) : "other"}`,
        ),
      ),
    el("span", {}, "larger: more time"),
  );
  return el("div", {}, box, legend);
}

/** What each part of the roof is. */
function roofWords(app: App, plot: uPlot): void {
  const { macs_per_s: peak, outer_bytes_per_s: rate } = app.model.data.info.limits;
  if (peak === undefined || rate === undefined) return;
  const { ctx } = plot;
  const bend = peak / rate;
  const at = (x: number, y: number): [number, number] => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
  const [x0, y0] = at(bend / 10, peak / 10);
  const [x1, y1] = at(bend, peak);
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.fillStyle = app.theme.dim;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  ctx.fillText(`${short(peak)} MACs/s`, x1 + 4 * devicePixelRatio, y1 - 5 * devicePixelRatio);
  ctx.translate(x0, y0);
  ctx.rotate(Math.atan2(y1 - y0, x1 - x0));
  ctx.fillText(`${decimal(rate / 1e9, 4)} GB/s`, 0, -5 * devicePixelRatio);
  ctx.restore();
}

function near(plot: uPlot, points: Point[], x: number, y: number): number {
  let best = -1;
  let distance = 20 ** 2;
  points.forEach((point, number) => {
    const away = (plot.valToPos(point.intensity, "x") - x) ** 2 + (plot.valToPos(point.macs_per_s, "y") - y) ** 2;
    if (away < distance) {
      best = number;
      distance = away;
    }
  });
  return best;
}
