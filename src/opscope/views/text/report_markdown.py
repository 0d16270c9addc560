"""A report as Markdown, for pull requests and wikis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from ...core.units import UNKNOWN, format_bytes, format_count, format_joules, format_percent, format_seconds
from ...estimate.report import Layer, Report
from ...recording.resources import Footprint, Totals
from ..markdown import safe, table
from .columns import at_least, battery_line, unknown_lines, with_origin


class ReportMarkdown:
    """Headline, memory, slowest layers and suggestions."""

    suffix = ".md"

    def __init__(self, *, top: int | None = 15) -> None:
        self.top = top  # layers shown, slowest first; None: all, in order

    def render(self, report: Report, out: TextIO) -> None:
        out.write("\n".join([*_summary(report), *_memory(report), *self._layers(report), *_suggestions(report), ""]))

    def _layers(self, report: Report) -> Iterable[str]:
        folded = self.top is not None and len(report.layers) > self.top
        shown = sorted(report.layers, key=lambda layer: -(layer.cycles or 0))[: self.top] if folded else report.layers
        yield f"## Layers{f' ({len(shown)} slowest of {len(report.layers)})' if folded else ''}"
        yield ""
        header = ("Layer", "Operator", "Name", "Engine", "Cycles", "Time", "MACs", "Parameters", "Bound")
        yield from table(header, [_row(layer) for layer in shown], right=(0, 4, 5, 6, 7))


def _summary(report: Report) -> Iterable[str]:
    """Title and totals."""
    totals, model = report.totals, report.model
    latency = totals.latency_s
    least = totals.known_latency_s
    shown = UNKNOWN if latency is None else format_seconds(latency.value)
    if latency is None and least is not None:
        shown = f"at least {format_seconds(least)}"
    if latency is not None and latency.low != latency.high:
        shown += f" ({format_seconds(latency.low)} – {format_seconds(latency.high)})"
    yield f"# {safe(model.name)} on {safe(report.target.title)}"
    yield ""
    yield f"All figures are **{report.provenance}**."
    yield ""
    rows = [
        (
            "Model",
            f"{model.framework}, {model.layer_count} layers, {format_bytes(model.parameter_bytes)} of parameters",
        ),
        ("Latency", shown + (f" – {totals.withheld}" if totals.withheld else "")),
        ("Energy", _energy(totals)),
        *([] if report.battery is None else [("Battery", battery_line(report.battery))]),
        ("MACs", f"{at_least(totals)}{format_count(totals.macs)} ({report.definition})"),
        ("Layers", f"{totals.accelerated_layers} accelerated, {totals.cpu_layers} on the CPU"),
    ]
    yield from table(("Metric", "Value"), rows)
    unknown = unknown_lines(report.unknown_ops, len(report.layers))
    if unknown:
        yield from (safe(unknown[0]), "", *(f"- {safe(line.strip())}" for line in unknown[1:]), "")


def _memory(report: Report) -> Iterable[str]:
    """What each memory has to hold, against what it has, and where the peak is."""
    memory = report.memory
    yield "## Memory"
    yield ""
    rows = [
        (
            use.name,
            use.holds,
            format_bytes(use.required_bytes),
            format_bytes(use.available_bytes),
            format_percent(use.share),
            "yes" if use.fits else "**no**",
        )
        for use in memory.uses
    ]
    yield from table(("Memory", "Holds", "Needed", "Available", "Share", "Fits"), rows, right=(2, 3, 4))
    yield (
        f"Peak RAM {at_least(memory)}{format_bytes(memory.peak_bytes)}: "
        f"live tensors {format_bytes(memory.bound_bytes)}, planned arena {format_bytes(memory.arena_bytes)} "
        f"({memory.planner}), scratch {format_bytes(memory.scratch_bytes)}"
        + (f", runtime {format_bytes(memory.runtime_bytes)}." if memory.runtime_parts else ".")
    )
    yield ""
    lines = [*memory.issues, *memory.recommendations]
    yield from (f"- {safe(line)}" for line in lines)
    if lines:
        yield ""


def _row(layer: Layer) -> tuple[str, ...]:
    return (
        str(layer.index),
        layer.operator,
        with_origin(layer.name, layer.module, layer.line),
        layer.engine or UNKNOWN,
        format_count(layer.cycles),
        format_seconds(layer.latency_s),
        format_count(layer.macs if layer.work_known else None),
        format_bytes(layer.parameter_bytes),
        layer.bound or UNKNOWN,
    )


def _suggestions(report: Report) -> Iterable[str]:
    if not report.suggestions:
        return
    yield "## Suggestions"
    yield ""
    rows = [(idea.text, *_after(idea.before, idea.after)) for idea in report.suggestions]
    yield from table(("Change", "Latency", "Peak RAM", "Parameters", "Energy"), rows, right=(1, 2, 3, 4))


def _after(before: Footprint, after: Footprint) -> tuple[str, ...]:
    return (
        f"{format_seconds(before.latency_s)} → {format_seconds(after.latency_s)}",
        f"{format_bytes(before.peak_bytes)} → {format_bytes(after.peak_bytes)}",
        f"{format_bytes(before.parameter_bytes)} → {format_bytes(after.parameter_bytes)}",
        f"{format_joules(before.energy_j)} → {format_joules(after.energy_j)}",
    )


def _energy(totals: Totals) -> str:
    if totals.energy_j is None:
        return UNKNOWN
    return format_joules(totals.energy_j.value) + (f" ({totals.energy_note})" if totals.energy_note else "")
