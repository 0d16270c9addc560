"""What a quantiser leaves of a float graph: which ops run in integers, and where the type changes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from opscope.estimate.canonical import canonicalise
from opscope.estimate.quantiser import add_pairs, quantise
from opscope.estimate.work import work_of
from opscope.graph.graph import ABSENT, DType, Graph, Op, Role
from opscope.graph.kinds import Family
from opscope.machine.target import Target
from opscope.readers import graph_of
from opscope.zoo import Recipe, make
from support.build import Sketch, resnet, target

_PLAIN = target(fuses=("relu", "clip", "batch_norm"))
MIXED = replace(_PLAIN, runtime=replace(_PLAIN.runtime, floats=("softmax", "layer_norm", "erf", "div")))


def macs(graph: Graph) -> int:
    return sum(work_of(op, graph).macs for op in graph.ops)


def int8(graph: Graph, chosen: Target = MIXED) -> Graph:
    """The graph that runs."""
    return canonicalise(quantise(graph, chosen), chosen)


def steps(graph: Graph) -> list[str]:
    """Every op with the types that it reads and writes; constants are left out."""
    return [f"{op.kind} {_types(graph, op.inputs)}→{_types(graph, op.outputs)}" for op in graph.ops]


def _types(graph: Graph, tensors: tuple[int, ...]) -> str:
    found = [graph.tensors[t] for t in tensors if t != ABSENT]
    return ",".join(t.dtype.label for t in found if t.role is not Role.CONSTANT)


def constants(graph: Graph, op: Op) -> list[str]:
    found = [graph.tensors[t] for t in op.inputs if t != ABSENT]
    return [t.dtype.label for t in found if t.role is Role.CONSTANT]


def attention() -> Graph:
    """One head: norm, query, key and value, scores, softmax, sum, projection, residual."""
    draw = Sketch(dtype=DType.F16)
    given = draw.input(1, 8, 32)
    data = draw.same("layer_norm", given, draw.constant(32), draw.constant(32), axes=(2,))
    query, key, value = (draw.dense(data, 32, bias=False) for _ in range(3))
    turned = draw.op("transpose", (key,), (1, 32, 8), permutation=(0, 2, 1))
    scores = draw.op("matmul", (query, turned), (1, 8, 8), k=32, n=8)
    scores = draw.same("softmax", draw.same("div", scores, draw.constant(1)), axes=(2,))
    mixed = draw.op("matmul", (scores, value), (1, 8, 32), k=8, n=32)
    return draw.graph(draw.same("add", draw.dense(mixed, 32), given))


# ---- which ops run in integers ----------------------------------------------------------------------------------


def test_convolutions_run_in_integers_with_biases_as_sums_and_floats_at_both_ends() -> None:
    draw = Sketch()
    data = draw.same("relu", draw.conv(draw.input(1, 8, 8, 4), 8))
    graph = int8(draw.graph(draw.conv(data, 8)))
    assert steps(graph) == ["quantize f32→i8", "conv i8→i8", "conv i8→i8", "dequantize i8→f32"]
    assert constants(graph, graph.ops[1]) == ["i8", "i32"]


def test_softmax_and_norms_stay_float_between_products_in_integers() -> None:
    assert steps(int8(attention())) == [
        "layer_norm f16→f16",
        "quantize f16→i8",
        *3 * ["matmul i8→i8"],
        "transpose i8→i8",
        "matmul i8,i8→i8",
        "dequantize i8→f16",
        "div f16→f16",
        "softmax f16→f16",
        "quantize f16→i8",
        "matmul i8,i8→i8",
        "matmul i8→i8",
        "dequantize i8→f16",
        "add f16,f16→f16",  # the other side is what the network was given, which nothing else in integers reads
    ]


def test_a_residual_is_added_in_integers_where_both_sides_are() -> None:
    draw = Sketch()
    first = draw.conv(draw.input(1, 8, 8, 4), 8)
    graph = int8(draw.graph(draw.conv(draw.same("add", draw.conv(first, 8), first), 8)))
    assert "add i8,i8→i8" in steps(graph)
    assert Counter(op.kind for op in graph.ops)["quantize"] == 1


def test_a_table_that_rows_are_gathered_from_stays_float_even_if_a_product_reads_it_too() -> None:
    draw = Sketch()
    table = draw.constant(100, 16)
    rows = draw.op("gather", (table, draw.input(3, dtype=DType.I64)), (3, 16))
    graph = int8(draw.graph(draw.op("matmul", (rows, table), (3, 100), k=16, n=100)))
    assert [constants(graph, op)[:1] for op in graph.ops if op.kind in ("gather", "matmul")] == [["f32"], ["i8"]]


def test_a_constant_times_data_is_left_as_it_is() -> None:
    draw = Sketch()
    angles = draw.op("matmul", (draw.constant(1, 64, 1), draw.input(1, 1, 1)), (1, 64, 1), k=1, n=1)
    graph = draw.graph(angles)
    assert quantise(graph, MIXED) is graph


def test_settings_of_an_op_are_not_quantised() -> None:
    draw = Sketch()
    data = draw.conv(draw.input(1, 4, 4, 8), 8)
    scales = draw.constant(4)
    graph = int8(draw.graph(draw.op("resize", (data, scales), (1, 8, 8, 8))))
    (resize,) = (op for op in graph.ops if op.kind == "resize")
    assert constants(graph, resize) == ["f32"]


def test_a_body_of_a_loop_is_converted_as_often_as_it_runs() -> None:
    draw = Sketch()
    weights = draw.constant(8, 8)
    data = draw.op("matmul", (draw.input(1, 8), weights), (1, 8), k=8, n=8, scope="loop", trips=5)
    graph = add_pairs(draw.graph(draw.op("softmax", (data,), (1, 8), scope="loop", trips=5)))
    trips = {op.name: op.trips for op in graph.ops if "quantize" in op.kind}
    assert trips == {
        "t1/quantize": 1,
        "t1/dequantize": 1,
        "t0/dequantize": 5,
        "t2/quantize": 5,
        "t2/dequantize": 5,
    }


def test_outputs_keep_their_names_and_types() -> None:
    draw = Sketch()
    out = draw.conv(draw.input(1, 4, 4, 8), 8, name="last")
    graph = quantise(draw.graph(out), MIXED)
    (given,) = graph.outputs
    assert (graph.tensors[given].name, graph.tensors[given].dtype) == ("last:out", DType.F32)


def test_where_every_kind_has_an_integer_kernel_all_of_it_is_integers() -> None:
    graph = int8(attention(), _PLAIN)
    assert {tensor.dtype for tensor in graph.tensors} == {DType.I8}
    assert not any("quantize" in op.kind for op in graph.ops)


# ---- laws -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quantised")


def networks() -> list[str]:
    return ["resnet", "attention", "bert-base", "vit-b16", "llm-decoder", "mobilenetv2"]


@pytest.fixture(params=networks())
def network(request: pytest.FixtureRequest, folder: Path) -> Graph:
    name: str = request.param
    drawn = {"resnet": resnet, "attention": attention}
    if name in drawn:
        return drawn[name]()
    options = {} if name == "mobilenetv2" else {"layers": 2}
    make(Recipe(name, weights=False, options=options), folder / f"{name}.onnx")
    return graph_of(folder / f"{name}.onnx")


def test_macs_are_neither_lost_nor_added(network: Graph) -> None:
    assert macs(quantise(network, MIXED)) == macs(network)
    assert macs(int8(network)) == macs(canonicalise(network, MIXED))


def test_what_is_quantised_is_not_quantised_again(network: Graph) -> None:
    once = quantise(network, MIXED)
    assert quantise(once, MIXED) is once
    assert canonicalise(int8(network), MIXED) == int8(network)


def test_every_tensor_has_at_most_one_pair_and_every_pair_two_halves(network: Graph) -> None:
    graph = quantise(network, MIXED)
    quantized = [op for op in graph.ops if op.kind == "quantize"]
    halves = Counter(op.inputs[0] for op in graph.ops if op.kind == "dequantize")
    assert max(Counter(op.inputs[0] for op in quantized).values()) == 1
    assert max(halves.values()) == 1
    stored = {t for t in halves if graph.tensors[t].role is Role.CONSTANT}
    assert {op.outputs[0] for op in quantized} == set(halves) - stored


def test_an_op_reads_integers_or_floats_but_never_both(network: Graph) -> None:
    graph = int8(network)
    for op in graph.ops:
        read = {t.dtype for t in (graph.tensors[i] for i in op.inputs if i != ABSENT) if t.role is not Role.CONSTANT}
        written = graph.tensors[op.outputs[0]].dtype
        if op.kind in ("quantize", "dequantize"):  # is there because the type changes
            source = graph.tensors[op.inputs[0]].dtype
            integers, floats = (written, source) if op.kind == "quantize" else (source, written)
            assert (integers, floats.is_float) == (DType.I8, True), op.name
            continue
        assert not (DType.I8 in read and any(dtype.is_float for dtype in read)), op.name
        if op.kind in MIXED.runtime.floats:
            assert DType.I8 not in read, op.name
        if op.family is Family.CONTRACTION and DType.I8 in read:
            assert written is DType.I8, op.name


def test_the_network_is_given_and_gives_what_it_did(network: Graph) -> None:
    graph = quantise(network, MIXED)
    for before, after in ((network.inputs, graph.inputs), (network.outputs, graph.outputs)):
        ports = [
            [(g.tensors[t].name, g.tensors[t].dtype) for t in ids] for g, ids in ((network, before), (graph, after))
        ]
        assert ports[0] == ports[1]
