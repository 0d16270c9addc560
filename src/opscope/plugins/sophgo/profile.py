"""Model → Recording, through the vendor's compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ...backends.kernel_times import placed_counts
from ...backends.model_facts import with_model
from ...core.errors import ModelError
from ...core.provenance import Provenance
from ...graph.graph import Graph
from ...readers import read_model
from ...recording.recording import Metric, OpRecord, Placed, Recording
from ...recording.run import graph_edges
from ...recording.summary import MemoryTotal
from .compilation import Compilation, compile_model
from .importer import TOOL, memory_metrics, recording, scheduled
from .manifest import BACKEND
from .meaning import DDR
from .nodes import node_rows
from .ops import OpRows
from .options import SophgoOptions

_COUNTS = {
    "ops_on_tpu": Placed.ACCELERATOR,
    "ops_on_cpu": Placed.CPU,
    "ops_fused": Placed.FUSED,
    "ops_without_command": Placed.REMOVED,
    "ops_added": Placed.INSERTED,
}


def profile_model(model: Path, options: SophgoOptions, *, shapes: Mapping[str, tuple[int, ...]]) -> Recording:
    """Compile with the vendor's compiler and read everything that it says."""
    graph = read_model(model, shapes=shapes)
    if graph.framework != "ONNX":
        raise ModelError(str(model), "", f"a {graph.framework} model; expected ONNX")
    return with_model(assemble(model, graph, options, compile_model(model, graph, options)), graph)


def assemble(model: Path, graph: Graph, options: SophgoOptions, found: Compilation) -> Recording:
    """Everything that one compilation says."""
    ops = node_rows(graph, found.compiled)
    base = _timed(ops, found, _batch(graph)) if found.profiles else _untimed(ops, found)
    return replace(
        base,
        model=str(model),
        network=model.stem,
        target=options.chip.name,
        machine={
            "title": options.chip.title,
            "lanes": options.chip.lanes,
            "local_bytes_per_lane": options.chip.lane_bytes,
            "clock_hz": options.chip.clock_hz,
        },
        options=options.shown(),
        producer={TOOL: found.version},
        metrics=(*base.metrics, *_metrics(found, base.ops)),
        stages=found.stages,
        graph=graph_edges(graph),
        notes=(*graph.assumptions, *base.notes, *_notes(options, found, base.ops)),
    )


def _timed(ops: OpRows, found: Compilation, batch: int | None) -> Recording:
    base = recording(scheduled(found.profiles, found.compiled), ops, maker=BACKEND.name)
    if base.totals is None or base.latency is None:
        return base
    held = found.memory and found.memory.weight_bytes + found.memory.instruction_bytes + found.memory.runtime_bytes
    memory = tuple(replace(row, peak_bytes=held) if row.name == DDR and held else row for row in base.totals.memory)
    ns = base.latency.value_ns
    rate = batch * 1e9 / ns if batch and ns else None
    return replace(base, tool="", totals=replace(base.totals, memory=memory, batch=batch, throughput_per_s=rate))


def _untimed(ops: OpRows, found: Compilation) -> Recording:
    """Of a chip whose times the compiler has no model of: what it decided."""
    fact, memory = Provenance.COMPILER_FACT, found.memory
    held = None if memory is None else memory.weight_bytes + memory.instruction_bytes + memory.runtime_bytes
    return Recording(
        maker=BACKEND.name,
        provenance=fact,
        ops=ops.rows,
        devices=1,
        cores=1,
        metrics=tuple(memory_metrics(found.compiled)),
        memory=() if held is None else (MemoryTotal(DDR, 0, None, held, None, None, None, None),),
    )


def _batch(graph: Graph) -> int | None:
    """The first extent of the first input, where inputs have several axes."""
    shape = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    return shape[0] if shape and len(shape) > 1 and shape[0] > 0 else None


def _metrics(found: Compilation, ops: tuple[OpRecord, ...]) -> Iterator[Metric]:
    fact = Provenance.COMPILER_FACT
    yield from placed_counts(ops, _COUNTS, fact)
    yield Metric("macs", sum(op.macs or 0 for op in ops), "count", fact, "of the model")
    if found.memory is not None:
        yield Metric("instructions", found.memory.instruction_bytes, "bytes", fact, "in DDR")
        yield Metric("host_memory", found.memory.host_bytes, "bytes", fact, "of ops on the CPU")
    yield Metric("model_file", found.model_bytes, "bytes", fact, "that the chip is given")
    whole = sum(stage.microseconds for stage in found.stages)
    yield Metric("compile_time", whole, "us", Provenance.MEASURED, "on this machine")


def _notes(options: SophgoOptions, found: Compilation, ops: tuple[OpRecord, ...]) -> Iterator[str]:
    if not found.profiles:
        yield f"{options.chip.name}: the compiler has no model of its times; memory and placement are its facts"
    if options.chip.same_as:
        yield f"the compiler's model of {options.chip.name} is that of {options.chip.same_as}"
    if found.calibration:
        yield f"{options.precision}: the compiler calibrated with {found.calibration}"
    elif options.data is not None:
        yield f"--data is for integers; {options.precision} needs no calibration"
    unknown = [op.name for op in ops if op.unknown]
    if unknown and found.profiles:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        yield f"{len(unknown)} ops are in no schedule, so the latency is of the others: {', '.join(unknown[:3])}{more}"
