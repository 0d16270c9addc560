"""The vendor's analysis summary (QHAS) from the model's timeline, the compiler's schematic and the map of names.

Two forms in one object: the short one (`execution_summary`, `resource_utilization`), and tables with the vendor's
column names. Columns that need hardware counters, such as packets, are left out; unknown values are null.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...recording.recording import OpRecord, Placed, Recording
from .details import parts_of
from .importers.timeline import DMA, ENGINES, HMX, HVX, SCALAR
from .metrics import ACCELERATOR_ALONE
from .nodes import GraphNodes

Row = dict[str, object]
VERSION = {"major": 1, "minor": 0, "patch": 0}


def qhas_tables(recording: Recording, graphs: Sequence[GraphNodes]) -> dict[str, object]:
    """The whole summary, ready to be written."""
    nodes = [node for node in recording.ops if node.placed in (Placed.ACCELERATOR, Placed.INSERTED, Placed.FUSED)]
    return {
        "header": {"artifact_type": "QHAS", "version": VERSION, "provenance": recording.provenance}
        | ({"basis": recording.basis} if recording.basis else {}),
        "model_id": recording.model,
        **_short(recording),
        "data": {
            "htp_overall_summary": {"data": [_overall(recording, graphs, nodes)]},
            "qnn_op_types": {"data": list(_types(nodes))},
            "qnn_op_instances_nodes": {"data": [_instance(node) for node in nodes]},
            "htp_op_types": {
                "data": [
                    {
                        "op": kernel.name,
                        "instances": kernel.count,
                        "cycles": kernel.busy_cycles,
                        "unit": kernel.engine,
                        "dram": kernel.outer_bytes,
                        "vtcm": kernel.local_bytes,
                    }
                    for kernel in recording.kernels
                ]
            },
            "htp_op_instances": {"data": [row for graph in graphs for row in _ops(graph)]},
            "dominant_path_htp_0": {"data": [row for graph in graphs for row in _path(graph)]},
        },
    }


def _short(recording: Recording) -> dict[str, object]:
    """The short form; times that the model does not cover are null."""
    time, peak = recording.value("htp_execution_time"), recording.value("vtcm_peak")
    use = {engine: recording.value(f"{engine}_utilization") for engine in ("hvx", "hmx")}
    total = recording.metric("total_inference_time")
    return {
        "execution_summary": {
            "total_inference_time_ms": None,
            "htp_execution_time_ms": None if time is None else time / 1e3,
            "overhead_ms": None,
            "throughput_fps": None,
            "accelerator_bound_fps": 1e6 / time if time else None,
            "unknown_because": total.note if total and total.value is None else ACCELERATOR_ALONE,
        },
        "resource_utilization": {
            "hvx_utilization_percent": _percent(use["hvx"]),
            "hmx_utilization_percent": _percent(use["hmx"]),
            "vtcm_peak_usage_kb": None if peak is None else peak / 1024,
            "ddr_bandwidth_mbps": recording.value("ddr_bandwidth"),
        },
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _overall(recording: Recording, graphs: Sequence[GraphNodes], nodes: Sequence[OpRecord]) -> Row:
    """The one row of the table of totals."""
    vtcm, ddr = recording.memory
    time = recording.value("htp_execution_time")
    busiest = max((lane.utilization for lane in recording.lanes), default=None)
    return {
        "time_us": time,
        "graph_execute_us": time,
        "inf_per_s": 1e6 / time if time else None,
        "timeline_cycles": sum(part.cycles or 0 for part in parts_of(recording)) if time else None,
        "percent_utilization": _percent(busiest),
        "percent_idle": None if busiest is None else 100 - 100 * busiest,
        "total_dram": (ddr.read_bytes or 0) + (ddr.write_bytes or 0),
        "total_dram_read": ddr.read_bytes,
        "total_dram_write": ddr.write_bytes,
        "total_vtcm": (vtcm.read_bytes or 0) + (vtcm.write_bytes or 0),
        "total_vtcm_read": vtcm.read_bytes,
        "total_vtcm_write": vtcm.write_bytes,
        "peak_vtcm_alloc": vtcm.peak_bytes,
        "qnn_nodes": sum(len(graph.graph.schematic.names) for graph in graphs),
        "htp_nodes": sum(round(node.calls or 0) for node in nodes),
        "unique_qnn_ops": len({node.type for node in nodes if node.type}),
        "unique_htp_ops": len({kernel.name for kernel in recording.kernels}),
        "htp": 0,
        "htp_resources": {
            "data": [
                {
                    "unit": lane.name,
                    "utilization": _percent(lane.utilization),
                    "busy_ns": lane.busy_ns,
                    "wait_ns": lane.wait_ns,
                    "idle_ns": lane.idle_ns,
                }
                for lane in recording.lanes
            ]
        },
    }


def _types(nodes: Sequence[OpRecord]) -> Iterator[Row]:
    by_type: dict[str, list[OpRecord]] = defaultdict(list)
    for node in nodes:
        by_type[node.type or node.name].append(node)
    for name, rows in sorted(by_type.items(), key=lambda item: -sum(n.path_ns or 0 for n in item[1])):
        yield {"qnn_op_type": name, "instances": len(rows), **_sums(rows)}


def _instance(node: OpRecord) -> Row:
    return {"qnn_op": node.name, "qnn_op_type": node.type, "placed": node.placed, **_sums([node])}


def _sums(rows: Sequence[OpRecord]) -> Row:
    timed = all(row.time_ns is not None for row in rows)
    return {
        "cycles": sum(sum(row.busy_cycles.values()) for row in rows) if timed else None,
        "wall_ns": sum(row.time_ns or 0 for row in rows) if timed and len(rows) == 1 else None,
        "num_htp_ops": sum(round(row.calls or 0) for row in rows),
        "dram_read": sum(row.outer_read_bytes or 0 for row in rows),
        "dram_write": sum(row.outer_write_bytes or 0 for row in rows),
        "vtcm_read": sum(row.local_read_bytes or 0 for row in rows),
        "vtcm_write": sum(row.local_write_bytes or 0 for row in rows),
        "dominant_path_ns": sum(row.path_ns or 0 for row in rows) if timed else None,
        "percent_dominant_path_cycles_htp_0": 100 * sum(row.path_share or 0.0 for row in rows) if timed else None,
    }


def _ops(graph: GraphNodes) -> Iterator[Row]:
    """A row per span of a compiled op, without bookkeeping."""
    line, schematic = graph.graph.timeline, graph.graph.schematic
    if line is None:
        return
    columns = ["bookkeeping", "id", "kernel", "engine", "lane", "start", "end", "dram_read", "dram_write"]
    for span, (keeps, op_id, kernel, number, lane, start, end, read, write) in enumerate(line.work[columns].tolist()):
        if keeps:
            continue
        op, engine = schematic.ops.get(op_id), ENGINES[number]
        yield {
            "op_id": f"{op_id:#x}",
            "htp_op": line.kernels[kernel],
            "qnn_op": graph.naming.rows[graph.row_of_span[span]],
            "tid": line.lanes[lane].name,
            "start_cycle": start,
            "cycles": end - start,
            "hmx": engine == HMX,
            "hvx": engine == HVX,
            "dma": engine == DMA,
            "scalar": engine == SCALAR,
            "dtype": op.dtype if op else None,
            "dims": op.dims if op else None,
            "input_nodes": [f"{source:#x}" for source in op.inputs] if op else [],
            "dram_read": read,
            "dram_write": write,
        }


def _path(graph: GraphNodes) -> Iterator[Row]:
    line = graph.graph.timeline
    for part in graph.path_parts if line is not None else ():
        work = line.work[part.span]  # type: ignore[union-attr]
        yield {
            "qnn_op": graph.naming.rows[graph.row_of_span[part.span]],
            "htp_op": line.kernels[int(work["kernel"])],  # type: ignore[union-attr]
            "tid": line.lanes[int(work["lane"])].name,  # type: ignore[union-attr]
            "start_cycle": part.begin,
            "cycles": part.end - part.begin,
        }
