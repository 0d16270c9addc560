"""A small network with one op of unknown cost in it, or without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

UNKNOWN = ("nonzero", "custom", "loop")  # why a cost can be unknown: data decide a shape, no rule, no number of trips
NAMES = {"nonzero": "where", "custom": "mystery", "loop": "again"}  # an op whose cost is not known, or its loop


def network(path: Path, unknown: str = "", *, with_known: bool = True) -> Path:
    """A product and an activation, then an op of one of the kinds of UNKNOWN where one is named.

    Without `with_known`, that op is all there is.
    """
    first = [
        helper.make_node("MatMul", ["x", "w"], ["product"], "product"),
        helper.make_node("Relu", ["product"], ["y"], "activation"),
    ]
    nodes = first if with_known else [helper.make_node("Identity", ["x"], ["y"], "same")]
    nodes = [*nodes, *_unknown(unknown)]
    outputs = ["y", "z"] if unknown else ["y"]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])]
    if unknown == "loop":
        inputs.append(helper.make_tensor_value_info("count", TensorProto.INT64, []))
    weights = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    always = numpy_helper.from_array(np.array(True), "always")
    values = [helper.make_tensor_value_info(name, _type(unknown, name), None) for name in outputs]
    body = helper.make_graph(nodes, "g", inputs, values, [weights, always])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own.domain", 1)]
    onnx.save(helper.make_model(body, opset_imports=imports, ir_version=9), str(path))
    return path


def _type(unknown: str, name: str) -> int:
    return TensorProto.INT64 if unknown == "nonzero" and name == "z" else TensorProto.FLOAT


def _unknown(kind: str) -> list[NodeProto]:
    if kind == "nonzero":
        return [
            helper.make_node("NonZero", ["y"], ["places"], "where"),
            helper.make_node("Transpose", ["places"], ["z"], "turned"),
        ]
    if kind == "custom":
        return [helper.make_node("Mystery", ["y"], ["z"], "mystery", domain="own.domain")]
    if kind == "loop":
        return [helper.make_node("Loop", ["count", "always", "y"], ["z"], "again", body=_body())]
    return []


def _body() -> onnx.GraphProto:
    scalar = [("number", TensorProto.INT64), ("going", TensorProto.BOOL)]
    inputs = [helper.make_tensor_value_info(name, element, []) for name, element in scalar]
    inputs.append(helper.make_tensor_value_info("state", TensorProto.FLOAT, [8, 64]))
    nodes = [
        helper.make_node("MatMul", ["state", "w"], ["next"], "again_product"),
        helper.make_node("Identity", ["going"], ["on"], "again_on"),
    ]
    outputs = [
        helper.make_tensor_value_info("on", TensorProto.BOOL, []),
        helper.make_tensor_value_info("next", TensorProto.FLOAT, [8, 64]),
    ]
    return helper.make_graph(nodes, "again_body", inputs, outputs)
