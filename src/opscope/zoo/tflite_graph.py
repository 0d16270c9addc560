"""The TensorFlow Lite graph under construction: tensors, their layout and quantisation, and operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from . import quantise, weights
from .blueprint import BlueprintStep, Literal, Operand, Shape, Value, Weight
from .tflite_layout import channels_last
from .tflite_tables import Quantisation, Scalar, TfOp, TfTensor

Options = Mapping[int, Scalar | tuple[int, ...]]


@dataclass(slots=True)
class TfliteGraph:
    """The tensors and operators of the file under construction."""

    int8: bool
    images: frozenset[str]  # names of the values stored channels last
    tensors: list[TfTensor] = field(default_factory=list)
    ops: list[TfOp] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)

    def op(self, code: str, inputs: Sequence[int], output: Value, options: Options) -> int:
        """Add an operator; return the tensor of its result."""
        result = self.value(output)
        self.ops.append(TfOp(code, tuple(inputs), (result,), options))
        return result

    def keep(self, tensor: TfTensor) -> int:
        self.index[tensor.name] = len(self.tensors)
        self.tensors.append(tensor)
        return self.index[tensor.name]

    def value(self, value: Value, name: str | None = None) -> int:
        """Return the tensor of a value; it is created on first use."""
        if value.name not in self.index:
            dtype = np.dtype(np.int8 if self.int8 else np.float32)
            scale = _value_quantisation(value) if self.int8 else None
            tensor = TfTensor(name or value.name, self.stored_shape(value), dtype, None, scale)
            self.index[value.name] = self.keep(tensor)
        return self.index[value.name]

    def alias(self, value: Value, other: Value) -> None:
        """Make `value` another name of the tensor of `other`."""
        self.index[value.name] = self.value(other)

    def fold(self, value: Value, content: NDArray[np.float32]) -> None:
        """Make `value` a constant, with the scale it would have as a result."""
        if not self.int8:
            self.keep(TfTensor(value.name, value.shape, content.dtype, content))
            return
        scale = quantise.value_scale(value)
        integers = np.clip(np.rint(content / scale.scale) + scale.zero_point, -128, 127).astype(np.int8)
        self.keep(TfTensor(value.name, value.shape, integers.dtype, integers, _value_quantisation(value)))

    def order(self, value: Value) -> tuple[int, ...]:
        """Return the blueprint's axis of each stored axis."""
        rank = len(value.shape)
        return channels_last(rank) if value.name in self.images else tuple(range(rank))

    def stored_shape(self, value: Value) -> Shape:
        return tuple(value.shape[axis] for axis in self.order(value))

    def integer_parameter(self, name: str, numbers: int | Sequence[int]) -> int:
        """Add an int32 constant that an operator reads as a parameter."""
        array = np.asarray(numbers, np.int32)
        return self.keep(TfTensor(name, array.shape, array.dtype, array))

    def number(self, name: str, number: float) -> int:
        """Add a scalar constant; in int8 the scale makes it exactly ±127."""
        if not self.int8:
            return self.keep(TfTensor(name, (), np.dtype(np.float32), np.asarray(number, np.float32)))
        scale = Quantisation(np.array([abs(number) / 127], np.float32), np.zeros(1, np.int64))
        full = np.asarray(127 if number > 0 else -127, np.int8)
        return self.keep(TfTensor(name, (), full.dtype, full, scale))

    def operand(self, step: BlueprintStep, operand: Operand) -> int:
        """Return the operand of an elementwise step: a value, a constant in the result's layout, or a scalar."""
        if isinstance(operand, Value):
            return self.value(operand)
        if isinstance(operand, Literal):
            return self.number(operand.name, float(operand.values))
        is_image = step.output.name in self.images
        return self.constant(operand, self.order(step.output) if is_image else tuple(range(len(operand.shape))))

    def constant(self, weight: Weight, order: tuple[int, ...]) -> int:
        """Add a trained tensor with one scale."""
        if not self.int8:
            return self.floats(weight, order)
        scales = quantise.single_scale(weight)
        return self.integers(weight.name, quantise.quantise_with(weight, scales).transpose(order), scales)

    def floats(self, weight: Weight, order: tuple[int, ...]) -> int:
        if weight.name in self.index:  # shared by all steps that read it
            return self.index[weight.name]
        values = weights.all_floats(weight).transpose(order)
        return self.keep(TfTensor(weight.name, values.shape, values.dtype, values))

    def integers(self, name: str, array: NDArray[np.generic], scales: NDArray[np.float32], axis: int = 0) -> int:
        quantisation = Quantisation(scales, np.zeros(scales.shape, np.int64), axis)
        return self.keep(TfTensor(name, array.shape, array.dtype, array, quantisation))


def _value_quantisation(value: Value) -> Quantisation:
    scale = quantise.value_scale(value)
    return Quantisation(np.array([scale.scale], np.float32), np.array([scale.zero_point]))
