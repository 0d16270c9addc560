// The page of a store: what it holds, on one page with one filter.

import type { StoreData } from "../contract";
import { el, nothing } from "../dom";
import { count } from "../format";
import { currentTheme } from "../state";
import { Tabs } from "../tabs";
import { shorten } from "../text";
import { Cells, type Fleet } from "./cells";
import { filterBar } from "./controls";
import { history } from "./history";
import { list } from "./list";
import { map } from "./map";
import { reasons, summary } from "./overview";
import { pareto } from "./pareto";
import { scaling } from "./scaling";

type Tab = "map" | "tradeoffs" | "scaling" | "history" | "cells";
type Frame = { themeButton: (act: () => void) => HTMLElement; onTheme: (act: () => void) => void };

export async function storePage(root: HTMLElement, data: StoreData, frame: Frame): Promise<void> {
  const cells = new Cells(data);
  const fleet: Fleet = { cells, theme: currentTheme(), onTheme: frame.onTheme };
  const title = el("h1", { class: "title" }, shorten(data.store.split("/").filter(Boolean).pop() ?? data.store, 60));
  const brand = el("div", { class: "brand" }, el("b", {}, "opscope"), title);
  const button = frame.themeButton(() => (fleet.theme = currentTheme()));
  if (!data.rows) {
    const words = data.cells ? "No cell of the store fits the condition." : "The store has no cells.";
    root.append(
      el("header", { class: "top" }, brand, el("span", { class: "gap" }), button),
      el("main", { class: "panel" }, nothing(words)),
    );
    return;
  }
  await cells.load();
  const tabs = new Tabs<Tab>([
    ["map", "Map", () => el("div", {}, summary(cells), map(fleet), reasons(cells), notes(data))],
    ["tradeoffs", "Trade-offs", () => pareto(fleet)],
    ["scaling", "Scaling", () => scaling(fleet)],
    [
      "history",
      data.changes.length ? `History ${count(new Set(data.changes.map((change) => change.row)).size)}` : "History",
      () => history(fleet),
    ],
    ["cells", "Cells", () => list(fleet)],
  ]);
  root.append(el("header", { class: "top" }, brand, tabs.list, button), filterBar(cells), tabs.panels);
  tabs.start();
}

function notes(data: StoreData): HTMLElement {
  return el("div", {}, ...data.notes.map((words) => el("p", { class: "note" }, shorten(words, 300))));
}
