"""Which engine runs an op, and the reason a user reads when it is not the best one."""

from __future__ import annotations

from opscope.estimate.placement import Placement, compute_dtype, place_op
from opscope.estimate.work import work_of
from opscope.graph.graph import DType, Graph
from opscope.machine.target import Engine, Support, Target
from support.build import Sketch, engine, figure, target

NPU = engine("npu", ops=("conv",), accelerator=True, macs={"i8": 64}, elements={"i8": 8})
CPU = engine("cpu")


def placed(graph: Graph, target_: Target) -> Placement:
    op = graph.ops[-1]
    return place_op(op, work_of(op, graph), graph, target_)


def convolution(dtype: DType) -> Graph:
    draw = Sketch(dtype=dtype)
    return draw.graph(draw.conv(draw.input(1, 4, 4, 8), 8))


def name(engine_: Engine | None) -> str | None:
    return engine_.name if engine_ else None


def test_the_first_engine_that_takes_the_kind_and_the_type_gets_the_op() -> None:
    found = placed(convolution(DType.I8), target(NPU, CPU))
    assert (name(found.engine), found.reason) == ("npu", "")


def test_a_type_without_a_rate_falls_back_and_says_so() -> None:
    found = placed(convolution(DType.F32), target(NPU, CPU))
    assert (name(found.engine), found.reason) == ("cpu", "npu has no rate for f32")


def test_the_reason_is_about_the_first_engine_that_would_have_taken_it() -> None:
    second = engine("dsp", macs={"i16": 4}, elements={"i16": 4}, accelerator=True)
    assert placed(convolution(DType.F32), target(NPU, second, CPU)).reason == "npu has no rate for f32"


def test_a_kind_that_only_the_processor_takes_needs_no_reason() -> None:
    draw = Sketch()
    found = placed(draw.graph(draw.same("softmax", draw.input(1, 10))), target(NPU, CPU))
    assert (name(found.engine), found.reason) == ("cpu", "")


def test_a_family_stands_for_its_kinds() -> None:
    unit = engine("vector", ops=("elementwise",), accelerator=True)
    draw = Sketch()
    assert name(placed(draw.graph(draw.same("gelu", draw.input(8))), target(unit, CPU)).engine) == "vector"


def test_no_engine_at_all_is_said_with_the_kind() -> None:
    draw = Sketch()
    found = placed(draw.graph(draw.same("softmax", draw.input(1, 10))), target(NPU))
    assert (found.engine, found.reason) == (None, "no engine of by-hand takes softmax")


def test_an_operator_that_is_not_supported_is_named_as_the_model_names_it() -> None:
    found = placed(convolution(DType.I8), target(CPU, support=Support(ops=("softmax",))))
    assert (found.engine, found.reason) == (None, "by-hand does not support CONV_2D")


def test_support_may_list_a_kind_a_family_or_the_name_in_the_model() -> None:
    for word in ("conv", "contraction", "CONV_2D"):
        assert placed(convolution(DType.I8), target(CPU, support=Support(ops=(word,)))).engine is CPU


def test_a_data_type_that_is_not_supported_is_named() -> None:
    found = placed(convolution(DType.F32), target(CPU, support=Support(dtypes=("i8",))))
    assert (found.engine, found.reason) == (None, "by-hand does not support f32")


def test_an_opaque_op_has_no_price_anywhere() -> None:
    draw = Sketch()
    assert placed(draw.graph(draw.same("custom", draw.input(8))), target(NPU, CPU)).engine is None


def test_a_published_kernel_is_a_rate() -> None:
    unit = engine("vector", macs={"i8": 1}, elements={"i8": 1}, kernels={"softmax": figure(10)})
    draw = Sketch()
    assert name(placed(draw.graph(draw.same("softmax", draw.input(8))), target(unit)).engine) == "vector"


def test_arithmetic_is_done_in_the_type_of_the_data_not_of_an_index() -> None:
    draw = Sketch()
    rows = draw.input(4, dtype=DType.I64)
    draw.op("gather", (draw.constant(9, 4, dtype=DType.F16), rows), (4, 4), dtype=DType.F16)
    draw.op("cast", (rows,), (4,), dtype=DType.F32)
    draw.op("fill", (), (4,), dtype=DType.I32)
    graph = draw.graph()
    assert [compute_dtype(op, graph) for op in graph.ops] == [DType.F16, DType.F32, DType.I32]
