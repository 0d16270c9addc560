"""A plan after a pass, as text that a person can read and `diff` can compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..estimate.kernels import has_weights
from ..estimate.work import unpacked_bytes
from ..graph.graph import ABSENT, Graph, Op
from .codegen.emit import whole_cycles
from .passes.split import describe
from .plan import Placed, Plan, running


def phase_text(name: str, plan: Plan) -> str:
    """The plan after a pass, one line per op: operands, engine, split and batch tiles, as far as they are decided."""
    machine = plan.machine
    place = f"{machine.devices} × {machine.cores} cores of {machine.target.name}"
    head = f"// after {name}: {len(plan.graph.ops)} ops on {place}"
    return "\n".join([head, *_lines(plan)]) + "\n"


def _lines(plan: Plan) -> Iterable[str]:
    """Yield the line of every op: `%7:8x64xf16 = matmul(%3:…, %5:…) name='fc' engine=NPU … split=axis 1 of 64`."""
    cycles, slices = _cycles(plan), _slices(plan)
    for index, op in enumerate(plan.graph.ops):
        outputs = ", ".join(_tensor(plan, t) for t in op.outputs)
        inputs = ", ".join(_tensor(plan, t) for t in op.inputs if t != ABSENT)
        line = f"{outputs} = {op.kind}({inputs}) name={op.name!r}"
        if index < len(plan.placed):
            placed = plan.placed[index]
            line += f" engine={placed.engine or 'none'} cycles={cycles[index]:.0f}"
            line += f" memory_bytes={_footprint(plan, op)}"
        for part in running(plan.parts, index):
            split = part.splits[index]
            some = f" images={part.images}" if len(plan.parts) > 1 else ""
            line += f"{some} split={describe(split.sharding).replace(' ', '-')}"
            line += f" exchanges={len(split.exchanges)}" if split.exchanges else ""
            line += f" tiles={part.tiles[index]}" if part.tiles[index] > 1 else ""
        line += f" slices={slices[index]}" if index in slices else ""
        yield line
        for part in running(plan.parts, index):
            prices = part.splits[index].prices
            if len(prices) > 1:
                yield "    prices: " + "; ".join(
                    f"{describe(sharding)} {cycles:,.0f}" for sharding, cycles in sorted(prices, key=lambda p: p[1])
                )


def _cycles(plan: Plan) -> list[float]:
    """Cycles of every op that is placed: of its commands, once they are there; before, of one lane doing all of it."""
    if plan.lowered is None:
        return [max(placed.cycles, _loading(placed, plan.graph)) for placed in plan.placed]
    schedule, found = plan.lowered.context.plan, [0.0] * len(plan.placed)
    for cost in plan.lowered.tiles.costs.values():
        found[schedule.origin[cost.op]] += whole_cycles(cost.cycles(schedule.placed[cost.op]))
    return found


def _slices(plan: Plan) -> dict[int, int]:
    """Op that runs depth first → the slices of rows that it runs in."""
    if plan.lowered is None:
        return {}
    schedule = plan.lowered.context.plan
    runs = Counter(
        origin
        for origin, placed in zip(schedule.origin, schedule.placed, strict=True)
        if placed.op.kind == plan.graph.ops[origin].kind
    )
    tiles = {index: sum(part.tiles[index] for part in running(plan.parts, index)) for index in runs}
    return {index: count // tiles[index] for index, count in runs.items() if count > tiles[index]}


def _loading(placed: Placed, graph: Graph) -> float:
    """Cycles that the weights of an op take to enter its engine."""
    engine = placed.task.placement.engine
    rate = None if engine is None else engine.weight_bytes_per_cycle
    if rate is None or not has_weights(placed.op, graph):
        return 0.0
    weights = graph.tensors[placed.op.inputs[1]]
    data = graph.tensors[placed.op.inputs[0]]
    return (unpacked_bytes(weights, data.dtype) or weights.bytes or 0) / rate.value


def _footprint(plan: Plan, op: Op) -> str:
    """Bytes of what an op reads and writes: inputs, constants and outputs together; `?` where a shape is not known."""
    sizes = [plan.graph.tensors[tensor].bytes for tensor in (*op.inputs, *op.outputs) if tensor != ABSENT]
    return "?" if None in sizes else str(sum(size for size in sizes if size is not None))


def _tensor(plan: Plan, tensor: int) -> str:
    found = plan.graph.tensors[tensor]
    shape = "x".join(map(str, found.shape)) if found.shape is not None else "?"
    return f"%{tensor}:{shape}x{found.dtype.label}"
