"""A sweep of one model: argv is model, profile, cells, jobs; prints seconds of the wall, of processors, and of cells.

The first cell of each process profiles the model, and starting it takes a moment: both are taken off, by a sweep of as
few cells as there are processes that is run first.
"""

from __future__ import annotations

import json
import sys
from os import times
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from opscope.fleet.query import ask
from opscope.fleet.spec import Spec
from opscope.fleet.store import Store
from opscope.fleet.sweep import sweep
from opscope.options import SweepOptions


def swept(model: Path, profile: str, cells: int, jobs: int) -> dict[str, float]:
    """Cells differ in cores, and then in the batch, so that a graph is read once for as many cells as a card has cores.

    Graphs are few where cells are many: what is measured is the pace of a grid, not of reading files.
    """
    cores, batches = tuple(range(1, min(cells, 14) + 1)), tuple(range(1, -(-cells // 14) + 1))
    axes = {"target": ("aic100-std",), "backend": ("estimate",), "batch": batches, "cores": cores}
    with TemporaryDirectory() as folder:
        start, used = perf_counter(), times()
        options = SweepOptions(jobs=jobs, profile=profile) if profile else SweepOptions(jobs=jobs)
        state = sweep(Spec((model.name,), model.parent, axes), folder, options, created="2026-01-01T00:00:00+00:00")
        wall, after = perf_counter() - start, times()
        ((own,),) = ask(Store(folder), "SELECT sum(seconds) FROM cells").rows
    assert state.done == state.total, state
    cpu = sum(after[:4]) - sum(used[:4])
    return {"cells": state.ended, "ok": state.done, "wall": wall, "cpu": cpu, "own": float(str(own))}


def main() -> None:
    model, profile, cells, jobs = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    few, many = swept(model, profile, 1, jobs), swept(model, profile, cells, jobs)
    print(json.dumps({"few": few, "many": many}))


if __name__ == "__main__":
    main()
