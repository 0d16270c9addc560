"""Where the time of a device went: how long each kind of unit worked, worked alone, or together with another kind.

Units come as classes: a name, a group of units that belong together, whether they move, compute or are the host, and
the intervals in which they worked. All figures are lengths of unions, intersections and differences of intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ....analysis.timeline.intervals import union
from ....core.columns import Numbers
from .annotated import Share


@dataclass(frozen=True, slots=True)
class Busy:
    """A set of moments: intervals that neither touch nor overlap, in order."""

    start: Numbers
    end: Numbers

    @classmethod
    def of(cls, start: Numbers, end: Numbers) -> Busy:
        """The moments in at least one interval. Empty intervals hold none."""
        lasting = end > start
        if lasting.all() and (start[1:] > end[:-1]).all():  # as most logs have it
            return cls(start, end)
        found = union(np.zeros(int(lasting.sum()), np.int64), start[lasting], end[lasting])
        return cls(found.start, found.end)

    @property
    def length(self) -> int:
        return int((self.end - self.start).sum())

    def same_as(self, other: Busy) -> bool:
        return np.array_equal(self.start, other.start) and np.array_equal(self.end, other.end)

    def __or__(self, other: Busy) -> Busy:
        if not len(self.start) or not len(other.start):
            return self if len(self.start) else other
        return Busy.of(np.concatenate((self.start, other.start)), np.concatenate((self.end, other.end)))

    def __and__(self, other: Busy) -> Busy:
        """Moments in both: where two of the intervals are open at once."""
        if not len(self.start) or not len(other.start):
            return EMPTY
        return self if self.same_as(other) else self._open(other, 2)

    def __sub__(self, other: Busy) -> Busy:
        """Moments of this one that are not of the other."""
        if not len(self.start) or not len(other.start):
            return self
        if self.same_as(other):
            return EMPTY
        low, high = min(self.start[0], other.start[0]), max(self.end[-1], other.end[-1])
        gaps = Busy(np.concatenate(([low], other.end)), np.concatenate((other.start, [high])))
        return self & Busy.of(gaps.start, gaps.end)

    def _open(self, other: Busy, depth: int) -> Busy:
        moment = np.concatenate((self.start, other.start, self.end, other.end))
        step = np.repeat(np.array([1, -1]), len(moment) // 2)
        order = np.argsort(moment, kind="stable")
        level = np.cumsum(step[order])
        inside = np.flatnonzero(level[:-1] >= depth) if len(level) else np.zeros(0, np.int64)
        times = moment[order]
        return Busy.of(times[inside], times[inside + 1])


HAL = "HAL"  # group of what a runtime does for itself
EMPTY = Busy(np.zeros(0, np.int64), np.zeros(0, np.int64))


class Part(Enum):
    """What a class of units does."""

    MOVE = "move"
    COMPUTE = "compute"
    HOST = "host"
    SEQUENCE = "sequence"  # keeps the others going; counts as work, and as neither of them


@dataclass(frozen=True, slots=True)
class UnitClass:
    """Units that are counted together."""

    name: str
    part: Part
    busy: Busy
    group: str = ""  # classes of one group are also shown as one


def join(parts: Iterable[Busy]) -> Busy:
    """Moments in any."""
    found: list[Busy] = []
    for part in parts:
        if len(part.start) and not any(part.same_as(other) for other in found):  # units of one job work as one
            found.append(part)
    if len(found) < 2:
        return found[0] if found else EMPTY
    return Busy.of(np.concatenate([part.start for part in found]), np.concatenate([part.end for part in found]))


def shares(classes: Sequence[UnitClass], *, window: tuple[int, int] | None = None) -> tuple[Share, ...]:
    """Every figure with its percentage of the whole, which is the window, or all from first start to last end."""
    everything = join(unit.busy for unit in classes)
    low, high = window or _bounds(everything)
    whole = high - low

    def share(name: str, length: int) -> Share:
        return Share(name, length, 100 * length / whole if whole else None)

    moves, computes = (join(u.busy for u in classes if u.part is part) for part in (Part.MOVE, Part.COMPUTE))
    result = [share("OVERALL", whole), share("TOTAL_NPU_OPERATIONS", _device_time(classes))]
    result += [share(name, busy.length) for name, busy in _named(classes, Part.MOVE)]
    result.append(share("DMA_COMBINED", moves.length))
    result += [share(name, busy.length) for name, busy in _named(classes, Part.COMPUTE)]
    result += [
        share("COMPUTE_COMBINED", computes.length),
        share("DMA_ONLY", (moves - computes).length),
        share("COMPUTE_ONLY", (computes - moves).length),
        share("DMA_COMPUTE_OVERLAP", (moves & computes).length),
        share("IDLE", whole - everything.length),
    ]
    return (*result, *(share(name, busy.length) for name, busy in _named(classes, Part.HOST)))


def _bounds(busy: Busy) -> tuple[int, int]:
    return (int(busy.start[0]), int(busy.end[-1])) if len(busy.start) else (0, 0)


def _named(classes: Sequence[UnitClass], part: Part) -> Iterator[tuple[str, Busy]]:
    """Groups and the classes in them, in the order in which they come."""
    members = [unit for unit in classes if unit.part is part]
    for group in dict.fromkeys(unit.group or unit.name for unit in members):
        of = [unit for unit in members if (unit.group or unit.name) == group]
        yield group, join(unit.busy for unit in of)
        for unit in of:
            if unit.name != group:
                yield unit.name, unit.busy


def _device_time(classes: Sequence[UnitClass]) -> int:
    """From the first to the last moment of all but the runtime's own calls, without those of the host alone."""
    device = join(unit.busy for unit in classes if unit.part is not Part.HOST)
    programs = join(unit.busy for unit in classes if unit.part is Part.HOST and unit.group != HAL)
    low, high = _bounds(device | programs)
    return high - low - (programs - device).length
