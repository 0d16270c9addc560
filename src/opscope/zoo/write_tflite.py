"""Blueprint to TensorFlow Lite: channels last, activations fused, SAME padding where the blueprint pads at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from . import quantise, weights
from .blueprint import Blueprint, Operand, Role, Shape, Step, Value, Weight
from .output import Progress, replacing
from .tflite_tables import NO_ACTIVATION, RELU, RELU6, SAME, VALID, Quantisation, Scalar, TfOp, TfTensor, serialise

LARGEST_FILE = 2**31 - 1  # offsets in a flatbuffer are 32 bits, and signed in places
_CHANNELS_LAST = (0, 2, 3, 1)
_DEPTHWISE_ORDER = (1, 2, 3, 0)  # (channels, 1, height, width) to (1, height, width, channels)
_ACTIVATIONS = {"Relu": RELU, "Clip": RELU6}

Options = Mapping[int, Scalar | tuple[int, ...]]


@dataclass(slots=True)
class _Sheet:
    """The file's tensors and operators as they fill up."""

    int8: bool
    tensors: list[TfTensor] = field(default_factory=list)
    ops: list[TfOp] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)

    def keep(self, tensor: TfTensor) -> int:
        self.index[tensor.name] = len(self.tensors)
        self.tensors.append(tensor)
        return self.index[tensor.name]

    def value(self, value: Value, name: str | None = None) -> int:
        """The tensor of a value, made when first seen."""
        if value.name in self.index:
            return self.index[value.name]
        dtype = np.dtype(np.int8 if self.int8 else np.float32)
        scale = _value_quantisation(value) if self.int8 else None
        self.index[value.name] = self.keep(TfTensor(name or value.name, _layout(value.shape), dtype, None, scale))
        return self.index[value.name]


def write(plan: Blueprint, path: Path, *, precision: str, progress: Progress | None) -> None:
    """Write `plan` as a TensorFlow Lite model."""
    _check_size(plan, path, precision)
    sheet = _Sheet(precision == "int8")
    inputs = [sheet.value(value) for value in plan.inputs]
    outputs = [sheet.value(value, name) for name, value in plan.outputs]
    for step in plan.steps:
        _emit(sheet, step)
    content = serialise(plan.name, sheet.tensors, sheet.ops, inputs, outputs)
    with replacing(path) as out:
        out.write(content)
    if progress is not None:
        progress(len(content), len(content))


def _check_size(plan: Blueprint, path: Path, precision: str) -> None:
    width = 1 if precision == "int8" else 4
    total = sum(int(np.prod(x.shape)) * width for step in plan.steps for x in step.inputs if isinstance(x, Weight))
    if total > LARGEST_FILE:
        raise UsageError(f"{path}: {total} bytes of weights do not fit; expected at most {LARGEST_FILE} in TFLite")


def _emit(sheet: _Sheet, step: Step) -> None:
    code, options = _translate(step)
    depthwise = code == "DEPTHWISE_CONV_2D"
    inputs = tuple(_operand(sheet, step, operand, depthwise) for operand in step.inputs)
    if code == "RESHAPE":
        shape = np.asarray(step.output.shape, np.int32)
        inputs += (sheet.keep(TfTensor(f"{step.name}/shape", shape.shape, shape.dtype, shape)),)
    if code == "MEAN":
        axes = np.asarray([_CHANNELS_LAST.index(axis) for axis in _pair(step, "axes")], np.int32)
        inputs += (sheet.keep(TfTensor(f"{step.name}/axes", axes.shape, axes.dtype, axes)),)
    sheet.ops.append(TfOp(code, inputs, (sheet.value(step.output),), options))


def _translate(step: Step) -> tuple[str, Options]:
    """The operator's name and options in TensorFlow Lite; numbers are fields of its options table."""
    fused: Scalar = ("Int8", _ACTIVATIONS[step.activation.op] if step.activation else NO_ACTIVATION)
    match step.op:
        case "Conv" if step.attributes["group"] == 1:
            return "CONV_2D", {**_window(step), 3: fused, 4: ("Int32", 1), 5: ("Int32", 1)}
        case "Conv":
            multiplier = step.output.shape[1] // step.inputs[0].shape[1]
            dilation: Scalar = ("Int32", 1)
            return "DEPTHWISE_CONV_2D", {**_window(step), 3: ("Int32", multiplier), 4: fused, 5: dilation, 6: dilation}
        case "MaxPool":
            height, width = _pair(step, "kernel_shape")
            return "MAX_POOL_2D", {**_window(step), 3: ("Int32", width), 4: ("Int32", height), 5: fused}
        case "GlobalAveragePool":
            height, width = step.inputs[0].shape[2:]
            window: Options = {0: ("Int8", VALID), 1: ("Int32", width), 2: ("Int32", height)}
            return "AVERAGE_POOL_2D", {**window, 3: ("Int32", width), 4: ("Int32", height), 5: fused}
        case "Flatten":
            return "RESHAPE", {0: step.output.shape}
        case "Gemm":
            return "FULLY_CONNECTED", {0: fused}
        case "Add":
            return "ADD", {0: fused}
        case "Mul":
            return "MUL", {0: fused}
        case "ReduceMean":
            return "MEAN", {0: ("Bool", bool(step.attributes["keepdims"]))}
        case "Softmax":
            return "SOFTMAX", {0: ("Float32", 1.0)}
    raise ValueError(f"{step.name}: {step.op} has no TensorFlow Lite form here")


def _window(step: Step) -> dict[int, Scalar | tuple[int, ...]]:
    """Padding and strides, the first three fields of every windowed operator."""
    height, width = _pair(step, "strides")
    pads = step.attributes["pads"]
    same = isinstance(pads, tuple) and any(pads)
    if same and step.output.shape[2:] != tuple(
        ceil(size / stride) for size, stride in zip(step.inputs[0].shape[2:], (height, width), strict=True)
    ):
        raise ValueError(f"{step.name}: padding {pads} is not SAME")
    return {0: ("Int8", SAME if same else VALID), 1: ("Int32", width), 2: ("Int32", height)}


def _pair(step: Step, name: str) -> tuple[int, int]:
    pair = step.attributes[name]
    if not isinstance(pair, tuple):
        raise TypeError(f"{step.name}: {name} is {pair!r}, not two numbers")
    return pair[0], pair[1]


def _operand(sheet: _Sheet, step: Step, operand: Operand, depthwise: bool) -> int:
    if isinstance(operand, Value):
        return sheet.value(operand)
    if not isinstance(operand, Weight):
        raise TypeError(f"{step.name}: literals have no TensorFlow Lite form here")
    order = _kernel_order(operand, depthwise)
    if not sheet.int8 and operand.name in sheet.index:  # one tensor, however many steps read it
        return sheet.index[operand.name]
    if not sheet.int8:
        values = weights.all_floats(operand).transpose(order)
        return sheet.keep(TfTensor(operand.name, values.shape, values.dtype, values))
    array, scales = _integers(step, operand)
    axis = order.index(operand.channel_axis) if operand.channel_axis is not None and len(scales) > 1 else 0
    quantisation = Quantisation(scales, np.zeros(scales.shape, np.int64), axis)
    array = array.transpose(order)
    return sheet.keep(TfTensor(operand.name, array.shape, array.dtype, array, quantisation))


def _integers(step: Step, weight: Weight) -> tuple[NDArray[np.generic], NDArray[np.float32]]:
    """Quantised values and scales: per channel for convolutions, one for fully connected layers."""
    if weight.role is Role.BIAS:
        x, kernel = step.inputs[:2]
        if not isinstance(x, Value) or not isinstance(kernel, Weight):
            raise TypeError(f"{step.name}: a bias needs a value and a kernel before it")
        scales = quantise.bias_scales(x, _kernel_scales(kernel))
        return quantise.bias_integers(weight, scales), scales
    scales = _kernel_scales(weight)
    if len(scales) == 1:
        return quantise.with_scale(weight, scales), scales
    return weights.all_integers(weight), scales


def _kernel_scales(kernel: Weight) -> NDArray[np.float32]:
    return weights.integer_scales(kernel) if len(kernel.shape) == 4 else quantise.single_scale(kernel)


def _kernel_order(weight: Weight, depthwise: bool) -> tuple[int, ...]:
    if len(weight.shape) != 4:
        return tuple(range(len(weight.shape)))
    return _DEPTHWISE_ORDER if depthwise else _CHANNELS_LAST


def _value_quantisation(value: Value) -> Quantisation:
    scale = quantise.of_value(value)
    return Quantisation(np.array([scale.scale], np.float32), np.array([scale.zero_point]))


def _layout(shape: Shape) -> Shape:
    return tuple(shape[axis] for axis in _CHANNELS_LAST) if len(shape) == 4 else shape
