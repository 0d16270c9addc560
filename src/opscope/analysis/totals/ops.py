"""Which ops of the graph, which layers and which blocks does the time belong to, and which are waited for longest?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...core.meaning import Does
from ...graph.kinds import what_kind_does
from ...program.program import OpInfo
from ...recording.summary import NO_OP_NAME, OpTotal, ProducerTotal
from ...recording.trace import NONE
from ..timeline.intervals import Intervals, total, union
from .work import InferenceWork


@dataclass(frozen=True, slots=True)
class OpSums:
    """Totals per graph op, the last entry for what belongs to none; what every rollup adds up."""

    work: InferenceWork
    busy: Numbers
    wait: Numbers
    count: Numbers
    amounts: tuple[Numbers, Numbers, Numbers]  # bytes out, bytes moved, MACs
    by_group: Numbers  # op × group: busy computing; where it only moves data, issuing
    outer: Numbers  # number of the outer memory that an operand lies in
    intervals: Intervals  # by op

    @classmethod
    def of(cls, work: InferenceWork) -> OpSums:
        """Add up the commands of every op, each time with transfers of one queue one after the other.

        Operands in several outer memories are told as the last of them, in the order of the program.
        """
        index, part, waits = work.index, work.in_turn, work.waits.where(_of_engines(work))
        key, count = index.op[part.command], len(index.program.ops) + 1
        outer = np.zeros(count, np.int64)
        for number in range(1, len(index.memories)):
            outer[np.bincount(key[index.outer[part.command] == number], minlength=count) > 0] = number
        return cls(
            work=work,
            busy=total(key, part.ns, count),
            wait=total(index.op[waits.command], waits.ns, count),
            count=np.bincount(key, minlength=count),
            amounts=(
                total(key, index.out_bytes[part.command], count),
                total(key, index.moved_bytes[part.command], count),
                total(key, index.macs[part.command], count),
            ),
            by_group=_by_group(work, key, count),
            outer=outer,
            intervals=union(key, part.start, part.end),
        )

    def rollup(
        self, label_of_op: Numbers, labels: Sequence[str], types: Sequence[str], ops: Sequence[OpInfo] = ()
    ) -> tuple[OpTotal, ...]:
        """Ops under one label added up, costliest first. `ops`: the first labels are one op each, these."""
        program, count = self.work.index.program, len(labels)
        busy, wait, commands = (total(label_of_op, column, count) for column in (self.busy, self.wait, self.count))
        out_bytes, moved_bytes, macs = (total(label_of_op, column, count) for column in self.amounts)
        wall = union(label_of_op[self.intervals.key], self.intervals.start, self.intervals.end).total(count)
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
                does=self._does(ops, i).label,
            )
            for i in np.flatnonzero(commands).tolist()
        ]
        return tuple(sorted(rows, key=lambda row: (-(row.busy_ns or 0), row.name)))

    def _does(self, ops: Sequence[OpInfo], label: int) -> Does:
        """What an op does by its kind; of commands without an op, what they do most of the time, or most of them."""
        if not ops:
            return Does.UNKNOWN
        if label < len(ops):
            return what_kind_does(ops[label].kind)
        index, part = self.work.index, self.work.network
        chosen = part.where(index.op[part.command] == len(ops))
        does = index.program.commands["does"][chosen.command]
        times, counts = np.bincount(does, chosen.ns, minlength=len(Does)), np.bincount(does, minlength=len(Does))
        return max(Does, key=lambda word: (times[word], counts[word]))

    def by_op(self) -> tuple[OpTotal, ...]:
        """Per graph op; commands that belong to none come under one name."""
        ops = self.work.index.program.ops
        names, types = [*(op.name for op in ops), NO_OP_NAME], [*(op.type for op in ops), ""]
        return self.rollup(np.arange(len(ops) + 1), names, types, ops)

    def by_label(self, labels: Sequence[str]) -> tuple[OpTotal, ...]:
        """Per label; `labels` has one for every op."""
        place = {name: number for number, name in enumerate(dict.fromkeys(labels))}
        names, places = [*place, NO_OP_NAME], [*(place[label] for label in labels), len(place)]
        return self.rollup(np.array(places), names, [""] * len(names))

    def by_type(self) -> tuple[OpTotal, ...]:
        return self.by_label([op.type for op in self.work.index.program.ops])


def _by_group(work: InferenceWork, key: Numbers, count: int) -> Numbers:
    """A matrix product is done by the engine that multiplies, however long its operands are on their way."""
    index, part = work.index, work.network
    groups = len(index.program.groups)
    cell, moves = key * groups + index.group[part.command], index.moves[part.command]
    every, computing = (
        total(cell[of], part.ns[of], count * groups).reshape(count, groups)
        for of in (np.ones(len(cell), np.bool_), ~moves)
    )
    return np.where(computing.any(axis=1, keepdims=True), computing, every)


def _of_engines(work: InferenceWork) -> npt.NDArray[np.bool_]:
    """Which waits are of engines; all, where there are none.

    A thread that only starts transfers waits for what it is to write, all inference long, and keeps nobody from work.
    """
    computes = np.array([bool(group.engine) for group in work.index.program.groups])
    found: npt.NDArray[np.bool_] = computes[work.index.group[work.waits.command]] | (not computes.any())
    return found


def producer_totals(work: InferenceWork, *, most: int = 20) -> tuple[ProducerTotal, ...]:
    """The op and lane that engines waited for longest, first."""
    index, program = work.index, work.index.program
    known, codes = (work.waits_on != NONE) & _of_engines(work), index.producers
    place = index.producer[work.waits_on[known]]
    ns, counts = total(place, work.waits.ns[known], len(codes)), np.bincount(place, minlength=len(codes))
    longest = np.lexsort((codes, -ns))[:most]
    rows = []
    for chosen in longest[counts[longest] > 0].tolist():
        rest, kind = divmod(int(codes[chosen]), len(program.kinds))
        op, lane_number = divmod(rest, program.lanes)
        core, group = divmod(lane_number, len(program.groups))
        name = program.ops[op].name if op < len(program.ops) else NO_OP_NAME
        rows.append(
            ProducerTotal(
                name,
                program.kinds[kind],
                program.groups[group].name,
                *divmod(core, program.cores),
                int(ns[chosen]),
                int(counts[chosen]),
            )
        )
    return tuple(rows)
