"""Rows of Arm's compiler → ops of the model: what the compiler made of an op is added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...graph.graph import Graph, Op
from ...recording.recording import OpRecord, Placed
from .compilation import Compilation
from .importer import NPU, RESOURCES


@dataclass(slots=True)
class _Parts:
    """What the rows of one operator add up to."""

    rows: int = 0
    on_cpu: bool = False
    cycles: int = 0
    resources: Counter[str] = field(default_factory=Counter)
    bound: Counter[str] = field(default_factory=Counter)  # cycles of rows by the resource that binds them
    macs: int = 0
    memory: int = 0
    leaders: set[int | None] = field(default_factory=set)

    def add(self, op: OpRecord, leader: int | None) -> None:
        self.rows += 1
        self.on_cpu |= op.cycles is None
        self.cycles += op.cycles or 0
        self.resources.update({part.resource: part.cycles for part in op.resource_cycles})
        if op.cycles:
            self.bound[binding(op)] += op.cycles
        self.macs += op.macs or 0
        self.memory = max(self.memory, op.memory_bytes or 0)
        self.leaders.add(leader)


def binding(op: OpRecord) -> str:
    """The resource that a row takes longest on."""
    return max(op.resource_cycles, key=lambda part: part.cycles).resource if op.resource_cycles else ""


def node_totals(graph: Graph, found: Compilation, clock: float) -> tuple[OpRecord, ...]:
    """Every operator of the model once, in order. What the compiler made of it is added up."""
    parts = [_Parts() for _ in graph.ops]
    for op, (place, leader) in zip(found.layers.ops, places(graph, found), strict=True):
        if place is not None:
            parts[place].add(op, leader)
    whole = sum(part.cycles for part in parts)
    rows = [
        _node(graph, op, part, place, found.refused, clock, whole)
        for place, (op, part) in enumerate(zip(graph.ops, parts, strict=True))
    ]
    return _with_covers(rows, [_leader(part, place) for place, part in enumerate(parts)])


def places(graph: Graph, found: Compilation) -> list[tuple[int | None, int | None]]:
    """Of every row: the position of its op in the graph, and of the op whose command does its work too.

    The compiler numbers the operators of subgraph 0; the graph has those of control-flow bodies between them.
    """
    tops = dict(enumerate(place for place, op in enumerate(graph.ops) if not op.scope))
    return [(tops.get(row.operator), None if row.group is None else tops.get(row.group)) for row in found.rows]


def _leader(part: _Parts, place: int) -> int | None:
    """The one operator in whose commands all of another's work is done; None: it has commands of its own."""
    others = part.leaders - {place}
    return next(iter(others)) if len(part.leaders) == len(others) == 1 else None


def _node(  # noqa: PLR0917 – the fields come from as many places
    graph: Graph, op: Op, part: _Parts, place: int, refused: Mapping[str, str], clock: float, whole: int
) -> OpRecord:
    """The row of one op of the model: on the NPU, refused and left to the CPU, fused into another, or removed."""
    base = OpRecord(op.name, op.type, op.kind, op.location, placed=Placed.ACCELERATOR, calls=part.rows)
    leader = _leader(part, place)
    if op.scope:
        return replace(base, placed=Placed.CPU, engines=("CPU",), reason=f"in the body of {op.scope}")
    if part.on_cpu:
        return replace(base, placed=Placed.CPU, calls=0, engines=("CPU",), reason=_refusal(graph, op, refused))
    if not part.rows:
        return replace(
            base, placed=Placed.REMOVED, reason="no command of its own: a view, or part of how others read it"
        )
    if leader is not None and not part.cycles:
        return replace(base, placed=Placed.FUSED, reason=f"fused into {graph.ops[leader].name}", calls=0)
    wall = round(part.cycles * 1e9 / clock) if clock else None
    return replace(
        base,
        time_ns=wall,
        path_ns=wall,
        path_share=part.cycles / whole if whole else None,
        cycles=part.cycles,
        busy_cycles={name: part.resources[name] for name in RESOURCES.values() if part.resources[name]},
        engines=(NPU,),
        macs=part.macs,
        memory_bytes=part.memory,
        bound=max(part.bound, key=part.bound.__getitem__, default=""),
    )


def _with_covers(rows: Sequence[OpRecord], leaders: Sequence[int | None]) -> tuple[OpRecord, ...]:
    covers: dict[int, list[str]] = {}
    for row, leader in zip(rows, leaders, strict=True):
        if row.placed == Placed.FUSED and leader is not None:
            covers.setdefault(leader, []).append(row.name)
    return tuple(replace(row, covers=tuple(covers.get(place, ()))) for place, row in enumerate(rows))


def _refusal(graph: Graph, op: Op, refused: Mapping[str, str]) -> str:
    for tensor in op.outputs:
        if graph.tensors[tensor].name in refused:
            return refused[graph.tensors[tensor].name]
    types = [graph.tensors[tensor].dtype for tensor in (*op.inputs, *op.outputs) if tensor >= 0]
    floats = {dtype.label for dtype in types if dtype.is_float}
    return f"computes in {', '.join(sorted(floats))}: the accelerator takes int8 and int16" if floats else "not said"
