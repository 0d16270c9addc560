"""Shape rules of operators that slide a window over spatial dimensions, and of those that resize them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, prod

from .call import Call, Open, Operand, Outputs, Shape, checked

_INT64 = 7

Rule = Callable[[Call], Outputs]


def conv(data: int = 0, weights: int = 1, *, element: int | None = None, channels_last: bool = False) -> Rule:
    """Rule for a convolution with data and weights at these positions; `element`: input that has the output's type."""

    def rule(call: Call) -> Outputs:
        shape, kernel = call.shape(data), call.shape(weights)
        if len(shape) != len(kernel) or len(shape) < 3:
            raise call.mismatch(f"has data of {call.operand(data).text} and weights of {call.operand(weights).text}")
        spatial = shape[1:-1] if channels_last else shape[2:]
        counts = _window_counts(call, spatial, call.node.integers("kernel_shape") or kernel[2:])
        out = (shape[0], *counts, kernel[0]) if channels_last else (shape[0], kernel[0], *counts)
        return [Operand(call.element(data if element is None else element), checked(call, out))]

    return rule


def conv_integer(call: Call) -> Outputs:
    return [Operand(6, conv()(call)[0].shape)]  # int32 accumulators


def conv_transpose(call: Call) -> Outputs:
    """Each input element adds a window to the output: extent = stride × (in - 1) + window + extra - padding."""
    shape, kernel = call.shape(0), call.shape(1)
    if len(shape) != len(kernel) or len(shape) < 3:
        raise call.mismatch(f"has data of {call.operand(0).text} and weights of {call.operand(1).text}")
    node, rank = call.node, len(shape) - 2
    window = node.integers("kernel_shape") or kernel[2:]
    strides, dilations = _per_axis(call, "strides", rank), _per_axis(call, "dilations", rank)
    extra = node.integers("output_padding") or (0,) * rank
    stated = node.integers("output_shape")
    channels = kernel[1] * max(1, node.integer("group", 1))
    if stated:
        return [Operand(call.element(0), checked(call, (shape[0], channels, *stated[-rank:])))]
    automatic = node.text("auto_pad", "NOTSET")
    pads = node.integers("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank or len(extra) != rank or len(window) != rank:
        raise call.mismatch("has attributes of another rank than its data")
    spatial = []
    for axis, extent in enumerate(shape[2:]):
        if automatic in ("SAME_UPPER", "SAME_LOWER"):
            spatial.append(extent * strides[axis])
            continue
        padding = 0 if automatic == "VALID" else pads[axis] + pads[axis + rank]
        reach = dilations[axis] * (window[axis] - 1) + 1
        spatial.append(strides[axis] * (extent - 1) + extra[axis] + reach - padding)
    return [Operand(call.element(0), checked(call, (shape[0], channels, *spatial)))]


def pool(call: Call) -> Outputs:
    """MaxPool has a second output, the place of every maximum."""
    shape, kernel = call.shape(0), call.node.integers("kernel_shape")
    if kernel is None or len(shape) < 3:
        raise call.mismatch(f"has no kernel_shape, or data of {call.operand(0).text}")
    last = bool(call.node.integer("channels_last", 0))
    counts = _window_counts(call, shape[1:-1] if last else shape[2:], kernel)
    out = checked(call, (shape[0], *counts, shape[-1]) if last else (*shape[:2], *counts))
    return [Operand(call.element(0), out), Operand(_INT64, out)]


def global_pool(call: Call) -> Outputs:
    shape = call.shape(0)
    if call.node.integer("channels_last", 0):
        return [Operand(call.element(0), (shape[0], *(1,) * (len(shape) - 2), shape[-1]))]
    return [Operand(call.element(0), (*shape[:2], *(1,) * (len(shape) - 2)))]


def _window_counts(call: Call, extents: Shape, kernel: Shape) -> Shape:
    """Return the window positions along each spatial dimension."""
    node, rank = call.node, len(extents)
    strides, dilations = _per_axis(call, "strides", rank), _per_axis(call, "dilations", rank)
    pads = node.integers("pads") or (0,) * (2 * rank)
    if len(kernel) != rank or len(pads) != 2 * rank:
        raise call.mismatch("has attributes of another rank than its data")
    automatic, rounds_up = node.text("auto_pad", "NOTSET"), node.integer("ceil_mode", 0)
    counts = []
    for axis, extent in enumerate(extents):
        stride = strides[axis]
        # A 3-wide kernel with dilation 2 spans 5 elements: 2 × (3 - 1) + 1.
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        if automatic in ("SAME_UPPER", "SAME_LOWER"):
            counts.append(-(-extent // stride))
            continue
        before = 0 if automatic == "VALID" else pads[axis]
        after = 0 if automatic == "VALID" else pads[axis + rank]
        free = extent + before + after - reach
        count = (-(-free // stride) if rounds_up else free // stride) + 1
        # A last window that would start in the padding behind the data is not counted.
        if rounds_up and (count - 1) * stride >= extent + before:
            count -= 1
        counts.append(count)
    if min(counts, default=1) < 1:
        shown = "×".join(map(str, extents))
        raise call.mismatch(f"has a window of {'×'.join(map(str, kernel))}, larger than its padded data of {shown}")
    return tuple(counts)


def _per_axis(call: Call, name: str, rank: int) -> Shape:
    found = call.node.integers(name) or (1,) * rank
    if len(found) != rank or min(found, default=1) < 1:
        raise call.mismatch(f"has {name} {list(found)}; expected {rank} numbers from 1")
    return found


def col2im(call: Call) -> Outputs:
    shape, image, block = call.shape(0), call.integers(1), call.integers(2)
    return [Operand(call.element(0), checked(call, (shape[0], shape[1] // max(1, prod(block)), *image)))]


def max_unpool(call: Call) -> Outputs:
    if call.has(2):
        return [Operand(call.element(0), checked(call, call.integers(2)))]
    shape, kernel = call.shape(0), call.node.integers("kernel_shape") or ()
    rank = len(kernel)
    strides, pads = _per_axis(call, "strides", rank), call.node.integers("pads") or (0,) * (2 * rank)
    spatial = [
        (extent - 1) * strides[axis] - pads[axis] - pads[axis + rank] + kernel[axis]
        for axis, extent in enumerate(shape[2:])
    ]
    return [Operand(call.element(0), checked(call, (*shape[:2], *spatial)))]


def roi(call: Call) -> Outputs:
    """MaxRoiPool and RoiAlign: one cut-out of fixed size for every box."""
    node, data, boxes = call.node, call.shape(0), call.shape(1)
    size = node.integers("pooled_shape") or (node.integer("output_height", 1), node.integer("output_width", 1))
    return [Operand(call.element(0), checked(call, (boxes[0], data[1], *size)))]


def grid_sample(call: Call) -> Outputs:
    data, grid = call.shape(0), call.shape(1)
    return [Operand(call.element(0), (*data[:2], *grid[1:-1]))]


def depth_to_space(call: Call) -> Outputs:
    batch, channels, *spatial = call.shape(0)
    block = max(1, call.node.integer("blocksize", 1))
    out = (batch, channels // block ** len(spatial), *(extent * block for extent in spatial))
    return [Operand(call.element(0), checked(call, out))]


def space_to_depth(call: Call) -> Outputs:
    batch, channels, *spatial = call.shape(0)
    block = max(1, call.node.integer("blocksize", 1))
    out = (batch, channels * block ** len(spatial), *(extent // block for extent in spatial))
    return [Operand(call.element(0), checked(call, out))]


def resize(call: Call) -> Outputs:
    """Resize of opset 10 has (data, scales); later (data, roi, scales, sizes), with optional axes."""
    shape = call.shape(0)
    axes = call.node.integers("axes") or tuple(range(len(shape)))
    axes = tuple(call.front_axis(axis, len(shape)) for axis in axes)
    out = list(shape)
    if call.has(3):
        sizes = call.integers(3)
        if len(sizes) != len(axes):
            raise call.mismatch(f"has {len(sizes)} sizes for {len(axes)} axes")
        for axis, size in zip(axes, _kept_ratio(call, [shape[axis] for axis in axes], sizes), strict=True):
            out[axis] = size
        return [Operand(call.element(0), checked(call, out))]
    return _scaled(call, 1 if call.opset == 10 else 2, axes, out)


def _kept_ratio(call: Call, extents: list[int], sizes: Shape) -> list[int]:
    policy = call.node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" or not all(extents):
        return list(sizes)
    choose = min if policy == "not_larger" else max
    scale = choose(size / extent for size, extent in zip(sizes, extents, strict=True))
    return [floor(scale * extent + 0.5) for extent in extents]  # halves round up


def upsample(call: Call) -> Outputs:
    shape = call.shape(0)
    given = call.node.value("scales")
    if isinstance(given, tuple) and not call.has(1):
        scales = [float(scale) for scale in given if isinstance(scale, int | float)]
        return [Operand(call.element(0), _times(call, list(shape), range(len(shape)), scales))]
    return _scaled(call, 1, tuple(range(len(shape))), list(shape))


def _scaled(call: Call, index: int, axes: Shape, out: list[int]) -> Outputs:
    return [Operand(call.element(0), _times(call, out, axes, call.floats(index)))]


def _times(call: Call, out: list[int], axes: Sequence[int], scales: Sequence[float]) -> Shape:
    if len(scales) != len(axes):
        raise call.mismatch(f"has {len(scales)} scales for {len(axes)} axes")
    for axis, scale in zip(axes, scales, strict=True):
        if not 0 < scale < 1e9:
            raise call.mismatch(f"has the scale {scale}")
        out[axis] = floor(out[axis] * scale)
    return checked(call, out)


def affine_grid(call: Call) -> Outputs:
    size = call.integers(1)
    return [Operand(call.element(0), checked(call, (size[0], *size[2:], len(size) - 2)))]


def fourier(call: Call) -> Outputs:
    """DFT: data ends in 1 (real) or 2 (complex); the transformed axis takes dft_length, half of it for onesided."""
    shape = list(call.shape(0))
    node = call.node
    from_input = call.integer(2) if call.has(2) else -2
    axis = from_input if call.opset >= 20 else node.integer("axis", 1)
    axis = call.front_axis(axis, len(shape))
    if call.has(1):
        shape[axis] = call.integer(1)
    if node.integer("onesided", 0):
        if node.integer("inverse", 0):
            shape[axis] = shape[axis] if call.has(1) else 2 * (shape[axis] - 1)
            return [Operand(call.element(0), checked(call, (*shape[:-1], 1)))]
        shape[axis] = shape[axis] // 2 + 1
    return [Operand(call.element(0), checked(call, (*shape[:-1], 2)))]


def short_time_fourier(call: Call) -> Outputs:
    signal, step = call.shape(0), call.integer(1)
    if call.has(3):
        length = call.integer(3)
    elif call.has(2):
        length = call.shape(2)[0]
    else:
        raise Open(f"{call.place} has neither a window nor a frame length")
    if step < 1 or length > signal[1]:
        raise call.mismatch(f"has frames of {length}, {step} apart, in a signal of {signal[1]}")
    frames = (signal[1] - length) // step + 1
    bins = length // 2 + 1 if call.node.integer("onesided", 1) else length
    return [Operand(call.element(0), checked(call, (signal[0], frames, bins, 2)))]


def window(call: Call) -> Outputs:
    return [Operand(call.node.integer("output_datatype", 1), checked(call, (call.integer(0),)))]


def mel_matrix(call: Call) -> Outputs:
    bins, length = call.integer(0), call.integer(1)
    return [Operand(call.node.integer("output_datatype", 1), checked(call, (length // 2 + 1, bins)))]


def center_crop_pad(call: Call) -> Outputs:
    shape, sizes = list(call.shape(0)), call.integers(1)
    axes = call.node.integers("axes") or tuple(range(len(shape)))
    for axis, size in zip(axes, sizes, strict=False):
        shape[call.front_axis(axis, len(shape))] = size
    return [Operand(call.element(0), checked(call, shape))]


def crop(call: Call) -> Outputs:
    """Crop of the first opset: a border (left, top, right, bottom) is cut off, or `scale` gives height and width."""
    *outer, height, width = call.shape(0)
    left, top, right, bottom = call.node.integers("border") or (0, 0, 0, 0)
    size = call.node.integers("scale") or (height - top - bottom, width - left - right)
    return [Operand(call.element(0), checked(call, (*outer, *size)))]
