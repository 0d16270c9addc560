// How a number was obtained, in a word and, on demand, in a sentence.

import { el } from "./dom";

const MEANING: Record<string, string> = {
  estimated: "from formulas, before anything ran",
  calibrated: "from a model that was fitted to measurements",
  simulated: "from opscope's simulated device",
  "vendor-model": "from the vendor's own performance model",
  "compiler-fact": "known to the compiler; does not depend on time",
  measured: "from hardware",
  emulated: "from a functional emulator: results are true, times are not device times",
};

export function provenance(word: string): HTMLElement {
  return el(
    "span",
    { class: `provenance ${word in MEANING ? word : ""}`, title: MEANING[word] ?? "how this number was obtained" },
    word || "unknown",
  );
}
