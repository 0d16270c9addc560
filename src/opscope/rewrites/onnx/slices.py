"""Parts of one axis: Slice, Gather and Split, each as another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from .layouts import slices_of
from .rule import Maker, Match, Shape, array_of, attribute, is_op, only_reader, opset_of, producer, shape_of


@dataclass(frozen=True, slots=True)
class Cut:
    """Neighbouring elements of one axis that a node takes."""

    node: ir.Node
    value: ir.Value
    axis: int
    start: int
    count: int
    drops: bool  # whether the axis goes, as with a Gather of one index

    @property
    def shape(self) -> Shape:
        """Of the result, with its axis."""
        given = shape_of(self.value) or ()
        return (*given[: self.axis], self.count, *given[self.axis + 1 :])

    @property
    def result(self) -> Shape:
        return (*self.shape[: self.axis], *self.shape[self.axis + 1 :]) if self.drops else self.shape


def cut_of(node: ir.Node) -> Cut | None:
    """What a Slice of one axis, or a Gather of neighbours, takes; None for all else, and where all is taken."""
    value, shape = (node.inputs[0], shape_of(node.inputs[0])) if is_op(node, "Slice", "Gather") else (None, None)
    after = shape_of(node.outputs[0])
    if value is None or not shape or after is None or array_of(value) is not None:
        return None
    if is_op(node, "Slice"):
        cuts = [cut for cut in slices_of(node, shape) or () if after[cut[0]] != shape[cut[0]]]
        if len(cuts) != 1 or cuts[0][2] != 1:
            return None
        axis, start, _ = cuts[0]
        return Cut(node, value, axis, start, after[axis], drops=False) if after[axis] else None
    places = array_of(node.inputs[1])
    axis = attribute(node, "axis", 0) % len(shape)
    if places is None or places.ndim > 1 or not places.size:
        return None
    first = int(places.ravel()[0]) % shape[axis]
    wanted = np.arange(first, first + places.size)
    if places.size == shape[axis] or not np.array_equal(places.ravel() % shape[axis], wanted):
        return None
    return Cut(node, value, axis, first, places.size, drops=places.ndim == 0)


def cuts_to_split(node: ir.Node) -> Match | None:
    """Slices and Gathers that take a value apart, as one Split."""
    first = cut_of(node)
    if first is None:
        return None
    readers = dict.fromkeys(reader for reader in first.value.consumers() if reader.graph is node.graph)
    cuts = [cut for cut in map(cut_of, readers) if cut is not None and cut.axis == first.axis]
    cuts = [cut for cut in cuts if cut.value is first.value]
    parts = sorted({(cut.start, cut.count) for cut in cuts})
    ends = [start + count for start, count in parts]
    shape = shape_of(first.value) or ()
    if len(parts) < 2 or [0, *ends] != [*(start for start, _ in parts), shape[first.axis]]:
        return None
    if cuts[0].node is not node:
        return None  # one of them speaks for all

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        shapes = [(*shape[: first.axis], count, *shape[first.axis + 1 :]) for _, count in parts]
        made = dict(zip(parts, make_split(make, first.value, first.axis, shapes, opset_of(node)), strict=True))
        values = {}
        for cut in cuts:
            part = made[cut.start, cut.count]
            values[cut.node.outputs[0]] = _squeeze(make, part, cut, opset_of(node)) if cut.drops else part
        return values

    return Match([cut.node for cut in cuts], build)


def split_to_slices(node: ir.Node) -> Match | None:
    """Split as a Slice for each part."""
    value = node.inputs[0] if is_op(node, "Split") and opset_of(node) >= 10 else None
    shape, parts = shape_of(value), [shape_of(output) for output in node.outputs]
    if value is None or shape is None or None in parts:
        return None
    axis = attribute(node, "axis", 0) % len(shape)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        start, values = 0, {}
        for output, part in zip(node.outputs, parts, strict=True):
            count = (part or ())[axis]
            if output.uses() or output.is_graph_output():
                values[output] = _slice(make, Cut(node, value, axis, start, count, drops=False))
            start += count
        return values

    return Match((node,), build)


def gather_to_slice(node: ir.Node) -> Match | None:
    """Gather of one index, or of neighbours, as Slice, and Squeeze where the axis goes."""
    cut = cut_of(node) if is_op(node, "Gather") and opset_of(node) >= 10 else None
    if cut is None:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = _slice(make, cut)
        return {node.outputs[0]: _squeeze(make, made, cut, opset_of(node)) if cut.drops else made}

    return Match((node,), build)


def slice_to_gather(node: ir.Node) -> Match | None:
    """Slice of one element whose axis is then squeezed away, as Gather."""
    before = producer(node.inputs[0], "Slice") if is_op(node, "Squeeze", "Reshape") else None
    cut = None if before is None else cut_of(before)
    after = shape_of(node.outputs[0])
    if before is None or cut is None or cut.count != 1 or only_reader(before.outputs[0]) is not node:
        return None
    if after != (*cut.shape[: cut.axis], *cut.shape[cut.axis + 1 :]):
        return None
    made_shape = after

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        place = make.constant(np.asarray(cut.start, np.int64), "place")
        return {node.outputs[0]: make.op("Gather", cut.value, place, axis=cut.axis, shape=made_shape)}

    return Match((node, before), build)


def make_split(make: Maker, value: ir.Value, axis: int, shapes: list[Shape], opset: int) -> list[ir.Value]:
    """The parts of a value along an axis, by one Split."""
    sizes = [shape[axis] for shape in shapes]
    if opset >= 13:
        return list(make.ops("Split", value, make.constant(sizes, "sizes"), shapes=shapes, axis=axis))
    return list(make.ops("Split", value, shapes=shapes, axis=axis, split=sizes))


def _slice(make: Maker, cut: Cut) -> ir.Value:
    ends = ([cut.start], [cut.start + cut.count], [cut.axis])
    return make.op("Slice", cut.value, *(make.constant(each, "cut") for each in ends), shape=cut.shape)


def _squeeze(make: Maker, value: ir.Value, cut: Cut, opset: int) -> ir.Value:
    if opset >= 13:
        return make.op("Squeeze", value, make.constant([cut.axis], "axes"), shape=cut.result)
    return make.op("Squeeze", value, axes=[cut.axis], shape=cut.result)
