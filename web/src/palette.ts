// Colours that all eyes can tell apart (near those of Okabe and Ito; a test simulates each kind of colour blindness), in
// a light and a dark version. Never the only sign.

const LIGHT = ["#2f76b8", "#f4ad15", "#006942", "#ae4678", "#3749a3", "#b7451d", "#54b7ec", "#a8a83c"];
const DARK_WORDS = "#0c0f13";
const DARK = ["#3686c6", "#eca93b", "#41be95", "#cc7cab", "#a5a7fa", "#e07c5e", "#95ceee", "#cace6d"];

export type Theme = {
  dark: boolean;
  colours: string[];
  other: string;
  words: string[]; // on each of the colours, and on the grey
  background: string;
  panel: string;
  stripe: string;
  grid: string;
  text: string;
  dim: string;
  strong: string;
  wait: string;
  hatch: string;
  path: string;
  before: string;
  after: string;
  select: string;
  heat: string[]; // from least to most
  heatWords: string[]; // on each of them
};

export function themeOf(dark: boolean): Theme {
  return dark
    ? {
        dark,
        colours: DARK,
        words: DARK.map(() => DARK_WORDS).concat(DARK_WORDS),
        other: "#7d8794",
        background: "#12151a",
        panel: "#181c22",
        stripe: "#161a20",
        grid: "#262c35",
        text: "#d5dae1",
        dim: "#8b95a3",
        strong: "#ffffff",
        wait: "#2a3039",
        hatch: "#4d5765",
        path: "#ff5c3d",
        before: "#56b4e9",
        after: "#f0a202",
        select: "#ffffff",
        heat: ["#1a1f27", "#1b2a3a", "#1d3a55", "#1f4d74", "#22669c", "#3c92d3", "#7cc0f2"],
        heatWords: ["#d5dae1", "#d5dae1", "#e6ebf1", "#f2f5f8", "#ffffff", "#0c0f13", "#0c0f13"],
      }
    : {
        dark,
        colours: LIGHT,
        words: LIGHT.map((_, number) => ([1, 6, 7].includes(number) ? "#14110a" : "#ffffff")).concat("#ffffff"),
        other: "#7f8a99",
        background: "#ffffff",
        panel: "#f7f8fa",
        stripe: "#fafbfc",
        grid: "#e6e9ee",
        text: "#1d232b",
        dim: "#66707e",
        strong: "#000000",
        wait: "#eceff3",
        hatch: "#bcc4ce",
        path: "#d13a1c",
        before: "#0072b2",
        after: "#b56a00",
        select: "#0b0d10",
        heat: ["#f5f7fa", "#e3edf7", "#c8def1", "#9cc5e6", "#66a5d6", "#2a74b0", "#0b4f88"],
        heatWords: ["#1d232b", "#1d232b", "#1d232b", "#14181e", "#0b0d10", "#ffffff", "#ffffff"],
      };
}

/** Largest first get the colours; everything after them is grey. */
export function colourNumbers(weights: Map<string, number>, colours = LIGHT.length): Map<string, number> {
  const names = [...weights.entries()].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
  return new Map(names.map((name, place) => [name, place < colours ? place : colours]));
}
