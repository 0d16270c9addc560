// Trade-offs: one metric against another, and the cells that no other beats on both.

import { el, section } from "../dom";
import { count } from "../format";
import { colourNumbers } from "../palette";
import { SortTable, type Col } from "../table";
import { shorten } from "../text";
import { labelOf, show, differing, type Fleet } from "./cells";
import { axisOptions, choice, lazily, metricOptions, note, Question } from "./controls";
import { detail, runLink } from "./detail";
import { dots, front, type Dot } from "./fronts";
import { OTHERS, Scatter, SHAPES, type Group } from "./scatter";

const HINT = "Point at a cell for its name; a click shows it.";

export function pareto(fleet: Fleet): HTMLElement {
  const { cells } = fleet;
  const { metrics, axes } = cells.data;
  const pick = (name: string, other: number): number => (cells.metricNamed(name) < 0 ? other : cells.metricNamed(name));
  let x = pick("latency", 0);
  let y = pick("peak_memory", Math.min(1, metrics.length - 1));
  let by = cells.axisNamed("model");
  let shown: { groups: (Group & { dots: Dot[] })[]; labels: Map<number, string> } = {
    groups: [],
    labels: new Map(),
  };
  let told: number[] = []; // axes that tell cells apart
  const said = el("p", { class: "note", role: "status" }, HINT);
  const legend = el("p", { class: "legend" });
  const card = el("div", {});
  const question = new Question();
  const kinds = cells.axisNamed("provenance");

  const work = (): void => {
    told = differing(cells, cells.rows);
    if (!told.length) told = [0];
    const several = cells.counted(kinds).size > 1;
    const groupOf = cells.together(cells.rows, several ? [by, kinds] : [by]);
    const all = dots(cells, x, y, groupOf);
    const names = new Map<string, number>();
    for (const dot of all)
      names.set(cells.word(by, dot.row) + (several ? ` (${cells.word(kinds, dot.row)})` : ""), dot.group);
    const parts = new Map<number, Dot[]>();
    for (const dot of all) {
      const part = parts.get(dot.group);
      if (part) part.push(dot);
      else parts.set(dot.group, [dot]);
    }
    const colours = colourNumbers(new Map([...names].map(([name, group]) => [name, parts.get(group)!.length])), OTHERS);
    const labels = new Map([...names].map(([name, group]) => [group, name]));
    const groups = [...parts].map(([group, found]) => ({
      colour: colours.get(labels.get(group)!)!,
      dots: found,
      line: front(found, metrics[x]!, metrics[y]!),
    }));
    groups.sort((a, b) => a.colour - b.colour);
    shown = { groups, labels };
    legend.replaceChildren(
      ...groups
        .filter((group) => group.colour < OTHERS)
        .map((group) =>
          el(
            "span",
            { class: `shape t${group.colour}` },
            el("i", {}, SHAPES[group.colour]!),
            ` ${shorten(labels.get(group.dots[0]!.group)!, 40)}`,
          ),
        ),
      groups.length > OTHERS ? el("span", {}, `· ${count(groups.length - OTHERS)} others`) : "",
    );
    const without = cells.rows.length - all.length;
    said.textContent = all.length ? HINT : "No cell has both figures.";
    hint.textContent = without ? `${count(without)} cells lack one of the two figures.` : "";
    table.set(groups.flatMap((group) => group.line));
    question.set(cells.sql(["model", "target", axes[by]!.sql, "provenance", metrics[x]!.sql, metrics[y]!.sql]));
  };
  const tell = (dot: Dot): string => {
    const named = labelOf(cells, told, dot.row);
    return `${shorten(named, 140)}: ${metrics[x]!.name} ${show(metrics[x]!, dot.x)}, ${metrics[y]!.name} ${show(metrics[y]!, dot.y)}`;
  };
  const open = (row: number): void => {
    card.replaceChildren(detail(cells, row, [], open));
    card.scrollIntoView({ block: "nearest" });
  };
  const columns: Col<Dot>[] = [
    {
      label: "Group",
      value: (dot) => shown.labels.get(dot.group)!,
      cell: (dot) => shorten(shown.labels.get(dot.group)!, 40),
    },
    {
      label: "Cell",
      value: (dot) => labelOf(cells, told, dot.row),
      cell: (dot) =>
        runLink(cells, dot.row, shorten(labelOf(cells, told, dot.row), 90)) ??
        el("span", { class: "name" }, shorten(labelOf(cells, told, dot.row), 90)),
    },
    { label: "across", number: true, value: (dot) => dot.x, cell: (dot) => show(metrics[x]!, dot.x) },
    { label: "up", number: true, value: (dot) => dot.y, cell: (dot) => show(metrics[y]!, dot.y) },
  ];
  const table = new SortTable(columns, 0, false, "Cells that no other of their group beats on both");
  const hint = note();
  const chart = new Scatter(
    fleet,
    () => {
      return {
        groups: shown.groups,
        x: { label: words(x), unit: metrics[x]!.unit, text: (value) => show(metrics[x]!, value) },
        y: { label: words(y), unit: metrics[y]!.unit, text: (value) => show(metrics[y]!, value) },
      };
    },
    (dot, click) => {
      said.textContent = dot ? tell(dot as Dot) : HINT;
      if (dot && click) open((dot as Dot).row);
    },
  );
  const words = (metric: number): string => {
    const { name, better } = metrics[metric]!;
    return better ? `${name}, ${better} is better` : name;
  };
  const choose = (set: (value: number) => void) => {
    return (value: number): void => {
      set(value);
      renew();
    };
  };
  const { renew } = lazily(chart.root, cells, work, () => chart.draw());
  fleet.onTheme(() => chart.draw());
  return el(
    "div",
    {},
    section(
      "Trade-offs",
      el(
        "div",
        { class: "tools" },
        choice(
          "Across",
          metricOptions(cells),
          x,
          choose((value) => (x = value)),
        ),
        choice(
          "Up",
          metricOptions(cells),
          y,
          choose((value) => (y = value)),
        ),
        choice(
          "A front for each",
          axisOptions(cells),
          by,
          choose((value) => (by = value)),
        ),
      ),
      chart.root,
      legend,
      said,
      hint,
      question.root,
    ),
    card,
    section("Cells that no other of their group beats on both", table.root),
  );
}
