"""Layer and block of every op: by names where they number layers, else by the types of ops that come over and over.

The one grouping of a network: totals, the analysis and comparisons add ops up by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..core.columns import Numbers

LEAST_LENGTH = 2  # ops of a block
MOST_PERIODS = 16  # that are tried
NOT_REPEATED = "(not repeated)"
_DIGITS = "0123456789"


class NamedOp(Protocol):
    """What an op is called, of what type it is, and which Python module it is from."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def module(self) -> str: ...


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
    """The repeat that covers most ops; of several that cover the same, the one of shortest blocks.

    Types `Stem  Conv Relu Add  Conv Relu Add  Head`: ops of one type mostly lie 3 apart. From op 1 on, every op has
    the type of the one 3 later, for 3 ops in a row; with the last period that makes 6 ops, two blocks of 3:
    Repeat(first=1, length=3, count=2).
    """
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
    count = (int(ends[best] - starts[best]) + period) // period  # the last block has no later one to be equal to
    if count < 2 or len(np.unique(code[starts[best] : starts[best] + period])) < LEAST_LENGTH:
        return None
    return Repeat(int(starts[best]), period, count)


@dataclass(frozen=True, slots=True)
class Structure:
    """One entry per op."""

    layers: tuple[str, ...]
    blocks: tuple[str, ...]  # the same place in every layer


def structure_of(ops: Sequence[NamedOp]) -> Structure:
    """Modules are believed before names, and names before types."""
    names = [_module_name(op) if op.module else op.name for op in ops]
    blocks = [block_of(name) for name in names]
    repeat = None if len(set(blocks)) < len(set(names)) else find_repeat([op.type for op in ops])
    if repeat is None:
        return Structure(tuple(layer_of(name) for name in names), tuple(blocks))
    layers, places = [], []
    for position, op in enumerate(ops):
        found = repeat.place(position)
        layers.append(NOT_REPEATED if found is None else f"repeat {found[0] + 1} of {repeat.count}")
        places.append(NOT_REPEATED if found is None else f"repeat *, op {found[1] + 1}: {op.type}")
    return Structure(tuple(layers), tuple(places))


def _module_name(op: NamedOp) -> str:
    """`/layers.12/attention/MatMul` of a MatMul of the module `layers.12.attention`."""
    parts: list[str] = []
    for part in op.module.split("."):
        if part.isdecimal() and parts:
            parts[-1] += f".{part}"
        else:
            parts.append(part)
    return "/".join(("", *parts, op.type))


def layer_of(name: str) -> str:
    """A numbered part of the network: the path up to its first part with a number; without one, its first part."""
    parts = [part for part in name.split("/") if part]
    for position, part in enumerate(parts):
        if _without_number(part) != part:
            return "/" + "/".join(parts[: position + 1])
    return "/" + parts[0] if parts else name


def block_of(name: str) -> str:
    """The same place in every layer, and on every core: the name with their numbers left open."""
    core, space, rest = name.partition(" ")  # the head of a row of one core, where a run has totals per core
    if space and core[:1] == "c" and core[1:].isascii() and core[1:].isdigit():
        name = f"c* {rest}"
    return "/".join(_without_number(part) for part in name.split("/"))


def _without_number(part: str) -> str:
    """`layers.*` of `layers.12`; a number that is glued to a word belongs to it."""
    stem = part.rstrip(_DIGITS)
    return f"{stem}*" if stem != part and stem[-1:] in ("", ".", "_") else part
