"""Runs a TensorFlow Lite model once in LiteRT and collects the shapes that its tensors had."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...core.errors import ModelError, UsageError, first_line
from ..observed import RunInputs, Shape
from .model import Subgraph

if TYPE_CHECKING:
    from ai_edge_litert.interpreter import Interpreter

    from ..observed import Array

_MAX_VALUE_ELEMENTS = 64  # conditions of branches, sizes


class Seen(NamedTuple):
    """A tensor as a run of the model left it."""

    shape: Shape
    value: Array | None  # of small ones: a branch may depend on it


def observe(path: Path, main: Subgraph, inputs: Mapping[int, Shape], run: RunInputs) -> dict[int, Seen]:
    """Run the model on inputs of these shapes; return the tensors of subgraph 0, by their number."""
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError as error:
        raise UsageError(f"--shapes-from-run: {error}; expected `pip install ai-edge-litert`") from error

    tensors = [(number, main.tensors[number]) for number in main.inputs]
    shapes = {number: inputs.get(number) or tensor.shape or () for number, tensor in tensors}
    ports = [(tensor.name, tensor.dtype.label, shapes[number]) for number, tensor in tensors]
    arrays = run.arrays(ports, str(path))
    try:
        interpreter = Interpreter(
            model_path=str(path),
            # a delegate takes operators together, and their tensors keep the shapes of the file
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        for number, shape in shapes.items():
            interpreter.resize_tensor_input(number, shape)
        interpreter.allocate_tensors()
        for number, tensor in tensors:
            interpreter.set_tensor(number, arrays[tensor.name])
        interpreter.invoke()
        count = len(main.tensors)  # the runtime adds tensors of its own behind those of the file
        details = [detail for detail in interpreter.get_tensor_details() if detail["index"] < count]
        found = {int(detail["index"]): tuple(int(extent) for extent in detail["shape"]) for detail in details}
        return {number: Seen(shape, _value(interpreter, number, shape)) for number, shape in found.items()}
    except (RuntimeError, ValueError) as error:
        hint = "expected a model that it runs, or --shapes-from-run INPUTS.npz with inputs that it takes"
        raise ModelError(str(path), "", f"LiteRT cannot run it: {first_line(error)}; {hint}") from error


def _value(interpreter: Interpreter, number: int, shape: Shape) -> Array | None:
    if prod(shape) > _MAX_VALUE_ELEMENTS:
        return None
    try:
        value: Array = interpreter.get_tensor(number)
    except ValueError:  # resources and tensors that nothing wrote
        return None
    return value
