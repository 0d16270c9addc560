"""Products of many dimensions as fully connected layers: the same values, with the bias inside."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from opscope.plugins.litert.conversion.onnx_products import flatten_products


def model(*nodes: onnx.NodeProto, outputs: tuple[str, ...] = ("y",)) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {"w": (8, 3), "b": (3,), "v": (3, 4)}
    constants = [numpy_helper.from_array(rng.standard_normal(s).astype("f4"), name) for name, s in weights.items()]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 5, 8])
    graph = helper.make_graph(list(nodes), "net", [x], ports, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def values(proto: onnx.ModelProto) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).standard_normal((2, 5, 8)).astype("f4")
    return session.run(None, {"x": x})  # type: ignore[no-any-return]


def test_a_product_with_weights_is_a_layer_on_rows_that_takes_its_bias_with_it() -> None:
    nodes = (
        helper.make_node("MatMul", ["x", "w"], ["h"], "first"),
        helper.make_node("Add", ["b", "h"], ["a"], "bias"),
        helper.make_node("MatMul", ["a", "v"], ["y"], "second"),
    )
    proto, plain = model(*nodes), model(*nodes)
    assert flatten_products(proto) == ["2 products with weights are fully connected layers there"]
    assert [node.op_type for node in proto.graph.node] == ["Reshape", "Gemm", "Reshape"] * 2
    assert [node.name for node in proto.graph.node][1:3] == ["first", "bias"]
    for got, wanted in zip(values(proto), values(plain), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_an_addition_stays_where_the_product_is_a_result_too() -> None:
    nodes = (
        helper.make_node("MatMul", ["x", "w"], ["h"], "first"),
        helper.make_node("Add", ["h", "b"], ["y"], "bias"),
    )
    proto = model(*nodes, outputs=("h", "y"))
    flatten_products(proto)
    assert [node.op_type for node in proto.graph.node] == ["Reshape", "Gemm", "Reshape", "Add"]
    assert list(proto.graph.node[1].input) == ["h_rows", "w"]
