"""Columns that all totals of an inference start from: each command once, with core, group and times.

Two parts: ProgramIndex, of the program, made once for all inferences; InferenceWork, of the spans of one inference. A
total is then one sum over a key per command. Busy time per lane, with commands 0 and 2 on lane 1 and command 1 on
lane 0:

    key = core × groups + group    [1, 0, 1]
    ns                             [5, 7, 2]
    intervals.total(key, ns, 2)    [7, 7]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import chain

import numpy as np

from ...core.columns import Flags, Numbers, rising
from ...core.meaning import Carries, Does
from ...program.program import NO_MEMORY, NO_OP, NO_ROUTE, TRUE, Program
from ...recording.run import CommandTable
from ...recording.trace import SpanKind, Trace
from ..timeline.activities import execution_marks

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class ProgramIndex:
    """Of a program, what summing up any of its inferences needs; made once. Columns have one entry per command."""

    program: Program
    table: CommandTable
    row_keys: tuple[tuple[str, str, str, str], ...]  # kind, group, memory, types
    row: Numbers  # of the op-kind table
    core: Numbers  # device × cores + core
    group: Numbers
    kind: Numbers
    route: Numbers
    op: Numbers  # len(ops): belongs to none
    out_bytes: Numbers
    moved_bytes: Numbers
    macs: Numbers
    local_bytes: Numbers
    moves: Flags  # has a route
    is_flush: Flags  # writes the statistics out: no work of the network
    memories: tuple[str, ...]  # LOCAL, then those that transfers read from or write to
    outer: Numbers  # number of the outer memory that an operand lies in; 0: all are local
    producers: Numbers  # distinct values of (op × lanes + lane) × kinds + kind: who can be waited for, as one number
    producer: Numbers  # command → position in producers
    read: Numbers  # commands whose output in local memory others read
    first_reader: Numbers  # of each of them, position in readers
    readers: Numbers

    @classmethod
    def of(cls, program: Program) -> ProgramIndex:
        """What can be known of the commands before anything runs, each as a column of whole numbers.

        Commands of no op count as one more op behind the last, so that every sum has a place for them.
        """
        commands = program.commands
        keys, row = _rows(program)
        memories, outer = _outer(program)
        op = commands["op"].astype(np.int64)
        op = np.where(op == NO_OP, len(program.ops), op)
        lane = program.lane_of_commands()
        producers, producer = np.unique(
            (op * program.lanes + lane) * len(program.kinds) + commands["kind"], return_inverse=True
        )
        read, first_reader, readers = _readers(program)
        names = ("group", "kind", "route", "out_bytes", "moved_bytes", "macs", "local_bytes")
        plain = {name: commands[name].astype(np.int64) for name in names}
        return cls(
            program=program,
            table=CommandTable.of(program),
            row_keys=keys,
            row=row,
            core=commands["device"].astype(np.int64) * program.cores + commands["core"],
            op=op,
            moves=commands["route"] != NO_ROUTE,
            is_flush=commands["does"] == Does.STATS,
            memories=memories,
            outer=outer,
            producers=producers,
            producer=producer.reshape(-1),
            read=read,
            first_reader=first_reader,
            readers=readers,
            **plain,
        )

    @property
    def local_name(self) -> str:
        """Of the memory that engines compute from."""
        memories = self.program.memories
        used = (operand.memory for detail in self.program.details for operand in detail.operands)
        places = (place for place in chain(used, range(len(memories))) if place != NO_MEMORY)
        return next((memories[place].name for place in places if not memories[place].is_outer), "local memory")


def _rows(program: Program) -> tuple[tuple[tuple[str, str, str, str], ...], Numbers]:
    """Kinds of row of the op table, and the row of every command."""
    commands = program.commands
    details: dict[tuple[str, str], int] = {}
    of_detail = [details.setdefault((d.memory, d.types), len(details)) for d in program.details]
    pairs = list(details) or [("", "")]
    code = (commands["kind"].astype(np.int64) * len(program.groups) + commands["group"]) * len(pairs)
    codes, row = np.unique(code + np.array(of_detail or [0])[commands["detail"]], return_inverse=True)
    keys = []
    for number in codes.tolist():
        rest, pair = divmod(number, len(pairs))
        kind, group = divmod(rest, len(program.groups))
        keys.append((program.kinds[kind], program.groups[group].name, *pairs[pair]))
    return tuple(keys), row.reshape(-1).astype(np.int64)


def _readers(program: Program) -> tuple[Numbers, Numbers, Numbers]:
    """Commands whose local output others read, where in the list of readers theirs begin, and the readers.

    Commands 2 and 3 read what command 0 wrote, 3 also what 1 wrote: [0, 1], [0, 2], [2, 3, 3]. A transfer from outer
    memory waits for who made the data, but reads the copy there, and a barrier reads nothing: the place in local memory
    may be another's by then.
    """
    from_outer = np.array([*(route.carries is Carries.READ for route in program.routes), False])
    elsewhere = from_outer[program.commands["route"]] | (program.commands["does"] == Does.SYNC)
    reader = np.repeat(np.arange(len(program.commands)), np.diff(program.dependency_offsets))
    data = (program.dependency_kinds == TRUE) & ~elsewhere[reader]
    source, reader = program.dependency_sources[data].astype(np.int64), reader[data]
    order = np.argsort(source, kind="stable")
    read, first = np.unique(source[order], return_index=True)
    return read, first, reader[order]


def _outer(program: Program) -> tuple[tuple[str, ...], Numbers]:
    """Memories, and per command the number of the outer one that it moves to or from, or that an operand lies in."""
    commands = program.commands
    served = np.array([*(route.memory if route.carries.is_outer else NO_MEMORY for route in program.routes), NO_MEMORY])
    moved = served[commands["route"]]
    used = [place for place in np.unique(moved).tolist() if place != NO_MEMORY]
    number = {place: n for n, place in enumerate(used, start=1)}
    of_detail = [max((number.get(o.memory, 0) for o in d.operands), default=0) for d in program.details]
    of_route = np.array([*(number.get(place, 0) for place in range(len(program.memories))), 0])[moved]
    outer = np.maximum(of_route, np.array(of_detail or [0], np.int64)[commands["detail"]])
    return (LOCAL, *(program.memory_name(place) for place in used)), outer


@dataclass(frozen=True, slots=True)
class SpanColumns:
    """Spans of one kind, as columns."""

    command: Numbers
    start: Numbers  # ns
    end: Numbers
    ucycles: Numbers
    pcycles: Numbers  # of a wait: NONE

    @classmethod
    def of(cls, trace: Trace, chosen: Numbers) -> SpanColumns:
        names = ("command", "start_ns", "end_ns", "ucycles", "pcycles")
        rows = trace.spans.take(chosen)  # much quicker than an index
        return cls(*(rows[name].astype(np.int64) for name in names))

    def where(self, chosen: Flags | slice) -> SpanColumns:
        return SpanColumns(*(getattr(self, column.name)[chosen] for column in fields(self)))

    @property
    def ns(self) -> Numbers:
        return self.end - self.start

    def __len__(self) -> int:
        return len(self.command)


@dataclass(frozen=True, slots=True)
class InferenceWork:
    """The spans of one inference by what they are. Made from a trace with one lane per thread group."""

    index: ProgramIndex
    trace: Trace
    ops: SpanColumns  # lanes at work: computing, or issuing a transfer
    waits: SpanColumns
    waits_on: Numbers  # command that was waited for; NONE
    transfers: SpanColumns  # in flight
    commands: SpanColumns  # every command once: computing, or from its issue until its bytes have arrived
    network: SpanColumns  # the same without the flush of the statistics
    in_turn: SpanColumns  # the same with transfers of one queue one after the other
    windows: Mapping[tuple[int, int], tuple[int, int]]  # (device, core) → start and end of its inference, in ns

    @classmethod
    def of(cls, trace: Trace, index: ProgramIndex) -> InferenceWork:
        """Sort spans by what they are; a command is told by one span: its transfer where it has one, else its work.

        What issues a transfer is at work too, but its command goes on until the bytes have arrived: counting both would
        count it twice. The order of `parts` is computing, in flight, and last the flush of the statistics, so that each
        of the columns is a stretch of one.
        """
        kind = np.ascontiguousarray(trace.spans["kind"])
        op_at, wait_at, flight_at = (np.flatnonzero(kind == k) for k in (SpanKind.OP, SpanKind.WAIT, SpanKind.TRANSFER))
        ops = SpanColumns.of(trace, op_at)
        computed = op_at[~index.moves[ops.command]]
        flush = [index.is_flush[trace.spans["command"][at]] for at in (computed, flight_at)]
        parts = [computed[~flush[0]], flight_at[~flush[1]], flight_at[flush[1]], computed[flush[0]]]
        ends = np.cumsum([len(part) for part in parts]).tolist()
        # In this order, the others are parts of it and no copies.
        commands = SpanColumns.of(trace, np.concatenate(parts))
        network = commands.where(slice(0, ends[1]))
        return cls(
            index=index,
            trace=trace,
            ops=ops,
            waits=SpanColumns.of(trace, wait_at),
            waits_on=trace.spans["waits_on"][wait_at],
            transfers=commands.where(slice(ends[0], ends[2])),
            commands=commands,
            network=network,
            in_turn=in_turn(network, index),
            windows=_windows(trace),
        )


def in_turn(part: SpanColumns, index: ProgramIndex) -> SpanColumns:
    """Commands, with transfers of one queue one after the other: time is of the one that began first.

    Operands that are read ahead are on their way together, and each of them nearly all of the time.
    """
    moving = np.flatnonzero(index.moves[part.command])
    if not len(moving):
        return part
    command = part.command[moving]
    queue = index.core[command] * len(index.program.routes) + index.route[command]
    low, span = int(part.start.min()), int(part.end.max()) - int(part.start.min()) + 1
    order = rising(queue * span + part.start[moving] - low)
    queue, moving = queue[order], moving[order]
    latest = np.maximum.accumulate(queue * span + part.end[moving] - low)  # end so far; queues do not mix
    before = np.concatenate(([0], latest[:-1])) - queue * span + low
    start = part.start.copy()
    start[moving] = np.minimum(np.maximum(start[moving], before), part.end[moving])
    return replace(part, start=start)


def _windows(trace: Trace) -> dict[tuple[int, int], tuple[int, int]]:
    windows = {}
    for span in trace.spans[execution_marks(trace)]:
        lane = trace.lanes[span["lane"]]
        windows[lane.device, lane.core] = (int(span["start_ns"]), int(span["end_ns"]))
    return windows
