"""Does it fit, and was all of it done? Sizes of memories, constants that have to be read, MACs of the graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.columns import Numbers, distinct
from ...core.meaning import Carries, Does
from ...core.sums import known_sum
from ...program.program import NO_OP
from ...recording.finding import LawCheck
from ...recording.run import Run
from ..run_analysis import RunAnalysis
from .conservation import commands_that_ran, has_transfers, without_totals


def memories_hold(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """No memory holds more at once than it is large: as the timeline tells, and as the compiler placed things."""
    run, fullest = analysis.run, dict[str, tuple[int, int]]()
    held = [(row.name, row.peak_bytes, row.capacity_bytes) for row in run.summary.memory]
    held += [(row.memory, row.bytes, row.capacity_bytes) for row in (run.bounds.holdings if run.bounds else ())]
    for name, peak, capacity in held:
        if peak is not None and capacity is not None:
            fullest[name] = max(fullest.get(name, (0, capacity)), (peak, capacity))
    if not fullest:
        yield LawCheck("peak of every memory ≤ its capacity", None, "the run does not tell both of any memory")
    for name, (peak, capacity) in fullest.items():
        yield LawCheck(f"{name} peak ≤ capacity", peak <= capacity, f"{peak:,} and {capacity:,} bytes")


def constants_are_read(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """Constants that do not stay in local memory are read from outer memory, each at least once."""
    run, name = analysis.run, "outer memory reads ≥ constants that do not stay resident"
    if run.bounds is None or run.bounds.streamed_bytes is None:
        yield LawCheck(name, None, "the run does not tell which constants stay")
        return
    ran, missing = commands_that_ran(analysis), _not_recorded(analysis)
    if missing:
        yield LawCheck(name, None, missing)
        return
    reads = np.array([*(route.carries is Carries.READ for route in run.routes), False])
    rows = run.commands.rows[ran]
    read = int(rows["moved_bytes"][reads[rows["route"]]].astype(np.int64).sum())
    yield LawCheck(name, read >= run.bounds.streamed_bytes, f"{read:,} and {run.bounds.streamed_bytes:,} bytes")


def graph_is_done(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """MACs of all ops are those of the graph; what cores or slices do each for themselves counts each time."""
    run, name = analysis.run, "MACs of ops = MACs of the graph"
    asked, done = _asked(run), known_sum(op.macs for op in run.summary.ops)
    if asked is None or done is None:
        yield LawCheck(name, None, "the run does not tell the MACs of its graph, or not of every op")
        return
    missing = without_totals(run) or (_not_recorded(analysis) if has_transfers(run) else "")
    if missing:
        yield LawCheck(name, None, missing)
        return
    macs, again = asked
    off = abs(done - macs - again)
    repeated = f", {again:,} of them done again by further cores or slices of rows" if again else ""
    yield LawCheck(name, off <= _rounded(run), f"{done:,} and {macs + again:,}{repeated}")


def _asked(run: Run) -> tuple[int, int] | None:
    """MACs that the graph asks for, and those that are done again; None where one op's are not known."""
    if run.bounds is not None and run.bounds.macs is not None:
        return run.bounds.macs, run.bounds.repeated_macs
    if run.resources is None or not all(layer.work_known for layer in run.resources.layers):
        return None
    return run.resources.totals.macs, 0


def _rounded(run: Run) -> int:
    """By how much the MACs of commands may be off: a core's part of an op is a whole number."""
    rows = run.commands.rows[run.commands.rows["macs"] > 0]
    if not has_transfers(run):
        return 0
    cores, count = max(run.info.cores, 1), len(run.ops) + 1
    parts = (rows["device"].astype(np.int64) * cores + rows["core"]) * count + rows["op"]
    return len(distinct(parts))


def _not_recorded(analysis: RunAnalysis) -> str:
    """Why the run is not all of its program; empty: every command of the network has a span."""
    rows, ran = analysis.run.commands.rows, commands_that_ran(analysis)
    of_network: Numbers = np.flatnonzero((rows["does"] != Does.STATS) & (rows["op"] != NO_OP))
    left = len(of_network) - int(np.isin(of_network, ran, assume_unique=True).sum())
    if not len(ran):
        return "the run does not hold the commands of a program"
    return f"{left:,} of {len(of_network):,} commands were not recorded" if left else ""


AMOUNTS = (memories_hold, constants_are_read, graph_is_done)
