"""Transfers → bytes per second of outer memories over time, never faster than the memory.

A timeline says when a transfer was asked for and when it was done, and not how fast it was in between. A queue moves
one after the other, so the bytes of a transfer pass from when the one before it had arrived until it has arrived
itself, which is the latency of its route before it is done. They are spread evenly over that time. Where this is more
than the memory can, the rest passes as soon as there is room; but what has to have arrived by some moment passes before
where there is no room later. Of 60 bytes in windows 0 and 1, and 60 in window 0 alone, at 60 a window at the most, so
many have passed by the end of each:

    evenly  90  120        as soon as there is room  60  120
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.columns import Flags, Floats, Numbers
from ...recording.trace import NONE, CounterTrack
from ..timeline.intervals import total_between
from .work import InferenceWork

Found = Iterator[tuple[CounterTrack, Numbers, Floats]]

POINTS = 500  # equal windows of the inference, at the most
_DIGITS = 3  # of bytes: sums of floats differ behind them


def track_name(route: str) -> str:
    """Of the bytes per second on a route."""
    return f"{route} bandwidth"


def bandwidths(work: InferenceWork) -> Found:
    """Bytes to and from outer memory, per route, averaged over equal windows of the inference."""
    index, program, windows = work.index, work.index.program, work.windows
    if not windows or not len(work.transfers):
        return
    tick_ns = round(1e9 / program.stats_hz)  # which times may be later than they are told
    begin, end = min(start for start, _ in windows.values()), max(end for _, end in windows.values()) + tick_ns
    edges = np.unique(np.linspace(begin, max(end, begin + 1), POINTS + 1).astype(np.int64))
    device = index.core[work.transfers.command] // program.cores
    route, pools = index.route[work.transfers.command], np.array(program.pool_of_routes())
    moving = _Moving.of(work, tick_ns)
    for owner in np.unique(device).tolist():
        for pool in np.unique(pools).tolist():
            numbers = [n for n, own in enumerate(program.routes) if pools[n] == pool and own.carries.is_outer]
            parts = [moving.over(edges, (device == owner) & (route == number)) for number in numbers]
            if not any(part.evenly[-1] for part in parts):
                continue
            most = program.pool_rate(pool) * program.clock_hz / 1e9 * (edges - edges[0])
            for number, so_far in zip(numbers, shared(parts, most), strict=True):
                moved = np.maximum(np.round(np.diff(so_far), _DIGITS), 0.0)
                rate = np.append(moved / np.diff(edges), 0.0)
                yield CounterTrack(owner, NONE, track_name(program.routes[number].name), "GB/s"), edges, rate


@dataclass(frozen=True, slots=True)
class SoFar:
    """Bytes that a route has moved by each of some moments."""

    evenly: Floats  # every transfer at one rate
    arrived: Floats  # of transfers that are there
    begun: Floats  # of transfers that may be on their way

    def __add__(self, other: SoFar) -> SoFar:
        return SoFar(self.evenly + other.evenly, self.arrived + other.arrived, self.begun + other.begun)


def shared(parts: Sequence[SoFar], most: Floats) -> list[Floats]:
    """Bytes of routes so far: together they rise by no more than `most` in any stretch, and each passes in its time."""
    nothing = SoFar(*[np.zeros(len(most))] * 3)
    whole, found = sum(parts, start=nothing), []
    left = np.maximum(_late(whole.evenly, most), _early(whole.arrived, most))
    for place, part in enumerate(parts):
        others = sum(parts[place + 1 :], start=nothing)
        evenly = np.minimum(part.evenly, left - _early(others.arrived, left))
        arrived = np.maximum(part.arrived, left - _late(others.begun, left))
        found.append(np.maximum(_late(evenly, left), _early(arrived, left)))
        left = left - found[-1]
    for so_far in found:
        so_far[0] = 0.0  # what cannot pass in time passes in the first window
    return found


def _late(so_far: Floats, most: Floats) -> Floats:
    """What of these bytes has passed where no more than `most` can: the rest passes as soon as there is room."""
    return np.asarray(most + np.minimum.accumulate(so_far - most))


def _early(so_far: Floats, most: Floats) -> Floats:
    """What has to have passed so that these bytes can, where no more than `most` does later."""
    return np.asarray(most + np.maximum.accumulate((so_far - most)[::-1])[::-1])


@dataclass(frozen=True, slots=True)
class _Moving:
    """Transfers in the time in which their bytes move, in columns."""

    start: Numbers
    end: Numbers
    bytes: Numbers
    tick_ns: int

    @classmethod
    def of(cls, work: InferenceWork, tick_ns: int) -> _Moving:
        index, program, asked = work.index, work.index.program, work.transfers
        route, core = index.route[asked.command], index.core[asked.command]
        cycles = np.array([route.latency_cycles for route in program.routes])[route]
        end = asked.end - (cycles / program.clock_hz * 1e9).astype(np.int64)
        queue = core * len(program.routes) + route
        order = np.lexsort((end, queue))
        queue, own_end = queue[order], end[order]
        other = np.append(True, (queue[1:] != queue[:-1]) | (own_end[1:] != own_end[:-1]))
        before = np.maximum.accumulate(np.where(other, np.arange(len(order)), 0)) - 1  # the last of an earlier tick
        follows = (before >= 0) & (queue[before] == queue)
        start = asked.start.copy()
        start[order] = np.maximum(start[order], np.where(follows, own_end[before], start[order]))
        return cls(start, np.maximum(end, start), index.moved_bytes[asked.command].astype(np.int64), tick_ns)

    def over(self, edges: Numbers, chosen: Flags) -> SoFar:
        """Bytes of the chosen ones by each edge, from 0 to all."""
        start, size = np.clip(self.start[chosen], edges[0], edges[-1] - 1), self.bytes[chosen]
        end, late = (np.clip(self.end[chosen] + more, start + 1, edges[-1]) for more in (0, self.tick_ns))
        evenly = np.concatenate(([0.0], np.cumsum(total_between(edges, start, end, size))))
        return SoFar(evenly, _by(edges, late, size), _by(edges, start + 1, size))


def _by(edges: Numbers, moments: Numbers, size: Numbers) -> Floats:
    """Sum of what is there at each edge: what has its moment at an edge counts there."""
    order = np.argsort(moments, kind="stable")
    so_far = np.concatenate(([0.0], np.cumsum(size[order])))
    return np.asarray(so_far[np.searchsorted(moments[order], edges, side="right")])
