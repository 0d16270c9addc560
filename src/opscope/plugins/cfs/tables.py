"""A flat report as five tables of fixed width, laid out like CodeFusion Studio's resource report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from textwrap import wrap
from typing import TextIO

from ...estimate.report import Layer, Report
from ...recording.resources import LayerAdvice
from ...views.text.columns import at_least, unknown_lines

DTYPE_NAMES = {"f32": "float32", "f16": "float16", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32"}
_UNKNOWN = "-"  # as these tables print what they do not know
_HEADINGS = {"quantize": "Quantization Suggestion", "prune": "Pruning Suggestion"}


class ReportTables:
    """The five parts, each a table."""

    suffix = ".txt"

    def render(self, report: Report, out: TextIO) -> None:
        sections = (_model, _memory, _hardware, _layers, _opportunities, _heavy_memory, _heavy_macs)
        out.write("\n".join("".join(line + "\n" for line in section(report)) for section in sections))
        out.writelines(f"{line}\n" for line in _unknown(report))


def _unknown(report: Report) -> Iterable[str]:
    """Below the tables, which have no place for it: layers that no total holds."""
    if report.unknown_ops:
        yield from ("", *unknown_lines(report.unknown_ops, len(report.layers)))


def _model(report: Report) -> Iterable[str]:
    """The first table: name, size and type of the model."""
    model = report.model
    yield "=== MODEL SUMMARY ==="
    yield from _table(
        (20, 40),
        ("Metric", "Value"),
        [
            ("Model Name", PurePath(model.path).name),
            ("Model Path", model.path),
            ("Framework", model.framework),
            ("Model Size", f"{model.parameter_bytes / 1024:.2f} KB"),
            ("Data Type", DTYPE_NAMES.get(model.dtype, model.dtype)),
            ("Layer Count", str(model.layer_count)),
        ],
    )


def _memory(report: Report) -> Iterable[str]:
    """The second table: peak of RAM against what there is."""
    memory = report.memory
    ram = memory.uses[0]
    yield "=== MEMORY ANALYSIS ==="
    yield from _table(
        (25, 35),
        ("Memory Metric", "Value"),
        [
            ("Peak RAM Required", at_least(memory) + _kilobytes_and_megabytes(memory.peak_bytes)),
            ("RAM Status", memory.status),
            ("Available RAM", _kilobytes_and_megabytes(ram.available_bytes)),
            ("RAM Utilization", f"{100 * ram.share:.1f}%"),
        ],
    )
    for title, lines in (("Memory Issues:", memory.issues), ("Memory Recommendations:", memory.recommendations)):
        if lines:
            yield ""
            yield title
            yield from (f"    • {line}" for line in lines)


def _hardware(report: Report) -> Iterable[str]:
    """The third table: cycles, latency, power, and how many layers are accelerated."""
    totals = report.totals
    watts, latency = totals.power_w, totals.latency_s
    power = _UNKNOWN if watts is None else f"{watts * 1000:.2f} mW ({watts:.4f} W)"
    yield "=== HARDWARE PERFORMANCE ==="
    yield from _table(
        (20, 35),
        ("Metric", "Value"),
        [
            ("Total Cycles", _UNKNOWN if totals.cycles is None else f"{totals.cycles:,.0f}"),
            ("Estimated Latency", _UNKNOWN if latency is None else f"{1000 * latency.value:.2f} ms"),
            ("Estimated Power", power),
            ("Peak Memory", f"{at_least(report.memory)}{report.memory.peak_bytes / 1024:.2f} KB"),
            ("Accelerated Layers", str(totals.accelerated_layers)),
            ("CPU-Only Layers", str(totals.cpu_layers)),
        ],
    )


_LAYER_COLUMNS = (
    "Layer",
    "Operator",
    "Cycles",
    "Latency (ms)",
    "Energy (uJ)",
    "Power (mW)",
    "MACs",
    "Memory (KB)",
    "Accel",
)


def _layers(report: Report) -> Iterable[str]:
    yield "=== PER-LAYER PERFORMANCE ==="
    yield from _table(
        (8, 15, 10, 12, 11, 11, 10, 12, 6), _LAYER_COLUMNS, map(_layer_row, report.layers), align="<<>>>>>>^"
    )


def _layer_row(layer: Layer) -> tuple[str, ...]:
    return (
        f"{layer.index} ({layer.operator})",
        layer.operator,
        _number(layer.cycles, ",.0f"),
        _number(layer.latency_s, ".4f", 1e3),
        _number(layer.energy_j, ".2f", 1e6),
        _number(layer.power_w, ".2f", 1e3),
        f"{layer.macs:,}" if layer.work_known else _UNKNOWN,
        f"{layer.parameter_bytes / 1024:.2f}" if layer.parameter_bytes else "-",
        "Yes" if layer.accelerated else "No",
    )


def _number(value: float | None, form: str, factor: float = 1) -> str:
    return _UNKNOWN if value is None else f"{value * factor:{form}}"


def _opportunities(report: Report) -> Iterable[str]:
    totals = report.totals
    rows = [
        ("Total Parameter Memory", f"{totals.parameter_bytes / 1024:.2f} KB"),
        ("Total MACs", f"{at_least(totals)}{totals.macs:,}"),
        *((_HEADINGS.get(idea.kind, idea.kind), idea.text) for idea in report.suggestions),
    ]
    yield "=== OPTIMIZATION OPPORTUNITIES ==="
    yield from _table((25, 30), ("Metric", "Value"), rows)


def _heavy_memory(report: Report) -> Iterable[str]:
    return _heavy(report, "Layerwise memory optimization opportunities", report.heavy_memory)


def _heavy_macs(report: Report) -> Iterable[str]:
    return _heavy(report, "Layerwise MAC optimization opportunities", report.heavy_macs)


def _heavy(report: Report, title: str, advice: Sequence[LayerAdvice]) -> Iterable[str]:
    if not advice:
        return
    yield title
    yield from _table(
        (8, 15, 13, 10, 12, 20),
        ("Layer", "Op Type", "Param Mem (KB)", "MACs", "Kernel Info", "Suggestion"),
        [_heavy_row(report.layers[item.layer], item) for item in advice],
        align="<<>><<",
    )


def _heavy_row(layer: Layer, item: LayerAdvice) -> tuple[str, ...]:
    return (
        str(layer.index),
        layer.operator,
        f"{layer.parameter_bytes / 1024:.2f}",
        f"{layer.macs:,}",
        str([list(shape) for shape in layer.kernel_shapes]),
        item.suggestion,
    )


def _kilobytes_and_megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1024:.2f} KB ({size_bytes / 1024**2:.2f} MB)"


def _table(
    widths: Sequence[int], header: Sequence[str], rows: Iterable[Sequence[str]], *, align: str = ""
) -> Iterable[str]:
    """Pipe table; a cell too long for its column is folded at blanks, a word too long for it is cut with …"""
    aligns = align or "<" * len(widths)
    yield from _row(widths, header, aligns, from_bottom=True)
    yield "| " + " | ".join("-" * width for width in widths) + " |"
    for row in rows:
        yield from _row(widths, row, aligns)


def _row(widths: Sequence[int], cells: Sequence[str], aligns: str, *, from_bottom: bool = False) -> Iterable[str]:
    folded = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, folded))
    for lines in folded:
        empty = [""] * (height - len(lines))
        lines[:] = empty + lines if from_bottom else lines + empty
    for line in zip(*folded, strict=True):
        yield "| " + " | ".join(f"{c:{a}{w}}" for c, a, w in zip(line, aligns, widths, strict=True)) + " |"


def _fold(text: str, width: int) -> list[str]:
    clean = "".join(c if c.isprintable() else "�" for c in text[:400])
    lines = wrap(clean, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines]
