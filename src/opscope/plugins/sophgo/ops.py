"""Ops of the compiled network, or of the model that it was made from, with what their commands add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.columns import Numbers
from ...core.errors import printable
from ...importers.column_trace import open_length
from ...recording.build import op_totals
from ...recording.recording import KernelTotal, OpRecord, Placed, ResourceCycles
from ...recording.summary import OpTotal
from .compiled_files import Compiled
from .meaning import does_of_op
from .profile_file import DIRECTIONS, Profile, is_dma
from .timeline import Schedule


@dataclass(frozen=True, slots=True)
class OpRows:
    """Rows of ops, and the row that commands of each line of final.mlir belong to."""

    rows: tuple[OpRecord, ...]
    of_line: dict[int, int] = field(default_factory=dict)


def compiled_ops(profiles: Sequence[Profile], compiled: Compiled) -> OpRows:
    """One row per op of the compiled network; where nothing but the profile is known, per line that it names."""
    owners = compiled.owners()
    rows: dict[int, OpRecord] = {}
    of_line: dict[int, int] = {}
    place: dict[int, int] = {}
    for told, line in _named_lines(profiles):
        owner = owners.get(line, line)
        known = compiled.ops.get(owner)
        opcode = told if known is None else known.opcode
        if owner not in place:
            place[owner] = len(place)
            name = known.results[0] if known is not None and known.results else f"{opcode}_{owner}"
            rows[owner] = OpRecord(
                printable(name, 500),
                opcode,
                location=f"final.mlir line {owner}",
                does=does_of_op(opcode),
                placed=Placed.ACCELERATOR,
                shape="" if known is None else known.shape,
                kernel=opcode,
            )
        of_line[line] = place[owner]
    return OpRows(tuple(rows.values()), of_line)


def _named_lines(profiles: Sequence[Profile]) -> Iterator[tuple[str, int]]:
    """Opcode and line of every op that has commands, once, in the order of lines."""
    found: dict[int, str] = {}
    for profile in profiles:
        commands = profile.commands
        pairs = np.unique(np.stack((commands.mlir_line, commands.opcode), axis=1), axis=0)
        for line, opcode in pairs.tolist():
            if line >= 0:
                found.setdefault(line, profile.opcodes[opcode])
    yield from ((opcode, line) for line, opcode in sorted(found.items()))


def with_commands(rows: Sequence[OpRecord], schedule: Schedule) -> tuple[OpRecord, ...]:
    """Rows with times, cycles and bytes of their commands; an op without commands has none of these."""
    count, op = len(rows), schedule.op
    known = op >= 0
    start, end = schedule.ns
    wall = open_length(op[known], start[known], end[known], count)
    cycles = open_length(op[known], schedule.start[known], schedule.end[known], count)
    commands = np.bincount(op[known], minlength=count)
    read, write = (_sum(schedule, count, *ways) for ways in (("S2L", "S2S"), ("L2S", "S2S")))
    busy = [
        (name, _per_op(op, schedule.cycles * (schedule.engine == engine), count))
        for engine, name in enumerate(schedule.profile.engines)
    ]
    return tuple(
        row
        if not commands[place]
        else _with(row, place, commands, wall, cycles, [(name, int(own[place])) for name, own in busy], read, write)
        for place, row in enumerate(rows)
    )


def _with(  # noqa: PLR0917 – a column each
    row: OpRecord,
    place: int,
    commands: Numbers,
    wall: Numbers,
    cycles: Numbers,
    busy: Sequence[tuple[str, int]],
    read: Numbers,
    write: Numbers,
) -> OpRecord:
    used = sorted((pair for pair in busy if pair[1]), key=lambda pair: -pair[1])
    return replace(
        row,
        calls=float(commands[place]),
        time_ns=int(wall[place]),
        cycles=int(cycles[place]),
        engines=tuple(name for name, _ in used),
        busy_cycles=dict(used),
        resource_cycles=tuple(ResourceCycles(name, is_dma(name), own) for name, own in used),
        outer_read_bytes=int(read[place]),
        outer_write_bytes=int(write[place]),
        bound=used[0][0] if used else "",
    )


def _per_op(op: Numbers, amount: Numbers, count: int) -> Numbers:
    known = op >= 0
    return np.rint(np.bincount(op[known], amount[known], minlength=count)).astype(np.int64)


def _sum(schedule: Schedule, count: int, *ways: str) -> Numbers:
    chosen = np.isin(schedule.direction, [DIRECTIONS.index(way) for way in ways])
    return _per_op(schedule.op, schedule.bytes * chosen, count)


def totals_of(rows: Sequence[OpRecord], schedule: Schedule) -> tuple[OpTotal, ...]:
    """Totals: `busy_ns` is of both engines, which may work for an op at the same time."""
    start, end = schedule.ns
    busy = _per_op(schedule.op, end - start, len(rows))
    whole = int(busy.sum())
    found = [
        total
        if total.wall_ns is None or total.op is None
        else replace(total, busy_ns=int(busy[total.op]), share=int(busy[total.op]) / whole if whole else None)
        for total in op_totals(rows)
    ]
    return tuple(sorted(found, key=lambda total: -(total.busy_ns or 0)))


def kernels(schedule: Schedule) -> tuple[KernelTotal, ...]:
    """All commands of one kind on one engine."""
    counts: Counter[tuple[int, int]] = Counter()
    sums: dict[tuple[int, int], list[int]] = {}
    start, end = schedule.ns
    columns = (schedule.kind, schedule.engine, schedule.cycles, schedule.outer, end - start)
    for kind, engine, cycles, moved, ns in zip(*(column.tolist() for column in columns), strict=True):
        counts[kind, engine] += 1
        total = sums.setdefault((kind, engine), [0, 0, 0])
        for place, amount in enumerate((cycles, moved, ns)):
            total[place] += amount
    profile = schedule.profile
    rows = [
        KernelTotal(
            profile.kinds[kind] or "(no name)", profile.engines[engine], counts[kind, engine], cycles, moved, None, ns
        )
        for (kind, engine), (cycles, moved, ns) in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.busy_cycles or 0), row.name)))
