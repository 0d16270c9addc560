"""Fit the targets of Hexagon parts again: to latencies of networks, and then to tokens per second of language models.

    bench/fits/hexagon_targets.py LATENCIES.csv MODELS TOKENS.csv [FOLDER]

FOLDER is that of the plug-in's targets if none is given; `data_sheets` in it has the parts before the fit. Prints the
errors of networks and of language models left out, by precision.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import opscope
from opscope.calibration.calibrate import Calibrated, judged
from opscope.calibration.write import ANY_CHIP, LANGUAGE_MODELS_SOURCE, Writer

FAMILY = "hexagon"
NETWORKS = "Qualcomm AI Hub, qai-hub-models 0.65.0, BSD-3-Clause"
TOKENS = "Qualcomm AI Hub, language models of qai-hub-models 0.65.0, BSD-3-Clause"
HERE = Path(__file__).parents[2] / "src/opscope/plugins/qnn/targets"


def main() -> None:
    latencies, models, tokens, *folder = sys.argv[1:]
    targets = Path(folder[0]) if folder else HERE
    found = opscope.calibrate(FAMILY, [latencies], models=models, by_chip=True)
    Writer(found, FAMILY, NETWORKS).chips(targets)
    errors(found)
    told = opscope.calibrate(FAMILY, [tokens], by_chip=True)
    errors(told)
    writer = Writer(told, FAMILY, TOKENS)
    for number, chip in enumerate(told.machines):
        append(targets / f"{chip}.toml", writer, number)
    append(targets / f"{FAMILY}-{ANY_CHIP}.toml", writer, None)


def errors(found: Calibrated) -> None:
    """One line for each precision."""
    for precision in sorted({row.measurement.precision or "float" for row in found.predictions}):
        rows = [row for row in found.predictions if (row.measurement.precision or "float") == precision]
        all_of, width = judged(rows), median(row.high / row.low for row in rows)
        print(
            f"{precision}: {len(rows)} rows, median {all_of.median_error:.1%}, 90th percentile {all_of.p90_error:.1%}, "
            f"in range {all_of.coverage:.1%}, width {width:.2f}"
        )


def append(path: Path, writer: Writer, machine: int | None) -> None:
    """Add what language models reach on a part to its target."""
    text = path.read_text(encoding="utf-8")
    source = f'[sources]\n{LANGUAGE_MODELS_SOURCE} = "{writer.told(machine)}"'
    path.write_text(f"{text.replace('[sources]', source, 1)}\n{writer.language_models(machine)}", encoding="utf-8")


if __name__ == "__main__":
    main()
