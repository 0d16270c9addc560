"""A batch taken apart: every sample on its own, from the inputs of the model as far as ops keep samples apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from ..rule import Maker, Match, array_of, attribute, is_op, opset_of, shape_of
from ..slices import make_split
from .axes import Apart, kept_apart, remade

MOST_SAMPLES = 32
MOST_OPS = 20_000  # of all samples


def split_batch(node: ir.Node) -> Match | None:
    """A model of a batch as one of as many samples: inputs cut, every op once for each sample, results joined."""
    graph = node.graph if any(value is not None and value.is_graph_input() for value in node.inputs) else None
    samples = 0 if not isinstance(graph, ir.Graph) else _samples(graph)
    found = _apart(graph, samples) if isinstance(graph, ir.Graph) and 2 <= samples <= MOST_SAMPLES else {}
    if next(iter(found), None) is not node or samples * len(found) > MOST_OPS:
        return None
    told = [each for one in found for value in one.outputs for each in value.consumers() if is_op(each, "Shape")]

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        parts = _Parts(make, samples, opset_of(node))
        for each, apart in found.items():
            parts.add(each, apart)
        made = {value: parts.joined(value, axis) for value, axis in _leaving(found, told)}
        return made | {each.outputs[0]: make.constant(_extents(each), "shape") for each in told}

    given = "x".join(map(str, shape_of(next(value for value in node.inputs if value is not None)) or ()))
    return Match((*found, *told), build, group=f"batch({given})")


def _extents(node: ir.Node) -> list[int]:
    """What a Shape tells: exporters ask for extents."""
    shape = list(shape_of(node.inputs[0]) or ())
    return shape[attribute(node, "start", 0) : attribute(node, "end", len(shape))]


def _samples(graph: ir.Graph) -> int:
    """The extent of the first axis of the first input that has axes."""
    shapes = [shape_of(value) for value in graph.inputs]
    return next((shape[0] for shape in shapes if shape), 0)


def _apart(graph: ir.Graph, samples: int) -> dict[ir.Node, Apart]:
    """Ops that keep the samples of the inputs apart, in the order in which they run."""
    axes = {value: 0 for value in graph.inputs if (shape_of(value) or (0,))[0] == samples}
    found: dict[ir.Node, Apart] = {}
    for node in graph:
        given = [None if value is None else axes.get(value) for value in node.inputs]
        apart = kept_apart(node, given, samples)
        if apart is not None:
            found[node] = apart
            axes.update(zip(node.outputs, apart.outputs, strict=True))
    return found


def _leaving(found: Mapping[ir.Node, Apart], told: list[ir.Node]) -> list[tuple[ir.Value, int]]:
    """Values that are read as a batch still, and their axes."""
    return [
        (value, axis)
        for node, apart in found.items()
        for value, axis in zip(node.outputs, apart.outputs, strict=True)
        if value.is_graph_output() or any(each not in found and each not in told for each in value.consumers())
    ]


@dataclass(slots=True)
class _Parts:
    """Values of a batch, sample by sample, as they are made."""

    make: Maker
    samples: int
    opset: int
    made: dict[tuple[ir.Value, int], list[ir.Value]] = field(default_factory=dict)

    def add(self, node: ir.Node, apart: Apart) -> None:
        """An op, once for each sample."""
        operands = [
            [value] * self.samples if value is None or axis is None else self._cut(value, axis)
            for value, axis in zip(node.inputs, apart.inputs, strict=True)
        ]
        rows = []
        for sample in range(self.samples):
            inputs = [each[sample] for each in operands]
            row = remade(self.make, node, inputs, apart, lambda extent: extent // self.samples)
            maker = row[0].producer()
            if maker is not None:
                maker.name = f"{node.name}/sample_{sample}"
            rows.append(row)
        for value, axis, *parts in zip(node.outputs, apart.outputs, *rows, strict=True):
            self.made[value, axis] = parts

    def joined(self, value: ir.Value, axis: int) -> ir.Value:
        whole = self.make.op("Concat", *self.made[value, axis], axis=axis, shape=shape_of(value))
        whole.type = value.type
        return whole

    def _cut(self, value: ir.Value, axis: int) -> list[ir.Value]:
        """The samples of a value that was not made of samples."""
        if (value, axis) not in self.made:
            array, shape = array_of(value), list(shape_of(value) or ())
            if array is not None:
                pieces = np.split(array, self.samples, axis)
                alike = all(np.array_equal(piece, pieces[0]) for piece in pieces)
                made = [self.make.constant(piece, "sample") for piece in (pieces[:1] if alike else pieces)]
                self.made[value, axis] = made * self.samples if alike else made
            else:
                shape[axis] //= self.samples
                shapes = [tuple(shape)] * self.samples
                self.made[value, axis] = make_split(self.make, value, axis, shapes, self.opset)
        return self.made[value, axis]
