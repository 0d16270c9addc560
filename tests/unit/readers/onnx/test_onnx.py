"""The ONNX reader: bytes, names, order, constants, details."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from opscope.core.errors import ModelError
from opscope.core.protobuf import bytes_field, text_field
from opscope.graph.graph import ABSENT, DType, Graph, Role
from opscope.readers.onnx import looks_like_onnx, read_onnx
from support.models.onnx_models import BOOL, FLOAT, INT64, graph, model, save, value, weights
from support.models.small_models import convnet, cut_in_two, quantised

# Typed by hand from onnx.proto and the protobuf encoding guide: y = Relu(x), both 1×4 float32.
VALUE_X = bytes.fromhex("0a0178 120e 0a0c 0801 1208 0a020801 0a020804")
VALUE_Y = bytes.fromhex("0a0179 120e 0a0c 0801 1208 0a020801 0a020804")
NODE = bytes.fromhex("0a0178 120179 2204") + b"Relu"
GRAPH = b"\x0a\x0c" + NODE + b"\x12\x01g" + b"\x5a\x13" + VALUE_X + b"\x62\x13" + VALUE_Y
BY_HAND = b"\x08\x08" + b"\x12\x04hand" + b"\x3a\x3b" + GRAPH + bytes.fromhex("4204 0a00 1011")


def test_a_model_typed_by_hand_reads_as_typed(tmp_path: Path) -> None:
    read = read_onnx(save(tmp_path, BY_HAND, "relu.onnx"))
    (op,) = read.ops
    assert (op.kind, op.type, op.name, op.location) == ("relu", "Relu", "Relu_0", "node 0")
    x, y = read.tensors
    assert (x.name, x.shape, x.dtype, x.role) == ("x", (1, 4), DType.F32, Role.INPUT)
    assert (y.name, y.shape, y.dtype, y.role) == ("y", (1, 4), DType.F32, Role.ACTIVATION)
    assert (op.inputs, op.outputs, read.inputs, read.outputs) == ((0,), (1,), (0,), (1,))
    assert (read.name, read.framework, read.file_bytes) == ("relu", "ONNX", len(BY_HAND))
    assert read.details == {"opset": "ai.onnx 17", "ir_version": "8", "producer": "hand"}
    assert read.notes == ()


def test_a_model_that_states_its_shapes_is_read_without_the_onnx_package(tmp_path: Path) -> None:
    path = save(tmp_path, BY_HAND)
    code = (
        "import sys; from pathlib import Path; from opscope.readers.onnx import read_onnx;"
        f"read_onnx(Path({str(path)!r})); sys.exit('onnx' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_is_recognised_by_its_fields() -> None:
    assert looks_like_onnx(BY_HAND, len(BY_HAND))
    assert looks_like_onnx(BY_HAND[:9], len(BY_HAND))
    for other in (b"", b"\x1c\x00\x00\x00TFL3", b"PK\x03\x04", b"{}", bytes(64), b"module {\n", b"\x89PNG\r\n\x1a\n"):
        assert not looks_like_onnx(other, 1000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"model\.onnx: is empty; expected an ONNX model"),
        (b"\x08\x08", r"model\.onnx: byte 0x2: the model has no graph"),
        (b"\x00\x00", r"byte 0x0: field number 0"),
        (b"\x3a\x7f\x00", r"byte 0x0: field 7 claims 127 bytes; 1 are left"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", r"byte 0x0: field 7 claims \d+ bytes"),
        (b"\x08" + b"\xff" * 12, r"byte 0x1: a varint is longer than 10 bytes"),
        (b"\x08", r"byte 0x0: the file ends inside a field"),
        (b"\x0b\x00", r"byte 0x0: wire type 3 is not used by ONNX"),
        (b"\x3a\x02\x0a\x00", r"byte 0x4: node 0 has no operator type"),
    ],
)
def test_broken_bytes_are_reported_with_their_offset(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_onnx(save(tmp_path, content))


@pytest.mark.parametrize(
    "content",
    [
        b"\xca\x01\x00" * 2_000_000,  # functions
        b"\x42\x00" * 2_000_000,  # opsets
        bytes_field(7, b"\x6a\x00" * 2_000_000),  # value_info
        bytes_field(7, bytes_field(1, b"\x22\x01A" + b"\x2a\x00" * 1_000_000)),  # attributes of a node
        bytes_field(7, bytes_field(5, b"\x08\x01" * 1_000_000)),  # dimensions of an initializer
        bytes_field(7, bytes_field(11, bytes_field(2, bytes_field(1, bytes_field(2, b"\x0a\x00" * 1000))))),
    ],
    ids=["functions", "opsets", "values", "attributes", "constant dims", "input dims"],
)
def test_absurd_counts_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ModelError, match=r"byte 0x\w+: "):
        read_onnx(save(tmp_path, content))


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        read_onnx(tmp_path / "none.onnx")
    with pytest.raises(ModelError, match="is not a file"):
        read_onnx(tmp_path)


def test_graphs_nested_beyond_reason_are_refused(tmp_path: Path) -> None:
    content = b""
    for _ in range(5000):
        argument = text_field(1, "body") + bytes_field(6, content)
        content = bytes_field(1, text_field(4, "Loop") + bytes_field(5, argument))
    with pytest.raises(ModelError, match=r"byte 0x\w+: graphs are nested deeper than 32 levels"):
        read_onnx(save(tmp_path, bytes_field(7, content)))


def chain(*nodes: tuple[str, list[str], list[str]]) -> list[object]:
    return [helper.make_node(op_type, inputs, outputs) for op_type, inputs, outputs in nodes]


def test_nodes_out_of_order_are_sorted_and_keep_their_location(tmp_path: Path) -> None:
    nodes = chain(("Exp", ["b"], ["c"]), ("Relu", ["a"], ["b"]))
    read = read_onnx(save(tmp_path, model(graph(nodes, [value("a", [2])], [value("c")]))))
    assert [(op.type, op.location) for op in read.ops] == [("Relu", "node 1"), ("Exp", "node 0")]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (chain(("Add", ["a", "c"], ["b"]), ("Relu", ["b"], ["c"])), r"node 0 .*tensor '.' is part of a cycle"),
        (chain(("Relu", ["nowhere"], ["c"])), r"node 0 .*reads tensor 'nowhere', which nothing in the model provides"),
        (chain(("Relu", ["a"], ["c"]), ("Exp", ["a"], ["c"])), r"node 1 .*writes tensor 'c', which is already"),
        (chain(("Relu", ["a"], ["a"])), r"node 0 .*writes tensor 'a', which is already"),
        (chain(("Relu", ["a"], ["b"])), r"output 'c' is written by no node"),
        (chain(("Relu", ["a\nb\x1b"], ["c"])), r"reads tensor 'a\\\\nb\\\\x1b'"),
    ],
)
def test_impossible_wiring_names_node_and_tensor(tmp_path: Path, nodes: list[object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_onnx(save(tmp_path, model(graph(nodes, [value("a", [2])], [value("c")]))))


def test_initializers_listed_as_inputs_are_constants(tmp_path: Path) -> None:
    body = graph(
        chain(("Add", ["a", "w"], ["b"])), [value("a", [2]), value("w", [2])], [value("b", [2])], [weights("w", 2)]
    )
    read = read_onnx(save(tmp_path, model(body)))
    assert [read.tensors[number].name for number in read.inputs] == ["a"]
    assert {tensor.name: tensor.role for tensor in read.tensors}["w"] is Role.CONSTANT


@pytest.mark.parametrize(
    ("element", "dtype", "stored"),
    [
        (TensorProto.FLOAT, DType.F32, 24),
        (TensorProto.FLOAT16, DType.F16, 12),
        (TensorProto.BFLOAT16, DType.BF16, 12),
        (TensorProto.INT4, DType.I4, 3),
        (TensorProto.UINT4, DType.U4, 3),
        (TensorProto.FLOAT8E4M3FN, DType.F8E4M3, 6),
        (TensorProto.FLOAT8E5M2FNUZ, DType.F8E5M2, 6),
        (TensorProto.FLOAT4E2M1, DType.F4E2M1, 3),
        (TensorProto.INT64, DType.I64, 48),
        (TensorProto.BOOL, DType.BOOL, 6),
    ],
)
@pytest.mark.parametrize("form", ["raw", "typed", "external", "emptied"])
def test_a_constant_knows_what_the_file_holds(
    tmp_path: Path, element: int, dtype: DType, stored: int, form: str
) -> None:
    tensor = TensorProto(name="w", dims=[2, 3], data_type=element)
    if form == "raw":
        tensor.raw_data = bytes(stored)
    elif form == "external":
        tensor.data_location = TensorProto.EXTERNAL
        for key, content in (("location", "../../etc/passwd"), ("length", str(stored))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, content
    elif form == "emptied":
        tensor.raw_data = b""
    body = graph(chain(("Identity", ["w"], ["y"])), [], [value("y", [2, 3], element)], [tensor])
    constant = read_onnx(save(tmp_path, model(body))).tensors[0]
    assert (constant.shape, constant.dtype, constant.stored_bytes) == ((2, 3), dtype, stored)


def test_a_constant_whose_bytes_do_not_fit_its_shape_is_an_error(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", dims=[2, 3], data_type=FLOAT, raw_data=bytes(20))
    body = graph(chain(("Identity", ["w"], ["y"])), [], [value("y", [2, 3])], [tensor])
    with pytest.raises(ModelError, match="tensor 'w' holds 20 bytes; 2×3 f32 needs 24"):
        read_onnx(save(tmp_path, model(body)))


def test_a_sparse_initializer_stores_values_and_indices(tmp_path: Path) -> None:
    values = helper.make_tensor("w", FLOAT, [3], [1, 2, 3])
    indices = helper.make_tensor("i", INT64, [3], [1, 5, 9])
    body = graph(chain(("Identity", ["w"], ["y"])), [], [value("y", [4, 5])])
    body.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4, 5]))
    constant = read_onnx(save(tmp_path, model(body))).tensors[0]
    assert (constant.shape, constant.stored_bytes) == ((4, 5), 3 * 4 + 3 * 8)


def test_of_two_constants_with_one_name_the_last_counts(tmp_path: Path) -> None:
    """Old exporters write such files, and ONNX Runtime runs them."""
    nodes = [
        helper.make_node("Constant", [], ["s"], value_ints=[3, 4]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    stored = helper.make_tensor("s", INT64, [1], [12])
    read = read_onnx(save(tmp_path, model(graph(nodes, [value("x", [2, 6])], [value("y")], [stored]))))
    assert read.tensors[read.outputs[0]].shape == (3, 4)


def test_constant_nodes_become_tensors_and_no_ops(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Constant", [], ["t"], value=helper.make_tensor("", FLOAT, [2], [1, 2])),
        helper.make_node("Constant", [], ["i"], value_ints=[1, 2]),
        helper.make_node("Constant", [], ["f"], value_float=1.5),
        helper.make_node("Reshape", ["t", "i"], ["r"]),
        helper.make_node("Mul", ["r", "f"], ["y"]),
    ]
    read = read_onnx(save(tmp_path, model(graph(nodes, [], [value("y")]))))
    assert [op.type for op in read.ops] == [
        "Mul"
    ]  # what only constants decide is computed beforehand, but outputs stay
    constants = {tensor.name: tensor for tensor in read.tensors if tensor.role is Role.CONSTANT}
    assert {name: tensor.stored_bytes for name, tensor in constants.items()} == {"r": 8, "f": 4}
    assert (constants["r"].shape, constants["f"].shape) == ((1, 2), ())
    assert read.tensors[read.outputs[0]].shape == (1, 2)


def test_absent_inputs_are_marked_and_absent_outputs_left_out(tmp_path: Path) -> None:
    nodes = [helper.make_node("Resize", ["a", "", "", "s"], ["b"]), helper.make_node("Dropout", ["b"], ["c", ""])]
    sizes = helper.make_tensor("s", INT64, [4], [1, 1, 4, 4])
    read = read_onnx(save(tmp_path, model(graph(nodes, [value("a", [1, 1, 2, 2])], [value("c")], [sizes]))))
    assert read.ops[0].inputs[1:3] == (ABSENT, ABSENT)
    assert len(read.ops[1].outputs) == 1


def test_unknown_operators_are_kept_and_noted_once(tmp_path: Path) -> None:
    nodes = [helper.make_node("Warp", [a], [b], domain="acme") for a, b in (("x", "y"), ("y", "z"))]
    read = read_onnx(save(tmp_path, model(graph(nodes, [value("x", [1])], [value("z", [1])]), acme=1)))
    assert [(op.kind, op.type) for op in read.ops] == [("custom", "acme:Warp")] * 2
    (note,) = [note for note in read.notes if note.code == "unknown-op"]
    assert note.text == "operator acme:Warp has no known cost (2 ops)"
    assert note.op == "Warp_0"


def test_names_that_are_not_utf8_do_not_stop_the_reader(tmp_path: Path) -> None:
    read = read_onnx(save(tmp_path, BY_HAND.replace(b"x", b"\xff")))
    assert read.tensors[0].name == "�"


def test_metadata_is_bounded(tmp_path: Path) -> None:
    content = model(graph(chain(("Relu", ["x"], ["y"])), [value("x", [1])], [value("y", [1])]))
    for number in range(1000):
        entry = content.metadata_props.add()
        entry.key, entry.value = f"key{number}", "v" * 100_000
    details = read_onnx(save(tmp_path, content)).details
    assert len(details) < 40
    assert max(map(len, details.values())) <= 200


def test_a_condition_is_read_from_a_bool_constant(tmp_path: Path) -> None:
    tensor = helper.make_tensor("c", BOOL, [], [True])
    body = graph(chain(("Identity", ["c"], ["y"])), [], [value("y", [], BOOL)], [tensor])
    assert read_onnx(save(tmp_path, model(body))).tensors[0].stored_bytes == 1


@pytest.mark.parametrize("make", [convnet, cut_in_two])
def test_shapes_of_a_model_that_states_none_are_all_found(make: Callable[[Path], Path], tmp_path: Path) -> None:
    assert_whole(read_onnx(make(tmp_path / "model.onnx")))


def test_a_model_of_a_real_quantiser_is_read_whole(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime.quantization", reason="onnxruntime is not installed: it makes the model")
    read = read_onnx(quantised(convnet(tmp_path / "model.onnx"), tmp_path / "qdq.onnx"))
    assert_whole(read)
    pairs = [sum(op.type == kind for op in read.ops) for kind in ("QuantizeLinear", "DequantizeLinear")]
    assert 0 < pairs[0] < pairs[1]  # constants are stored quantised: they have the second half alone


def assert_whole(read: Graph) -> None:
    assert read.ops
    assert not read.notes
    assert all(tensor.shape is not None for tensor in read.tensors)


def test_a_model_cut_short_is_still_taken_for_a_model(tmp_path: Path) -> None:
    assert looks_like_onnx(BY_HAND, len(BY_HAND) - 1)
    with pytest.raises(ModelError, match=r"byte 0x45: field 8 claims 4 bytes; 3 are left"):
        read_onnx(save(tmp_path, BY_HAND[:-1], "cut.onnx"))
