"""Files that a Qualcomm runtime left → Recording: CSV, log, text of the profile viewer, op trace, analysis summary.

A file of an emulated run looks like a device's but for one thing: no HVX thread worked. Its times are left out; the
estimates of the vendor's model, where the file holds them, are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from statistics import fmean

from ....core.errors import ImportFileError
from ....core.provenance import Provenance
from ....importers.reading import Unread, read_bytes
from ....recording.recording import CLOCK, LATENCY, Metric, OpRecord, Placed, Recording, ResourceCycles
from ....recording.summary import MemoryTotal
from . import device_times
from .device_times import ACCELERATOR, FAR_END, POWER_UP, RPC, TOTALS, VTCM, WORKING
from .device_trace import DeviceSpan, read_optrace
from .estimates import with_estimates
from .events import EXECUTE, FINALIZE, HVX_THREADS, Message, NodeTime, node_times, plain_name
from .log import Log, read_log
from .profile_csv import read_csv
from .qhas import NodeRow, read_qhas
from .viewer_text import AVERAGE, LEAST, MOST, read_viewer_text

TOOL, TARGET = "Qualcomm QNN", "Qualcomm HTP"
TOTAL = "total_inference_time"
_CYCLES = "Accelerator (execute) time (cycles)"
_METRICS = (  # our name, unit, name in the files
    ("rpc_time", "ns", RPC),
    ("qnn_accelerator_time", "ns", FAR_END),
    ("htp_execution_time", "ns", ACCELERATOR),
    ("htp_execution_without_wait", "ns", WORKING),
    ("htp_execution_cycles", "cycles", _CYCLES),
    ("vtcm_acquisition_time", "ns", VTCM),
    ("power_up_time", "ns", POWER_UP),
    ("yields", "1", "Num times yield occured"),
    ("hvx_threads", "1", HVX_THREADS),
)
_US = 1000
_OVERLAP = "cycles of ops add up over threads: ops overlap, so they are not time"
_SHARED = "times of ops are their parts of the accelerator's time, by cycles, which add up over threads"
_EMULATED = "of an emulated run (no HVX thread worked): its times say nothing about a device and are left out"
_NO_TIMELINE = "the timeline of the vendor's model, where it made one, is in the log of the same session (*_qnn.log)"
_ALONE = "latency is the accelerator's; what the application sees, RPC included, is host_latency"
_NOT_ALONE = "latency is what the application sees, RPC and host included: the file has no time of the accelerator"


class QnnCsv:
    """7 or 8 columns."""

    name = "qnn-csv"

    def read(self, path: Path) -> Recording:
        unread = Unread("rows")
        messages = read_csv(read_bytes(path), source=str(path), unread=unread)
        return of_messages(messages, path, self.name, unread)


class QnnLog:
    """Binary. What the compiler left beside it, or is given with it, names the ops of its timeline."""

    name = "qnn-log"

    def read(self, path: Path, beside: Sequence[Path] = ()) -> Recording:
        unread = Unread("messages")
        log = read_log(read_bytes(path), source=str(path), unread=unread)
        if log.timelines and not _measured(log.messages):
            from .compiled_files import of_log  # loads the compiler's side

            return of_log(log, path, self.name, beside, (*unread.notes(), *_emulated_note(log)))
        return of_messages(log.messages, path, self.name, unread)


class QnnViewerText:
    """What the SDK's viewer prints."""

    name = "qnn-profile-viewer"

    def read(self, path: Path) -> Recording:
        text = read_viewer_text(read_bytes(path), source=str(path))
        average = text.executed.get(AVERAGE) or next(iter(text.executed.values()))
        whole = of_messages((*text.prepared, *average), path, self.name, Unread("lines"))
        low, high = (_total([[m] for m in text.executed.get(key, ())], TOTALS) for key in (LEAST, MOST))
        metrics = (
            replace(metric, low=None if low is None else low * _US, high=None if high is None else high * _US)
            if metric.name == TOTAL
            else metric
            for metric in whole.metrics
        )
        return replace(whole, metrics=tuple(metrics))


class QnnOpTrace:
    """The timeline of a device. It counts cycles and does not say the clock, so it gives no times of its own."""

    name = "qnn-optrace"

    def read(self, path: Path) -> Recording:
        spans = read_optrace(read_bytes(path), source=str(path))
        return _imported(
            self.name, Provenance.MEASURED, tuple(_span_ops(spans)), tuple(_span_metrics(spans)), (_OVERLAP,), 1
        )


class QnnQhas:
    """The analysis summary of a device, or of `opscope profile --qhas json`."""

    name = "qnn-qhas"

    def read(self, path: Path) -> Recording:
        """Rows of nodes, and the figures of the whole."""
        file = read_qhas(read_bytes(path), source=str(path))
        row = file.data.overall.data[0]
        time = row.time_us or row.graph_execute_us
        found = (
            (LATENCY, time * _US if time else None, "ns"),
            ("timeline_cycles", row.timeline_cycles, "cycles"),
            (CLOCK, row.timeline_cycles * 1e6 / time if row.timeline_cycles and time else None, "Hz"),
            ("ddr_read", row.total_dram_read, "bytes"),
            ("ddr_write", row.total_dram_write, "bytes"),
            ("vtcm_peak", row.peak_vtcm_alloc, "bytes"),
        )
        metrics = [Metric(name, value, unit) for name, value, unit in found if value is not None]
        metrics += [
            Metric(f"{unit.unit} utilization", unit.utilization / 100, "share")
            for unit in row.htp_resources.data
            if unit.unit and unit.utilization is not None
        ]
        told = file.header.provenance  # ours says how its numbers were obtained
        provenance = Provenance(told) if told in list(Provenance) else Provenance.MEASURED
        ops = tuple(map(_node_op, file.data.nodes.data))
        model = None if file.model_id is None else str(file.model_id) or None
        whole = _imported(self.name, provenance, ops, tuple(metrics), (_OVERLAP,), 1, model=model)
        memory = (
            MemoryTotal(
                "VTCM",
                0,
                0,
                _whole(row.peak_vtcm_alloc),
                None,
                None,
                _whole(row.total_vtcm_read),
                _whole(row.total_vtcm_write),
            ),
            MemoryTotal("DDR", 0, None, None, None, None, _whole(row.total_dram_read), _whole(row.total_dram_write)),
        )
        return replace(whole, memory=memory)


def _node_op(node: NodeRow) -> OpRecord:
    """A row of the table of nodes; in ours, one that others do the work of has neither cycles nor time."""
    return OpRecord(
        plain_name(node.qnn_op or "") or "graph",
        type=node.qnn_op_type or "",
        placed=Placed(node.placed) if node.placed in list(Placed) else Placed.UNKNOWN,
        cycles=_whole(node.cycles),
        time_ns=_whole(node.wall_ns),
        calls=node.num_htp_ops,
        path_share=None if node.path is None else node.path / 100,
        outer_read_bytes=_whole(node.dram_read),
        outer_write_bytes=_whole(node.dram_write),
        local_read_bytes=_whole(node.vtcm_read),
        local_write_bytes=_whole(node.vtcm_write),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _imported(  # noqa: PLR0917 – as many as the noun has
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
        tool=TOOL,
        provenance=provenance,
        ops=ops,
        metrics=metrics,
        notes=notes,
        target=TARGET,
        model=model,
        network=PurePath(model or "").stem,
        inferences=inferences,
    )


def _measured(messages: Sequence[Message]) -> bool:
    """Whether there are runs, and HVX threads worked in all of them."""
    runs = [message for message in messages if message.method == EXECUTE]
    return bool(runs) and all(run.value(HVX_THREADS) != 0 for run in runs)


def _emulated_note(log: Log) -> tuple[str, ...]:
    return (f"the file is {_EMULATED}",) if any(m.method == EXECUTE for m in log.messages) else ()


def of_messages(messages: Sequence[Message], path: Path, form: str, unread: Unread) -> Recording:
    """Means over runs; of several graphs, the sum of their means."""
    runs = [message for message in messages if message.method == EXECUTE]
    prepared = [message for message in messages if message.method == FINALIZE]
    told = [*unread.notes(), *(f"the file ends inside run {len(runs)}: it is left out" for run in runs if run.is_cut)]
    runs = [run for run in runs if not run.is_cut]
    if _measured(runs):
        groups = _by_graph(runs, loose=bool(unread.count))
        return _of_runs(groups, form, (*told, *_run_notes(runs, groups)))
    names = dict.fromkeys(node.name for group in _by_graph(runs, loose=False) for node in node_times(group[0]))
    ops = tuple(OpRecord(name) for name in names)
    notes = (*told, _EMULATED if runs else "no run in the file, only preparation", _NO_TIMELINE)
    facts = _imported(form, Provenance.COMPILER_FACT, ops, (), notes, None)
    modelled = with_estimates(facts, prepared)
    if not runs and modelled.provenance is Provenance.COMPILER_FACT:
        words = f"; {told[0]}" if told else ""
        raise ImportFileError(str(path), "", f"no run and no estimate in it; expected at least one of them{words}")
    return modelled


def _of_runs(groups: Sequence[Sequence[Message]], form: str, notes: tuple[str, ...]) -> Recording:
    """What was measured: the accelerator, and the host around it."""
    events = {name: _total(groups, (name,)) for name in device_times.EVENTS}
    parts = device_times.parts_of(events)
    ops = tuple(op for group in groups for op in _ops([node_times(run) for run in group]))
    times = device_times.shared_times([op.cycles for op in ops], events)
    ops = tuple(replace(op, time_ns=op.time_ns or ns) for op, ns in zip(ops, times, strict=True))
    alone = events.get(ACCELERATOR) is not None
    told = _SHARED if any(op.time_ns is not None for op in ops) else _OVERLAP
    whole = _imported(
        form,
        Provenance.MEASURED,
        ops,
        tuple(_metrics(groups)),
        (*notes, *((told,) if ops else ()), *parts.notes),
        len(groups[0]),
    )
    return replace(
        whole,
        host=parts.stages,
        samples_ns=_samples(groups),
        causes=tuple(device_times.causes_of(parts, calls=len(groups))),
        caveats=(_ALONE,) if alone and parts.stages else () if alone else (_NOT_ALONE,),
    )


def _samples(groups: Sequence[Sequence[Message]]) -> tuple[int, ...]:
    """Latency of every inference, where there are several: run n of every graph."""
    counts = {len(group) for group in groups}
    if counts == {1} or len(counts) > 1:
        return ()
    event = _latency_event(groups)
    inferences = [_total([[run] for run in inference], event) for inference in zip(*groups, strict=True)]
    return tuple(round(time * _US) for time in inferences if time is not None) if None not in inferences else ()


def _latency_event(groups: Sequence[Sequence[Message]]) -> tuple[str, ...]:
    """The event that is the latency: the accelerator's own time, else the first total that every run has."""
    return next(((name,) for name in (ACCELERATOR, *TOTALS) if _total(groups, (name,)) is not None), ())


def _by_graph(runs: Sequence[Message], *, loose: bool) -> list[list[Message]]:
    """Where the file names no graph, the nodes tell graphs apart; `loose`: of which some may be lost."""
    graphs: dict[tuple[str, tuple[str, ...]], list[Message]] = defaultdict(list)
    for run in runs:
        nodes = tuple(node.name for node in node_times(run))
        key = run.graph, nodes
        if loose and key not in graphs:
            near = (other for other in graphs if other[0] == run.graph and _is_part(nodes, other[1]))
            key = next(near, key)
        graphs[key].append(run)
    return list(graphs.values())


def _is_part(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    few, many = sorted((set(one), set(other)), key=len)
    return few <= many and len(few) * 2 > len(many)


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
    for name, found in ((LATENCY, _latency_event(groups)), (TOTAL, TOTALS)):
        time = _total(groups, found)
        if time is not None:
            yield Metric(name, time * _US, "ns")
    for name, unit, event in _METRICS:
        value = _total(groups, (event,))
        if value is not None:
            yield Metric(name, value * _US if unit == "ns" else value, unit)
    cycles, work = _total(groups, (_CYCLES,)), _total(groups, (WORKING,)) or _total(groups, (ACCELERATOR,))
    if cycles and work:
        yield Metric("accelerator_clock", cycles * 1e6 / work, "Hz", None, "cycles of all threads ÷ time at work")


def _ops(runs: Sequence[Sequence[NodeTime]]) -> Iterator[OpRecord]:
    """Mean cycles, or time, of every node over the runs that have it, in the order of the graph."""
    values: dict[str, list[int]] = defaultdict(list)
    about: dict[str, NodeTime] = {}
    for run in runs:
        sums: dict[str, int] = defaultdict(int)
        for node in run:
            sums[node.name] += node.value
            about.setdefault(node.name, node)
        for name, value in sums.items():
            values[name].append(value)
    for name, found in values.items():
        covers = tuple(other for other in map(plain_name, about[name].sources) if other != name)
        op = OpRecord(name, engines=("HTP",), covers=covers)
        mean = fmean(found)
        yield replace(op, time_ns=round(mean * _US)) if about[name].unit == "US" else replace(op, cycles=round(mean))


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
            yield Metric(f"{engine} utilization", fmean(shares), "share")
