"""Kineto traces with marked inferences become rows of ops; of a GPU by a trace in its form, as none is needed here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from opscope.plugins.traces.kineto import Kineto

pytest.importorskip("torch")
from opscope.backends.measuring import Measuring
from opscope.plugins.torch.op_calls import Call, op_calls
from opscope.plugins.torch.origins import Origin
from opscope.plugins.torch.profile import Measured, assemble
from opscope.plugins.torch.running import INFERENCE, Choices
from opscope.plugins.torch.timeline import watched
from opscope.readers.torch import TorchModel
from opscope.recording.recording import Placed, Recording
from opscope.recording.trace import SpanKind


def complete(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: object) -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def inference(at: float, number: int) -> list[dict[str, object]]:
    """An op with one inside that launches two kernels; then a kernel of nobody, as a graph replays it."""
    first, second = 10 * number + 1, 10 * number + 2
    device = {"device": 0, "stream": 7, "External id": first}
    return [
        complete("user_annotation", INFERENCE, at, 100),
        complete("cpu_op", "aten::linear", at + 5, 30, **{"External id": second}),
        complete("cpu_op", "aten::addmm", at + 10, 20, **{"External id": first}),
        complete("cuda_runtime", "cudaLaunchKernel", at + 12, 2, correlation=first),
        complete("cuda_runtime", "cudaLaunchKernel", at + 16, 2, correlation=second),
        complete("kernel", "gemm", at + 20, 30 + number, tid=7, correlation=first, **device),
        complete("kernel", "reduce", at + 55, 5, tid=7, correlation=second, **device),
        complete("kernel", "replayed", at + 70, 10, tid=7, device=0, stream=7),
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 1,
            "tid": 1,
            "ts": at + 11,
            "args": {"Total Allocated": 4096 + number, "Device Type": 1, "Device Id": 0},
        },
    ]


@pytest.fixture
def kineto(tmp_path: Path) -> Recording:
    events = [event for number in range(3) for event in inference(1000.0 + 200 * number, number)]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}), encoding="utf-8")
    return Kineto().read(path)


def test_outermost_ops_are_the_calls_and_are_the_same_in_every_inference(kineto: Recording) -> None:
    calls = op_calls(kineto)
    assert calls.calls == (Call("aten::linear", 0),) * 3
    assert calls.inference.tolist() == [0, 1, 2]


def test_kernels_are_of_the_op_that_launched_them_or_have_a_row_of_their_own(kineto: Recording) -> None:
    found = watched(kineto)
    assert found.on_device
    assert found.rows == (Call("aten::linear", 0), Call("replayed", 0))
    assert found.table(found.is_work).tolist() == [[35_000, 36_000, 37_000], [10_000] * 3]


def test_a_gpu_recording_has_times_of_kernels_hosts_gaps_and_memory(kineto: Recording) -> None:
    origins = {Call("aten::linear", 0): Origin("head", "net.py:3")}
    measured = Measured((90_000,) * 3, kineto, origins, 640, 4, 0)
    model = TorchModel(None, "net", "net")  # type: ignore[arg-type] # of which only the name is asked for
    choices = Choices(Measuring(repeats=3), "cpu")  # names of a GPU are asked of torch, which has none here
    result = assemble(model, choices, measured)
    linear, replayed = result.ops
    assert (linear.name, linear.time_ns, linear.host_ns, linear.calls) == ("head/linear", 36_000, 30_000, 2)
    assert (linear.module, linear.line, linear.kernel) == ("head", "net.py:3", "gemm")
    assert linear.placed is replayed.placed is Placed.ACCELERATOR
    assert result.value("idle before launch") is not None
    assert [(each.name, each.peak_bytes) for each in result.memory] == [("allocated memory, device 0", 4098)]
    assert {kernel.name: kernel.time_ns for kernel in result.kernels} == {
        "gemm": 31_000,
        "replayed": 10_000,
        "reduce": 5_000,
    }
    assert result.samples_ns == (100_000,) * 3
    work = result.trace.spans[result.trace.spans["kind"] == SpanKind.OP]
    assert np.unique(work["inference"]).tolist() == [0, 1, 2]
    assert len(result.trace.edges) == 6


def test_an_imported_trace_has_memory_over_time_too(kineto: Recording) -> None:
    (track,) = kineto.trace.counters
    assert (track.name, track.unit) == ("allocated memory, device 0", "bytes")
    assert kineto.trace.samples["value"].tolist() == [4096, 4097, 4098]
    assert not [note for note in kineto.notes if "instant" in note]
