"""Place: choose for every op, of the engines that take it, the one that finishes it first."""

from __future__ import annotations

from dataclasses import replace

from ...estimate.placement import Placement, can_price, place_op
from ...estimate.price import Task, engine_cycles
from ...estimate.work import Work, channels_per_group, number, numbers, work_of
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...machine.target import Engine, Target
from ..plan import Placed, Plan, Schedule

_PRODUCTS = (Family.CONTRACTION, Family.RECURRENT)


def place(plan: Plan) -> Plan:
    """The plan with an engine for every op."""
    return replace(plan, placed=tuple(_place(op, plan) for op in plan.graph.ops))


def _place(op: Op, plan: Plan) -> Placed:
    """The engine with the fewest cycles for an op; none, with a reason, where no engine has a cost for it."""
    graph, target = plan.graph, plan.machine.target
    work = work_of(op, graph)
    first = place_op(op, work, graph, target)
    task = Task(op, work, first, {})
    form = form_of(op, graph)
    if work.known and not work.bytes and not work.macs:
        return Placed(op, task, "", 0.0, form)
    able = [e for e in target.engines if e.takes(op) and can_price(e, op, work, first.dtype)]
    if not able or not work.known:
        unknown = work.unknown_because or first.reason or f"no engine of {target.name} has a rate for it"
        return Placed(op, task, "", 0.0, form, unknown=unknown)
    able = [e for e in able if e.command_cycles is None] or able  # a fixed cost says nothing of how an op compares
    costs = {engine.name: tiled_cycles(op, work, engine, first, graph) for engine in able}
    best = min(able, key=lambda engine: costs[engine.name])
    reason = "" if best is able[0] else f"{able[0].name} would take {costs[able[0].name]:,.0f} cycles"
    task = replace(task, placement=Placement(best, first.dtype))
    return Placed(op, task, best.name, costs[best.name] * task.trips, form, reason)


def reprice(plan: Plan, schedule: Schedule, target: Target) -> tuple[Placed, ...]:
    """The ops of a schedule on the same engines of a faster or slower target."""
    engines = {engine.name: engine for engine in target.engines}
    factors: list[float] = []
    for placed in plan.placed:
        if not placed.engine or not placed.cycles:
            factors.append(1.0)
            continue
        task = placed.task
        cycles = tiled_cycles(placed.op, task.work, engines[placed.engine], task.placement, plan.graph) * task.trips
        factors.append(cycles / placed.cycles)
    return tuple(
        replace(
            placed,
            cycles=placed.cycles * factors[origin],
            task=replace(placed.task, placement=Placement(engines.get(placed.engine), placed.task.placement.dtype)),
        )
        for placed, origin in zip(schedule.placed, schedule.origin, strict=True)
    )


def tiled_cycles(op: Op, work: Work, engine: Engine, placement: Placement, graph: Graph) -> float:
    """Cycles of an op on an engine, with padding to full tiles: a matrix engine computes whole tiles only."""
    task = Task(op, work, placement, {})
    kernel = engine.kernels.get(form_of(op, graph))
    if kernel is not None:
        return kernel.value * work.write_bytes / 1024
    free = replace(engine, weight_bytes_per_cycle=None)  # lanes load their own part: it is counted tile by tile
    cycles = engine_cycles(task, free)
    return cycles * padding(op, graph, engine) if work.macs else cycles


def padding(op: Op, graph: Graph, engine: Engine) -> float:
    """Padded work over real work: 100 channels on 32-wide tiles are computed as 128, a factor of 1.28."""
    if engine.tile_extent is None:
        return 1.0
    tile = round(engine.tile_extent.value)
    growth = 1.0
    for extent in product_extents(op, graph):
        growth *= -(-extent // tile) * tile / extent if extent else 1.0
    return growth


def product_extents(op: Op, graph: Graph) -> tuple[int, ...]:
    """Reduced and produced extent of a product: what a matrix engine tiles."""
    if op.kind == "matmul":
        return number(op, "k"), number(op, "n")
    if op.kind == "conv":
        out = graph.tensors[op.outputs[0]].shape or ()
        groups = max(1, number(op, "groups", 1))
        taps = 1
        for extent in numbers(op, "kernel"):
            taps *= extent
        return taps * channels_per_group(op, graph.tensors[op.inputs[0]]), out[number(op, "channel_axis")] // groups
    if op.kind == "attention":
        return number(op, "head_size"), number(op, "key_length")
    return ()


def form_of(op: Op, graph: Graph) -> str:
    """The kernel that costs apply to: adding or multiplying a scalar or a broadcast tensor has one of its own."""
    if op.kind not in ("add", "mul", "sub", "div") or len(op.inputs) != 2 or ABSENT in op.inputs:
        return op.kind
    base = {"sub": "add", "div": "mul"}.get(op.kind, op.kind)
    sizes = [graph.tensors[t].elements or 0 for t in op.inputs]
    if min(sizes) == 1 and any(graph.tensors[t].role is Role.CONSTANT for t in op.inputs):
        return f"scalar_{base}"
    if min(sizes) < max(sizes):
        return f"broadcast_{base}"
    return op.kind


def has_weights(op: Op, graph: Graph) -> bool:
    """Whether the second operand of a product is a constant, streamed tile by tile."""
    return (
        op.family in _PRODUCTS
        and len(op.inputs) > 1
        and op.inputs[1] != ABSENT
        and graph.tensors[op.inputs[1]].role is Role.CONSTANT
    )
