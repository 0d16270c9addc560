"""Processor time of `opscope report` on every model of a folder, as a ratio to that of an earlier commit, in one run.

`python bench/report_ratio.py FOLDER [--shapes FILE.json] [--rounds N]`. FILE.json is that of `runtime_macs.py`. A model
that the earlier commit refuses is left out: there is nothing to compare with. The goal is on the median of the models:
shapes that were not worked out before take no more than 1.3 times as long.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from subprocess import CalledProcessError

from earlier_commit import checked_out, opscope, ratios

BEFORE = "d3496af"  # shapes by `onnx` on a copy without weights, or by a table
GOAL = 1.3
SUFFIXES = (".onnx", ".tflite")


def words_of(path: Path, shapes: Mapping[str, Sequence[int]]) -> list[str]:
    flags = [word for name, extents in shapes.items() for word in ("--shape", f"{name}={'x'.join(map(str, extents))}")]
    target = "aic100-std" if path.suffix == ".onnx" else "max32690-cm4"
    return ["report", str(path), "--target", target, "--no-advice", *(flags or ["--batch", "1"])]


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shapes", type=Path, help="JSON file of shapes by file and input")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs per model (default 5)")
    options = parser.parse_args()
    shapes = json.loads(options.shapes.read_text()) if options.shapes else {}
    found = []
    with checked_out(BEFORE) as (before, folder):
        for path in sorted(path for path in options.folder.iterdir() if path.suffix in SUFFIXES):
            report = partial(opscope, folder=folder, words=words_of(path, shapes.get(path.name, {})))
            try:
                pairs = list(ratios(before, report, options.rounds))
            except CalledProcessError:
                print(f"{path.name:<60} refused by one of both")
                continue
            found.append(median(now / then for now, then in pairs))
            print(f"{path.name:<60} {median(now for now, _ in pairs):.2f} s {found[-1]:.2f}", flush=True)
    ratio = median(found)
    judged = "met" if ratio <= GOAL else "missed"
    print(f"processor time of `report` ÷ that of {BEFORE}: {ratio:.2f} (goal ≤ {GOAL}: {judged})")


if __name__ == "__main__":
    main()
