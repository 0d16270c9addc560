"""Attention: projections that are packed in one product, each on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from .grids import PAIR, Grid, grid_of, grid_under, is_on, pair_after, part_of, stored_of
from .layouts import MOVES, SELECTIONS, Layout, follow, layout_of, make_layout
from .rule import Array, Maker, Match, Shape, attribute, extents_of, is_op, is_open, only_reader, set_extents

ELEMENTWISE = ("Add", "Sub", "Mul", "Div")


@dataclass(frozen=True, slots=True)
class Projection:
    """A product with constant weights, and ops with constants after it, as parts of its channels could be computed."""

    node: ir.Node
    after: tuple[ir.Node, ...]  # elementwise ops with a constant, and pairs of one grid
    axis: int  # of the result that counts the channels
    constants: Mapping[ir.Value, int | None]  # the axis of each that counts the channels

    @property
    def result(self) -> ir.Value:
        return (self.node, *self.after)[-1].outputs[0]

    def part(self, make: Maker, channels: Array) -> ir.Value:
        """The same of some channels."""
        made: dict[ir.Value, ir.Value] = {}
        for node in (self.node, *self.after):
            made[node.outputs[0]] = make.tape.op(
                node.op_type,
                [self._input(make, value, made, channels) for value in node.inputs],
                node.attributes,
                domain=node.domain,
            )
            shape = list(extents_of(node.outputs[0]) or ())
            shape[self.axis] = len(channels)
            made[node.outputs[0]].type = node.outputs[0].type
            set_extents(made[node.outputs[0]], tuple(shape))
        return made[self.result]

    def _input(
        self, make: Maker, value: ir.Value | None, made: Mapping[ir.Value, ir.Value], channels: Array
    ) -> ir.Value | None:
        if value is None or value not in self.constants:
            return value if value is None else made.get(value, value)
        axis = self.constants[value]
        return value if axis is None else part_of(make, value, axis, channels)


def split_packed_projections(node: ir.Node) -> Match | None:
    """One product whose result is only cut in parts is a product for each part.

    The parts can be cut in any way that a layout has a word for: Split, Slices or Gathers, of the product's result or
    of one that was reshaped and transposed. What moves the elements of a part comes after it, in its shortest form.
    """
    projection = _projection(node)
    shape = None if projection is None else extents_of(projection.result)
    if projection is None or shape is None or 0 in shape:
        return None
    touched = [node, *projection.after]
    grid = grid_under(projection.result)
    found = _parts(projection.result, layout_of(shape), projection.axis, touched, grid)
    told = {value for value in found or () if is_op(value.producer(), "Shape")}  # exporters ask for extents
    parts = {value: layout for value, layout in (found or {}).items() if value not in told}
    if not parts or any(value.dtype != projection.result.dtype for value in parts):
        return None
    batch = next((extent for extent in shape if is_open(extent)), 1)
    if any(extent % batch for value in told for extent in _asked(value) if is_open(extent)):
        return None
    channels = {value: part.picked(projection.axis) for value, part in parts.items()}
    sets = {tuple(each.tolist()) for each in channels.values()}
    if len(sets) < 2 or sum(map(len, sets)) > len(set().union(*sets)):
        return None  # nothing is packed, or parts overlap and would be computed twice

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made: dict[tuple[int, ...], ir.Value] = {}
        values = {}
        for value, part in parts.items():
            key = tuple(channels[value].tolist())
            if key not in made:
                made[key] = projection.part(make, channels[value])
            values[value] = make_layout(make, made[key], part, grid, is_put=grid_under(value) is not None)
        first = next(iter(made.values()))
        return values | {value: _extents(make, _asked(value), first) for value in told}

    return Match(touched, build)


def _asked(told: ir.Value) -> Shape:
    """The extents that a Shape tells."""
    maker = told.producer()
    return () if maker is None else extents_of(maker.inputs[0]) or ()


def _extents(make: Maker, shape: Shape, value: ir.Value) -> ir.Value:
    """A shape as a list; what is open in it is a multiple of what is open in a value."""
    if not any(map(is_open, shape)):
        return make.constant(list(shape), "shape")
    given = extents_of(value) or ()
    axis = next(axis for axis, extent in enumerate(given) if is_open(extent))
    whole = make.op("Shape", value, dtype=ir.DataType.INT64, shape=(len(given),))
    batch = make.op("Gather", whole, make.constant([axis], "axis"), shape=(1,))
    parts = [
        make.op("Mul", batch, make.constant([extent // given[axis]], "times"), shape=(1,))
        if is_open(extent)
        else make.constant([extent], "extent")
        for extent in shape
    ]
    return make.op("Concat", *parts, axis=0, shape=(len(shape),))


def _projection(node: ir.Node) -> Projection | None:
    """A product by constants, as far as ops with constants follow it."""
    found = _product(node)
    if found is None:
        return None
    axis, constants = found
    after: list[ir.Node] = []
    last = node
    while (reader := only_reader(last.outputs[0], *ELEMENTWISE, *PAIR)) is not None:
        shape, result = extents_of(last.outputs[0]), extents_of(reader.outputs[0])
        others = [value for value in reader.inputs if value is not last.outputs[0]]
        if shape is None or result != shape:
            break
        if not is_op(reader, *PAIR):
            array = stored_of(others[0]) if len(others) == 1 else None
            if array is None or others[0] is None or others[0] in constants:
                break
            constants[others[0]] = _channels_of(array, axis - len(shape), shape[axis])
        elif grid_of(reader) is None or reader.inputs[0] is not last.outputs[0]:
            break
        after.append(reader)
        last = reader
    return Projection(node, tuple(after), axis, constants)


def _product(node: ir.Node) -> tuple[int, dict[ir.Value, int | None]] | None:
    """The axis of a product's result that its weights have, and the constants with their own such axis."""
    shape = extents_of(node.outputs[0]) if is_op(node, "MatMul", "Gemm", "Conv") else None
    arrays = [] if shape is None else [stored_of(value) for value in node.inputs]
    if (
        shape is None
        or any(len(extents_of(value) or ()) < 2 for value in (*node.inputs[:2], *node.outputs))
        or sum(array is None for array in arrays) != 1
    ):
        return None  # the weights are no constants, or all is
    weights = 1 if arrays[0] is None else 0
    if is_op(node, "Conv"):
        places = {1: 0, 2: 0} if weights and attribute(node, "group", 1) == 1 else None
        axis = 1
    else:
        turned = bool(attribute(node, "transB" if weights else "transA", 0))
        rank = arrays[weights].ndim  # type: ignore[union-attr]
        axis = len(shape) - (1 if weights else 2)
        places = {weights: rank - (2 if turned == bool(weights) else 1)} if rank >= 2 else None
    if places is None:
        return None
    constants: dict[ir.Value, int | None] = {}
    for number, (value, array) in enumerate(zip(node.inputs, arrays, strict=True)):
        if value is None or array is None:
            continue
        if value in constants:
            return None  # one constant in two places has no one axis
        is_placed = number in places
        constants[value] = places[number] if is_placed else _channels_of(array, axis - len(shape), shape[axis])
    return axis, constants


def _channels_of(array: Array, axis: int, channels: int) -> int | None:
    """The axis of a constant that counts channels, where it is not the same for all; `axis` is counted from the end."""
    return array.ndim + axis if array.ndim >= -axis and array.shape[axis] == channels else None


def _parts(
    value: ir.Value, layout: Layout, channels: int, touched: list[ir.Node], grid: Grid | None
) -> dict[ir.Value, Layout] | None:
    """Values that hold some channels, or tell the shape of all, with their layouts; None: something else reads it."""
    if value.is_graph_output() or not value.consumers():
        return None
    parts: dict[ir.Value, Layout] = {}
    for reader in value.consumers():
        results = _results(layout, reader, grid) if reader.graph is touched[0].graph else None
        if is_op(reader, "Shape") and not reader.attributes and extents_of(value) is not None:
            touched.append(reader)
            parts[reader.outputs[0]] = layout
            continue
        if results is None or reader.inputs[0] is not value:
            return None
        touched.append(reader)
        for result, part in results:
            if not all(part.is_whole(axis) for axis in range(len(part.source)) if axis != channels):
                return None
            if not part.is_whole(channels):
                parts.update([_last(result, part, touched, grid)])
                continue
            more = _parts(result, part, channels, touched, grid)
            if more is None:
                return None
            parts |= more
    return {part: layout for part, layout in parts.items() if part.is_graph_output() or part.consumers()}


def _results(layout: Layout, node: ir.Node, grid: Grid | None) -> list[tuple[ir.Value, Layout]] | None:
    if is_op(node, *MOVES, *SELECTIONS):
        return follow(layout, node)
    return [(node.outputs[0], layout)] if is_on(node, grid) else None


def _last(value: ir.Value, layout: Layout, touched: list[ir.Node], grid: Grid | None) -> tuple[ir.Value, Layout]:
    """A part, as far as it is only moved."""
    while True:
        pair = pair_after(value, grid)
        end = value if pair is None else pair[-1].outputs[0]
        reader = only_reader(end, *MOVES)
        results = follow(layout, reader) if reader is not None and reader.inputs[0] is end else None
        if reader is None or results is None:
            return value, layout
        touched += [*(pair or ()), reader]
        ((value, layout),) = results
