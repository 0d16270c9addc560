"""The arena map of an estimate is the plan of the report: each block's place, size, first and last layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope import api
from opscope.analysis.run_analysis import RunAnalysis
from opscope.estimate.build_report import build_report
from opscope.estimate.memory import plan_memory
from opscope.estimate.recorded import estimated
from opscope.estimate.report import Report
from opscope.graph.graph import DType, Graph, Op, Role
from opscope.machine.target import Runtime
from opscope.recording.build import to_run
from opscope.recording.run import Run
from opscope.zoo import Recipe, make
from support.build import Sketch, figure, machine, mobilenet
from support.draws import draws
from support.estimate.arena_blocks import counter, drawn, evenly, planned
from support.recording.analyse_build import check_laws

SMALL = [
    ("kws-cnn", "int8"),
    ("kws-cnn", "f32"),
    ("cifar-resnet", "int8"),
    ("cifar-resnet", "f32"),
    ("mobilenetv2", "int8"),
    ("mobilenetv2", "f32"),
]
COLUMNS = {"im2col_columns": figure(2), "im2col_element_bytes": figure(2)}


def run_of(report: Report) -> Run:
    return to_run(estimated(report), command=(), created="2026-01-01T00:00:00+00:00", sha256=None)


def report_of(graph: Graph, runtime: Runtime) -> Report:
    return build_report(graph, machine(runtime=runtime), sha256=None, advise=False)


def assert_is_the_plan(report: Report) -> None:
    run = run_of(evenly(report))
    assert drawn(run) == planned(report)
    in_use, reach = (counter(run, f"RAM: arena {what}") for what in ("in use", "reach"))
    assert max(reach) == report.memory.peak_bytes
    for step in range(len(report.layers)):
        moment = step * 1000
        held = [(address + size, size) for address, size, start, end in planned(report) if start <= moment < end]
        assert (in_use[step], reach[step]) == (sum(size for _, size in held), max((end for end, _ in held), default=0))
    assert in_use[-1] == reach[-1] == 0


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Ops with one or two results that read any earlier tensors, state among them; some work in place."""
    sketch = Sketch(dtype=DType.I8)
    made = [sketch.input(1, 4, 4, draw(st.integers(1, 4))) for _ in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        made.append(sketch.tensor((1, 4, 4, 2), role=Role.VARIABLE))
    for number in range(draw(st.integers(1, 9))):
        source, form = draw(st.sampled_from(made)), draw(st.sampled_from(("reshape", "binary", "split", "conv")))
        if form == "reshape":
            made.append(sketch.same("reshape", source))
        elif form == "conv":
            made.append(sketch.conv(source, draw(st.integers(1, 4))))
        elif form == "binary":
            made.append(sketch.op("binary", (source, draw(st.sampled_from(made))), (1, 4, 4, draw(st.integers(1, 4)))))
        else:
            parts = tuple(sketch.tensor((1, 4, 4, draw(st.integers(1, 3)))) for _ in range(2))
            sketch.ops.append(Op("split", "SPLIT", f"split{number}", (source,), parts, {}))
            made += parts
    extra = draw(st.lists(st.sampled_from(made), max_size=2, unique=True))
    return sketch.graph(*dict.fromkeys([*extra, made[-1]]))


@given(graphs(), st.booleans(), st.booleans())
@settings(max_examples=draws(1.5), deadline=None)
def test_the_map_of_any_graph_is_its_plan(graph: Graph, scratch: bool, runtime: bool) -> None:
    columns = COLUMNS if scratch else {}
    size = {"bytes": figure(100)} if runtime else {}
    assert_is_the_plan(report_of(graph, Runtime(**columns, **size)))


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_scratch_and_tensors_lie_in_one_arena(graph: Graph) -> None:
    plan = plan_memory(graph, Runtime(**COLUMNS))
    ends = [offset + buffer.size_bytes for buffer, offset in zip(plan.buffers, plan.offsets, strict=True)]
    assert max(ends) == plan.arena_bytes + plan.scratch_bytes
    assert plan.arena_bytes >= plan.bound_bytes


@pytest.fixture(scope="module", params=[(*model, form) for model in SMALL for form in ("onnx", "tflite")], ids="-".join)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name, precision, form = request.param
    path = tmp_path_factory.mktemp("zoo") / f"{name}.{form}"
    make(Recipe(name, format=form, precision=precision), path)
    return path


def test_the_map_of_a_network_for_micro_controllers_is_its_plan(model: Path) -> None:
    report = api.report(model, "max32690-cm4", advise=False)
    assert_is_the_plan(report)
    run = run_of(report)
    assert max(counter(run, "RAM: arena reach")) == report.memory.peak_bytes
    assert next(row.peak_bytes for row in run.summary.memory if row.name == "RAM") == report.memory.peak_bytes
    too_small = [f"{use.name} peak ≤ capacity" for use in report.memory.uses if not use.fits]
    assert [law.name for law in check_laws(run) if law.holds is False] == too_small


def test_holes_in_the_arena_are_the_difference_of_reach_and_use() -> None:
    run = run_of(report_of(mobilenet(), Runtime()))  # published: 55,296 alive, an arena of 73,728
    assert max(counter(run, "RAM: arena in use")) == 55_296
    assert max(counter(run, "RAM: arena reach")) == 73_728


def test_marks_take_no_time_and_hold_no_layer_back() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.conv(draw.input(1, 8, 8, 4, name="pixels"), 4, name="first")
    run = run_of(report_of(draw.graph(draw.conv(data, 4, name="second")), Runtime(**COLUMNS)))
    marks = run.trace.spans[run.trace.spans["op"] == -1]
    assert [run.trace.names[name] for name in marks["name"]] == [
        "input pixels",
        "scratch of first",
        "scratch of second",
        "output",
    ]
    assert (marks["start_ns"] == marks["end_ns"]).all()
    analysis = RunAnalysis(run)
    layers = [place for place in range(len(analysis.work)) if analysis.work.op[place] >= 0]
    assert [analysis.work.name(int(analysis.order.blocker[place])) for place in layers] == ["input pixels", "first"]


def test_a_command_names_what_it_reads_and_writes_and_where() -> None:
    draw = Sketch(dtype=DType.I8)
    out = draw.dense(draw.input(1, 8, name="pixels"), 2000, bias=False, name="dense")
    commands = run_of(report_of(draw.graph(out), Runtime())).commands
    operands = [tuple(operand.text(commands.place(operand)) for operand in row) for row in commands.operands]
    assert operands[0] == (
        "out RAM Dest dense:out i8 <1 x 2000> 2KB",
        "in RAM Src0 pixels i8 <1 x 8> 1KB",
        "in flash Src1 t1 i8 <2000 x 8> 16KB",
    )
    assert operands[1] == ("out RAM Dest pixels i8 <1 x 8> 1KB",)


def test_the_mean_is_of_the_bytes_in_use_over_time() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.op("relu", (draw.input(100),), (40,))
    report = evenly(report_of(draw.graph(draw.op("relu", (data,), (30,))), Runtime()))
    memory = run_of(report).summary.memory[0]
    assert (memory.mean_bytes, memory.peak_bytes) == ((140 + 70) / 2, 140)


def test_addresses_beyond_what_commands_hold_leave_the_map_empty_and_the_counters_whole() -> None:
    draw = Sketch(dtype=DType.I8)
    data = draw.same("relu", draw.input(3 << 30))
    run = run_of(report_of(draw.graph(data), Runtime(in_place=())))
    assert not run.commands.rows["local_bytes"].any()
    assert max(counter(run, "RAM: arena reach")) == 6 << 30


def test_a_layer_in_a_loop_names_no_operands() -> None:
    draw = Sketch(dtype=DType.I8)
    out = draw.op("relu", (draw.input(8),), (8,), trips=5)
    assert run_of(report_of(draw.graph(out), Runtime())).commands.operands[0] == ()


def test_without_times_nothing_is_drawn() -> None:
    draw = Sketch(dtype=DType.I8)
    report = report_of(draw.graph(draw.same("relu", draw.input(8))), Runtime())
    run = run_of(replace(report, totals=replace(report.totals, latency_s=None)))
    assert (len(run.trace.spans), run.trace.counters) == (0, ())
    assert {row.mean_bytes for row in run.summary.memory} == {None}
