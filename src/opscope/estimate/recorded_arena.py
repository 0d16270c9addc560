"""The memory plan of an estimate as every Run has it: which command holds what where, until when, how full it gets.

A layer holds its result. What no layer makes – inputs, state, the runtime – and what a layer needs beside its result
has a mark: a command that takes no time, before the first layer that needs the bytes. A block is held until the last
command that depends on it is done. The graph's own dependencies do not tell that where ops work in place; and what the
application takes is held until a mark behind the last layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.units import Bytes
from ..graph.graph import ABSENT, Graph, Role
from ..program.program import NO_OP
from .report import Report

if TYPE_CHECKING:
    from .memory import ArenaBlock, Buffer

MARKS = ("input", "state", "result", "scratch", "runtime", "output")
_FURTHEST = 0xFFFF_FFFF  # addresses of commands are 32 bits wide


@dataclass(frozen=True, slots=True)
class Mark:
    """A command beside those of the layers; it takes no time."""

    kind: str  # one of MARKS
    name: str
    step: int  # the layer that it stands before; the number of layers: behind the last
    op: int = NO_OP  # that it belongs to
    tensor: int = ABSENT  # whose bytes it holds


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Bytes that a layer or mark holds."""

    holder: int
    address: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Arena:
    """Layers and marks are numbered together: layers first."""

    marks: tuple[Mark, ...]
    blocks: tuple[MemoryBlock, ...]
    edges: tuple[tuple[int, int], ...]  # of data, beside those of the graph
    in_use_bytes: tuple[int, ...]  # while each layer runs
    reach_bytes: tuple[int, ...]  # the end of the last block in use, while each layer runs

    @property
    def steps(self) -> tuple[int, ...]:
        """Of every layer and mark, the layer that runs then."""
        return (*range(len(self.in_use_bytes)), *(mark.step for mark in self.marks))

    @property
    def order(self) -> tuple[int, ...]:
        """Layers and marks as they run."""
        steps, layers = self.steps, len(self.in_use_bytes)
        return tuple(sorted(range(len(steps)), key=lambda number: (steps[number], number < layers)))


def arena_of(report: Report, graph_edges: npt.NDArray[np.void]) -> Arena:
    """What lies where while the layers of a report run; no blocks where an address is too large for a command."""
    from .memory import BlockKind, Buffer, live_bytes, plan_memory

    steps, plan = len(report.layers), plan_memory(report.graph, report.target.runtime)
    pairs = zip(plan.buffers, plan.offsets, strict=True) if steps else ()
    placed = [(buffer, address, _mark_of(report.graph, buffer)) for buffer, address in pairs]
    head = report.memory.arena_bytes + report.memory.scratch_bytes
    by_interpreter = bool(report.memory.runtime_parts)
    if steps and by_interpreter and steps == report.arena_steps:
        placed = [_placed(block) for block in report.arena if block.kind is not BlockKind.KEPT]
    elif steps and head != plan.arena_bytes + plan.scratch_bytes:  # by operators of the file, which are not the layers
        placed = [(Buffer(Bytes(head), 0, steps - 1, ()), 0, Mark("runtime", "arena as the interpreter plans it", 0))]
    kept = [block for block in report.arena if steps and block.kind is BlockKind.KEPT]
    placed += [_placed(replace(block, last=steps - 1)) for block in kept]
    reach = np.zeros(steps, np.int64)
    for buffer, address, _ in placed:
        life = slice(buffer.first, buffer.last + 1)
        reach[life] = np.maximum(reach[life], address + buffer.size_bytes)
    in_use = live_bytes([buffer for buffer, _, _ in placed], steps)
    holders = _Holders(report.graph, graph_edges)
    if reach.max(initial=0) <= _FURTHEST:
        for buffer, address, mark in placed:
            holders.take(buffer, address, mark)
        holders.hand_over()
    return Arena(tuple(holders.marks), tuple(holders.blocks), tuple(holders.edges), in_use, tuple(reach.tolist()))


def _placed(block: ArenaBlock) -> tuple[Buffer, int, Mark]:
    from .memory import BlockKind, Buffer

    kind = {BlockKind.KEPT: "runtime", BlockKind.SCRATCH: "scratch"}.get(block.kind, "result")
    buffer = Buffer(Bytes(block.size_bytes), block.first, block.last, ())
    return buffer, block.address, Mark(kind, block.name, block.first)


class _Holders:
    """Finds a layer or mark for every buffer, and says with dependencies how long that holds it."""

    def __init__(self, graph: Graph, graph_edges: npt.NDArray[np.void]) -> None:
        self.marks: list[Mark] = []
        self.blocks: list[MemoryBlock] = []
        self.edges: dict[tuple[int, int], None] = {}
        self._graph, self._outputs = graph, set(graph.outputs)
        self._last_reader = dict.fromkeys(range(len(graph.ops)), NO_OP)
        for source, target in graph_edges.tolist():
            self._last_reader[source] = max(self._last_reader[source], target)
        self._readers: dict[int, list[int]] = {}
        for step, op in enumerate(graph.ops):
            for tensor in op.inputs:
                self._readers.setdefault(tensor, []).append(step)
        self._taken: dict[int, None] = {}  # who holds what the application takes

    def take(self, buffer: Buffer, address: int, mark: Mark) -> None:
        """At the layer that makes it; at the mark where no layer does, or dependencies on it would hold it too long."""
        if not buffer.size_bytes:
            return
        step = buffer.first
        made_here = bool(buffer.tensors) and buffer.tensors[:1] == self._graph.ops[step].outputs[:1]
        if made_here and self._last_reader[step] <= buffer.last:
            holder, held_until = step, max(step, self._last_reader[step])
        else:
            holder, held_until = self._number(mark), NO_OP
            self._link(holder, (s for t in buffer.tensors for s in self._readers.get(t, ()) if s >= step))
        self.blocks.append(MemoryBlock(holder, address, buffer.size_bytes))
        if any(self._is_kept(tensor) for tensor in buffer.tensors):
            self._taken[holder] = None
        elif held_until < buffer.last:
            self._link(holder, (buffer.last,))

    def hand_over(self) -> None:
        """The mark that depends on all that outlives the layers."""
        holders = {block.holder for block in self.blocks}
        writers = {tensor: step for step, op in enumerate(self._graph.ops) for tensor in op.outputs}
        last = (writers.get(tensor, NO_OP) for tensor in self._graph.outputs)
        self._taken |= dict.fromkeys(step for step in last if step != NO_OP and step not in holders)
        if self._taken:
            end = self._number(Mark("output", "output", len(self._graph.ops)))
            for holder in self._taken:
                self._link(holder, (end,))

    def _is_kept(self, tensor: int) -> bool:
        return tensor in self._outputs or self._graph.tensors[tensor].role is Role.VARIABLE

    def _link(self, holder: int, readers: Iterable[int]) -> None:
        self.edges |= dict.fromkeys((holder, reader) for reader in readers)

    def _number(self, mark: Mark) -> int:
        self.marks.append(mark)
        return len(self._graph.ops) + len(self.marks) - 1


def _mark_of(graph: Graph, buffer: Buffer) -> Mark:
    step, op = buffer.first, graph.ops[buffer.first]
    if not buffer.tensors:
        return Mark("scratch", f"scratch of {op.name}", step, step)
    tensor = buffer.tensors[0]
    name = graph.tensors[tensor].name
    if graph.tensors[tensor].role is Role.VARIABLE:
        return Mark("state", f"state {name}", step, tensor=tensor)
    if graph.tensors[tensor].role is Role.SCRATCH:
        return Mark("scratch", f"scratch {name}", step, step, tensor)
    if tensor in op.outputs:
        return Mark("result", f"result {name}", step, step, tensor)
    return Mark("input", f"input {name}", step, tensor=tensor)
