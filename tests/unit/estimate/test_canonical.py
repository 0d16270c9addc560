"""The graph in the form a runtime executes it."""

from __future__ import annotations

import pytest

from opscope.estimate.canonical import canonicalise, fold_constants, fold_quantisation, fold_rescales, fuse, retype
from opscope.estimate.traffic.stores import parameter_bytes
from opscope.estimate.work import work_of
from opscope.graph.graph import DType, Graph, Role
from support.build import Sketch, mobilenet, resnet, target

FUSING = target(fuses=("relu", "clip", "batch_norm"))


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def macs(graph: Graph) -> int:
    return sum(work_of(op, graph).macs for op in graph.ops)


def quantised_block(*, relu_behind_a_pair: bool = False) -> Graph:
    """DQ → conv → relu → Q with stored weights: what a QDQ exporter writes for one layer."""
    draw = Sketch()

    def dequantized(tensor: int, name: str) -> int:
        scale = draw.constant(1)
        return draw.op("dequantize", (tensor, scale), draw.tensors[tensor].shape, dtype=DType.F32, name=name)

    def quantized(tensor: int, name: str) -> int:
        return draw.op("quantize", (tensor, draw.constant(1)), draw.tensors[tensor].shape, dtype=DType.I8, name=name)

    data = dequantized(draw.input(1, 8, 8, 4, dtype=DType.I8), "dq_data")
    weights = dequantized(draw.constant(16, 3, 3, 4, dtype=DType.I8), "dq_weights")
    attributes = {"kernel": (3, 3), "strides": (1, 1), "groups": 1, "channel_axis": 3}
    data = draw.op("conv", (data, weights), (1, 8, 8, 16), name="conv", **attributes)
    if relu_behind_a_pair:
        data = dequantized(quantized(data, "q_between"), "dq_between")
    data = draw.same("relu", data, name="relu")
    return draw.graph(quantized(data, "q_out"), annotated=True)


def test_a_quantised_block_of_five_ops_becomes_one_int8_op() -> None:
    before = quantised_block()
    after = canonicalise(before, FUSING)
    (op,) = after.ops
    assert len(before.ops) == 5
    assert (op.kind, op.attributes["activation"]) == ("conv", "relu")
    assert {after.tensors[t].dtype for t in (*op.inputs, *op.outputs)} == {DType.I8}
    assert op.sources == ("conv", "relu", "dq_data", "dq_weights", "q_out")
    assert macs(after) == macs(before)


def test_the_same_block_runs_as_it_stands_where_quantize_ops_are_real_ops() -> None:
    before = quantised_block()
    plain = Graph(before.name, "", "", before.ops, before.tensors, before.inputs, before.outputs)
    assert kinds(canonicalise(plain, target())) == ["dequantize", "dequantize", "conv", "relu", "quantize"]


def test_ops_that_a_pair_kept_apart_are_fused_too() -> None:
    after = canonicalise(quantised_block(relu_behind_a_pair=True), FUSING)
    assert kinds(after) == ["conv"]
    assert "relu" in after.ops[0].sources


def test_weights_stored_as_int8_are_read_as_int8_where_the_arithmetic_is_not() -> None:
    draw = Sketch()
    stored = draw.constant(64, 32, dtype=DType.I8)
    weights = draw.op("dequantize", (stored, draw.constant(1)), (64, 32))
    out = draw.op("matmul", (draw.input(1, 32), weights), (1, 64), k=32, n=64)
    after = canonicalise(draw.graph(out, annotated=True), target())
    (op,) = after.ops
    assert after.tensors[op.inputs[0]].dtype is DType.F32
    assert after.tensors[op.inputs[1]].dtype is DType.I8
    assert parameter_bytes(after) == 64 * 32


def test_a_dequantized_output_of_the_graph_stays() -> None:
    draw = Sketch()
    out = draw.op("dequantize", (draw.input(8, dtype=DType.I8), draw.constant(1)), (8,))
    assert kinds(fold_quantisation(draw.graph(out, annotated=True))) == ["dequantize"]


def test_an_activation_goes_into_the_op_before_it_and_is_named_in_sources() -> None:
    draw = Sketch()
    out = draw.same("relu", draw.conv(draw.input(1, 4, 4, 8), 8, name="conv"), name="relu")
    (op,) = canonicalise(draw.graph(out), FUSING).ops
    assert (op.kind, op.attributes["activation"], op.sources) == ("conv", "relu", ("conv", "relu"))
    assert op.outputs == (out,)


def test_a_tensor_with_two_readers_is_not_fused() -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 4, 4, 8), 8)
    out = draw.same("add", draw.same("relu", data), data)
    assert kinds(canonicalise(draw.graph(out), FUSING)) == ["conv", "relu", "add"]


def test_a_graph_output_is_not_fused_away() -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 4, 4, 8), 8)
    assert kinds(canonicalise(draw.graph(data, draw.same("relu", data)), FUSING)) == ["conv", "relu"]


def test_only_one_activation_is_fused() -> None:
    draw = Sketch()
    out = draw.same("clip", draw.same("relu", draw.conv(draw.input(1, 4, 4, 8), 8)))
    assert kinds(canonicalise(draw.graph(out), FUSING)) == ["conv", "clip"]


def test_an_op_in_a_body_is_not_fused_with_one_outside() -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 4, 4, 8), 8)
    out = draw.op("relu", (data,), (1, 4, 4, 8), scope="loop", trips=3)
    assert kinds(canonicalise(draw.graph(out), FUSING)) == ["conv", "relu"]


def test_a_batch_norm_becomes_the_bias_of_a_convolution_without_one() -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 4, 4, 8), 8, bias=False)
    scale, shift, mean, variance = (draw.constant(8) for _ in range(4))
    out = draw.same("batch_norm", data, scale, shift, mean, variance)
    (op,) = canonicalise(draw.graph(out), FUSING).ops
    assert op.inputs[2:] == (shift,)


@pytest.mark.parametrize(("bias", "left"), [((8,), ["conv"]), ((1,), ["conv"]), ((1, 4, 1), ["conv", "add"])])
def test_an_addition_is_a_bias_only_along_the_channels(bias: tuple[int, ...], left: list[str]) -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 4, 4, 8), 8, bias=False)
    out = draw.same("add", data, draw.constant(*bias))
    assert kinds(canonicalise(draw.graph(out), FUSING)) == left


def test_what_depends_on_constants_alone_is_computed_before() -> None:
    draw = Sketch()
    weights = draw.op("transpose", (draw.constant(32, 64),), (64, 32), permutation=(1, 0))
    out = draw.op("matmul", (draw.input(1, 32), weights), (1, 64), k=32, n=64)
    after = fold_constants(draw.graph(out))
    assert kinds(after) == ["matmul"]
    assert parameter_bytes(after) == 32 * 64 * 4


def test_weights_stored_as_float16_are_constants_of_the_float_that_they_are_read_as() -> None:
    draw = Sketch()
    weights = draw.op("dequantize", (draw.constant(32, 64, dtype=DType.F16),), (32, 64))
    out = draw.op("matmul", (draw.input(1, 32), weights), (1, 64), k=32, n=64)
    (op,) = fold_constants(draw.graph(out)).ops
    read = fold_constants(draw.graph(out)).tensors[op.inputs[1]]
    assert (op.kind, read.role, read.dtype) == ("matmul", Role.CONSTANT, DType.F32)


def test_integers_are_dequantised_by_an_op_of_its_own() -> None:
    draw = Sketch()
    weights = draw.op("dequantize", (draw.constant(32, 64, dtype=DType.I8),), (32, 64))
    out = draw.op("matmul", (draw.input(1, 32), weights), (1, 64), k=32, n=64)
    assert kinds(fold_constants(draw.graph(out))) == ["dequantize", "matmul"]


def test_a_constant_that_the_graph_returns_is_still_made() -> None:
    draw = Sketch()
    out = draw.same("negate", draw.constant(4))
    assert kinds(fold_constants(draw.graph(out))) == ["negate"]


def test_retyping_narrows_what_is_stored() -> None:
    draw = Sketch()
    out = draw.dense(draw.input(1, 8), 8)
    after = retype(draw.graph(out), {"f32": "f16"})
    assert {tensor.dtype for tensor in after.tensors} == {DType.F16}
    assert parameter_bytes(after) == (64 + 8) * 2


def test_nothing_is_fused_where_the_runtime_fuses_nothing() -> None:
    draw = Sketch()
    graph = draw.graph(draw.same("relu", draw.conv(draw.input(1, 4, 4, 8), 8)))
    assert fuse(graph, ()) is graph


@pytest.mark.parametrize(
    "graph",
    [resnet(), mobilenet(), quantised_block(), quantised_block(relu_behind_a_pair=True)],
    ids=["resnet", "mobilenet", "qdq", "qdq-relu"],
)
def test_canonicalising_twice_changes_nothing_more_and_keeps_the_macs(graph: Graph) -> None:
    once = canonicalise(graph, FUSING)
    assert canonicalise(once, FUSING) == once
    assert macs(once) == macs(graph)


# -- rescales


def rescaled_sum(kind: str, *, behind: bool = True, read_elsewhere: bool = False) -> Graph:
    """rescale → rescale, and rescale, into an op on i32, whose output is rescaled to i8."""
    draw = Sketch(dtype=DType.I8)

    def rescale(tensor: int, dtype: DType, name: str) -> int:
        return draw.op("quantize", (tensor,), draw.tensors[tensor].shape, dtype=dtype, name=name)

    data = draw.input(1, 8, 8, 4)
    left = rescale(rescale(data, DType.I32, "left"), DType.I32, "again")
    right = rescale(data, DType.I32, "right")
    out = draw.same(kind, left, right, name="sum")
    last = rescale(out, DType.I8, "out") if behind else out
    return draw.graph(last, draw.same("abs", right, name="reader")) if read_elsewhere else draw.graph(last)


@pytest.mark.parametrize("kind", ["add", "sub"])
def test_rescales_around_an_elementwise_op_disappear_into_it(kind: str) -> None:
    """As Torq's compiler does: the slices multiply both inputs and the sum by numbers of their own."""
    after = fold_rescales(fuse(rescaled_sum(kind), ("quantize",)), ("add", "sub"))
    (op,) = after.ops
    assert (op.kind, op.inputs) == (kind, (after.inputs[0], after.inputs[0]))
    assert [after.tensors[t].dtype for t in op.outputs] == [DType.I8]
    assert op.sources == ("left", "again", "right", "sum", "out")


def test_a_rescale_stays_where_the_sum_is_not_rescaled_or_others_read_it() -> None:
    assert kinds(fold_rescales(fuse(rescaled_sum("add", behind=False), ("quantize",)), ("add",))) == [
        *("quantize", "quantize", "quantize", "add")
    ]
    shared = fold_rescales(fuse(rescaled_sum("add", read_elsewhere=True), ("quantize",)), ("add",))
    assert [op.name for op in shared.ops] == ["right", "sum", "reader"]
    assert shared.ops[1].inputs == (shared.inputs[0], shared.inputs[0])
    assert kinds(fold_rescales(fuse(rescaled_sum("add"), ("quantize",)), ())) == [*("quantize",) * 3, "add"]
