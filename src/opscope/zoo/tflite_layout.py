"""Finds the values that TensorFlow Lite stores channels last: images.

A blueprint is channels first throughout, but only images have channels; the heads of an attention, also of rank 4, keep
their order. A value is an image if a windowed operator reads or writes it, if it shares an elementwise step with an
image, or if it is an image with rows and columns merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .blueprint import BlueprintStep, Value

_WINDOWED = frozenset(("Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "Resize", "SpaceToDepth"))
_ELEMENTWISE = frozenset(
    ("Add", "Mul", "Sigmoid", "HardSigmoid", "HardSwish", "LeakyRelu", "Concat", "Slice")  # these keep the axes
)
_LEAVING = frozenset(("Flatten", "Transpose", "ReduceMean"))  # read an image and write something else


def images(steps: Sequence[BlueprintStep]) -> frozenset[str]:
    """Return the names of the values to store channels last."""
    found: set[str] = set()
    # Being an image spreads through elementwise steps in both directions; repeat until nothing changes.
    while grown := {name for step in steps for name in _images_of(step, found)} - found:
        found |= grown
    for step in steps:
        _check(step, found)
    return frozenset(found)


def channels_last(rank: int) -> tuple[int, ...]:
    """Return, for each stored axis, the axis of the channels-first shape: rank 4 gives (0, 2, 3, 1)."""
    return (0, *range(2, rank), 1)


def _images_of(step: BlueprintStep, found: set[str]) -> Iterator[str]:
    """Yield the images among the step's values, given those `found` so far."""
    reads = {x.name for x in step.inputs if isinstance(x, Value)}
    if step.op in _WINDOWED or (step.op in _ELEMENTWISE and not found.isdisjoint({*reads, step.output.name})):
        yield from (*reads, step.output.name)
    elif step.op == "Reshape" and not found.isdisjoint(reads) and step.output.shape[:2] == step.inputs[0].shape[:2]:
        yield step.output.name


def _check(step: BlueprintStep, found: set[str]) -> None:
    reads_image = any(isinstance(x, Value) and x.name in found for x in step.inputs)
    if reads_image and step.output.name not in found and step.op not in _LEAVING:
        raise ValueError(f"{step.name}: {step.op} of an image has no channels-last form here")
