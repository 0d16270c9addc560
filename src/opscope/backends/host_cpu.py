"""The CPU of this machine as a target, inputs for it, and what samples come to."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from statistics import median_low

import numpy as np
import numpy.typing as npt

from ..core.errors import UsageError, printable
from ..core.provenance import Provenance
from ..core.random_arrays import NUMPY_TYPES, Port
from ..graph.graph import Graph
from ..recording.recording import Metric, OpRecord, Recording, Value, empty_trace
from ..recording.summary import LaneTotal, Latency
from .measuring import Measuring, allowed_cpus, cpu_model

CPU = "cpu"  # name of the target
LOW, HIGH = 10, 90  # percentiles
WATCHED = "latency, times of ops and lanes are with the runtime's profiler on"
UNWATCHED = "latency is with the runtime's profiler off"
_MOST_INPUT_BYTES = 1 << 34
_CHARACTER_BYTES = 4  # of a string, which are made of one


def cpu_machine(measuring: Measuring) -> dict[str, Value]:
    """This machine as a target: its processor by name, and how much of it is used."""
    return {
        "title": f"CPU of this machine: {cpu_model()}, {platform.machine()}",
        "cpu_model": cpu_model(),
        "architecture": platform.machine(),
        "cpus": len(allowed_cpus()),
        "threads": measuring.threads,
    }


def ports_of(graph: Graph, source: str) -> list[Port]:
    """Inputs that arrays can be made for."""
    ports = []
    for number in graph.inputs:
        tensor = graph.tensors[number]
        if tensor.shape is None or any(extent < 0 for extent in tensor.shape):
            raise UsageError(
                f"{source}: input {printable(tensor.name)!r} has an open shape; expected --shape NAME=1x3x…"
            )
        size = (tensor.elements or 0) * _CHARACTER_BYTES if tensor.bytes is None else tensor.bytes
        if tensor.dtype.label not in NUMPY_TYPES or size > _MOST_INPUT_BYTES:
            kinds = ", ".join(NUMPY_TYPES)
            raise UsageError(
                f"{source}: input {printable(tensor.name)!r} is {tensor.dtype.label} of {tensor.shape}; "
                f"expected one of {kinds}, of at most {_MOST_INPUT_BYTES >> 30} GB"
            )
        ports.append((tensor.name, tensor.dtype.label, tensor.shape))
    return ports


def spread(values: npt.ArrayLike) -> tuple[int, int, int]:
    """Median, and the samples at the 10th and 90th percentile, which lie around it."""
    times = np.asarray(values)
    low, high = np.percentile(times, LOW, method="lower"), np.percentile(times, HIGH, method="higher")
    return round(float(np.median(times))), int(low), int(high)


def measured_latency(samples_ns: Sequence[int]) -> Latency:
    """One of the samples, so that an inference of the timeline has it."""
    _, low, high = spread(samples_ns)
    return Latency(median_low(samples_ns), low, high, Provenance.MEASURED)


def latency_metric(name: str, samples_ns: Sequence[int], note: str) -> Metric:
    """Median and spread, in the words that both runtimes use."""
    latency = measured_latency(samples_ns)
    _, low, high = spread(samples_ns)
    words = f"{note}; median and 10th to 90th percentile of {len(samples_ns)}"
    return Metric(name, latency.known_ns / 1e3, "us", Provenance.MEASURED, words, low / 1e3, high / 1e3)


def busy_and_idle(name: str, busy_ns: npt.NDArray[np.int64], wall_ns: npt.NDArray[np.int64]) -> LaneTotal:
    """A lane in the inference that the latency is of: what is not busy is the runtime between its kernels."""
    lengths = wall_ns.tolist()
    middle = lengths.index(median_low(lengths))
    wall = int(wall_ns[middle])
    busy = min(int(busy_ns[middle]), wall)
    return LaneTotal(0, 0, name, busy, None, wall - busy, engine=name)


def latency_alone(recording: Recording, samples_ns: Sequence[int]) -> Recording:
    """The same measurement without what the profiler saw: no times of ops, and the latency of other inferences."""
    kept = [metric for metric in recording.metrics if metric.unit == "count"]
    return replace(
        recording,
        latency=measured_latency(samples_ns),
        samples_ns=tuple(samples_ns),
        trace=empty_trace(recording.provenance),
        commands=None,
        numbers=(0,),
        lanes=(),
        kernels=(),
        ops=tuple(_untimed(op) for op in recording.ops),
        metrics=(latency_metric("latency", samples_ns, "without the runtime's profiler"), *kept),
        notes=("--op-times off: what ran where is known, times of ops are not",),
        caveats=(UNWATCHED,),
    )


def _untimed(op: OpRecord) -> OpRecord:
    return replace(op, time_ns=None, low_ns=None, high_ns=None, path_ns=None, path_share=None)
