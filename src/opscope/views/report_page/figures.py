"""A target's figures as rows, each with its source. Units are in their names, as everywhere in a target file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

from ...core.units import format_bytes
from ...machine.target import ANY, Figure, Target
from ..page.html_text import prose, short_name

_NAMED = {
    "kernels": "cycles per KB of output",
    "bytes": "size in bytes",
    "core_hz": "core clock in hertz",
    "stats_hz": "statistics timer in hertz",
}


@dataclass(frozen=True, slots=True)
class FigureRow:
    """One number of the target file."""

    part: str
    figure: str
    value: str
    low_high: str
    source: str


def figure_rows(target: Target) -> list[FigureRow]:
    """Every figure that the target file gives, in the order of the file."""
    return [_row(target, part, label, figure) for part, label, figure in _figures(target, target.name, "")]


def _figures(value: object, part: str, label: str) -> Iterator[tuple[str, str, Figure]]:
    """Whatever a target holds, however deep: a part of it with a name of its own gives its name to what is inside."""
    if isinstance(value, Figure):
        yield part, label, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _figures(inner, part, label if key == ANY else f"{label}, {key}")
    elif isinstance(value, tuple):
        for inner in value:
            yield from _figures(inner, part, label)
    elif is_dataclass(value):
        own = str(getattr(value, "name", "") or part)
        for field in fields(value):
            inner = getattr(value, field.name)
            within = field.name if is_dataclass(inner) and not isinstance(inner, Figure) else own
            yield from _figures(inner, within, _label(field.name))


def _label(name: str) -> str:
    return _NAMED.get(name, name.replace("_", " "))


def _row(target: Target, part: str, label: str, figure: Figure) -> FigureRow:
    ranged = figure.low is not None or figure.high is not None
    low_high = f"{_plain(figure.smallest)} – {_plain(figure.largest)}" if ranged else ""
    value = _plain(figure.value)
    if label.endswith("bytes") and figure.value >= 1024:
        value += f" ({format_bytes(figure.value)})"
    source = target.sources.get(figure.source, figure.source)
    return FigureRow(short_name(part), prose(label), value, low_high, prose(source))


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,g}"
