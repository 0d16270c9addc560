"""Small float networks with weights, for quantisers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def weights(name: str, *shape: int, seed: int = 3) -> TensorProto:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(values, name)


def saved(
    path: Path,
    nodes: list[NodeProto],
    inputs: dict[str, list[int | str]],
    outputs: dict[str, list[int | str] | None],
    constants: list[TensorProto],
    *,
    opset: int = 17,
    integers: tuple[str, ...] = (),
) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, INT64 if n in integers else FLOAT, shape) for n, shape in inputs.items()],
        [helper.make_tensor_value_info(n, FLOAT, shape) for n, shape in outputs.items()],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    helper.set_model_props(model, {"author": "somebody"})
    onnx.save(model, str(path))
    return path


def conv_classifier(path: Path, *, batch: int | str = 1, opset: int = 17) -> Path:
    """Conv, Relu, mean, Gemm: scores of five classes; and what came before them, as a second output."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="act"),
        helper.make_node("GlobalAveragePool", ["b"], ["c"], name="mean"),
        helper.make_node("Flatten", ["c"], ["d"], name="flat"),
        helper.make_node("Gemm", ["d", "v"], ["scores"], name="head"),
    ]
    constants = [weights("w", 8, 3, 3, 3), weights("v", 8, 5)]
    outputs: dict[str, list[int | str] | None] = {"scores": [batch, 5], "d": [batch, 8]}
    return saved(path, nodes, {"x": [batch, 3, 8, 8]}, outputs, constants, opset=opset)


def two_inputs(path: Path) -> Path:
    """Rows of a table, chosen by integers, and a product with a float input; Sin is an op that stays float."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"], name="look"),
        helper.make_node("MatMul", ["rows", "w"], ["a"], name="product"),
        helper.make_node("Add", ["a", "bias"], ["b"], name="sum"),
        helper.make_node("Sin", ["b"], ["y"], name="wave"),
    ]
    constants = [weights("table", 10, 6), weights("w", 6, 4)]
    return saved(path, nodes, {"ids": [1, 3], "bias": [1, 3, 4]}, {"y": [1, 3, 4]}, constants, integers=("ids",))
