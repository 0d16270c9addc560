"""ONNX operators in opscope's vocabulary: kinds, canonical inputs, attributes."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import NodeProto, TensorProto, defs, helper

from opscope.graph.graph import ABSENT, Graph, Op
from opscope.graph.kinds import KINDS
from opscope.readers.onnx import read_onnx
from opscope.readers.onnx.ops import DOMAINS
from support.models.onnx_models import FLOAT, INT8, UINT8, Dims, graph, model, read_node, save, value, weights, whole

node = helper.make_node


@pytest.mark.parametrize("domain", ["", "ai.onnx.ml", "ai.onnx.preview"])
def test_every_operator_of_the_standard_has_a_row(domain: str) -> None:
    known = {schema.name for schema in defs.get_all_schemas_with_history() if schema.domain == domain}
    assert known - set(DOMAINS[domain]) == set()


def test_every_row_has_a_kind_of_the_vocabulary() -> None:
    assert {rule.kind for table in DOMAINS.values() for rule in table.values()} <= set(KINDS)


CASES: list[tuple[NodeProto, dict[str, Dims], list[TensorProto], int, str, dict[str, object]]] = [
    (
        node("Conv", ["x", "w"], ["y"], strides=[2, 2], group=2),
        {"x": [1, 4, 8, 8]},
        [weights("w", 6, 2, 3, 3)],
        17,
        "conv",
        {"kernel": (3, 3), "strides": (2, 2), "dilations": (1, 1), "groups": 2, "channel_axis": 1},
    ),
    (
        node("ConvTranspose", ["x", "w"], ["y"]),
        {"x": [1, 4, 8]},
        [weights("w", 4, 2, 5)],
        17,
        "conv_transpose",
        {"kernel": (5,), "strides": (1,), "dilations": (1,), "groups": 1, "channel_axis": 1},
    ),
    (node("MatMul", ["x", "w"], ["y"]), {"x": [2, 3, 4]}, [weights("w", 4, 5)], 17, "matmul", {"k": 4, "n": 5}),
    (node("MatMul", ["x", "w"], ["y"]), {"x": [3, 4]}, [weights("w", 4)], 17, "matmul", {"k": 4, "n": 1}),
    (node("Gemm", ["x", "w"], ["y"], transB=1), {"x": [3, 4]}, [weights("w", 5, 4)], 17, "matmul", {"k": 4, "n": 5}),
    (
        node("Gemm", ["x", "w"], ["y"], transA=1),
        {"x": [4, 3]},
        [weights("w", 4, 5)],
        17,
        "matmul",
        {"k": 4, "n": 5},
    ),
    (
        node("Einsum", ["x", "w"], ["y"], equation="ij,jk->ik"),
        {"x": [3, 4]},
        [weights("w", 4, 5)],
        17,
        "einsum",
        {"equation": "ij,jk->ik"},
    ),
    *(
        (node("Einsum", ["x"], ["y"], equation=equation), {"x": [2, 3, 4]}, [], 17, "transpose", {"permutation": order})
        for equation, order in (
            ("bij->bji", (0, 2, 1)),
            ("... i j -> ... j i", (0, 2, 1)),
            ("cab", (1, 2, 0)),
            ("i...->...i", (1, 2, 0)),
        )
    ),
    *(
        (node("Einsum", ["x"], ["y"], equation=equation), {"x": [3, 3, 3]}, [], 17, "einsum", {"equation": equation})
        for equation in ("bij->bj", "bii->bi", "iii")
    ),
    *(
        (node("Resize", ["x", "", "s"], ["y"], mode=mode), {"x": [1, 2, 3, 4], "s": [4]}, [], 17, kind, {"mode": mode})
        for mode, kind in (("nearest", "resize_nearest"), ("linear", "resize"), ("cubic", "resize"))
    ),
    (
        node("Attention", ["q", "k", "v"], ["y"]),
        {"q": [2, 8, 5, 16], "k": [2, 4, 7, 16], "v": [2, 4, 7, 32]},
        [],
        23,
        "attention",
        {
            "batch": 2,
            "heads": 8,
            "query_length": 5,
            "key_length": 7,
            "head_size": 16,
            "value_size": 32,
            "projection_macs": 0,
        },
    ),
    (
        node("Attention", ["q", "k", "v"], ["y"], q_num_heads=8, kv_num_heads=4),
        {"q": [2, 5, 128], "k": [2, 7, 64], "v": [2, 7, 128]},
        [],
        23,
        "attention",
        {
            "batch": 2,
            "heads": 8,
            "query_length": 5,
            "key_length": 7,
            "head_size": 16,
            "value_size": 32,
            "projection_macs": 0,
        },
    ),
    (
        node("LSTM", ["x", "w", "r"], ["y"], hidden_size=6, direction="bidirectional"),
        {"x": [9, 2, 4]},
        [weights("w", 2, 24, 4), weights("r", 2, 24, 6)],
        17,
        "lstm",
        {"steps": 9, "batch": 2, "input_size": 4, "hidden_size": 6, "directions": 2},
    ),
    (
        node("GRU", ["x", "w", "r"], ["y"], hidden_size=6, layout=1),
        {"x": [2, 9, 4]},
        [weights("w", 1, 18, 4), weights("r", 1, 18, 6)],
        17,
        "gru",
        {"steps": 9, "batch": 2, "input_size": 4, "hidden_size": 6, "directions": 1},
    ),
    (
        node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2]),
        {"x": [1, 4, 8, 8]},
        [],
        17,
        "max_pool",
        {"kernel": (2, 2), "strides": (2, 2), "channel_axis": 1},
    ),
    (
        node("GlobalAveragePool", ["x"], ["y"]),
        {"x": [1, 4, 7, 5]},
        [],
        17,
        "average_pool",
        {"kernel": (7, 5), "strides": (1, 1), "channel_axis": 1},
    ),
    (node("Softmax", ["x"], ["y"]), {"x": [2, 3, 4]}, [], 13, "softmax", {"axes": (2,)}),
    (node("Softmax", ["x"], ["y"]), {"x": [2, 3, 4]}, [], 12, "softmax", {"axes": (1, 2)}),
    (node("Softmax", ["x"], ["y"], axis=-1), {"x": [2, 3, 4]}, [], 12, "softmax", {"axes": (2,)}),
    (
        node("LayerNormalization", ["x", "w"], ["y"], axis=-2),
        {"x": [2, 3, 4]},
        [weights("w", 3, 4)],
        17,
        "layer_norm",
        {"axes": (1, 2)},
    ),
    (node("ReduceMean", ["x"], ["y"], axes=[-1, 0]), {"x": [2, 3, 4]}, [], 13, "reduce", {"axes": (0, 2)}),
    (node("ReduceMean", ["x", "a"], ["y"]), {"x": [2, 3, 4]}, [whole("a", [-1])], 18, "reduce", {"axes": (2,)}),
    (node("ReduceMean", ["x"], ["y"]), {"x": [2, 3, 4]}, [], 18, "reduce", {"axes": (0, 1, 2)}),
    (
        node("ReduceSum", ["x"], ["y"], noop_with_empty_axes=1),
        {"x": [2, 3, 4]},
        [],
        13,
        "reduce",
        {"axes": ()},
    ),
    (node("Transpose", ["x"], ["y"]), {"x": [2, 3, 4]}, [], 17, "transpose", {"permutation": (2, 1, 0)}),
    (node("Concat", ["x", "x"], ["y"], axis=-1), {"x": [2, 3]}, [], 17, "concat", {"axis": 1}),
    (node("Gather", ["x", "i"], ["y"], axis=-1), {"x": [2, 3]}, [whole("i", [0])], 17, "gather", {"axis": 1}),
    (node("ArgMax", ["x"], ["y"], axis=-1), {"x": [2, 3]}, [], 17, "argmax", {"axes": (1,)}),
    (node("CumSum", ["x", "i"], ["y"]), {"x": [2, 3]}, [whole("i", [-1])], 17, "cumsum", {"axes": (1,)}),
]


@pytest.mark.parametrize(("proto", "inputs", "constants", "opset", "kind", "attributes"), CASES)
def test_attributes_follow_the_table(  # noqa: PLR0917 - one row of the table
    tmp_path: Path,
    proto: NodeProto,
    inputs: dict[str, Dims],
    constants: list[TensorProto],
    opset: int,
    kind: str,
    attributes: dict[str, object],
) -> None:
    _, op = read_node(tmp_path, proto, inputs, constants, opset)
    assert (op.kind, dict(op.attributes)) == (kind, attributes)


def names(read: Graph, op: Op) -> list[str]:
    return ["—" if number == ABSENT else read.tensors[number].name for number in op.inputs]


def test_quantised_operators_put_data_weights_and_bias_first(tmp_path: Path) -> None:
    scale = [helper.make_tensor(name, FLOAT, [], [1.0]) for name in ("xs", "ws", "ys")]
    zero = [helper.make_tensor(name, UINT8, [], [0]) for name in ("xz", "wz", "yz")]
    w = weights("w", 6, 4, 3, 3, element=UINT8)
    bias = weights("b", 6, element=TensorProto.INT32)
    proto = node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"])
    body = graph([proto], [value("x", [1, 4, 8, 8], UINT8)], [value("y", None, UINT8)], [*scale, *zero, w, bias])
    read = read_onnx(save(tmp_path, model(body)))
    assert names(read, read.ops[0]) == ["x", "w", "b", "xs", "xz", "ws", "wz", "ys", "yz"]
    assert read.ops[0].attributes["kernel"] == (3, 3)
    assert read.tensors[read.outputs[0]].shape == (1, 6, 6, 6)


def test_an_integer_product_has_no_bias(tmp_path: Path) -> None:
    zero = [helper.make_tensor(name, INT8, [], [0]) for name in ("az", "bz")]
    body = graph(
        [node("MatMulInteger", ["a", "b", "az", "bz"], ["y"])],
        [value("a", [3, 4], INT8)],
        [value("y", None, TensorProto.INT32)],
        [weights("b", 4, 5, element=INT8), *zero],
    )
    read = read_onnx(save(tmp_path, model(body)))
    assert names(read, read.ops[0]) == ["a", "b", "—", "az", "bz"]


def test_a_fused_activation_is_named_by_its_kind(tmp_path: Path) -> None:
    proto = node("FusedConv", ["x", "w"], ["y"], domain="com.microsoft", activation="Relu", kernel_shape=[3, 3])
    read, op = read_node(tmp_path, proto, {"x": [1, 4, 8, 8]}, [weights("w", 6, 4, 3, 3)])
    assert (op.kind, op.type, op.attributes["activation"]) == ("conv", "com.microsoft:FusedConv", "relu")
    assert read.tensors[read.outputs[0]].shape == (1, 6, 6, 6)


def test_fused_attention_counts_its_projection(tmp_path: Path) -> None:
    proto = node("Attention", ["x", "w", "b"], ["y"], domain="com.microsoft", num_heads=4)
    read, op = read_node(tmp_path, proto, {"x": [2, 5, 32]}, [weights("w", 32, 96), weights("b", 96)])
    assert op.attributes == {
        "batch": 2,
        "heads": 4,
        "query_length": 5,
        "key_length": 5,
        "head_size": 8,
        "value_size": 8,
        "projection_macs": 2 * 5 * 32 * 96,
    }
    assert read.tensors[read.outputs[0]].shape == (2, 5, 32)


def test_frames_are_as_long_as_is_said_or_as_their_window(tmp_path: Path) -> None:
    step, length = whole("step", [64]), whole("length", [256])
    windowed = node("STFT", ["x", "step", "window"], ["y"])
    _, op = read_node(tmp_path, windowed, {"x": [2, 4096, 1], "window": [512]}, [step])
    assert op.attributes == {"axes": (2,), "lengths": (512,)}
    said = node("STFT", ["x", "step", "", "length"], ["y"])
    _, op = read_node(tmp_path, said, {"x": [2, 4096, 1]}, [step, length])
    assert op.attributes == {"axes": (2,), "lengths": (256,)}


def test_the_axis_of_a_transform_is_an_input_from_opset_20_on(tmp_path: Path) -> None:
    transform = node("DFT", ["x", "length", "axis"], ["y"])
    constants = [whole("length", [32]), whole("axis", [1])]
    _, op = read_node(tmp_path, transform, {"x": [2, 24, 5, 2]}, constants, opset=20)
    assert op.attributes == {"axes": (1,), "lengths": (32,)}


def test_a_fourier_transform_is_noted(tmp_path: Path) -> None:
    read, op = read_node(tmp_path, node("DFT", ["x"], ["y"]), {"x": [1, 16, 1]})
    assert (op.kind, op.attributes) == ("fft", {"axes": (1,), "lengths": (16,)})
    assert "Fourier" in read.notes[0].text
