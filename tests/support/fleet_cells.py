"""Profiles by hand for stores, and cells for sweeps that take a moment, crash, hang or use memory.

What a cell does is in its model's file: `sleep 0.1`, `crash`, `hang`, `memory`, `refuse`, `raise`, or `ns 1500`. Sweeps
name these functions by `module:attribute`, as processes of their own import them; PYTHONPATH leads here.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import opscope
from opscope.core.errors import UsageError
from opscope.core.keys import digest_of
from opscope.core.provenance import Provenance
from opscope.fleet.rows import Origin, cell_row, op_columns, series_of
from opscope.gate.run_figures import of_run
from opscope.recording.recording import OpRecord, Recording
from opscope.recording.summary import Latency
from opscope.recording.trace import COUNTER, EDGE, SPAN, Trace
from opscope.workflows.record import analysed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opscope.fleet.cell import Job, Models
    from opscope.fleet.plan import Cell
    from opscope.fleet.store import Columns
    from opscope.workflows.record import Recorded

# of processes that import this: also the opscope that is tested, wherever another one may be installed
PYTHON_PATH = os.pathsep.join([str(Path(__file__).parents[1]), str(Path(opscope.__file__).parents[1])])
CREATED = "2026-11-16T08:00:00+00:00"


def recorded(
    ops: Mapping[str, int] | None = None,
    *,
    target: str = "chip",
    provenance: Provenance = Provenance.ESTIMATED,
    samples: Sequence[int] = (),
    created: str = CREATED,
) -> Recorded:
    """A profile of a few ops, one after the other."""
    times = {"conv": 600, "gemm": 400} if ops is None else ops
    total = sum(times.values())
    empty = (np.zeros(0, SPAN), np.zeros(0, EDGE), (), np.zeros(0, COUNTER))
    recording = Recording(
        maker="test",
        provenance=provenance,
        trace=Trace((), (), *empty, provenance),
        ops=tuple(OpRecord(name, "Op", time_ns=ns) for name, ns in times.items()),
        model="net.onnx",
        target=target,
        batch=1,
        latency=Latency(total, total // 2, 2 * total, provenance),
        samples_ns=tuple(samples),
    )
    return analysed(recording, None, command=(), created=created, sha256="ab" * 32)


def origin_of(
    name: str = "net",
    *,
    target: str = "chip",
    options: Mapping[str, str | int] | None = None,
    commit: str | None = None,
    created: str = CREATED,
    mark: str = "",
) -> Origin:
    chosen = dict(options or {})
    series = series_of(f"{name}.onnx", target, "estimate", chosen)
    row_id = digest_of(series, commit or "", created, mark)
    return Origin(
        id=row_id,
        key=row_id,
        series=series,
        model=name,
        model_path=f"{name}.onnx",
        model_sha256="ab" * 32,
        target=target,
        backend="estimate",
        options=chosen,
        commit=commit,
        host="here",
        created=created,
        sweep="s",
        versions={"opscope": "0"},
    )


def rows(origin: Origin, found: Recorded | None = None) -> tuple[dict[str, object], Columns]:
    """A cell with figures, and its ops."""
    profile = found or recorded(target=origin.target)
    figures = of_run(profile.run, label="")
    return cell_row(origin, figures, profile.run, profile.findings, seconds=0.5), op_columns(figures, profile.run)


def act(cell: Cell, job: Job, models: Models, folder: Path | None) -> Recorded:
    """Do what the model's file says."""
    word, _, value = Path(cell.path).read_text(encoding="utf-8").partition(" ")
    if word == "sleep":
        time.sleep(float(value))
    if word == "hang":
        time.sleep(600)
    if word == "crash":
        print("the compiler is about to fall over", flush=True)
        os.abort()
    if word == "memory":
        np.ones(1 << 30)
    if word == "refuse":
        raise UsageError("net: has an op that the target lacks; expected another")
    if word == "raise":
        raise RuntimeError("something unforeseen")
    if word == "poison":  # leaves the process so that the next cell dies of it
        models.poisoned = True  # type: ignore[attr-defined]
    elif getattr(models, "poisoned", False):
        os.abort()
    return recorded({"all": int(value)} if word == "ns" else None, target=cell.target or "chip", created=job.created)


def recorded_cell(cell: Cell, job: Job, models: Models, folder: Path | None) -> Recorded:
    """Works, whatever the file says: what was broken is mended."""
    return recorded(target=cell.target, created=job.created)


def logged(cell: Cell, job: Job, models: Models, folder: Path | None) -> Recorded:
    """The same, with a line for every time that a cell is run, in a file beside the store."""
    with Path(f"{job.store}.log").open("a", encoding="utf-8") as log:
        log.write(f"{cell.id}\n")
    return act(cell, job, models, folder)


def write_models(folder: Path, count: int, word: str = "sleep 0") -> None:
    """Models that are all different files, and do the same."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"m{number:03}.onnx").write_text(f"{word}{' ' * number}", encoding="utf-8")
