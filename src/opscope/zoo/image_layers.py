"""Layers of image and audio networks. Values are (batch, channels, height, width)."""

from __future__ import annotations

from math import ceil, prod, sqrt

from .blueprint import REACH, Blueprint, Role, Value, Weight, parameter_name

Pair = tuple[int, int]

BIAS_REACH = 0.1
_RELU_RMS = sqrt(0.5)  # of a centred distribution of rms 1 whose negative half is set to 0
_ACTIVATIONS = {"": "", "relu": "Relu", "relu6": "Clip"}


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
    activation: str = "",
    activation_at: str = "",
) -> Value:
    """Add a convolution with bias, as exporters write it after folding batch normalisation.

    `padding` is the rows and columns added on every side; None pads so that output size = input size / stride.
    """
    fan_in = x.shape[1] // groups * prod(kernel)
    weight = kernel_weight(at, (channels, x.shape[1] // groups, *kernel), fan_in, x.rms, channel_axis=0)
    pads = _pads(x, kernel, stride, padding)
    height, width = (
        (x.shape[axis + 2] + pads[axis] + pads[axis + 2] - kernel[axis]) // stride[axis] + 1 for axis in (0, 1)
    )
    return plan.step(
        "Conv",
        at,
        (x, weight, bias_weight(at, channels)),
        (x.shape[0], channels, height, width),
        rms=_RELU_RMS if activation else 1.0,
        span=_expected_range(activation, 1.0),
        attributes={
            "dilations": (1, 1),
            "group": groups,
            "kernel_shape": kernel,
            "pads": pads,
            "strides": stride,
        },
        activation=_ACTIVATIONS[activation],
        activation_at=activation_at or _sibling(at, "relu"),
    )


def max_pool(plan: Blueprint, at: str, x: Value, kernel: Pair, *, stride: Pair, padding: int) -> Value:
    height, width = ((x.shape[axis + 2] + 2 * padding - kernel[axis]) // stride[axis] + 1 for axis in (0, 1))
    attributes = {"kernel_shape": kernel, "pads": (padding,) * 4, "strides": stride}
    return plan.step("MaxPool", at, [x], (*x.shape[:2], height, width), rms=x.rms, span=x.span, attributes=attributes)


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
        activation=_ACTIVATIONS[activation],
        activation_at=f"{at}/relu",
    )


def flat_mean(plan: Blueprint, pool_at: str, flatten_at: str, x: Value) -> Value:
    """Average over height and width and flatten to (batch, channels)."""
    pooled = plan.step("GlobalAveragePool", pool_at, [x], (*x.shape[:2], 1, 1), rms=x.rms, span=x.span)
    return plan.step("Flatten", flatten_at, [pooled], x.shape[:2], rms=x.rms, span=x.span, attributes={"axis": 1})


def dense(plan: Blueprint, at: str, x: Value, units: int) -> Value:
    """Add a fully connected layer on (batch, features)."""
    weight = kernel_weight(at, (units, x.shape[1]), x.shape[1], x.rms, channel_axis=0)
    inputs = (x, weight, bias_weight(at, units))
    attributes: dict[str, int | float] = {"alpha": 1.0, "beta": 1.0, "transB": 1}
    return plan.step("Gemm", at, inputs, (x.shape[0], units), attributes=attributes)


def kernel_weight(at: str, shape: tuple[int, ...], fan_in: int, rms: float, *, channel_axis: int) -> Weight:
    """Return weights that give sums with a root mean square of one, as after batch normalisation."""
    reach = sqrt(3.0 / fan_in) / rms  # a uniform distribution over ±r has the standard deviation r / √3
    return Weight(parameter_name(at, "weight"), shape, Role.KERNEL, reach, channel_axis=channel_axis)


def bias_weight(at: str, units: int) -> Weight:
    return Weight(parameter_name(at, "bias"), (units,), Role.BIAS, BIAS_REACH)


def _pads(x: Value, kernel: Pair, stride: Pair, padding: int | None) -> tuple[int, int, int, int]:
    """Return (top, left, bottom, right); SAME padding if `padding` is None, with the odd row at the end."""
    if padding is not None:
        return (padding,) * 4
    total = [
        max((ceil(size / step) - 1) * step + extent - size, 0)
        for size, extent, step in zip(x.shape[2:], kernel, stride, strict=True)
    ]
    return (total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2)


def _expected_range(activation: str, rms: float) -> tuple[float, float]:
    """Return the expected range after the activation."""
    if activation == "relu6":
        return (0.0, 6.0)
    return (0.0 if activation else -REACH * rms, REACH * rms)


def _sibling(at: str, leaf: str) -> str:
    parent = at.rpartition("/")[0]
    return f"{parent}/{leaf}" if parent else leaf
