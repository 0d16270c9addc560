"""Place: choose for every op, of the engines that take it, the one that finishes it first."""

from __future__ import annotations

from dataclasses import replace

from ...estimate.placement import Placement
from ...estimate.price import engine_cycles, task_of, without_weight_load
from ...graph.graph import Graph, Op
from ...machine.target import Target
from ..plan import Placed, Plan, Schedule


def place(plan: Plan) -> Plan:
    """The plan with an engine for every op."""
    return replace(plan, placed=tuple(place_op(op, plan.graph, plan.machine.target) for op in plan.graph.ops))


def place_op(op: Op, graph: Graph, target: Target) -> Placed:
    """The engine with the fewest cycles for an op; none, with a reason, where no engine has a cost for it."""
    task = task_of(op, graph, target)
    work, engine = task.work, task.placement.engine
    if work.known and not work.bytes and not work.macs:
        return Placed(op, task, "", 0.0, task.form)
    if engine is None or not work.known:
        unknown = work.unknown_because or task.placement.reason or f"no engine of {target.name} has a rate for it"
        return Placed(op, task, "", 0.0, task.form, unknown=unknown)
    cycles = engine_cycles(task, without_weight_load(engine)) * task.trips
    return Placed(op, task, engine.name, cycles, task.form)


def reprice(plan: Plan, schedule: Schedule, target: Target) -> tuple[Placed, ...]:
    """The ops of a schedule on the same engines of a faster or slower target."""
    engines = {engine.name: engine for engine in target.engines}
    unloaded = {name: without_weight_load(engine) for name, engine in engines.items()}
    factors: list[float] = []
    for placed in plan.placed:
        if not placed.engine or not placed.cycles:
            factors.append(1.0)
            continue
        task = placed.task
        cycles = engine_cycles(task, unloaded[placed.engine]) * task.trips
        factors.append(cycles / placed.cycles)
    return tuple(
        replace(
            placed,
            cycles=placed.cycles * factors[origin],
            task=replace(placed.task, placement=Placement(engines.get(placed.engine), placed.task.placement.dtype)),
        )
        for placed, origin in zip(schedule.placed, schedule.origin, strict=True)
    )
