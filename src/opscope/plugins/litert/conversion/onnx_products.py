"""Products with constant weights of more than two dimensions, rewritten as Gemm between two Reshapes.

TFLite has a fully connected op with a scale per channel for them. What onnx2tf makes of MatMul is a batched product of
two activations, which integer kernels compute with one scale, and many accelerators do not take.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx


def flatten_products(proto: onnx.ModelProto) -> list[str]:
    """Rewrite them in place, a bias that is added after them with them; says how many."""
    graph, products = proto.graph, _Products(proto)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if not node.output or node.output[0] not in products.folded:
            nodes += products.replacement(node)
    if products.count:
        del graph.node[:]
        graph.node.extend(nodes)
    return [f"{products.count} products with weights are fully connected layers there"] if products.count else []


class _Products:
    """Finds products with weights, and what takes their place; a bias comes behind its product, and goes with it."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.graph = proto.graph
        self.shapes = _shapes(proto)
        self.constants = {tensor.name: tensor for tensor in self.graph.initializer}
        self.outputs = {port.name for port in self.graph.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.folded: set[str] = set()  # results of additions that became a bias
        self.count = 0

    def replacement(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """`MatMul` of `[2, 5, 8]` and `[8, 3]` → rows `[10, 8]`, `Gemm` to `[10, 3]`, back to `[2, 5, 3]`; else the
        node as it is."""
        weights = self.constants.get(node.input[1]) if node.op_type == "MatMul" else None
        shape = self.shapes.get(node.input[0]) if weights is not None else None
        if weights is None or shape is None or len(weights.dims) != 2 or len(shape) < 3:
            return [node]
        from onnx import helper

        self.count += 1
        added, bias = self._bias(node, weights.dims[1])
        rows = self._shape_constant(f"{node.output[0]}_rows", (prod(shape[:-1]), shape[-1]))
        product = self._shape_constant(f"{node.output[0]}_product", (*shape[:-1], weights.dims[1]))
        last = node if added is None else added
        back = f"{node.name}_back" if added is None else added.name
        return [
            helper.make_node("Reshape", [node.input[0], f"{rows}_shape"], [rows], f"{node.name}_rows"),
            helper.make_node("Gemm", [rows, node.input[1], *bias], [product], node.name),
            helper.make_node("Reshape", [product, f"{product}_shape"], [last.output[0]], back),
        ]

    def _bias(self, node: onnx.NodeProto, columns: int) -> tuple[onnx.NodeProto | None, list[str]]:
        """The addition that alone reads a product and adds a constant of its columns, and that constant."""
        after = self.readers.get(node.output[0], [])
        if len(after) == 1 and after[0].op_type == "Add" and node.output[0] not in self.outputs:
            other = next((name for name in after[0].input if name != node.output[0]), "")
            if other in self.constants and list(self.constants[other].dims) == [columns]:
                self.folded.add(after[0].output[0])
                return after[0], [other]
        return None, []

    def _shape_constant(self, name: str, extents: tuple[int, ...]) -> str:
        """Add what a Reshape to `name` reads."""
        from onnx import numpy_helper

        self.graph.initializer.append(numpy_helper.from_array(np.array(extents, np.int64), f"{name}_shape"))
        return name


def _shapes(proto: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Of every tensor whose shape is known in full."""
    import onnx

    try:
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception:  # its errors share no base; what it cannot infer stays as it is
        inferred = proto
    found = {}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        extents = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if extents and all(extents):
            found[value.name] = tuple(extents)
    return found
