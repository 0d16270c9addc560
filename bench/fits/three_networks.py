"""How far off is a part of a family of which three networks were measured? The part is left out of the joint fit.

    bench/fits/three_networks.py FAMILY LATENCIES.csv MODELS PART…

For each part the family is fitted to the rows of all others; what comes out for any other part is then fitted to three
networks of the part, drawn several times, and judged by the rest.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from opscope.calibration.calibrate import calibrate
from opscope.calibration.measurements import Measurement, read_measurements
from opscope.calibration.validate import validate
from opscope.calibration.write import ANY_CHIP, Writer
from opscope.machine import catalogue
from opscope.machine.target import Target

DRAWS = 4
NETWORKS = 3


def main() -> None:
    family, table, models, *parts = sys.argv[1:]
    rows = read_measurements([Path(table)], models=Path(models))
    base, found = catalogue.load(family), []
    for part in parts:
        others = [row for row in rows if row.chip != part]
        variants = {chip: catalogue.data_sheet(chip) for chip in {row.chip for row in others}}
        folder = Path(tempfile.mkdtemp())
        Writer(calibrate(base, others, variants=variants), family, "all other parts").chips(folder)
        start = catalogue.read(folder / f"{family}-{ANY_CHIP}.toml")
        own = [row for row in rows if row.chip == part]
        errors = [error for draw in range(DRAWS) for error in judged(start, own, draw, folder)]
        found.append(errors)
        print(f"{part}: median {median(errors):.1%}, 90th percentile {np.quantile(errors, 0.9):.1%}", flush=True)
    every = [error for errors in found for error in errors]
    print(f"all: median {median(every):.1%}, 90th percentile {np.quantile(every, 0.9):.1%}")


def judged(start: Target, own: Sequence[Measurement], draw: int, folder: Path) -> list[float]:
    """Errors of the networks that were not drawn."""
    names = sorted({row.network for row in own})
    chosen = set(np.random.default_rng(draw).choice(names, NETWORKS, replace=False).tolist())
    fitted = calibrate(start, [row for row in own if row.network in chosen])
    path = folder / f"draw{draw}.toml"
    Writer(fitted, str(folder / f"{start.name}.toml"), "three networks").target(path)
    rest, _ = validate(catalogue.read(path), [row for row in own if row.network not in chosen])
    return [abs(row.error) for row in rest]


if __name__ == "__main__":
    main()
