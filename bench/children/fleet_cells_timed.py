"""Cells whose own time is known: nothing, or one second. A sweep names them by `fleet_cells_timed:NAME`."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from opscope.fleet.cell import Job, Models, profile_cell
from opscope.fleet.plan import Cell
from opscope.workflows.record import Recorded


@cache
def _profiled(path: str, job: Job) -> Recorded:
    cell = Cell("", "", "", "", path, path, "", "aic100-std", "", "estimate", {})
    return profile_cell(cell, job, Models(), None)


def nothing(cell: Cell, job: Job, models: Models, folder: Path | None) -> Recorded:
    """A profile that was made before: what is left is what a sweep itself costs, rows and files included."""
    return _profiled(cell.path, job)


def second(cell: Cell, job: Job, models: Models, folder: Path | None) -> Recorded:
    """One second in which a board, or a compiler on another machine, would be at work."""
    time.sleep(1.0)
    return _profiled(cell.path, job)
