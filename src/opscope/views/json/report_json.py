"""A report as JSON, schema `opscope.report/1`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TextIO

from ...core.json_files import PRODUCER
from ...estimate.battery import BatteryLife
from ...estimate.cost import Resource, labels
from ...estimate.report import Layer, Report
from ...graph.graph import ABSENT, Graph
from ...recording.resources import Footprint, LayerAdvice, Range, Suggestion

SCHEMA = "opscope.report/1"


class ReportJson:
    """Every layer, every number; unknown is null."""

    suffix = ".json"

    def render(self, report: Report, out: TextIO) -> None:
        json.dump(document(report), out, indent=1, allow_nan=False)
        out.write("\n")


def document(report: Report) -> dict[str, object]:
    """The report as plain values, key order as documented."""
    names = labels(report.target)
    return {
        "schema": SCHEMA,
        "provenance": report.provenance,
        "producer": PRODUCER,
        "model": asdict(report.model),
        "target": _target(report),
        "memory": _memory(report),
        "hardware": _hardware(report),
        "layers": [_layer(layer, report.graph, names) for layer in report.layers],
        "opportunities": _opportunities(report),
        "unknown_ops": [asdict(op) for op in report.unknown_ops],
        "notes": [asdict(note) for note in report.notes],
        "battery": _battery(report.battery),
    }


def _target(report: Report) -> dict[str, object]:
    target = report.target
    return {
        "name": target.name,
        "title": target.title,
        "clock_hz": target.clocks.core_hz.value,
        "devices": report.devices,
        "cores": report.cores,
        "engines": [{"name": e.name, "accelerator": e.accelerator} for e in target.engines],
        "memories": [{"name": m.name, "scope": m.scope.value, "bytes": round(m.bytes.value)} for m in target.memories],
    }


def _memory(report: Report) -> dict[str, object]:
    """`memory` of the documented form."""
    memory = report.memory
    layer = report.layers[memory.peak_layer] if memory.peak_layer is not None and report.layers else None
    return {
        "peak_bytes": memory.peak_bytes,
        "available_bytes": memory.available_bytes,
        "utilization": _finite(memory.uses[0].share),
        "status": memory.status,
        "peak_at": {
            "layer": None if layer is None else layer.index,
            "name": None if layer is None else layer.name,
            "tensors": [{"name": t.name, "bytes": t.size_bytes} for t in memory.peak_tensors],
        },
        "live_bound_bytes": memory.bound_bytes,
        "planned_arena_bytes": memory.arena_bytes,
        "planner": memory.planner,
        "scratch_bytes": memory.scratch_bytes,
        "runtime_bytes": memory.runtime_bytes,
        "runtime_parts": [{"name": part.name, "bytes": part.size_bytes} for part in memory.runtime_parts],
        "runtime_is_whole": memory.runtime_is_whole,
        "other_plan": None if memory.other_plan is None else asdict(memory.other_plan),
        "unknown_tensors": memory.unknown_tensors,
        "is_lower_bound": memory.is_lower_bound,
        "memories": [
            {
                "name": use.name,
                "holds": use.holds,
                "required_bytes": use.required_bytes,
                "available_bytes": use.available_bytes,
                "utilization": _finite(use.share),
            }
            for use in memory.uses
        ],
        "issues": list(memory.issues),
        "recommendations": list(memory.recommendations),
    }


def _battery(life: BatteryLife | None) -> dict[str, object] | None:
    """`battery`: null where it was not asked for."""
    if life is None:
        return None
    return {
        "battery": life.battery,
        "duty": life.duty,
        "life_s": _scaled(life.seconds, 1.0),
        "life_low_s": life.seconds.low if life.seconds else None,
        "life_high_s": life.seconds.high if life.seconds else None,
        "busy_share": life.busy_share,
        "average_mw": _times(life.watts, 1e3),
        "sleep_mw": _times(life.sleep_watts, 1e3),
    }


def _hardware(report: Report) -> dict[str, object]:
    """`hardware` of the documented form."""
    totals = report.totals
    return {
        "total_cycles": totals.cycles,
        "latency_ms": _scaled(totals.latency_s, 1e3),
        "latency_low_ms": totals.latency_s.low * 1e3 if totals.latency_s else None,
        "latency_high_ms": totals.latency_s.high * 1e3 if totals.latency_s else None,
        "energy_uj": _scaled(totals.energy_j, 1e6),
        "energy_low_uj": totals.energy_j.low * 1e6 if totals.energy_j else None,
        "energy_high_uj": totals.energy_j.high * 1e6 if totals.energy_j else None,
        "energy_note": totals.energy_note,
        "power_mw": None if totals.power_w is None else totals.power_w * 1e3,
        "power_note": totals.power_note,
        "peak_memory_bytes": report.memory.peak_bytes,
        "accelerated_layers": totals.accelerated_layers,
        "cpu_layers": totals.cpu_layers,
        "unknown_layers": list(totals.unknown_layers),
        "withheld": totals.withheld or None,
        "latency_at_least_ms": _times(totals.known_latency_s, 1e3),
    }


def _layer(layer: Layer, graph: Graph, names: Mapping[Resource, str]) -> dict[str, object]:
    """One entry of `layers`."""
    made = [graph.tensors[tensor].shape for tensor in graph.ops[layer.index].outputs if tensor != ABSENT]
    found = {} if layer.cost is None else layer.cost.by_resource()
    return {
        "index": layer.index,
        "operator": layer.operator,
        "name": layer.name,
        "cycles": layer.cycles,
        "latency_ms": _times(layer.latency_s, 1e3),
        "energy_uj": _times(layer.energy_j, 1e6),
        "power_mw": _times(layer.power_w, 1e3),
        "macs": layer.macs if layer.work_known else None,
        "element_ops": layer.element_ops if layer.work_known else None,
        "memory_bytes": layer.parameter_bytes,
        "shared_bytes": layer.shared_bytes,
        "live_bytes": layer.live_bytes,
        "accelerated": layer.accelerated,
        "engine": layer.engine,
        "bound": layer.bound or None,
        "cycles_by_resource": {names[resource]: cycles for resource, cycles in found.items()},
        "traffic_bytes": dict(layer.traffic),
        "dtype": layer.dtype,
        "output_shapes": [None if shape is None else list(shape) for shape in made],
        "kernel_shapes": [list(shape) for shape in layer.kernel_shapes],
        "trips": layer.trips,
        "reason": layer.reason or None,
        "location": layer.location,
        "module": layer.module or None,
        "line": layer.line or None,
        "sources": list(layer.sources),
    }


def _opportunities(report: Report) -> dict[str, object]:
    return {
        "parameter_bytes": report.totals.parameter_bytes,
        "total_macs": report.totals.macs,
        "total_element_ops": report.totals.element_ops,
        "is_lower_bound": report.totals.is_lower_bound,
        "mac_definition": report.definition,
        "suggestions": [_suggestion(idea) for idea in report.suggestions],
        "layerwise_memory": [_advice(report, item) for item in report.heavy_memory],
        "layerwise_macs": [_advice(report, item) for item in report.heavy_macs],
    }


def _suggestion(idea: Suggestion) -> dict[str, object]:
    after = _prediction(idea.after)
    return {
        "kind": idea.kind,
        "text": idea.text,
        "layers": list(idea.layers),
        "before": _prediction(idea.before),
        "after": after,
        "predicted": after,
    }


def _prediction(prediction: Footprint) -> dict[str, object]:
    return {
        "latency_ms": _times(prediction.latency_s, 1e3),
        "peak_bytes": prediction.peak_bytes,
        "parameter_bytes": prediction.parameter_bytes,
        "energy_uj": _times(prediction.energy_j, 1e6),
    }


def _advice(report: Report, item: LayerAdvice) -> dict[str, object]:
    layer = report.layers[item.layer]
    return {
        "index": layer.index,
        "operator": layer.operator,
        "parameter_bytes": layer.parameter_bytes,
        "macs": layer.macs,
        "kernel": [list(shape) for shape in layer.kernel_shapes],
        "suggestion": item.suggestion,
    }


def _scaled(value: Range | None, factor: float) -> float | None:
    return None if value is None else value.value * factor


def _finite(share: float) -> float | None:
    """JSON has no infinity: what is needed of a memory of no bytes has no share."""
    return share if share != float("inf") else None


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
