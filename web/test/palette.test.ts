import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { themeOf } from "../src/palette";

type Triple = [number, number, number];
type Matrix = [Triple, Triple, Triple];

// what is left of linear red, green and blue where one kind of cone is missing: Machado, Oliveira and Fernandes 2009
const SIGHTS: Record<string, Matrix> = {
  all: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};
const XYZ: Matrix = [
  [0.4124564, 0.3575761, 0.1804375],
  [0.2126729, 0.7151522, 0.072175],
  [0.0193339, 0.119192, 0.9503041],
];
const WHITE: Triple = [0.95047, 1, 1.08883];
const LEAST = 15; // of CIE 1976; 2 is just seen side by side, 10 at a glance

const times = (matrix: Matrix, [a, b, c]: Triple): Triple =>
  matrix.map((row) => row[0] * a + row[1] * b + row[2] * c) as Triple;

const linear = (colour: string): Triple =>
  [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Triple;

function lab(light: Triple): Triple {
  const seen = light.map((part) => Math.min(Math.max(part, 0), 1)) as Triple;
  const [x, y, z] = times(XYZ, seen).map((part, i) => {
    const share = part / WHITE[i]!;
    return share > 0.008856 ? Math.cbrt(share) : 7.787 * share + 16 / 116;
  }) as Triple;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

for (const dark of [false, true])
  for (const [sight, matrix] of Object.entries(SIGHTS))
    test(`colours are told apart in the ${dark ? "dark" : "light"} theme by eyes with ${sight}`, () => {
      const { colours } = themeOf(dark);
      const seen = colours.map((colour) => lab(times(matrix, linear(colour))));
      seen.forEach((a, i) =>
        seen.slice(0, i).forEach((b, j) => {
          const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
          assert.ok(distance >= LEAST, `${colours[i]} and ${colours[j]}: ${distance.toFixed(1)}`);
        }),
      );
    });

test("words on every colour can be read", () => {
  const brightness = (colour: string): number => times(XYZ, linear(colour))[1];
  for (const dark of [false, true]) {
    const { colours, words } = themeOf(dark);
    colours.forEach((colour, i) => {
      const [low, high] = [brightness(colour), brightness(words[i]!)].sort((a, b) => a - b) as [number, number];
      assert.ok((high + 0.05) / (low + 0.05) >= 4.5, `${words[i]} on ${colour}`);
    });
  }
});

test("the style sheet has the same colours", () => {
  const css = readFileSync("src/page.css", "utf-8");
  const [light, dark] = [themeOf(false), themeOf(true)];
  light.colours.forEach((colour, i) => assert.ok(css.includes(`--c${i}: light-dark(${colour}, ${dark.colours[i]});`)));
});
