"""Runs of a session: which spans are in which, and what of a node's time is its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.columns import Flags, Numbers
from ...importers.trace_events import Spans
from ...recording.recording import Check
from ...recording.trace import NONE

_DIGIT_NS = 1000  # the file counts in microseconds


@dataclass(frozen=True, slots=True)
class Runs:
    """Positions of the runs among the spans, by start; the number of a run is its place here."""

    place: Numbers
    overlap: bool

    @classmethod
    def of(cls, spans: Spans, is_run: Flags) -> Runs:
        found = np.flatnonzero(is_run)
        place = found[np.argsort(spans.start[found], kind="stable")]
        ends = np.maximum.accumulate(spans.end[place])
        return cls(place, bool((spans.start[place][1:] < ends[:-1]).any()))

    def numbers(self, spans: Spans) -> Numbers:
        """The run that every span starts in: of its own thread, where that has runs; NONE: outside of all."""
        number = self._last_begun(spans, np.arange(len(self.place)))
        if not self.overlap:
            return number
        owner = spans.thread[self.place]
        for thread in np.unique(owner).tolist():
            mine = self._last_begun(spans, np.flatnonzero(owner == thread))
            number = np.where(spans.thread == thread, mine, number)
        return number

    def _last_begun(self, spans: Spans, among: Numbers) -> Numbers:
        if not len(among):
            return np.full(len(spans.start), NONE, np.int64)
        runs = self.place[among]
        last = np.searchsorted(spans.start[runs], spans.start, side="right") - 1
        inside = (last >= 0) & (spans.start <= spans.end[runs[np.maximum(last, 0)]])
        return np.where(inside, among[np.maximum(last, 0)], NONE)

    def checks(self, spans: Spans, node: Flags, inference: Numbers, own: Numbers) -> tuple[Check, ...]:
        """Nodes lie inside of their run, and those of its thread take no longer than it."""
        if not len(self.place) or not node.any():
            return ()
        run = self.place[np.maximum(inference, 0)]
        ran = node & (inference != NONE)
        outside = int((ran & (spans.end > spans.end[run] + _DIGIT_NS)).sum())
        here = ran & (spans.thread == spans.thread[run])
        total = np.bincount(inference[here], own[here], minlength=len(self.place))
        most = spans.end[self.place] - spans.start[self.place] + _DIGIT_NS
        longer = int((total > most + _DIGIT_NS * np.bincount(inference[here], minlength=len(self.place))).sum())
        return (
            Check("nodes lie inside their run", not outside, f"{outside} of {int(node.sum())} end after it"),
            Check(
                "nodes of a run take no longer than it", not longer, f"{longer} of {len(self.place)} runs are shorter"
            ),
        )


def own_length(spans: Spans, node: Flags) -> Numbers:
    """Of every span its length, of nodes without that of the nodes inside: a body runs on the thread of its node."""
    own = spans.end - spans.start
    chosen = np.flatnonzero(node)
    order = chosen[np.lexsort((-spans.end[chosen], spans.start[chosen], spans.thread[chosen]))]
    thread, start, end = spans.thread[order], spans.start[order], spans.end[order]
    touching = (thread[1:] == thread[:-1]) & (start[1:] < end[:-1])
    if not touching.any():  # as almost always: nodes follow each other
        return own
    length = own.copy()
    around: list[int] = []
    for n in order.tolist():
        while around and (spans.thread[around[-1]] != spans.thread[n] or spans.end[around[-1]] <= spans.start[n]):
            around.pop()
        if around and spans.end[n] <= spans.end[around[-1]]:
            own[around[-1]] -= length[n]
        around.append(n)
    own[own < 0] = 0
    return own
