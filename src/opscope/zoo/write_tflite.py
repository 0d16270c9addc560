"""Blueprint → TensorFlow Lite: images channels last, activations fused, SAME padding if the blueprint pads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..core.errors import UsageError
from ..core.files import replacing
from . import tflite_layers, weights
from .blueprint import Blueprint, Literal, Step, Value, Weight
from .network import Progress
from .tflite_fusion import fuse
from .tflite_layers import fused_activation
from .tflite_layout import images
from .tflite_norm import layer_normalization
from .tflite_sheet import Sheet
from .tflite_tables import NO_ACTIVATION, serialise

LARGEST_FILE = 2**31 - 1  # offsets in a flatbuffer are 32 bits, and signed in places


def write(plan: Blueprint, path: Path, *, precision: str, progress: Progress | None) -> None:
    """Write `plan` as a TensorFlow Lite model."""
    _check_size(plan, path, precision)
    steps = list(fuse(plan.steps))
    sheet = Sheet(precision == "int8", images(steps))
    inputs = [sheet.value(value) for value in plan.inputs]
    outputs = [sheet.value(value, name) for name, value in plan.outputs]
    for step in steps:
        _write_step(sheet, step)
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


def _write_step(sheet: Sheet, step: Step) -> None:
    if step.op not in _TRANSLATIONS:
        raise ValueError(f"{step.name}: {step.op} has no TensorFlow Lite form here")
    _TRANSLATIONS[step.op](sheet, step)


def _elementwise(code: str) -> Callable[[Sheet, Step], None]:
    def emit(sheet: Sheet, step: Step) -> None:
        inputs = [sheet.operand(step, operand) for operand in step.inputs]
        sheet.op(code, inputs, step.output, {0: fused_activation(step)})

    return emit


def _reshape(sheet: Sheet, step: Step) -> None:
    shape = sheet.stored_shape(step.output)
    inputs = [sheet.value(_source(step)), sheet.integer_parameter(f"{step.name}/shape", shape)]
    sheet.op("RESHAPE", inputs, step.output, {0: shape})


def _transpose(sheet: Sheet, step: Step) -> None:
    """Transpose from the stored order; if that already is the requested order, the result is an alias."""
    x = _source(step)
    stored = sheet.order(x)
    order = [stored.index(axis) for axis in _axes(step, "perm")]
    if order == sorted(order):
        sheet.alias(step.output, x)
        return
    code = "TRANSPOSE" if len(order) < 5 else "TRANSPOSE_RANK_5"
    sheet.op(code, [sheet.value(x), sheet.integer_parameter(f"{step.name}/perm", order)], step.output, {})


def _reduce_mean(sheet: Sheet, step: Step) -> None:
    x = _source(step)
    stored = sheet.order(x)
    axes = [stored.index(axis % len(stored)) for axis in _axes(step, "axes")]
    inputs = [sheet.value(x), sheet.integer_parameter(f"{step.name}/axes", axes)]
    sheet.op("MEAN", inputs, step.output, {0: ("Bool", bool(step.attributes["keepdims"]))})


def _softmax(sheet: Sheet, step: Step) -> None:
    """Write a softmax with output range 0 to 1: integer kernels support no other scale."""
    shares = replace(step.output, span=(0.0, 1.0))
    sheet.op("SOFTMAX", [sheet.value(_source(step))], shares, {0: ("Float32", 1.0)})


def _batch_matmul(sheet: Sheet, step: Step) -> None:
    inputs = [sheet.operand(step, operand) for operand in step.inputs]
    sheet.op("BATCH_MATMUL", inputs, step.output, {0: ("Bool", False), 1: ("Bool", False)})


def _gelu(sheet: Sheet, step: Step) -> None:
    sheet.op("GELU", [sheet.value(_source(step))], step.output, {0: ("Bool", False)})  # not the approximation


def _gather(sheet: Sheet, step: Step) -> None:
    """Take one slice along an axis."""
    x, index = step.inputs
    if not isinstance(index, Literal):
        raise TypeError(f"{step.name}: the index is not a literal")
    inputs = [sheet.operand(step, x), sheet.integer_parameter(index.name, int(index.values))]
    sheet.op("GATHER", inputs, step.output, {0: ("Int32", _axis(step))})


def _concat(sheet: Sheet, step: Step) -> None:
    inputs = [sheet.operand(step, part) for part in step.inputs]
    sheet.op("CONCATENATION", inputs, step.output, {0: ("Int32", _axis(step)), 1: ("Int8", NO_ACTIVATION)})


def _expand(sheet: Sheet, step: Step) -> None:
    """Fold the repetition of a constant into a constant."""
    weight = step.inputs[0]
    if not isinstance(weight, Weight):
        raise TypeError(f"{step.name}: only constants are repeated here")
    sheet.fold(step.output, np.broadcast_to(weights.all_floats(weight), step.output.shape))


def _source(step: Step) -> Value:
    x = step.inputs[0]
    if not isinstance(x, Value):
        raise TypeError(f"{step.name}: reads {x.name}, not a value")
    return x


def _axis(step: Step) -> int:
    axis = step.attributes["axis"]
    if not isinstance(axis, int):
        raise TypeError(f"{step.name}: axis is {axis!r}, not a number")
    return axis


def _axes(step: Step, name: str) -> tuple[int, ...]:
    axes = step.attributes[name]
    if not isinstance(axes, tuple):
        raise TypeError(f"{step.name}: {name} is {axes!r}, not a list of axes")
    return axes


_TRANSLATIONS: Mapping[str, Callable[[Sheet, Step], None]] = {  # by the blueprint's step, or a fused one
    "Add": _elementwise("ADD"),
    "Concat": _concat,
    "Conv": tflite_layers.conv,
    "Expand": _expand,
    "Flatten": _reshape,
    "Gather": _gather,
    "Gelu": _gelu,
    "Gemm": tflite_layers.gemm,
    "GlobalAveragePool": tflite_layers.global_average_pool,
    "LayerNormalization": layer_normalization,
    "Linear": tflite_layers.linear,
    "MatMul": _batch_matmul,
    "MaxPool": tflite_layers.max_pool,
    "Mul": _elementwise("MUL"),
    "ReduceMean": _reduce_mean,
    "Reshape": _reshape,
    "Softmax": _softmax,
    "Transpose": _transpose,
}
