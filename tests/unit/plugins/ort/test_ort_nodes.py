"""Measurements of ONNX Runtime, from profiles typed by hand: every number again from the raw events."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.backends.kernel_times import what_measured_does
from opscope.backends.measuring import Measuring
from opscope.core.errors import ModelError, UsageError
from opscope.core.meaning import Does
from opscope.graph.graph import Graph
from opscope.plugins.ort.backend import OrtBackend
from opscope.plugins.ort.fusion import Node
from opscope.plugins.ort.importer import OrtProfile
from opscope.plugins.ort.measurement import Measurement
from opscope.plugins.ort.profile import assemble
from opscope.recording.build import to_run
from opscope.recording.recording import Placed, Recording
from opscope.recording.trace import NONE, SpanKind
from support.build import Sketch

Run = tuple[int, int, int, int]  # µs: of three nodes, and of the runtime between them


def graph() -> Graph:
    """Conv, Relu, Identity, Softmax, and a body of a loop."""
    net = Sketch()
    x = net.input(1, 8, name="x")
    a = net.op("conv", [x], (1, 8), name="conv", type="Conv")
    b = net.op("relu", [a], (1, 8), name="relu", type="Relu")
    c = net.op("identity", [b], (1, 8), name="same", type="Identity")
    y = net.op("softmax", [c], (1, 8), name="soft", type="Softmax")
    net.op("add", [b], (1, 8), name="inner", type="Add", scope="soft")
    return net.graph(y)


EXECUTED = (
    Node("fused conv", "FusedConv", ("x",), ("relu:out",)),
    Node("Transpose", "Transpose", ("relu:out",), ("moved",)),
    Node("soft", "Softmax", ("moved",), ("soft:out",)),
)


def events(runs: list[Run], executed: tuple[Node, ...] = EXECUTED) -> list[dict[str, object]]:
    """As the runtime writes them: whole microseconds; nodes inside of their run."""
    made: list[dict[str, object]] = [_event("Session", "model_loading_uri", 0, 50)]
    now = 100
    for *lengths, between in runs:
        made.append(_event("Session", "model_run", now, sum(lengths) + between))
        at = now
        for node, length in zip(executed, lengths, strict=True):
            made.append(_event("Node", f"{node.name}_kernel_time", at, length, op_name=node.type, provider="CPU"))
            at += length
        made.append(_event("Node", "inner_kernel_time", at - 1, 1, op_name="Add", provider="CPU"))
        now += sum(lengths) + between + 7
    return made


def _event(category: str, name: str, start: int, length: int, **args: str) -> dict[str, object]:
    return {"cat": category, "pid": 1, "tid": 2, "dur": length, "ts": start, "ph": "X", "name": name, "args": args}


def measured(
    path: Path,
    runs: list[Run],
    *,
    warmup: int,
    samples: tuple[int, ...] = (9000, 7000, 8000),
    executed: tuple[Node, ...] = EXECUTED,
    domains: tuple[str, ...] = ("com.microsoft", "", ""),
) -> Recording:
    path.write_text(json.dumps(events(runs, executed)), encoding="utf-8")
    found = Measurement(OrtProfile().read(path), executed, domains, frozenset(), samples, {})
    return assemble(Path("net.onnx"), graph(), Measuring(warmup=warmup, repeats=len(runs)), found, level="all")


HAND = [(90, 90, 90, 9), (10, 2, 5, 3), (12, 2, 7, 2), (11, 3, 6, 5)]


def test_every_node_has_one_row_and_what_was_added_follows(tmp_path: Path) -> None:
    result = measured(tmp_path / "p.json", HAND, warmup=1)
    rows = [(node.name, node.placed, node.reason, node.covers) for node in result.ops]
    assert rows == [
        ("conv", Placed.CPU, "ran as com.microsoft:FusedConv", ("relu",)),
        ("relu", Placed.FUSED, "fused into conv", ()),
        ("same", Placed.REMOVED, "does nothing at run time", ()),
        ("soft", Placed.CPU, "", ()),
        ("inner", Placed.FUSED, "in the body of soft, and counted there", ()),
        ("Transpose", Placed.INSERTED, "not in the model: the runtime's own, at relu", ()),
    ]


def test_what_nodes_do_is_told_by_their_kinds_and_read_from_no_word(tmp_path: Path) -> None:
    result = measured(tmp_path / "p.json", HAND, warmup=1)
    kinds = [(node.kind, node.does.label) for node in result.ops]
    assert kinds == [
        ("conv", "compute"),
        ("relu", "compute"),
        ("identity", "layout"),
        ("softmax", "compute"),
        ("add", "compute"),
        ("transpose", "layout"),
    ]
    run = to_run(result, command=(), created="", sha256=None)
    assert run.info.classified == ()
    assert set(run.trace.spans["does"][run.trace.spans["op"] == 5].tolist()) == {Does.LAYOUT}


@pytest.mark.parametrize("type_", ["ReorderInput", "ReorderOutput"])
def test_what_the_runtime_puts_in_to_reorder_channels_changes_a_layout_and_no_word_says_so(
    type_: str, tmp_path: Path
) -> None:
    executed = (EXECUTED[0], Node(type_, type_, ("relu:out",), ("moved",)), EXECUTED[2])
    domains = ("com.microsoft", "com.microsoft.nchwc", "")
    result = measured(tmp_path / "p.json", HAND, warmup=1, executed=executed, domains=domains)
    assert [(node.placed, node.does) for node in result.ops if node.type == type_] == [(Placed.INSERTED, Does.LAYOUT)]
    run = to_run(result, command=(), created="", sha256=None)
    assert run.info.classified == ()
    assert set(run.trace.spans["does"][run.trace.spans["op"] == 5].tolist()) == {Does.LAYOUT}


def test_the_time_of_a_loop_is_not_told_apart_from_that_of_its_body() -> None:
    assert [what_measured_does(kind) for kind in ("loop", "gather")] == [Does.MIXED, Does.LAYOUT]


def test_warm_up_counts_nowhere_and_times_are_medians(tmp_path: Path) -> None:
    result = measured(tmp_path / "p.json", HAND, warmup=1)
    times = {node.name: (node.time_ns, node.low_ns, node.high_ns) for node in result.ops if node.time_ns is not None}
    assert times == {"conv": (11000, 10000, 12000), "soft": (6000, 5000, 7000), "Transpose": (2000, 2000, 3000)}
    assert result.value("latency_without_profiler") == 8.0
    assert result.latency is not None
    assert (result.latency.value_ns, result.latency.low_ns, result.latency.high_ns) == (23000, 20000, 25000)
    assert result.samples_ns == (20000, 23000, 25000)  # as in the timeline


def test_the_trace_has_every_inference_that_counts(tmp_path: Path) -> None:
    result = measured(tmp_path / "p.json", HAND, warmup=1)
    spans = result.trace.spans
    assert sorted(set(spans["inference"].tolist())) == [0, 1, 2]
    assert int(spans["start_ns"].min()) == 0
    work = spans[spans["kind"] == SpanKind.OP]
    assert len(work) == 9  # what ran inside of another node is part of its time
    assert [result.ops[op].name for op in work["op"][:3].tolist()] == ["conv", "Transpose", "soft"]
    assert set(spans["pcycles"].tolist()) == {NONE}
    assert [tuple(edge) for edge in result.trace.edges.tolist()] == [(0, 1, True), (1, 2, True)]


lengths = st.integers(0, 2000)
all_runs = st.lists(st.tuples(lengths, lengths, lengths, st.integers(1, 50)), min_size=1, max_size=8)


@given(all_runs, st.integers(0, 3))
def test_times_are_those_of_the_raw_events(
    tmp_path_factory: pytest.TempPathFactory, runs: list[Run], warm: int
) -> None:
    warmup = [(5, 5, 5, 5)] * warm
    result = measured(tmp_path_factory.mktemp("p") / "p.json", [*warmup, *runs], warmup=warm)
    rows = {node.name: node for node in result.ops}
    for place, name in enumerate(("conv", "Transpose", "soft")):
        samples = sorted(run[place] * 1000 for run in runs)
        row = rows[name]
        assert row.time_ns == round(median(samples))
        assert row.low_ns is not None
        assert row.high_ns is not None
        assert samples[0] <= row.low_ns <= row.time_ns <= row.high_ns <= samples[-1]
    spans = result.trace.spans
    for inference in range(len(runs)):
        here = spans[spans["inference"] == inference]
        length = here["end_ns"] - here["start_ns"]
        assert length[here["kind"] == SpanKind.OP].sum() <= length[here["kind"] == SpanKind.PHASE].sum()
    (lane,) = result.lanes
    assert lane.wait_ns is None
    assert lane.busy_ns + lane.idle_ns == lane.wall_ns
    assert result.latency is not None
    assert lane.wall_ns == result.latency.value_ns
    assert result.samples_ns == tuple(1000 * sum(run) for run in runs)
    assert result.latency.value_ns in result.samples_ns


def test_kernels_are_grouped_by_operator(tmp_path: Path) -> None:
    result = measured(tmp_path / "p.json", HAND, warmup=1)
    assert [(k.name, k.count, k.time_ns) for k in result.kernels] == [
        ("com.microsoft:FusedConv", 1, 11000),
        ("Softmax", 1, 6000),
        ("Transpose", 1, 2000),
    ]


def test_a_profile_without_an_inference_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^net\.onnx: the runtime's profile holds no inference"):
        measured(tmp_path / "p.json", HAND, warmup=4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"repeats": 0}, r"^--repeats 0: expected a whole number from 1 to 100000"),
        ({"warmup": "x"}, r"^--warmup x: expected a whole number from 0"),
        (
            {"threads": 4096},
            r"^--threads 4096: each gets a CPU of its own, and this process may use \d+; expected 1 to",
        ),
        ({"graph-optimization": "most"}, r"^--graph-optimization most: not known; expected one of none, basic, ext"),
        ({"soc": "x"}, r"^option soc: not one of the ort backend; expected one of warmup, repeats"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str | int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        OrtBackend().profile(Path("net.onnx"), options)


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.plugins.ort.backend.find_spec", lambda _: None)
    assert OrtBackend().state().install == "pip install onnxruntime"
    with pytest.raises(UsageError, match=r"^backend ort: the package onnxruntime is not installed; install it: pip"):
        OrtBackend().profile(Path("net.onnx"), {})


def test_medians_lie_between_their_percentiles_for_any_samples() -> None:
    from opscope.backends.host_cpu import spread

    random = np.random.default_rng(3)
    for count in range(1, 40):
        samples = random.integers(0, 10**9, count)
        middle, low, high = spread(samples)
        assert min(samples) <= low <= middle <= high <= max(samples)
