"""Do units multiply faster than they can?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...core.meaning import Direction
from ...program.bounds import UnitPeak
from ...program.program import Operand
from ...recording.finding import LawCheck
from ..run_analysis import RunAnalysis
from .conservation import commands_that_ran
from .window import NO_PEAKS, Window


def macs_within_peak(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """No unit does more MACs than its peak, all cores together; and the latency is no less than they take at it."""
    run, window, latency = analysis.run, Window.of(analysis), analysis.run.summary.latency.value_ns
    peaks = {} if run.bounds is None else {unit.name: unit for unit in run.bounds.units}
    done = _macs_of_units(analysis) if peaks else {}
    macs = {name: done[name] for name in peaks if name in done}
    if window is None or not macs:
        for law in ("MACs per second ≤ peak", "latency ≥ MACs ÷ peak"):
            yield LawCheck(law, None, "the run has no MACs of a unit whose peak is known" if peaks else NO_PEAKS)
        return
    cycles = {name: _cycles_at_peak(peaks[name], found) for name, found in macs.items()}
    for name, found in macs.items():
        per_s = sum(found.values()) / max(window.ns, 1)
        peak = per_s * window.core_cycles / cycles[name]
        yield LawCheck(
            f"{name} MACs per second ≤ peak",
            cycles[name] <= window.core_cycles,
            f"{per_s:,.1f} and {peak:,.1f} GMAC/s",
        )
    least_ns = max(cycles.values()) / max(run.info.devices * run.info.cores, 1) / window.clock_hz * 1e9
    yield LawCheck(
        "latency ≥ MACs ÷ peak",
        None if latency is None else latency + window.tick_ns >= least_ns,
        "the latency is not known" if latency is None else f"{latency:,} and {least_ns:,.0f} ns",
    )


def _macs_of_units(analysis: RunAnalysis) -> dict[str, dict[str, int]]:
    """Unit → data type → MACs of the commands that ran. An estimate has no groups: there ops say who does them."""
    table = analysis.run.commands
    rows = table.rows[commands_that_ran(analysis)]
    rows = rows[rows["macs"] > 0]
    key = rows["detail"].astype(np.int64) * len(table.groups) + rows["group"]
    count = len(table.operands) * len(table.groups)
    sums, op = np.bincount(key, rows["macs"].astype(np.float64), minlength=count), np.full(count, -1)
    op[key] = rows["op"]
    found: dict[str, dict[str, int]] = {}
    for place in np.flatnonzero(sums).tolist():
        detail, group = divmod(place, len(table.groups))
        unit = table.groups[group] or (analysis.ops[op[place]].engine if op[place] >= 0 else "")
        types = found.setdefault(unit, {})
        dtype = _computed_in(table.operands[detail])
        types[dtype] = types.get(dtype, 0) + round(sums[place])
    return found


def _computed_in(operands: tuple[Operand, ...]) -> str:
    """Data type of the first operand that is read; empty where none is told."""
    return next((operand.dtype for operand in operands if operand.direction is Direction.IN), "")


def _cycles_at_peak(unit: UnitPeak, macs: Mapping[str, int]) -> float:
    """Cycles of one core that the MACs of all cores take at the peak of their data types.

    A type that the unit has no peak for is taken at its highest.
    """
    highest = max(unit.macs_per_cycle.values())
    return sum(amount / (unit.rate_of(dtype) or highest) for dtype, amount in macs.items())
