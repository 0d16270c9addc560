"""Ops whose cost is not known, and what they do to the totals: those are lower bounds, and are said to be.

A cost is unknown where the model or the target does not tell it: a custom operator, a shape that data decide, a loop of
unknown length, a kind that no engine has a rate for. Such an op takes no commands and no time of a simulation, which is
not to say that it takes none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..graph.kinds import what_kind_does
from .summary import Latency, OpTotal, Summary

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


def withheld(summary: Summary, ops: Sequence[OpInfo]) -> Summary:
    """Totals of a run: with an op of unknown cost among them, what the known ones take is the least of it.

    Latency becomes a range without an end, throughput and energy are not known, and neither is any time of the op.
    """
    unknown = {number: op for number, op in enumerate(ops) if op.unknown}
    if not unknown:
        return summary
    kept = [row for row in summary.ops if row.op not in unknown]
    return replace(
        summary,
        latency=_at_least(summary.latency),
        throughput_per_s=None,
        energy=None,
        samples_ns=(),
        ops=(*kept, *(_without_time(number, op, summary) for number, op in unknown.items())),
    )


def _at_least(latency: Latency) -> Latency:
    known = [ns for ns in (latency.low_ns, latency.value_ns) if ns is not None]
    return replace(latency, value_ns=None, low_ns=min(known, default=None), high_ns=None)


def _without_time(number: int, op: OpInfo, summary: Summary) -> OpTotal:
    """Where it was placed may be known all the same."""
    found = next((row for row in summary.ops if row.op == number), None)
    engine, placed = ("", "") if found is None else (found.engine, found.placed)
    rest = (None,) * 8
    total = OpTotal(op.name, op.type, *rest, engine=engine, placed=placed, reason=op.unknown, op=number)
    does = what_kind_does(op.kind).label
    return replace(total, does=does) if found is None else replace(total, does=found.does, on_cpu=found.on_cpu)
