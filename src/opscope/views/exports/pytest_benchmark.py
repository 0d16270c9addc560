"""A run as the JSON of pytest-benchmark, for its `compare` and for dashboards that take its files.

Times are seconds. A run without samples is one round. The statistics are those of that tool: quartiles as Tukey has
them, outliers beyond 1.5 interquartile ranges, the deviation of a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev

from ... import __version__
from ...core.errors import UsageError
from ...recording.run import Run
from ...recording.summary import OpTotal

TABLES = ("latency", "ops")
_VERSION = "5.1.0"  # of the form
_NS_PER_S = 10**9


class PytestBenchmark:
    """The latency as one benchmark, or every op of it."""

    suffix = ".json"

    def __init__(self, table: str = TABLES[0]) -> None:
        self.table = table

    def fields(self, run: Run) -> Mapping[str, object]:
        """The file as an object."""
        benchmarks = [_latency(run)] if self.table == "latency" else [_op(run, op) for op in _timed(run)]
        return {
            "machine_info": {"node": run.info.target, "machine": run.info.target, "opscope": __version__},
            "commit_info": {"id": None, "dirty": None, "branch": None, "project": None},
            "benchmarks": benchmarks,
            "datetime": run.info.created,
            "version": _VERSION,
        }


def _timed(run: Run) -> Sequence[OpTotal]:
    timed = [op for op in run.summary.ops if op.wall_ns]
    if not timed:
        raise UsageError("export pytest-benchmark: no times of ops are known; expected a run with times")
    return timed


def _latency(run: Run) -> Mapping[str, object]:
    value = run.summary.latency.value_ns
    if value is None:
        raise UsageError(
            "export pytest-benchmark: the latency is not known; expected a run with a latency, or --table ops"
        )
    samples = run.summary.samples_ns or (value,)
    return _benchmark(
        run, "latency", [sample / _NS_PER_S for sample in samples], {"samples": len(run.summary.samples_ns)}
    )


def _op(run: Run, op: OpTotal) -> Mapping[str, object]:
    return _benchmark(run, f"op[{op.name}]", [(op.wall_ns or 0) / _NS_PER_S], {"type": op.type, "engine": op.engine})


def _benchmark(run: Run, name: str, data: Sequence[float], more: Mapping[str, object]) -> Mapping[str, object]:
    """Named after the network and the target: runs of these are one series."""
    info = run.info
    series = f"{info.network} on {info.target}"
    return {
        "group": series,
        "name": f"{name}: {series}",
        "fullname": f"opscope::{series}::{name}",
        "params": None,
        "param": None,
        "extra_info": {
            "provenance": info.provenance,
            "basis": info.basis,
            "model": info.model,
            "sha256": info.sha256,
            "batch": info.batch,
            **more,
        },
        "options": {"disable_gc": False, "timer": info.provenance, "min_rounds": 1, "warmup": False},
        "stats": _stats(sorted(data)),
    }


def _stats(data: Sequence[float]) -> Mapping[str, object]:
    """Of sorted samples."""
    count, mean, total = len(data), fmean(data), sum(data)
    deviation = stdev(data) if count > 1 else 0.0
    low, high = median(data[: (count + 1) // 2]), median(data[count // 2 :])  # halves share the middle sample
    spread = high - low
    near = [x for x in data if low - 1.5 * spread <= x <= high + 1.5 * spread]
    within = sum(mean - deviation <= x <= mean + deviation for x in data)
    return {
        "min": data[0],
        "max": data[-1],
        "mean": mean,
        "stddev": deviation,
        "rounds": count,
        "median": median(data),
        "iqr": spread,
        "q1": low,
        "q3": high,
        "iqr_outliers": count - len(near),
        "stddev_outliers": count - within,
        "outliers": f"{count - within};{count - len(near)}",
        "ld15iqr": near[0],
        "hd15iqr": near[-1],
        "ops": 1 / mean if mean else 0.0,
        "total": total,
        "iterations": 1,
        "data": list(data),
    }
