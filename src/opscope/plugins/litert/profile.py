"""What LiteRT left of one measurement → Recording."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ...backends.host_cpu import (
    CPU,
    UNWATCHED,
    WATCHED,
    busy_and_idle,
    cpu_machine,
    latency_alone,
    latency_metric,
    measured_latency,
    spread,
)
from ...backends.measuring import Measuring
from ...backends.timeline import Command, Work, build_timeline
from ...core.errors import ModelError, printable
from ...core.provenance import Provenance
from ...graph.graph import Graph, Op
from ...readers import read_model
from ...recording.recording import KernelTotal, Metric, OpRecord, Placed, Recording, empty_trace
from ...recording.run import CommandTable
from ...recording.summary import LaneTotal
from ...recording.trace import Trace
from .kernels import NO_OP, map_kernels, neighbour
from .measurement import Measurement, Times, measure, read_times

_CPU = "CPU"


def profile_model(
    model: Path, measuring: Measuring, *, kernels: str, shapes: Mapping[str, tuple[int, ...]]
) -> Recording:
    """Run the model, with and without the library's profiler."""
    graph = read_model(model, shapes=shapes)
    if graph.framework != "TensorFlow Lite":
        raise ModelError(
            str(model), "", f"an {graph.framework} model; backend litert runs TFLite; expected --backend ort"
        )
    found = measure(model, graph, measuring, kernels=kernels, resized=bool(shapes))
    result = assemble(model, graph, measuring, found, kernels=kernels)
    return result if measuring.op_times else latency_alone(result, found.samples_ns)


def assemble(model: Path, graph: Graph, measuring: Measuring, found: Measurement, *, kernels: str) -> Recording:
    """Everything that one measurement says."""
    times = read_times(graph, found.events)
    op_of = map_kernels(graph, times.kernels) if times else []
    nodes = node_totals(graph, times, op_of) if times else ()
    table, trace, samples = None, empty_trace(Provenance.MEASURED), found.samples_ns
    caveat = f"{UNWATCHED}, times of ops and lanes with it on" if times else UNWATCHED
    if times and times.start_ns is not None:
        table, trace = _timeline(nodes, times, op_of)
        samples, caveat = tuple(times.whole_ns.tolist()), WATCHED  # of the inferences in the timeline
    return Recording(
        maker="litert",
        model=str(model),
        network=model.stem,
        target=CPU,
        machine=cpu_machine(measuring),
        options={"kernels": kernels, **measuring.shown()},
        producer=found.producer,
        provenance=Provenance.MEASURED,
        latency=measured_latency(samples),
        metrics=tuple(_metrics(found, times, nodes)),
        ops=nodes,
        devices=1,
        cores=1,
        kernels=_kernels(times) if times else (),
        lanes=_lanes(times) if times else (),
        notes=tuple(_notes(found, times, measuring)),
        trace=trace,
        commands=table,
        inferences=len(samples),
        numbers=None if len(trace.spans) else (0,),
        samples_ns=samples,
        caveats=(caveat,),
    )


def node_totals(graph: Graph, times: Times, op_of: Sequence[int]) -> tuple[OpRecord, ...]:
    """Every op of the model once, in order, then kernels that belong to none."""
    kernels_of: dict[int, list[int]] = {}
    for kernel, place in enumerate(op_of):
        kernels_of.setdefault(place, []).append(kernel)
    into = _fused(graph, kernels_of, {kernel.op for kernel in times.kernels})
    covers: dict[int, list[str]] = {}
    for place, other in into.items():
        covers.setdefault(other, []).append(graph.ops[place].name)
    rows = []
    for place, op in enumerate(graph.ops):
        if op.scope:
            rows.append(_idle(op, Placed.FUSED, f"in the body of {op.scope}, and counted there"))
        elif place in kernels_of:
            rows.append(_ran(op.name, op.type, Placed.CPU, kernels_of[place], times, tuple(covers.get(place, ()))))
        elif place in into:
            rows.append(_idle(op, Placed.FUSED, f"fused into {graph.ops[into[place]].name}"))
        else:
            rows.append(_idle(op, Placed.REMOVED, "no kernel ran for it"))
    added = kernels_of.get(NO_OP, ())
    rows += [_ran(times.kernels[kernel].name, "", Placed.INSERTED, [kernel], times, ()) for kernel in added]
    return tuple(rows)


def _fused(graph: Graph, ran: Container[int], told: Container[int]) -> dict[int, int]:
    """Op without a kernel → op that did its work: one of the delegate's, as the runtime itself runs ops one by one."""
    delegated = [place in ran and place not in told for place in range(len(graph.ops))]
    writer = {tensor: place for place, op in enumerate(graph.ops) for tensor in op.outputs}
    reader = {tensor: place for place, op in reversed(list(enumerate(graph.ops))) for tensor in op.inputs}
    found = {
        place: neighbour(graph, place, delegated, writer, reader)
        for place, op in enumerate(graph.ops)
        if place not in ran and not op.scope
    }
    return {place: other for place, other in found.items() if other != NO_OP}


def _idle(op: Op, placed: Placed, reason: str) -> OpRecord:
    """An op that no kernel ran for."""
    return OpRecord(op.name, op.type, placed=placed, reason=reason, calls=0)


def _ran(  # noqa: PLR0917 – the fields come from as many places
    name: str, kind: str, placed: Placed, kernels: Sequence[int], times: Times, covers: tuple[str, ...]
) -> OpRecord:
    middle, low, high = spread(times.per_inference_ns[list(kernels)].sum(axis=0))
    whole = float(np.median(times.whole_ns))
    names = [times.kernels[kernel].name for kernel in kernels if times.kernels[kernel].op == NO_OP]
    reason = f"ran as {printable(', '.join(names), 200)}" if names else ""
    if placed == Placed.INSERTED:
        reason = "not in the model: the delegate's own"
    return OpRecord(
        name=name,
        type=kind,
        placed=placed,
        reason=reason,
        covers=covers,
        calls=len(kernels),
        time_ns=middle,
        low_ns=low,
        high_ns=high,
        path_ns=middle,
        path_share=middle / whole if whole else None,
        engines=(_CPU,),
    )


def _timeline(nodes: Sequence[OpRecord], times: Times, op_of: Sequence[int]) -> tuple[CommandTable, Trace]:
    kernels, inferences = times.per_inference_ns.shape
    command, inference = (part.reshape(-1) for part in np.mgrid[:kernels, :inferences])
    start = times.start_ns if times.start_ns is not None else np.zeros_like(times.per_inference_ns)
    order = np.lexsort((command, inference))
    work = Work(command, inference, start.reshape(-1), (start + times.per_inference_ns).reshape(-1))
    work = Work(*(column[order] for column in (work.command, work.inference, work.start_ns, work.end_ns)))
    count = np.arange(inferences)
    phases = Work(count, count, times.whole_start_ns, times.whole_start_ns + times.whole_ns)
    return build_timeline(
        _CPU,
        [Command(op, nodes[op].name, kernel.name) for kernel, op in zip(times.kernels, op_of, strict=True)],
        work,
        phases=phases,
        provenance=Provenance.MEASURED,
    )


def _kernels(times: Times) -> tuple[KernelTotal, ...]:
    groups: dict[str, list[int]] = {}
    for place, kernel in enumerate(times.kernels):
        groups.setdefault(kernel.name, []).append(place)
    rows = [
        KernelTotal(name, _CPU, len(places), time_ns=spread(times.per_inference_ns[places].sum(axis=0))[0])
        for name, places in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.time_ns or 0), row.name)))


def _lanes(times: Times) -> tuple[LaneTotal, ...]:
    return (busy_and_idle(_CPU, times.per_inference_ns.sum(axis=0), times.whole_ns),)


def _metrics(found: Measurement, times: Times | None, nodes: Sequence[OpRecord]) -> Iterator[Metric]:
    plain = partial(latency_metric, samples_ns=found.samples_ns, note="what an application sees")
    if times is None:
        yield plain("latency")
        yield Metric("time_in_ops", None, "share", Provenance.MEASURED, found.unavailable or "no events of ops")
        return
    watched = partial(latency_metric, samples_ns=times.whole_ns.tolist(), note="with the runtime's profiler")
    yield from (
        (watched("latency"), plain("latency_without_profiler"))
        if times.start_ns is not None
        else (plain("latency"), watched("latency_with_profiler"))
    )
    inside = times.per_inference_ns.sum(axis=0) / np.maximum(times.whole_ns, 1)
    yield Metric("time_in_ops", float(np.median(inside)), "share", Provenance.MEASURED, "the rest is the runtime's own")
    for name, placed in (
        ("ops_ran", Placed.CPU),
        ("ops_fused", Placed.FUSED),
        ("ops_removed", Placed.REMOVED),
        ("kernels_inserted", Placed.INSERTED),
    ):
        yield Metric(name, sum(node.placed == placed for node in nodes), "count", Provenance.MEASURED)


def _notes(found: Measurement, times: Times | None, measuring: Measuring) -> Iterator[str]:
    if times is None:
        why = found.unavailable or "its events differ from inference to inference"
        yield f"no times of ops: LiteRT's Python interface has none, and its C profiler cannot be used here: {why}"
    else:
        yield "LiteRT counts in whole microseconds: an op that takes less shows as 0 or 1 us"
        if times.start_ns is None:
            yield (
                "XNNPACK says how long a kernel took, not when, nor for which op: ops are told by kind and order, and "
                "there is no timeline; --kernels builtin has both, of other kernels"
            )
    yield f"inputs are random (seed {measuring.seed}); times of ops whose work depends on values are of these"
