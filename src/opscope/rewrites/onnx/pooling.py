"""Pooling: over all of a picture, in its four forms, and over large windows, as chains of small ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from .rule import Maker, Match, Shape, attribute, gives_more, is_op, numbers_of, opset_of, shape_of
from .windows import Window, extents_of, window_of

LARGE = 5  # taps along an axis: what kernels of vendors are made for ends at 3 to 5
AXES_AS_INPUT = {"ReduceMean": 18, "ReduceMax": 18}  # the version from which axes are no attribute
FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)
REDUCED = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}
GLOBAL = {reduced: pool for pool, reduced in REDUCED.items()}
WINDOWED = {"GlobalAveragePool": "AveragePool", "GlobalMaxPool": "MaxPool"}


def global_pool_to_reduce(node: ir.Node) -> Match | None:
    """GlobalAveragePool or GlobalMaxPool → ReduceMean or ReduceMax over the spatial axes."""
    rank = len(extents_of(node.inputs[0])) if is_op(node, *REDUCED) else 0
    if rank < 3:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {node.outputs[0]: _reduced(make, node, REDUCED[node.op_type], list(range(2, rank)))}

    return Match((node,), build)


def reduce_to_global_pool(node: ir.Node) -> Match | None:
    """ReduceMean or ReduceMax over all spatial axes → GlobalAveragePool or GlobalMaxPool, squeezed where it was."""
    shape = extents_of(node.inputs[0]) if is_op(node, *GLOBAL) and node.outputs[0].dtype in FLOATS else ()
    axes = numbers_of(node.inputs[1]) if len(node.inputs) > 1 else attribute(node, "axes")
    if (
        len(shape) not in (3, 4, 5)
        or not axes
        or sorted(axis % len(shape) for axis in axes) != list(range(2, len(shape)))
    ):
        return None
    kept = attribute(node, "keepdims", 1)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        pooled = make.op(GLOBAL[node.op_type], node.inputs[0], shape=_pooled(node.inputs[0]))
        return {node.outputs[0]: pooled if kept else make.op("Flatten", pooled, axis=1)}

    return Match((node,), build)


def global_pool_to_window(node: ir.Node) -> Match | None:
    """GlobalAveragePool or GlobalMaxPool → AveragePool or MaxPool with a window as large as the picture."""
    extents = extents_of(node.inputs[0])[2:] if is_op(node, *WINDOWED) else ()
    if not extents or None in extents:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        shape = _pooled(node.inputs[0])
        return {node.outputs[0]: make.op(WINDOWED[node.op_type], node.inputs[0], shape=shape, kernel_shape=[*extents])}

    return Match((node,), build)


def window_to_global_pool(node: ir.Node) -> Match | None:
    """AveragePool or MaxPool with a window as large as the picture → GlobalAveragePool or GlobalMaxPool."""
    window = window_of(node) if is_op(node, *WINDOWED.values()) and node.outputs[0].dtype in FLOATS else None
    if window is None or window.is_padded or window.reach != extents_of(node.inputs[0])[2:] or gives_more(node):
        return None
    if any(step > 1 and size > 1 for step, size in zip(window.dilations, window.kernel, strict=True)):
        return None
    pool = next(pool for pool, windowed in WINDOWED.items() if windowed == node.op_type)
    return Match((node,), lambda make: {node.outputs[0]: make.op(pool, node.inputs[0], shape=_pooled(node.inputs[0]))})


def global_average_to_matmul(node: ir.Node) -> Match | None:
    """GlobalAveragePool → a product with a column of equal parts."""
    shape = shape_of(node.inputs[0]) if is_op(node, "GlobalAveragePool") else None
    dtype = None if shape is None else node.outputs[0].dtype
    if shape is None or dtype is None or dtype not in FLOATS[:3] or len(shape) < 3:
        return None
    count = int(np.prod(shape[2:]))

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        flat = make.op(
            "Reshape", node.inputs[0], make.constant([*shape[:2], count], "shape"), shape=(*shape[:2], count)
        )
        parts = make.constant(np.full((count, 1), 1 / count, dtype.numpy()), "parts")
        mean = make.op("MatMul", flat, parts, shape=(*shape[:2], 1))
        spread = (*shape[:2], *[1] * (len(shape) - 2))
        return {node.outputs[0]: make.op("Reshape", mean, make.constant([*spread], "shape"), shape=spread)}

    return Match((node,), build)


def global_max_by_axis(node: ir.Node) -> Match | None:
    """GlobalMaxPool, or ReduceMax over several axes, → ReduceMax over one axis after the other."""
    shape = extents_of(node.inputs[0]) if is_op(node, "GlobalMaxPool", "ReduceMax") else ()
    axes = numbers_of(node.inputs[1]) if len(node.inputs) > 1 else attribute(node, "axes")
    axes, kept = list(range(2, len(shape))) if is_op(node, "GlobalMaxPool") else axes, attribute(node, "keepdims", 1)
    if not shape or not axes or len(axes) < 2:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = node.inputs[0]
        for axis in sorted((axis % len(shape) for axis in axes), reverse=True):  # without keepdims the others stay
            value = _reduced(make, node, "ReduceMax", [axis], source=value, keepdims=kept)
        return {} if value is None else {node.outputs[0]: value}

    return Match((node,), build)


def share_max_pools(node: ir.Node) -> Match | None:
    """A MaxPool of stride 1 beside a smaller one of the same value → a MaxPool of what the smaller one gives."""
    window = _same_sized(node)
    if window is None or node.inputs[0] is None:
        return None
    smaller = [(found, other) for other in node.inputs[0].consumers() if (found := _same_sized(other)) is not None]
    smaller = [pair for pair in smaller if pair[1] is not node and _is_inside(pair[0], window)]
    if not smaller:
        return None
    inner, other = max(smaller, key=lambda pair: pair[0].kernel)
    kernel = tuple(size - less + 1 for size, less in zip(window.kernel, inner.kernel, strict=True))
    pads = tuple(size // 2 for size in kernel)
    rest = Window(kernel, window.strides, window.dilations, pads, pads)

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        shape = shape_of(node.outputs[0])
        return {node.outputs[0]: make.op("MaxPool", other.outputs[0], shape=shape, **rest.attributes())}

    return Match((node,), build)


def split_large_max_pool(node: ir.Node) -> Match | None:
    """A MaxPool of a large window → a chain of MaxPools of small ones."""
    window = window_of(node) if is_op(node, "MaxPool") else None
    if window is None or gives_more(node) or attribute(node, "ceil_mode", 0) or set(window.dilations) != {1}:
        return None
    chain = _chain(window)
    if len(chain) < 2:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = node.inputs[0]
        for stage in chain:
            value = make.op("MaxPool", value, **stage.attributes())
        return {} if value is None else {node.outputs[0]: value}

    return Match((node,), build)


def average_pool_to_conv(node: ir.Node) -> Match | None:
    """AveragePool that counts its padding, or has none, → a depthwise convolution with equal weights."""
    window = window_of(node) if is_op(node, "AveragePool") else None
    channels, dtype = (
        (*extents_of(node.inputs[0]), None, None)[1] if window is not None else None,
        node.outputs[0].dtype,
    )
    if (
        window is None
        or channels is None
        or dtype is None
        or dtype not in FLOATS[:2]
        or attribute(node, "ceil_mode", 0)
    ):
        return None
    if window.is_padded and not attribute(node, "count_include_pad", 0):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        parts = np.full((channels, 1, *window.kernel), 1 / np.prod(window.kernel), dtype.numpy())
        weights, shape = make.constant(parts, "parts"), shape_of(node.outputs[0])
        return {
            node.outputs[0]: make.op(
                "Conv", node.inputs[0], weights, shape=shape, group=channels, **window.attributes()
            )
        }

    return Match((node,), build)


def _reduced(
    make: Maker, node: ir.Node, kind: str, axes: list[int], *, source: ir.Value | None = None, keepdims: int = 1
) -> ir.Value:
    value = node.inputs[0] if source is None else source
    if opset_of(node) >= AXES_AS_INPUT[kind]:
        return make.op(kind, value, make.constant(axes, "axes"), keepdims=keepdims)
    return make.op(kind, value, axes=axes, keepdims=keepdims)


def _pooled(value: ir.Value | None) -> Shape | None:
    shape = shape_of(value)
    return None if shape is None else (*shape[:2], *[1] * (len(shape) - 2))


def _same_sized(node: ir.Node) -> Window | None:
    """The window of a MaxPool whose result is as large as what it reads, with as much padding on either side."""
    window = window_of(node) if is_op(node, "MaxPool") and not gives_more(node) else None
    if window is None or set(window.strides) | set(window.dilations) != {1} or attribute(node, "ceil_mode", 0):
        return None
    half = tuple(size // 2 for size in window.kernel)
    return window if window.begins == window.ends == half and all(size % 2 for size in window.kernel) else None


def _is_inside(inner: Window, outer: Window) -> bool:
    """Whether a window is smaller than another along some axis and larger along none."""
    return inner.kernel != outer.kernel and all(a <= b for a, b in zip(inner.kernel, outer.kernel, strict=True))


def _chain(window: Window) -> list[Window]:
    """Windows that, one after the other, take the largest of what this one does."""
    axes = [_axis_chain(*each) for each in zip(window.kernel, window.strides, window.begins, window.ends, strict=True)]
    length = max(len(stages) for stages in axes)
    chain = []
    for number in range(length):  # chains of several lengths end together: strides come last
        stages = [axis[number - length + len(axis)] if number >= length - len(axis) else (1, 1, 0, 0) for axis in axes]
        kernel, strides, begins, ends = zip(*stages, strict=True)
        chain.append(Window(kernel, strides, (1,) * window.rank, begins, ends))
    return chain


def _axis_chain(size: int, stride: int, begin: int, end: int) -> list[tuple[int, int, int, int]]:
    """Size, stride and padding of small windows along an axis; of one alone where it cannot be split.

    Windows side by side divide: 14 at a stride of 14 is 2 of 7, and 7 has no divisor, so it is 5 and 3 at a stride
    of 7. Others add up: 13 taps padded by 6 are 5 padded by 2, 5 padded by 2 and 5 padded by 2.
    """
    stages = []
    while size > LARGE:
        divisor = next((each for each in range(LARGE, 1, -1) if size % each == 0), 0)
        if size == stride and not begin and not end and divisor:
            stages.append((divisor, divisor, 0, 0))
            size = stride = size // divisor
            continue
        half = LARGE // 2 if begin or end else 0
        if half and (min(begin, end) < half or max(begin, end) - half >= size - LARGE + 1):
            break
        stages.append((LARGE, 1, half, half))
        size, begin, end = size - LARGE + 1, begin - half, end - half
    return [*stages, (size, stride, begin, end)]
