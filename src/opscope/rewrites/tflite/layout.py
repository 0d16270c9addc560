"""How values lie in memory: transposes and reshapes merged, and operators that do nothing gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from .rule import (
    Graph,
    Maker,
    Match,
    Op,
    Shape,
    Tensor,
    array_of,
    extents,
    is_alike,
    numbers_of,
    options,
    shape_of,
)

_MOST_AXES = 4  # that compilers for integers take
RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


def reshape(make: Maker, x: Tensor, shape: Shape, like: Tensor) -> Tensor:
    """Add a reshape; one extent may be -1."""
    given = make.constant(list(shape), name="shape")
    return make.op("RESHAPE", x, given, like=like, shape=shape, options=options("ReshapeOptions", newShape=list(shape)))


def transpose(make: Maker, x: Tensor, order: Sequence[int], like: Tensor) -> Tensor:
    """Add a transpose."""
    shape = extents(x) or ()
    permutation = make.constant(list(order), name="permutation")
    moved = [shape[axis] for axis in order]
    return make.op("TRANSPOSE", x, permutation, like=like, shape=moved, options=options("TransposeOptions"))


def merge_transposes(op: Op, graph: Graph) -> Match | None:
    """Two transposes, one after the other, are one; where they undo each other, none."""
    first = graph.writer(op.inputs[0], "TRANSPOSE") if op.kind == "TRANSPOSE" else None
    if first is None or first.inputs[0] is None or not is_alike(first.inputs[0], op.outputs[0]):
        return None
    source, outer, inner = first.inputs[0], numbers_of(op.inputs[1]), numbers_of(first.inputs[1])
    if outer is None or inner is None or len(outer) != len(inner) or extents(source) is None:
        return None
    order = [inner[axis] for axis in outer]

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        is_same = order == sorted(order)
        return {op.outputs[0]: source if is_same else transpose(make, source, order, op.outputs[0])}

    return Match((op, first), build)


def merge_reshapes(op: Op, graph: Graph) -> Match | None:
    """Reshapes, one after the other, are the last one, or none where it gives the shape that there was."""
    first = graph.writer(op.inputs[0], *RESHAPES) if op.kind in RESHAPES else None
    if first is None or first.inputs[0] is None or not is_alike(first.inputs[0], op.outputs[0]):
        return None
    source, shape = first.inputs[0], _target(op)
    if shape is None:
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        is_same = shape == extents(source)
        return {op.outputs[0]: source if is_same else reshape(make, source, shape, op.outputs[0])}

    return Match((op, first), build)


def _target(op: Op) -> Shape | None:
    """The shape that a reshape gives, where one extent at the most is open."""
    shape = extents(op.outputs[0])
    return shape if shape is not None and sum(extent < 0 for extent in shape) <= 1 and 0 not in shape else None


def reshapes_as_one_kind(op: Op, graph: Graph) -> Match | None:
    """SQUEEZE and EXPAND_DIMS, as around a convolution of one axis, are a RESHAPE."""
    shape = _target(op) if op.kind in ("SQUEEZE", "EXPAND_DIMS") else None
    source = op.inputs[0] if op.inputs else None
    if shape is None or source is None or not is_alike(source, op.outputs[0]):
        return None
    return Match((op,), lambda make: {op.outputs[0]: reshape(make, source, shape, op.outputs[0])})


def transpose_to_reshape(op: Op, graph: Graph) -> Match | None:
    """A transpose that keeps the order of all axes longer than 1 is a reshape."""
    source = op.inputs[0] if op.kind == "TRANSPOSE" else None
    shape, order, target = shape_of(source), numbers_of(op.inputs[1]) if source else None, _target(op)
    if source is None or shape is None or order is None or target is None or not is_alike(source, op.outputs[0]):
        return None
    long = [axis for axis in order if shape[axis] != 1]
    if long != sorted(long) or order == sorted(order):
        return None
    return Match((op,), lambda make: {op.outputs[0]: reshape(make, source, target, op.outputs[0])})


def narrow_transpose(op: Op, graph: Graph) -> Match | None:
    """A transpose of more than four axes is one of fewer, where axes stay beside each other or have one element."""
    source = op.inputs[0] if op.kind == "TRANSPOSE" else None
    shape, order, target = shape_of(source), numbers_of(op.inputs[1]) if source else None, _target(op)
    if source is None or shape is None or order is None or target is None or not is_alike(source, op.outputs[0]):
        return None
    runs: list[list[int]] = []  # axes that stay beside each other, in the order of the result
    axes = [axis for axis in range(len(shape)) if shape[axis] != 1]
    for axis in (each for each in order if shape[each] != 1):
        follows = runs and axes.index(axis) == axes.index(runs[-1][-1]) + 1
        runs = [*runs[:-1], [*runs[-1], axis]] if follows else [*runs, [axis]]
    if len(shape) <= _MOST_AXES or not 1 < len(runs) < len(shape):
        return None
    merged = sorted(runs)
    sizes = tuple(prod(shape[axis] for axis in run) for run in merged)

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        flat = reshape(make, source, sizes, op.outputs[0])
        moved = transpose(make, flat, [merged.index(run) for run in runs], op.outputs[0])
        return {op.outputs[0]: reshape(make, moved, target, op.outputs[0])}

    return Match((op,), build)


def flatten_mean(op: Op, graph: Graph) -> Match | None:
    """A mean over the last of many axes is one over the last of two."""
    source = op.inputs[0] if op.kind == "MEAN" else None
    shape, axes, target = shape_of(source), numbers_of(op.inputs[1]) if source else None, _target(op)
    if source is None or shape is None or axes is None or target is None or 0 in shape:
        return None
    if [axis % len(shape) for axis in axes] != [len(shape) - 1] or sum(extent > 1 for extent in shape[:-1]) < 2:
        return None
    rows = prod(shape[:-1])

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        flat, axis = reshape(make, source, (rows, shape[-1]), source), make.constant([1], name="axis")
        keep = options("ReducerOptions", keepDims=True)
        means = make.op("MEAN", flat, axis, like=op.outputs[0], shape=(rows, 1), options=keep)
        return {op.outputs[0]: reshape(make, means, target, op.outputs[0])}

    return Match((op,), build)


def gather_to_slice(op: Op, graph: Graph) -> Match | None:
    """GATHER of one index, or of neighbours in their order, is a SLICE, and a RESHAPE where the axis goes."""
    source = op.inputs[0] if op.kind == "GATHER" else None
    shape, index, target = shape_of(source), numbers_of(op.inputs[1]) if source else None, _target(op)
    if source is None or shape is None or not index or target is None or not is_alike(source, op.outputs[0]):
        return None
    axis = op.options.axis % len(shape)
    if op.options.batchDims or index != list(range(index[0], index[0] + len(index))) or index[0] < 0:
        return None
    size = (*shape[:axis], len(index), *shape[axis + 1 :])
    if index[-1] >= shape[axis] or prod(size) != prod(target):
        return None

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        begin = make.constant([index[0] if each == axis else 0 for each in range(len(shape))], name="begin")
        bounds = begin, make.constant(list(size), name="size")
        cut = make.op("SLICE", source, *bounds, like=op.outputs[0], shape=size, options=options("SliceOptions"))
        return {op.outputs[0]: cut if size == target else reshape(make, cut, target, op.outputs[0])}

    return Match((op,), build)


def drop_no_ops(op: Op, graph: Graph) -> Match | None:
    """An operator whose result is its input is not needed."""
    source = _unchanged(op)
    if source is None or not is_alike(source, op.outputs[0]) or extents(source) != extents(op.outputs[0]):
        return None
    return Match((op,), lambda make: {op.outputs[0]: source})


_KEEP_ALL = frozenset(  # where the result has the shape and the type of the input, it is the input
    ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "CAST", "QUANTIZE", "SLICE", "BROADCAST_TO", "PAD", "PADV2", "MIRROR_PAD")
)
_KEEP_ALL |= {"SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "RESIZE_NEAREST_NEIGHBOR"}


def _unchanged(op: Op) -> Tensor | None:
    """What an operator passes on as it is, if shapes and types say no otherwise."""
    source = op.inputs[0] if op.inputs else None
    if source is None or extents(source) is None or len(op.outputs) != 1:
        return None
    if op.kind == "TRANSPOSE":
        order = numbers_of(op.inputs[1])
        return source if order is not None and order == sorted(order) else None
    if op.kind == "STRIDED_SLICE":
        steps = numbers_of(op.inputs[3])
        return source if steps is not None and set(steps) == {1} else None
    if op.kind == "CONCATENATION":
        return source if len(op.inputs) == 1 and not op.options.fusedActivationFunction else None
    if op.kind == "TILE":
        times = numbers_of(op.inputs[1])
        return source if times is not None and set(times) == {1} else None
    if op.kind in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "CAST", "QUANTIZE"):
        return source
    # An open extent could hide that something is cut off or added.
    return source if op.kind in _KEEP_ALL and shape_of(source) is not None else None


def fold_dequantized_constants(op: Op, graph: Graph) -> Match | None:
    """Weights that are stored as f16 and dequantised are stored as f32."""
    values = array_of(op.inputs[0]) if op.kind == "DEQUANTIZE" else None
    if values is None or values.dtype.name != "float16":
        return None
    return Match((op,), lambda make: {op.outputs[0]: make.constant(values.astype("f4"), name="weights")})
