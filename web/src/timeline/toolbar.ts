// Above the timeline: search, critical path, colours, zoom.

import { button, el } from "../dom";
import { count, time } from "../format";
import type { Model } from "../model";
import { COLOUR_BY, type ColourBy } from "./colours";

export type ToolActs = {
  find: (words: string) => void;
  next: (by: number) => void;
  leave: () => void; // the search
  path: () => void;
  colour: (by: ColourBy) => void;
  zoom: (factor: number) => void;
  whole: () => void;
  groups: () => void;
  help: () => void;
};

const SEARCH = { type: "search", placeholder: "Search ops and commands  /", "aria-label": "Search ops and commands" };

export class Toolbar {
  readonly root = el("div", { class: "tools", role: "toolbar", "aria-label": "Timeline" });
  readonly input = el("input", { ...SEARCH, size: 26 });
  readonly hits = el("span", { class: "hits", role: "status" });
  private readonly path: HTMLButtonElement;

  constructor(
    private readonly acts: ToolActs,
    model: Model,
  ) {
    this.path = button("Critical path", acts.path, { "aria-pressed": "false" });
    this.path.disabled = model.path === null;
    this.path.title = this.path.disabled
      ? "The run was not analysed: the critical path is not known"
      : "Show only what the end of the run waited for (c)";
    const named = (label: string, act: () => void, title: string): HTMLButtonElement =>
      button(label, act, { "aria-label": title.replace(/ \(.*/, ""), title });
    this.root.append(
      this.input,
      this.hits,
      el("span", { class: "gap" }),
      this.path,
      this.colours(),
      el(
        "span",
        { class: "together" }, // also where the bar takes two lines
        named("−", () => acts.zoom(0.5), "Zoom out (s)"),
        named("+", () => acts.zoom(2), "Zoom in (w)"),
        named("All", acts.whole, "Whole run (0)"),
        named("▾ ▸", acts.groups, "Close or open all groups"),
        named("?", acts.help, "Keys (?)"),
      ),
    );
    this.input.addEventListener("input", () => acts.find(this.input.value));
    this.input.addEventListener("keydown", (event) => this.key(event));
  }

  get hasPath(): boolean {
    return !this.path.disabled;
  }

  pressPath(pressed: boolean): void {
    this.path.setAttribute("aria-pressed", String(pressed));
  }

  private colours(): HTMLSelectElement {
    const options = Object.entries(COLOUR_BY).map(([key, label]) => el("option", { value: key }, `Colour: ${label}`));
    const choice = el("select", { "aria-label": "Colour by" }, ...options);
    choice.addEventListener("change", () => this.acts.colour(choice.value as ColourBy));
    return choice;
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter") this.acts.next(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") this.acts.leave();
  }
}

/** What a page says that does not have every span; null: it has. */
export function thinningNote({ data }: Model): HTMLElement | null {
  const { spans, rows, window_ns, served } = data.spans;
  if (!window_ns) return null;
  return el(
    "p",
    { class: "note" },
    `${count(spans)} spans are shown as ${count(rows)}: those that start within ${time(window_ns)} of each other on a lane are one, as tall as they are dense. `,
    ...(served ? ["Nearer, every span is loaded."] : [el("code", {}, "opscope view"), " serves every span."]),
  );
}
