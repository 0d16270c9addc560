// Sources: what is counted, what the reader of the model noted, and where every figure of the target comes from.

import type { Note, Resources, TargetFigure } from "./contract";
import { el, section, words, type Child } from "./dom";
import { bytes, count, decimal } from "./format";
import type { App } from "./state";
import { firstRows } from "./table";
import { prose, shorten } from "./text";

const MOST_NOTES = 200;
const MOST_FIGURES = 200;

export function sources(app: App, resources: Resources): HTMLElement {
  const { info } = app.model.data;
  return el(
    "div",
    {},
    section(
      "What is counted",
      el("p", {}, `${prose(resources.definition, 1000)}.`),
      el(
        "p",
        { class: "note" },
        `The numbers of this run are ${shorten(info.provenance, 40)}: computed from the model and the figures of the target file, not measured.`,
      ),
    ),
    resources.notes.length ? section("Notes from reading the model", notes(resources.notes)) : "",
    section(
      `Figures of ${shorten(info.target, 60)} and their sources`,
      firstRows(["Part", "Figure", "Source", "Value", "Low – high"], 3, resources.figures.map(figureRow), MOST_FIGURES),
      el("p", { class: "note" }, shorten(resources.target_title, 300)),
    ),
  );
}

function notes(all: Note[]): HTMLElement {
  const items = all.slice(0, MOST_NOTES).map((note) => {
    const op = note.op ? el("span", { title: shorten(note.op, 300) }, ` (${shorten(note.op, 48)})`) : "";
    return el("li", {}, el("code", {}, shorten(note.code, 48)), ` ${prose(note.text, 1000)}`, op);
  });
  const more = all.length - items.length;
  return el("ul", { class: "listed" }, ...items, more > 0 ? el("li", {}, `and ${count(more)} more`) : "");
}

function figureRow(figure: TargetFigure): Child[] {
  const size = figure.name.endsWith("bytes") && figure.value >= 1024 ? ` (${bytes(figure.value)})` : "";
  const ranged = figure.low !== null && figure.high !== null;
  return [
    shorten(figure.part, 48),
    shorten(figure.name, 120),
    words(prose(figure.source, 1000)),
    `${plain(figure.value)}${size}`,
    ranged ? `${plain(figure.low!)} – ${plain(figure.high!)}` : "",
  ];
}

const plain = (value: number): string => (Number.isInteger(value) ? count(value) : decimal(value, 6));
