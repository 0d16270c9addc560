"""Fuses sequences of steps that are one operator in TensorFlow Lite.

Two names are added to the blueprint's: `Linear`, a product with weights and its bias, and `Gelu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from .blueprint import BlueprintStep, OperandRole, Weight

_GELU = ("Div", "Erf", "Add", "Mul", "Mul")  # x · (1 + erf(x / √2)) · ½
_LINEAR = ("MatMul", "Add")


def fuse(steps: Sequence[BlueprintStep]) -> Iterator[BlueprintStep]:
    """Yield the steps in order, with each sequence that has its own operator fused into one step."""
    start = 0
    while start < len(steps):
        step, count = _next_step(steps, start)
        yield step
        start += count


def _next_step(steps: Sequence[BlueprintStep], start: int) -> tuple[BlueprintStep, int]:
    """Return the step to write next, and the number of steps it replaces."""
    for ops, fused in _RULES:
        run = steps[start : start + len(ops)]
        if tuple(step.op for step in run) == ops and (step := fused(run)) is not None:
            return step, len(ops)
    return steps[start], 1


def _gelu(run: Sequence[BlueprintStep]) -> BlueprintStep | None:
    divided, curve, shifted, product, last = run
    x = divided.inputs[0]
    chained = (
        curve.inputs[0] is divided.output
        and shifted.inputs[0] is curve.output
        and product.inputs[0] is x
        and product.inputs[1] is shifted.output
        and last.inputs[0] is product.output
    )
    return BlueprintStep("Gelu", last.name, (x,), last.output, {}) if chained else None


def _linear(run: Sequence[BlueprintStep]) -> BlueprintStep | None:
    product, total = run
    x, kernel = product.inputs
    bias, addend = total.inputs
    if not isinstance(kernel, Weight) or not isinstance(bias, Weight) or addend is not product.output:
        return None
    return BlueprintStep("Linear", product.name, (x, kernel, replace(bias, role=OperandRole.BIAS)), total.output, {})


_RULES: tuple[tuple[tuple[str, ...], Callable[[Sequence[BlueprintStep]], BlueprintStep | None]], ...] = (
    (_GELU, _gelu),
    (_LINEAR, _linear),
)
