"""Weights as MXFP6 and caches as MXINT8: which tensors, how many bytes, converted where."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from opscope.estimate.block_formats import cached_tensors, store_cache, store_weights
from opscope.estimate.estimator import estimate
from opscope.estimate.placement import compute_dtype
from opscope.estimate.precision import in_precision
from opscope.estimate.price import Machine
from opscope.estimate.traffic.stores import parameter_bytes
from opscope.estimate.work import work_of
from opscope.graph.graph import DType, Graph, Tensor
from opscope.machine import catalogue
from opscope.machine.target import Holds
from support.build import Sketch, engine, figure, machine, memory


def named(graph: Graph, name: str) -> Tensor:
    (found,) = (tensor for tensor in graph.tensors if tensor.name == name)
    return found


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


# ---- sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "elements", "size"),
    [
        (DType.MXFP6, 32, 25),  # 32 × 6 bits and a scale of 8: 6.25 bits an element
        (DType.MXFP6, 131_072, 102_400),  # the vendor's tile: 256 KB of f16 are 100 KB
        (DType.MXINT8, 32, 33),
        (DType.MXINT8, 33, 35),  # a second block has its own scale
        (DType.MXFP6, 0, 0),
        (DType.I4, 3, 2),
    ],
)
def test_a_block_has_a_scale(dtype: DType, elements: int, size: int) -> None:
    assert dtype.size_bytes(elements) == size


# ---- weights ----------------------------------------------------------------------------------------------------


def test_weights_of_products_are_stored_in_blocks_and_nothing_else_is() -> None:
    draw = Sketch(dtype=DType.F16)
    table = draw.constant(100, 64)
    rows = draw.op("gather", (table, draw.input(1, dtype=DType.I64)), (1, 64))
    data = draw.dense(rows, 64)
    graph = store_weights(draw.graph(draw.op("matmul", (data, table), (1, 100), k=64, n=100)))
    gather, dense, last = graph.ops
    assert [graph.tensors[t].dtype for t in dense.inputs] == [DType.F16, DType.MXFP6, DType.F16]
    assert graph.tensors[gather.inputs[0]].dtype is DType.F16
    assert graph.tensors[last.inputs[1]].dtype is DType.MXFP6
    assert compute_dtype(dense, graph) is DType.F16
    assert parameter_bytes(graph) == 100 * 64 * 2 + 64 * 2 + (64 * 64 + 100 * 64) * 25 // 32


def test_convolutions_and_products_of_activations_keep_their_operands() -> None:
    draw = Sketch(dtype=DType.F16)
    image = draw.conv(draw.input(1, 4, 4, 32), 32)
    graph = draw.graph(draw.op("matmul", (image, draw.input(32, 32)), (1, 4, 4, 32), k=32, n=32))
    assert store_weights(graph).ops == graph.ops


def test_weights_that_the_model_turns_first_are_weights_too() -> None:
    draw = Sketch(dtype=DType.F16)
    turned = draw.op("transpose", (draw.constant(64, 32),), (32, 64), permutation=(1, 0))
    graph = store_weights(draw.graph(draw.op("matmul", (draw.input(1, 32), turned), (1, 64), k=32, n=64)))
    assert kinds(graph) == ["matmul"]
    assert graph.tensors[graph.ops[0].inputs[1]].dtype is DType.MXFP6


def with_kernel(rate: float) -> Machine:
    matrix = engine("matrix", ops=("matmul",), macs={"f16": 1e9}, weight_bytes_per_cycle=figure(1000))
    vector = engine("vector", kernels={"dequantize_mxfp6": figure(rate)})
    outer = memory("DRAM", Holds.ACTIVATIONS, Holds.CONSTANTS, bytes_per_cycle=figure(1e9))
    return machine(matrix, vector, memories=(outer,))


def test_converting_weights_costs_the_vector_engine_and_goes_on_beside_the_product() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = store_weights(draw.graph(draw.dense(draw.input(1, 1024), 1024, bias=False)))
    assert work_of(graph.ops[0], graph).unpacked_bytes == 1024 * 1024 * 2
    (slow,) = estimate(graph, with_kernel(31.8)).layers
    assert slow.cost is not None
    assert {part.resource.name: part.cycles for part in slow.cost.parts}["vector"] == pytest.approx(2048 * 31.8)
    assert (slow.cycles, slow.bound) == (pytest.approx(2048 * 31.8), "vector")
    (fast,) = estimate(graph, with_kernel(0.1)).layers
    assert (fast.cycles, fast.bound) == (pytest.approx(2048 * 1024 / 1000), "matrix")  # they enter it as floats


# ---- caches -----------------------------------------------------------------------------------------------------


def decoder() -> Graph:
    """Keys that were kept, those of a new token, and the product of attention."""
    draw = Sketch(dtype=DType.F16)
    past = draw.input(1, 4, 64, 32, name="past")
    new = draw.op("reshape", (draw.dense(draw.input(1, 128, name="token"), 128),), (1, 4, 1, 32))
    present = draw.op("concat", (past, new), (1, 4, 65, 32), axis=2, name="append")
    turned = draw.op("transpose", (present,), (1, 4, 32, 65), permutation=(0, 1, 3, 2))
    scores = draw.op("matmul", (draw.input(1, 4, 1, 32, name="query"), turned), (1, 4, 1, 65), k=32, n=65)
    return draw.graph(scores, present)


def test_a_cache_stays_in_blocks_from_where_it_is_given_to_where_it_is_given_out() -> None:
    before = decoder()
    graph = store_cache(before)
    assert {before.tensors[t].name for t in cached_tensors(before)} == {"past", "append:out"}
    assert [named(graph, name).dtype for name in ("past", "append:out")] == [DType.MXINT8, DType.MXINT8]
    assert named(graph, "past").bytes == 4 * 64 * 33
    assert kinds(graph) == [
        "matmul",
        "reshape",
        "quantize_mxint8",
        "concat",
        "dequantize_mxint8",
        "transpose",
        "matmul",
    ]
    (turned,) = (op for op in graph.ops if op.kind == "transpose")
    assert graph.tensors[turned.inputs[0]].dtype is DType.F16


def test_a_cache_is_converted_once_for_all_that_read_it() -> None:
    before = decoder()
    (turned,) = (op for op in before.ops if op.kind == "transpose")
    again = Tensor("again", (1, 4, 65, 32), DType.F16, before.tensors[0].role)
    more = replace(turned, kind="negate", name="more", outputs=(len(before.tensors),))
    graph = store_cache(replace(before, ops=(*before.ops, more), tensors=(*before.tensors, again)))
    assert kinds(graph).count("dequantize_mxint8") == 1


def test_a_table_that_is_updated_in_place_is_a_cache_too() -> None:
    draw = Sketch(dtype=DType.F16)
    past, new = draw.input(1, 64, 32), draw.input(1, 1, 32)
    present = draw.op("scatter", (past, draw.input(1, dtype=DType.I64), new), (1, 64, 32))
    scores = draw.op("matmul", (draw.input(1, 1, 64), present), (1, 1, 32), k=64, n=32)
    graph = store_cache(draw.graph(scores, present))
    assert kinds(graph) == ["quantize_mxint8", "scatter", "dequantize_mxint8", "matmul"]


def test_keys_and_values_in_one_tensor_are_a_cache_too() -> None:
    draw = Sketch(dtype=DType.F16)
    past = draw.input(2, 4, 8, 32, name="past")
    kept = [draw.op("gather", (past, draw.constant(1, dtype=DType.I64)), (1, 4, 8, 32), axis=0) for _ in range(2)]
    key, value = (
        draw.op("concat", (part, draw.dense(draw.input(1, 4, 1, 32), 32)), (1, 4, 9, 32), axis=2) for part in kept
    )
    present = draw.op("concat", (key, value), (2, 4, 9, 32), axis=0, name="stack")
    scores = draw.op("matmul", (draw.input(1, 4, 1, 9), key), (1, 4, 1, 32), k=9, n=32)
    graph = store_cache(draw.graph(scores, present))
    assert [named(graph, name).dtype for name in ("past", "stack:out")] == [DType.MXINT8, DType.MXINT8]
    assert Counter(kind for kind in kinds(graph) if "mxint8" in kind) == {"quantize_mxint8": 2, "dequantize_mxint8": 1}


def test_keys_that_a_first_pass_gives_out_are_stored_in_blocks_under_their_name() -> None:
    draw = Sketch(dtype=DType.F16)
    key = draw.dense(draw.input(1, 8, 32), 32, name="key")
    turned = draw.op("transpose", (key,), (1, 32, 8), permutation=(0, 2, 1))
    graph = store_cache(draw.graph(draw.op("matmul", (draw.input(1, 8, 32), turned), (1, 8, 8), k=32, n=8), key))
    assert kinds(graph) == ["matmul", "quantize_mxint8", "transpose", "matmul"]
    given = graph.tensors[graph.outputs[1]]
    assert (given.name, given.dtype) == ("key:out", DType.MXINT8)


def test_a_cache_that_an_attention_op_extends_itself_is_found() -> None:
    draw = Sketch(dtype=DType.F16)
    query, past = draw.input(1, 1, 128), draw.input(1, 4, 64, 32, name="past")
    sizes = {"batch": 1, "heads": 4, "query_length": 1, "key_length": 65, "head_size": 32, "value_size": 32}
    out = draw.op("attention", (query, past), (1, 1, 128), **sizes)
    present = draw.tensor((1, 4, 65, 32), name="present")
    draw.ops[-1] = replace(draw.ops[-1], outputs=(out, present))
    graph = store_cache(draw.graph(out, present))
    assert kinds(graph) == ["dequantize_mxint8", "attention", "quantize_mxint8"]
    assert named(graph, "past").dtype is DType.MXINT8
    assert graph.tensors[graph.outputs[1]].dtype is DType.MXINT8


@pytest.mark.parametrize("case", ["no product", "nothing new", "hidden state"])
def test_what_is_no_cache_of_attention_is_left_alone(case: str) -> None:
    draw = Sketch(dtype=DType.F16)
    past = draw.input(1, 8, 32)
    if case == "no product":
        graph = draw.graph(draw.op("concat", (past, draw.input(1, 1, 32)), (1, 9, 32), axis=1))
    elif case == "nothing new":
        graph = draw.graph(draw.op("reshape", (past,), (8, 32)), draw.dense(past, 32))
    else:
        hidden = draw.dense(past, 32)
        graph = draw.graph(hidden, draw.dense(hidden, 4))
    assert store_cache(graph) is graph


def test_a_model_that_has_nothing_to_store_in_a_format_is_told_so() -> None:
    draw = Sketch(dtype=DType.F16)
    graph = draw.graph(draw.op("relu", (draw.input(1, 8),), (1, 8)))
    target = catalogue.load("aic100-std")
    notes = in_precision(graph, target, "mxfp6", kv_cache="mxint8").assumptions
    assert [note.partition(":")[0] for note in notes] == ["--kv-cache mxint8", "--precision mxfp6"]
    assert in_precision(graph, target, "f16").assumptions == ()
