// A page wakes up: reads its data, shows the first tab, unpacks the rest.

import { bakeoff } from "./bakeoff";
import { calibration } from "./calibration";
import { compare } from "./compare";
import type { BakeoffData, CalibrationData, CompareData, PageData, StoreData } from "./contract";
import { button, el, nothing } from "./dom";
import { findings } from "./findings";
import { graph } from "./graph";
import { memory } from "./memory";
import { Model } from "./model";
import { operators } from "./operators";
import { overview } from "./overview";
import { provenance } from "./provenance";
import { roofline } from "./roofline";
import { sources } from "./sources";
import { currentTheme, type App, type TabName, type Themed } from "./state";
import { storePage } from "./store/page";
import { Tabs } from "./tabs";
import { shorten } from "./text";
import { Timeline } from "./timeline/timeline";
import { tokens } from "./tokens";

const themed: (() => void)[] = [];

function start(): void {
  const root = document.getElementById("app")!;
  const data = JSON.parse(document.getElementById("data")!.textContent ?? "null") as
    PageData | CompareData | StoreData | BakeoffData | CalibrationData;
  if (data.schema === "opscope.page/1") runPage(root, data);
  else if (data.schema === "opscope.store-page/1") fleetPage(root, data);
  else if (data.schema === "opscope.bakeoff-page/1")
    titledPage(root, `${data.model} · bakeoff`, (shared) => bakeoff(data, shared));
  else if (data.schema === "opscope.calibration-page/1")
    titledPage(root, `${data.target} · calibration`, (shared) => calibration(data, shared));
  else comparePage(root, data);
}

/** When the blocks behind the script are there too. */
function whole(): Promise<void> {
  return document.readyState === "loading"
    ? new Promise((resolve) => document.addEventListener("DOMContentLoaded", () => resolve()))
    : Promise.resolve();
}

function themeButton(act: () => void): HTMLButtonElement {
  const changed = (): void => {
    act();
    themed.forEach((redraw) => redraw());
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  return button(
    "◐",
    () => {
      document.documentElement.dataset["theme"] = currentTheme().dark ? "light" : "dark";
      changed();
    },
    { class: "quiet", "aria-label": "Light or dark", title: "Light or dark" },
  );
}

/** Paper is white and has one width; what is drawn by hand is drawn again for it. */
function forPaper(before: () => void, after: () => void, retheme: () => void): void {
  const { dataset } = document.documentElement;
  const redraw = (): void => {
    retheme();
    themed.forEach((act) => act());
  };
  let chosen: string | undefined;
  addEventListener("beforeprint", () => {
    chosen = dataset["theme"];
    Object.assign(dataset, { theme: "light", printing: "yes" });
    before();
  });
  addEventListener("beforeprint", redraw); // of its own: what the first built is there by now
  addEventListener("afterprint", () => {
    delete dataset["printing"];
    if (chosen) dataset["theme"] = chosen;
    else delete dataset["theme"];
    after();
    redraw();
  });
}

function runPage(root: HTMLElement, data: PageData): void {
  const model = new Model(data);
  const { resources } = data;
  const languageModel = data.summary.language_model;
  let timeline: Promise<Timeline> | null = null;
  const app: App = {
    model,
    theme: currentTheme(),
    ready: whole().then(() => model.load()),
    open: (tab) => tabs.open(tab),
    showOp: (name) => void showTimeline((shown) => shown.showOps(model.opsNamed(name), name)),
    showRows: (rows) => void showTimeline((shown) => shown.showRows(rows)),
    showTime: (from, to) => void showTimeline((shown) => shown.showTime(from, to)),
    onTheme: (act) => void themed.push(act),
  };
  const timelineTab = (): HTMLElement => {
    const box = el("div", { class: "timeline-tab" }, nothing("Unpacking …"));
    timeline = app.ready.then(() => {
      const built = new Timeline(app);
      box.replaceChildren(
        ...(data.spans.rows ? [built.root] : [nothing("The run has totals only: no spans to draw.")]),
      );
      built.redraw();
      return built;
    });
    timeline.catch((error: unknown) => box.replaceChildren(nothing(`The timeline cannot be shown: ${String(error)}`)));
    return box;
  };
  const showTimeline = async (act: (timeline: Timeline) => void): Promise<void> => {
    tabs.open("timeline");
    const shown = await timeline;
    if (shown) requestAnimationFrame(() => act(shown)); // laid out by then
  };
  const tab = (name: TabName, label: string, build: () => HTMLElement): [TabName, string, () => HTMLElement] => [
    name,
    label,
    build,
  ];
  const tabs = new Tabs<TabName>([
    ...(languageModel ? [tab("tokens", "Tokens", () => tokens(app, languageModel))] : []),
    ["overview", "Overview", () => overview(app)],
    ["timeline", "Timeline", timelineTab],
    ["operators", "Operators", () => operators(app)],
    ["memory", "Memory", () => memory(app)],
    ["roofline", "Roofline", () => roofline(app)],
    [
      "findings",
      data.findings?.findings.length ? `Findings ${data.findings.findings.length}` : "Findings",
      () => findings(app),
    ],
    ["graph", "Graph", () => graph(app)],
    ...(resources ? [tab("sources", "Sources", () => sources(app, resources))] : []),
  ]);
  const header = el(
    "header",
    { class: "top" },
    el(
      "div",
      { class: "brand" },
      el("b", {}, "opscope"),
      el("h1", { class: "title" }, shorten(`${data.info.network} · ${data.info.target}`, 80)),
      provenance(data.info.provenance),
    ),
    tabs.list,
    themeButton(() => (app.theme = currentTheme())),
  );
  root.append(header, tabs.panels);
  tabs.start();
  forPaper(
    () => tabs.showAll(),
    () => tabs.start(),
    () => (app.theme = currentTheme()),
  );
  app.ready.then(
    () => (document.documentElement.dataset["ready"] = "yes"),
    (error: unknown) => root.append(nothing(String(error))),
  );
}

function fleetPage(root: HTMLElement, data: StoreData): void {
  whole()
    .then(() => storePage(root, data, { themeButton, onTheme: (act) => void themed.push(act) }))
    .then(
      () => (document.documentElement.dataset["ready"] = "yes"),
      (error: unknown) => root.append(nothing(String(error))),
    );
}

function titledPage(root: HTMLElement, title: string, content: (shared: Themed) => HTMLElement): void {
  const shared: Themed = { theme: currentTheme(), onTheme: (act) => void themed.push(act) };
  const header = el(
    "header",
    { class: "top" },
    el("div", { class: "brand" }, el("b", {}, "opscope"), el("h1", { class: "title" }, shorten(title, 80))),
    el("span", { class: "gap" }),
    themeButton(() => (shared.theme = currentTheme())),
  );
  root.append(header, el("main", { class: "panel" }, content(shared)));
  document.documentElement.dataset["ready"] = "yes";
}

function comparePage(root: HTMLElement, data: CompareData): void {
  const header = el(
    "header",
    { class: "top" },
    el("div", { class: "brand" }, el("b", {}, "opscope"), el("span", { class: "title" }, "Comparison")),
    el("span", { class: "gap" }),
    themeButton(() => undefined),
  );
  root.append(header, el("main", { class: "panel" }, compare(data)));
  document.documentElement.dataset["ready"] = "yes";
}

start();
