"""Plan: what the passes have decided for every op, between the graph and its commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..estimate.price import Machine, Task
from ..graph.graph import Graph, Op
from ..options import DEFAULT_OVERLAP_PARTS, CompileOptions
from .sharding import Sharding

if TYPE_CHECKING:
    from .codegen.lower import Lowering


@dataclass(frozen=True, slots=True)
class Placed:
    """An op, and the engine that runs it."""

    op: Op
    task: Task
    engine: str  # name of the engine; empty for ops without work
    cycles: float  # of one lane doing all of it
    form: str  # kind, or the form of it that is costed on its own: scalar_mul, broadcast_add
    unknown: str = ""  # why its cost is not known; then it has no engine and no commands


@dataclass(frozen=True, slots=True)
class Split:
    """How an op is split between lanes."""

    sharding: Sharding  # of its work, by the axes of its first output
    needs: tuple[Sharding, ...]  # of every input; empty: the op takes them as they are
    exchanges: tuple[int, ...] = ()  # positions of inputs that lanes hold otherwise than the op needs them
    prices: tuple[tuple[Sharding, float], ...] = ()  # what was considered, with its cycles


@dataclass(frozen=True, slots=True)
class Join:
    """Where parts of the batch become one: behind it, an op takes about as long for one of them as for all."""

    begin: int  # op that is the first to run for all images
    held: Sharding  # of what ops before it have made, as it is joined
    cycles: float  # until it is held so


@dataclass(frozen=True, slots=True)
class Part:
    """Some images of the batch, which run through the whole network before the next part does.

    Splits are chosen for `unit` images at a time; ops run on as many of these units at once as local memory holds.
    """

    images: int
    unit: int
    splits: tuple[Split, ...]
    tiles: tuple[int, ...] = ()  # of every op: in how many tiles the images are run; neighbours form a tile group
    joined: Join | None = None  # it has the images of all parts before it, and begins where they end

    @property
    def units(self) -> int:
        return self.images // self.unit


def spans(parts: Sequence[Part]) -> list[range]:
    """The ops that each part runs: all, or those before and behind the op where parts are joined."""
    join, end = parts[-1].joined, len(parts[-1].splits)
    if join is None:
        return [range(end)] * len(parts)
    return [range(join.begin)] * (len(parts) - 1) + [range(join.begin, end)]


def running(parts: Sequence[Part], index: int) -> list[Part]:
    """The parts that run an op."""
    return [part for part, span in zip(parts, spans(parts), strict=True) if index in span] if parts else []


@dataclass(frozen=True, slots=True)
class Schedule:
    """What runs, in order: every op once for each of its batch tiles, with the exchanges between lanes."""

    graph: Graph
    machine: Machine
    placed: tuple[Placed, ...]
    splits: tuple[Split, ...]
    origin: tuple[int, ...]  # for each of them the op of the plan that it is of
    resident: bool = False  # weights stay in local memory between inferences
    slots: int = 0  # for weight tiles on every lane; 0: as many as the target has at the least
    kept: frozenset[int] = frozenset()  # weights that stay in local memory, where not all of them do
    overlap_parts: int = DEFAULT_OVERLAP_PARTS  # most pieces of an op, beside those that memory needs
    repeated_macs: float = 0.0  # of rows that several slices of an op compute, each for itself, beyond once


@dataclass(frozen=True, slots=True)
class Plan:
    """A graph on a machine, and what the passes so far have decided."""

    graph: Graph
    machine: Machine
    options: CompileOptions
    placed: tuple[Placed, ...] = ()
    parts: tuple[Part, ...] = ()  # of the batch
    alternatives: tuple[tuple[Part, ...], ...] = ()  # that may be as good, to be tried when memory is allocated
    lowered: Lowering | None = field(default=None, compare=False, repr=False)  # its commands, where a pass needed them


def channel_axis(op: Op, graph: Graph) -> int:
    """The axis of an op's output along which its weights are split: that of the produced channels."""
    axis = op.attributes.get("channel_axis")
    return axis if isinstance(axis, int) else len(graph.tensors[op.outputs[0]].shape or ()) - 1


_ENOUGH_STEPS = 3  # weight tiles, whose results pass through a double buffer


def leaves_by_tiles(steps: float) -> bool:
    """Whether a product can be streamed out as it is made, with so many weight tiles, and needs no slices of rows."""
    return steps > _ENOUGH_STEPS
