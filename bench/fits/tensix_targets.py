"""Fit the targets of Tenstorrent chips again, to kernel times of ops in captures of tt-metal's profiler.

    bench/fits/tensix_targets.py CHIP=CAPTURE.csv… [FOLDER]

CHIP is wormhole or blackhole, CAPTURE an `ops_perf_results_*.csv` (tenstorrent/tt-perf-report has seven in tests/data).
FOLDER is that of the plug-in's targets if none is given; `data_sheets` in it has the chips before the fit. Prints
errors by capture and by family of work: of ops left out of the fit, and of whole captures left out, each predicted by a
fit that has seen none of the ops in it, of whatever capture. An op counts once, however often it was called.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import opscope
from opscope.calibration.calibrate import Calibrated, calibrate
from opscope.calibration.measurements import Measurement, read_measurements, repeated_once
from opscope.calibration.priced import Models
from opscope.calibration.quantities import Quantity
from opscope.calibration.terms import values_of
from opscope.calibration.write import ANY_CHIP, SHEETS, Writer
from opscope.core.errors import ProfilerError
from opscope.graph.graph import Graph
from opscope.graph.work_families import work_family
from opscope.machine.catalogue import load, with_figures
from opscope.machine.target import Target

FAMILY = "tensix"
SOURCE = "kernel times of ops in captures of tt-metal's profiler, tenstorrent/tt-perf-report, Apache-2.0"
HERE = Path(__file__).parents[2] / "src/opscope/plugins/tenstorrent/targets"


def main() -> None:
    given = [word.partition("=") for word in sys.argv[1:]]
    folder = next((Path(word) for word, equals, _ in given if not equals), HERE)
    captures = {Path(path).stem: rows_of(path, chip) for chip, equals, path in given if equals}
    chips = {chip for chip, equals, _ in given if equals}
    sheets = {chip: load(str(folder / SHEETS / f"{chip}.toml")) for chip in chips}
    base = load(FAMILY)
    found = calibrate(base, [row for rows in captures.values() for row in rows], variants=sheets)
    Writer(found, FAMILY, SOURCE).chips(folder)
    (folder / f"{FAMILY}-{ANY_CHIP}.toml").unlink()
    print("ops left out")
    errors = [(found.machines[row.machine], row.measurement, row.error) for row in found.predictions]
    tell((chip, family, error) for chip, row, error in errors for family in ("all", family_of(row)))
    print("captures left out")
    told = []
    for name, rows in captures.items():
        known = {row.network for row in rows}
        others = [row for other, all_of in captures.items() if other != name for row in all_of]
        without = calibrate(base, [row for row in others if row.network not in known], variants=sheets)
        told += [(name, row, error) for row, error in errors_of(rows, without, base, sheets)]
    tell((name, "all", error) for name, _, error in told)
    tell(("of all captures", family, error) for _, row, error in told for family in ("all", family_of(row)))


def rows_of(path: str, chip: str) -> list[Measurement]:
    """Ops of a capture that our graphs have a word for, each once."""
    with tempfile.TemporaryDirectory() as folder:
        opscope.import_profile([path], Path(folder) / "run")
        return [replace(row, chip=chip) for row in repeated_once(read_measurements([Path(folder) / "run"]))]


def errors_of(
    rows: Sequence[Measurement], found: Calibrated, base: Target, sheets: Mapping[str, Target]
) -> Iterable[tuple[Measurement, float]]:
    """Predicted ÷ measured - 1, by what was fitted to other ops: of the chip, else of the family on its data sheet."""
    models, chip = Models(), rows[0].chip
    if chip in found.machines:
        figures = found.figures[found.machines.index(chip)]
    else:
        before, sheet = values_of(base, list(found.shared)), values_of(sheets[chip], list(found.shared))
        figures = {
            key: replace(figure, value=figure.value / before[key].value * sheet[key].value)
            for key, figure in found.shared.items()
        }
    target = with_figures(sheets[chip], figures)
    for row in rows:
        try:
            yield row, models.priced(row, target).range(Quantity.LATENCY).value / row.seconds - 1
        except ProfilerError as error:
            print(f"{row.place}: {error}")


def family_of(row: Measurement) -> str:
    assert isinstance(row.model, Graph)
    family = work_family(row.model.ops[0], row.model)
    return row.model.name if family is None else family.value


def tell(rows: Iterable[tuple[str, str, float]]) -> None:
    groups: dict[tuple[str, str], list[float]] = {}
    for name, family, error in rows:
        groups.setdefault((name, family), []).append(abs(error))
    for (name, family), errors in sorted(groups.items()):
        median, p90 = np.median(errors), np.quantile(errors, 0.9)
        print(f"  {name:40} {family:24} {len(errors):4} ops, median {median:.1%}, 90th percentile {p90:.0%}")


if __name__ == "__main__":
    main()
