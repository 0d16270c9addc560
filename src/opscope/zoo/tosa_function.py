"""The TOSA function under construction: its lines, the names of its values, and 8-bit arithmetic in TOSA's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import frexp

import numpy as np
from numpy.typing import NDArray

from . import quantise
from .blueprint import BlueprintStep, Shape, Value
from .tflite_layout import channels_last

Named = tuple[str, str]  # a value of the text: its name and its type


def tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


_ELEMENTS = {"int8": "i8", "int32": "i32"}


@dataclass(slots=True)
class TosaFunction:
    """The lines of the function under construction."""

    images: frozenset[str]  # names of the values stored channels last
    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)  # value → name in the text
    _constants: dict[str, str] = field(default_factory=dict)  # definition → name in the text

    def shape(self, value: Value) -> Shape:
        if value.name not in self.images:
            return value.shape
        return tuple(value.shape[axis] for axis in channels_last(len(value.shape)))

    def type_of(self, value: Value) -> str:
        return tensor(self.shape(value), "i8")

    def op(self, name: str, operands: Sequence[Named], attributes: str, result: str) -> Named:
        """Add an operation; return name and type of its result."""
        own = f"%{len(self.lines)}"
        names, types = ", ".join(name for name, _ in operands), ", ".join(kind for _, kind in operands)
        self.lines.append(f"{own} = tosa.{name} {names}{attributes} : ({types}) -> {result}")
        return own, result

    def constant(self, array: NDArray[np.generic]) -> Named:
        kind = tensor(array.shape, _ELEMENTS[array.dtype.name])
        if array.size == 1:
            content = f"dense<{array.reshape(())}>"
        else:
            content = f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'
        return self._constant(f'"tosa.const"() <{{values = {content} : {kind}}}> : () -> {kind}', kind)

    def extents(self, shape: Shape) -> Named:
        kind, numbers = f"!tosa.shape<{len(shape)}>", ", ".join(map(str, shape))
        content = f"{{values = dense<[{numbers}]> : tensor<{len(shape)}xindex>}}"
        return self._constant(f"tosa.const_shape {content} : () -> {kind}", kind)

    def _constant(self, definition: str, kind: str) -> Named:
        if definition not in self._constants:
            self._constants[definition] = f"%{len(self.lines)}"
            self.lines.append(f"%{len(self.lines)} = {definition}")
        return self._constants[definition], kind

    def number(self, value: int, dtype: type[np.generic]) -> Named:
        return self.constant(np.array([value], dtype))

    def use(self, value: Value) -> Named:
        return self.values[value.name], self.type_of(value)

    def keep(self, step: BlueprintStep, made: Named) -> None:
        """Record the result of a step, after its activation."""
        if step.activation is not None:
            scale = quantise.value_scale(step.output)
            low = max(-128, scale.zero_point)
            high = 127 if step.activation.op == "Relu" else min(127, round(6 / scale.scale) + scale.zero_point)
            made = self.op("clamp", [made], f" {{max_val = {high} : i8, min_val = {low} : i8}}", made[1])
        self.values[step.output.name] = made[0]

    def rescale(
        self,
        made: Named,
        factors: Sequence[float],
        zero_points: tuple[Named, Named],
        result: str,
    ) -> Named:
        """Multiply by real factors, one or one per channel, as a 32-bit multiplier and a shift."""
        pairs = [_multiplier(factor) for factor in factors]
        multiplier = self.constant(np.array([pair[0] for pair in pairs], np.int32))
        shift = self.constant(np.array([pair[1] for pair in pairs], np.int8))
        each = str(len(pairs) > 1).lower()
        attributes = (
            f" {{input_unsigned = false, output_unsigned = false, per_channel = {each}, rounding_mode = SINGLE_ROUND, "
            "scale32 = true}"
        )
        return self.op("rescale", [made, multiplier, shift, *zero_points], attributes, result)


def _multiplier(factor: float) -> tuple[int, int]:
    """Return (m, s) with factor ≈ m / 2**s and m of 31 bits: 0.5 gives (2**30, 31)."""
    fraction, exponent = frexp(factor)
    multiplier, shift = round(fraction * 2**31), 31 - exponent
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift - 1
    if not 2 <= shift <= 62:
        raise ValueError(f"factor {factor} is outside what a rescale can do")
    return multiplier, shift
