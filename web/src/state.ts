// What the tabs share: the run, the theme, and the way from one tab to another.

import type { Model } from "./model";
import { themeOf, type Theme } from "./palette";

export type TabName =
  "tokens" | "overview" | "timeline" | "operators" | "memory" | "roofline" | "findings" | "graph" | "sources";

/** What is drawn by hand needs the colours, and to know when they change. */
export type Themed = {
  theme: Theme;
  onTheme: (act: () => void) => void;
};

export type App = Themed & {
  model: Model;
  ready: Promise<void>; // every block is unpacked
  open: (tab: TabName) => void;
  showRows: (rows: ArrayLike<number>, label: string) => void; // in the timeline
  showOp: (name: string) => void; // in the timeline
  showTime: (from: number, to: number) => void; // in the timeline
};

export function currentTheme(): Theme {
  const chosen = document.documentElement.dataset["theme"];
  return themeOf(chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
}
