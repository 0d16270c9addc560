"""Ops whose cost is not known, and what they do to the totals: those are lower bounds, and are said to be.

A cost is unknown where the model or the target does not tell it: a custom operator, a shape that data decide, a loop of
unknown length, a kind that no engine has a rate for. Such an op takes no commands and no time of a simulation, which is
not to say that it takes none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..program.program import OpInfo  # which loads NumPy: a report does without

_MOST_NAMED = 5  # ops in a text; JSON has all


@dataclass(frozen=True, slots=True)
class UnknownOp:
    """An op whose cost is not known, and why."""

    name: str
    type: str
    reason: str


def unknown_of(ops: Sequence[OpInfo]) -> tuple[UnknownOp, ...]:
    """Those of a program or a run, in its order."""
    return tuple(UnknownOp(op.name, op.type, op.unknown) for op in ops if op.unknown)


def how_many(unknown: Collection[UnknownOp], of: int) -> str:
    """`2 of 14 ops have no known cost`."""
    return f"{len(unknown)} of {of} ops {'has' if len(unknown) == 1 else 'have'} no known cost"


def named(unknown: Sequence[UnknownOp]) -> Iterator[str]:
    """A line for every reason with the ops that it is true of; the first few ops, then how many more there are."""
    left = _MOST_NAMED
    for reason in dict.fromkeys(op.reason for op in unknown):
        ops = [op for op in unknown if op.reason == reason][: max(left, 0)]
        left -= len(ops)
        if ops:
            yield f"{', '.join(f'{op.name} ({op.type})' for op in ops)}: {reason}"
    if len(unknown) > _MOST_NAMED:
        yield f"and {len(unknown) - _MOST_NAMED} more"


def in_a_line(unknown: Sequence[UnknownOp], of: int) -> str:
    """All of it as a reason that stands in one line; empty where every cost is known."""
    return f"{how_many(unknown, of)}: {'; '.join(named(unknown))}" if unknown else ""
