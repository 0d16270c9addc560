"""Compilation → Recording."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...backends.model_facts import with_model
from ...core.provenance import Provenance
from ...graph.graph import Graph
from ...recording.quantized import COPY
from ...recording.recording import KernelTotal, OpRecord, Placed, Recording, Value, empty_trace
from ...recording.run import GRAPH_EDGE
from .attribution import Attribution
from .causes import causes_of
from .compilation import Compilation, CompiledGraph, compile_model, graph_of_model
from .details import PARTS
from .hexagon import MB, computed_in, hexagon_of
from .importers.estimates import compiler_stages
from .importers.events import made_of
from .importers.timeline import ENGINES, FOREGROUND, HMX
from .metrics import all_metrics, lane_totals, memory_totals, part_of, path_shares, whole_latency
from .nodes import GraphNodes, node_totals
from .options import HtpOptions
from .parts.correction import correction_of
from .parts.neighbour import find_neighbour, with_times
from .qhas_tables import qhas_tables
from .socs import Soc
from .trace import build_trace, ops_of

NO_NEIGHBOUR = "no part that the vendor's model knows takes this model as this part does"
_COLUMNS = ["kernel", "engine", "start", "end", "dram_read", "dram_write", "vtcm_read", "vtcm_write"]


def profile_model(model: Path, options: HtpOptions, *, shapes: Mapping[str, tuple[int, ...]]) -> Recording:
    """Compile with the vendor's compiler and read everything that it and the vendor's model say.

    A part that the model does not know gets the times of the nearest that it does, scaled.
    """
    return profile_graph(model, options, graph_of_model(model, shapes), fixes=bool(shapes))


def profile_graph(model: Path, options: HtpOptions, graph: Graph, *, fixes: bool) -> Recording:
    """The profile of a model that has been read.

    Args:
        fixes: whether the user fixed shapes of inputs.
    """
    compiled = partial(compile_model, model, graph=graph, fixes=fixes)
    facts = with_model(assemble(model, options, compiled(options)), graph)
    if options.soc.has_model:
        return facts
    neighbour = find_neighbour(options, facts, compiled)
    if neighbour is None:
        return replace(facts, notes=(*facts.notes, f"no times: {NO_NEIGHBOUR}"))
    result = with_times(facts, assemble(model, neighbour.options, neighbour.compilation), neighbour)
    _, graphs = _graph_nodes(neighbour.compilation)
    return replace(result, vendor_tables=qhas_tables(result, graphs))


def assemble(model: Path, options: HtpOptions, compilation: Compilation) -> Recording:
    """Everything that one compilation says."""
    compilation, graphs = _graph_nodes(compilation)
    parts = tuple(part_of(graph) for graph in compilation.graphs)
    latency = whole_latency(parts)
    nodes = node_totals(compilation, graphs)
    timed = latency is not None
    provenance = Provenance.VENDOR_MODEL if timed else Provenance.COMPILER_FACT
    ops, place_of = ops_of(nodes, graphs)
    table, trace = (build_trace(graphs, place_of) if timed else None) or (None, empty_trace(provenance))
    machine = _machine(options.soc, graphs)
    clock = machine.get("clock_hz")
    hexagon, dtype = hexagon_of(options.soc), _computed_in(compilation.graphs)
    vtcm_bytes = (options.vtcm_mb or options.soc.vtcm_mb) * MB
    memory = memory_totals(graphs, vtcm_bytes)
    recording = Recording(
        maker="htp",
        model=str(model),
        network=model.stem,
        target=options.soc.label,
        machine=machine | ({"macs_in": dtype} if dtype else {}),
        limits=hexagon.limits(dtype),
        bounds=hexagon.bounds(unit=_hmx_lane(compilation.graphs), vtcm_bytes=vtcm_bytes),
        clocks_hz={"core": float(clock)} if isinstance(clock, float | int) else {},
        options=options.shown(),
        producer=compilation.producer,
        provenance=provenance,
        latency=latency,
        metrics=all_metrics(
            graphs,
            parts,
            memory,
            on_cpu=sum(node.placed == Placed.CPU for node in nodes),
            correction=correction_of(options.soc.id, dtype) if timed else None,
        ),
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
        details={PARTS: parts} | ({COPY: compilation.quantized} if compilation.quantized else {}),
        files={f"{options.precision}.onnx": compilation.copy} if compilation.copy else {},
        notes=(*compilation.notes, *_notes(options, len(parts))),
        trace=trace,
        commands=table,
        # what kernels do, kernel_words.py tells
        classified={} if table is None else {"commands": len(table.rows), "spans": len(trace.spans)},
        graph=_graph(ops, compilation.flow),
    )
    recording = replace(recording, causes=causes_of(recording))
    return replace(recording, vendor_tables=qhas_tables(recording, graphs))


def _graph(ops: Sequence[OpRecord], flow: Sequence[tuple[str, str]]) -> npt.NDArray[np.void] | None:
    """The edges of the model between its ops; a node without a row is the one that covers it."""
    names = {name for edge in flow for name in edge}
    place = {made_of(op.name, names): number for number, op in enumerate(ops)}
    place |= {name: number for number, op in enumerate(ops) for name in op.covers}
    place |= {op.name: number for number, op in reversed(list(enumerate(ops)))}
    known = [(place[one], place[other]) for one, other in flow if one in place and other in place]
    edges = dict.fromkeys((one, other) for one, other in known if one != other)
    return np.array(list(edges), GRAPH_EDGE) if edges else None


def _graph_nodes(compilation: Compilation) -> tuple[Compilation, list[GraphNodes]]:
    """The compilation with its graphs named, and the nodes of each."""
    mapped = [compilation.op_trace.graphs[graph.name] for graph in compilation.graphs]
    compilation = replace(compilation, graphs=_named(compilation.graphs))
    model_nodes = dict(compilation.nodes)
    whole_ns = sum(g.timeline.end * 1e9 / g.timeline.clock_hz for g in compilation.graphs if g.timeline) or None
    macs = {name: known.work.macs for name, known in compilation.work.items()}
    return compilation, [
        GraphNodes(graph, Attribution(graph, ops, model_nodes, macs), whole_ns=whole_ns, work=compilation.work)
        for graph, ops in zip(compilation.graphs, mapped, strict=True)
    ]


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


def _computed_in(graphs: Sequence[CompiledGraph]) -> str:
    """The data type of most ops on HMX; without any, of most ops."""
    matrix, others = Counter[str](), Counter[str]()
    for schematic in (graph.schematic for graph in graphs):
        for op, flags in schematic.flags.items():
            if op in schematic.ops:
                (matrix if "uses_hmx" in flags else others)[schematic.ops[op].dtype] += 1
    return computed_in(matrix) or computed_in(others)


def _hmx_lane(graphs: Sequence[CompiledGraph]) -> str:
    """Where HMX has no thread of its own, the foreground thread drives it."""
    lanes = [lane for graph in graphs if graph.timeline for lane in graph.timeline.lanes]
    return next((lane.name for lane in lanes if lane.unit == HMX), FOREGROUND)


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
            f"{options.soc.label}: the vendor has no performance model of this part; bytes, VTCM, order and placement "
            "are its compiler's facts"
        )
    if options.data is not None and options.precision == "as-is":
        yield "--data is for copies of another precision; this is the model as it is"
    if parts > 1:
        yield f"{parts} graphs: nodes between them run on the CPU, and data go to memory and back each time"
