// Tabs as the ARIA practices have them: arrows move, one tab stop; the address keeps the open one.

import { el } from "./dom";

export class Tabs<Name extends string> {
  readonly list = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  readonly panels = el("main", { class: "panels" });
  private readonly built = new Set<Name>();

  constructor(private readonly tabs: [Name, string, () => HTMLElement][]) {
    for (const [name, label] of tabs) {
      const tab = el(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${name}`,
          "aria-controls": `panel-${name}`,
          "aria-selected": "false",
          tabindex: "-1",
        },
        label,
      );
      tab.addEventListener("click", () => this.open(name));
      this.list.append(tab);
      this.panels.append(
        el("div", {
          role: "tabpanel",
          class: "panel",
          id: `panel-${name}`,
          "aria-labelledby": `tab-${name}`,
          hidden: true,
        }),
      );
    }
    this.list.addEventListener("keydown", (event) => this.press(event));
    addEventListener("hashchange", () => this.start());
  }

  start(): void {
    const asked = this.tabs.find(([name]) => name === location.hash.slice(1));
    this.open((asked ?? this.tabs[0]!)[0]);
  }

  open(name: Name): void {
    this.build(name);
    for (const [other] of this.tabs) {
      const tab = document.getElementById(`tab-${other}`)!;
      tab.setAttribute("aria-selected", String(other === name));
      tab.setAttribute("tabindex", other === name ? "0" : "-1");
      document.getElementById(`panel-${other}`)!.hidden = other !== name;
    }
    document.getElementById(`tab-${name}`)!.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (location.hash.slice(1) !== name) history.replaceState(null, "", `#${name}`);
  }

  /** Every panel at once, for paper; again one when it is done. */
  showAll(): void {
    for (const [name] of this.tabs) {
      this.build(name);
      document.getElementById(`panel-${name}`)!.hidden = false;
    }
  }

  private build(name: Name): void {
    if (this.built.has(name)) return;
    this.built.add(name);
    document.getElementById(`panel-${name}`)!.append(this.tabs.find(([other]) => other === name)![2]());
  }

  private press(event: KeyboardEvent): void {
    const names = this.tabs.map(([name]) => name);
    const at = names.findIndex((name) => document.getElementById(`tab-${name}`) === document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (next === undefined || at < 0) return;
    event.preventDefault();
    const name = names[(next + names.length) % names.length]!;
    this.open(name);
    document.getElementById(`tab-${name}`)!.focus();
  }
}
