"""What ONNX Runtime left of one measurement → Recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...backends.host_cpu import (
    CPU,
    WATCHED,
    busy_and_idle,
    cpu_machine,
    latency_alone,
    latency_metric,
    measured_latency,
    spread,
)
from ...backends.measuring import Measuring, allowed_cpus
from ...backends.timeline import Command, build_timeline
from ...core.errors import ModelError
from ...core.provenance import Provenance
from ...graph.graph import Graph, Op
from ...readers import read_model
from ...recording.recording import KernelTotal, Metric, OpRecord, Placed, Recording
from ...recording.summary import LaneTotal
from ...recording.trace import NONE
from .fusion import NOWHERE, Mapped, Node, map_nodes
from .measurement import Measurement, Times, measure, model_nodes, read_times, top_level

_CPU = "CPU"


def profile_model(model: Path, measuring: Measuring, *, level: str, shapes: Mapping[str, tuple[int, ...]]) -> Recording:
    """Run the model, with and without the runtime's profiler, and read what it left."""
    graph = read_model(model, shapes=shapes)
    if graph.framework != "ONNX":
        raise ModelError(str(model), "", f"a {graph.framework} model; backend ort runs ONNX; expected --backend litert")
    found = measure(model, graph, measuring, level=level)
    result = assemble(model, graph, measuring, found, level=level)
    return result if measuring.op_times else latency_alone(result, found.samples_ns)


def assemble(model: Path, graph: Graph, measuring: Measuring, found: Measurement, *, level: str) -> Recording:
    """Everything that one measurement says."""
    mapped = map_nodes(model_nodes(graph), found.executed, found.constants)
    times = read_times(found.imported, found.executed, warmup=measuring.warmup)
    if not len(times.phases.command):
        raise ModelError(str(model), "", "the runtime's profile holds no inference; expected one per repeat")
    nodes, place_of = node_totals(graph, mapped, found, times)
    commands = [
        Command(row, node.name, node.type, f"domain={domain}" if domain else "")
        for row, node, domain in zip(place_of, found.executed, found.domains, strict=True)
    ]
    table, trace = build_timeline(
        _CPU,
        commands,
        times.work,
        edges=_edges(found.executed),
        phases=times.phases,
        provenance=Provenance.MEASURED,
    )
    return Recording(
        maker="ort",
        model=str(model),
        network=model.stem,
        target=CPU,
        machine=cpu_machine(measuring),
        options={"graph_optimization": level, **measuring.shown()},
        producer=found.producer,
        provenance=Provenance.MEASURED,
        latency=measured_latency(times.profiled_ns.tolist()),
        metrics=tuple(_metrics(found, times, nodes)),
        ops=nodes,
        devices=1,
        cores=1,
        kernels=_kernels(found, times),
        lanes=(_lane(times),),
        notes=tuple(_notes(found, measuring, times)),
        trace=trace,
        commands=table,
        inferences=len(times.profiled_ns),
        samples_ns=tuple(times.profiled_ns.tolist()),
        caveats=(WATCHED,),
    )


def _edges(executed: Sequence[Node]) -> list[tuple[int, int]]:
    writer = {tensor: place for place, node in enumerate(executed) for tensor in node.outputs if tensor}
    return [
        (writer[tensor], place)
        for place, node in enumerate(executed)
        for tensor in node.inputs
        if writer.get(tensor, place) < place
    ]


def node_totals(
    graph: Graph, mapped: Mapped, found: Measurement, times: Times
) -> tuple[tuple[OpRecord, ...], list[int]]:
    """A row per node of the model in its order, then what the runtime added; and the row of every executed node."""
    whole = float(np.median(times.profiled_ns))
    covered = mapped.covered()
    groups = _groups(mapped)
    rows: list[OpRecord] = []
    place_of = [NONE] * len(found.executed)
    tops, _ = top_level(graph)
    top = 0
    for op in graph.ops:
        if op.scope:
            rows.append(_idle(op, Placed.FUSED, f"in the body of {op.scope}, and counted there"))
            continue
        fate = mapped.fates[top]
        if fate.ran == NOWHERE:
            rows.append(_idle(op, Placed.REMOVED, fate.reason))
        elif mapped.leaders[fate.ran] != top:
            rows.append(_idle(op, Placed.FUSED, f"fused into {tops[mapped.leaders[fate.ran]].name}"))
        else:
            others = tuple(tops[other].name for other in covered[fate.ran] if other != top)
            place_of[fate.ran] = len(rows)
            rows.append(_ran(op.name, op.type, Placed.CPU, groups[fate.ran], found, times, whole, others))
        top += 1
    for ran, leader in enumerate(mapped.leaders):
        if leader == NOWHERE and mapped.parts[ran] == NOWHERE:
            node = found.executed[ran]
            place_of[ran] = len(rows)
            rows.append(
                _ran(node.name, node.type, Placed.INSERTED, [ran], found, times, whole, (), mapped.reasons[ran])
            )
    for ran, whole_of in enumerate(mapped.parts):
        place_of[ran] = place_of[ran] if whole_of == NOWHERE else place_of[whole_of]
    return tuple(rows), place_of


def _idle(op: Op, placed: Placed, reason: str) -> OpRecord:
    """An op that no kernel ran for."""
    return OpRecord(op.name, op.type, placed=placed, reason=reason, calls=0)


def _ran(  # noqa: PLR0917 – the fields come from as many places
    name: str,
    kind: str,
    placed: Placed,
    ran: Sequence[int],
    found: Measurement,
    times: Times,
    whole_ns: float,
    covers: tuple[str, ...],
    reason: str = "",
) -> OpRecord:
    places = list(ran)
    known = bool(times.calls[places].any())
    middle, low, high = spread(times.per_inference[places].sum(axis=0)) if known else (None, None, None)
    label = ", ".join(_label(found, place) for place in places)
    return OpRecord(
        name=name,
        type=kind,
        placed=placed,
        reason=reason or ("" if label == kind else f"ran as {label}"),
        covers=covers,
        calls=len(places),
        time_ns=middle,
        low_ns=low,
        high_ns=high,
        path_ns=middle,
        path_share=None if middle is None or not whole_ns else middle / whole_ns,
        engines=(_CPU,),
    )


def _label(found: Measurement, ran: int) -> str:
    node, domain = found.executed[ran], found.domains[ran]
    return f"{domain}:{node.type}" if domain else node.type


def _groups(mapped: Mapped) -> list[list[int]]:
    """Every executed node with the parts that it was taken into, in order."""
    groups: list[list[int]] = [[] for _ in mapped.leaders]
    for ran, whole in enumerate(mapped.parts):
        groups[ran if whole == NOWHERE else whole].append(ran)
    return groups


def _metrics(found: Measurement, times: Times, nodes: Sequence[OpRecord]) -> Iterator[Metric]:
    yield latency_metric("latency", times.profiled_ns.tolist(), "with the runtime's profiler, as in the table")
    yield latency_metric("latency_without_profiler", found.samples_ns, "what an application sees")
    inside = times.per_inference.sum(axis=0) / times.profiled_ns
    yield Metric(
        "time_in_nodes", float(np.median(inside)), "share", Provenance.MEASURED, "the rest is the runtime's own"
    )
    for name, placed in (
        ("nodes_ran", Placed.CPU),
        ("nodes_fused", Placed.FUSED),
        ("nodes_removed", Placed.REMOVED),
        ("nodes_inserted", Placed.INSERTED),
    ):
        yield Metric(name, sum(node.placed == placed for node in nodes), "count", Provenance.MEASURED)
    for metric in found.imported.metrics:
        if metric.name == "session initialization":
            yield Metric(
                "session_initialization", (metric.value or 0) / 1e3, "us", Provenance.MEASURED, "once, before the first"
            )


def _kernels(found: Measurement, times: Times) -> tuple[KernelTotal, ...]:
    """By operator, as the runtime ran it."""
    labels = [_label(found, place) for place in range(len(found.executed))]
    groups: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        groups.setdefault(label, []).append(place)
    rows = [
        KernelTotal(label, _CPU, len(places), time_ns=spread(times.per_inference[places].sum(axis=0))[0])
        for label, places in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.time_ns or 0), row.name)))


def _lane(times: Times) -> LaneTotal:
    """Of the inference in the middle: in nodes, and between them."""
    return busy_and_idle(_CPU, times.per_inference.sum(axis=0), times.profiled_ns)


def _notes(found: Measurement, measuring: Measuring, times: Times) -> Iterator[str]:
    with_profiler, without = float(np.median(times.profiled_ns)), float(np.median(found.samples_ns))
    yield (
        "times of nodes and the latency are of inferences that the runtime's profiler watched: "
        f"{with_profiler / without - 1:+.1%} against those without it"
    )
    yield "the runtime counts in whole microseconds: a node that takes less shows as 0 or 1 us"
    yield f"inputs are random (seed {measuring.seed}); times of ops whose work depends on values are of these"
    if measuring.threads == len(allowed_cpus()) > 1:
        yield "every CPU of this machine works: whatever else runs on it makes the times spread"
