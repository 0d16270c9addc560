"""A comparison as JSON: schema `opscope.verdict/1`; several runs: `opscope.side-by-side/1`."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TextIO

from ...core.json_files import PRODUCER, write_json
from ...gate.comparison import Comparison, Difference, Explanation, OpDifference, Part, SideBySide
from ...gate.families import Family
from ...gate.figures import Figures
from ...gate.verdict import Check, Verdict

SCHEMA = "opscope.verdict/1"
SIDE_SCHEMA = "opscope.side-by-side/1"


class CompareJson:
    """Everything, in full; what is unknown is null."""

    suffix = ".json"

    def render(self, comparison: Comparison, out: TextIO) -> None:
        write_json(comparison_fields(comparison), out)


class SideBySideJson:
    """Every row of every run."""

    suffix = ".json"

    def render(self, found: SideBySide, out: TextIO) -> None:
        rows = {
            name: [{"name": row.name, "unit": row.unit, "values": row.values, "ratios": row.ratios} for row in rows]
            for name, rows in (("metrics", found.metrics), ("rows", found.rows))
        }
        runs = [_run(run) | {"matched_ops": count} for run, count in zip(found.runs, found.matched, strict=True)]
        families = [_family(family) for family in found.families]
        body = {"runs": runs, "by": found.by, **rows, "families": families, "notes": found.notes}
        write_json({**_head(SIDE_SCHEMA), **body}, out)


def _family(family: Family) -> dict[str, object]:
    return asdict(family) | {"ratio": family.ratio, "change_ns": family.change_ns}


def _head(schema: str) -> dict[str, object]:
    return {"schema": schema, "producer": PRODUCER}


def comparison_fields(comparison: Comparison) -> dict[str, object]:
    return {
        **_head(SCHEMA),
        "verdict": comparison.word,
        "base": _run(comparison.base),
        "new": _run(comparison.new),
        "checks": [_check(check) for check in comparison.verdict.checks],
        "metrics": [_metric(metric, comparison.verdict) for metric in comparison.metrics],
        "explanations": {by: _explanation(whole) for by, whole in comparison.explanations.items()},
        "ops": [_op(row) for row in comparison.ops],
        "rollups": {name: [_op(row) for row in rows] for name, rows in comparison.rollups.items()},
        "families": [_family(family) for family in comparison.families],
        "notes": comparison.notes,
    }


def _run(figures: Figures) -> dict[str, object]:
    return {
        "label": figures.label,
        "model": figures.model,
        "sha256": figures.sha256,
        "target": figures.target,
        "provenance": figures.provenance,
        "devices": figures.devices,
        "cores": figures.cores,
        "batch": figures.batch,
        "backend": figures.backend or None,
        "options": figures.options,
        "caveats": figures.caveats,
        "unknown": figures.unknown or None,
    }


def _check(check: Check) -> dict[str, object]:
    return {
        "limit": check.limit,
        "metric": check.metric,
        "verdict": check.word,
        "reason": check.reason,
        "warning": check.warning,
    }


def _metric(metric: Difference, verdict: Verdict) -> dict[str, object]:
    checks = [check for check in verdict.checks if check.metric == metric.name]
    return {
        "name": metric.name,
        **_change(metric),
        "unit": metric.unit,
        "limit": "; ".join(check.limit for check in checks) or None,
        "verdict": Verdict(tuple(checks)).word if checks else None,
        "provenance": metric.provenance,
        **_noise(metric),
    }


def _change(found: Difference) -> dict[str, object]:
    ratio = found.ratio
    finite = ratio if ratio is not None and isfinite(ratio) else None
    return {"base": found.base, "new": found.new, "change": found.change, "ratio": finite}


def _noise(found: Difference) -> dict[str, object]:
    """The confidence interval of a difference, or why there is none."""
    interval = found.interval
    return {
        "interval": None
        if interval is None
        else {
            "low": interval.low,
            "high": interval.high,
            "confidence": interval.confidence,
            "base_samples": interval.base.count,
            "new_samples": interval.new.count,
            "is_noise": interval.is_noise,
        },
        "note": found.note or None,
    }


def _explanation(whole: Explanation) -> dict[str, object]:
    parts = [_part(part) for part in whole.parts]
    return {"change_ns": whole.change_ns, "parts": parts, "rest_ns": whole.rest.ns}


def _part(part: Part) -> dict[str, object]:
    return {"name": part.name, "ns": part.ns, "matched": part.how or None}


def _op(row: OpDifference) -> dict[str, object]:
    return {
        "name": row.name,
        "type": row.type,
        "matched": row.how or None,
        "base_ops": row.base_names,
        "new_ops": row.new_names,
        "time_ns": _change(row.time) | _noise(row.time),
        "own_ns": _change(row.own),
        "cause": row.cause or None,
    }
