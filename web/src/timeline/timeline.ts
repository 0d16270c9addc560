// The timeline: a canvas, what moves it, and what a selection says.

import { el } from "../dom";
import { count, counted } from "../format";
import { Served } from "../served";
import { BARRIER, OP, PHASE, spanAt, spanWithin, WAIT } from "../spans";
import type { App } from "../state";
import { tailOf } from "../text";
import { colouring, type ColourBy } from "./colours";
import { Dock } from "./dock";
import { Painter } from "./draw";
import { Keys } from "./keys";
import { Minimap } from "./minimap";
import { Pointer } from "./pointer";
import { layOut, rowAt, type Layout } from "./rows";
import { RULER, type Pick, type Scene } from "./scene";
import { rowsOfOps, search, type Found } from "./search";
import { Tip } from "./tip";
import { thinningNote, Toolbar } from "./toolbar";
import { View } from "./view";

const REACH = 4; // pixels beside a span that still count as on it

export class Timeline {
  readonly root = el("div", { class: "timeline" });
  private readonly canvas = el("canvas", {
    class: "lanes",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label":
      "Timeline. Arrow keys go from span to span, w and s zoom, a and d move, f shows the selection, slash searches.",
    "aria-describedby": "timeline-said",
  });
  private readonly scroller = el("div", { class: "lanes-scroll" });
  private readonly spacer = el("div");
  private readonly legend = el("div", { class: "legend" });
  private readonly dock: Dock;
  private readonly tip: Tip;
  private readonly toolbar: Toolbar;
  private readonly view: View;
  private readonly minimap: Minimap;
  private readonly painter: Painter;
  private readonly served: Served | null;
  private layout: Layout;
  private readonly closed = new Set<string>();
  private scene: Scene;
  private found: Found | null = null;
  private hit = -1;
  private asked = 0;

  constructor(private readonly app: App) {
    const { model } = app;
    this.view = new View(model.data.spans.end_ns);
    this.view.whole();
    this.layout = layOut(model.data, this.closed);
    this.served = model.data.spans.served ? new Served(model, () => this.redraw()) : null;
    this.painter = new Painter(this.canvas.getContext("2d", { alpha: false })!, model, this.served);
    this.minimap = new Minimap(model, this.view, () => this.redraw());
    this.scene = {
      layout: this.layout,
      from: 0,
      to: 1,
      scroll: 0,
      width: 0,
      height: 0,
      gutter: 200,
      theme: app.theme,
      colours: colouring(model, "type"),
      picked: null,
      hovered: null,
      matches: null,
      showPath: false,
      range: null,
    };
    this.dock = new Dock(model, (row) => this.goTo(row));
    this.tip = new Tip(model);
    this.toolbar = this.newToolbar();
    this.painter.prepare();
    this.build();
    this.listen();
  }

  private newToolbar(): Toolbar {
    const acts = {
      find: (words: string) => this.find(words),
      next: (by: number) => this.nextHit(by),
      leave: () => this.leaveSearch(),
      path: () => this.togglePath(),
      colour: (by: ColourBy) => this.recolour(by),
      zoom: (factor: number) => this.zoom(factor),
      whole: () => this.whole(),
      groups: () => this.toggleAll(),
      help: () => this.keys.help(),
    };
    return new Toolbar(acts, this.app.model);
  }

  private build(): void {
    this.scroller.append(this.canvas, this.spacer);
    this.root.append(
      this.toolbar.root,
      ...[thinningNote(this.app.model)].flatMap((note) => note ?? []),
      this.minimap.canvas,
      this.scroller,
      this.tip.root,
      this.legend,
      this.dock.root,
    );
    this.drawLegend();
  }

  private readonly keys = new Keys({
    zoom: (factor) => this.zoom(factor),
    pan: (share) => this.pan(share),
    whole: () => this.whole(),
    focus: () => this.focusPicked(),
    search: () => this.toolbar.input.focus(),
    clear: () => this.clear(),
    path: () => this.togglePath(),
    step: (along, across) => this.step(along, across),
    next: (by) => this.nextHit(by),
  });

  private listen(): void {
    this.scroller.addEventListener("scroll", () => this.redraw(), { passive: true });
    document.addEventListener("keydown", (event) => {
      if (this.root.isConnected && !this.root.closest("[hidden]")) this.keys.press(event, this.canvas);
    });
    new Pointer(this.canvas, {
      click: (x, y) => (x < this.scene.gutter ? this.toggle(y) : this.pick(this.pickAt(x, y))),
      drag: (dx, dy) => this.drag(dx, dy),
      measure: (from, to) => this.mark([this.momentAt(from), this.momentAt(to)]),
      zoom: (factor, x) => this.zoomAt(factor, x),
      hover: (event) => this.hover(event),
      double: () => this.focusPicked(),
    });
    this.app.onTheme(() => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(this.scroller);
  }

  /** One picture per frame, however often something changes. */
  redraw(): void {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      this.paint();
    });
  }

  private paint(): void {
    const ratio = devicePixelRatio || 1;
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    if (!width || !height) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.spacer.style.height = `${Math.max(this.layout.height + RULER + 8 - height, 0)}px`;
    const gutter = width < 620 ? 104 : 200;
    this.scene = {
      ...this.scene,
      layout: this.layout,
      from: this.view.from,
      to: this.view.to,
      scroll: this.scroller.scrollTop,
      width,
      height,
      gutter,
      theme: this.app.theme,
    };
    this.painter.paint(this.scene, ratio);
    this.minimap.paint(this.app.theme);
    Object.assign(this.root.dataset, {
      from: String(Math.round(this.view.from)),
      to: String(Math.round(this.view.to)),
      row: String(this.scene.picked?.row ?? -1),
      painted: String(this.painter.painted),
    });
  }

  private get pixel(): number {
    return this.view.span / Math.max(this.scene.width - this.scene.gutter, 1);
  }

  private momentAt(x: number): number {
    return this.view.from + (x - this.scene.gutter) * this.pixel;
  }

  private pickAt(x: number, y: number): Pick | null {
    if (x < this.scene.gutter || y < RULER) return null;
    const number = rowAt(this.layout, y - RULER + this.scene.scroll);
    const row = this.layout.rows[number];
    if (row?.type !== "lane") return null;
    const finer =
      this.served && this.pixel < this.app.model.data.spans.window_ns
        ? this.served.stretches(row.lane, this.view.from, this.view.to)
        : null;
    for (const part of finer ?? []) {
      const found = spanWithin(part.spans, part.first, part.last, this.momentAt(x), REACH * this.pixel);
      if (found >= 0) return { spans: part.spans, row: found, lane: row.lane };
    }
    const { spans } = this.app.model;
    const found = spanAt(spans, row.lane, this.momentAt(x), REACH * this.pixel);
    return found < 0 ? null : { spans, row: found, lane: row.lane };
  }

  private drag(dx: number, dy: number): void {
    this.view.pan(-dx * this.pixel);
    this.scroller.scrollTop -= dy;
    this.redraw();
  }

  private zoomAt(factor: number, x: number): void {
    this.view.zoom(factor, this.momentAt(x));
    this.redraw();
  }

  private mark(range: [number, number]): void {
    this.scene.range = range;
    this.scene.picked = null;
    this.dock.showRange(range);
    this.redraw();
  }

  private hover(event: PointerEvent | null): void {
    const pick = event && this.pickAt(event.offsetX, event.offsetY);
    if (event) this.canvas.style.cursor = pick || event.offsetX < this.scene.gutter ? "pointer" : "grab";
    if (event) this.showTip(event, pick);
    else this.tip.hide();
    if (this.scene.hovered?.row === pick?.row && this.scene.hovered?.spans === pick?.spans) return;
    this.scene.hovered = pick;
    this.redraw();
  }

  private showTip(event: PointerEvent, pick: Pick | null): void {
    const around = this.root.getBoundingClientRect();
    const row = this.layout.rows[rowAt(this.layout, event.offsetY - RULER + this.scene.scroll)];
    if (pick) this.tip.show(pick, event, around);
    else if (row?.type === "counter" && event.offsetX >= this.scene.gutter)
      this.tip.showCounter(row.counter, this.momentAt(event.offsetX), event, around);
    else this.tip.hide();
  }

  private pick(pick: Pick | null): void {
    this.scene.picked = pick;
    this.scene.range = null;
    this.dock.show(pick);
    this.redraw();
  }

  /** Select a row and bring it into view. */
  goTo(row: number, near = false): void {
    const { model } = this.app;
    const lane = model.laneOf(row);
    const start = model.spans.start[row]!;
    const length = model.spans.length[row]!;
    if (near || start + length < this.view.from || start > this.view.to || length < 2 * this.pixel) {
      if (near || length < this.view.span / 400) this.view.around(start, start + length, 12);
      else this.view.set(start + length / 2 - this.view.span / 2, start + length / 2 + this.view.span / 2);
    }
    this.pick({ spans: model.spans, row, lane });
    this.scrollTo(lane); // last: what is said of a span takes room from the lanes
  }

  /** Opens the group of a lane and brings the lane into view. */
  private scrollTo(lane: number): void {
    const item = this.app.model.data.lanes[lane];
    if (item && this.closed.delete(`${item.device}/${item.core}`))
      this.layout = layOut(this.app.model.data, this.closed);
    const row = this.layout.rows[this.layout.laneRow.get(lane) ?? -1];
    if (!row) return;
    const height = this.scroller.clientHeight - RULER;
    this.spacer.style.height = `${Math.max(this.layout.height + RULER + 8 - this.scroller.clientHeight, 0)}px`;
    if (row.top < this.scroller.scrollTop) this.scroller.scrollTop = row.top - 30;
    else if (row.top + row.height > this.scroller.scrollTop + height)
      this.scroller.scrollTop = row.top + row.height - height + 30;
  }

  private step(along: number, across: number): void {
    const { model } = this.app;
    const pick = this.scene.picked;
    if (!pick) {
      const first = this.layout.rows.find((row) => row.type === "lane" && model.data.lanes[row.lane]!.rows > 0);
      if (first?.type === "lane")
        this.goTo(spanAt(model.spans, first.lane, (this.view.from + this.view.to) / 2, Infinity));
      return;
    }
    if (along) {
      const row =
        pick.spans === model.spans ? pick.row : spanAt(model.spans, pick.lane, pick.spans.start[pick.row]!, Infinity);
      const next = row + along;
      if (next >= model.spans.laneFirst[pick.lane]! && next < model.spans.laneFirst[pick.lane + 1]!) this.goTo(next);
      return;
    }
    const moment = pick.spans.start[pick.row]! + pick.spans.length[pick.row]! / 2;
    for (
      let number = (this.layout.laneRow.get(pick.lane) ?? 0) + across;
      number >= 0 && number < this.layout.rows.length;
      number += across
    ) {
      const row = this.layout.rows[number]!;
      const found = row.type === "lane" ? spanAt(model.spans, row.lane, moment, Infinity) : -1;
      if (found >= 0) return this.goTo(found);
    }
  }

  private zoom(factor: number): void {
    const pick = this.scene.picked;
    const middle = pick ? pick.spans.start[pick.row]! + pick.spans.length[pick.row]! / 2 : NaN;
    this.view.zoom(
      factor,
      middle >= this.view.from && middle <= this.view.to ? middle : (this.view.from + this.view.to) / 2,
    );
    this.redraw();
  }

  private pan(share: number): void {
    this.view.pan(share * this.view.span);
    this.redraw();
  }

  private whole(): void {
    this.view.whole();
    this.redraw();
  }

  private focusPicked(): void {
    const { picked, range } = this.scene;
    if (picked)
      this.view.around(
        picked.spans.start[picked.row]!,
        picked.spans.start[picked.row]! + picked.spans.length[picked.row]!,
        0.6,
      );
    else if (range) this.view.set(range[0], range[1]);
    this.redraw();
  }

  private clear(): void {
    this.toolbar.input.value = "";
    this.find("");
    this.pick(null);
  }

  private togglePath(): void {
    if (!this.toolbar.hasPath) return;
    this.scene.showPath = !this.scene.showPath;
    this.toolbar.pressPath(this.scene.showPath);
    if (this.scene.showPath) this.bringPath();
    this.redraw();
  }

  /** Scrolls to the first lane of the critical path, where none of its lanes is in sight. */
  private bringPath(): void {
    const { model } = this.app;
    const lanes = new Set(Array.from(model.path?.row ?? []).flatMap((row) => (row < 0 ? [] : [model.laneOf(row)])));
    const rows = [...lanes].flatMap((lane) => this.layout.rows[this.layout.laneRow.get(lane) ?? -1] ?? []);
    const [top, height] = [this.scroller.scrollTop, this.scroller.clientHeight - RULER];
    if (!rows.length || rows.some((row) => row.top >= top && row.top + row.height <= top + height)) return;
    this.scroller.scrollTop = Math.min(...rows.map((row) => row.top)) - 30;
  }

  private toggle(y: number): void {
    const row = this.layout.rows[rowAt(this.layout, y - RULER + this.scroller.scrollTop)];
    if (row?.type !== "group") return;
    if (!this.closed.delete(row.key)) this.closed.add(row.key);
    this.layout = layOut(this.app.model.data, this.closed);
    this.redraw();
  }

  private toggleAll(): void {
    const groups = this.layout.rows.flatMap((row) => (row.type === "group" ? [row.key] : []));
    if (this.closed.size) this.closed.clear();
    else groups.forEach((key) => this.closed.add(key));
    this.layout = layOut(this.app.model.data, this.closed);
    this.redraw();
  }

  private recolour(by: ColourBy): void {
    this.scene.colours = colouring(this.app.model, by);
    this.drawLegend();
    this.redraw();
  }

  private drawLegend(): void {
    const kinds = new Set(this.app.model.spans.kind.subarray(0, 100_000));
    const items = this.scene.colours.legend.map(({ label, number }) =>
      el("span", { class: `swatch c${number}` }, tailOf(label, 32)),
    );
    if (kinds.has(WAIT)) items.push(el("span", { class: "swatch wait" }, "waits"));
    if (kinds.has(BARRIER)) items.push(el("span", { class: "swatch wait" }, "barriers"));
    if (kinds.has(PHASE)) items.push(el("span", { class: "swatch whole" }, "whole core or run"));
    this.legend.replaceChildren(...items);
  }

  private leaveSearch(): void {
    this.toolbar.input.value = "";
    this.find("");
    this.canvas.focus();
  }

  private find(words: string): void {
    this.found = search(this.app.model, words);
    this.hit = -1;
    this.shown();
  }

  private shown(): void {
    this.scene.matches = this.found?.flags ?? null;
    this.toolbar.hits.textContent = this.found
      ? `${this.hit >= 0 ? `${count(this.hit + 1)} of ` : ""}${counted(this.found.total, "span")}`
      : "";
    this.redraw();
  }

  private nextHit(by: number): void {
    const rows = this.found?.rows;
    if (!rows?.length) return;
    this.hit = this.hit < 0 ? (by > 0 ? 0 : rows.length - 1) : (this.hit + by + rows.length) % rows.length;
    this.goTo(rows[this.hit]!, this.hit === 0);
    this.shown();
  }

  /** A link from another tab: these ops, all of them in view. */
  showOps(ops: number[], label: string): void {
    this.found = rowsOfOps(this.app.model, ops);
    this.toolbar.input.value = label;
    this.showFound();
  }

  /** The evidence of a finding: the first span of it, the others by n and N. */
  showRows(rows: ArrayLike<number>): void {
    const { spans } = this.app.model;
    const known = Int32Array.from(rows).filter((row) => row >= 0 && row < spans.rows);
    if (!known.length) return;
    this.toolbar.input.value = "";
    this.found = { flags: null, rows: known, total: known.length };
    this.hit = -1;
    this.nextHit(1);
  }

  /** A stretch of time, marked. */
  showTime(from: number, to: number): void {
    this.view.around(from, to, 0.6);
    this.mark([from, to]);
  }

  private showFound(): void {
    const { spans } = this.app.model;
    this.hit = -1;
    const rows = this.found?.rows ?? new Int32Array(0);
    if (rows.length) {
      let end = 0;
      for (const row of rows) end = Math.max(end, spans.start[row]! + spans.length[row]!);
      this.view.around(spans.start[rows[0]!]!, end, 0.15);
      const longest = rows.reduce(
        (best, row) =>
          spans.kind[row] === OP && (spans.kind[best] !== OP || spans.length[row]! > spans.length[best]!) ? row : best,
        rows[0]!,
      );
      this.pick({ spans, row: longest, lane: this.app.model.laneOf(longest) });
      this.scrollTo(this.app.model.laneOf(longest));
    }
    this.shown();
  }
}
