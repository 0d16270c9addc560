"""Shapes of products of matrices, recurrent cells and look-ups in tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from ..flatbuffer import INT8
from ..ops import Shape
from .site import Site, broadcast


def _fully_connected(site: Site) -> list[Shape]:
    data, weights = site.shape(0), site.ranked(1, 2)
    units, depth = weights
    elements = prod(data)
    if depth < 1 or elements % depth:
        raise ValueError(f"data of shape {list(data)} for weights of shape {list(weights)}")
    if site.flag(2):  # keep_num_dims
        if not data or data[-1] != depth:
            raise ValueError(f"data of shape {list(data)}; expected a last extent of {depth}")
        found: Shape = (*data[:-1], units)
    else:
        found = (elements // depth, units)
    return [found, data][: site.output_count]  # shuffled weights have a second output, a work space


def _batch_matmul(site: Site) -> list[Shape]:
    a, b = site.shape(0), site.shape(1)
    if len(a) < 2 or len(b) < 2:
        raise ValueError(f"operands of shape {list(a)} and {list(b)}; expected rank 2 or more")
    rows, depth = (a[-1], a[-2]) if site.flag(0) else (a[-2], a[-1])
    other_depth, columns = (b[-1], b[-2]) if site.flag(1) else (b[-2], b[-1])
    if depth != other_depth:
        raise ValueError(f"operands of shape {list(a)} and {list(b)} reduce {depth} and {other_depth} elements")
    return [(*broadcast(a[:-2], b[:-2]), rows, columns)]


def _svdf(site: Site) -> list[Shape]:
    rank = site.option(0)
    if rank < 1:
        raise ValueError(f"rank {rank}; expected 1 or more")
    return [(site.ranked(0, 2)[0], site.ranked(1, 2)[0] // rank)]


def _lstm(site: Site) -> list[Shape]:
    """One step; the basic kernel also writes its state and two work spaces."""
    data = site.ranked(0, 2)
    if site.stored.options is None or site.stored.options.number(3, INT8) != 1:
        return [(data[0], site.shape(8)[-1])]
    hidden = site.ranked(1, 2)[1]
    widths = (hidden, hidden, data[1] + hidden, 4 * hidden)
    return [(data[0], width) for width in widths[: site.output_count]]


def _sequence(weights: int, axis: int) -> Callable[[Site], list[Shape]]:
    """Rule of a cell over a sequence; the extent of the output is one of some weights."""

    def rule(site: Site) -> list[Shape]:
        return [(*site.ranked(0, 3)[:-1], site.shape(weights)[axis])]

    return rule


def _both_directions(forward: int, backward: int, axis: int, merge: int) -> Callable[[Site], list[Shape]]:
    def rule(site: Site) -> list[Shape]:
        steps, batch, _ = site.ranked(0, 3)
        extents = site.shape(forward)[axis], site.shape(backward)[axis]
        if site.flag(merge):
            return [(steps, batch, sum(extents))]
        return [(steps, batch, extent) for extent in extents]

    return rule


def _table_rows(site: Site) -> list[Shape]:
    return [(site.ranked(0, 1)[0], *site.shape(1)[1:])]


def _keyed_rows(site: Site) -> list[Shape]:
    (count,) = site.ranked(0, 1)
    return [(count, *site.shape(2)[1:]), (count,)]


def _dot_general(site: Site) -> list[Shape]:
    a, b = site.shape(0), site.shape(1)
    batch_a, batch_b, contracted_a, contracted_b = (site.long_numbers(field) for field in range(4))
    if any(not 0 <= axis < len(a) for axis in (*batch_a, *contracted_a)):
        raise ValueError(f"axes {list(batch_a)} and {list(contracted_a)} of a tensor of shape {list(a)}")
    free_a = [extent for axis, extent in enumerate(a) if axis not in (*batch_a, *contracted_a)]
    free_b = [extent for axis, extent in enumerate(b) if axis not in (*batch_b, *contracted_b)]
    return [(*(a[axis] for axis in batch_a), *free_a, *free_b)]


RULES: Mapping[str, Callable[[Site], list[Shape]]] = {
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "STABLEHLO_DOT_GENERAL": _dot_general,
    "SVDF": _svdf,
    "LSTM": _lstm,
    "RNN": lambda site: [(site.ranked(0, 2)[0], site.ranked(1, 2)[0])],
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _sequence(8, -1),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _sequence(1, 0),
    "BIDIRECTIONAL_SEQUENCE_LSTM": _both_directions(8, 25, -1, 3),
    "BIDIRECTIONAL_SEQUENCE_RNN": _both_directions(1, 5, 0, 2),
    "EMBEDDING_LOOKUP": _table_rows,
    "HASHTABLE_LOOKUP": _keyed_rows,
}

# Batch of a cell, which leads the shape of its states. Sequences have it behind the steps if they are time-major.
STATES: Mapping[str, Callable[[Site], int]] = {
    "SVDF": lambda site: site.ranked(0, 2)[0],
    "LSTM": lambda site: site.ranked(0, 2)[0],
    "RNN": lambda site: site.ranked(0, 2)[0],
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lambda site: site.ranked(0, 3)[1 if site.flag(3) else 0],
    "UNIDIRECTIONAL_SEQUENCE_RNN": lambda site: site.ranked(0, 3)[1 if site.flag(0) else 0],
    "BIDIRECTIONAL_SEQUENCE_LSTM": lambda site: site.ranked(0, 3)[1 if site.flag(4, True) else 0],
    "BIDIRECTIONAL_SEQUENCE_RNN": lambda site: site.ranked(0, 3)[1 if site.flag(0) else 0],
}
