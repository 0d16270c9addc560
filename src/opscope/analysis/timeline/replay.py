"""What if some of the work took less time? The longest path again, with shorter activities or gaps.

Everything keeps its order on its lane, its dependencies, and the lag that nothing explains. Other work may take the
place of what was shortened, so what this gains is an upper bound.

    lane 1 |  b: 0–6   |                     with b in no time, c is ready when `a` ends, at 4, and keeps its lag
    lane 0 | a: 0–4 |     | c: 7–9 |         of 1: it runs at 5–7, and the run ends at 7 instead of 9.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from ...core.columns import Flags, Numbers
from ...recording.trace import NONE
from .activities import NO_LANE
from .dependencies import Dependencies


class Replay:
    """A run that can be timed again, many times; made once."""

    def __init__(self, order: Dependencies) -> None:
        self.order = order
        work = order.activities
        whole = order.reach == work.end[order.first]
        kept = np.flatnonzero(whole)[_last_of_lanes(order, whole)]
        self._counts: list[int] = np.bincount(order.second[kept], minlength=len(work)).tolist()
        self._first: list[int] = order.first[kept].tolist()
        self._parts = np.flatnonzero(~whole)  # pairs in which only a part of the first has to be over: few
        self._partly: dict[int, list[tuple[int, int]]] = {}  # activity → first of such a pair, and place in _parts
        pairs = zip(order.second[self._parts].tolist(), order.first[self._parts].tolist(), strict=True)
        for place, (second, first) in enumerate(pairs):
            self._partly.setdefault(second, []).append((first, place))
        self._tail = work.end_ns - int(work.end.max(initial=work.start_ns))

    def wall_ns(self, durations: Numbers | None = None, lags: Numbers | None = None) -> int:
        """Length of the run with these durations of activities and lags before them; None: as they were.

        Args:
            durations: per activity, at most what it took.
            lags: per activity, at most what it was.
        """
        ns = self.order.activities.ns if durations is None else durations
        ends = self._ends(ns, self.order.lag if lags is None else lags)
        return max(ends, default=0) + self._tail

    def _ends(self, ns: Numbers, lags: Numbers) -> list[int]:
        """End of every activity, from the start of the window."""
        order, partly, firsts = self.order, self._partly, iter(self._first)
        rest = np.maximum(ns[order.first[self._parts]] - order.part[self._parts], 0).tolist()
        ends: list[int] = []
        position = 0
        for length, lag, count in zip(ns.tolist(), lags.tolist(), self._counts, strict=True):
            ready = 0
            for first in islice(firsts, count):
                if ends[first] > ready:  # noqa: PLR1730 - a call of max() takes longer than the rest of the loop
                    ready = ends[first]
            if position in partly:
                ready = max(ready, *(ends[first] - rest[place] for first, place in partly[position]))
            ends.append(ready + lag + length)
            position += 1  # noqa: SIM113 - enumerate would make one more tuple for each
        return ends

    def without(self, activities: Numbers, gaps: Numbers | None = None, durations: Numbers | None = None) -> int:
        """Length of the run when these activities take no time, or these durations, and these start without a lag."""
        ns, lags = self.order.activities.ns.copy(), self.order.lag
        ns[activities] = 0 if durations is None else durations
        if gaps is not None:
            lags[gaps] = 0
        return self.wall_ns(ns, lags)


def _last_of_lanes(order: Dependencies, whole: Flags) -> Flags:
    """Of the pairs given, those that matter: of several on one lane that an activity follows, the last ends last."""
    work = order.activities
    first, second = order.first[whole], order.second[whole]
    lane = np.where(work.lane[first] == NO_LANE, len(work.run.trace.lanes) + np.arange(len(first)), work.lane[first])
    by_lane = np.lexsort((first, lane, second))
    last = np.append(
        (np.diff(second[by_lane]) != 0) | (np.diff(lane[by_lane]) != 0), np.ones(min(len(first), 1), np.bool_)
    )
    kept = np.zeros(len(first), np.bool_)
    kept[by_lane[last]] = True
    return kept


def slack_of(order: Dependencies) -> Numbers:
    """Per activity, how much later it could have ended without the run ending later.

    The last to end has none; any other has what its followers have, and what lies between its end and when they were
    ready. In the example above: c 0, b 0, and `a`, over at 4 where c was ready at 6, has 2.
    """
    work = order.activities
    slack = int(work.end.max(initial=work.start_ns)) - work.end
    free = order.ready[order.second] - order.reach  # between the release of this pair and the last one of `second`
    tight = np.flatnonzero(free < slack[order.first])[::-1]  # the others cannot lower it
    left: list[int] = slack.tolist()
    pairs = zip(order.first[tight].tolist(), order.second[tight].tolist(), free[tight].tolist(), strict=True)
    for first, second, own in pairs:  # from the last activity to the first: `second` is finding_of when it comes up
        found = left[second] + own
        if found < left[first]:  # noqa: PLR1730
            left[first] = found
    return np.array(left, np.int64)


def slack_of_ops(order: Dependencies, slack: Numbers) -> Numbers:
    """Per op, the least slack of its activities; NONE: it has none."""
    work, count = order.activities, len(order.activities.run.ops)
    known = work.op != NONE
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, work.op[known], slack[known])
    return np.where(least == np.iinfo(np.int64).max, NONE, least)
