"""What a convolution or a pooling op reads for one output, the weights that it reads it with, and grids of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from .rule import Array, Maker, array_of, attribute, is_op, producer

Grid = tuple[float, int, str]  # scale, zero point and type of what is quantised


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, steps and padding along each spatial axis, with automatic padding worked out."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]  # padding before the first element
    ends: tuple[int, ...]  # and after the last

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def is_padded(self) -> bool:
        return any(self.begins) or any(self.ends)

    @property
    def reach(self) -> tuple[int, ...]:
        """Elements from the first that a window reads to the last."""
        return tuple((size - 1) * step + 1 for size, step in zip(self.kernel, self.dilations, strict=True))

    def attributes(self) -> dict[str, Any]:
        return {
            "kernel_shape": list(self.kernel),
            "strides": list(self.strides),
            "dilations": list(self.dilations),
            "pads": [*self.begins, *self.ends],
        }

    def outputs(self, extents: Sequence[int]) -> tuple[int, ...]:
        """Windows along each axis of that many elements, the last ones whole."""
        return tuple(
            (extent + begin + end - reach) // stride + 1
            for extent, begin, end, reach, stride in zip(
                extents, self.begins, self.ends, self.reach, self.strides, strict=True
            )
        )


def window_of(node: ir.Node, kernel: Sequence[int] | None = None) -> Window | None:
    """The window of a Conv, ConvTranspose or pooling op; None where its padding depends on what is not known."""
    shape: Sequence[int] | None = kernel if kernel is not None else attribute(node, "kernel_shape")
    if not shape:
        return None
    size, rank = tuple(shape), len(shape)
    strides = tuple(attribute(node, "strides", (1,) * rank))
    dilations = tuple(attribute(node, "dilations", (1,) * rank))
    pads = tuple(attribute(node, "pads", (0,) * 2 * rank))
    if len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank or min(pads) < 0:
        return None
    plain = Window(size, strides, dilations, (0,) * rank, (0,) * rank)
    automatic = attribute(node, "auto_pad", "NOTSET")
    if automatic == "VALID":
        return plain
    if automatic == "NOTSET":
        return Window(size, strides, dilations, pads[:rank], pads[rank:])
    extents = extents_of(node.inputs[0])[2:]
    if node.op_type == "ConvTranspose" or len(extents) != rank or None in extents:
        return None
    totals = [
        max(0, (-(-extent // stride) - 1) * stride + reach - extent)
        for extent, stride, reach in zip((e or 0 for e in extents), strides, plain.reach, strict=True)
    ]
    less, more = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    begins, ends = (more, less) if automatic == "SAME_LOWER" else (less, more)
    return Window(size, strides, dilations, begins, ends)


def extents_of(value: ir.Value | None) -> tuple[int | None, ...]:
    """Elements along each axis, None where that is not fixed; nothing where not even the number of axes is known."""
    if value is None or value.shape is None:
        return ()
    return tuple(extent if isinstance(extent, int) else None for extent in value.shape)


@dataclass(frozen=True, slots=True)
class Weights:
    """A constant operand, as it is or dequantised by an op of its own."""

    array: Array
    dequantize: ir.Node | None = None

    @property
    def zero(self) -> Any:
        """What stands for nothing in the array; None where that differs from channel to channel."""
        inputs = () if self.dequantize is None else self.dequantize.inputs
        points = array_of(inputs[2]) if len(inputs) > 2 else None
        if points is None:
            return self.array.dtype.type(0)
        return points.ravel()[0] if np.all(points == points.ravel()[0]) else None

    @property
    def by_axis(self) -> int | None:
        """The axis along which the scales differ; None where there is one for all."""
        scale = None if self.dequantize is None else array_of(self.dequantize.inputs[1])
        if self.dequantize is None or scale is None or scale.size == 1:
            return None
        return int(attribute(self.dequantize, "axis", 1)) % self.array.ndim

    def made(self, make: Maker, array: Array, like: str = "weights") -> ir.Value:
        """Elements that take the place of these, dequantised as these are."""
        value = make.constant(np.ascontiguousarray(array, self.array.dtype), like)
        if self.dequantize is None:
            return value
        axis = attribute(self.dequantize, "axis")
        return make.op(
            "DequantizeLinear",
            value,
            *self.dequantize.inputs[1:],
            dtype=self.dequantize.outputs[0].dtype,
            **({} if axis is None else {"axis": axis}),
        )


def weights_of(value: ir.Value | None) -> Weights | None:
    """What is known of a constant operand; None where it is computed, or quantised in blocks."""
    array = array_of(value)
    if array is not None:
        return Weights(array)
    node = producer(value, "DequantizeLinear")
    stored = None if node is None else array_of(node.inputs[0])
    if node is None or stored is None or attribute(node, "block_size", 0):
        return None
    return Weights(stored, node) if all(each is None or array_of(each) is not None for each in node.inputs) else None


def grid_of(node: ir.Node | None) -> Grid | None:
    """The grid of a QuantizeLinear or DequantizeLinear with one scale for all; None for others."""
    if node is None or not is_op(node, "QuantizeLinear", "DequantizeLinear"):
        return None
    scale, given = array_of(node.inputs[1]), node.inputs[2] if len(node.inputs) > 2 else None
    zero = None if given is None else array_of(given)
    if scale is None or scale.size != 1 or (given is not None and (zero is None or zero.size != 1)):
        return None
    if any(attribute(node, name, 0) for name in ("block_size", "output_dtype")):
        return None
    stored = node.inputs[0] if is_op(node, "DequantizeLinear") else node.outputs[0]
    kind = zero.dtype.name if zero is not None else str(stored.dtype) if stored is not None else ""
    return float(scale.ravel()[0]), 0 if zero is None else int(zero.ravel()[0]), kind


def pair_of(value: ir.Value | None) -> tuple[ir.Node, ir.Node] | None:
    """The QuantizeLinear and the DequantizeLinear, on one grid, that put a value on it."""
    second = producer(value, "DequantizeLinear")
    first = None if second is None else producer(second.inputs[0], "QuantizeLinear")
    return (
        None
        if first is None or second is None or grid_of(first) is None or grid_of(first) != grid_of(second)
        else (first, second)
    )


def moved_from(value: ir.Value | None, *kinds: tuple[str, ...]) -> tuple[ir.Value, list[ir.Node], list[ir.Node]] | None:
    """What a chain of ops that only move elements, of these kinds from the last to the first, starts from.

    With it, the ops of those kinds, and all that lie between. Pairs on the grid of the source change nothing.
    """
    moves, nodes, grids = list[ir.Node](), list[ir.Node](), set()
    for kind in kinds:
        pair = pair_of(value)
        node = producer(value if pair is None else pair[0].inputs[0], *kind)
        if node is None:
            return None
        if pair is not None:
            nodes += pair[::-1]
            grids.add(grid_of(pair[0]))
        moves.append(node)
        nodes.append(node)
        value = node.inputs[0]
    if value is None or (grids and grids != {grid_of(producer(value))}):
        return None
    return value, moves, nodes


def on_grid_of(make: Maker, value: ir.Value, source: ir.Value) -> ir.Value:
    """What was moved of a source, with a pair after it where the source is on a grid: so quantised models have it."""
    node = producer(source, "DequantizeLinear")
    if node is None or grid_of(node) is None or node.inputs[0] is None:
        return value
    stored = make.op("QuantizeLinear", value, *node.inputs[1:], dtype=node.inputs[0].dtype)
    return make.op("DequantizeLinear", stored, *node.inputs[1:], dtype=value.dtype)
