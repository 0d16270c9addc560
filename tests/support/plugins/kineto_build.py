"""Traces as PyTorch's profiler (Kineto) writes them, of a made-up network on a made-up GPU.

Everything that real ones have: ops inside ops, launch calls inside the innermost op, kernels on streams that wait for
their launch or for the kernel before, copies and fills, flows, the profiler's own marks; times in µs with three
decimals after a start of thirteen digits.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

Event = dict[str, object]
HOST, GPU = 400, 0  # process ids
FIRST_NS = 3_877_876_031_000_000  # since the profiler's base time
WORK = {  # category → call, name, length in ns (0: that of the trace's kernels)
    "kernel": ("cudaLaunchKernel", "void gemm<128, 64, true>(Params<half, 64>::Tile const*, int)", 0),
    "gpu_memcpy": ("cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)", 3_200),
    "gpu_memset": ("cudaMemsetAsync", "Memset (Device)", 864),
}


@dataclass(slots=True)
class KinetoTrace:
    """One host thread that launches work on streams of one device; all times in ns.

    Args:
        host_ns: how long the host takes between two launches, about.
        kernel_ns: how long a kernel runs, about.
    """

    host_ns: int
    kernel_ns: int
    streams: tuple[int, ...] = (7,)
    seed: int = 1
    now: int = FIRST_NS
    ops: int = 0
    events: list[Event] = field(default_factory=list)
    free: dict[int, int] = field(default_factory=dict)  # stream → when its last kernel ends
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 – the same trace every time

    def about(self, length: int) -> int:
        return self.random.randint(length * 3 // 4, length * 5 // 4)

    def span(
        self, cat: str, name: str, start: int, end: int, *, pid: int | str, tid: int | str, **args: object
    ) -> None:
        times = {"ts": start / 1000, "dur": (end - start) / 1000}
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args})

    def op(self, dims: list[list[int]], *names: str, launches: Sequence[str] = (), stream: int | None = None) -> None:
        """Host ops inside each other, outermost first; the innermost launches work of these categories."""
        start, outermost = self.now, self.ops + 1
        self.ops += len(names)
        self.now += 300 * len(names)
        for category in launches:
            self.launch(category, self.ops, stream or self.streams[0])
        self.now += self.about(self.host_ns)
        for depth, name in enumerate(names):
            args = {"External id": outermost + depth, "Record function id": 0, "Input Dims": dims}
            self.span("cpu_op", name, start + 300 * depth, self.now - 100 * depth, pid=HOST, tid=HOST, **args)
        self.now += 50

    def launch(self, category: str, op: int, stream: int) -> None:
        """A call of the host, and what it starts on the device: later, and not before the stream is free."""
        call, name, length = WORK[category]
        called, correlation = self.now, 5_000_000 + len(self.events)
        self.now += 1_500
        start = max(called + self.about(4_000), self.free.get(stream, 0) + 700)
        self.free[stream] = start + (length or self.about(self.kernel_ns))
        both = {"External id": op, "correlation": correlation}
        self.span("cuda_runtime", call, called, self.now, pid=HOST, tid=HOST, **both, cbid=211)
        place = {"device": GPU, "context": 1, "stream": stream}
        self.span(category, name, start, self.free[stream], pid=GPU, tid=stream, **both, **place)
        for phase, at, pid, tid in (("s", called, HOST, HOST), ("f", start, GPU, stream)):
            flow = {"ph": phase, "id": correlation, "cat": "ac2g", "name": "ac2g", "bp": "e"}
            self.events.append(flow | {"pid": pid, "tid": tid, "ts": at / 1000})

    def inference(self, layers: int) -> None:
        """Input copied in, layers, a wait of the host for the device."""
        second = self.streams[-1]
        self.op([[8, 256]], "aten::to", "aten::_to_copy", "aten::copy_", launches=["gpu_memcpy"])
        for layer in range(layers):
            self.op([[8, 256], [256, 256]], "aten::linear", "aten::addmm", launches=["kernel"])
            self.op([[8, 256]], "aten::view")
            conv = ("aten::conv2d", "aten::convolution", "aten::cudnn_convolution")
            fill = ["gpu_memset"] if layer % 3 == 0 else []
            self.op([[1, 8, 16, 16]], *conv, launches=[*fill, "kernel", "kernel"])
            self.op([[8, 256], [8, 256]], "aten::add", launches=["kernel"], stream=second)
        done = max(self.now, *self.free.values()) + 2_000
        alone = {"correlation": 5_000_000 + len(self.events), "cbid": 165}  # a call that starts nothing
        self.span("cuda_runtime", "cudaDeviceSynchronize", self.now, done, pid=HOST, tid=HOST, **alone)
        self.now = done + self.about(self.host_ns)

    def document(self) -> dict[str, object]:
        """The whole file; call it once, when everything has been launched."""
        self.span("overhead", "Activity Buffer Request", FIRST_NS + 500, FIRST_NS + 2_500, pid=-1, tid=0)
        self.span("Trace", "PyTorch Profiler (0)", FIRST_NS - 1_000, self.now, pid="Spans", tid="PyTorch Profiler")
        names = [("process_name", HOST, 0, "python3"), ("process_name", GPU, 0, "python3")]
        names += [("thread_name", GPU, stream, f"stream {stream}") for stream in self.streams]
        meta: list[Event] = [
            {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": FIRST_NS / 1000, "args": {"name": name}}
            for kind, pid, tid, name in names
        ]
        return {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "Made-up GPU", "numSms": 16}],
            "record_shapes": 1,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_790_857_026_000_000_000,
            "traceEvents": meta + self.events,
        }


def launch_bound(path: Path, *, layers: int = 40, inferences: int = 3) -> Path:
    """Short kernels that the host is slow to launch."""
    return _written(KinetoTrace(host_ns=20_000, kernel_ns=2_000), path, layers, inferences)


def device_bound(path: Path, *, layers: int = 40, inferences: int = 3) -> Path:
    """Long kernels that queue behind each other."""
    return _written(KinetoTrace(host_ns=3_000, kernel_ns=60_000, seed=2), path, layers, inferences)


def two_streams(path: Path, *, layers: int = 40, inferences: int = 3) -> Path:
    """Kernels of two streams that overlap."""
    return _written(KinetoTrace(host_ns=6_000, kernel_ns=12_000, streams=(7, 13), seed=3), path, layers, inferences)


def events_of(path: Path) -> list[dict[str, object]]:
    """All events of a written trace, as the file has them."""
    events: list[dict[str, object]] = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return events


def _written(trace: KinetoTrace, path: Path, layers: int, inferences: int) -> Path:
    for _ in range(inferences):
        trace.inference(layers)
    path.write_bytes(gzip.compress(json.dumps(trace.document()).encode(), mtime=0))
    return path
