"""A Report as the cards, facts and rows that its page shows: text for every number, a reason for every gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...core.units import UNKNOWN, format_bytes, format_count, format_joules, format_percent, format_seconds
from ...estimate.report import LayerAdvice, MemoryUse, Prediction, Range, Report
from ..page.html_text import full_name, prose, short_name
from .charts import Legend
from .layers import format_watts

MOST_NOTES = 200
MOST_REASONS = 12
NO_RANGE = "no range: the target’s figures are single values"
_MOST_SHAPES = 4
_VERDICTS = {
    "OK": ("good", "✓", "Fits"),
    "WARNING": ("tight", "!", "Fits, but memory is tight"),
    "CRITICAL": ("tight", "!", "Fits with almost no memory to spare"),
    "DOES NOT FIT": ("bad", "✕", "Does not fit"),
}


@dataclass(frozen=True, slots=True)
class Gauge:
    """How full something is."""

    share: float
    text: str

    @property
    def over(self) -> bool:
        return self.share > 1

    @property
    def percent(self) -> str:
        return f"{100 * min(self.share, 1.0):.1f}"


@dataclass(frozen=True, slots=True)
class Card:
    """One key number."""

    key: str
    label: str
    value: str
    detail: str = ""
    gauge: Gauge | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of a two-column table: `note` explains the value, or why it is missing."""

    label: str
    value: str
    note: str = ""
    wide: bool = False  # a path or a hash: may break anywhere


@dataclass(frozen=True, slots=True)
class Verdict:
    css: str
    sign: str
    headline: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A number before and after."""

    before: str
    after: str
    relative: str
    css: str


@dataclass(frozen=True, slots=True)
class SuggestionRow:
    kind: str
    text: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class HeavyRow:
    index: int
    operator: str
    name: str
    title: str
    parameters: str
    macs: str
    kernel: str
    suggestion: str


def spread(value: Range | None, formatter: Callable[[float], str]) -> str:
    """The low–high range, empty where it is a single value."""
    if value is None or value.low == value.high:
        return ""
    return f"{formatter(value.low)} – {formatter(value.high)}"


def verdict(report: Report, bound: Sequence[Legend]) -> Verdict:
    css, sign, headline = _VERDICTS.get(report.memory.status, ("tight", "!", report.memory.status))
    details = [_use_text(use) for use in report.memory.uses]
    if bound:
        known = "" if report.totals.latency_s is not None else " that is known"
        details.append(f"{short_name(bound[0].resource)} binds {format_percent(bound[0].share)} of the time{known}")
    if report.totals.withheld:
        details.append(prose(report.totals.withheld))
    return Verdict(css, sign, headline, tuple(details))


def _use_text(use: MemoryUse) -> str:
    if not use.fits:
        return f"{short_name(use.name)} needs {format_bytes(use.required_bytes)} of {format_bytes(use.available_bytes)}"
    return f"{short_name(use.name)} {_share_text(use)} full"


def _share_text(use: MemoryUse) -> str:
    return format_percent(use.share if use.available_bytes else None)


def cards(report: Report) -> tuple[Card, ...]:
    totals = report.totals
    latency = None if totals.latency_s is None else totals.latency_s.value
    energy = None if totals.energy_j is None else totals.energy_j.value
    return (
        Card(
            "latency",
            "Latency",
            format_seconds(latency),
            spread(totals.latency_s, format_seconds) or prose(totals.withheld) or NO_RANGE,
        ),
        *_memory_cards(report),
        Card(
            "macs", "MACs", _large_count(totals.macs), f"{_at_least(report)}{format_count(totals.macs)} per inference"
        ),
        Card(
            "energy",
            "Energy",
            format_joules(energy),
            prose("; ".join(part for part in (spread(totals.energy_j, format_joules), totals.energy_note) if part)),
        ),
        Card(
            "layers",
            "Accelerated layers",
            f"{totals.accelerated_layers:,} of {len(report.layers):,}",
            f"{totals.cpu_layers:,} not accelerated" + _unknown_text(report),
        ),
    )


def _memory_cards(report: Report) -> Iterator[Card]:
    uses, peak, parameters = report.memory.uses, report.memory.peak_bytes, report.totals.parameter_bytes
    least = (
        f"a lower bound: {report.memory.unknown_tensors:,} tensors have no size"
        if report.memory.unknown_tensors
        else ""
    )
    if len(uses) == 1:
        together = _gauge(uses[0], "with parameters ")
        yield Card("ram", "Peak RAM", format_bytes(peak), least, together)
        yield Card("parameters", "Parameters", format_bytes(parameters), "as stored in the file")
        return
    yield Card("ram", "Peak RAM", format_bytes(peak), least, _gauge(uses[0]))
    yield Card("parameters", "Parameters", format_bytes(parameters), "", _gauge(uses[1], _unlike(uses[1], parameters)))


def _unlike(use: MemoryUse, stored_bytes: int) -> str:
    """A word before what a memory must hold, where that differs from what the file stores."""
    return "" if use.required_bytes == stored_bytes else "runs as "


def _gauge(use: MemoryUse, prefix: str = "") -> Gauge:
    required = f"{prefix}{format_bytes(use.required_bytes)}, " if prefix else ""
    text = f"{required}{_share_text(use)} of {format_bytes(use.available_bytes)} {short_name(use.name)}"
    return Gauge(use.share, text)


def _unknown_text(report: Report) -> str:
    unknown = len(report.totals.unknown_layers)
    return f", {unknown:,} of unknown cost" if unknown else ""


def _at_least(report: Report) -> str:
    """A word before a count that some layers could not be counted into."""
    return "" if all(layer.work_known for layer in report.layers) else "at least "


def _large_count(count: int) -> str:
    for step, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if count >= step:
            return f"{count / step:,.2f} {prefix}"
    return format_count(count)


def model_facts(report: Report) -> tuple[Fact, ...]:
    model = report.model
    return (
        Fact("Name", full_name(model.name), wide=True),
        Fact("Path", full_name(model.path), wide=True),
        Fact("Framework", prose(model.framework)),
        Fact("File size", format_bytes(model.file_bytes), f"{model.file_bytes:,} B"),
        Fact("Parameters", format_bytes(model.parameter_bytes), f"{model.parameter_bytes:,} B"),
        Fact("Data type", prose(model.dtype), "the type that most parameter bytes are stored in"),
        Fact("Layers", format_count(model.layer_count), "that run, after folding and fusing"),
        Fact("Operators", format_count(model.op_count), "in the file"),
        Fact("SHA-256", model.sha256 or UNKNOWN, "" if model.sha256 else "not asked for", wide=True),
    )


def memory_facts(report: Report) -> tuple[Fact, ...]:
    """The stack from the ground up."""
    memory = report.memory
    above = memory.arena_bytes / memory.bound_bytes - 1 if memory.bound_bytes else 0.0
    runtime_note = "" if memory.runtime_bytes is not None else "the target file does not say; not in the peak"
    return (
        Fact("Live bound", format_bytes(memory.bound_bytes), "the most bytes alive at once; no plan can need less"),
        Fact(
            "Planned arena",
            format_bytes(memory.arena_bytes),
            f"placed {prose(memory.planner)}, {format_percent(above)} above the bound",
        ),
        Fact("Kernel scratch", format_bytes(memory.scratch_bytes), "added by working buffers of kernels"),
        Fact("Runtime", format_bytes(memory.runtime_bytes), runtime_note),
        Fact("Peak RAM", format_bytes(memory.peak_bytes), "arena, scratch and what is known of the runtime"),
        Fact("Status", memory.status),
    )


def hardware_facts(report: Report) -> tuple[Fact, ...]:
    totals, clock = report.totals, report.target.clocks.core_hz.value
    latency = None if totals.latency_s is None else totals.latency_s.value
    energy = None if totals.energy_j is None else totals.energy_j.value
    why = prose(totals.withheld)
    energy_notes = (spread(totals.energy_j, format_joules), totals.energy_note)
    return (
        Fact("Total cycles", format_count(totals.cycles), why or f"at {clock / 1e6:,.6g} MHz"),
        Fact("Estimated latency", format_seconds(latency), why or spread(totals.latency_s, format_seconds) or NO_RANGE),
        Fact("Estimated energy", format_joules(energy), prose("; ".join(note for note in energy_notes if note))),
        Fact("Estimated power", format_watts(totals.power_w), prose(totals.power_note)),
        Fact("Peak RAM", format_bytes(report.memory.peak_bytes)),
        Fact("MACs", f"{_at_least(report)}{format_count(totals.macs)}"),
        Fact("Element operations", f"{_at_least(report)}{format_count(totals.element_ops)}", "work that is not a MAC"),
        Fact("Accelerated layers", format_count(totals.accelerated_layers)),
        Fact("CPU-only layers", format_count(totals.cpu_layers), "not on an accelerator, unknown ones included"),
        Fact("Layers of unknown cost", format_count(len(totals.unknown_layers)), _unknown_indices(report)),
        Fact("Devices × cores used", f"{report.devices} × {report.cores}"),
    )


def _unknown_indices(report: Report) -> str:
    unknown = report.totals.unknown_layers
    shown = ", ".join(str(index) for index in unknown[:12])
    return f"layers {shown}{', …' if len(unknown) > 12 else ''}" if unknown else ""


def reasons(report: Report) -> list[tuple[str, int]]:
    """Why layers are where they are, the most frequent reason first."""
    counted = Counter(prose(layer.reason) for layer in report.layers if layer.reason)
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:MOST_REASONS]


def suggestion_rows(report: Report) -> list[SuggestionRow]:
    return [
        SuggestionRow(prose(idea.kind), prose(idea.text), _changes(idea.before, idea.after))
        for idea in report.suggestions
    ]


def _changes(before: Prediction, after: Prediction) -> tuple[Change, ...]:
    return (
        _change(before.latency_s, after.latency_s, format_seconds(before.latency_s), format_seconds(after.latency_s)),
        _change(before.peak_bytes, after.peak_bytes, format_bytes(before.peak_bytes), format_bytes(after.peak_bytes)),
        _change(
            before.parameter_bytes,
            after.parameter_bytes,
            format_bytes(before.parameter_bytes),
            format_bytes(after.parameter_bytes),
        ),
        _change(before.energy_j, after.energy_j, format_joules(before.energy_j), format_joules(after.energy_j)),
    )


def _change(before: float | None, after: float | None, before_text: str, after_text: str) -> Change:
    if before is None or after is None or not before:
        return Change(before_text, after_text, "", "same")
    relative = after / before - 1
    if abs(relative) < 0.0005:
        return Change(before_text, after_text, "±0%", "same")
    return Change(
        before_text, after_text, f"{100 * relative:+.1f}%".replace("-", "−"), "better" if relative < 0 else "worse"
    )


def heavy_rows(report: Report, advice: Sequence[LayerAdvice]) -> list[HeavyRow]:
    rows = []
    for item in advice:
        layer = report.layers[item.layer]
        shapes = [str(list(shape)) for shape in layer.kernel_shapes[:_MOST_SHAPES]]
        more = " …" if len(layer.kernel_shapes) > _MOST_SHAPES else ""
        rows.append(
            HeavyRow(
                layer.index,
                short_name(layer.operator, 28),
                short_name(layer.name),
                full_name(layer.name),
                format_bytes(layer.parameter_bytes),
                format_count(layer.macs),
                short_name(" ".join(shapes) + more, 80) if shapes else UNKNOWN,
                prose(item.suggestion),
            )
        )
    return rows
