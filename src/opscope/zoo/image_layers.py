"""Layers of image and audio networks. Values are (batch, channels, height, width)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod, sqrt

import numpy as np

from .blueprint import LEAK, REACH, Blueprint, OperandRole, Value, ValueKind, Weight, parameter_name

Pair = tuple[int, int]

BIAS_REACH = 0.1
_RELU_RMS = sqrt(0.5)  # of a centred distribution of rms 1 whose negative half is set to 0
_FUSED = {"": "", "relu": "Relu", "relu6": "Clip"}
_SEPARATE = {  # operator, lower end of its range over ±REACH, attributes
    "sigmoid": ("Sigmoid", 0.0, {}),
    "hard_sigmoid": ("HardSigmoid", 0.0, {"alpha": 1 / 6, "beta": 0.5}),
    "hard_swish": ("HardSwish", -0.375, {}),
    "leaky_relu": ("LeakyRelu", -LEAK * REACH, {"alpha": LEAK}),
}
_SILU_LOWEST = -0.2785
_OPEN_END = np.iinfo(np.int64).max  # of a slice, as PyTorch writes it


def conv(
    plan: Blueprint,
    at: str,
    x: Value,
    channels: int,
    kernel: Pair,
    *,
    stride: Pair = (1, 1),
    padding: int | None = None,
    groups: int = 1,
    dilation: int = 1,
    activation: str = "",
    activation_at: str = "",
) -> Value:
    """Add a convolution with bias, as exporters write it after folding batch normalisation.

    `padding` is the rows and columns added on every side; None pads so that output size = input size / stride.
    """
    fused = activation if activation in _FUSED else ""
    fan_in = x.shape[1] // groups * prod(kernel)
    weight = kernel_weight(at, (channels, x.shape[1] // groups, *kernel), fan_in, x.rms, channel_axis=0)
    reach = (dilation * (kernel[0] - 1) + 1, dilation * (kernel[1] - 1) + 1)
    pads = _pads(x, reach, stride, padding)
    y = plan.step(
        "Conv",
        at,
        (x, weight, bias_weight(at, channels)),
        (x.shape[0], channels, *_windows(x, reach, stride, pads)),
        rms=_RELU_RMS if fused else 1.0,
        span=_expected_range(fused, 1.0),
        attributes={
            "dilations": (dilation, dilation),
            "group": groups,
            "kernel_shape": kernel,
            "pads": pads,
            "strides": stride,
        },
        activation=_FUSED[fused],
        activation_at=activation_at or _sibling(at, "relu"),
    )
    return y if activation in _FUSED else activate(plan, activation_at or _sibling(at, "act"), y, activation)


def activate(plan: Blueprint, at: str, x: Value, activation: str) -> Value:
    """Add an activation that is an operator, or two, in every format; the names are those of `conv`."""
    if activation == "silu":
        gate = activate(plan, at, x, "sigmoid")
        return plan.step("Mul", at, (x, gate), x.shape, rms=0.6, span=(_SILU_LOWEST, REACH * x.rms))
    op, lowest, attributes = _SEPARATE[activation]
    share = activation.endswith("sigmoid")  # between 0 and 1
    span = (lowest, 1.0 if share else REACH * x.rms)
    return plan.step(op, at, [x], x.shape, rms=0.54 if share else _RELU_RMS, span=span, attributes=attributes)


def pool(
    plan: Blueprint,
    at: str,
    x: Value,
    kernel: Pair,
    *,
    stride: Pair,
    padding: int | None = 0,
    partial_windows: bool = False,
    mean: bool = False,
) -> Value:
    """Add a maximum over windows, or their mean without the padding.

    `padding` is as for `conv`; `partial_windows` keeps a last window that the image fills only in part.
    """
    pads = _pads(x, kernel, stride, padding)
    if partial_windows:
        missing = [-(x.shape[axis + 2] + pads[axis] + pads[axis + 2] - kernel[axis]) % stride[axis] for axis in (0, 1)]
        pads = (pads[0], pads[1], pads[2] + missing[0], pads[3] + missing[1])
    shape = (*x.shape[:2], *_windows(x, kernel, stride, pads))
    attributes = {"kernel_shape": kernel, "pads": pads, "strides": stride}
    return plan.step(
        "AveragePool" if mean else "MaxPool", at, [x], shape, rms=x.rms, span=x.span, attributes=attributes
    )


def resize(plan: Blueprint, at: str, x: Value, size: Pair, *, mode: str = "nearest") -> Value:
    """Scale an image, by repetition (nearest) or with linear interpolation (linear)."""
    region, scales = (plan.literal(at, np.zeros(0), ValueKind.F32) for _ in range(2))  # left out
    shape = (*x.shape[:2], *size)
    attributes = {"mode": mode, "coordinate_transformation_mode": "half_pixel"}
    if mode == "nearest":
        attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    inputs = (x, region, scales, plan.literal(at, shape))
    return plan.step("Resize", at, inputs, shape, rms=x.rms, span=x.span, attributes=attributes)


def join(plan: Blueprint, at: str, parts: Sequence[Value]) -> Value:
    """Put the channels of images one after another."""
    channels = [part.shape[1] for part in parts]
    rms = sqrt(sum(count * part.rms**2 for count, part in zip(channels, parts, strict=True)) / sum(channels))
    span = (min(part.span[0] for part in parts), max(part.span[1] for part in parts))
    shape = (parts[0].shape[0], sum(channels), *parts[0].shape[2:])
    return plan.step("Concat", at, parts, shape, rms=rms, span=span, attributes={"axis": 1})


def split(plan: Blueprint, at: str, x: Value, sizes: Sequence[int], *, axis: int = 1) -> list[Value]:
    """Take the channels of an image, or another axis, apart into groups of the given sizes."""
    parts, start = [], 0
    for size in sizes:
        bounds = [plan.literal(at, [number]) for number in (start, start + size, axis)]
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        parts.append(plan.step("Slice", at, (x, *bounds), shape, rms=x.rms, span=x.span))
        start += size
    return parts


def corners(plan: Blueprint, at: str, x: Value, axes: Pair) -> list[Value]:
    """Take every other row and column, four times: one corner of each square of four, then the one below it.

    Exporters write each as two slices, open at the end.
    """
    parts = {}
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        half = x
        for axis, first in zip(axes, (row, column), strict=True):
            bounds = [plan.literal(at, [number]) for number in (first, _OPEN_END, axis, 2)]
            shape = (*half.shape[:axis], half.shape[axis] // 2, *half.shape[axis + 1 :])
            half = plan.step("Slice", at, (half, *bounds), shape, rms=x.rms, span=x.span)
        parts[row, column] = half
    return [parts[row, column] for column in (0, 1) for row in (0, 1)]


def excite(
    plan: Blueprint, at: str, x: Value, squeezed: int, *, activation: str = "relu", gate: str = "sigmoid"
) -> Value:
    """Scale each channel by a factor computed from the means of all channels (squeeze and excitation)."""
    y = plan.step("GlobalAveragePool", f"{at}/pool", [x], (*x.shape[:2], 1, 1), rms=x.rms, span=x.span)
    y = conv(plan, f"{at}/reduce", y, squeezed, (1, 1), padding=0, activation=activation)
    y = conv(plan, f"{at}/expand", y, x.shape[1], (1, 1), padding=0)
    return plan.step("Mul", at, (x, activate(plan, f"{at}/gate", y, gate)), x.shape, rms=x.rms / 2, span=x.span)


def normalise(plan: Blueprint, at: str, x: Value) -> Value:
    """Add a batch normalisation that cannot be folded, and ReLU: a factor and an offset per channel."""
    shape = (1, x.shape[1], 1, 1)
    factor = Weight(parameter_name(at, "weight"), shape, OperandRole.TENSOR, BIAS_REACH, centre=1 / x.rms)
    offset = Weight(parameter_name(at, "bias"), shape, OperandRole.TENSOR, BIAS_REACH)
    y = plan.step("Mul", at, (x, factor), x.shape)
    span = _expected_range("relu", 1.0)
    activation_at = _sibling(at, "relu")
    return plan.step(
        "Add", at, (y, offset), x.shape, rms=_RELU_RMS, span=span, activation="Relu", activation_at=activation_at
    )


def add(plan: Blueprint, at: str, a: Value, b: Value, *, activation: str = "") -> Value:
    """Add a residual connection."""
    rms = sqrt(a.rms**2 + b.rms**2)
    centred = a.span[0] < 0 and b.span[0] < 0  # otherwise the sum is mostly positive, and ReLU changes little
    return plan.step(
        "Add",
        at,
        (a, b),
        a.shape,
        rms=rms * _RELU_RMS if activation and centred else rms,
        span=_expected_range(activation, rms),
        activation=_FUSED[activation],
        activation_at=f"{at}/relu",
    )


def flat_mean(plan: Blueprint, at: str, x: Value) -> Value:
    """Average over height and width and flatten to (batch, channels)."""
    pooled = plan.step("GlobalAveragePool", at, [x], (*x.shape[:2], 1, 1), rms=x.rms, span=x.span)
    return plan.step("Flatten", "", [pooled], x.shape[:2], rms=x.rms, span=x.span, attributes={"axis": 1})


def dense(plan: Blueprint, at: str, x: Value, units: int, *, activation: str = "") -> Value:
    """Add a fully connected layer on (batch, features), with an activation that formats fuse."""
    weight = kernel_weight(at, (units, x.shape[1]), x.shape[1], x.rms, channel_axis=0)
    inputs = (x, weight, bias_weight(at, units))
    attributes: dict[str, int | float] = {"alpha": 1.0, "beta": 1.0, "transB": 1}
    return plan.step(
        "Gemm",
        at,
        inputs,
        (x.shape[0], units),
        rms=_RELU_RMS if activation else 1.0,
        span=_expected_range(activation, 1.0),
        attributes=attributes,
        activation=_FUSED[activation],
        activation_at=_sibling(at, "relu"),
    )


def classify(plan: Blueprint, x: Value, classes: int, *, at: str = "fc") -> None:
    """End an image classifier: the mean of each channel, a fully connected layer, the output."""
    plan.output("output", dense(plan, at, flat_mean(plan, "avgpool", x), classes))


def kernel_weight(at: str, shape: tuple[int, ...], fan_in: int, rms: float, *, channel_axis: int) -> Weight:
    """Return weights that give sums with a root mean square of one, as after batch normalisation."""
    reach = sqrt(3.0 / fan_in) / rms  # a uniform distribution over ±r has the standard deviation r / √3
    return Weight(parameter_name(at, "weight"), shape, OperandRole.KERNEL, reach, channel_axis=channel_axis)


def bias_weight(at: str, units: int) -> Weight:
    return Weight(parameter_name(at, "bias"), (units,), OperandRole.BIAS, BIAS_REACH)


def _pads(x: Value, kernel: Pair, stride: Pair, padding: int | None) -> tuple[int, int, int, int]:
    """Return (top, left, bottom, right); SAME padding if `padding` is None, with the odd row at the end."""
    if padding is not None:
        return (padding,) * 4
    total = [
        max((ceil(size / step) - 1) * step + extent - size, 0)
        for size, extent, step in zip(x.shape[2:], kernel, stride, strict=True)
    ]
    return (total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2)


def _windows(x: Value, kernel: Pair, stride: Pair, pads: tuple[int, int, int, int]) -> Pair:
    """Return the number of windows in height and width."""
    height, width = (
        (x.shape[axis + 2] + pads[axis] + pads[axis + 2] - kernel[axis]) // stride[axis] + 1 for axis in (0, 1)
    )
    return height, width


def _expected_range(activation: str, rms: float) -> tuple[float, float]:
    """Return the expected range after the activation."""
    if activation == "relu6":
        return (0.0, 6.0)
    return (0.0 if activation else -REACH * rms, REACH * rms)


def _sibling(at: str, leaf: str) -> str:
    parent = at.rpartition("/")[0]
    return f"{parent}/{leaf}" if parent else leaf
