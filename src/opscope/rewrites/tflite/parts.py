"""Tensors taken apart and put together: slices, splits and squares of pixels; functions spelt out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from .rule import (
    NO_ACTIVATION,
    RELU6,
    Graph,
    Maker,
    Match,
    Op,
    Tensor,
    activation,
    array_of,
    is_alike,
    is_float,
    numbers_of,
    options,
    shape_of,
)
from .windows import squares


def split_to_slices(op: Op, graph: Graph) -> Match | None:
    """SPLIT as one slice for each part."""
    source, axis = op.inputs[1::-1] if op.kind == "SPLIT" and len(op.inputs) == 2 else (None, None)
    shape, number = shape_of(source), numbers_of(axis)
    shapes = [shape_of(each) for each in op.outputs]
    if source is None or shape is None or number is None or None in shapes:
        return None
    if not all(is_alike(source, each) for each in op.outputs):
        return None
    place = number[0] % len(shape)

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        made, start = {}, 0
        for result, part in zip(op.outputs, shapes, strict=True):
            begin = [start if axis == place else 0 for axis in range(len(shape))]
            bounds = [make.constant(each, name=name) for each, name in ((begin, "begin"), (list(part or ()), "size"))]
            made[result] = make.op("SLICE", source, *bounds, like=result, options=options("SliceOptions"))
            start += (part or ())[place]
        return made

    return Match((op,), build)


def slices_to_split(op: Op, graph: Graph) -> Match | None:
    """Slices that take a tensor apart along one axis, all of one size, as SPLIT."""
    source = op.inputs[0] if op.kind in ("SLICE", "STRIDED_SLICE") else None
    shape = shape_of(source)
    if source is None or shape is None:
        return None
    readers = [each for each in dict.fromkeys(graph.readers(source)) if each.kind in ("SLICE", "STRIDED_SLICE")]
    cuts = [(cut, each) for each in readers if (cut := _range(each)) is not None and is_alike(source, each.outputs[0])]
    own = next((cut for cut, each in cuts if each is op), None)
    if own is None or len(cuts) < 2:
        return None
    axis, _, size = own
    alike = [(start, each) for (place, start, length), each in cuts if place == axis and length == size]
    same = sorted(alike, key=lambda pair: pair[0])
    if [start for start, _ in same] != list(range(0, shape[axis], size)) or same[0][1] is not op:
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        place = make.constant(np.asarray(axis, np.int32), name="axis")
        part = (*shape[:axis], size, *shape[axis + 1 :])
        count = options("SplitOptions", numSplits=len(same))
        taken = make.parts("SPLIT", place, source, like=op.outputs[0], shapes=[part] * len(same), options=count)
        return {each.outputs[0]: new for (_, each), new in zip(same, taken, strict=True)}

    return Match([each for _, each in same], build)


def _range(op: Op) -> tuple[int, int, int] | None:
    """Axis, first element and length of a slice that cuts one axis only."""
    shape, result = shape_of(op.inputs[0]), shape_of(op.outputs[0])
    begin = numbers_of(op.inputs[1])
    if shape is None or result is None or begin is None or len(result) != len(shape) or len(begin) != len(shape):
        return None
    if op.kind == "STRIDED_SLICE":
        given, steps = op.options, numbers_of(op.inputs[3])
        if steps is None or set(steps) != {1} or given.ellipsisMask or given.newAxisMask or given.shrinkAxisMask:
            return None
        if getattr(given, "offset", False):
            return None
        begin = [0 if given.beginMask >> axis & 1 else first for axis, first in enumerate(begin)]
    cut = [axis for axis in range(len(shape)) if shape[axis] != result[axis]]
    if len(cut) != 1 or min(begin) < 0:
        return None
    return cut[0], begin[cut[0]], result[cut[0]]


def slices_to_space_to_depth(op: Op, graph: Graph) -> Match | None:
    """Strided slices of rows and columns, joined, as SPACE_TO_DEPTH, where they are in its order."""
    found = squares(op.outputs[0], graph) if op.kind == "CONCATENATION" else None
    if found is None or found[2] != sorted(found[2]) or not is_alike(found[0], op.outputs[0]):
        return None
    source, block, _, pattern = found

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        square = options("SpaceToDepthOptions", blockSize=block)
        return {op.outputs[0]: make.op("SPACE_TO_DEPTH", source, like=op.outputs[0], options=square)}

    return Match(pattern, build)


def hard_swish(op: Op, graph: Graph) -> Match | None:
    """x · relu6(x + 3) / 6, spelt out in floats, as HARD_SWISH."""
    if op.kind != "MUL" or activation(op) or not is_float(*op.inputs):
        return None
    for number in (0, 1):
        x, gate = op.inputs[number], op.inputs[1 - number]
        found = _gate(gate, x, graph)
        if found is not None and x is not None and graph.only_reader(found[0].outputs[0]) is not None:
            return Match((op, *found), partial(_make_hard_swish, op.outputs[0], x))
    return None


def _make_hard_swish(result: Tensor, x: Tensor, make: Maker) -> Mapping[Tensor, Tensor]:
    return {result: make.op("HARD_SWISH", x, like=result, options=options("HardSwishOptions"))}


def _gate(gate: Tensor | None, x: Tensor | None, graph: Graph) -> tuple[Op, ...] | None:
    """The operators of relu6(x + 3) / 6."""
    scaled = graph.writer(gate, "MUL", "DIV")
    if scaled is None or activation(scaled) != NO_ACTIVATION:
        return None
    wanted = 6.0 if scaled.kind == "DIV" else 1 / 6
    for number in (1,) if scaled.kind == "DIV" else (0, 1):
        if _is_number(scaled.inputs[number], wanted):
            clipped = _clipped(scaled.inputs[1 - number], x, graph)
            return None if clipped is None else (scaled, *clipped)
    return None


def _clipped(tensor: Tensor | None, x: Tensor | None, graph: Graph) -> tuple[Op, ...] | None:
    """The operators of relu6(x + 3)."""
    last = graph.writer(tensor, "RELU6", "ADD")
    total = graph.writer(last.inputs[0], "ADD") if last is not None and last.kind == "RELU6" else last
    if last is None or total is None or activation(total) != (RELU6 if last is total else NO_ACTIVATION):
        return None
    for number in (0, 1):
        if total.inputs[1 - number] is x and _is_number(total.inputs[number], 3.0):
            return (last,) if last is total else (last, total)
    return None


def _is_number(tensor: Tensor | None, wanted: float) -> bool:
    values = array_of(tensor)
    return values is not None and values.size == 1 and bool(np.isclose(values.ravel()[0], wanted, rtol=1e-6))
