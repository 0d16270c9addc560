"""A plan after a pass, as text that a person can read and `diff` can compare."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.graph import ABSENT, Op
from .passes.split import describe
from .plan import Plan


def phase_text(name: str, plan: Plan) -> str:
    """The plan after a pass, one line per op: operands, engine, split and batch tiles, as far as they are decided."""
    machine = plan.machine
    place = f"{machine.devices} × {machine.cores} cores of {machine.target.name}"
    head = f"// after {name}: {len(plan.graph.ops)} ops on {place}"
    return "\n".join([head, *_lines(plan)]) + "\n"


def _lines(plan: Plan) -> Iterable[str]:
    """Yield the line of every op: `%7:8x64xf16 = matmul(%3:…, %5:…) name='fc' engine=NPU … split=axis 1 of 64`."""
    for index, op in enumerate(plan.graph.ops):
        outputs = ", ".join(_tensor(plan, t) for t in op.outputs)
        inputs = ", ".join(_tensor(plan, t) for t in op.inputs if t != ABSENT)
        line = f"{outputs} = {op.kind}({inputs}) name={op.name!r}"
        if index < len(plan.placed):
            placed = plan.placed[index]
            line += f" engine={placed.engine or 'none'} cycles={placed.cycles:.0f}"
            line += f" memory_bytes={_footprint(plan, op)}"
        for part in plan.parts:
            split = part.splits[index]
            some = f" images={part.images}" if len(plan.parts) > 1 else ""
            line += f"{some} split={describe(split.sharding).replace(' ', '-')}"
            line += f" exchanges={len(split.exchanges)}" if split.exchanges else ""
            line += f" tiles={part.tiles[index]}" if part.tiles[index] > 1 else ""
        yield line
        for part in plan.parts:
            prices = part.splits[index].prices
            if len(prices) > 1:
                yield "    prices: " + "; ".join(
                    f"{describe(sharding)} {cycles:,.0f}" for sharding, cycles in sorted(prices, key=lambda p: p[1])
                )


def _footprint(plan: Plan, op: Op) -> str:
    """Bytes of what an op reads and writes: inputs, constants and outputs together; `?` where a shape is not known."""
    sizes = [plan.graph.tensors[tensor].bytes for tensor in (*op.inputs, *op.outputs) if tensor != ABSENT]
    return "?" if None in sizes else str(sum(size for size in sizes if size is not None))


def _tensor(plan: Plan, tensor: int) -> str:
    found = plan.graph.tensors[tensor]
    shape = "x".join(map(str, found.shape)) if found.shape is not None else "?"
    return f"%{tensor}:{shape}x{found.dtype.label}"
