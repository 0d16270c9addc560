"""Fit what an inference takes beside the vendor's model of HTP parts: the call, and a factor for each engine.

    bench/fits/htp_correction.py LATENCIES.csv RUN… > src/opscope/plugins/qnn/parts/correction.toml

Runs are profiles of the networks by the vendor's model, in float, named as the table names them:

    opscope profile nets/resnet18.onnx --backend htp --soc SA8255 -o runs/resnet18.run

The table has columns model, soc_id, precision and latency_ms (the median of several rows counts); rows in float of the
parts that have the same vendor's model are used. Each network is left out in turn.
"""

from __future__ import annotations

import csv
import json
import sys
from math import exp, log
from pathlib import Path
from statistics import median

import numpy as np

from opscope.calibration.fit import Fit, FitRow, Priors, fit, linearise
from opscope.calibration.left_out import COVERAGE, network_weights, quantile, unsure_of
from opscope.calibration.target_file import inline, table_text
from opscope.calibration.terms import Terms
from opscope.estimate.ranges import RANGE_SIGMAS
from opscope.machine.calibration import Calibration, Validation
from opscope.machine.target import Figure

IDS = (52, 77)  # the vendor's model is the same
CALL = "call"
ENGINES = ("HMX", "HVX", "DMA", "scalar", "dispatch and waits")
PRIORS = {CALL: (0.4e-3, 3.0)} | dict.fromkeys(ENGINES, (1.0, 2.0))  # value, and times how far its range goes
SPREAD = 0.08
NOTICE = "Qualcomm AI Hub, qai-hub-models 0.65.0, BSD-3-Clause"


def main() -> None:
    table, *runs = sys.argv[1:]
    keys = tuple(PRIORS)
    rows = [row for run in runs for row in rows_of(Path(run), measured(Path(table)), keys)]
    reach = np.log([[2.576 * each for _, each in PRIORS.values()]] * len(IDS))
    priors = Priors(np.zeros_like(reach), -reach, reach, np.full(len(keys), 0.1))
    whole = fit(rows, priors)
    networks = list(dict.fromkeys(row.network for row in rows))
    fits = {name: fit([row for row in rows if row.network != name], priors, whole) for name in networks}
    print(text(rows, whole, fits, keys))


def measured(table: Path) -> dict[tuple[str, int], float]:
    """Network and part → seconds, in float."""
    found: dict[tuple[str, int], list[float]] = {}
    with table.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["precision"] == "float":
                found.setdefault((row["model"], int(row["soc_id"])), []).append(float(row["latency_ms"]) / 1e3)
    return {key: median(times) for key, times in found.items()}


def rows_of(run: Path, times: dict[tuple[str, int], float], keys: tuple[str, ...]) -> list[FitRow]:
    """One row for each part that a network was measured on."""
    document = json.loads((run / "recording.json").read_text(encoding="utf-8"))
    spent = {row["cause"]: row["ns"] / 1e9 for row in document["path_shares"]} | {CALL: PRIORS[CALL][0]}
    used = [key for key in keys if spent.get(key, 0.0) > 0]
    exponents = np.array([[float(key == column) for column in keys] for key in used])
    places = np.arange(len(used))
    terms = Terms(np.array([spent[key] for key in used]), exponents, places, places)
    name = document["network"]
    return [
        FitRow(name, number, terms, log(times[name, soc])) for number, soc in enumerate(IDS) if (name, soc) in times
    ]


def text(rows: list[FitRow], whole: Fit, fits: dict[str, Fit], keys: tuple[str, ...]) -> str:
    """The tables of the file."""
    slopes, _ = linearise(rows, whole.logs)
    outside = np.array([linearise([row], fits[row.network].logs)[1][0] for row in rows])
    open_ = np.array([fits[row.network].sigmas[row.machine] for row in rows])
    weights = network_weights([row.network for row in rows])
    unsure = unsure_of(slopes**2, open_**2, outside**2, weights)
    widths = np.sqrt(SPREAD**2 + (slopes**2 * (open_**2 + unsure)).sum(axis=1))
    factor = quantile(np.abs(outside) / widths, weights)
    errors = np.abs(np.exp(-outside) - 1)
    names = {row.network for row in rows}
    told = f"fitted to {len(rows)} latencies of {len(names)} networks ({NOTICE}); ranges are what they leave open"
    judged = Validation(
        len(names),
        len(rows),
        float(np.median(errors)),
        float(np.quantile(errors, 0.9)),
        float(np.mean(np.abs(outside) <= factor * widths)),
        "fit",
    )
    sigmas = np.sqrt(whole.sigmas.mean(axis=0) ** 2 + unsure)
    figures = {}
    for number, key in enumerate(keys):
        value, far = PRIORS[key][0] * exp(whole.shared[number]), exp(sigmas[number] * RANGE_SIGMAS / 2)
        figures[key] = inline(Figure(value, "fit", value / far, value * far))
    factors = "\n".join(f'"{key}" = {figures[key]}' for key in ENGINES)
    head = f'[[corrections]]\nids = {list(IDS)}\ndtype = "f16"\ncall_seconds = {figures[CALL]}\n'
    tables = f'[corrections.sources]\nfit = "{told}"\n\n[corrections.factors]\n{factors}\n'
    fitted = Calibration(len(rows), len(names), SPREAD, round(factor, 4), COVERAGE, {}, ("float",))
    made = [table_text("corrections.calibration", fitted), table_text("corrections.validation", judged)]
    return "\n".join(["# Written by bench/fits/htp_correction.py.\n", head, tables, *made]).rstrip()


if __name__ == "__main__":
    main()
