"""Spans of a trace as pieces for a page: by lane and time, all of them or thinned until they fit: docs/formats/page.md.

Thinning puts together what starts in the same window of time on the same lane. The window is the smallest power of two
in ns that leaves no more rows than asked for: a screen that shows windows narrower than a pixel shows the same picture.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...recording.trace import SpanKind, Trace
from .packed_columns import encode

MOST_ROWS = 1_200_000  # in a page of its own; a served page may load the rest
PIECE_ROWS = 65_536
MOST_CYCLES = 250_000  # rows with ticks and cycles beside them: they hardly compress
_STANDING = (SpanKind.WAIT, SpanKind.BARRIER)
_STEPS = ("start", "command")


@dataclass(frozen=True, slots=True)
class SpanRows:
    """Rows of a page in the order of lanes and times; a row is a span, or several put together."""

    spans: npt.NDArray[np.void]  # of trace.SPAN; of several put together, the longest
    start: Numbers
    end: Numbers
    count: Numbers  # spans of the trace in the row
    busy: Numbers  # ns of it at work or in flight, not waiting
    lane_first: Numbers  # row of the first span of every lane, and one more
    row_of_span: Numbers  # row of the trace's span table → row here
    window_ns: int  # 0: nothing was put together

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def pieces(self) -> int:
        return -(-len(self) // PIECE_ROWS)

    def piece(self, number: int) -> bytes:
        """Rows `number` × PIECE_ROWS and following, deflated: what a server answers for `spans/<number>.bin`."""
        part = slice(number * PIECE_ROWS, (number + 1) * PIECE_ROWS)
        spans = self.spans[part]
        columns: dict[str, npt.NDArray[np.generic]] = {
            "start": self.start[part],
            "length": self.end[part] - self.start[part],
            **{name: spans[name] for name in ("kind", "op", "name", "inference", "command", "waits_on")},
        }
        if self.window_ns:
            columns |= {"count": self.count[part], "busy": self.busy[part]}
        if len(self) <= MOST_CYCLES:
            columns |= {name: spans[name] for name in ("ucycles", "pcycles")}
        return encode(columns, steps=_STEPS)

    def all_pieces(self) -> Iterator[bytes]:
        return (self.piece(number) for number in range(self.pieces))


def rows_of(trace: Trace, *, most: int | None = MOST_ROWS) -> SpanRows:
    """Every span, or as many rows as fit; None: every span whatever their number."""
    order = np.lexsort((trace.spans["end_ns"], trace.spans["start_ns"], trace.spans["lane"]))
    spans = trace.spans[order]
    window = 0 if most is None else window_for(spans, most)
    groups = _groups(spans, window)
    first = np.flatnonzero(np.diff(groups, prepend=-1)) if window else np.arange(len(spans))
    row_of_span = np.empty(len(spans), np.int64)
    row_of_span[order] = groups
    length = spans["end_ns"] - spans["start_ns"]
    busy = np.where(np.isin(spans["kind"], _STANDING), 0, length)
    chosen = spans[_longest(length, groups, first)] if window else spans
    return SpanRows(
        spans=chosen,
        start=spans["start_ns"][first].astype(np.int64),
        end=_reduced(np.maximum, spans["end_ns"], first),
        count=np.diff(first, append=len(spans)),
        busy=_reduced(np.add, busy, first),
        lane_first=np.searchsorted(chosen["lane"], np.arange(len(trace.lanes) + 1)).astype(np.int64),
        row_of_span=row_of_span,
        window_ns=window,
    )


def window_for(spans: npt.NDArray[np.void], most: int) -> int:
    """The smallest window, a power of two, that leaves at most so many rows; 0: none is needed."""
    if len(spans) <= most:
        return 0
    start = np.ascontiguousarray(spans["start_ns"])
    other_lane = np.diff(spans["lane"]) != 0

    def fits(power: int) -> bool:
        return 1 + int(np.count_nonzero((np.diff(start >> power) != 0) | other_lane)) <= most

    powers = range((max(int(spans["end_ns"].max()) * 2, 1) - 1).bit_length())
    return 1 << bisect_left(powers, True, key=fits)  # a wider window never leaves more rows


def _groups(spans: npt.NDArray[np.void], window: int) -> Numbers:
    """Number of the row that every span, sorted by lane and start, goes to."""
    if not window or not len(spans):
        return np.arange(len(spans))
    bucket = spans["start_ns"] // window
    fresh = (np.diff(bucket, prepend=bucket[0]) != 0) | (np.diff(spans["lane"], prepend=spans["lane"][0]) != 0)
    return np.cumsum(fresh)


def _longest(length: Numbers, groups: Numbers, first: Numbers) -> Numbers:
    """The first of the longest spans of every group."""
    most = _reduced(np.maximum, length, first)
    found = np.flatnonzero(length == most[groups])
    return found[np.flatnonzero(np.diff(groups[found], prepend=-1))]


def _reduced(function: np.ufunc, values: Numbers, first: Numbers) -> Numbers:
    found: Numbers = function.reduceat(values, first) if len(first) else np.zeros(0, np.int64)
    return found
