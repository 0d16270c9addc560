"""Products with trained weights: their forms, and factors and offsets around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from .layout import reshape, transpose
from .rule import (
    INT8,
    NO_ACTIVATION,
    VALID,
    Array,
    Graph,
    Maker,
    Match,
    Op,
    Shape,
    Tensor,
    activation,
    array_of,
    extents,
    is_alike,
    is_float,
    numbers_of,
    options,
    scale_of,
    shape_of,
    with_options,
)

_WEIGHTED = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0}  # axis of the units in the weights


def dense_to_conv(op: Op, graph: Graph) -> Match | None:
    """FULLY_CONNECTED is a convolution of one pixel; in integers the two round otherwise."""
    source, weights = op.inputs[:2] if op.kind == "FULLY_CONNECTED" else (None, None)
    shape, values, target = shape_of(source), array_of(weights), shape_of(op.outputs[0])
    if source is None or shape is None or values is None or target is None or not is_float(source, weights):
        return None
    if op.options.weightsFormat or 0 in shape or (len(shape) > 1 and shape[-1] != values.shape[1]):
        return None
    rows = int(np.prod(shape)) // values.shape[1]

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        pixels = reshape(make, source, (1, 1, rows, values.shape[1]), source)
        kernel = make.constant(values.reshape(values.shape[0], 1, 1, values.shape[1]), name="weights")
        bias = op.inputs[2] if len(op.inputs) > 2 else None
        bias = bias or make.constant(np.zeros(values.shape[0], np.float32), name="bias")
        unit = options("Conv2DOptions", padding=VALID, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
        unit.fusedActivationFunction = activation(op)  # type: ignore[attr-defined]
        made = (1, 1, rows, values.shape[0])
        result = make.op("CONV_2D", pixels, kernel, bias, like=op.outputs[0], shape=made, options=unit)
        return {op.outputs[0]: reshape(make, result, target, op.outputs[0])}

    return Match((op,), build)


def conv_to_dense(op: Op, graph: Graph) -> Match | None:
    """A convolution of one pixel is FULLY_CONNECTED; in integers the two round otherwise."""
    source, weights = op.inputs[:2] if op.kind == "CONV_2D" else (None, None)
    shape, values = extents(source), array_of(weights)
    if source is None or shape is None or values is None or not is_float(source, weights):
        return None
    given = op.options
    if values.shape[1:3] != (1, 1) or (given.strideH, given.strideW) != (1, 1) or values.shape[3] != shape[3]:
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        flat = make.constant(values.reshape(values.shape[0], values.shape[3]), name="weights")
        dense = options("FullyConnectedOptions", keepNumDims=True, fusedActivationFunction=activation(op))
        return {
            op.outputs[0]: make.op("FULLY_CONNECTED", source, flat, *op.inputs[2:], like=op.outputs[0], options=dense)
        }

    return Match((op,), build)


def batch_product_to_dense(op: Op, graph: Graph) -> Match | None:
    """BATCH_MATMUL with a constant matrix is FULLY_CONNECTED."""
    source, weights = op.inputs[:2] if op.kind == "BATCH_MATMUL" else (None, None)
    shape, values, scale = extents(source), array_of(weights), None if weights is None else scale_of(weights)
    if source is None or weights is None or shape is None or values is None or len(shape) < 2 or op.options.adjX:
        return None
    if values.ndim > len(shape) or any(extent != 1 for extent in values.shape[:-2]) or values.ndim < 2:
        return None
    is_plain = is_float(source, weights) or (
        source.dtype == weights.dtype == INT8 and scale is not None and scale.zero_points == (0,)
    )
    if not is_plain or len(extents(op.outputs[0]) or ()) != len(shape):
        return None
    matrix = values.reshape(values.shape[-2:])
    rows = matrix if op.options.adjY else matrix.T

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        flat = make.constant(np.ascontiguousarray(rows), like=weights, name="weights")
        dense = options("FullyConnectedOptions", keepNumDims=len(shape) > 2)
        return {op.outputs[0]: make.op("FULLY_CONNECTED", source, flat, None, like=op.outputs[0], options=dense)}

    return Match((op,), build)


def fold_scale(op: Op, graph: Graph) -> Match | None:
    """A factor or an offset per unit after a product of floats is part of its weights or bias."""
    if op.kind not in ("MUL", "ADD", "SUB") or len(op.inputs) != 2 or not is_float(*op.inputs):
        return None
    constants = [array_of(each) for each in op.inputs]
    if sum(each is not None for each in constants) != 1 or (op.kind == "SUB" and constants[1] is None):
        return None
    number = 0 if constants[0] is not None else 1
    values, data = cast("Array", constants[number]), op.inputs[1 - number]
    first = graph.writer(data, *_WEIGHTED)
    if first is None or data is None or graph.only_reader(data) is not op or activation(first) != NO_ACTIVATION:
        return None
    weights, units = array_of(first.inputs[1]), (extents(data) or (0,))[-1]
    bias = array_of(first.inputs[2]) if len(first.inputs) > 2 and first.inputs[2] is not None else None
    has_other_bias = bias is None and len(first.inputs) > 2 and first.inputs[2] is not None
    if weights is None or has_other_bias or not is_float(first.inputs[1]) or units < 1:
        return None
    if values.size not in (1, units) or (values.size > 1 and values.shape[-1] != units):
        return None
    if extents(op.outputs[0]) != extents(data):
        return None
    each = np.broadcast_to(values.ravel(), (units,)).astype(np.float32)
    bias = np.zeros(units, np.float32) if bias is None else bias

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        kernel = first.inputs[1]
        if op.kind == "MUL":
            shape = [1] * weights.ndim
            shape[_WEIGHTED[first.kind]] = units
            kernel = make.constant(weights * each.reshape(shape), name="weights")
        sums = {"MUL": bias * each, "ADD": bias + each, "SUB": bias - each}[op.kind]
        fused = with_options(first, fusedActivationFunction=activation(op))
        offset = make.constant(sums.astype(np.float32), name="bias")
        result = make.op(first.kind, first.inputs[0], kernel, offset, like=op.outputs[0], options=fused)
        make.ops[-1].code = first.code
        return {op.outputs[0]: result}

    return Match((op, first), build)


def split_packed_projection(op: Op, graph: Graph) -> Match | None:
    """One projection of query, key and value, taken apart by a transpose of five axes, as one projection for each."""
    dense = graph.writer(op.inputs[0], "FULLY_CONNECTED") if op.kind == "RESHAPE" else None
    moved = graph.only_reader(op.outputs[0], "TRANSPOSE") if dense is not None else None
    if dense is None or moved is None or graph.only_reader(dense.outputs[0]) is not op:
        return None
    joint, order = shape_of(op.outputs[0]), numbers_of(moved.inputs[1])
    weights, offsets = array_of(dense.inputs[1]), array_of(dense.inputs[2]) if len(dense.inputs) > 2 else None
    has_other_bias = offsets is None and len(dense.inputs) > 2 and dense.inputs[2] is not None
    if joint is None or order is None or len(joint) < 4 or weights is None or has_other_bias or activation(dense):
        return None
    shape, scale = shape_of(dense.outputs[0]), scale_of(cast("Tensor", dense.inputs[1]))
    takes = _takes(moved.outputs[0], graph)
    alike = all(is_alike(dense.outputs[0], each) for each in (op.outputs[0], moved.outputs[0]))
    if shape is None or not takes or not alike or joint[: len(shape) - 1] != shape[:-1] or dense.options.weightsFormat:
        return None
    axis, units = order[0], weights.shape[0]  # the axis that is taken apart is the first after the transpose
    if axis != len(shape) - 1 or units != int(np.prod(joint[axis:])) or not dense.options.keepNumDims:
        return None
    if scale is not None and len(scale.scales) != 1:
        return None
    count, part = joint[axis], units // joint[axis]
    rest = [place - (place > axis) for place in order[1:]]

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        made = {}
        for _, result, number in takes:
            rows = slice(number * part, (number + 1) * part)
            kernel = make.constant(weights[rows], like=dense.inputs[1], name="weights")
            bias = None if offsets is None else make.constant(offsets[rows], like=dense.inputs[2], name="bias")
            like, extents = dense.outputs[0], (*shape[:-1], part)
            operands = (dense.inputs[0], kernel, bias)
            own = make.op("FULLY_CONNECTED", *operands, like=like, shape=extents, options=dense.options)
            make.ops[-1].code = dense.code
            heads = reshape(make, own, (*joint[:axis], *joint[axis + 1 :]), like)
            made[result] = transpose(make, heads, rest, result)
        return made

    in_range = all(0 <= number < count and is_alike(result, dense.outputs[0]) for _, result, number in takes)
    return Match((op, dense, moved, *dict.fromkeys(take for take, *_ in takes)), build) if in_range else None


def _takes(tensor: Tensor, graph: Graph) -> list[tuple[Op, Tensor, int]]:
    """What reads a tensor, if all takes one slice of its first axis each, which goes: reader, result, number."""
    found: list[tuple[Op, Tensor, int]] = []
    for op in graph.readers(tensor):
        taken = _taken(op, shape_of(tensor) or ())
        if not taken:
            return []
        found += [(op, result, number) for result, number in taken]
    return [] if graph.is_result(tensor) else found


def _taken(op: Op, shape: Shape) -> list[tuple[Tensor, int]]:
    """Results that are one slice of the first axis each, and which."""
    if op.kind == "UNPACK":
        return [] if op.options.axis else [(result, number) for number, result in enumerate(op.outputs)]
    number = numbers_of(op.inputs[1]) if op.kind in ("GATHER", "STRIDED_SLICE") else None
    if not number or shape_of(op.outputs[0]) != shape[1:]:
        return []
    given = op.options
    if op.kind == "GATHER":
        return [] if given.axis or given.batchDims or extents(op.inputs[1]) else [(op.outputs[0], number[0])]
    steps = numbers_of(op.inputs[3])
    if (
        given.shrinkAxisMask != 1
        or given.ellipsisMask
        or given.newAxisMask
        or given.beginMask & 1
        or set(steps or ()) != {1}
    ):
        return []
    return [(op.outputs[0], number[0])]  # the other axes are whole, as the shape of the result says
