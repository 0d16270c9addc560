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
    from onnx import helper, numpy_helper

    shapes = _shapes(proto)
    graph = proto.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {port.name for port in graph.output}
    nodes: list[onnx.NodeProto] = []
    gone: set[str] = set()
    count = 0
    for node in graph.node:
        if node.output and node.output[0] in gone:
            continue
        weights = constants.get(node.input[1]) if node.op_type == "MatMul" else None
        shape = shapes.get(node.input[0]) if weights is not None else None
        if weights is None or shape is None or len(weights.dims) != 2 or len(shape) < 3:
            nodes.append(node)
            continue
        count += 1
        last, bias = node, []
        after = readers.get(node.output[0], [])
        if len(after) == 1 and after[0].op_type == "Add" and node.output[0] not in outputs:
            other = next((name for name in after[0].input if name != node.output[0]), "")
            if other in constants and list(constants[other].dims) == [weights.dims[1]]:
                last, bias = after[0], [other]
                gone.add(after[0].output[0])
        flat, product = f"{node.output[0]}_rows", f"{node.output[0]}_product"
        rows = prod(shape[:-1])
        for name, extents in (
            (f"{flat}_shape", (rows, shape[-1])),
            (f"{product}_shape", (*shape[:-1], weights.dims[1])),
        ):
            graph.initializer.append(numpy_helper.from_array(np.array(extents, np.int64), name))
        nodes += [
            helper.make_node("Reshape", [node.input[0], f"{flat}_shape"], [flat], f"{node.name}_rows"),
            helper.make_node("Gemm", [flat, node.input[1], *bias], [product], node.name),
            helper.make_node(
                "Reshape", [product, f"{product}_shape"], [last.output[0]], last.name if bias else f"{node.name}_back"
            ),
        ]
    if count:
        del graph.node[:]
        graph.node.extend(nodes)
    return [f"{count} products with weights are fully connected layers there"] if count else []


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
