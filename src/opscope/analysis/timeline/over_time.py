"""Spans → counters over time: how busy engines were, how fast bytes moved, in equal bins of whole nanoseconds.

Areas are exact: every span counts in each bin for as long as it lies in it. With bins of 10 ns, work from 4 to 14 ns
is 60 % of the first bin and 40 % of the second: 10 ns, as it was.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...core.meaning import LaneRole
from ...core.units import format_ns
from ...recording.run import Run
from ...recording.trace import COUNTER, NONE, CounterTrack, SpanKind
from .intervals import total_between, union

MOST_BINS = 1000  # of a counter: about as many as a screen has pixels
_DIGITS = 12  # of the largest value: sums of floats differ behind them

_ROLES = {LaneRole.ENGINE: "engines at work", LaneRole.TRANSFER: "transfers under way"}

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bins:
    """Equal stretches of a time axis, from 0 on, that cover a window."""

    width_ns: int
    count: int

    @classmethod
    def over(cls, end_ns: int) -> Bins:
        """Of a round width – 1, 2 or 5 of a decimal unit – and no more than MOST_BINS."""
        steps = chain.from_iterable((10**place, 2 * 10**place, 5 * 10**place) for place in range(19))
        width = next(step for step in steps if step * MOST_BINS >= end_ns)
        return cls(width, max(-(-end_ns // width), 1))

    @property
    def edges(self) -> Numbers:
        return np.arange(self.count + 1, dtype=np.int64) * self.width_ns

    @property
    def label(self) -> str:
        """Behind the name of a counter: what its values are the mean of."""
        return f"mean of {format_ns(self.width_ns)}"

    def busy_percent(self, start: Numbers, end: Numbers, threads: int) -> Values:
        """Of the time of so many threads, how much was taken by spans that no thread has two of at once."""
        return self.per_ns(start, end, end - start) * (100 / threads)

    def per_ns(self, start: Numbers, end: Numbers, amount: Numbers) -> Values:
        """What all spans bring, evenly over their length, in each bin; bytes per nanosecond are GB/s."""
        brought = total_between(self.edges, start, end, amount) / self.width_ns
        most = float(brought.max(initial=0.0)) or 1.0
        return np.asarray(np.maximum(np.round(brought / most, _DIGITS), 0.0) * most)

    def samples(self, counter: int, values: Values) -> npt.NDArray[np.void]:
        """Steps of a counter, which holds its value until the next sample; 0 behind the last bin."""
        steps = np.append(values, 0.0)
        changed = np.diff(steps, prepend=np.nan) != 0
        changes = np.flatnonzero(np.append(changed[:-1], True))
        rows = np.zeros(len(changes), COUNTER)
        rows["counter"], rows["time_ns"], rows["value"] = counter, self.edges[changes], steps[changes]
        return rows


def with_use(run: Run) -> Run:
    """A run whose source counts nothing, with how much of the time engines and transfers of every device were at work.

    At least one of them, that is: rows of a timeline need not be units of the hardware. A device with one row needs
    no such counter.
    """
    trace, own = run.trace, run.trace.own_lanes
    kinds = np.isin(trace.spans["kind"], (SpanKind.OP, SpanKind.TRANSFER))
    used = np.flatnonzero(np.bincount(trace.spans["lane"][kinds], minlength=len(trace.lanes))).tolist()
    lanes = [place for place in used if trace.lanes[place].role in _ROLES and own[place]]
    rows = Counter(trace.lanes[place].device for place in lanes)
    several = [device for device, count in sorted(rows.items()) if device != NONE and count > 1]
    if trace.counters or not several:
        return run
    bins = Bins.over(int(trace.spans["end_ns"].max(initial=0)))
    tracks: list[CounterTrack] = []
    blocks = []
    for device in several:
        for role, words in _ROLES.items():
            here = [place for place in lanes if (trace.lanes[place].device, trace.lanes[place].role) == (device, role)]
            if here:
                spans = trace.spans[kinds & np.isin(trace.spans["lane"], here)]
                busy = union(np.zeros(len(spans), np.int64), spans["start_ns"], spans["end_ns"])
                blocks.append(bins.samples(len(tracks), bins.busy_percent(busy.start, busy.end, 1)))
                tracks.append(CounterTrack(device, NONE, f"{words}, {bins.label}", "%"))
    return replace(run, trace=replace(trace, counters=tuple(tracks), samples=np.concatenate(blocks)))
