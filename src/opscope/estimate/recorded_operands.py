"""What the commands of an estimate read and write, in the words that compiled programs have for it."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.meaning import Direction
from ..graph.graph import ABSENT, Graph, Op, Role
from ..machine.target import Holds, Target
from ..program.program import Detail, MemoryInfo, Operand
from .recorded_arena import Arena, Mark
from .report import Layer, Report
from .traffic.stores import Stores


def details_of(report: Report, arena: Arena) -> tuple[Detail, ...]:
    """One for every layer, then for every mark."""
    homes = _Homes(report.graph, report.target)
    layers = (_of_layer(layer, op, homes) for layer, op in zip(report.layers, report.graph.ops, strict=True))
    return (*layers, *(_of_mark(mark, homes) for mark in arena.marks))


def memories_of(target: Target) -> tuple[MemoryInfo, ...]:
    """What operands lie in."""
    return tuple(MemoryInfo(memory.name, memory.is_outer) for memory in target.memories)


class _Homes:
    """The memory that each tensor of a graph lies in."""

    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph = graph
        self.activations = target.home(Holds.ACTIVATIONS).name
        self.stores = Stores(graph, target)
        self.numbers = {memory.name: number for number, memory in enumerate(target.memories)}

    def number(self, tensor: int) -> int:
        is_constant = self.graph.tensors[tensor].role is Role.CONSTANT
        return self.numbers[self.stores.store_of(tensor) if is_constant else self.activations]


def _of_layer(layer: Layer, op: Op, homes: _Homes) -> Detail:
    """A layer in a loop names no operands: what it writes is many times what one of them holds."""
    named = tuple(_named(op)) if layer.trips == 1 else ()
    return _detail(layer.name, named, homes)


def _of_mark(mark: Mark, homes: _Homes) -> Detail:
    named = () if mark.tensor == ABSENT else ((Direction.OUT, "Dest", mark.tensor),)
    return _detail(mark.name, named, homes)


def _named(op: Op) -> Iterator[tuple[Direction, str, int]]:
    outputs = [tensor for tensor in op.outputs if tensor != ABSENT]
    for number, tensor in enumerate(outputs):
        yield Direction.OUT, f"Dest{number}" if len(outputs) > 1 else "Dest", tensor
    for number, tensor in enumerate(op.inputs):
        if tensor != ABSENT:
            yield Direction.IN, f"Src{number}", tensor


def _detail(name: str, named: tuple[tuple[Direction, str, int], ...], homes: _Homes) -> Detail:
    operands, types, shapes = [], [], []
    for way, role, number in named:
        tensor, memory = homes.graph.tensors[number], homes.number(number)
        shape = tensor.shape or ()
        operands.append(Operand(way, role, tensor.name, memory, tensor.dtype.label, shape, tensor.bytes))
        types.append(tensor.dtype.label)
        shapes.append(f"{role} [{' x '.join(map(str, shape))}]")
    return Detail(name, homes.activations, ", ".join(dict.fromkeys(types)), ", ".join(shapes), tuple(operands), "")
