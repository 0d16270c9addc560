"""Layer normalisation in TensorFlow Lite, which has no operator for it."""

from __future__ import annotations

from .blueprint import REACH, Shape, Step, Value
from .tflite_sheet import Options, Sheet
from .tflite_tables import NO_ACTIVATION

_SLACK = 4.0  # range of a token's variance and inverse deviation, relative to the expected values
_PLAIN: Options = {0: ("Int8", NO_ACTIVATION)}
_KEEP_AXES: Options = {0: ("Bool", True)}


def layer_normalization(sheet: Sheet, step: Step) -> None:
    """Write (x - mean) / √(variance + ε) · gain + offset as nine operators."""
    x, gain, offset = step.inputs
    epsilon = step.attributes["epsilon"]
    if not isinstance(x, Value) or not isinstance(epsilon, float):
        raise TypeError(f"{step.name}: expected a value and a floating-point epsilon")

    def part(leaf: str, shape: Shape, low: float, high: float) -> Value:
        return Value(f"{step.name}/{leaf}", shape, span=(low, high))

    token, power = (*x.shape[:-1], 1), x.rms**2
    read = sheet.value(x)
    axes = sheet.integer_parameter(f"{step.name}/axes", [len(x.shape) - 1])
    small = sheet.number(f"{step.name}/epsilon", epsilon)
    mean = sheet.op("MEAN", [read, axes], part("mean", token, -x.rms, x.rms), _KEEP_AXES)
    square = sheet.op("SQUARED_DIFFERENCE", [read, mean], part("square", x.shape, 0.0, REACH**2 * power), {})
    variance = sheet.op("MEAN", [square, axes], part("variance", token, 0.0, _SLACK * power), _KEEP_AXES)
    shifted = sheet.op("ADD", [variance, small], part("shifted", token, 0.0, _SLACK * power), _PLAIN)
    inverse = sheet.op("RSQRT", [shifted], part("inverse", token, 0.0, _SLACK / x.rms), {})
    centred = sheet.op("SUB", [read, mean], part("centred", x.shape, *x.span), _PLAIN)
    normal = sheet.op("MUL", [centred, inverse], part("normal", x.shape, -REACH, REACH), _PLAIN)
    scaled = sheet.op("MUL", [normal, sheet.operand(step, gain)], part("scaled", x.shape, -REACH, REACH), _PLAIN)
    sheet.op("ADD", [scaled, sheet.operand(step, offset)], step.output, _PLAIN)
