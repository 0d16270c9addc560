"""Blueprint → TOSA as MLIR text: images channels last, int8 with 32-bit sums, one operation per line.

The text is TOSA 1.0 as in LLVM since 2025 (`values`, zero points as operands, shapes as constants). Weights are raw
bytes in hexadecimal, which a parser reads faster than lists of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ..core.files import replacing
from . import quantise, weights
from .blueprint import Blueprint, BlueprintStep, Shape, Value, Weight
from .network import Progress
from .tflite_fusion import fuse
from .tflite_layout import channels_last, images
from .tosa_function import Named, TosaFunction, tensor

_HEADROOM = 20  # bits by which operands of an addition are shifted up, so that rounding is negligible
_DEPTHWISE = (2, 3, 0, 1)  # (channels, 1, height, width) to (height, width, channels, 1)


def write(plan: Blueprint, path: Path, *, progress: Progress | None) -> None:
    """Write `plan` as a module with one function, `main`."""
    steps = list(fuse(plan.steps))
    function = TosaFunction(images(steps))
    for number, value in enumerate(plan.inputs):
        function.values[value.name] = f"%arg{number}"
    for step in steps:
        if step.op not in _TRANSLATIONS:
            raise ValueError(f"{step.name}: {step.op} has no TOSA form here")
        _TRANSLATIONS[step.op](function, step)
    text = _module(function, plan)
    with replacing(path) as out:
        out.write(text)
    if progress is not None:
        progress(len(text), len(text))


def _module(function: TosaFunction, plan: Blueprint) -> bytes:
    arguments = ", ".join(f"%arg{n}: {function.type_of(value)}" for n, value in enumerate(plan.inputs))
    results = ", ".join(function.type_of(value) for _, value in plan.outputs)
    names = ", ".join(function.values[value.name] for _, value in plan.outputs)
    lines = [
        "module {",
        f"  func.func @main({arguments}) -> ({results}) {{",
        *(f"    {line}" for line in function.lines),
        f"    return {names} : {results}",
        "  }",
        "}",
    ]
    return ("\n".join(lines) + "\n").encode()


def _conv(function: TosaFunction, step: BlueprintStep) -> None:
    kernel = step.inputs[1]
    depthwise = step.attributes["group"] != 1
    top, left, bottom, right = step.numbers("pads")
    attributes = (
        f" {{acc_type = i32, dilation = array<i64: 1, 1>, pad = array<i64: {top}, {bottom}, {left}, {right}>, "
        f"stride = array<i64: {', '.join(map(str, step.numbers('strides')))}>}}"
    )
    order = _DEPTHWISE if depthwise else channels_last(len(kernel.shape))
    name = "depthwise_conv2d" if depthwise else "conv2d"
    shape = function.shape(step.output)
    made = _weighted_sum(
        function, step, name, function.use(step.source), order=order, attributes=attributes, shape=shape
    )
    function.keep(step, made)


def _dense(function: TosaFunction, step: BlueprintStep) -> None:
    """Write a fully connected layer as a 1 × 1 convolution of a 1 × 1 image: TOSA has no operator for it."""
    x, ones = step.source, "array<i64: 1, 1>"
    attributes = f" {{acc_type = i32, dilation = {ones}, pad = array<i64: 0, 0, 0, 0>, stride = {ones}}}"
    batch, features = x.shape
    image = (batch, 1, 1, features)
    data = function.op("reshape", [function.use(x), function.extents(image)], "", tensor(image, "i8"))
    shape = (batch, 1, 1, step.output.shape[1])
    made = _weighted_sum(function, step, "conv2d", data, order=(0, 2, 3, 1), attributes=attributes, shape=shape)
    flat = function.op("reshape", [made, function.extents(step.output.shape)], "", function.type_of(step.output))
    function.keep(step, flat)


def _weighted_sum(
    function: TosaFunction,
    step: BlueprintStep,
    name: str,
    data: Named,
    *,
    order: tuple[int, ...],
    attributes: str,
    shape: Shape,
) -> Named:
    """Write a product with kernel and bias, and rescale its 32-bit sums to 8 bits."""
    x, kernel, bias = step.inputs
    if not isinstance(x, Value) or not isinstance(kernel, Weight) or not isinstance(bias, Weight):
        raise TypeError(f"{step.name}: expected a value, a kernel and a bias")
    integers, scales = weights.all_integers(kernel), weights.integer_scales(kernel)
    stored = integers.reshape(*integers.shape, *(1,) * (len(order) - integers.ndim)).transpose(order)
    sums = quantise.bias_scales(x, scales)
    source, result = quantise.value_scale(x), quantise.value_scale(step.output)
    zero = function.number(0, np.int8)
    operands = [data, function.constant(stored), function.constant(quantise.bias_integers(bias, sums))]
    operands += [function.number(source.zero_point, np.int8), zero]
    made = function.op(name, operands, attributes, tensor(shape, "i32"))
    points = (function.number(0, np.int32), function.number(result.zero_point, np.int8))
    return function.rescale(made, (sums / result.scale).tolist(), points, tensor(shape, "i8"))


def _add(function: TosaFunction, step: BlueprintStep) -> None:
    """Add in 32 bits: both operands at twice the larger scale, shifted up, added, and rescaled."""
    operands = [operand for operand in step.inputs if isinstance(operand, Value)]
    scales = [quantise.value_scale(operand) for operand in operands]
    common = 2 * max(scale.scale for scale in scales)
    wide, none = tensor(function.shape(step.output), "i32"), function.number(0, np.int32)
    shifted = [
        function.rescale(
            function.use(operand),
            [scale.scale / common * 2**_HEADROOM],
            (function.number(scale.zero_point, np.int8), none),
            wide,
        )
        for operand, scale in zip(operands, scales, strict=True)
    ]
    added, result = function.op("add", shifted, "", wide), quantise.value_scale(step.output)
    points = (none, function.number(result.zero_point, np.int8))
    factor = common / 2**_HEADROOM / result.scale
    function.keep(step, function.rescale(added, [factor], points, function.type_of(step.output)))


def _global_average_pool(function: TosaFunction, step: BlueprintStep) -> None:
    x = step.source
    height, width = x.shape[2:]
    zero = function.number(quantise.value_scale(x).zero_point, np.int8)
    attributes = (
        f" {{acc_type = i32, kernel = array<i64: {height}, {width}>, pad = array<i64: 0, 0, 0, 0>, "
        "stride = array<i64: 1, 1>}"
    )
    function.keep(
        step, function.op("avg_pool2d", [function.use(x), zero, zero], attributes, function.type_of(step.output))
    )


def _reshape(function: TosaFunction, step: BlueprintStep) -> None:
    x = step.source
    shape = function.extents(function.shape(step.output))
    function.keep(step, function.op("reshape", [function.use(x), shape], "", function.type_of(step.output)))


_TRANSLATIONS: Mapping[str, Callable[[TosaFunction, BlueprintStep], None]] = {
    "Add": _add,
    "Conv": _conv,
    "Flatten": _reshape,
    "Gemm": _dense,
    "GlobalAveragePool": _global_average_pool,
    "Reshape": _reshape,
}
