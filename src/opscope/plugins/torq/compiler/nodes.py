"""Rows of the compiler's schedule → ops of the model: what each takes, on which units, and what it was fused with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....core.columns import Numbers
from ....core.meaning import Does
from ....estimate.work import work_of
from ....graph.graph import Graph
from ....graph.kinds import Family, what_kind_does
from ....importers.column_trace import Clock, open_length
from ....recording.recording import OpRecord, Placed, ResourceCycles
from ....recording.trace import NONE
from ..importers.compile_csv import computes
from .schedule import Schedule, ops_by_label

PROGRAMS = "sequencer programs"
OTHER = "transfers of no single op"
HOST = "host"
_ON_HOST = "runs on the part's own processor ({}), for which the compiler's model has no cycles"


@dataclass(frozen=True, slots=True)
class Ops:
    """Ops of a recording, and the op of every row."""

    records: tuple[OpRecord, ...]
    of_row: Numbers


def leads_of(graph: Graph) -> dict[str, int]:
    """Label of a location → the op that stands for it: that of several with the most work."""
    macs = [work_of(op, graph).macs for op in graph.ops]
    is_view = [op.family is Family.VIEW for op in graph.ops]
    return {
        label: max(places, key=lambda place: (macs[place], not is_view[place], -place))
        for label, places in ops_by_label(graph).items()
    }


def ops_of(graph: Graph, schedule: Schedule, clock: Clock | None) -> Ops:
    """Every op of the model once, in order; behind them what the compiler added, where it did."""
    count = len(graph.ops)
    programs = np.array([payload.value == "program" for payload in schedule.payload], bool)
    owner = np.where(schedule.op != NONE, schedule.op, np.where(programs, count, count + 1))
    into = _fused_into(graph, set(np.unique(schedule.op).tolist()) | set(schedule.host))
    records = [_of_graph(graph, place, into.get(place, place)) for place in range(count)]
    records += [
        OpRecord(PROGRAMS, does=Does.LAUNCH, placed=Placed.INSERTED, reason="what the sequencer does, block by block"),
        OpRecord(OTHER, does=Does.MOVE, placed=Placed.INSERTED, reason="the compiler does not say what for"),
    ]
    for place, names in schedule.host.items():
        if place != NONE:
            words = _ON_HOST.format(", ".join(names))
            records[place] = replace(records[place], placed=Placed.CPU, reason=words, unknown=words, engines=(HOST,))
    covers: dict[int, list[str]] = {}
    for place, other in into.items():
        if other is not None:
            covers.setdefault(other, []).append(records[place].name)
    found = [
        replace(_timed(record, schedule, owner == place, clock), covers=tuple(covers.get(place, ())))
        for place, record in enumerate(records)
    ]
    kept = [place for place in range(len(found)) if place < count or bool((owner == place).any())]
    number = {place: at for at, place in enumerate(kept)}
    return Ops(tuple(found[place] for place in kept), np.array([number[at] for at in owner.tolist()], np.int64))


def _of_graph(graph: Graph, place: int, into: int | None) -> OpRecord:
    op = graph.ops[place]
    base = OpRecord(op.name, op.type, op.kind, op.location, what_kind_does(op.kind), macs=work_of(op, graph).macs)
    if into == place:
        return replace(base, placed=Placed.ACCELERATOR)
    if into is None:
        return replace(base, placed=Placed.REMOVED, calls=0, reason="no work of its own in the schedule: a view")
    return replace(base, placed=Placed.FUSED, calls=0, reason=f"fused into {graph.ops[into].name}")


def _fused_into(graph: Graph, present: set[int]) -> dict[int, int | None]:
    """Op without rows → the op that does its work; None: there is nothing to do.

    What is fused carries the location of the last op of it: so it is the next one downstream that has rows.
    """
    readers: dict[int, list[int]] = {}
    writer: dict[int, int] = {}
    for place, op in enumerate(graph.ops):
        writer |= dict.fromkeys(op.outputs, place)
        for tensor in op.inputs:
            readers.setdefault(tensor, []).append(place)
    below = [[at for tensor in op.outputs for at in readers.get(tensor, ())] for op in graph.ops]
    above = [[writer[tensor] for tensor in op.inputs if tensor in writer] for op in graph.ops]
    found: dict[int, int | None] = {}
    for place, op in enumerate(graph.ops):
        if place not in present:
            near = () if op.family is Family.VIEW else (_nearest(place, way, present) for way in (below, above))
            found[place] = next((at for at in near if at is not None), None)
    return found


def _nearest(place: int, steps: Sequence[Sequence[int]], present: set[int]) -> int | None:
    seen, level = {place}, [place]
    while level:
        level = [at for before in level for at in steps[before] if at not in seen]
        for at in level:
            if at in present:
                return at
        seen |= set(level)
    return None


def _timed(record: OpRecord, schedule: Schedule, own: Numbers, clock: Clock | None) -> OpRecord:
    rows = schedule.rows
    if not own.any():
        return record
    zero = np.zeros(int(own.sum()), np.int64)
    cycles = int(open_length(zero, rows.start[own], rows.end[own], 1)[0])
    length = rows.end - rows.start
    units = {
        unit: int(length[own & (rows.unit == number)].sum())
        for number, unit in enumerate(rows.units)
        if (own & (rows.unit == number)).any()
    }
    data = own & ~schedule.is_control & (rows.bytes >= 0)
    kernels = dict.fromkeys(schedule.kernel[row] for row in np.flatnonzero(own).tolist() if schedule.kernel[row])
    busiest = sorted(units, key=lambda unit: (not computes(unit), -units[unit]))
    return replace(
        record,
        engines=record.engines or (", ".join(busiest),),
        kernel=", ".join(kernels),
        calls=float(own.sum()),
        time_ns=None if clock is None else int(clock.ns(np.array([cycles]))[0]),
        cycles=cycles,
        busy_cycles=units,
        resource_cycles=tuple(ResourceCycles(unit, not computes(unit), n) for unit, n in units.items()),
        outer_read_bytes=_bytes(schedule, data, "DMA In"),
        outer_write_bytes=_bytes(schedule, data, "DMA Out"),
    )


def _bytes(schedule: Schedule, data: Numbers, unit: str) -> int:
    rows = schedule.rows
    if unit not in rows.units:
        return 0
    return int(rows.bytes[data & (rows.unit == rows.units.index(unit))].sum())


def fused_names(records: Sequence[OpRecord]) -> Iterator[str]:
    """For a note: how many ops went into others."""
    count = sum(record.placed is Placed.FUSED for record in records)
    if count:
        yield f"{count} ops have no rows of their own: the compiler fused them, and shows the last op of what it fused"


def host_programs(host: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """For a note: what the schedule leaves out."""
    if names := list(dict.fromkeys(name for programs in host.values() for name in programs)):
        what = "1 program runs" if len(names) == 1 else f"{len(names)} programs run"
        yield f"{what} on the part's own processor ({', '.join(names)}): the schedule counts no cycle of it"
