"""Dependencies of a trace → arrows between the spans that are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...recording.trace import NONE, SpanKind, Trace


@dataclass(frozen=True, slots=True)
class Flows:
    """Arrows. Positions are of spans in the trace; ids are unique."""

    ids: Numbers
    source: Numbers
    target: Numbers
    data: npt.NDArray[np.bool_]
    undrawn: int  # an end is shorter than a tick and shares it with others: no viewer could tell which is meant


def find_flows(trace: Trace, shown: npt.NDArray[np.bool_]) -> Flows:
    """From the span that makes data – of a transfer, its flight – to the span of the command that needs them."""
    spans, edges = trace.spans, trace.edges
    commands = (
        int(max(edges["source"].max(initial=-1), edges["target"].max(initial=-1), spans["command"].max(initial=-1))) + 1
    )
    can_bind = _can_bind(trace)
    parts, undrawn = [], 0
    for here in _by_inference(trace, shown):
        makes, needs = _ends(trace, here, commands)
        source, target = makes[edges["source"]], needs[edges["target"]]
        both = (source != NONE) & (target != NONE)
        drawn = both & can_bind[source] & can_bind[target]
        undrawn += int(both.sum() - drawn.sum())
        parts.append((source[drawn], target[drawn], edges["data"][drawn]))
    source, target, data = (
        (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else (np.zeros(0, np.int64),) * 3
    )
    return Flows(np.arange(1, len(source) + 1), source, target, data.astype(np.bool_), undrawn)


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


def _can_bind(trace: Trace) -> npt.NDArray[np.bool_]:
    """Spans that an arrow can be bound to by lane and time: all that last, and empty ones alone at their time."""
    spans = trace.spans
    empty = np.flatnonzero(spans["end_ns"] == spans["start_ns"])
    place = (
        spans["lane"][empty].astype(np.int64) * (int(spans["start_ns"].max(initial=0)) + 1) + spans["start_ns"][empty]
    )
    _, first, counts = np.unique(place, return_inverse=True, return_counts=True)
    result = np.ones(len(spans), np.bool_)
    result[empty] = counts[first.reshape(-1)] == 1
    return result
