"""Least ONNX models for the reader's tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import split

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from opscope.commands.command import named_shape
from opscope.graph.graph import Graph, Op
from opscope.readers.onnx import read_onnx

FLOAT, UINT8, INT8, INT32, INT64, BOOL = (
    TensorProto.FLOAT,
    TensorProto.UINT8,
    TensorProto.INT8,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.BOOL,
)

Dims = Sequence[int | str | None] | None


def value(name: str, dims: Dims = None, element: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element, dims)


def weights(name: str, *dims: int, element: int = FLOAT) -> TensorProto:
    count = 1
    for dim in dims:
        count *= dim
    return helper.make_tensor(name, element, dims, [0] * count)


def whole(name: str, numbers: Sequence[int]) -> TensorProto:
    return helper.make_tensor(name, INT64, [len(numbers)], numbers)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Sequence[TensorProto] = (),
    values: Sequence[ValueInfoProto] = (),
) -> GraphProto:
    return helper.make_graph(nodes, "g", inputs, outputs, constants, value_info=values)


def model(body: GraphProto, opset: int = 17, **others: int) -> ModelProto:
    domains = {"": opset, "com.microsoft": 1} | others
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(body, opset_imports=imports, ir_version=10)


def save(folder: Path, content: ModelProto | bytes, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


def read_node(
    folder: Path,
    node: NodeProto,
    inputs: dict[str, Dims],
    constants: Sequence[TensorProto] = (),
    opset: int = 17,
) -> tuple[Graph, Op]:
    """A model of one node, its outputs' shapes left to inference."""
    outputs = [value(name) for name in node.output if name]
    body = graph([node], [value(name, dims) for name, dims in inputs.items()], outputs, constants)
    read = read_onnx(save(folder, model(body, opset)))
    return read, read.ops[0]


def shape_of(read: Graph, name: str) -> tuple[int, ...] | None:
    return next(tensor.shape for tensor in read.tensors if tensor.name == name)


def suggested(message: str) -> dict[str, tuple[int, ...]]:
    """The shapes that an error about open dimensions suggests, as the command line would read them."""
    words = split(message.partition("for example ")[2])
    assert words[::2] == ["--shape"] * (len(words) // 2), message
    return dict(named_shape(word) for word in words[1::2])


def classifier(path: Path) -> Path:
    """A label, and a map from labels to probabilities for every row: what scikit-learn's exporters write."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            classlabels_ints=[0, 1, 2],
            coefficients=[0.1] * 6,
            intercepts=[0.0, 0.1, 0.2],
        ),
        helper.make_node("Softmax", ["scores"], ["raw"]),
        helper.make_node("ZipMap", ["raw"], ["chances"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]),
    ]
    maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    )
    outputs = [value("label", [3], TensorProto.INT64), helper.make_value_info("chances", maps)]
    return save(path.parent, model(graph(nodes, [value("x", [3, 2])], outputs), **{"ai.onnx.ml": 1}), path.name)
