"""CodeFusion Studio: `cfsai profile|compat` (2.0, 2.1) and `cfsutil ai profile|compat` (2.2).

Counting is flat (`--compat cfs` of `opscope report` is the same); the JSON has the sections of the vendor's, and names,
types and the time as its text has them.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath

from ... import __version__
from ...core.errors import TargetError
from ...estimate.machines import use_machine
from ...estimate.report import Layer, Report
from ...graph.graph import Graph
from ...machine import catalogue as targets
from ...options import ReportOptions
from ...readers import read_model
from ...recording.resources import LayerAdvice
from ...workflows.reporting import styled_report
from .compatibility import Compatibility, check_compatibility
from .tables import DTYPE_NAMES

VERSION = "2.1"  # of the command line that is spoken
_TARGET = re.compile(r"(?P<soc>[^.()]+)(\((?P<package>[^)]*)\))?(\.(?P<core>[^.]+))?(\.(?P<accelerator>[^.]+))?")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A vendor command line, in our words."""

    action: str  # profile or compat
    model: Path
    target: str  # a name of our catalogue, or a path
    text: Path | None  # where the text goes; None: stdout
    json: Path | None


def target_name(text: str) -> str:
    """`MAX32690(WLP).CM4` → `max32690-cm4`. Our own names and paths pass through."""
    known = targets.catalogue()
    if text in known or text.endswith(".toml"):
        return text
    match = _TARGET.fullmatch(text)
    wanted = "" if match is None else "-".join(part.lower() for part in (match["soc"], match["core"]) if part)
    found = [
        name for name in known if name == wanted or (match and not match["core"] and name.startswith(f"{wanted}-"))
    ]
    if len(found) > 1:  # a part without its core is its processor, not what accelerates it
        found = [name for name in found if not targets.load(name).engines[0].accelerator] or found
    if len(found) == 1:
        return found[0]
    problem = "names several targets" if found else "no such target"
    choices = ", ".join(_vendor_spelling(name) for name in (found or known))
    raise TargetError(text, "", f"{problem}; expected SOC[.CORE], one of {choices}")


def _vendor_spelling(name: str) -> str:
    soc, _, core = name.rpartition("-")
    return f"{soc.upper()}.{core.upper()}" if soc else name


def profile(invocation: Invocation) -> Report:
    return styled_report(invocation.model, invocation.target, "cfs", ReportOptions())


def compat(invocation: Invocation) -> tuple[Graph, Compatibility]:
    graph = read_model(invocation.model)
    return graph, check_compatibility(graph, use_machine(invocation.target))


def profile_document(report: Report) -> dict[str, object]:
    """The vendor's profile JSON."""
    return {
        "info": _info("profile", report.target.name),
        "model_summary": _summary(report),
        "hardware_metrics": _hardware(report),
        "memory_analysis": {
            "peak_ram_kb": report.memory.peak_bytes / 1024,
            "available_ram_kb": report.memory.available_bytes / 1024,
            "ram_utilization_percent": 100 * report.memory.uses[0].share,
            "status": report.memory.status,
            "issues": list(report.memory.issues),
            "recommendations": list(report.memory.recommendations),
        },
        "layer_performance": [_layer(layer) for layer in report.layers],
        "optimization_suggestions": [],
        "optimization_opportunities": {
            "totals": {
                "parameter_memory_kb": report.totals.parameter_bytes / 1024,
                "macs": report.totals.macs,
                "suggestions": {idea.kind: idea.text for idea in report.suggestions},
            },
            "layerwise": [_advice(report, item) for item in report.heavy_memory],
            "macs": [_advice(report, item) for item in report.heavy_macs],
        },
        "errors": [f"{op.name} ({op.type}) has no known cost: {op.reason}" for op in report.unknown_ops],
    }


def compat_document(graph: Graph, found: Compatibility, target: str) -> dict[str, object]:
    """The vendor's compatibility JSON."""
    return {
        "info": _info("compat", target),
        "model_summary": {
            "model_name": PurePath(graph.source).name,
            "model_path": graph.source,
            "framework": graph.framework,
            "layer_count": len(graph.ops),
        },
        "memory_issues": [asdict(issue) for issue in found.memory],
        "operator_issues": [
            {
                "operator": issue.operator,
                "layers": list(issue.layers),
                "suggested_alternative": issue.alternative,
                "severity": issue.severity,
                "reason": issue.reason,
            }
            for issue in found.operators
        ],
        "unsupported_types": list(found.types),
    }


def compat_text(graph: Graph, found: Compatibility, target: str) -> str:
    lines = [f"{graph.name} on {target}: {'compatible' if found.compatible else 'NOT COMPATIBLE as it is'}"]
    for issue in found.operators:
        places = ", ".join(map(str, issue.layers[:10])) + (", …" if len(issue.layers) > 10 else "")
        instead = f"; consider {issue.alternative}" if issue.alternative else "; no replacement is known"
        lines.append(f"  operator {issue.operator} (layers {places}): {issue.reason}{instead}")
    lines += [f"  data type {name}: not supported" for name in found.types]
    lines += [f"  {issue.id} ({issue.severity}): {issue.text}" for issue in found.memory]
    return "\n".join(lines) + "\n"


def _info(kind: str, hardware: str) -> dict[str, object]:
    return {
        "timestamp": _now(),
        "type": kind,
        "version": VERSION,
        "producer": f"opscope {__version__}",
        "hardware": hardware,
    }


def _now() -> str:
    """The time of the report, to the second; SOURCE_DATE_EPOCH stands in for it where files must not differ."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _summary(report: Report) -> dict[str, object]:
    model = report.model
    return {
        "model_name": PurePath(model.path).name,
        "model_path": model.path,
        "framework": model.framework,
        "model_size_kb": model.parameter_bytes / 1024,
        "data_type": DTYPE_NAMES.get(model.dtype, model.dtype),
        "layer_count": model.layer_count,
    }


def _hardware(report: Report) -> dict[str, object]:
    totals = report.totals
    return {
        "total_cycles": totals.cycles,
        "estimated_latency_ms": totals.latency_s.value * 1e3 if totals.latency_s else None,
        "estimated_power_mw": totals.power_w * 1e3 if totals.power_w is not None else None,
        "peak_memory_kb": report.memory.peak_bytes / 1024,
        "accelerated_layers": totals.accelerated_layers,
        "cpu_only_layers": totals.cpu_layers,
    }


def _layer(layer: Layer) -> dict[str, object]:
    return {
        "layer_index": layer.index,
        "operator": layer.operator,
        "cycles": layer.cycles,
        "latency_ms": layer.latency_s * 1e3 if layer.latency_s is not None else None,
        "energy_uj": layer.energy_j * 1e6 if layer.energy_j is not None else None,
        "power_mw": layer.power_w * 1e3 if layer.power_w is not None else None,
        "macs": layer.macs if layer.work_known else None,
        "memory_kb": layer.parameter_bytes / 1024 if layer.parameter_bytes else None,
        "accelerated": layer.accelerated,
    }


def _advice(report: Report, item: LayerAdvice) -> dict[str, object]:
    layer = report.layers[item.layer]
    return {
        "layer_index": layer.index,
        "op_type": layer.operator,
        "parameter_memory_kb": layer.parameter_bytes / 1024,
        "macs": layer.macs,
        "kernel_info": [list(shape) for shape in layer.kernel_shapes],
        "suggestion": item.suggestion,
    }
