"""Shapes: the user's extents, inference, and stand-ins for operators that `onnx` does not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import NodeProto, TensorProto, helper

from opscope.core.errors import ModelError
from opscope.readers.onnx import read_onnx
from support.models.onnx_models import FLOAT, INT64, UINT8, Dims, graph, model, save, shape_of, value, weights, whole

node = helper.make_node


def test_a_fixed_batch_can_be_overruled_and_stale_shapes_are_dropped(tmp_path: Path) -> None:
    nodes = [node("Relu", ["x"], ["h"]), node("Add", ["h", "c"], ["z"])]
    inputs = [value("x", [1, 3]), value("c", [2, 3])]
    body = graph(nodes, inputs[:1], [value("z", [1, 3])], [weights("c", 3)], [value("h", [1, 3])])
    read = read_onnx(save(tmp_path, model(body)), batch=4)
    assert (shape_of(read, "h"), shape_of(read, "z")) == ((4, 3), (4, 3))


def test_the_batch_leaves_inputs_of_another_extent_alone(tmp_path: Path) -> None:
    inputs = [value("x", [1, 3]), value("table", [3, 8]), value("y", [1, 3])]
    nodes = [node("Add", ["x", "y"], ["h"]), node("MatMul", ["h", "table"], ["z"])]
    read = read_onnx(save(tmp_path, model(graph(nodes, inputs, [value("z")]))), batch=4)
    assert (shape_of(read, "table"), shape_of(read, "y"), shape_of(read, "z")) == ((3, 8), (4, 3), (4, 8))


def test_a_reshape_that_fixes_the_batch_is_an_error_when_another_is_asked_for(tmp_path: Path) -> None:
    body = graph(
        [node("Reshape", ["x", "s"], ["y"], name="flat")], [value("x", [1, 2, 3])], [value("y")], [whole("s", [1, 6])]
    )
    path = save(tmp_path, model(body))
    assert shape_of(read_onnx(path), "y") == (1, 6)
    with pytest.raises(ModelError, match=r"node 0 \(flat\): turns 24 elements into 1×6: the model cannot run"):
        read_onnx(path, batch=4)


def test_shapes_computed_by_the_model_are_propagated(tmp_path: Path) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axes"], ["n1"]),
        node("Concat", ["n1", "minus"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["y"]),
    ]
    zero = helper.make_tensor("zero", INT64, [], [0])
    body = graph(nodes, [value("x", ["n", 2, 3])], [value("y")], [zero, whole("axes", [0]), whole("minus", [-1])])
    assert shape_of(read_onnx(save(tmp_path, model(body)), batch=5), "y") == (5, 6)


def test_a_shape_that_depends_on_data_is_unknown_and_noted(tmp_path: Path) -> None:
    nodes = [node("NonZero", ["x"], ["i"], name="where"), node("Cast", ["i"], ["y"], to=FLOAT)]
    read = read_onnx(save(tmp_path, model(graph(nodes, [value("x", [4])], [value("y")]))))
    assert shape_of(read, "y") is None
    (note,) = read.notes
    assert (note.code, note.op) == ("unknown-shape", "where")


def test_a_domain_that_is_not_imported_does_not_stop_inference(tmp_path: Path) -> None:
    nodes = [node("Warp", ["x"], ["w"], domain="acme"), node("Relu", ["x"], ["y"])]
    read = read_onnx(save(tmp_path, model(graph(nodes, [value("x", [4])], [value("y")]))))
    assert shape_of(read, "y") == (4,)


def test_operands_that_do_not_match_are_an_error_where_shapes_were_given(tmp_path: Path) -> None:
    """Without, the file may know better than its reader: the shape is unknown, and the reason is kept."""
    nodes = [node("MatMul", ["x", "w"], ["y"], name="product"), node("Relu", ["y"], ["z"])]
    body = graph(nodes, [value("x", [2, 3])], [value("z")], [weights("w", 4, 5)])
    path = save(tmp_path, model(body))
    read = read_onnx(path)
    assert {tensor.unknown_because for tensor in read.tensors if tensor.shape is None} == {
        "MatMul at node 0 multiplies 2×3 by 4×5"
    }
    (note,) = read.notes
    assert (note.code, note.op) == ("unknown-shape", "product")
    with pytest.raises(ModelError, match=r"node 0 \(product\): multiplies 7×3 by 4×5: the model cannot run with the"):
        read_onnx(path, shapes={"x": (7, 3)})
    assert shape_of(read_onnx(path, shapes={"x": (7, 4)}), "z") == (7, 5)


def test_an_operator_without_a_rule_is_left_to_the_onnx_package(tmp_path: Path) -> None:
    proto = node("TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0)
    proto.attribute.extend([helper.make_attribute("ngram_counts", [0]), helper.make_attribute("ngram_indexes", [0, 4])])
    body = graph([proto], [value("x", [3, 6], INT64)], [value("y")])
    assert shape_of(read_onnx(save(tmp_path, model(body))), "y") == (3, 5)


def test_weights_beyond_two_gigabytes_are_never_read(tmp_path: Path) -> None:
    """A sparse file: a 3 GB tensor of nothing, then the rest of the model."""
    rows, columns = 3 << 10, 1 << 18  # × 4 bytes = 3 GiB
    body = graph([node("MatMul", ["x", "w"], ["y"])], [value("x", [1, rows])], [value("y")])
    head = model(body).SerializeToString()
    path = tmp_path / "big.onnx"
    write_with_hole(path, head, TensorProto(name="w", dims=[rows, columns], data_type=FLOAT), rows * columns * 4)
    read = read_onnx(path)
    assert shape_of(read, "y") == (1, columns)
    assert next(tensor for tensor in read.tensors if tensor.name == "w").stored_bytes == 3 << 30


def write_with_hole(path: Path, content: bytes, tensor: TensorProto, size: int) -> None:
    """The model with `tensor` added as an initializer whose raw_data is a hole in the file."""
    from opscope.core.protobuf import varint

    start = content.index(b"\x3a")  # the graph's tag: ir_version alone stands before it
    graph_size, after = content[start + 1], start + 2
    assert graph_size < 0x80
    graph_bytes, rest = content[after : after + graph_size], content[after + graph_size :]
    fields = tensor.SerializeToString() + b"\x4a" + varint(size)
    initializer = b"\x2a" + varint(len(fields) + size) + fields
    total = len(graph_bytes) + len(initializer) + size
    with path.open("wb") as file:
        file.write(content[:start] + rest + b"\x3a" + varint(total) + graph_bytes + initializer)
        file.truncate(file.tell() + size)


def contrib(op_type: str, inputs: list[str], outputs: list[str], **attributes: object) -> NodeProto:
    return node(op_type, inputs, outputs, domain="com.microsoft", **attributes)


SCALES = [helper.make_tensor(name, FLOAT, [], [1.0]) for name in ("s", "t", "u")]
ZEROS = [helper.make_tensor(name, UINT8, [], [0]) for name in ("z", "q", "r")]

CONTRIB: list[tuple[NodeProto, dict[str, Dims], list[TensorProto], int]] = [
    (contrib("BiasGelu", ["x", "b"], ["y"]), {"x": [2, 3, 8]}, [weights("b", 8)], FLOAT),
    (contrib("FastGelu", ["x"], ["y"]), {"x": [2, 3, 8]}, [], FLOAT),
    (contrib("QuickGelu", ["x"], ["y"]), {"x": [2, 3, 8]}, [], FLOAT),
    (
        contrib("SkipLayerNormalization", ["x", "x2", "g", "b"], ["y", "", "", "sum"]),
        {"x": [2, 3, 8], "x2": [2, 3, 8]},
        [weights("g", 8), weights("b", 8)],
        FLOAT,
    ),
    (
        contrib("SkipSimplifiedLayerNormalization", ["x", "x2", "g"], ["y"]),
        {"x": [2, 3, 8], "x2": [2, 3, 8]},
        [weights("g", 8)],
        FLOAT,
    ),
    (contrib("FusedMatMul", ["x", "w"], ["y"], transB=1), {"x": [2, 3, 8]}, [weights("w", 2, 5, 8)], FLOAT),
    (contrib("FusedMatMul", ["x", "w"], ["y"], transA=1), {"x": [2, 8, 3]}, [weights("w", 8, 5)], FLOAT),
    (
        contrib("MatMulNBits", ["x", "w", "s1"], ["y"], K=32, N=5, bits=4, block_size=32),
        {"x": [2, 3, 32]},
        [weights("w", 5, 1, 16, element=UINT8), weights("s1", 5)],
        FLOAT,
    ),
    (contrib("QLinearAdd", ["x", "s", "z", "w", "t", "q", "u", "r"], ["y"]), {"x": [2, 3]}, [*SCALES, *ZEROS], UINT8),
    (
        contrib("QLinearConcat", ["u", "r", "x", "s", "z", "x", "t", "q"], ["y"], axis=1),
        {"x": [2, 3]},
        [*SCALES, *ZEROS],
        UINT8,
    ),
    (
        contrib("QLinearGlobalAveragePool", ["x", "s", "z", "t", "q"], ["y"]),
        {"x": [1, 3, 4, 4]},
        [*SCALES, *ZEROS],
        UINT8,
    ),
    (
        contrib("Attention", ["x", "w", "b"], ["y"], num_heads=4),
        {"x": [2, 5, 32]},
        [weights("w", 32, 96), weights("b", 96)],
        FLOAT,
    ),
    (
        contrib("MultiHeadAttention", ["x", "k", "v"], ["y", "pk", "pv"], num_heads=4),
        {"x": [2, 5, 32], "k": [2, 7, 32], "v": [2, 7, 32]},
        [],
        FLOAT,
    ),
    (contrib("MultiHeadAttention", ["x"], ["y"], num_heads=4), {"x": [2, 5, 4, 3, 8]}, [], FLOAT),
]


@pytest.mark.parametrize(
    ("proto", "inputs", "constants", "element"), CONTRIB, ids=lambda item: getattr(item, "op_type", "")
)
def test_stand_ins_have_the_shapes_that_onnx_runtime_gives(
    tmp_path: Path, proto: NodeProto, inputs: dict[str, Dims], constants: list[TensorProto], element: int
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    given = [value(name, dims, element) for name, dims in inputs.items()]
    if "w" in proto.input and all(constant.name != "w" for constant in constants):
        constants = [*constants, weights("w", 2, 3, element=element)]
    outputs = [value(name, None, element) for name in proto.output if name]
    path = save(tmp_path, model(graph([proto], given, outputs, constants)))
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    read = read_onnx(path)
    assert not read.notes
    for output in session.get_outputs():
        if output.shape:  # the runtime itself leaves the caches of attention open
            assert shape_of(read, output.name) == tuple(output.shape)


def test_packed_grouped_attention_yields_its_queries_and_a_longer_cache(tmp_path: Path) -> None:
    proto = contrib(
        "GroupQueryAttention", ["x", "", "", "pk", "pv", "n", "t"], ["y", "k", "v"], num_heads=4, kv_num_heads=2
    )
    given = [value("x", [1, 3, 64]), value("pk", [1, 2, 10, 8]), value("pv", [1, 2, 10, 8])]
    constants = [helper.make_tensor(name, TensorProto.INT32, dims, [0]) for name, dims in (("n", [1]), ("t", []))]
    body = graph([proto], given, [value("y"), value("k"), value("v")], constants)
    read = read_onnx(save(tmp_path, model(body)))
    assert [shape_of(read, name) for name in ("y", "k", "v")] == [(1, 3, 32), (1, 2, 13, 8), (1, 2, 13, 8)]
    assert (read.ops[0].attributes["key_length"], read.ops[0].attributes["head_size"]) == (13, 8)


def test_stand_ins_carry_shapes_through_many_layers_in_one_pass(tmp_path: Path) -> None:
    nodes: list[NodeProto] = []
    for layer in range(50):
        nodes.append(contrib("BiasGelu", [f"t{layer}", "b"], [f"h{layer}"]))
        nodes.append(node("MatMul", [f"h{layer}", "w"], [f"t{layer + 1}"]))
    body = graph(nodes, [value("t0", [2, 8])], [value("t50")], [weights("b", 8), weights("w", 8, 8)])
    read = read_onnx(save(tmp_path, model(body)))
    assert shape_of(read, "t50") == (2, 8)
