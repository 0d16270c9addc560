// Keys of the timeline, as in Perfetto, and the list of them.

import { button, el } from "../dom";

export type Acts = {
  zoom: (factor: number) => void;
  pan: (share: number) => void;
  whole: () => void;
  focus: () => void;
  search: () => void;
  clear: () => void;
  path: () => void;
  step: (along: number, across: number) => void;
  next: (by: number) => void;
};

const HELP: [string, string][] = [
  ["w / s", "zoom in, out"],
  ["a / d", "move left, right"],
  ["f", "show the selection"],
  ["0", "show the whole run"],
  ["← →", "span before, after on the lane"],
  ["↑ ↓", "span above, below"],
  ["/", "search; Enter and Shift-Enter step through what was found"],
  ["n / N", "next, previous span found"],
  ["c", "critical path"],
  ["Esc", "clear selection and search"],
  ["drag", "move"],
  ["Shift-drag", "measure a range"],
  ["Ctrl-wheel", "zoom at the pointer; Shift-wheel moves"],
  ["double click", "zoom to a span"],
];

export class Keys {
  private dialog: HTMLDialogElement | null = null;

  constructor(private readonly acts: Acts) {}

  press(event: KeyboardEvent, canvas: HTMLElement): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    if (this.anywhere(event.key) || (target === canvas && this.onCanvas(event.key))) event.preventDefault();
  }

  private anywhere(key: string): boolean {
    const { acts } = this;
    const known: Record<string, () => void> = {
      w: () => acts.zoom(1.5),
      s: () => acts.zoom(1 / 1.5),
      a: () => acts.pan(-0.2),
      d: () => acts.pan(0.2),
      f: acts.focus,
      "0": acts.whole,
      "/": acts.search,
      c: acts.path,
      n: () => acts.next(1),
      N: () => acts.next(-1),
      "?": () => this.help(),
      Escape: acts.clear,
    };
    known[key]?.();
    return key in known;
  }

  private onCanvas(key: string): boolean {
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const step = steps[key];
    if (step) this.acts.step(...step);
    return step !== undefined;
  }

  help(): void {
    if (!this.dialog) {
      const list = el("dl", { class: "keys" });
      for (const [key, what] of HELP) list.append(el("dt", {}, el("kbd", {}, key)), el("dd", {}, what));
      this.dialog = el(
        "dialog",
        { "aria-label": "Keys" },
        el("h2", {}, "Keys of the timeline"),
        list,
        button("Close", () => this.dialog?.close()),
      );
      document.body.append(this.dialog);
    }
    this.dialog.showModal();
  }
}
