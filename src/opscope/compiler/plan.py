"""What the passes write down for every op between the graph and its commands."""

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
    """An op on the engine that runs it fastest."""

    op: Op
    task: Task
    engine: str  # name of the engine; empty for ops without work
    cycles: float  # of one lane doing all of it
    form: str  # kind, or the form of it that is costed on its own: scalar_mul, broadcast_add
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """How an op is shared between lanes."""

    axis: int | None  # of its first output; None: every lane does all of it
    extent: int  # of that axis
    devices: tuple[int, ...]  # that take part
    gathers: tuple[int, ...] = ()  # tensors that every lane needs whole, and has only a part of

    def portion(self, part: int, parts: int) -> float:
        """Share of the work that falls to one of `parts` lanes; whole rows only, so some lanes get more."""
        if self.axis is None:
            return 1.0
        return (((part + 1) * self.extent) // parts - (part * self.extent) // parts) / self.extent


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph on a machine, pass after pass."""

    graph: Graph
    machine: Machine
    options: CompileOptions
    placed: tuple[Placed, ...] = ()
    splits: tuple[Split, ...] = ()
    parts: tuple[int, ...] = ()  # of the batch, one after the other; neighbours of one number go through them together
    resident: bool = False  # weights stay in local memory between inferences
    lowered: Lowered | None = field(default=None, compare=False, repr=False)  # its commands, where a pass needed them


def channel_axis(op: Op, graph: Graph) -> int:
    """The axis of an op's output that its weights make."""
    axis = op.attributes.get("channel_axis")
    return axis if isinstance(axis, int) else len(graph.tensors[op.outputs[0]].shape or ()) - 1
