"""Plan: what the passes have decided for every op, between the graph and its commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..estimate.price import Machine, Task
from ..graph.graph import Graph, Op
from ..options import CompileOptions

if TYPE_CHECKING:
    from .codegen.lower import Lowered


@dataclass(frozen=True, slots=True)
class Placed:
    """An op, and the engine that runs it."""

    op: Op
    task: Task
    engine: str  # name of the engine; empty for ops without work
    cycles: float  # of one lane doing all of it
    form: str  # kind, or the form of it that is costed on its own: scalar_mul, broadcast_add
    reason: str = ""  # why this engine
    unknown: str = ""  # why its cost is not known; then it has no engine and no commands


@dataclass(frozen=True, slots=True)
class Split:
    """How an op is split between lanes."""

    axis: int | None  # of its first output; None: every lane does all of it
    extent: int  # of that axis
    devices: tuple[int, ...]  # that take part
    gathers: tuple[int, ...] = ()  # tensors that every lane needs whole, and has only a part of

    def portion(self, part: int, parts: int) -> float:
        """Share of the work of lane `part` of `parts`. Whole rows only: of 10 rows, 4 lanes get 2, 3, 2 and 3."""
        if self.axis is None:
            return 1.0
        return (((part + 1) * self.extent) // parts - (part * self.extent) // parts) / self.extent


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph on a machine, and what the passes so far have decided."""

    graph: Graph
    machine: Machine
    options: CompileOptions
    placed: tuple[Placed, ...] = ()
    splits: tuple[Split, ...] = ()
    batch_tiles: tuple[
        int, ...
    ] = ()  # number of batch tiles of every op; neighbours with the same number form a tile group
    resident: bool = False  # weights stay in local memory between inferences
    lowered: Lowered | None = field(default=None, compare=False, repr=False)  # its commands, where a pass needed them


def channel_axis(op: Op, graph: Graph) -> int:
    """The axis of an op's output along which its weights are split: that of the produced channels."""
    axis = op.attributes.get("channel_axis")
    return axis if isinstance(axis, int) else len(graph.tensors[op.outputs[0]].shape or ()) - 1
