"""What ONNX Runtime left of one measurement → Recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...backends.host_cpu import WATCHED, latency_alone, latency_metric, measured_latency
from ...backends.kernel_times import (
    ENGINE,
    KernelTimes,
    cpu_recording,
    in_body,
    no_kernel,
    placed_counts,
    random_inputs_note,
    watched_note,
    what_measured_does,
)
from ...backends.measuring import Measuring, allowed_cpus
from ...backends.model_facts import with_model
from ...backends.timeline import Command, build_timeline
from ...core.errors import ModelError
from ...core.meaning import Does
from ...core.provenance import Provenance
from ...graph.graph import Graph, Op
from ...readers import read_model
from ...readers.onnx.ops import kind_of
from ...recording.recording import Metric, OpRecord, Placed, Recording
from ...recording.trace import NONE
from .fusion import NOWHERE, REORDERS, Mapped, Node, map_nodes
from .measurement import Measurement, Times, measure, model_nodes, read_times, top_level

_COUNTS = {
    "nodes_ran": Placed.CPU,
    "nodes_fused": Placed.FUSED,
    "nodes_removed": Placed.REMOVED,
    "nodes_inserted": Placed.INSERTED,
}


def profile_model(model: Path, measuring: Measuring, *, level: str, shapes: Mapping[str, tuple[int, ...]]) -> Recording:
    """Run the model, with and without the runtime's profiler, and read what it left."""
    graph = read_model(model, shapes=shapes, folds=False)  # the runtime may run what it need not
    if graph.framework != "ONNX":
        raise ModelError(str(model), "", f"a {graph.framework} model; backend ort runs ONNX; expected --backend litert")
    found = measure(model, graph, measuring, level=level)
    result = assemble(model, graph, measuring, found, level=level)
    if not measuring.op_times:
        result = latency_alone(result, found.samples_ns)
    return with_model(replace(result, notes=(*graph.assumptions, *result.notes)), graph)


def assemble(model: Path, graph: Graph, measuring: Measuring, found: Measurement, *, level: str) -> Recording:
    """Everything that one measurement says."""
    mapped = map_nodes(model_nodes(graph), found.executed, found.constants)
    times = read_times(found, warmup=measuring.warmup)
    if not len(times.phases.command):
        raise ModelError(str(model), "", "the runtime's profile holds no inference; expected one per repeat")
    nodes, row_of = node_rows(graph, mapped, found, times)
    commands = [
        Command(
            row,
            node.name,
            node.type,
            f"domain={domain}" if domain else "",
            does=_does(nodes[row], node.type, domain),
        )
        for row, node, domain in zip(row_of, found.executed, found.domains, strict=True)
    ]
    edges = _edges(found.executed)
    table, trace = build_timeline(
        ENGINE, commands, times.work, edges=edges, phases=times.phases, provenance=Provenance.MEASURED
    )
    samples = tuple(times.kernels.whole_ns.tolist())
    options = {"graph_optimization": level}
    return replace(
        cpu_recording("ort", model, measuring, options=options, producer=found.producer),
        latency=measured_latency(samples),
        metrics=tuple(_metrics(found, times, nodes)),
        ops=nodes,
        kernels=times.kernels.totals(),
        lanes=(times.kernels.lane(),),
        notes=tuple(_notes(found, measuring, times)),
        trace=trace,
        commands=table,
        inferences=len(samples),
        samples_ns=samples,
        caveats=(WATCHED,),
    )


def _does(row: OpRecord, type_: str, domain: str) -> Does:
    """Of an executed node: what its op does where it is still that op, else what its own operator does."""
    return row.does if row.type == type_ else what_measured_does(kind_of(domain, type_))


def _edges(executed: Sequence[Node]) -> list[tuple[int, int]]:
    """Pairs of executed nodes, the first of which writes a tensor that the second reads."""
    writer = {tensor: place for place, node in enumerate(executed) for tensor in node.outputs if tensor}
    return [
        (writer[tensor], place)
        for place, node in enumerate(executed)
        for tensor in node.inputs
        if writer.get(tensor, place) < place
    ]


def node_rows(graph: Graph, mapped: Mapped, found: Measurement, times: Times) -> tuple[tuple[OpRecord, ...], list[int]]:
    """A row per node of the model in its order, then what the runtime added; and the row of every executed node."""
    row_of = [NONE] * len(found.executed)
    model_rows = _ModelRows(graph, mapped, times.kernels)
    rows: list[OpRecord] = []
    top = 0  # position among the ops outside of bodies: those are what `mapped` counts
    for op in graph.ops:
        if op.scope:
            rows.append(in_body(op))
            continue
        ran = mapped.fates[top].ran
        if ran != NOWHERE and mapped.leaders[ran] == top:
            row_of[ran] = len(rows)
        rows.append(model_rows.row(op, top))
        top += 1
    for ran, leader in enumerate(mapped.leaders):
        if leader == NOWHERE and mapped.parts[ran] == NOWHERE:
            node = found.executed[ran]
            row_of[ran] = len(rows)
            reason = mapped.reasons[ran] or _ran_as(node.type, [ran], times.kernels)
            kind = kind_of(found.domains[ran], node.type)
            row = times.kernels.op_row(node.name, node.type, Placed.INSERTED, [ran], kind=kind, reason=reason)
            rows.append(replace(row, does=Does.LAYOUT) if node.type in REORDERS else row)
    return tuple(rows), [row_of[ran if whole == NOWHERE else whole] for ran, whole in enumerate(mapped.parts)]


class _ModelRows:
    """Rows of the model's own nodes."""

    def __init__(self, graph: Graph, mapped: Mapped, kernels: KernelTimes) -> None:
        self.tops, _ = top_level(graph)
        self.mapped, self.kernels = mapped, kernels
        self.covered, self.groups = mapped.covered(), mapped.groups()

    def row(self, op: Op, top: int) -> OpRecord:
        """Removed, fused into another node, or the one that its kernels are counted for."""
        fate = self.mapped.fates[top]
        if fate.ran == NOWHERE:
            return no_kernel(op, Placed.REMOVED, fate.reason)
        leader = self.mapped.leaders[fate.ran]
        if leader != top:
            return no_kernel(op, Placed.FUSED, f"fused into {self.tops[leader].name}")
        ran = self.groups[fate.ran]
        covers = tuple(self.tops[other].name for other in self.covered[fate.ran] if other != top)
        reason = _ran_as(op.type, ran, self.kernels)
        return self.kernels.op_row(op.name, op.type, Placed.CPU, ran, kind=op.kind, reason=reason, covers=covers)


def _ran_as(kind: str, executed: Sequence[int], kernels: KernelTimes) -> str:
    """What the runtime made of an op, where it is not simply that op."""
    label = ", ".join(kernels.names[ran] for ran in executed)
    return "" if label == kind else f"ran as {label}"


def _metrics(found: Measurement, times: Times, nodes: Sequence[OpRecord]) -> Iterator[Metric]:
    profiled_ns = times.kernels.whole_ns.tolist()
    yield latency_metric("latency", profiled_ns, "with the runtime's profiler, as in the table")
    yield latency_metric("latency_without_profiler", found.samples_ns, "what an application sees")
    yield times.kernels.share_in_kernels("time_in_nodes")
    yield from placed_counts(nodes, _COUNTS)
    for metric in found.imported.metrics:
        if metric.name == "session initialization":
            yield Metric(
                "session_initialization", (metric.value or 0) / 1e3, "us", Provenance.MEASURED, "once, before the first"
            )


def _notes(found: Measurement, measuring: Measuring, times: Times) -> Iterator[str]:
    yield watched_note(times.kernels, found.samples_ns, rows="nodes")
    yield "the runtime counts in whole microseconds: a node that takes less shows as 0 or 1 us"
    yield random_inputs_note(measuring)
    if measuring.threads == len(allowed_cpus()) > 1:
        yield "every CPU of this machine works: whatever else runs on it makes the times spread"
