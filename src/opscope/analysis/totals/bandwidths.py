"""Transfers → bytes per second of outer memories over time, never faster than the memory.

A timeline says when a transfer began and ended, and not how fast it was in between. Its bytes are spread evenly over
its time, which starts when the one before it in its queue has ended. Where that makes a window fuller than the memory
can, what is too much is carried into other windows of the same transfers: of 60 bytes in windows 0 and 1, and 60 in
window 0 alone, at 60 bytes a window at the most:

    evenly    90  30        after    60  60

What no other window of its transfers has room for is carried to windows before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.columns import Flags, Floats, Numbers
from ...recording.trace import NONE, CounterTrack
from .work import InferenceWork, SpanColumns, in_turn

Found = Iterator[tuple[CounterTrack, Numbers, Floats]]

POINTS = 500  # equal windows of the inference, at the most
_TICKS = 32  # in a window at the least: ticks of the timer tell when transfers begin and end, and may be one off


def track_name(route: str) -> str:
    """Of the bytes per second on a route."""
    return f"{route} bandwidth"


def bandwidths(work: InferenceWork) -> Found:
    """Bytes to and from outer memory, per route, averaged over equal windows of the inference."""
    index, program, windows = work.index, work.index.program, work.windows
    if not windows or not len(work.transfers):
        return
    begin, end = min(start for start, _ in windows.values()), max(end for _, end in windows.values())
    tick_ns = round(1e9 / program.stats_hz)
    count = min(POINTS, max(1, (end - begin) // (_TICKS * max(1, tick_ns))))
    edges = np.unique(np.linspace(begin, max(end, begin + 1), count + 1).astype(np.int64))
    transfers = in_turn(work.transfers, index)
    device = index.core[transfers.command] // program.cores
    route, pools = index.route[transfers.command], np.array(program.pool_of_routes())
    for owner in np.unique(device).tolist():
        for pool in np.unique(pools).tolist():
            routes = [n for n, own in enumerate(program.routes) if pools[n] == pool and own.carries.is_outer]
            chosen = (device == owner) & np.isin(route, routes)
            if not routes or not chosen.any():
                continue
            parts = _Parts.of(transfers.where(chosen), index.moved_bytes, edges, tick_ns)
            most = program.pool_rate(pool) * program.clock_hz / 1e9 * np.diff(edges)
            parts.hold(most)
            amounts = parts.by_route(route[chosen], routes, len(most))
            _carry_back(amounts, most)
            for number, amount in zip(routes, amounts, strict=True):
                rate = np.append(np.maximum(amount, 0.0) / np.diff(edges), 0.0)
                yield CounterTrack(owner, NONE, track_name(program.routes[number].name), "GB/s"), edges, rate


def _carry_back(amounts: Floats, most: Floats) -> None:
    """Carry what is still too much in a window to the one before it, of every route its share.

    Bytes are there when their transfer ends, so that what a memory cannot move in the last window has moved before:
    several transfers of a queue are under way together, and each was taken to begin when the one before it ended.
    """
    for window in range(len(most) - 1, 0, -1):
        whole = float(amounts[:, window].sum())
        if whole > most[window]:
            excess = amounts[:, window] * (1 - most[window] / whole)
            amounts[:, window] -= excess
            amounts[:, window - 1] += excess


@dataclass(frozen=True, slots=True)
class _Parts:
    """What each transfer moves in each window that it is in, in order of transfers, then windows."""

    transfer: Numbers
    window: Numbers
    bytes: Floats  # changes in place

    @classmethod
    def of(cls, part: SpanColumns, moved_bytes: Numbers, edges: Numbers, tick_ns: int) -> _Parts:
        """Evenly over the time of each; times are ticks of a timer, so that each is a tick longer than it says."""
        start = np.clip(part.start, edges[0], edges[-1] - 1)
        end = np.clip(np.maximum(part.end, start + tick_ns), start + 1, edges[-1])
        first = np.searchsorted(edges, start, side="right") - 1
        counts = np.searchsorted(edges, end, side="left") - first
        transfer = np.repeat(np.arange(len(start)), counts)
        window = np.arange(len(transfer)) - np.repeat(np.cumsum(counts) - counts - first, counts)
        inside = np.minimum(edges[window + 1], end[transfer]) - np.maximum(edges[window], start[transfer])
        each = moved_bytes[part.command] / (end - start)
        return cls(transfer, window, each[transfer] * inside)

    def by_route(self, route: Numbers, routes: Sequence[int], windows: int) -> Floats:
        """Bytes of each of the routes in each window."""
        own = route[self.transfer]
        return np.stack(
            [np.bincount(self.window[own == n], self.bytes[own == n], minlength=windows) for n in routes]
        ).astype(np.float64)

    def hold(self, most: Floats) -> None:
        """Leave no window fuller than can be: carry the rest to later windows of transfers, then to earlier ones.

        Those go first that are under way for longest from there: they have most windows to go to.
        """
        order = np.argsort(self.window, kind="stable")
        places = np.split(order, np.searchsorted(self.window[order], np.arange(1, len(most))))
        same = self.transfer[1:] == self.transfer[:-1]
        first = self.window[np.searchsorted(self.transfer, self.transfer, side="left")]
        last = self.window[np.searchsorted(self.transfer, self.transfer, side="right") - 1]
        has_next, has_last = np.append(same, False), np.append(False, same)
        for window in range(len(most)):
            self._carry(places[window], most[window], has_next, last - self.window, 1)
        for window in reversed(range(len(most))):
            self._carry(places[window], most[window], has_last, self.window - first, -1)

    def _carry(self, places: Numbers, most: float, has_other: Flags, room: Numbers, step: int) -> None:
        excess = float(self.bytes[places].sum()) - most
        movable = places[has_other[places]]
        if excess <= 0 or not len(movable):
            return
        movable = movable[np.argsort(-room[movable], kind="stable")]
        amount = self.bytes[movable]
        carried = np.clip(excess - (np.cumsum(amount) - amount), 0.0, amount)
        self.bytes[movable] -= carried
        self.bytes[movable + step] += carried
