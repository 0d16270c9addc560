"""Blueprint → TensorFlow Lite: images channels last, activations fused, SAME padding if the blueprint pads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..core.errors import UsageError
from ..core.files import replacing
from . import tflite_layers, weights
from .blueprint import LEAK, REACH, Blueprint, BlueprintStep, Literal, Operand, Shape, Value, Weight
from .network import Progress
from .tflite_fusion import fuse
from .tflite_graph import Options, TfliteGraph
from .tflite_layers import fused_activation
from .tflite_layout import images
from .tflite_tables import NO_ACTIVATION, RELU6, serialise

LARGEST_FILE = 2**31 - 1  # offsets in a flatbuffer are 32 bits, and signed in places
_SLACK = 4.0  # range of a token's variance and inverse deviation, relative to the expected values
_PLAIN: Options = {0: ("Int8", NO_ACTIVATION)}
_KEEP_AXES: Options = {0: ("Bool", True)}


def write(plan: Blueprint, path: Path, *, precision: str, progress: Progress | None) -> None:
    """Write `plan` as a TensorFlow Lite model."""
    _check_size(plan, path, precision)
    steps = list(fuse(plan.steps))
    graph = TfliteGraph(precision == "int8", images(steps))
    inputs = [graph.value(value) for value in plan.inputs]
    outputs = [graph.value(value, name) for name, value in plan.outputs]
    for step in steps:
        _write_step(graph, step)
    content = serialise(plan.name, graph.tensors, graph.ops, inputs, outputs)
    with replacing(path) as out:
        out.write(content)
    if progress is not None:
        progress(len(content), len(content))


def _check_size(plan: Blueprint, path: Path, precision: str) -> None:
    width = 1 if precision == "int8" else 4
    total = sum(int(np.prod(x.shape)) * width for step in plan.steps for x in step.inputs if isinstance(x, Weight))
    if total > LARGEST_FILE:
        raise UsageError(f"{path}: {total} bytes of weights do not fit; expected at most {LARGEST_FILE} in TFLite")


def _write_step(graph: TfliteGraph, step: BlueprintStep) -> None:
    if step.op not in _TRANSLATIONS:
        raise ValueError(f"{step.name}: {step.op} has no TensorFlow Lite form here")
    _TRANSLATIONS[step.op](graph, step)


def _elementwise(code: str) -> Callable[[TfliteGraph, BlueprintStep], None]:
    def emit(graph: TfliteGraph, step: BlueprintStep) -> None:
        inputs = [graph.operand(step, operand) for operand in step.inputs]
        graph.op(code, inputs, step.output, {0: fused_activation(step)})

    return emit


def _unary(code: str, options: Options) -> Callable[[TfliteGraph, BlueprintStep], None]:
    def emit(graph: TfliteGraph, step: BlueprintStep) -> None:
        graph.op(code, [graph.value(step.source)], step.output, options)

    return emit


def _hard_sigmoid(graph: TfliteGraph, step: BlueprintStep) -> None:
    """Write min(max(x + 3, 0), 6) / 6, as converters do: there is no operator for it."""
    three, sixth = (graph.number(f"{step.name}/{name}", n) for name, n in (("three", 3.0), ("sixth", 1 / 6)))
    clipped = Value(f"{step.name}/clipped", step.output.shape, span=(0.0, 6.0))
    graph.images |= {clipped.name} if step.output.name in graph.images else set()
    shifted = graph.op("ADD", [graph.value(step.source), three], clipped, {0: ("Int8", RELU6)})
    graph.op("MUL", [shifted, sixth], step.output, {0: ("Int8", NO_ACTIVATION)})


def _slice(graph: TfliteGraph, step: BlueprintStep) -> None:
    """Write one axis between bounds; with a stride, if the step has a fourth number."""
    x, *bounds = step.inputs
    if not isinstance(x, Value) or not all(isinstance(bound, Literal) for bound in bounds):
        raise TypeError(f"{step.name}: expected a value between known bounds")
    start, _, axis, *stride = (int(bound.values[0]) for bound in bounds if isinstance(bound, Literal))
    order, extents = graph.order(x), graph.stored_shape(x)
    begin = [start if place == axis else 0 for place in order]
    inputs = [graph.value(x), graph.integer_parameter(f"{step.name}/begin", begin)]
    if not stride:
        inputs.append(graph.integer_parameter(f"{step.name}/size", graph.stored_shape(step.output)))
        graph.op("SLICE", inputs, step.output, {})
        return
    steps = [stride[0] if place == axis else 1 for place in order]
    inputs += [graph.integer_parameter(f"{step.name}/{name}", n) for name, n in (("end", extents), ("strides", steps))]
    graph.op("STRIDED_SLICE", inputs, step.output, dict.fromkeys(range(5), ("Int32", 0)))  # no masks


def _reshape(graph: TfliteGraph, step: BlueprintStep) -> None:
    shape = graph.stored_shape(step.output)
    inputs = [graph.value(step.source), graph.integer_parameter(f"{step.name}/shape", shape)]
    graph.op("RESHAPE", inputs, step.output, {0: shape})


def _transpose(graph: TfliteGraph, step: BlueprintStep) -> None:
    """Transpose from the stored order; if that already is the requested order, the result is an alias."""
    x = step.source
    stored = graph.order(x)
    order = [stored.index(axis) for axis in step.numbers("perm")]
    if order == sorted(order):
        graph.alias(step.output, x)
        return
    code = "TRANSPOSE" if len(order) < 5 else "TRANSPOSE_RANK_5"
    graph.op(code, [graph.value(x), graph.integer_parameter(f"{step.name}/perm", order)], step.output, {})


def _reduce_mean(graph: TfliteGraph, step: BlueprintStep) -> None:
    x = step.source
    stored = graph.order(x)
    axes = [stored.index(axis % len(stored)) for axis in step.numbers("axes")]
    inputs = [graph.value(x), graph.integer_parameter(f"{step.name}/axes", axes)]
    graph.op("MEAN", inputs, step.output, {0: ("Bool", bool(step.attributes["keepdims"]))})


def _softmax(graph: TfliteGraph, step: BlueprintStep) -> None:
    """Write a softmax with output range 0 to 1: integer kernels support no other scale."""
    shares = replace(step.output, span=(0.0, 1.0))
    graph.op("SOFTMAX", [graph.value(step.source)], shares, {0: ("Float32", 1.0)})


def _batch_matmul(graph: TfliteGraph, step: BlueprintStep) -> None:
    inputs = [graph.operand(step, operand) for operand in step.inputs]
    graph.op("BATCH_MATMUL", inputs, step.output, {0: ("Bool", False), 1: ("Bool", False)})


def _gelu(graph: TfliteGraph, step: BlueprintStep) -> None:
    graph.op("GELU", [graph.value(step.source)], step.output, {0: ("Bool", False)})  # not the approximation


def _gather(graph: TfliteGraph, step: BlueprintStep) -> None:
    """Take one slice along an axis."""
    x, index = step.inputs
    if not isinstance(index, Literal):
        raise TypeError(f"{step.name}: the index is not a literal")
    inputs = [graph.operand(step, x), graph.integer_parameter(index.name, int(index.values))]
    graph.op("GATHER", inputs, step.output, {0: ("Int32", _axis(step))})


def _concat(graph: TfliteGraph, step: BlueprintStep) -> None:
    inputs = [_at_scale_of(graph, step, part) for part in step.inputs]
    axis = graph.order(step.output).index(_axis(step))
    graph.op("CONCATENATION", inputs, step.output, {0: ("Int32", axis), 1: ("Int8", NO_ACTIVATION)})


def _at_scale_of(graph: TfliteGraph, step: BlueprintStep, part: Operand) -> int:
    """Return an operand at the scale of the result: integer kernels of moving operators cannot change it."""
    if not graph.int8 or not isinstance(part, Value) or part.span == step.output.span:
        return graph.operand(step, part)
    changed = replace(part, name=f"{part.name}/{step.name}", span=step.output.span)
    graph.images |= {changed.name} if part.name in graph.images else set()
    return graph.op("QUANTIZE", [graph.value(part)], changed, {})


def _expand(graph: TfliteGraph, step: BlueprintStep) -> None:
    """Fold the repetition of a constant into a constant."""
    weight = step.inputs[0]
    if not isinstance(weight, Weight):
        raise TypeError(f"{step.name}: only constants are repeated here")
    graph.fold(step.output, np.broadcast_to(weights.all_floats(weight), step.output.shape))


def _layer_normalization(graph: TfliteGraph, step: BlueprintStep) -> None:
    """TensorFlow Lite has no operator for it: (x - mean) / √(variance + ε) · gain + offset is nine operators."""
    x, gain, offset = step.inputs
    epsilon = step.attributes["epsilon"]
    if not isinstance(x, Value) or not isinstance(epsilon, float):
        raise TypeError(f"{step.name}: expected a value and a floating-point epsilon")

    def part(leaf: str, shape: Shape, low: float, high: float) -> Value:
        return Value(f"{step.name}/{leaf}", shape, span=(low, high))

    token, power = (*x.shape[:-1], 1), x.rms**2
    read = graph.value(x)
    axes = graph.integer_parameter(f"{step.name}/axes", [len(x.shape) - 1])
    small = graph.number(f"{step.name}/epsilon", epsilon)
    mean = graph.op("MEAN", [read, axes], part("mean", token, -x.rms, x.rms), _KEEP_AXES)
    square = graph.op("SQUARED_DIFFERENCE", [read, mean], part("square", x.shape, 0.0, REACH**2 * power), {})
    variance = graph.op("MEAN", [square, axes], part("variance", token, 0.0, _SLACK * power), _KEEP_AXES)
    shifted = graph.op("ADD", [variance, small], part("shifted", token, 0.0, _SLACK * power), _PLAIN)
    inverse = graph.op("RSQRT", [shifted], part("inverse", token, 0.0, _SLACK / x.rms), {})
    centred = graph.op("SUB", [read, mean], part("centred", x.shape, *x.span), _PLAIN)
    normal = graph.op("MUL", [centred, inverse], part("normal", x.shape, -REACH, REACH), _PLAIN)
    scaled = graph.op("MUL", [normal, graph.operand(step, gain)], part("scaled", x.shape, -REACH, REACH), _PLAIN)
    graph.op("ADD", [scaled, graph.operand(step, offset)], step.output, _PLAIN)


def _axis(step: BlueprintStep) -> int:
    axis = step.attributes["axis"]
    if not isinstance(axis, int):
        raise TypeError(f"{step.name}: axis is {axis!r}, not a number")
    return axis


_TRANSLATIONS: Mapping[str, Callable[[TfliteGraph, BlueprintStep], None]] = {  # by the blueprint's step, or a fused one
    "Add": _elementwise("ADD"),
    "AveragePool": tflite_layers.average_pool,
    "Concat": _concat,
    "Conv": tflite_layers.conv,
    "Expand": _expand,
    "Flatten": _reshape,
    "Gather": _gather,
    "Gelu": _gelu,
    "Gemm": tflite_layers.gemm,
    "GlobalAveragePool": tflite_layers.global_average_pool,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _unary("HARD_SWISH", {}),
    "LayerNormalization": _layer_normalization,
    "LeakyRelu": _unary("LEAKY_RELU", {0: ("Float32", LEAK)}),
    "Linear": tflite_layers.linear,
    "MatMul": _batch_matmul,
    "MaxPool": tflite_layers.max_pool,
    "Mul": _elementwise("MUL"),
    "ReduceMean": _reduce_mean,
    "Reshape": _reshape,
    "Resize": tflite_layers.resize,
    "Sigmoid": _unary("LOGISTIC", {}),
    "Slice": _slice,
    "Softmax": _softmax,
    "SpaceToDepth": _unary("SPACE_TO_DEPTH", {0: ("Int32", 2)}),
    "Squeeze": _reshape,
    "Transpose": _transpose,
    "Unsqueeze": _reshape,
}
