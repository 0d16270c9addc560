"""Compilation with Arm's compiler → Recording.

Its model: an op takes as long as its busiest resource, ops follow each other. Ops on the CPU cost nothing in its
files, which is not known but unknown: then there is no latency, only that of the accelerator's part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...backends.model_facts import with_model
from ...backends.timeline import Command, Stretches, build_timeline
from ...core.errors import ModelError, UsageError, printable
from ...core.provenance import Provenance
from ...graph.graph import Graph
from ...graph.kinds import what_kind_does
from ...readers import read_model
from ...recording.recording import CLOCK, OpRecord, Placed, Recording, Value, empty_trace
from ...recording.run import CommandTable
from ...recording.summary import Latency
from ...recording.trace import Trace
from .compilation import Compilation, compile_model
from .figures import kernels, lanes, memory, metrics, path_shares
from .importer import TOTAL
from .nodes import node_totals, places
from .options import VelaOptions

_RANDOM_LIKE = 0.95  # encoded ÷ original: trained weights come out well below


def profile_model(model: Path, options: VelaOptions, *, shapes: Mapping[str, tuple[int, ...]]) -> Recording:
    """Compile with the vendor's compiler and read everything that it says."""
    if shapes:
        raise UsageError("--shape: the compiler takes the shapes of the file; expected a model with fixed shapes")
    graph = read_model(model)  # also keeps damaged files from the compiler, which crashes on them
    if graph.framework != "TensorFlow Lite":
        raise ModelError(str(model), "", f"an {graph.framework} model; expected TensorFlow Lite of int8")
    compiled = next((op for op in graph.ops if op.kind == "compiled"), None)
    if compiled is not None:
        raise ModelError(
            str(model), compiled.location, f"compiled already ({printable(compiled.type)}); expected what was compiled"
        )
    return with_model(assemble(model, graph, options, compile_model(model, options)), graph)


def assemble(model: Path, graph: Graph, options: VelaOptions, found: Compilation) -> Recording:
    """Everything that one compilation says."""
    clock = found.summary.value(CLOCK) or 0.0
    nodes = node_totals(graph, found, clock)
    if not any(node.placed == Placed.ACCELERATOR for node in nodes):
        raise ModelError(str(model), "", _nothing_taken(graph, nodes))
    on_cpu = sum(node.placed == Placed.CPU for node in nodes)
    npu_ns = round(sum(node.cycles or 0 for node in nodes) * 1e9 / clock) if clock else None
    latency = None if on_cpu or npu_ns is None else Latency(npu_ns, None, None, Provenance.VENDOR_MODEL)
    table, trace = _timeline(graph, options, found, clock) if latency else (None, empty_trace(Provenance.VENDOR_MODEL))
    return Recording(
        maker="vela",
        model=str(model),
        network=model.stem,
        target=options.accelerator,
        machine=_machine(options, clock),
        clocks_hz={"core": clock} if clock else {},
        options={**options.shown(), **found.producer},
        producer=found.producer,
        provenance=Provenance.VENDOR_MODEL,
        latency=latency,
        metrics=tuple(metrics(found, options, npu_ns, latency, nodes)),
        ops=nodes,
        devices=1,
        cores=1,
        kernels=kernels(found, clock),
        lanes=() if latency is None else tuple(lanes(nodes, options.accelerator, npu_ns or 0)),
        path_shares=path_shares(found, clock),
        path_shares_of="bound by",
        memory=tuple(memory(found)),
        notes=tuple(_notes(graph, options, found, on_cpu)),
        trace=trace,
        commands=table,
        inferences=1,
        numbers=(0,),
    )


def _nothing_taken(graph: Graph, nodes: Sequence[OpRecord]) -> str:
    reasons = Counter(f"{node.type}: {node.reason}" for node in nodes if node.placed == Placed.CPU)
    listed = "; ".join(reason for reason, _ in reasons.most_common(3))
    return f"the accelerator takes none of its {len(graph.ops)} ops ({listed}); expected a model of int8"


def _machine(options: VelaOptions, clock: float) -> dict[str, Value]:
    title = f"Arm {options.accelerator} in {options.system}, {options.memory_mode}"
    return {
        "title": title,
        "system": options.system,
        "memory_mode": options.memory_mode,
        "macs_per_cycle": options.macs_per_cycle,
        "clock_hz": clock or None,
    }


def _timeline(graph: Graph, options: VelaOptions, found: Compilation, clock: float) -> tuple[CommandTable, Trace]:
    """Ops one after the other, as the compiler's model has it."""
    rows = zip(found.layers.ops, places(graph, found), strict=True)
    kept = [(op, place) for op, (place, _) in rows if op.cycles and place is not None]
    ends = np.cumsum([op.cycles or 0 for op, _ in kept], dtype=np.int64)
    starts = np.concatenate(([0], ends[:-1]))
    count = np.arange(len(kept))
    in_ns = [np.rint(column * (1e9 / clock)).astype(np.int64) for column in (starts, ends)]
    commands = [
        Command(
            place,
            op.name,
            op.kernel,
            ", ".join(f"{part.resource}={part.cycles}" for part in op.resource_cycles),
            op.cycles,
            op.macs or 0,
            op.resource_cycles,
            does=what_kind_does(graph.ops[place].kind),
        )
        for op, place in kept
    ]
    first = {place: number for number, (_, place) in reversed(list(enumerate(kept)))}
    last = {place: number for number, (_, place) in enumerate(kept)}
    edges = [(last[one], first[other]) for one, other in _dependencies(graph) if one in last and other in first]
    return build_timeline(
        options.accelerator,
        commands,
        Stretches(count, np.zeros(len(kept), np.int64), *in_ns),
        edges=[e for e in edges if e[0] < e[1]],
        provenance=Provenance.VENDOR_MODEL,
    )


def _dependencies(graph: Graph) -> Iterator[tuple[int, int]]:
    writer = {tensor: place for place, op in enumerate(graph.ops) for tensor in op.outputs}
    for place, op in enumerate(graph.ops):
        yield from ((writer[tensor], place) for tensor in op.inputs if tensor in writer)


def _notes(graph: Graph, options: VelaOptions, found: Compilation, on_cpu: int) -> Iterator[str]:
    """What the figures rest on, and what they leave out."""
    yield (
        "cycles are estimates inside Arm's compiler, which asks to use a model of the system or an FPGA for figures; "
        f"clock and memories are those of {options.system}"
    )
    if on_cpu:
        yield f"{on_cpu} of {len(graph.ops)} ops run on the CPU: their time is unknown, so no latency is given"
    original, encoded = (found.summary.value(f"total {name} weights") for name in ("original", "npu encoded"))
    if original and encoded and encoded > _RANDOM_LIKE * original:
        yield (
            f"the weights hardly compress ({encoded / original:.0%} of their size), as random ones do: trained weights "
            "travel in fewer bytes, so a trained model can be faster than this"
        )
    yield f"memory is of --optimise {options.optimise}: the other strategy places tensors differently"
    total, summed = found.summary.value(TOTAL), sum(op.cycles or 0 for op in found.layers.ops)
    if total is not None and round(total) != summed:
        yield f"the compiler's total is {total:,.0f} cycles, the sum of its rows {summed:,}: this table shows the rows"
    for check in (*found.layers.checks, *found.summary.checks):
        if not check.holds:
            yield f"check fails: {check.name}: {check.detail}"
