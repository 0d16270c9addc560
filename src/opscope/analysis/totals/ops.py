"""Which ops of the graph, which layers and which blocks does the time belong to?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.meaning import Does
from ...graph.graph import KINDS, Family
from ...program.program import OpInfo
from ...recording.summary import OpTotal
from ..timeline.intervals import Stretches, union
from .work import Numbers, Work, total

OTHER = "(no op)"
_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class OpSums:
    """Totals per graph op, the last entry for what belongs to none; what every rollup adds up."""

    work: Work
    busy: Numbers
    wait: Numbers
    count: Numbers
    amounts: tuple[Numbers, Numbers, Numbers]  # bytes out, bytes moved, MACs
    by_group: Numbers  # op × group: busy computing; where it only moves data, issuing
    outer: Numbers  # number of the outer memory that an operand lies in
    stretches: Stretches  # by op

    @classmethod
    def of(cls, work: Work) -> OpSums:
        index, part = work.index, work.network
        key, count = index.op[part.command], len(index.program.ops) + 1
        outer = np.zeros(count, np.int64)
        for number in range(1, len(index.memories)):
            outer[np.bincount(key[index.outer[part.command] == number], minlength=count) > 0] = number
        return cls(
            work=work,
            busy=total(key, part.ns, count),
            wait=total(index.op[work.waits.command], work.waits.ns, count),
            count=np.bincount(key, minlength=count),
            amounts=(
                total(key, index.out_bytes[part.command], count),
                total(key, index.moved_bytes[part.command], count),
                total(key, index.macs[part.command], count),
            ),
            by_group=_by_group(work, key, count),
            outer=outer,
            stretches=union(key, part.start, part.end),
        )

    def rollup(
        self, label_of_op: Numbers, labels: Sequence[str], types: Sequence[str], ops: Sequence[OpInfo] = ()
    ) -> tuple[OpTotal, ...]:
        """Ops under one label added up, costliest first. `ops`: the first labels are one op each, these."""
        program, count = self.work.index.program, len(labels)
        busy, wait, commands = (total(label_of_op, column, count) for column in (self.busy, self.wait, self.count))
        out_bytes, moved_bytes, macs = (total(label_of_op, column, count) for column in self.amounts)
        wall = union(label_of_op[self.stretches.key], self.stretches.start, self.stretches.end).total(count)
        table = np.zeros((count, len(program.groups)), np.int64)
        np.add.at(table, label_of_op, self.by_group)
        outer = np.zeros(count, np.int64)
        np.maximum.at(outer, label_of_op, self.outer)
        whole = max(int(busy.sum()), 1)
        rows = [
            OpTotal(
                name=labels[i],
                type=types[i],
                wall_ns=int(wall[i]),
                busy_ns=int(busy[i]),
                wait_ns=int(wait[i]),
                share=int(busy[i]) / whole,
                commands=int(commands[i]),
                out_bytes=int(out_bytes[i]),
                moved_bytes=int(moved_bytes[i]),
                macs=int(macs[i]),
                engine=program.groups[int(table[i].argmax())].name,
                placed=self.work.index.memories[int(outer[i])],
                op=i if i < len(ops) else None,
                does=(KINDS.get(ops[i].kind, Family.OPAQUE).does if i < len(ops) else Does.UNKNOWN).label,
            )
            for i in np.flatnonzero(commands).tolist()
        ]
        return tuple(sorted(rows, key=lambda row: (-(row.busy_ns or 0), row.name)))

    def by_op(self) -> tuple[OpTotal, ...]:
        """Per graph op; commands that belong to none come under one name."""
        ops = self.work.index.program.ops
        names, types = [*(op.name for op in ops), OTHER], [*(op.type for op in ops), ""]
        return self.rollup(np.arange(len(ops) + 1), names, types, ops)

    def by_label(self, labels: Sequence[str]) -> tuple[OpTotal, ...]:
        """Per label; `labels` has one for every op."""
        names = list(dict.fromkeys([*labels, OTHER]))
        place = {name: number for number, name in enumerate(names)}
        return self.rollup(np.array([place[label] for label in [*labels, OTHER]]), names, [""] * len(names))

    def by_type(self) -> tuple[OpTotal, ...]:
        return self.by_label([op.type for op in self.work.index.program.ops])

    def by_layer(self) -> tuple[OpTotal, ...]:
        return self.by_label([layer_of(op.name) for op in self.work.index.program.ops])

    def by_block(self) -> tuple[OpTotal, ...]:
        return self.by_label([block_of(op.name) for op in self.work.index.program.ops])


def _by_group(work: Work, key: Numbers, count: int) -> Numbers:
    """A matrix product is done by the engine that multiplies, however long its operands are on their way."""
    index, part = work.index, work.network
    groups = len(index.program.groups)
    cell, moves = key * groups + index.group[part.command], index.moves[part.command]
    every, computing = (
        total(cell[of], part.ns[of], count * groups).reshape(count, groups)
        for of in (np.ones(len(cell), np.bool_), ~moves)
    )
    return np.where(computing.any(axis=1, keepdims=True), computing, every)


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
