from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from opscope.importers.formats import read_profile
from opscope.recording.build import to_run
from opscope.recording.recording import Recording
from opscope.recording.trace import NONE, SpanKind
from support.plugins.importer_samples import all_hold, op
from support.recording.analyse_build import analyse


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real one: conv, relu, softmax, run three times."""
    runtime = pytest.importorskip("onnxruntime")
    helper, folder = onnx.helper, tmp_path_factory.mktemp("ort")
    weights = onnx.numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Softmax", ["r"], ["y"], "soft", axis=1),
    ]
    info = [helper.make_tensor_value_info(n, 1, [1, c, 8, 8]) for n, c in (("x", 3), ("y", 4))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = runtime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "p")
    options.log_severity_level = 3
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for _ in range(3):
        session.run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})
    return Path(session.end_profiling())


def test_a_profile_made_on_the_spot_is_read_whole(profile: Path) -> None:
    imported = read_profile(profile)
    assert (imported.maker, imported.provenance, imported.inferences) == ("onnxruntime", "measured", 3)
    assert all_hold(imported)
    soft = op(imported, "soft")
    assert (soft.type, soft.engines, soft.calls) == ("Softmax", ("CPUExecutionProvider",), 1)
    assert soft.shape == '[{"float":[1,4,8,8]}] → [{"float":[1,4,8,8]}]'
    assert soft.out_bytes == 4 * 8 * 8 * 4
    nodes = imported.trace.spans[imported.trace.spans["kind"] == SpanKind.OP]
    assert len(nodes) == 3 * len(imported.ops)
    assert sorted(set(nodes["inference"].tolist())) == [0, 1, 2]


def test_names_of_nodes_say_nothing_where_the_file_has_their_types(tmp_path: Path) -> None:
    names = ("/pack/MatMul", "/block_start/MatMul", "/copy_head/MatMul")
    nodes = [_event("Node", f"{name}_kernel_time", 10 * n, 10, op_name="MatMul") for n, name in enumerate(names)]
    run = to_run(_made(tmp_path, *nodes), command=(), created="", sha256=None)
    assert {op.name: op.does for op in run.summary.ops} == dict.fromkeys(names, "compute")
    assert analyse(run).bound == "compute"


def test_every_microsecond_of_the_file_is_there(profile: Path) -> None:
    imported = read_profile(profile)
    events = json.loads(profile.read_text())
    nodes = sum(e["dur"] for e in events if e["cat"] == "Node")
    runs = sorted(e["dur"] for e in events if e["name"] == "model_run")
    assert sum((o.time_ns or 0) * 3 for o in imported.ops) == pytest.approx(nodes * 1000, abs=3 * len(imported.ops))
    assert imported.latency_ns == runs[1] * 1000
    spans = imported.trace.spans
    assert int((spans["end_ns"] - spans["start_ns"]).sum()) == 1000 * sum(e["dur"] for e in events)


def _made(tmp_path: Path, *events: dict[str, object]) -> Recording:
    path = tmp_path / "p.json"
    first = {
        "cat": "Session",
        "pid": 1,
        "tid": 1,
        "dur": 1,
        "ts": 0,
        "ph": "X",
        "name": "model_loading_uri",
        "args": {},
    }
    path.write_text(json.dumps([first, *events]))
    return read_profile(path)


def _event(cat: str, name: str, ts: int, dur: int, *, tid: int = 1, **args: object) -> dict[str, object]:
    return {"cat": cat, "pid": 1, "tid": tid, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": args}


def test_times_are_over_the_runs_that_a_node_ran_in(tmp_path: Path) -> None:
    imported = _made(
        tmp_path,
        _event("Session", "model_run", 10, 10),
        _event("Node", "a_kernel_time", 11, 4),
        _event("Node", "a_kernel_time", 16, 2),
        _event("Session", "model_run", 30, 10),
        _event("Node", "a_kernel_time", 31, 8, op_name="Conv"),
        _event("Node", "warm_kernel_time", 25, 1),
    )
    a, warm = op(imported, "a"), op(imported, "warm")
    assert (a.time_ns, a.median_ns, a.low_ns, a.high_ns, a.calls) == (7000, 7000, 6000, 8000, 1.5)
    assert warm.time_ns is None


def test_without_runs_times_are_of_the_whole_file(tmp_path: Path) -> None:
    imported = _made(tmp_path, _event("Node", "a_kernel_time", 1, 4), _event("Node", "a_kernel_time", 6, 5))
    assert imported.inferences is None
    assert op(imported, "a").time_ns == 9000
    assert "no model_run events: times are of the whole file" in imported.notes


def test_a_node_that_ends_after_its_run_is_a_violation(tmp_path: Path) -> None:
    imported = _made(tmp_path, _event("Session", "model_run", 10, 5), _event("Node", "a_kernel_time", 12, 50))
    assert [check.name for check in imported.checks if not check.holds] == [
        "nodes lie inside their run",
        "nodes of a run take no longer than it",
    ]


def test_the_profile_of_a_runtime_with_an_accelerator_is_read(tmp_path: Path) -> None:
    """A partition is one node, and nothing of what it is made of."""
    graph = "QNNExecutionProvider_16518954701132955761_1_0"
    inside = {"op_name": graph, "provider": "QNNExecutionProvider", "node_index": "0"}
    events = []
    for start in (1000, 2000):
        events += [
            _event("Node", f"{graph}_kernel_time", start + 10, 700, **inside),
            _event("Session", "SequentialExecutor::Execute", start + 5, 720),
            _event("Session", "model_run", start, 740),
        ]
    imported = _made(tmp_path, *events)
    assert imported.inferences == 2
    assert [(o.engines, o.time_ns) for o in imported.ops] == [(("QNNExecutionProvider",), 700_000)]
    assert (imported.trace.spans["inference"] != NONE).any()


def test_the_time_of_a_node_is_that_of_the_kernels_that_it_launched(tmp_path: Path) -> None:
    """As providers with a profiler of their own write: kernels follow their node, on no thread of the host."""
    runs = []
    for start in (100, 1100):
        runs += [
            _event("Node", "conv_kernel_time", start + 3, 50, op_name="Conv"),
            _event("Kernel", "wide", start + 4, 300, tid=-1, stream="7"),
            _event("Kernel", "narrow", start + 310, 100, tid=-1, stream="7"),
            _event("Node", "shape_kernel_time", start + 60, 20, op_name="Shape"),
            _event("Session", "model_run", start, 600),
        ]
    imported = _made(tmp_path, *runs)
    conv, shape = op(imported, "conv"), op(imported, "shape")
    assert (conv.time_ns, conv.host_ns, conv.kernel) == (400_000, 50_000, "wide")
    assert (shape.time_ns, shape.host_ns, shape.kernel) == (20_000, None, "")
    assert all_hold(imported)
    assert "stream 7" in {lane.name for lane in imported.trace.lanes}
    kernels = imported.trace.spans[[imported.trace.lanes[n].name == "stream 7" for n in imported.trace.spans["lane"]]]
    assert kernels["inference"].tolist() == [0, 0, 1, 1]
    assert any(note.startswith("4 kernels of a device") for note in imported.notes)
    assert len(imported.trace.edges) == 4
    calls = imported.trace.spans[imported.trace.spans["kind"] == SpanKind.HOST]
    assert {imported.trace.names[n] for n in calls["name"]} == {"model_loading_uri", "conv_kernel_time"}


def test_what_holds_the_nodes_of_a_run_is_no_work_of_the_host(profile: Path) -> None:
    trace = read_profile(profile).trace
    kinds = {trace.names[n]: kind for n, kind in trace.spans[["name", "kind"]].tolist()}
    assert kinds["SequentialExecutor::Execute"] == kinds["model_run"] == SpanKind.PHASE
    assert kinds["session_initialization"] == SpanKind.HOST


def test_a_node_that_runs_a_body_has_the_time_that_the_body_leaves(tmp_path: Path) -> None:
    imported = _made(
        tmp_path,
        _event("Session", "model_run", 0, 600),
        _event("Node", "loop_kernel_time", 5, 500),
        _event("Node", "inner_if_kernel_time", 10, 300),
        _event("Node", "add_kernel_time", 20, 200),
        _event("Node", "mul_kernel_time", 320, 100),
        _event("Node", "tail_kernel_time", 505, 80),
    )
    times = {row.name: (row.time_ns or 0) // 1000 for row in imported.ops}
    assert times == {"loop": 100, "inner_if": 100, "add": 200, "mul": 100, "tail": 80}
    assert "2 nodes run others: their times are without these" in imported.notes
    assert all_hold(imported)


def test_nodes_of_runs_that_overlap_belong_to_the_run_of_their_thread(tmp_path: Path) -> None:
    events = []
    for thread, start in ((1, 0), (2, 100), (1, 700), (2, 800)):
        events += [
            _event("Node", "a_kernel_time", start + 5, 300, tid=thread),
            _event("Node", "b_kernel_time", start + 310, 200, tid=thread),
            _event("Session", "model_run", start, 600, tid=thread),
        ]
    imported = _made(tmp_path, *events)
    assert [(row.time_ns, row.calls) for row in imported.ops] == [(300_000, 1), (200_000, 1)]
    assert imported.inferences == 4
    assert any(note.startswith("runs overlap") for note in imported.notes)


def test_nodes_of_a_parallel_run_are_counted_on_every_thread(tmp_path: Path) -> None:
    imported = _made(
        tmp_path,
        _event("Session", "model_run", 0, 600, tid=1),
        _event("Node", "a_kernel_time", 5, 500, tid=2),
        _event("Node", "b_kernel_time", 6, 450, tid=3),
    )
    assert [row.time_ns for row in imported.ops] == [500_000, 450_000]
    assert all_hold(imported)
