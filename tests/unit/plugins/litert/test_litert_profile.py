"""Events of LiteRT's profiler, typed by hand: kernels find their ops, and every number again from the raw events."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.backends.measuring import Measuring
from opscope.core.errors import UsageError
from opscope.graph.graph import Graph
from opscope.graph.kinds import KINDS
from opscope.plugins.litert.backend import LitertBackend
from opscope.plugins.litert.kernels import NO_OP, Kernel, kinds_of, map_kernels
from opscope.plugins.litert.measurement import Event, Measurement
from opscope.plugins.litert.profile import assemble
from opscope.recording.build import to_run
from opscope.recording.recording import Placed, Recording
from opscope.recording.trace import SpanKind
from support.build import Sketch
from support.recording.analyse_build import analyse

CONV, DENSE, RESHAPE = "Convolution (NHWC, QC8) IGEMM", "Fully Connected (NC, QS8, QC8W) GEMM", "Static Reshape (NC)"
TRANSPOSE, BATCH = "Transpose (ND, X8) Transpose", "Batch Matrix Multiply (NC, QS8) GEMM"


def chain(*kinds: str) -> Graph:
    net = Sketch()
    last = net.input(1, 8)
    for number, kind in enumerate(kinds):
        last = net.op(kind, [last], (1, 8), name=f"{kind}{number}")
    return net.graph(last)


def test_kernels_of_the_delegate_take_ops_of_their_kind_in_order() -> None:
    """A 1×1 convolution runs as a fully connected kernel; a kernel that says its op has it."""
    graph = chain("conv", "conv", "average_pool", "reshape", "matmul")
    kernels = [
        Kernel(CONV, NO_OP, starts_part=True),
        Kernel(DENSE, NO_OP),
        Kernel("AVERAGE_POOL_2D", 2),
        Kernel(RESHAPE, NO_OP, starts_part=True),
        Kernel(RESHAPE, NO_OP),
        Kernel(DENSE, NO_OP),
    ]
    assert map_kernels(graph, kernels) == [0, 1, 2, 3, NO_OP, 4]


def test_within_a_part_ops_only_go_forward() -> None:
    """The transpose in front of the product is part of it; the one that ran is the one behind."""
    graph = chain("transpose", "matmul", "transpose", "add")
    kernels = [Kernel(BATCH, NO_OP, starts_part=True), Kernel(TRANSPOSE, NO_OP), Kernel("Add (ND)", NO_OP)]
    assert map_kernels(graph, kernels) == [1, 2, 3]


def test_an_activation_in_an_op_runs_behind_it() -> None:
    net = Sketch()
    first = net.op("add", [net.input(1, 8)], (1, 8), activation="relu")
    graph = net.graph(net.op("add", [first], (1, 8)))
    kernels = [Kernel(name, NO_OP) for name in ("Add (ND)", "Clamp (NC)", "Add (ND)", "Clamp (NC)")]
    assert map_kernels(graph, kernels) == [0, 0, 1, NO_OP]


def test_kernels_name_kinds_that_exist() -> None:
    for name in (CONV, DENSE, RESHAPE, TRANSPOSE, BATCH, "Mean (ND) Reduce", "Copy (NC, X8)", "Subtract (ND)"):
        assert kinds_of(name)
        assert set(kinds_of(name)) <= set(KINDS)
    assert kinds_of("Something New (NC)") == ()


kinds = st.sampled_from(("conv", "matmul", "add", "reshape", "transpose", "softmax", "gather"))
tags = st.sampled_from((CONV, DENSE, RESHAPE, TRANSPOSE, BATCH, "Add (ND)", "Copy (NC, X8)", "Odd (ND)"))


@given(st.lists(kinds, min_size=1, max_size=20), st.lists(st.tuples(tags, st.booleans()), max_size=25), st.data())
def test_an_op_gets_one_kernel_at_most_and_told_ones_are_kept(
    ops: list[str], ran: list[tuple[str, bool]], data: st.DataObject
) -> None:
    graph = chain(*ops)
    told = data.draw(st.sets(st.integers(0, len(ops) - 1)))
    kernels = [Kernel(tag, NO_OP, starts_part=starts) for tag, starts in ran] + [Kernel("OWN", op) for op in told]
    kernels = data.draw(st.permutations(kernels))
    found = map_kernels(graph, kernels)
    given_ops = [op for op in found if op != NO_OP]
    assert len(given_ops) == len(set(given_ops))
    for kernel, op in zip(kernels, found, strict=True):
        if kernel.op != NO_OP:
            assert op == kernel.op
        elif op != NO_OP:
            assert graph.ops[op].kind in kinds_of(kernel.name)


def test_matching_is_as_fast_for_many_ops_as_for_few() -> None:
    graph = chain(*["conv", "add"] * 10_000)
    kernels = [Kernel(name, NO_OP, starts_part=not n) for n, name in enumerate([CONV, "Add (ND)"] * 10_000)]
    assert map_kernels(graph, kernels) == list(range(20_000))


def events(lengths: list[int], start: int, *, own: bool) -> tuple[Event, ...]:
    """One inference of `GRAPH`; `own`: all by the runtime's own kernels."""
    whole = sum(lengths) + 20
    rows: list[Event] = [
        ("LiteRT::Run[buffer registration]", 1, start, 5, 0, 0),
        ("invoke", 16, start, whole, 2**64 - 1, 0),
    ]
    at = start + 10
    for place, length in enumerate(lengths):
        tag = ("CONV_2D", "SOFTMAX", "ADD")[place] if own or place == 1 else (CONV, "", "Add (ND)")[place]
        kind, node = (2, place) if own or place == 1 else (8, 0)
        rows.append((tag, kind, at if kind == 2 else 0, length, node, 0))
        at += length
    rows += [
        ("TfLiteXNNPackDelegate", 2, start, whole, 77, 0),
        ("BODY", 2, at, 1, 0, 1),
        ("Invoke", 32, 0, 2**32, 0, 0),
    ]
    return tuple(rows)


GRAPH = chain("conv", "softmax", "add")


def measured(runs: list[list[int]], *, own: bool, unavailable: str = "") -> Recording:
    starts = [1000 * (n + 1) * 10 for n in range(len(runs))]
    found = Measurement(
        () if unavailable else tuple(events(run, start, own=own) for run, start in zip(runs, starts, strict=True)),
        unavailable,
        (5000, 4000, 6000),
        {"ai-edge-litert": "2.3.0"},
    )
    return assemble(
        Path("net.tflite"), GRAPH, Measuring(repeats=len(runs)), found, kernels="builtin" if own else "xnnpack"
    )


def test_the_runtimes_own_kernels_leave_a_timeline() -> None:
    result = measured([[10, 5, 1], [12, 7, 3], [11, 6, 2]], own=True)
    assert [(n.name, n.placed, n.time_ns, n.low_ns, n.high_ns) for n in result.ops] == [
        ("conv0", Placed.CPU, 11000, 10000, 12000),
        ("softmax1", Placed.CPU, 6000, 5000, 7000),
        ("add2", Placed.CPU, 2000, 1000, 3000),
    ]
    spans = result.trace.spans
    work = spans[spans["kind"] == SpanKind.OP]
    assert result.samples_ns == (36000, 42000, 39000)  # as in the timeline
    assert result.value("latency_without_profiler") == 5.0
    assert work["op"].tolist() == [0, 1, 2] * 3
    assert work["inference"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (work["start_ns"][:2].tolist(), work["end_ns"][:2].tolist()) == ([10_000, 20_000], [20_000, 25_000])


@pytest.mark.parametrize("own", [True, False])
def test_what_ops_do_is_told_by_their_kinds_and_read_from_no_word(own: bool) -> None:
    result = measured([[10, 5, 1]], own=own)
    assert [(op.kind, op.does.label) for op in result.ops] == [
        ("conv", "compute"),
        ("softmax", "compute"),
        ("add", "compute"),
    ]
    assert to_run(result, command=(), created="", sha256=None).info.classified == ()


@pytest.mark.parametrize("own", [True, False])
def test_times_of_ops_are_shares_of_the_inferences_that_they_were_measured_in(own: bool) -> None:
    result = measured([[10, 5, 1], [12, 7, 3], [11, 6, 2]], own=own)
    assert result.latency is not None
    assert result.latency.value_ns == 39_000
    assert result.samples_ns == (36_000, 42_000, 39_000)
    assert result.value("latency_without_profiler") == 5.0
    assert [lane.wall_ns for lane in result.lanes] == [39_000]
    assert sum(part.share for part in analyse(to_run(result, command=(), created="", sha256=None)).breakdown) <= 1.001
    (note,) = [note for note in result.notes if "profiler watched" in note]
    assert note.startswith("times of ops and the latency that they are shares of")


def test_a_delegate_leaves_times_and_no_timeline() -> None:
    result = measured([[10, 5, 1]], own=False)
    assert [(n.name, n.reason, n.time_ns) for n in result.ops] == [
        ("conv0", f"ran as {CONV}", 10000),
        ("softmax1", "", 5000),
        ("add2", "ran as Add (ND)", 1000),
    ]
    assert not len(result.trace.spans)
    assert any("there is no timeline; --kernels builtin has both" in note for note in result.notes)


def test_without_the_profiler_there_is_the_latency_and_the_reason() -> None:
    result = measured([[1, 1, 1]], own=True, unavailable="the library has no LiteRtCreateProfiler")
    assert result.ops == ()
    assert result.latency is not None
    assert result.latency.value_ns == 5000
    assert result.samples_ns == (5000, 4000, 6000)
    assert any(note.endswith("cannot be used here: the library has no LiteRtCreateProfiler") for note in result.notes)


def test_inferences_that_ran_different_kernels_say_nothing_of_ops() -> None:
    both = (events([1, 1, 1], 0, own=True), events([1, 1, 1], 900, own=False))
    result = assemble(Path("net.tflite"), GRAPH, Measuring(), Measurement(both, "", (1, 2), {}), kernels="xnnpack")
    assert result.ops == ()
    assert any("its events differ from inference to inference" in note for note in result.notes)


def test_an_op_without_a_kernel_went_into_one_of_the_delegates() -> None:
    graph = chain("conv", "relu", "add")
    one: tuple[Event, ...] = (
        ("invoke", 16, 0, 50, 0, 0),
        (CONV, 8, 0, 10, 0, 0),
        ("Add (ND)", 8, 0, 5, 1, 0),
        ("Odd (ND)", 8, 0, 2, 2, 0),
    )
    result = assemble(Path("n.tflite"), graph, Measuring(), Measurement((one,), "", (9,), {}), kernels="xnnpack")
    assert [(n.name, n.placed, n.reason) for n in result.ops] == [
        ("conv0", Placed.CPU, f"ran as {CONV}"),
        ("relu1", Placed.FUSED, "fused into conv0"),
        ("add2", Placed.CPU, "ran as Add (ND)"),
        ("Odd (ND)", Placed.INSERTED, "not in the model: the delegate's own"),
    ]
    assert result.ops[0].covers == ("relu1",)


@given(st.lists(st.lists(st.integers(0, 500), min_size=3, max_size=3), min_size=1, max_size=7), st.booleans())
def test_times_are_those_of_the_raw_events(runs: list[list[int]], own: bool) -> None:
    result = measured(runs, own=own)
    for place, node in enumerate(result.ops):
        samples = sorted(1000 * run[place] for run in runs)
        assert node.time_ns == round(median(samples))
        assert node.low_ns is not None
        assert node.high_ns is not None
        assert samples[0] <= node.low_ns <= node.time_ns <= node.high_ns <= samples[-1]
    (lane,) = result.lanes
    assert lane.busy_ns <= lane.wall_ns
    assert (lane.wall_ns, lane.busy_ns) in [(1000 * (sum(run) + 20), 1000 * sum(run)) for run in runs]


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.plugins.litert.backend.find_spec", lambda _: None)
    with pytest.raises(
        UsageError, match=r"^backend litert: the package ai-edge-litert is not installed; install it: p"
    ):
        LitertBackend().profile(Path("net.tflite"), {})
