"""Dependencies of a trace → arrows between the spans that are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...recording.trace import NONE, SpanKind, Trace

_LONGEST_CHAIN = 1 << 12  # ops within one tick; a tick has fewer cycles


@dataclass(frozen=True, slots=True)
class Flows:
    """Arrows. Positions are of spans in the trace; ids are unique."""

    ids: Numbers
    source: Numbers
    target: Numbers
    data: npt.NDArray[np.bool_]

    def points(self, trace: Trace) -> Numbers:
        """Spans of no length that an arrow leaves or enters, each behind those of its time that it depends on.

        Viewers bind an arrow to the span that was written last on its row at that time, and know an arrow only once it
        has left. Of a chain of three ops within one tick the first has depth 0, the next 1 and the last 2.
        """
        start = trace.spans["start_ns"]
        empty = start == trace.spans["end_ns"]
        together = empty[self.source] & empty[self.target] & (start[self.source] == start[self.target])
        source, target = self.source[together], self.target[together]
        depth = np.zeros(len(start), np.int64)
        for _ in range(_LONGEST_CHAIN):
            deeper = depth.copy()
            np.maximum.at(deeper, target, depth[source] + 1)
            if np.array_equal(deeper, depth):
                break
            depth = deeper
        found = np.unique(np.concatenate((self.source, self.target)))
        found = found[empty[found]]
        ordered: Numbers = found[np.lexsort((depth[found], start[found]))]
        return ordered


def apart(trace: Trace) -> Trace:
    """The trace with spans a nanosecond later where an empty span of their lane has the same start.

    At one time, viewers put the empty span into the other, and bind the arrows of both to it.
    """
    spans = trace.spans
    empty = spans["start_ns"] == spans["end_ns"]
    place = spans["lane"].astype(np.int64) * (int(spans["start_ns"].max(initial=0)) + 1) + spans["start_ns"]
    late = (spans["end_ns"] - spans["start_ns"] > 1) & np.isin(place, place[empty])
    if not late.any():
        return trace
    moved = spans.copy()
    moved["start_ns"] += late
    return replace(trace, spans=moved)


def find_flows(trace: Trace, shown: npt.NDArray[np.bool_]) -> Flows:
    """From the span that makes data – of a transfer, its flight – to the span of the command that needs them."""
    spans, edges = trace.spans, trace.edges
    commands = (
        int(max(edges["source"].max(initial=-1), edges["target"].max(initial=-1), spans["command"].max(initial=-1))) + 1
    )
    parts = []
    for here in _by_inference(trace, shown):
        makes, needs = _ends(trace, here, commands)
        source, target = makes[edges["source"]], needs[edges["target"]]
        both = (source != NONE) & (target != NONE)
        parts.append((source[both], target[both], edges["data"][both]))
    source, target, data = (
        (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else (np.zeros(0, np.int64),) * 3
    )
    return Flows(np.arange(1, len(source) + 1), source, target, data.astype(np.bool_))


def _by_inference(trace: Trace, shown: npt.NDArray[np.bool_]) -> Iterator[Numbers]:
    """Positions of the spans of commands that are shown, one inference after the other, sorted once for all."""
    spans = trace.spans
    wanted = np.isin(spans["kind"], (SpanKind.OP, SpanKind.TRANSFER)) & (spans["command"] != NONE)
    visible = np.flatnonzero(wanted & shown[spans["lane"]])
    inference = spans["inference"][visible]
    order = np.argsort(inference, kind="stable")
    bounds = np.flatnonzero(np.diff(inference[order])) + 1
    yield from np.split(visible[order], bounds) if len(visible) else ()


def _ends(trace: Trace, here: Numbers, commands: int) -> tuple[Numbers, Numbers]:
    """Command → the span that ends when it is done, and the span that starts when it starts."""
    spans = trace.spans
    makes, needs = np.full(commands, NONE, np.int64), np.full(commands, NONE, np.int64)
    is_op = spans["kind"][here] == SpanKind.OP
    ops, flights = here[is_op], here[~is_op]
    by_end = ops[np.argsort(spans["end_ns"][ops], kind="stable")]  # of several threads, the last one to end
    makes[spans["command"][by_end]] = by_end
    needs[spans["command"][ops[::-1]]] = ops[::-1]  # of several threads, the first lane
    makes[spans["command"][flights]] = flights
    return makes, needs
