"""Quantised values: constants that are stored in whole numbers, and pairs of QuantizeLinear and DequantizeLinear.

A value that comes from a DequantizeLinear is on its grid. A pair of the same grid changes nothing about it, however its
elements were moved; compilers want one around every op all the same, to run it in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from .rule import Array, Maker, array_of, attribute, copy_extents, is_op, only_reader, producer

PAIR = ("QuantizeLinear", "DequantizeLinear")


@dataclass(frozen=True, slots=True)
class Grid:
    """The values that one scale and zero point have for all elements."""

    scale: ir.Value
    zero: ir.Value | None
    key: tuple[float, int, str]

    def put(self, make: Maker, value: ir.Value, like: ir.Value) -> ir.Value:
        """A value, put on the grid and read from it; `like` is one that is."""
        maker = like.producer()
        stored = None if maker is None or maker.inputs[0] is None else maker.inputs[0].dtype
        zeros = () if self.zero is None else (self.zero,)
        whole = make.op("QuantizeLinear", value, self.scale, *zeros, dtype=stored)
        read = make.op("DequantizeLinear", whole, self.scale, *zeros, dtype=value.dtype)
        copy_extents(whole, value)
        copy_extents(read, value)
        return read


def grid_of(node: ir.Node | None) -> Grid | None:
    """The grid of a QuantizeLinear or DequantizeLinear, where it is one for all elements."""
    if node is None or not is_op(node, *PAIR):
        return None
    scale = array_of(node.inputs[1])
    zero_value = node.inputs[2] if len(node.inputs) > 2 else None
    zero = np.zeros((), np.uint8) if zero_value is None else array_of(zero_value)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1 or node.inputs[1] is None:
        return None
    return Grid(node.inputs[1], zero_value, (float(scale.ravel()[0]), int(zero.ravel()[0]), str(zero.dtype)))


def grid_under(value: ir.Value | None) -> Grid | None:
    """The grid that a value is on: that of the DequantizeLinear that makes it."""
    return grid_of(producer(value, "DequantizeLinear"))


def is_on_grid(value: ir.Value, grid: Grid) -> bool:
    """Whether a value comes from a grid."""
    found = grid_under(value)
    return found is not None and found.key == grid.key


def is_on(node: ir.Node, grid: Grid | None) -> bool:
    """Whether a node puts values on a grid, or reads them from it."""
    found = None if grid is None else grid_of(node)
    return found is not None and grid is not None and found.key == grid.key


def pair_after(value: ir.Value, grid: Grid | None) -> list[ir.Node] | None:
    """The pair that alone reads a value, if it is of a grid; the value is then its own result."""
    first = only_reader(value, "QuantizeLinear")
    second = None if first is None else only_reader(first.outputs[0], "DequantizeLinear")
    if first is None or second is None or not (is_on(first, grid) and is_on(second, grid)):
        return None
    return [first, second]


def pair_before(value: ir.Value | None, grid: Grid | None) -> list[ir.Node] | None:
    """The pair of a grid that a value comes from, its last op first, where nothing else reads from it."""
    second = producer(value, "DequantizeLinear")
    first = None if second is None else producer(second.inputs[0], "QuantizeLinear")
    if first is None or second is None or not (is_on(first, grid) and is_on(second, grid)):
        return None
    if only_reader(second.outputs[0]) is None or only_reader(first.outputs[0]) is None or first.inputs[0] is None:
        return None
    return None if only_reader(first.inputs[0]) is None else [second, first]


def stored_of(value: ir.Value | None) -> Array | None:
    """The elements of a constant as they are stored: its own, or those that a DequantizeLinear reads."""
    array = array_of(value)
    read = producer(value, "DequantizeLinear") if array is None else None
    if read is None or attribute(read, "block_size", 0):
        return array
    return None if any(array_of(each) is None for each in read.inputs if each is not None) else array_of(read.inputs[0])


def part_of(make: Maker, value: ir.Value, axis: int, places: Array) -> ir.Value:
    """Some elements of an axis of a constant, stored as it is."""
    read = producer(value, "DequantizeLinear")
    if read is None:
        return make.constant(np.take(_array(value), places, axis), "part")
    stored = _array(read.inputs[0])
    own_axis = attribute(read, "axis", 1) % max(stored.ndim, 1)
    inputs: list[ir.Value | None] = [make.constant(np.take(stored, places, axis), "part")]
    for each in read.inputs[1:]:
        array = array_of(each)
        is_cut = array is not None and array.size > 1 and own_axis == axis
        inputs.append(make.constant(np.take(_array(each), places, 0), "part") if is_cut else each)
    made = make.tape.op("DequantizeLinear", inputs, read.attributes)
    made.type, made.shape = value.type, ir.Shape(np.take(stored, places, axis).shape)
    return made


def _array(value: ir.Value | None) -> Array:
    array = array_of(value)
    if array is None:
        raise ValueError("a constant is none any more; a rule looks before it builds")
    return array
