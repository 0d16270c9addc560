"""What LiteRT left of one measurement → Recording."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...backends.host_cpu import UNWATCHED, WATCHED, latency_alone, latency_metric, measured_latency
from ...backends.kernel_times import (
    ENGINE,
    cpu_recording,
    in_body,
    no_kernel,
    placed_counts,
    random_inputs_note,
    watched_note,
)
from ...backends.measuring import Measuring
from ...backends.model_facts import with_model
from ...backends.timeline import Command, Stretches, build_timeline
from ...core.errors import ModelError, printable
from ...core.meaning import Does
from ...core.provenance import Provenance
from ...graph.graph import Graph
from ...readers import read_model
from ...recording.recording import Metric, OpRecord, Placed, Recording, empty_trace
from ...recording.run import CommandTable
from ...recording.trace import Trace
from .kernels import NO_OP, map_kernels, neighbour
from .measurement import Measurement, Times, measure, read_times

_COUNTS = {
    "ops_ran": Placed.CPU,
    "ops_fused": Placed.FUSED,
    "ops_removed": Placed.REMOVED,
    "kernels_inserted": Placed.INSERTED,
}


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
    return with_model(result if measuring.op_times else latency_alone(result, found.samples_ns), graph)


def assemble(model: Path, graph: Graph, measuring: Measuring, found: Measurement, *, kernels: str) -> Recording:
    """Everything that one measurement says."""
    times = read_times(graph, found.events)
    op_of = map_kernels(graph, times.ran) if times else []
    nodes = node_rows(graph, times, op_of) if times else ()
    samples = tuple(times.kernels.whole_ns.tolist()) if times else found.samples_ns
    table, trace = None, empty_trace(Provenance.MEASURED)
    if times and times.start_ns is not None:
        table, trace = _timeline(nodes, times, op_of)
    return replace(
        cpu_recording("litert", model, measuring, options={"kernels": kernels}, producer=found.producer),
        latency=measured_latency(samples),
        metrics=tuple(_metrics(found, times, nodes)),
        ops=nodes,
        kernels=times.kernels.totals() if times else (),
        lanes=(times.kernels.lane(),) if times else (),
        notes=tuple(_notes(found, times, measuring)),
        trace=trace,
        commands=table,
        inferences=len(samples),
        numbers=None if len(trace.spans) else (0,),
        samples_ns=samples,
        caveats=(WATCHED if times else UNWATCHED,),
    )


def node_rows(graph: Graph, times: Times, op_of: Sequence[int]) -> tuple[OpRecord, ...]:
    """Every op of the model once, in order, then kernels that belong to none."""
    kernels_of: dict[int, list[int]] = {}
    for kernel, place in enumerate(op_of):
        kernels_of.setdefault(place, []).append(kernel)
    into = _fused(graph, kernels_of, {kernel.op for kernel in times.ran})
    covers: dict[int, list[str]] = {}
    for place, other in into.items():
        covers.setdefault(other, []).append(graph.ops[place].name)
    rows = []
    for place, op in enumerate(graph.ops):
        if op.scope:
            rows.append(in_body(op))
        elif place in kernels_of:
            ran, names = kernels_of[place], tuple(covers.get(place, ()))
            reason = _ran_as(ran, times)
            row = times.kernels.op_row(op.name, op.type, Placed.CPU, ran, kind=op.kind, reason=reason, covers=names)
            rows.append(row)
        elif place in into:
            rows.append(no_kernel(op, Placed.FUSED, f"fused into {graph.ops[into[place]].name}"))
        else:
            rows.append(no_kernel(op, Placed.REMOVED, "no kernel ran for it"))
    reason = "not in the model: the delegate's own"
    added = kernels_of.get(NO_OP, ())
    rows += [times.kernels.op_row(times.ran[k].name, "", Placed.INSERTED, [k], reason=reason) for k in added]
    return tuple(rows)


def _ran_as(kernels: Sequence[int], times: Times) -> str:
    """Kernels of the delegate, which bear names of their own."""
    names = [times.ran[kernel].name for kernel in kernels if times.ran[kernel].op == NO_OP]
    return f"ran as {printable(', '.join(names), 200)}" if names else ""


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


def _timeline(nodes: Sequence[OpRecord], times: Times, op_of: Sequence[int]) -> tuple[CommandTable, Trace]:
    """Commands and spans, inference by inference, where kernels tell when they start."""
    length = times.kernels.kernel_ns
    kernels, inferences = length.shape
    inference, command = (part.reshape(-1) for part in np.mgrid[:inferences, :kernels])
    start = times.start_ns if times.start_ns is not None else np.zeros_like(length)
    work = Stretches(command, inference, start.T.reshape(-1), (start + length).T.reshape(-1))
    count = np.arange(inferences)
    phases = Stretches(count, count, times.whole_start_ns, times.whole_start_ns + times.kernels.whole_ns)
    commands = [
        Command(op, nodes[op].name, kernel.name, does=nodes[op].does if kernel.op != NO_OP else Does.UNKNOWN)
        for kernel, op in zip(times.ran, op_of, strict=True)
    ]
    return build_timeline(ENGINE, commands, work, phases=phases, provenance=Provenance.MEASURED)


def _metrics(found: Measurement, times: Times | None, nodes: Sequence[OpRecord]) -> Iterator[Metric]:
    """`latency` is of the inferences that the ops were timed in."""
    if times is None:
        yield latency_metric("latency", found.samples_ns, "what an application sees")
        yield Metric("time_in_ops", None, "share", Provenance.MEASURED, found.unavailable or "no events of ops")
        return
    yield latency_metric("latency", times.kernels.whole_ns.tolist(), "with the runtime's profiler, as in the table")
    yield latency_metric("latency_without_profiler", found.samples_ns, "what an application sees")
    yield times.kernels.share_in_kernels("time_in_ops")
    yield from placed_counts(nodes, _COUNTS)


def _notes(found: Measurement, times: Times | None, measuring: Measuring) -> Iterator[str]:
    if times is None:
        why = found.unavailable or "its events differ from inference to inference"
        yield f"no times of ops: LiteRT's Python interface has none, and its C profiler cannot be used here: {why}"
    else:
        yield watched_note(times.kernels, found.samples_ns, rows="ops")
        yield "LiteRT counts in whole microseconds: an op that takes less shows as 0 or 1 us"
        if times.start_ns is None:
            yield (
                "XNNPACK says how long a kernel took, not when, nor for which op: ops are told by kind and order, and "
                "there is no timeline; --kernels builtin has both, of other kernels"
            )
    yield random_inputs_note(measuring)
