"""A report for the terminal: the answer first, then the five parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from ...core.errors import printable
from ...core.units import UNKNOWN, format_bytes, format_count, format_joules, format_percent, format_seconds
from ...estimate.cost import CALL, labels
from ...estimate.report import Layer, Report
from ...recording.resources import Footprint, LayerAdvice, MemoryStack, OtherPlan, Range, Totals
from .columns import at_least, bar, battery_line, columns, pairs, unknown_lines, with_origin

_NAME_WIDTH = 44


class ReportText:
    """Five parts, long tables folded to the layers that matter."""

    suffix = ".txt"

    def __init__(self, *, top: int | None = 15) -> None:
        self.top = top  # layers shown, slowest first; None: all, in order

    def render(self, report: Report, out: TextIO) -> None:
        parts = (_headline, _unknown, _model, _memory, _hardware, self._layers, _opportunities, _heavy, _notes)
        out.write("\n".join("".join(line + "\n" for line in part(report)) for part in parts if any(part(report))))

    def _layers(self, report: Report) -> Iterable[str]:
        """The table of layers: the slowest, or all in order."""
        folded = self.top is not None and len(report.layers) > self.top
        shown = sorted(report.layers, key=lambda layer: -(layer.cycles or 0))[: self.top] if folded else report.layers
        title = f"PER-LAYER PERFORMANCE: the {len(shown)} slowest of {len(report.layers)} layers; --all shows every one"
        yield title if folded else "PER-LAYER PERFORMANCE"
        total = sum(layer.cycles or 0 for layer in report.layers)
        header = ("layer", "operator", "engine", "cycles", "time", "share", "", "MACs", "params", "bound", "name")
        rows = [_layer_row(layer, total) for layer in shown]
        if folded:
            rest = total - sum(layer.cycles or 0 for layer in shown)
            share = format_percent(rest / total if total else None)
            rows.append(
                ("others", "", "", format_count(rest), "", share, bar(rest / total if total else 0, 10), "", "", "", "")
            )
        yield from columns(header, rows, align="><<>>><>><<", limits={1: 24, 10: _NAME_WIDTH})
        if any(layer.shared_bytes for layer in shown):
            yield "  * shares constants with an earlier layer; totals count them once"


def _headline(report: Report) -> Iterable[str]:
    """Title, whether it fits, and the totals."""
    lanes = f"{report.devices} × {report.cores} cores" if report.cores > 1 or report.devices > 1 else ""
    used = f", {lanes}" if lanes else ""
    yield f"{printable(report.model.name)} on {report.target.title}{used} ({report.provenance})"
    yield ""
    uses = report.memory.uses
    fits = "fits" if all(use.fits for use in uses) else "DOES NOT FIT"
    least = at_least(report.memory)
    memory = ", ".join(
        f"{use.name} {least if 'activations' in use.holds else ''}{format_bytes(use.required_bytes)} of "
        f"{format_bytes(use.available_bytes)}"
        for use in uses
    )
    if least and fits == "fits":
        fits = "fits as far as is known"
    yield from pairs(
        [
            ("memory", f"{fits}: {memory}"),
            ("latency", _latency(report.totals)),
            ("bound by", _bound(report)),
        ]
    )


def _unknown(report: Report) -> Iterable[str]:
    return unknown_lines(report.unknown_ops, len(report.layers))


def _latency(totals: Totals) -> str:
    if totals.latency_s is not None:
        return _range(totals.latency_s)
    least = totals.known_latency_s
    return f"{UNKNOWN if least is None else f'at least {format_seconds(least)}'}  {totals.withheld}"


def _range(value: Range) -> str:
    if value.low == value.high:
        return format_seconds(value.value)
    return f"{format_seconds(value.value)}  (range {format_seconds(value.low)} – {format_seconds(value.high)})"


def _bound(report: Report) -> str:
    """What the time is spent on, by resource: of each layer, the parts that make its total."""
    seconds = {CALL: report.call_s}
    for layer in report.layers:
        parts = [] if layer.cost is None else layer.cost.binding()
        whole = sum(part.cycles for part in parts)
        for part in parts:
            share = part.cycles / whole if whole else 0.0
            seconds[part.resource] = seconds.get(part.resource, 0.0) + share * (layer.latency_s or 0.0)
    total = sum(seconds.values())
    names = labels(report.target)
    ranked = [each for each in sorted(seconds, key=lambda each: -seconds[each]) if seconds[each]]
    return ", ".join(f"{names[each]} {format_percent(seconds[each] / total, 0)}" for each in ranked[:4]) or UNKNOWN


def _model(report: Report) -> Iterable[str]:
    model = report.model
    layers = f"{model.layer_count} ({model.op_count} operators in the file)"
    yield "MODEL SUMMARY"
    yield from pairs(
        [
            ("path", printable(model.path)),
            ("framework", model.framework),
            ("file size", format_bytes(model.file_bytes or None)),
            ("parameters", f"{format_bytes(model.parameter_bytes)}, every constant once"),
            ("data type", model.dtype),
            ("layers", layers if model.op_count != model.layer_count else str(model.layer_count)),
        ]
    )


def _memory(report: Report) -> Iterable[str]:
    """Bytes by what they are for, against each memory, and the layer of the peak."""
    memory = report.memory
    over = memory.arena_bytes / memory.bound_bytes - 1 if memory.bound_bytes else 0.0
    runtime = UNKNOWN + "  not published for this target" if memory.runtime_bytes is None else None
    least = at_least(memory)
    yield "MEMORY ANALYSIS"
    rows = [
        ("live tensors", f"{least}{format_bytes(memory.bound_bytes)}  lower bound: most bytes alive at once"),
        (
            "planned arena",
            f"{least}{format_bytes(memory.arena_bytes)}  {memory.planner}, {format_percent(over)} above the bound",
        ),
        ("kernel scratch", format_bytes(memory.scratch_bytes)),
        ("runtime", runtime or f"{_more(memory)}{format_bytes(memory.runtime_bytes)}"),
        *((f"  {part.name}", format_bytes(part.size_bytes)) for part in memory.runtime_parts),
        ("peak", f"{least}{format_bytes(memory.peak_bytes)}  {memory.status}"),
    ]
    if memory.other_plan is not None:
        rows.append(("other planner", _other_plan(memory.other_plan, memory)))
    for use in memory.uses:
        share = f"{format_percent(use.share)} of {format_bytes(use.available_bytes)}"
        bound = least if "activations" in use.holds else ""
        rows.append((f"{use.name} in all", f"{bound}{format_bytes(use.required_bytes)}  {share} for {use.holds}"))
    if memory.peak_layer is not None and report.layers:
        layer = report.layers[memory.peak_layer]
        rows.append(("peak at", f"layer {layer.index} {layer.operator} {printable(layer.name, 60)}"))
        tensors = ", ".join(f"{printable(t.name, 40)} {format_bytes(t.size_bytes)}" for t in memory.peak_tensors[:4])
        rows.append(("peak tensors", tensors))
    yield from pairs(rows)
    for title, lines in (("issues", memory.issues), ("recommendations", memory.recommendations)):
        if lines:
            yield f"  {title}:"
            yield from (f"    • {line}" for line in lines)


def _more(memory: MemoryStack) -> str:
    return "" if memory.runtime_is_whole else "at least "


def _other_plan(other: OtherPlan, memory: MemoryStack) -> str:
    """What it would take for tensors and scratch, against what is planned."""
    planned = memory.arena_bytes + memory.scratch_bytes
    verb, size = ("saves", other.saved_bytes) if other.saved_bytes >= 0 else ("takes", -other.saved_bytes)
    more = " more" if other.saved_bytes < 0 else ""
    share = format_percent(size / planned if planned else 0.0)
    return (
        f"{other.planner}: {format_bytes(other.arena_bytes)} with scratch, {verb} {format_bytes(size)}{more} ({share})"
    )


def _hardware(report: Report) -> Iterable[str]:
    """Cycles, latency, energy and power, with their ranges."""
    totals = report.totals
    energy = totals.energy_j
    shown = UNKNOWN if energy is None else format_joules(energy.value)
    if energy is not None and energy.low != energy.high:
        shown += f"  (range {format_joules(energy.low)} – {format_joules(energy.high)})"
    power = UNKNOWN if totals.power_w is None else f"{totals.power_w:,.3g} W"
    yield "HARDWARE PERFORMANCE"
    yield from pairs(
        [
            ("cycles", format_count(totals.cycles)),
            ("latency", _latency(totals)),
            ("energy", f"{shown}  {totals.energy_note}".rstrip()),
            ("power", f"{power}  {totals.power_note}".rstrip()),
            *([] if report.battery is None else [("battery", battery_line(report.battery))]),
            ("MACs", f"{at_least(totals)}{format_count(totals.macs)}  {report.definition}"),
            ("element operations", at_least(totals) + format_count(totals.element_ops)),
            ("accelerated layers", str(totals.accelerated_layers)),
            ("CPU-only layers", str(totals.cpu_layers)),
        ]
    )


def _layer_row(layer: Layer, total: float) -> tuple[str, ...]:
    """Cells of one layer."""
    share = layer.cycles / total if layer.cycles is not None and total else None
    parameters = format_bytes(layer.parameter_bytes) if layer.parameter_bytes else ""
    return (
        str(layer.index),
        layer.operator,
        layer.engine or UNKNOWN,
        format_count(layer.cycles),
        format_seconds(layer.latency_s),
        format_percent(share),
        bar(share or 0.0, 10),
        UNKNOWN if not layer.work_known else format_count(layer.macs) if layer.macs else "",
        parameters + ("*" if layer.shared_bytes else ""),
        layer.bound or (UNKNOWN if layer.cycles is None else ""),
        with_origin(layer.name, layer.module, layer.line) + ("" if layer.trips == 1 else f" (×{layer.trips or '?'})"),
    )


def _opportunities(report: Report) -> Iterable[str]:
    if not report.suggestions:
        return
    yield "OPTIMISATION OPPORTUNITIES, best first, each estimated on this target"
    header = ("what", "latency", "peak RAM", "parameters", "energy")
    rows = [(idea.text, *_changes(idea.before, idea.after)) for idea in report.suggestions]
    yield from columns(header, rows, align="<>>>>", limits={0: 80})


def _changes(before: Footprint, after: Footprint) -> tuple[str, str, str, str]:
    return (
        _change(before.latency_s, after.latency_s, format_seconds(after.latency_s)),
        _change(before.peak_bytes, after.peak_bytes, format_bytes(after.peak_bytes)),
        _change(before.parameter_bytes, after.parameter_bytes, format_bytes(after.parameter_bytes)),
        _change(before.energy_j, after.energy_j, format_joules(after.energy_j)),
    )


def _change(before: float | None, after: float | None, shown: str) -> str:
    if before is None or after is None:
        return UNKNOWN
    if not before or abs(after - before) < 0.005 * before:
        return "same"
    return f"{shown} ({100 * (after / before - 1):+.0f}%)"


def _heavy(report: Report) -> Iterable[str]:
    for title, advice in (
        ("LAYERS WITH MOST PARAMETERS", report.heavy_memory),
        ("LAYERS WITH MOST MACS", report.heavy_macs),
    ):
        if advice:
            if title != "LAYERS WITH MOST PARAMETERS" and report.heavy_memory:
                yield ""
            yield title
            yield from _heavy_table(report, advice)


def _heavy_table(report: Report, advice: Sequence[LayerAdvice]) -> list[str]:
    """Layers with the most parameters or MACs, and what to do about each."""
    rows = []
    for item in advice:
        layer = report.layers[item.layer]
        kernel = " ".join("×".join(map(str, shape)) for shape in layer.kernel_shapes[:2])
        rows.append(
            (
                str(layer.index),
                layer.operator,
                format_bytes(layer.parameter_bytes),
                format_count(layer.macs),
                kernel,
                item.suggestion,
            )
        )
    header = ("layer", "operator", "parameters", "MACs", "kernel", "suggestion")
    return columns(header, rows, align="><>><<", limits={1: 24, 4: 28, 5: 90})


def _notes(report: Report) -> Iterable[str]:
    stranded = [layer for layer in report.layers if layer.reason and not layer.unknown]
    if not report.notes and not stranded:
        return
    yield "NOTES"
    for note in report.notes[:20]:
        yield f"  • {printable(note.text, 240)}"
    for layer in stranded[:5]:
        yield f"  • layer {layer.index} ({layer.operator}) runs on {layer.engine}: {printable(layer.reason, 200)}"
    hidden = max(0, len(report.notes) - 20) + max(0, len(stranded) - 5)
    if hidden:
        yield f"  • and {hidden} more; --format json has them all"
