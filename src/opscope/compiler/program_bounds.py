"""Bounds of a program: peaks of its machine, what its graph asks for, and what each device has to hold.

Work is counted on the model's own graph, not on what the passes made of it: a pass that loses work is found out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ..estimate.canonical import fold_constants
from ..estimate.peaks import peaks_of
from ..estimate.work import work_of
from ..graph.batch import batch_size
from ..graph.graph import ABSENT, Graph, Role
from ..graph.kinds import KINDS, Family, Touches
from ..machine.target import Holds, Memory
from ..program.bounds import Bounds, Holding
from ..program.program import Group
from .codegen.lower import Lowering
from .passes.schedule import schedule
from .plan import Plan, Schedule
from .sharding import Sharding

_MULTIPLIES = (Family.CONTRACTION, Family.RECURRENT, Family.OPAQUE)


def program_bounds(macs: int | None, plan: Plan, lowering: Lowering) -> Bounds:
    """What no execution of a program can beat, but for the peaks of its machine: those are for `with_peaks`.

    Args:
        macs: of the model as it was read, before any pass.
    """
    return Bounds(
        holdings=tuple(_holdings(lowering.context.plan, lowering.tensors.outer_use.most)),
        macs=macs,
        repeated_macs=_repeated_macs(lowering.context.plan),
        streamed_bytes=_streamed_bytes(plan, lowering.context.resident_constants),
    )


def with_peaks(bounds: Bounds, plan: Plan, groups: Iterable[Group]) -> Bounds:
    """Bounds with the peaks of a plan's target: a compilation for one corner of its figures is used for the others."""
    engines = {engine.name: engine for engine in plan.machine.target.engines}
    peaks = peaks_of(plan.machine.target, ((group.name, engines[group.engine], 1) for group in groups if group.engine))
    return replace(bounds, memories=peaks.memories, routes=peaks.routes, units=peaks.units)


def graph_macs(graph: Graph) -> int | None:
    """MACs of a graph, without what constants alone decide; None where those of one op are not known."""
    total = 0
    for op in fold_constants(graph).ops:
        if op.family in _MULTIPLIES:
            work = work_of(op, graph)
            if not work.known or op.trips is None:
                return None
            total += work.macs * op.trips
    return total


def _repeated_macs(schedule: Schedule) -> int:
    """MACs of ops that several lanes do whole, and of rows that several slices make, beyond once."""
    by_lanes = sum(
        placed.task.work.macs * placed.task.trips * (sum(split.sharding.shares.values()) - 1)
        for placed, split in zip(schedule.placed, schedule.splits, strict=True)
        if placed.engine
    )
    return round(by_lanes + schedule.repeated_macs)


def _streamed_bytes(plan: Plan, resident: frozenset[int]) -> int:
    """Bytes of constants that ops need whole and that do not stay in local memory; each is counted once.

    Lanes that read a share each round it to whole bytes, so one byte a lane may be missing.
    """
    needed = set()
    for placed in plan.placed:
        in_part = KINDS[placed.op.kind].touches is not Touches.ALL  # rows of a table, and not all of it
        for t in placed.op.inputs[1 if in_part else 0 :] if placed.engine and placed.task.trips else ():
            if t != ABSENT and plan.graph.tensors[t].role is Role.CONSTANT and t not in resident:
                needed.add(t)
    return sum(max(0, (plan.graph.tensors[t].bytes or 0) - plan.machine.lanes) for t in needed)


# ---- what lies where --------------------------------------------------------------------------------------------


def surely_fits(plan: Plan) -> bool:
    """Whether a memory beyond the cores could hold all tensors of a graph at once, and the largest of them twice.

    No device holds more of constants, inputs, outputs and what spills: then `least_bounds` need not be found.
    """
    sizes = [tensor.bytes or 0 for tensor in plan.graph.tensors]
    most = sum(sizes) + max(sizes, default=0)
    return all(most <= memory.bytes.value for memory in plan.machine.target.memories if memory.is_outer)


def least_bounds(plan: Plan) -> Bounds:
    """What a program will hold at the least, known once ops are split: one that cannot fit needs no code."""
    written = schedule(plan)
    return Bounds(holdings=tuple(_holdings(written, _least_spilled(plan, written))))


def _least_spilled(plan: Plan, written: Schedule) -> list[float]:
    """Per device, bytes of the largest tensor, cut by batch and devices, that neither local memory has room for nor
    inputs and outputs: it may be one of them.
    """
    graph, machine = plan.graph, plan.machine
    sizes = (graph.tensors[t].bytes or 0 for placed in plan.placed for t in placed.op.outputs)
    largest = max(sizes, default=0) / (batch_size(graph) or 1) / machine.devices
    local = machine.target.local
    room = local.bytes.value * machine.cores if local is not None else 0.0
    return [max(0.0, largest - room - ports) for ports in _port_bytes(written)]


def _holdings(plan: Schedule, spilled: Sequence[float]) -> Iterator[Holding]:
    """Of the memories beyond the cores that hold constants or activations, on every device."""
    target = plan.machine.target
    store, work = target.home(Holds.CONSTANTS), target.home(Holds.ACTIVATIONS)
    constants = [sum(held.values()) for held in _read_bytes(plan, Role.CONSTANT)]
    ports = _port_bytes(plan)

    def holding(memory: Memory, device: int) -> Holding:
        kept = constants[device] if memory is store else 0.0
        passing, moved = (ports[device], spilled[device]) if memory is work else (0.0, 0.0)
        return Holding(memory.name, device, round(kept), round(passing), round(moved), round(memory.bytes.value))

    for memory in target.memories:
        if memory.is_outer and memory in (store, work):
            yield from (holding(memory, device) for device in range(plan.machine.devices))


def _read_bytes(plan: Schedule, role: Role) -> list[dict[int, float]]:
    """Per device, bytes of every constant, or of every input of the graph, that its cores read: the largest part."""
    needed: list[dict[int, float]] = [{} for _ in range(plan.machine.devices)]
    for placed, split in zip(plan.placed, plan.splits, strict=True):
        for position, t in enumerate(placed.op.inputs):
            if t == ABSENT or plan.graph.tensors[t].role is not role:
                continue
            size, need = plan.graph.tensors[t].bytes or 0, split.needs[position] if split.needs else split.sharding
            for device in need.devices:
                needed[device][t] = max(needed[device].get(t, 0.0), size * _on_device(plan, need, device))
    return needed


def _port_bytes(plan: Schedule) -> list[float]:
    """Per device, most bytes of inputs and outputs at once: an input until its last reader, an output from its op on.

    A cache that is read, and written longer by one row, may be written where it was read.
    """
    last = _last_readers(plan)
    changes: list[dict[int, float]] = [{} for _ in range(plan.machine.devices)]  # step → bytes more, or less
    for device, held in enumerate(_read_bytes(plan, Role.INPUT)):
        for t, size in held.items():
            for step, change in ((0, size), (last[t] + 1, -size)):
                changes[device][step] = changes[device].get(step, 0.0) + change
    maker = {t: index for index, placed in enumerate(plan.placed) for t in placed.op.outputs}
    for t in dict.fromkeys(t for t in plan.graph.outputs if t in maker):
        split, size = plan.splits[maker[t]], plan.graph.tensors[t].bytes or 0
        made = split.sharding.made
        for device in made.devices:  # a part each, or one device the whole
            part = _on_device(plan, made, device) if made.cuts else float(device == made.devices[0])
            changes[device][maker[t]] = changes[device].get(maker[t], 0.0) + size * part
    return [max(accumulate(steps[step] for step in sorted(steps)), default=0.0) for steps in changes]


def _last_readers(plan: Schedule) -> dict[int, int]:
    """Tensor → position of the last op that reads it, or a view of it; behind all ops, where the graph gives it out."""
    last = dict.fromkeys(plan.graph.outputs, len(plan.placed))
    for index in reversed(range(len(plan.placed))):
        op = plan.placed[index].op
        is_view = op.family is Family.VIEW
        until = max((last.get(t, index) for t in op.outputs), default=index) if is_view else index
        last |= {t: max(last.get(t, until), until) for t in op.inputs if t != ABSENT}
    return last


def _on_device(plan: Schedule, sharding: Sharding, device: int) -> float:
    """Share of a tensor that the cores of a device have together; what several of them have counts once."""
    cores = plan.machine.cores
    boxes = {sharding.boxes.get(lane): sharding.share(lane) for lane in sharding.lanes() if lane // cores == device}
    return min(1.0, sum(boxes.values()))
