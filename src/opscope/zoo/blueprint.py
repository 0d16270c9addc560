"""Blueprint: the format-independent description of a network. Writers turn it into a model file of their format.

Steps use the operator names and the layout (channels first) of ONNX; a writer with another vocabulary or layout
translates. Every value has a static shape, an expected root mean square and an expected range: the first sets the
magnitude of the weights that read it (so that outputs stay finite in any precision), the second its quantisation scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Attribute = int | float | str | tuple[int, ...]

LEAK = 0.1  # slope of a leaky activation below zero, as in Darknet
REACH = 4.0  # a value is expected to stay within this many root mean squares of zero


class ValueKind(Enum):
    """Element type of a value. Only FLOAT follows the requested precision."""

    FLOAT = "float"
    F32 = "f32"
    I64 = "i64"
    BOOL = "bool"


class OperandRole(Enum):
    """How a weight is stored when the network is quantised."""

    KERNEL = "kernel"  # int8, one scale per output channel
    BIAS = "bias"  # int32, scale of the input times scale of the kernel
    TENSOR = "tensor"  # int8, one scale
    PRECISE = "precise"  # stays floating point


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that the network computes or reads as an input."""

    name: str
    shape: Shape
    kind: ValueKind = ValueKind.FLOAT
    rms: float = 1.0
    span: tuple[float, float] = (-REACH, REACH)


@dataclass(frozen=True, slots=True)
class Weight:
    """A trained tensor: drawn uniformly from `centre ± reach`, with a slightly different reach per output channel."""

    name: str
    shape: Shape
    role: OperandRole
    reach: float
    centre: float = 0.0
    channel_axis: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A small constant with known values: a shape, an axis, a divisor."""

    name: str
    kind: ValueKind
    values: NDArray[np.generic]

    @property
    def shape(self) -> Shape:
        return tuple(self.values.shape)


Operand = Value | Weight | Literal


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation after a step, fused into it by formats that have fused activations."""

    op: str  # "Relu", or "Clip" for ReLU6
    name: str


@dataclass(frozen=True, slots=True)
class BlueprintStep:
    """One operator application with one result; TopK has another, the places of what it found."""

    op: str
    name: str
    inputs: tuple[Operand, ...]
    output: Value
    attributes: Mapping[str, Attribute]
    activation: Activation | None = None
    precise: bool = False  # stays floating point when the network is quantised
    places: Value | None = None

    def numbers(self, name: str) -> tuple[int, ...]:
        """An attribute that lists numbers, such as axes."""
        found = self.attributes[name]
        if not isinstance(found, tuple):
            raise TypeError(f"{self.name}: {name} is {found!r}, not a list of numbers")
        return found

    @property
    def source(self) -> Value:
        """The first input, of a step that reads a value there."""
        x = self.inputs[0]
        if not isinstance(x, Value):
            raise TypeError(f"{self.name}: reads {x.name}, not a value")
        return x


@dataclass(slots=True)
class Blueprint:
    """Collects the steps of a network in the order in which its description adds them.

    Names follow exporters: the step `op` of the module `at` is `/at/op`, with `_1`, `_2`, … if repeated.
    """

    name: str
    half: bool = False  # the model will be f16: numerically sensitive parts are widened to f32
    steps: list[BlueprintStep] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[tuple[str, Value]] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=dict)

    def input(self, name: str, shape: Shape, *, kind: ValueKind = ValueKind.FLOAT) -> Value:
        value = Value(name, shape, kind)
        self.inputs.append(value)
        return value

    def output(self, name: str, value: Value) -> None:
        self.outputs.append((name, value))

    def literal(
        self, at: str, values: float | Sequence[int] | NDArray[np.generic], kind: ValueKind = ValueKind.I64
    ) -> Literal:
        element = np.int64 if kind is ValueKind.I64 else np.float32
        return Literal(f"{self.unique(at, 'Constant')}_output_0", kind, np.asarray(values, element))

    def step(
        self,
        op: str,
        at: str,
        inputs: Sequence[Operand],
        shape: Shape,
        *,
        kind: ValueKind = ValueKind.FLOAT,
        rms: float = 1.0,
        span: tuple[float, float] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        activation: str = "",
        activation_at: str = "",
        precise: bool = False,
    ) -> Value:
        """Add one operator and return its result."""
        name = self.unique(at, op)
        fused = Activation(activation, self.unique(activation_at, activation)) if activation else None
        result = f"{fused.name if fused else name}_output_0"
        output = Value(result, shape, kind, rms, span or (-REACH * rms, REACH * rms))
        self.steps.append(BlueprintStep(op, name, tuple(inputs), output, attributes or {}, fused, precise))
        return output

    def top(self, at: str, x: Value, count: int) -> tuple[Value, Value]:
        """Add a search for the largest of the last axis; return them, floating point, and their places."""
        name, shape = self.unique(at, "TopK"), (*x.shape[:-1], count)
        found = Value(f"{name}_output_0", shape, x.kind, x.rms, x.span)
        places = Value(f"{name}_output_1", shape, ValueKind.I64)
        inputs = (x, self.literal(at, [count]))
        self.steps.append(BlueprintStep("TopK", name, inputs, found, {"axis": -1}, precise=True, places=places))
        return found, places

    def unique(self, at: str, op: str) -> str:
        name = f"/{at}/{op}" if at else f"/{op}"
        count = self._taken.get(name, 0)
        self._taken[name] = count + 1
        return f"{name}_{count}" if count else name


def parameter_name(at: str, leaf: str) -> str:
    """Return the parameter name of a module, without repeated container names.

    The module `layer1/layer1.0/conv1` holds `layer1.0.conv1.weight`.
    """
    parts = [part for part in at.split("/") if part]
    kept = [part for part, after in zip(parts, [*parts[1:], ""], strict=True) if not after.startswith(part + ".")]
    return ".".join([*kept, leaf])
