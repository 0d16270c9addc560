"""How much work an op is, against published counts and counts done by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.estimate.work import Work, work_of
from opscope.graph.graph import ABSENT, DType, Graph, Op, Role, Tensor
from opscope.graph.kinds import KINDS, Family
from support.build import Sketch, autoencoder, keyword_spotter, mobilenet, resnet, resnet8


def counted(graph: Graph) -> Work:
    return work_of(graph.ops[-1], graph)


def test_a_convolution_counts_what_the_sample_report_prints() -> None:
    draw = Sketch()
    assert counted(draw.graph(draw.conv(draw.input(1, 32, 32, 3), 16))).macs == 442_368


@pytest.mark.parametrize(
    ("graph", "macs"),
    [  # convolutions and dense layers of each network: the published totals minus their other operators
        (mobilenet(), 7_490_178 - 256 - 256 - 2),
        (keyword_spotter(), 2_656_908 - 64 - 64 - 12),
        (resnet8(), 12_530_442 - (16_384 + 8_192 + 4_096) - 64 - 64 - 10),
        (autoencoder(), 264_192),
        (resnet(), 180_261_962 - 4 * 49_152 - 48 * (256 + 64 + 16 + 4) - 4 * 128 - 3 * 128 - 10),
    ],
    ids=lambda value: value.name if isinstance(value, Graph) else "",
)
def test_networks_count_their_published_macs(graph: Graph, macs: int) -> None:
    assert sum(work_of(op, graph).macs for op in graph.ops) == macs


def test_an_lstm_is_counted_gate_by_gate_and_step_by_step() -> None:
    draw = Sketch()
    data = draw.input(10, 1, 32)
    draw.op("lstm", (data, draw.constant(256, 32)), (10, 1, 64), steps=10, batch=1, input_size=32, hidden_size=64)
    assert counted(draw.graph()).macs == 10 * 4 * 64 * (32 + 64)


def test_an_lstm_whose_input_and_forget_gate_are_one_has_three_gates() -> None:
    draw = Sketch()
    data, sizes = draw.input(10, 1, 32), {"steps": 10, "batch": 1, "input_size": 32, "hidden_size": 64}
    draw.op("lstm", (data,), (10, 1, 64), **sizes, gates=3)
    assert counted(draw.graph()).macs == 10 * 3 * 64 * (32 + 64)


def test_the_work_of_a_cell_without_weights_is_unknown() -> None:
    draw = Sketch()
    draw.op("rnn", (draw.input(10, 1, 32),), (10, 1, 64), steps=10, batch=1)
    assert not counted(draw.graph()).known


def test_a_projection_of_an_lstm_shortens_what_recurs_and_adds_its_own_product() -> None:
    draw = Sketch()
    sizes = {"steps": 5, "batch": 2, "input_size": 8, "hidden_size": 16, "projection_size": 4}
    draw.op("lstm", (draw.input(5, 2, 8),), (5, 2, 4), **sizes)
    assert counted(draw.graph()).macs == 5 * 2 * (4 * 16 * (8 + 4) + 16 * 4)


def test_attention_counts_scores_values_and_projections() -> None:
    draw = Sketch()
    sizes = {"batch": 2, "heads": 3, "query_length": 5, "key_length": 7, "head_size": 11, "value_size": 13}
    draw.op("attention", (draw.input(2, 5, 33),), (2, 5, 39), **sizes, projection_macs=1000)
    assert counted(draw.graph()).macs == 2 * 3 * 5 * 7 * (11 + 13) + 1000


def test_an_einsum_without_an_arrow_keeps_labels_that_occur_once() -> None:
    draw = Sketch()
    operands = (draw.input(2, 3), draw.input(3, 5), draw.input(5, 7))
    draw.op("einsum", operands, (2, 7), equation="ij,jk,kl")
    assert counted(draw.graph()).macs == 2 * 3 * 5 + 2 * 5 * 7


def test_an_ellipsis_in_an_einsum_counts_every_batch() -> None:
    draw = Sketch()
    draw.op("einsum", (draw.input(4, 6, 2, 3), draw.input(6, 3, 5)), (4, 6, 2, 5), equation="...ij,...jk->...ik")
    assert counted(draw.graph()).macs == 4 * 6 * 2 * 3 * 5


def test_an_einsum_of_one_operand_multiplies_nothing() -> None:
    draw = Sketch()
    draw.op("einsum", (draw.input(4, 6),), (6, 4), equation="ij->ji")
    work = counted(draw.graph())
    assert (work.macs, work.element_ops) == (0, 24)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((10, 257), DType.C64), ((10, 257, 2), DType.F32)], ids=["complex", "pairs"]
)
def test_transforms_are_counted_frame_by_frame(shape: tuple[int, ...], dtype: DType) -> None:
    draw = Sketch()
    draw.op("fft", (draw.input(10, 512),), shape, dtype=dtype, axes=(1,), lengths=(512,))
    assert counted(draw.graph()).element_ops == 10 * 257 * 5 * 9


def test_a_transform_of_unknown_length_is_unknown() -> None:
    draw = Sketch()
    draw.op("fft", (draw.input(10, 512),), (10, 257), dtype=DType.C64)
    assert "is not known" in counted(draw.graph()).unknown_because


def test_the_largest_are_found_row_by_row() -> None:
    draw = Sketch()
    draw.op("topk", (draw.input(64, 1000),), (64, 4), axes=(1,))
    assert counted(draw.graph()).element_ops == 64 * 1000 * 2


def test_a_fused_activation_adds_its_element_operations() -> None:
    draw = Sketch()
    data = draw.input(1, 4, 4, 8)
    draw.conv(data, 8)
    draw.conv(data, 8, activation="gelu")
    plain, active = (work_of(op, draw.graph()) for op in draw.ops)
    assert active.macs == plain.macs
    assert active.element_ops - plain.element_ops == 4 * 4 * 8 * 14


def test_bytes_are_split_into_read_constant_and_written() -> None:
    draw = Sketch(dtype=DType.I8)
    draw.conv(draw.input(1, 8, 8, 4), 16)
    work = counted(draw.graph())
    assert (work.read_bytes, work.constant_bytes, work.write_bytes) == (256, 16 * 3 * 3 * 4 + 16, 1024)
    assert work.bytes == 256 + 576 + 16 + 1024


def test_a_gather_reads_the_rows_it_copies_not_the_whole_table() -> None:
    draw = Sketch()
    table, rows = draw.constant(30_000, 768), draw.input(1, 128, dtype=DType.I64)
    draw.op("gather", (table, rows), (1, 128, 768), axis=0)
    assert counted(draw.graph()).constant_bytes == 128 * 768 * 4


def test_an_update_in_place_moves_only_what_changes() -> None:
    draw = Sketch()
    draw.same("dynamic_update", draw.input(1, 2048, 64), draw.input(1, 1, 64))
    work = counted(draw.graph())
    assert (work.read_bytes, work.write_bytes) == (256, 256)


def test_a_reshape_is_no_work() -> None:
    draw = Sketch()
    draw.op("reshape", (draw.input(4, 4),), (16,))
    assert counted(draw.graph()) == Work()


@pytest.mark.parametrize("kind", ["custom", "compiled"])
def test_an_opaque_op_is_unknown_not_zero(kind: str) -> None:
    draw = Sketch()
    draw.op(kind, (draw.input(4, 4),), (4, 4))
    work = counted(draw.graph())
    assert work.unknown_because.endswith("is a custom operator: its work is not in the file")
    assert work.bytes == 128


def test_an_op_without_a_shape_is_unknown() -> None:
    draw = Sketch()
    draw.op("relu", (draw.input(4, 4),), None)
    assert counted(draw.graph()).unknown_because.startswith("the model does not give the shape of ")


def test_an_op_is_unknown_for_the_reason_that_its_operand_is() -> None:
    draw = Sketch()
    draw.op("relu", (draw.input(4, 4),), None)
    graph = draw.graph()
    tensors = [replace(t, unknown_because="data decide it") if t.shape is None else t for t in graph.tensors]
    assert counted(replace(graph, tensors=tensors)).unknown_because == "data decide it"


def test_an_op_that_runs_nobody_knows_how_often_is_unknown_but_once_is_counted() -> None:
    draw = Sketch()
    draw.op("relu", (draw.input(4, 4),), (4, 4))
    graph = draw.graph()
    inside = replace(graph, ops=[replace(graph.ops[0], trips=None, scope="loop")])
    work = counted(inside)
    assert work.unknown_because == "how often loop runs its body is not known"
    assert (work.element_ops, work.bytes) == (16, 128)
    assert counted(replace(graph, ops=[replace(graph.ops[0], trips=3, scope="loop")])).known


def test_boxes_that_survive_suppression_depend_on_the_data() -> None:
    draw = Sketch()
    draw.op("non_max_suppression", (draw.input(1, 100, 4), draw.input(1, 1, 100)), (10, 3))
    assert counted(draw.graph()).unknown_because == "how many boxes it compares depends on the data"


def test_an_absent_operand_is_skipped() -> None:
    draw = Sketch()
    draw.op("clip", (draw.input(4), ABSENT, ABSENT), (4,))
    assert counted(draw.graph()).element_ops == 8


def test_a_contraction_without_its_attributes_names_the_op_and_the_attribute() -> None:
    draw = Sketch()
    draw.op("matmul", (draw.input(4, 4), draw.constant(4, 4)), (4, 4), name="head")
    with pytest.raises(KeyError, match="op head: kind matmul needs the integer attribute 'k'"):
        counted(draw.graph())


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_the_vocabulary_is_counted(kind: str) -> None:
    attributes = {
        "kernel": (1, 1),
        "channel_axis": 1,
        "k": 4,
        "n": 4,
        "equation": "ab,bc->ac",
        "batch": 1,
        "heads": 1,
        "query_length": 4,
        "key_length": 4,
        "head_size": 4,
        "value_size": 4,
        "steps": 1,
        "input_size": 4,
        "hidden_size": 4,
    }
    tensors = [Tensor("x", (4, 4), DType.F32, Role.INPUT)] * 2 + [Tensor("y", (4, 4), DType.F32, Role.ACTIVATION)]
    op = Op(kind, kind, kind, (0, 1), (2,), attributes)
    work = work_of(op, Graph("g", "g", "hand", (op,), tensors, (0, 1), (2,)))
    if op.family in (Family.CONTRACTION, Family.RECURRENT):
        assert work.macs > 0
    elif op.family in (Family.VIEW, Family.CONTROL):
        assert work == Work()
    elif work.known:
        assert work.macs == 0
        assert work.element_ops > 0
