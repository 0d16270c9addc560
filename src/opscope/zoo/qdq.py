"""Int8 in ONNX: QuantizeLinear and DequantizeLinear pairs around the steps that run in integers (QDQ form).

Every floating-point value that such a step reads or writes passes through one pair, shared by all its readers. Kernels
are int8 with a scale per channel, biases int32, other constants int8 with one scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from . import quantise, weights
from .blueprint import BlueprintStep, Operand, OperandRole, Shape, Value, ValueKind, Weight
from .onnx_graph import OnnxGraph, Wiring
from .onnx_stream import Stored

_COMPUTES = frozenset(
    (
        *("Conv", "Gemm", "MatMul", "Add", "Mul", "MaxPool", "AveragePool", "GlobalAveragePool", "Resize"),
        *("Sigmoid", "HardSigmoid", "HardSwish", "LeakyRelu"),
    )
)
_MOVES = frozenset(
    (
        *("Flatten", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Expand", "Concat", "Gather", "Slice"),
        "SpaceToDepth",
    )
)
_INT8, _INT32, _FLOAT32 = (np.dtype(name) for name in ("int8", "int32", "float32"))


class QdqWiring(Wiring):
    """Reads the dequantised form of each operand, and adds a quantise pair after each result."""

    def __init__(self, graph: OnnxGraph) -> None:
        super().__init__(graph)
        self.quantised = {
            value.name
            for step in graph.plan.steps
            if _runs_in_integers(step)
            for value in (*step.inputs, step.output)
            if isinstance(value, Value) and value.kind is ValueKind.FLOAT
        }
        self.inputs = {value.name for value in graph.plan.inputs}

    def read(self, step: BlueprintStep, operand: Operand) -> str:
        if isinstance(operand, Value) and operand.name in self.quantised:
            return self._dequantised(operand)
        if isinstance(operand, Weight) and operand.role is not OperandRole.PRECISE and _runs_in_integers(step):
            return self._weight(step, operand)
        return super().read(step, operand)

    def write(self, value: Value) -> str:
        clash = value.name in self.quantised and value.name in self.output_names
        return f"{self.name(value)}_QuantizeLinear_Input" if clash else self.name(value)

    def after_write(self, value: Value) -> None:
        """Add the quantise pair after the step that wrote the value."""
        if value.name not in self.quantised:
            return
        name, scale = value.name, quantise.value_scale(value)
        parameters = [
            self.graph.store(f"{name}_scale", np.asarray(scale.scale, _FLOAT32)),
            self.graph.store(f"{name}_zero_point", np.asarray(scale.zero_point, _INT8)),
        ]
        integer = f"{name}_QuantizeLinear_Output"
        source = self.write(value)
        output = (integer, _INT8, value.shape)
        self.graph.node("QuantizeLinear", f"{name}_QuantizeLinear", [source, *parameters], {}, output)
        self._dequantise(name, [integer, *parameters], self._dequantised(value), value.shape)

    def _dequantised(self, value: Value) -> str:
        return self.output_names.get(value.name, f"{value.name}_DequantizeLinear_Output")

    def _dequantise(self, name: str, inputs: list[str], result: str, shape: Shape, axis: int | None = None) -> None:
        attributes = {} if axis is None else {"axis": axis}
        self.graph.node("DequantizeLinear", f"{name}_DequantizeLinear", inputs, attributes, (result, _FLOAT32, shape))

    def _weight(self, step: BlueprintStep, weight: Weight) -> str:
        """Store the integers of a weight once, with the node that dequantises them; return its output."""
        result = f"{weight.name}_DequantizeLinear_Output"
        if result in self.graph.infos:
            return result
        name, axis = f"{weight.name}_quantized", weight.channel_axis
        if weight.role is OperandRole.BIAS:
            x, kernel = step.inputs[:2]
            if not isinstance(x, Value) or not isinstance(kernel, Weight):
                raise TypeError(f"{step.name}: a bias needs a value and a kernel before it")
            scales, axis = quantise.bias_scales(x, weights.integer_scales(kernel)), 0
            integers = Stored(name, _INT32, weight.shape, partial(_bias, weight, scales))
        elif weight.centre:
            scales = quantise.single_scale(weight)
            integers = Stored(name, _INT8, weight.shape, partial(_uncentred, weight, scales))
        else:
            scales = weights.integer_scales(weight)
            integers = Stored(name, _INT8, weight.shape, partial(weights.integers, weight))
        scales = scales if axis is not None else scales.reshape(())
        inputs = [
            self.graph.keep(integers),
            self.graph.store(f"{weight.name}_scale", scales),
            self.graph.store(f"{weight.name}_zero_point", np.zeros(scales.shape, integers.dtype)),
        ]
        self._dequantise(weight.name, inputs, result, weight.shape, axis)
        return result


def _runs_in_integers(step: BlueprintStep) -> bool:
    return step.op in _COMPUTES | _MOVES and not step.precise and step.output.kind is ValueKind.FLOAT


def _bias(weight: Weight, scales: NDArray[np.float32]) -> Iterator[NDArray[np.int32]]:
    yield quantise.bias_integers(weight, scales)


def _uncentred(weight: Weight, scales: NDArray[np.float32]) -> Iterator[NDArray[np.int8]]:
    yield quantise.quantise_with(weight, scales)
