"""Repeated structures: the same sequence of op types over and over, where names do not number them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..program.program import OpInfo
from .timeline.activities import Numbers
from .totals.ops import block_of, layer_of

LEAST_LENGTH = 2  # ops of a block
MOST_PERIODS = 16  # that are tried
NOT_REPEATED = "(not repeated)"


@dataclass(frozen=True, slots=True)
class Repeat:
    """From `first` on, `count` blocks of `length` ops each have the same types."""

    first: int
    length: int
    count: int

    def place(self, position: int) -> tuple[int, int] | None:
        """Which block, and where in it."""
        inside = position - self.first
        return divmod(inside, self.length) if 0 <= inside < self.length * self.count else None


def find_repeat(types: Sequence[str]) -> Repeat | None:
    """The repeat that covers most ops; of several that cover the same, the one of shortest blocks."""
    words = {word: number for number, word in enumerate(dict.fromkeys(types))}
    code = np.array([words[word] for word in types], np.int64)
    found = [repeat for period in _periods(code) if (repeat := _longest_run(code, period)) is not None]
    return max(found, key=lambda repeat: (repeat.length * repeat.count, -repeat.length), default=None)


def _periods(code: Numbers) -> list[int]:
    """Distances between two ops of one type that come up most often, over all types that repeat."""
    order = np.argsort(code, kind="stable")
    same = code[order][1:] == code[order][:-1]
    distances = Counter(np.diff(order)[same].tolist())
    return [period for period, _ in distances.most_common(MOST_PERIODS) if period >= LEAST_LENGTH]


def _longest_run(code: Numbers, period: int) -> Repeat | None:
    """The longest stretch in which every op has the type of the one a period later."""
    equal = np.concatenate(([False], code[period:] == code[:-period], [False]))
    edges = np.flatnonzero(np.diff(equal))
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return None
    best = int((ends - starts).argmax())
    count = (int(ends[best] - starts[best]) + period) // period
    if count < 2 or len(np.unique(code[starts[best] : starts[best] + period])) < LEAST_LENGTH:
        return None
    return Repeat(int(starts[best]), period, count)


def structure_of(ops: Sequence[OpInfo]) -> tuple[list[str], list[str]]:
    """Layer and block of every op: by names where they number layers, else by repeated types of ops."""
    names = [op.name for op in ops]
    blocks = [block_of(name) for name in names]
    if len(set(blocks)) < len(set(names)):
        return [layer_of(name) for name in names], blocks
    repeat = find_repeat([op.type for op in ops])
    if repeat is None:
        return [layer_of(name) for name in names], blocks
    layers, places = [], []
    for position, op in enumerate(ops):
        found = repeat.place(position)
        layers.append(NOT_REPEATED if found is None else f"repeat {found[0] + 1} of {repeat.count}")
        places.append(NOT_REPEATED if found is None else f"repeat *, op {found[1] + 1}: {op.type}")
    return layers, places
