"""Files that a Qualcomm runtime left → Recording: CSV, log, text of the profile viewer, op trace, analysis summary.

A file of an emulated run looks like a device's but for one thing: no HVX thread worked. Its times are left out; the
estimates of the vendor's model, where the file holds them, are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from ....core.errors import ImportFileError
from ....core.provenance import Provenance
from ....importers.reading import read_bytes
from ....recording.recording import CLOCK, LATENCY, Metric, OpRecord, Recording, ResourceCycles, empty_trace
from .device_trace import DeviceSpan, read_optrace
from .events import EXECUTE, FINALIZE, HVX_THREADS, Message, NodeTime, node_times, plain_name
from .log import read_log
from .profile_csv import read_csv
from .qhas import read_qhas
from .viewer_text import AVERAGE, LEAST, MOST, read_viewer_text

_TIME = ("NetRun", "QNN (execute) time", "Accelerator (execute) time")  # the first that is there is the latency
_METRICS = (  # our name, unit, name in the files
    ("rpc_time", "ns", "RPC (execute) time"),
    ("qnn_accelerator_time", "ns", "QNN accelerator (execute) time"),
    ("htp_execution_time", "ns", "Accelerator (execute) time"),
    ("htp_execution_without_wait", "ns", "Accelerator (execute excluding wait) time"),
    ("htp_execution_cycles", "cycles", "Accelerator (execute) time (cycles)"),
    ("vtcm_acquisition_time", "ns", "Time for initial VTCM acquire"),
    ("power_up_time", "ns", "Time for HVX + HMX power on and acquire"),
    ("yields", "1", "Num times yield occured"),
    ("hvx_threads", "1", HVX_THREADS),
)
_ESTIMATE = "Simulated (Accelerator exec time us"
_ESTIMATES = (
    (LATENCY, f"{_ESTIMATE})"),
    ("latency_low", f"{_ESTIMATE} (lower estimate))"),
    ("latency_high", f"{_ESTIMATE} (upper estimate))"),
)
_US = 1000
_OVERLAP = "cycles of ops add up over threads: ops overlap, so they are not time"
_EMULATED = "of an emulated run (no HVX thread worked): its times say nothing about a device and are left out"


class QnnCsv:
    """7 or 8 columns."""

    name = "qnn-csv"

    def read(self, path: Path) -> Recording:
        return _of_messages(read_csv(read_bytes(path), source=str(path)), path, self.name)


class QnnLog:
    """Binary."""

    name = "qnn-log"

    def read(self, path: Path) -> Recording:
        return _of_messages(read_log(read_bytes(path), source=str(path)).messages, path, self.name)


class QnnViewerText:
    """What the SDK's viewer prints."""

    name = "qnn-profile-viewer"

    def read(self, path: Path) -> Recording:
        text = read_viewer_text(read_bytes(path), source=str(path))
        average = text.executed.get(AVERAGE) or next(iter(text.executed.values()))
        whole = _of_messages((*text.prepared, *average), path, self.name)
        ranges = [
            Metric(f"{LATENCY}_{word}", value * _US, "ns")
            for word, key in (("low", LEAST), ("high", MOST))
            if (value := _total([[m] for m in text.executed.get(key, ())], _TIME)) is not None
        ]
        return _with_metrics(whole, ranges if whole.provenance == Provenance.MEASURED else ())


class QnnOpTrace:
    """The timeline of a device. It counts cycles and does not say the clock, so it gives no times of its own."""

    name = "qnn-optrace"

    def read(self, path: Path) -> Recording:
        spans = read_optrace(read_bytes(path), source=str(path))
        return _imported(
            path, self.name, Provenance.MEASURED, tuple(_span_ops(spans)), tuple(_span_metrics(spans)), (_OVERLAP,), 1
        )


class QnnQhas:
    """The analysis summary of a device, or of `opscope profile --qhas json`."""

    name = "qnn-qhas"

    def read(self, path: Path) -> Recording:
        """Rows of nodes, and the figures of the whole."""
        file = read_qhas(read_bytes(path), source=str(path))
        row = file.data.overall.data[0]
        ops = tuple(
            OpRecord(
                plain_name(node.qnn_op),
                type=node.qnn_op_type,
                cycles=round(node.cycles),
                in_bytes=node.dram_read,
                out_bytes=node.dram_write,
            )
            for node in file.data.nodes.data
        )
        found = (
            (LATENCY, row.time_us * _US if row.time_us else None, "ns"),
            ("timeline_cycles", row.timeline_cycles, "cycles"),
            (CLOCK, row.timeline_cycles * 1e6 / row.time_us if row.timeline_cycles and row.time_us else None, "Hz"),
            ("ddr_read", row.total_dram_read, "bytes"),
            ("ddr_write", row.total_dram_write, "bytes"),
            ("vtcm_peak", row.peak_vtcm_alloc, "bytes"),
        )
        metrics = [Metric(name, value, unit) for name, value, unit in found if value is not None]
        metrics += [
            Metric(f"{unit.unit} utilization", unit.utilization / 100, "1")
            for unit in row.htp_resources.data
            if unit.utilization is not None
        ]
        told = file.header.provenance  # ours says how its numbers were obtained
        provenance = Provenance(told) if told in list(Provenance) else Provenance.MEASURED
        model = str(file.model_id) or None
        return _imported(path, self.name, provenance, ops, tuple(metrics), (_OVERLAP,), 1, model=model)


def _imported(  # noqa: PLR0917 – as many as the noun has
    path: Path,
    form: str,
    provenance: Provenance,
    ops: tuple[OpRecord, ...],
    metrics: tuple[Metric, ...],
    notes: tuple[str, ...],
    inferences: int | None,
    *,
    model: str | None = None,
) -> Recording:
    """A Recording of totals, without a timeline."""
    return Recording(
        maker=form,
        source=str(path),
        tool="Qualcomm QNN",
        provenance=provenance,
        trace=empty_trace(provenance),
        ops=ops,
        metrics=metrics,
        notes=notes,
        target="Qualcomm HTP",
        model=model,
        inferences=inferences,
    )


def _with_metrics(whole: Recording, more: Sequence[Metric]) -> Recording:
    from dataclasses import replace

    return replace(whole, metrics=(*whole.metrics, *more))


def _of_messages(messages: Sequence[Message], path: Path, form: str) -> Recording:
    """Means over runs; of several graphs, the sum of their means."""
    runs = [message for message in messages if message.method == EXECUTE]
    prepared = [message for message in messages if message.method == FINALIZE]
    estimates = tuple(_estimates(prepared))
    if runs and all(run.value(HVX_THREADS) != 0 for run in runs):
        groups = _by_graph(runs)
        ops = tuple(op for group in groups for op in _ops([node_times(run) for run in group]))
        notes = (_OVERLAP, *_run_notes(runs, groups))
        return _imported(path, form, Provenance.MEASURED, ops, tuple(_metrics(groups)), notes, len(runs) // len(groups))
    notes = (_EMULATED,) if runs else ("no run in the file, only preparation",)
    if not runs and not estimates:
        raise ImportFileError(str(path), "", "no run and no estimate in it; expected at least one of them")
    if estimates:
        return _imported(path, form, Provenance.VENDOR_MODEL, (), estimates, notes, 1)
    names = [node.name for group in _by_graph(runs) for node in node_times(group[0])]
    return _imported(path, form, Provenance.COMPILER_FACT, tuple(OpRecord(name) for name in names), (), notes, None)


def _by_graph(runs: Sequence[Message]) -> list[list[Message]]:
    """Where the file names no graph, the nodes tell graphs apart."""
    graphs: dict[tuple[str, tuple[str, ...]], list[Message]] = defaultdict(list)
    for run in runs:
        graphs[run.graph, tuple(node.name for node in node_times(run))].append(run)
    return list(graphs.values())


def _run_notes(runs: Sequence[Message], groups: Sequence[Sequence[Message]]) -> Iterator[str]:
    if len(runs) > len(groups):
        yield f"means of {len(runs) // len(groups)} runs"
    if len(groups) > 1:
        yield f"{len(groups)} graphs: totals are sums over them; what the CPU does between them is not in the file"


def _total(groups: Sequence[Sequence[Message]], names: Sequence[str]) -> float | None:
    """The sum over graphs of the mean over runs, of the first event that every run has."""
    for name in names:
        values = [[run.value(name) for run in group] for group in groups]
        known = [[value for value in group if value is not None] for group in values]
        if known and all(len(a) == len(b) for a, b in zip(known, values, strict=True)) and all(known):
            return sum(fmean(group) for group in known)
    return None


def _metrics(groups: Sequence[Sequence[Message]]) -> Iterator[Metric]:
    latency = _total(groups, _TIME)
    if latency is not None:
        yield Metric(LATENCY, latency * _US, "ns")
    for name, unit, event in _METRICS:
        value = _total(groups, (event,))
        if value is not None:
            yield Metric(name, value * _US if unit == "ns" else value, unit)
    cycles, time = _total(groups, (_METRICS[4][2],)), _total(groups, (_METRICS[2][2],))
    if cycles and time:
        yield Metric("accelerator_clock", cycles * 1e6 / time, "Hz")


def _estimates(prepared: Sequence[Message]) -> Iterator[Metric]:
    for name, event in _ESTIMATES:
        value = _total([[message] for message in prepared], (event,))
        if value is not None:
            yield Metric(name, value * _US, "ns")


def _ops(runs: Sequence[Sequence[NodeTime]]) -> Iterator[OpRecord]:
    """Mean cycles of every node, in the order of the graph."""
    values: dict[str, list[int]] = defaultdict(list)
    origins: dict[str, tuple[str, ...]] = {}
    for run in runs:
        for node in run:
            values[node.name].append(node.value)
            origins[node.name] = tuple(map(plain_name, node.sources))
    for name, cycles in values.items():
        yield OpRecord(name, engines=("HTP",), covers=origins[name], cycles=round(sum(cycles) / len(runs)))


def _span_ops(spans: Sequence[DeviceSpan]) -> Iterator[OpRecord]:
    """A row per node: cycles of its spans by engine, the busiest engine first."""
    by_node: dict[str, list[DeviceSpan]] = defaultdict(list)
    for span in spans:
        by_node[plain_name(span.node) or "graph"].append(span)
    for name, members in by_node.items():
        busy: dict[str, int] = defaultdict(int)
        for span in members:
            busy[span.engine] += span.cycles
        yield OpRecord(
            name,
            type=next((span.type for span in members if span.type), ""),
            engines=tuple(sorted(busy, key=busy.__getitem__, reverse=True)),
            kernel=max(members, key=lambda span: span.cycles).kernel,
            calls=len(members),
            cycles=sum(busy.values()),
            resource_cycles=tuple(ResourceCycles(name, False, n) for name, n in busy.items()),
        )


def _span_metrics(spans: Sequence[DeviceSpan]) -> Iterator[Metric]:
    whole = max(span.start + span.cycles for span in spans) - min(span.start for span in spans)
    yield Metric("timeline_cycles", whole, "cycles")
    lanes: dict[tuple[str, str], int] = defaultdict(int)
    for span in spans:
        lanes[span.engine, span.lane] += span.cycles
    for engine in dict.fromkeys(engine for engine, _ in lanes):
        shares = [cycles / whole for (name, _), cycles in lanes.items() if name == engine and whole]
        if shares:
            yield Metric(f"{engine} utilization", fmean(shares), "1")
