"""The per-layer table of a Report: one list of columns gives the header, the rows and the data for the script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core.units import UNKNOWN, format_bytes, format_count, format_joules, format_percent, format_seconds
from ...estimate.report import Layer, Report
from ..page.html_text import full_name, script_json, short_name

MOST_HTML_ROWS = 2000  # above that the rows travel as data, and only those in sight become HTML

Key = float | str | None


@dataclass(frozen=True, slots=True)
class Cell:
    """What a reader sees, what a column sorts by, and what a pointer reveals."""

    text: str
    key: Key = None
    title: str = ""
    mark: str = ""  # a word in small print after the text


@dataclass(frozen=True, slots=True)
class Column:
    """A column: how its cell is drawn from a layer and the time of all layers (None: unknown)."""

    css: str
    label: str
    numeric: bool
    cell: Callable[[Layer, float | None], Cell]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How the parameter column adds up to the total."""

    column_bytes: int
    shared_bytes: int
    converted_bytes: int  # file minus run: constants are folded, and stored in the type that the target computes in
    total_bytes: int


@dataclass(frozen=True, slots=True)
class LayerTable:
    """Everything the template needs for the table; `rows` or `data` is empty."""

    columns: tuple[Column, ...]
    count: int
    rows: Sequence[Sequence[Cell]]
    data: str
    footer: tuple[Cell, ...]
    parameters: Reconciliation


def layer_table(report: Report) -> LayerTable:
    seconds = None if report.totals.latency_s is None else report.totals.latency_s.value
    rows = [[column.cell(layer, seconds) for column in COLUMNS] for layer in report.layers]
    as_data = len(rows) > MOST_HTML_ROWS
    return LayerTable(
        columns=COLUMNS,
        count=len(rows),
        rows=() if as_data else rows,
        data=script_json([[_as_data(cell) for cell in row] for row in rows]) if as_data else "",
        footer=_footer(report),
        parameters=reconcile(report),
    )


def reconcile(report: Report) -> Reconciliation:
    column = sum(layer.parameter_bytes for layer in report.layers)
    shared = sum(layer.shared_bytes for layer in report.layers)
    total = report.totals.parameter_bytes
    return Reconciliation(column, shared, total - (column - shared), total)


def _as_data(cell: Cell) -> list[Key]:
    """Text, key, title, mark; trailing empties are left out, and so is a key that is the text."""
    values: list[Key] = [cell.text, None if cell.key == cell.text else cell.key, cell.title, cell.mark]
    while len(values) > 1 and values[-1] in (None, ""):
        values.pop()
    return values


def _index(layer: Layer, _seconds: float | None) -> Cell:
    return Cell(str(layer.index), layer.index, full_name(layer.location))


def _operator(layer: Layer, _seconds: float | None) -> Cell:
    text = short_name(layer.operator, 28)
    return Cell(text, text, _trips(layer))


def _trips(layer: Layer) -> str:
    if layer.trips is None:
        return "runs in a loop of unknown length; counted once"
    return "" if layer.trips == 1 else f"runs {layer.trips:,} times; the numbers are for all of them"


def _name(layer: Layer, _seconds: float | None) -> Cell:
    text, title = short_name(layer.name), full_name(layer.name)
    if layer.sources:
        title = full_name(f"{title}; runs {' + '.join(source[:80] for source in layer.sources[:8])}")
    return Cell(text, text, title if title != text else "")


def _engine(layer: Layer, _seconds: float | None) -> Cell:
    text = UNKNOWN if layer.engine is None else short_name(layer.engine, 24)
    return Cell(text, text, full_name(f"computes in {layer.dtype}"))


def _accelerated(layer: Layer, _seconds: float | None) -> Cell:
    text = "Yes" if layer.accelerated else "No"
    return Cell(text, text, full_name(layer.reason), short_name(layer.reason, 64))


def _cycles(layer: Layer, _seconds: float | None) -> Cell:
    return Cell(format_count(layer.cycles), layer.cycles, _reason(layer, layer.cycles))


def _latency(layer: Layer, _seconds: float | None) -> Cell:
    return Cell(format_seconds(layer.latency_s), layer.latency_s, _reason(layer, layer.latency_s))


def _share(layer: Layer, seconds: float | None) -> Cell:
    if layer.latency_s is None or seconds is None:
        return Cell(UNKNOWN, None, "the total is unknown" if seconds is None else _reason(layer, None))
    share = layer.latency_s / seconds if seconds else 0.0
    return Cell(format_percent(share), share)


def _macs(layer: Layer, _seconds: float | None) -> Cell:
    return _work(layer, layer.macs)


def _element_ops(layer: Layer, _seconds: float | None) -> Cell:
    return _work(layer, layer.element_ops)


def _work(layer: Layer, count: int) -> Cell:
    if layer.work_known:
        return Cell(format_count(count), count)
    return Cell(UNKNOWN, None, full_name(f"at least {count:,}; {layer.reason}"))


def _parameters(layer: Layer, _seconds: float | None) -> Cell:
    title = f"{layer.parameter_bytes:,} B" if layer.parameter_bytes >= 1024 else ""
    if layer.shared_bytes:
        title = f"{layer.parameter_bytes:,} B, of which {layer.shared_bytes:,} B are counted at an earlier layer too"
    return Cell(
        format_bytes(layer.parameter_bytes), layer.parameter_bytes, title, "shared" if layer.shared_bytes else ""
    )


def _live(layer: Layer, _seconds: float | None) -> Cell:
    return Cell(format_bytes(layer.live_bytes), layer.live_bytes)


def _bound(layer: Layer, _seconds: float | None) -> Cell:
    if layer.cost is None:
        return Cell(UNKNOWN, "", _reason(layer, None))
    parts = ", ".join(f"{part.resource[:40]} {part.cycles:,.0f} cycles" for part in layer.cost.parts)
    text = short_name(layer.bound, 24) or "no work"
    return Cell(text, text, full_name(parts))


def _energy(layer: Layer, _seconds: float | None) -> Cell:
    return Cell(format_joules(layer.energy_j), layer.energy_j)


def _power(layer: Layer, _seconds: float | None) -> Cell:
    return Cell(format_watts(layer.power_w), layer.power_w)


def format_watts(watts: float | None) -> str:
    if watts is None:
        return UNKNOWN
    return f"{watts:,.4g} W" if watts >= 1 else f"{1e3 * watts:,.4g} mW"


def _reason(layer: Layer, value: float | None) -> str:
    return full_name(layer.reason) if value is None else ""


COLUMNS = (  # order is table order
    Column("index", "#", True, _index),
    Column("operator", "Operator", False, _operator),
    Column("name", "Name", False, _name),
    Column("engine", "Engine", False, _engine),
    Column("accelerated", "Accel", False, _accelerated),
    Column("cycles", "Cycles", True, _cycles),
    Column("latency", "Latency", True, _latency),
    Column("share", "Share", True, _share),
    Column("macs", "MACs", True, _macs),
    Column("element-ops", "Element ops", True, _element_ops),
    Column("parameters", "Parameters", True, _parameters),
    Column("live", "Live memory", True, _live),
    Column("bound", "Bound by", False, _bound),
    Column("energy", "Energy", True, _energy),
    Column("power", "Power", True, _power),
)


def _footer(report: Report) -> tuple[Cell, ...]:
    """Totals under their columns; the live column shows its peak, not a sum."""
    totals, parts = report.totals, reconcile(report)
    latency = None if totals.latency_s is None else totals.latency_s.value
    energy = None if totals.energy_j is None else totals.energy_j.value
    least = "" if all(layer.work_known for layer in report.layers) else "at least"
    shown = {
        "operator": Cell("Total"),
        "accelerated": Cell(f"{totals.accelerated_layers:,} of {len(report.layers):,}"),
        "cycles": Cell(format_count(totals.cycles), title=full_name(totals.withheld)),
        "latency": Cell(format_seconds(latency), title=full_name(totals.withheld)),
        "share": Cell(UNKNOWN if latency is None else format_percent(1.0)),
        "macs": Cell(format_count(totals.macs), mark=least),
        "element-ops": Cell(format_count(totals.element_ops), mark=least),
        "parameters": Cell(
            format_bytes(totals.parameter_bytes), title=f"{totals.parameter_bytes:,} B", mark=_equation(parts)
        ),
        "live": Cell(format_bytes(report.memory.bound_bytes), mark="peak"),
        "energy": Cell(format_joules(energy), title=full_name(totals.energy_note)),
        "power": Cell(format_watts(totals.power_w), title=full_name(totals.power_note)),
    }
    return tuple(shown.get(column.css, Cell("")) for column in COLUMNS)


def _equation(parts: Reconciliation) -> str:
    """Empty where the column adds up to the total as it stands."""
    if not parts.shared_bytes and not parts.converted_bytes:
        return ""
    words = f"= {format_bytes(parts.column_bytes)}"
    if parts.shared_bytes:
        words += f" − {format_bytes(parts.shared_bytes)} shared"
    if parts.converted_bytes:
        sign = "+" if parts.converted_bytes > 0 else "−"
        words += f" {sign} {format_bytes(abs(parts.converted_bytes))} converted or folded"
    return words
