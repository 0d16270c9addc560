"""The ONNX graph under construction, and the mapping of a step's operands to its tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import weights
from .blueprint import Attribute, Blueprint, BlueprintStep, Literal, Operand, Shape, Value, ValueKind, Weight
from .onnx_stream import Stored

if TYPE_CHECKING:
    import onnx


@dataclass(slots=True)
class OnnxGraph:
    """The ONNX graph under construction."""

    plan: Blueprint
    float_dtype: np.dtype[np.generic]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    infos: dict[str, onnx.ValueInfoProto] = field(default_factory=dict)
    stored: dict[str, Stored] = field(default_factory=dict)

    def node(
        self,
        op: str,
        name: str,
        inputs: Sequence[str],
        attributes: Mapping[str, Attribute],
        *outputs: tuple[str, np.dtype[np.generic], Shape],
    ) -> None:
        """Add a node, and the types of its outputs."""
        import onnx

        results = [result for result, _, _ in outputs]
        self.nodes.append(onnx.helper.make_node(op, inputs, results, name=name, **attributes))
        self.infos |= {result: self.info(result, dtype, shape) for result, dtype, shape in outputs}

    def info(self, name: str, dtype: np.dtype[np.generic], shape: Shape) -> onnx.ValueInfoProto:
        import onnx

        kind = onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return onnx.helper.make_tensor_value_info(name, kind, shape)

    def store(self, name: str, array: NDArray[np.generic]) -> str:
        """Add a constant given as an array; return its name."""
        return self.keep(Stored(name, array.dtype, array.shape, partial(_once, array)))

    def keep(self, tensor: Stored) -> str:
        """Add an initialiser unless its name is known; return its name."""
        self.stored.setdefault(tensor.name, tensor)
        return tensor.name

    def dtype(self, kind: ValueKind) -> np.dtype[np.generic]:
        fixed = {ValueKind.F32: "float32", ValueKind.I64: "int64", ValueKind.BOOL: "bool"}
        return np.dtype(fixed[kind]) if kind in fixed else self.float_dtype


class Wiring:
    """Maps operands of a step to tensor names; in a float model every operand is one tensor."""

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self.output_names = {value.name: name for name, value in graph.plan.outputs}

    def read(self, step: BlueprintStep, operand: Operand) -> str:
        del step
        if isinstance(operand, Value):
            return self.name(operand)
        if isinstance(operand, Literal):
            if not operand.values.size:
                return ""  # an optional input that is left out
            return self.graph.store(operand.name, operand.values.astype(self.graph.dtype(operand.kind)))
        return self.graph.keep(_float_weight(operand, self.graph.float_dtype))

    def write(self, value: Value) -> str:
        return self.name(value)

    def after_write(self, value: Value) -> None:
        """Called when a value has been written or is an input; a float model needs nothing more."""

    def name(self, value: Value) -> str:
        return self.output_names.get(value.name, value.name)


def _float_weight(weight: Weight, dtype: np.dtype[np.generic]) -> Stored:
    return Stored(weight.name, dtype, weight.shape, partial(weights.floats, weight, dtype))


def _once(array: NDArray[np.generic]) -> Iterator[NDArray[np.generic]]:
    yield array
