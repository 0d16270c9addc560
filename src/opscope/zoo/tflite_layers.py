"""Translates convolutions, pools and dense layers to TensorFlow Lite."""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from . import quantise, weights
from .blueprint import BlueprintStep, Value, Weight
from .tflite_graph import TfliteGraph
from .tflite_layout import channels_last
from .tflite_tables import NO_ACTIVATION, RELU, RELU6, SAME, VALID, Scalar

_DEPTHWISE_ORDER = (1, 2, 3, 0)  # (channels, 1, height, width) to (1, height, width, channels)
_ACTIVATIONS = {"Relu": RELU, "Clip": RELU6}


def fused_activation(step: BlueprintStep) -> Scalar:
    return ("Int8", _ACTIVATIONS[step.activation.op] if step.activation else NO_ACTIVATION)


def conv(graph: TfliteGraph, step: BlueprintStep) -> None:
    fused, channels, groups = fused_activation(step), step.inputs[0].shape[1], step.attributes["group"]
    dilation: Scalar = ("Int32", _pair(step, "dilations")[0])
    if groups == channels and channels > 1:
        multiplier: Scalar = ("Int32", step.output.shape[1] // channels)
        inputs = _weight_operands(graph, step, _DEPTHWISE_ORDER, per_channel=True)
        options = {**_window(step), 3: multiplier, 4: fused, 5: dilation, 6: dilation}
        graph.op("DEPTHWISE_CONV_2D", inputs, step.output, options)
        return
    inputs = _weight_operands(graph, step, channels_last(4), per_channel=True)
    code = "CONV_2D" if groups == 1 else "CONV_2D_IN_GROUPS"
    graph.op(code, inputs, step.output, {**_window(step), 3: fused, 4: dilation, 5: dilation})


def max_pool(graph: TfliteGraph, step: BlueprintStep) -> None:
    _pool(graph, step, "MAX_POOL_2D")


def average_pool(graph: TfliteGraph, step: BlueprintStep) -> None:
    _pool(graph, step, "AVERAGE_POOL_2D")


def _pool(graph: TfliteGraph, step: BlueprintStep, code: str) -> None:
    height, width = _pair(step, "kernel_shape")
    options = {**_window(step), 3: ("Int32", width), 4: ("Int32", height), 5: fused_activation(step)}
    graph.op(code, [graph.operand(step, step.inputs[0])], step.output, options)


def resize(graph: TfliteGraph, step: BlueprintStep) -> None:
    inputs = [
        graph.operand(step, step.inputs[0]),
        graph.integer_parameter(f"{step.name}/size", step.output.shape[2:]),
    ]
    if step.attributes["mode"] == "nearest":
        graph.op("RESIZE_NEAREST_NEIGHBOR", inputs, step.output, {})
    else:
        graph.op("RESIZE_BILINEAR", inputs, step.output, {3: ("Bool", True)})  # half pixel centres


def global_average_pool(graph: TfliteGraph, step: BlueprintStep) -> None:
    rows, columns = step.inputs[0].shape[2:]
    height: Scalar = ("Int32", rows)
    width: Scalar = ("Int32", columns)
    options = {0: ("Int8", VALID), 1: width, 2: height, 3: width, 4: height, 5: fused_activation(step)}
    graph.op("AVERAGE_POOL_2D", [graph.operand(step, step.inputs[0])], step.output, options)


def gemm(graph: TfliteGraph, step: BlueprintStep) -> None:
    inputs = _weight_operands(graph, step, (0, 1), per_channel=False)
    graph.op("FULLY_CONNECTED", inputs, step.output, {0: fused_activation(step)})


def linear(graph: TfliteGraph, step: BlueprintStep) -> None:
    """Write a product on the last axis; the operator has one kernel row per unit, the blueprint one column."""
    inputs = _weight_operands(graph, step, (1, 0), per_channel=False)
    graph.op("FULLY_CONNECTED_KEEPING_RANK", inputs, step.output, {0: fused_activation(step), 2: ("Bool", True)})


def _pair(step: BlueprintStep, name: str) -> tuple[int, int]:
    numbers = step.numbers(name)
    return numbers[0], numbers[1]


def _weight_operands(
    graph: TfliteGraph, step: BlueprintStep, order: tuple[int, ...], *, per_channel: bool
) -> tuple[int, int, int]:
    """Return the tensors of data, kernel (axes in `order`) and bias; in int8 the kernel's scales give the bias's."""
    x, kernel, bias = step.inputs
    if not isinstance(x, Value) or not isinstance(kernel, Weight) or not isinstance(bias, Weight):
        raise TypeError(f"{step.name}: expected a value, a kernel and a bias")
    value = graph.value(x)
    if not graph.int8:
        return value, graph.floats(kernel, order), graph.floats(bias, (0,))
    integers, scales = _quantise_kernel(kernel, per_channel=per_channel)
    axis = order.index(kernel.channel_axis) if kernel.channel_axis is not None and per_channel else 0
    stored = graph.integers(kernel.name, integers.transpose(order), scales, axis)
    bias_scales = quantise.bias_scales(x, scales)
    return value, stored, graph.integers(bias.name, quantise.bias_integers(bias, bias_scales), bias_scales)


def _quantise_kernel(kernel: Weight, *, per_channel: bool) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    if per_channel:
        return weights.all_integers(kernel), weights.integer_scales(kernel)
    scales = quantise.single_scale(kernel)
    return quantise.quantise_with(kernel, scales), scales


def _window(step: BlueprintStep) -> dict[int, Scalar | tuple[int, ...]]:
    """Return padding and strides, the first three fields of every windowed operator."""
    height, width = _pair(step, "strides")
    pads = step.attributes["pads"]
    same = isinstance(pads, tuple) and any(pads)
    if same and step.output.shape[2:] != tuple(
        ceil(size / stride) for size, stride in zip(step.inputs[0].shape[2:], (height, width), strict=True)
    ):
        raise ValueError(f"{step.name}: padding {pads} is not SAME")
    return {0: ("Int8", SAME if same else VALID), 1: ("Int32", width), 2: ("Int32", height)}
