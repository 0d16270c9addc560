"""What transfers brought over their busiest route, against what the memory can give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.columns import Numbers, distinct
from ...core.units import format_bytes, format_percent
from ...program.program import NO_ROUTE
from ...recording.run import OUTER_BYTES_PER_S
from ...recording.trace import NONE
from ..run_analysis import RunAnalysis
from ..timeline.gaps import routes_of
from ..timeline.intervals import union

FULL_SHARE = 0.7  # of the bandwidth, and of the time


@dataclass(frozen=True, slots=True)
class Flow:
    """A route to outer memory: its bytes, and for how long at least one transfer was on its way."""

    route: str
    bytes: int
    busy_ns: int
    device_ns: int  # how long the device worked
    most: float | None  # bytes a second that the memory can give

    @property
    def rate(self) -> float:
        """Bytes a second, while it is at work."""
        return self.bytes * 1e9 / self.busy_ns

    @property
    def is_saturated(self) -> bool:
        """While it is at work it gives nearly all it can: two transfers at once would be half as fast each."""
        return self.most is not None and self.rate >= FULL_SHARE * self.most

    @property
    def is_full(self) -> bool:
        """It does so nearly all the time: what is left to gain is in fewer bytes, not in earlier ones."""
        return self.is_saturated and self.busy_ns >= FULL_SHARE * self.device_ns

    def __str__(self) -> str:
        rate = f"{self.rate / 1e9:.3g}"
        if self.most is None:
            rate += " GB/s"
        elif self.rate < self.most:
            rate += f" of {self.most / 1e9:.3g} GB/s"
        else:  # the clock that the limit was told at is not quite the one that the device had
            rate += " GB/s, all it can"
        share = format_percent(min(self.busy_ns / self.device_ns, 1.0))
        return f"{self.route} brings {format_bytes(self.bytes)} at {rate}, busy {share} of the device's time"


def flow_of(analysis: RunAnalysis, positions: Numbers) -> Flow | None:
    """Of the route of these transfers that brought most; None: the run does not tell routes or bytes."""
    routes, most = routes_of(analysis, positions), analysis.run.info.limits.get(OUTER_BYTES_PER_S)
    known = distinct(routes[routes != NONE]).tolist()
    if not known:
        return None
    moved = {number: moved_bytes(analysis, positions[routes == number]) or 0 for number in known}
    busiest = max(known, key=lambda number: moved[number])
    own, amount = positions[routes == busiest], moved[busiest]
    busy = union(np.zeros(len(own), np.int64), analysis.work.start[own], analysis.work.end[own])
    ns = int((busy.end - busy.start).sum())
    return Flow(analysis.run.routes[busiest].name, amount, ns, analysis.device_ns, most) if ns and amount else None


def moved_bytes(analysis: RunAnalysis, positions: Numbers) -> int | None:
    """Bytes of the commands of these activities; None where commands are not known."""
    rows, command = analysis.run.commands.rows, analysis.work.command[positions]
    if not bool((rows["route"] != NO_ROUTE).any()):
        return None
    return int(rows["moved_bytes"][command[(command >= 0) & (command < len(rows))]].sum())
