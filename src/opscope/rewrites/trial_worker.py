"""One candidate profiled for a judge; the process in which that is done."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..backends.worker import RefusedError, answer
from ..changes.profile_model import profile_by
from ..core.errors import ProfilerError
from ..core.provenance import Provenance
from ..workflows.record import Recorded
from .judge import Judged, OpCost


def work(request: Mapping[str, Any]) -> Mapping[str, object]:
    try:
        return {"judged": msgspec.to_builtins(judged(request))}
    except ProfilerError as error:
        raise RefusedError(str(error)) from error


def judged(request: Mapping[str, Any]) -> Judged:
    """What a judge says of a file."""
    shapes = {name: tuple(shape) for name, shape in request["shapes"].items()}
    found = profile_by(
        request["backend"],
        Path(request["model"]),
        request["target"],
        request["options"],
        shapes=shapes or None,
        trials=False,
        created="",
    )
    return judged_of(found)


def judged_of(recorded: Recorded) -> Judged:
    """What a search needs of a profile."""
    summary, info = recorded.run.summary, recorded.run.info
    latency = summary.latency
    return Judged(
        latency_ns=latency.value_ns,
        low_ns=latency.low_ns,
        high_ns=latency.high_ns,
        provenance=latency.provenance,
        obtained=info.obtained,
        known_ns=sum(op.wall_ns or 0 for op in summary.ops),
        unknown_ops=_unknown(recorded),
        samples_ns=summary.samples_ns,
        ops=_costs(recorded),
    )


def _unknown(recorded: Recorded) -> int:
    """Ops that nobody can tell the time of; where there is no latency, at least one.

    A vendor's model leaves out what falls back to the processor; a measurement holds all that ran.
    """
    summary = recorded.run.summary
    is_all = summary.latency.provenance is Provenance.MEASURED
    elsewhere = [op for op in summary.ops if op.on_cpu and op.wall_ns is None and not is_all]
    return max(len(recorded.run.unknown_ops), len(elsewhere), int(summary.latency.value_ns is None))


def _costs(recorded: Recorded) -> dict[str, OpCost]:
    """By name; an op that another does the work of has that one's cost."""
    path: dict[str, int] = {}
    for row in recorded.findings.slack:
        path[row.op] = path.get(row.op, 0) + row.path_ns
    found: dict[str, OpCost] = {}
    for op in recorded.run.summary.ops:
        cost = OpCost(path.get(op.name, 0), op.wall_ns or op.busy_ns or 0)
        for name in (op.name, *op.covers):
            found[name] = max(cost, found.get(name, cost), key=lambda each: each.wall_ns)
    return found


if __name__ == "__main__":
    answer(work, *sys.argv[1:3])
