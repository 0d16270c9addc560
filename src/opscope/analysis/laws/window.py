"""How long was the device at work, on which clock? And is nothing of it at work for longer?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...recording.finding import LawCheck
from ...recording.trace import NONE
from ..run_analysis import RunAnalysis
from ..timeline.activities import execution_marks
from .conservation import IMPORTED, device_window_ns

NO_PEAKS = "the run does not tell the peaks of what it ran on"


@dataclass(frozen=True, slots=True)
class Window:
    """The time of one inference on the device. Times are ticks of a timer: one may be a tick longer than it says."""

    ns: int
    tick_ns: float
    core_cycles: float  # of all cores together
    clock_hz: float  # of the fastest core: clocks vary from core to core and from one inference to the next

    @classmethod
    def of(cls, analysis: RunAnalysis) -> Window | None:
        """None where the run has no timeline, or does not tell its clock."""
        info, trace = analysis.run.info, analysis.run.trace
        nominal, ticks = info.clocks_hz.get("core"), info.clocks_hz.get("stats")
        if not analysis.has_timeline or not nominal:
            return None
        length, tick = device_window_ns(analysis), 1e9 / ticks if ticks else 1.0
        marks = trace.spans[execution_marks(trace, analysis.work.inference)]
        if not len(marks) or bool((marks["pcycles"] == NONE).any()):
            return cls(length, tick, (length + tick) * 1e-9 * nominal * max(info.devices * info.cores, 1), nominal)
        shortest = np.maximum(marks["end_ns"] - marks["start_ns"] - tick, tick)
        fastest = float((marks["pcycles"] / shortest).max()) * 1e9
        return cls(length, tick, float(marks["pcycles"].sum()), max(nominal, fastest))


def busy_within_wall(analysis: RunAnalysis) -> Iterator[LawCheck]:
    """No unit and no route is at work for longer than the inference takes."""
    name, run, wall = "busy ≤ wall of every unit", analysis.run, _wall_ns(analysis)
    units = [(lane.busy_ns, lane.name) for lane in run.summary.lanes]
    units += [(route.busy_ns, route.route) for route in run.summary.routes if route.core is None]
    if not units or wall is None:
        yield LawCheck(name, None, "the run has no timeline" if wall is None else "the run has no totals of lanes")
        return
    busy, unit = max(units)
    yield LawCheck(name, busy <= wall + 1, f"{busy:,} and {wall:,} ns, {unit}")


def _wall_ns(analysis: RunAnalysis) -> int | None:
    """Of the inference; of a file of another tool, whose totals are of everything in it, of the whole recording."""
    if not analysis.has_timeline:
        return None
    if IMPORTED not in analysis.run.info.options:
        return device_window_ns(analysis)
    spans = analysis.run.trace.spans
    return int(spans["end_ns"].max() - spans["start_ns"].min())
