"""Compilation → Recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...core.provenance import Provenance
from ...recording.recording import KernelTotal, Metric, Placed, Recording, Value, empty_trace
from .causes import causes_of
from .compilation import Compilation, CompiledGraph, compile_model
from .details import PARTS
from .importers.estimates import compiler_stages
from .importers.timeline import ENGINES
from .metrics import all_metrics, lane_totals, memory_totals, part_of, path_shares, whole_latency
from .nodes import GraphNodes, Naming, node_totals
from .options import HtpOptions
from .qhas_tables import qhas_tables
from .socs import Soc, proxy_of
from .trace import build_trace, ops_of

MB = 1024 * 1024
_COLUMNS = ["kernel", "engine", "start", "end", "dram_read", "dram_write", "vtcm_read", "vtcm_write"]


def profile_model(model: Path, options: HtpOptions, *, shapes: Mapping[str, tuple[int, ...]]) -> Recording:
    """Compile with the vendor's compiler and read everything that it and the vendor's model say."""
    result = assemble(model, options, compile_model(model, options, shapes=shapes))
    if options.proxy and not options.soc.has_model:
        result = _with_proxy(result, model, options, shapes)
    return result


def assemble(model: Path, options: HtpOptions, compilation: Compilation) -> Recording:
    """Everything that one compilation says."""
    mapped = [compilation.op_trace.graphs[graph.name] for graph in compilation.graphs]
    compilation = replace(compilation, graphs=_named(compilation.graphs))
    parts = tuple(part_of(graph) for graph in compilation.graphs)
    latency = whole_latency(parts)
    model_nodes = dict(compilation.nodes)
    whole_ns = sum(g.timeline.end * 1e9 / g.timeline.clock_hz for g in compilation.graphs if g.timeline) or None
    graphs = [
        GraphNodes(graph, Naming(graph, ops, model_nodes), whole_ns=whole_ns)
        for graph, ops in zip(compilation.graphs, mapped, strict=True)
    ]
    nodes = node_totals(compilation, graphs)
    memory = memory_totals(graphs, (options.vtcm_mb or options.soc.vtcm_mb) * MB)
    timed = latency is not None
    provenance = Provenance.VENDOR_MODEL if timed else Provenance.COMPILER_FACT
    ops, place_of = ops_of(nodes, graphs)
    table, trace = (build_trace(graphs, place_of) if timed else None) or (None, empty_trace(provenance))
    machine = _machine(options.soc, graphs)
    clock = machine.get("clock_hz")
    recording = Recording(
        maker="htp",
        model=str(model),
        network=model.stem,
        target=options.soc.label,
        machine=machine,
        clocks_hz={"core": float(clock)} if isinstance(clock, float | int) else {},
        options=options.shown(),
        producer=compilation.producer,
        provenance=provenance,
        latency=latency,
        metrics=all_metrics(graphs, parts, memory, on_cpu=sum(node.placed == Placed.CPU for node in nodes)),
        ops=ops,
        devices=1,
        cores=1,
        inferences=1,
        numbers=(0,),
        kernels=_kernels(graphs),
        lanes=lane_totals(graphs, latency.known_ns) if latency else (),
        path_shares=path_shares(graphs),
        path_shares_of="dominant path",
        memory=memory,
        stages=tuple(compiler_stages([graph.prepared for graph in compilation.graphs])),
        details={PARTS: parts},
        notes=(*compilation.notes, *_notes(options, len(parts))),
        trace=trace,
        commands=table,
    )
    recording = replace(recording, causes=causes_of(recording))
    return replace(recording, vendor_tables=qhas_tables(recording, graphs))


def _named(graphs: Sequence[CompiledGraph]) -> tuple[CompiledGraph, ...]:
    """By their order: the library's names depend on where the file lies."""
    if len(graphs) == 1:
        return (replace(graphs[0], name="graph"),)
    return tuple(replace(graph, name=f"graph {number}") for number, graph in enumerate(graphs, start=1))


def _machine(soc: Soc, graphs: Sequence[GraphNodes]) -> dict[str, Value]:
    machine: dict[str, Value] = {
        "title": soc.title,
        "id": soc.id,
        "architecture": f"v{soc.arch}",
        "vtcm_mb": soc.vtcm_mb,
    }
    timeline = graphs[0].graph.timeline if graphs else None
    if timeline is not None:
        machine["clock_hz"] = timeline.clock_hz
        machine["hvx_threads"] = int(timeline.settings.get("hvx_threads", 0))
        machine["vendor_model"] = f"{timeline.settings.get('sim_base_soc', '')} {timeline.version}".strip()
    return machine


def _kernels(graphs: Sequence[GraphNodes]) -> tuple[KernelTotal, ...]:
    """Compiled ops by name: with time where there is a timeline, else by their bytes alone."""
    rows: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    timed = all(graph.graph.timeline is not None for graph in graphs)
    for graph in graphs:
        schematic, line = graph.graph.schematic, graph.graph.timeline
        if line is not None and timed:
            for kernel, engine, start, end, *moved_bytes in line.work[~line.work["bookkeeping"]][_COLUMNS].tolist():
                row = rows[line.kernels[kernel], ENGINES[engine]]
                row[0] += 1
                row[1] += end - start
                row[2] += moved_bytes[0] + moved_bytes[1]
                row[3] += moved_bytes[2] + moved_bytes[3]
            continue
        for moved in schematic.moved:
            row = rows[schematic.operation_of(moved.id) or "unknown", "DMA" if moved.is_dma else ""]
            row[0] += 1
            row[2] += moved.dram_read + moved.dram_write
            row[3] += moved.vtcm_read + moved.vtcm_write
    totals = [
        KernelTotal(name, engine, n, busy if timed else None, dram, vtcm)
        for (name, engine), (n, busy, dram, vtcm) in rows.items()
    ]
    return tuple(sorted(totals, key=lambda row: (-(row.busy_cycles or 0), -(row.outer_bytes or 0), row.name)))


def _notes(options: HtpOptions, parts: int) -> Iterator[str]:
    """What the times are of, and which choices have no effect on them."""
    if options.soc.has_model:
        yield (
            "times are of the vendor's performance model: accelerator only, highest clock, no host and no RPC; "
            "an estimate, not a latency"
        )
        if options.perf_profile != "balanced":
            yield f"--perf-profile {options.perf_profile} has no effect: the model is fixed at the highest clock"
    else:
        yield (
            f"{options.soc.label}: the vendor has no performance model of this part, so no times; "
            "bytes, VTCM, order and placement are its compiler's facts; --proxy adds an estimate on the nearest part"
        )
    if parts > 1:
        yield f"{parts} graphs: nodes between them run on the CPU, and data go to memory and back each time"


def _with_proxy(
    result: Recording, model: Path, options: HtpOptions, shapes: Mapping[str, tuple[int, ...]]
) -> Recording:
    """The estimate of the nearest part that has a model, labelled as such; every fact stays the part's own."""
    proxy = proxy_of(options.soc)
    size = min(options.vtcm_mb or options.soc.vtcm_mb, proxy.vtcm_mb)
    nearest = replace(options, soc=proxy, proxy=False, vtcm_mb=size)
    latency = whole_latency([part_of(graph) for graph in compile_model(model, nearest, shapes=shapes).graphs])
    if latency is None:
        return result
    low, high = (None if ns is None else ns / 1e3 for ns in (latency.low_ns, latency.high_ns))
    note = f"proxy: {proxy.title} with {size} MB VTCM, not {options.soc.label}; threads and clocks differ"
    metric = Metric("proxy_execution_time", latency.known_ns / 1e3, "us", Provenance.VENDOR_MODEL, note, low, high)
    return replace(result, metrics=(*result.metrics, metric))
