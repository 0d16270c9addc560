"""Table: one metric of the latest cells of a store, spread out over two axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ..core.errors import UsageError, did_you_mean, printable
from ..gate.comparison import show_value
from ..gate.metrics import METRICS
from .query import ask
from .reading import quoted
from .schema import CELLS, METRIC_COLUMNS, OK
from .store import Store

MOST_CELLS = 1_000_000
_SCALARS = [field.name for field in CELLS if not pa.types.is_nested(field.type)]
_CHOICE = ("precision", "batch", "cores", "devices", "backend", "target", "model")  # what cells of one place differ in


@dataclass(frozen=True, slots=True)
class TableEntry:
    """What a place of the table shows."""

    value: float | None  # None: not known
    note: str = ""  # the choice that is best, or why there is no value
    status: str = OK


@dataclass(frozen=True, slots=True)
class Table:
    """Labels of rows and columns, and what is where they cross."""

    metric: str
    unit: str
    corner: str  # what the rows are of
    rows: tuple[str, ...]
    columns: tuple[str, ...]  # each of one provenance, which it names
    entries: Mapping[tuple[str, str], TableEntry]
    reasons: Mapping[str, str] = field(default_factory=dict)  # of cells without figures, by where they are

    def text(self, row: str, column: str) -> str:
        entry = self.entries.get((row, column))
        if entry is None:
            return ""
        return entry.status if entry.status != OK else show_value(entry.value, self.unit)


def metric_of(name: str) -> tuple[str, str, str]:
    """SQL, unit and better direction of a metric by the name that limits use."""
    base, colon, _ = name.partition(":")
    if base not in METRICS or (not colon and base not in METRIC_COLUMNS):
        hint = did_you_mean(base, METRIC_COLUMNS)
        raise UsageError(f"--metric {printable(name)}: not known; {hint}expected one of {', '.join(METRIC_COLUMNS)}")
    sql = f"metrics[{quoted(name)}]" if colon else METRIC_COLUMNS[base]
    return sql, METRICS[base].unit, METRICS[base].better


def column_of(name: str, flag: str) -> str:
    """SQL of a column of cells, or of an option by its name."""
    if name in _SCALARS:
        return name
    if name in CELLS.names or not name:
        raise UsageError(f"--{flag} {printable(name)!r}: is no single value; expected of {', '.join(_SCALARS)}")
    return f"options[{quoted(name)}]"


def pivot(
    store: Store,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    metric: str,
    best: bool = False,
    where: str | None = None,
) -> Table:
    """The table; where several cells fall together, the best of them, or an error that says what they differ in."""
    sql, unit, better = metric_of(metric)
    if best and not better:
        raise UsageError(f"--best: neither more nor less {metric} is better; expected another metric")
    keys = [column_of(name, flag) for names, flag in ((rows, "rows"), (columns, "columns")) for name in names]
    condition = f" WHERE ({where})" if where else ""
    choice = ", ".join(_CHOICE)
    chosen = f"{', '.join(keys)}, status, reason, provenance, {sql}, {choice}, options"
    found = ask(store, f"SELECT {chosen} FROM latest{condition} ORDER BY ALL", most=MOST_CELLS)  # noqa: S608
    if not found.rows:
        raise UsageError("table: no cells; expected a store with some, and a condition that fits them")
    places: dict[tuple[str, str], list[tuple[object, ...]]] = {}
    for row in found.rows:
        label = _label(row[: len(rows)])
        head = _label(row[len(rows) : len(keys)])
        kind = str(row[len(keys) + 2] or "")
        places.setdefault((label, f"{head} ({kind})" if kind else head), []).append(row[len(keys) :])
    places = _with_failures(places)
    entries = {place: _entry(place, cells, better if best else "") for place, cells in places.items()}
    return Table(
        metric,
        unit,
        ", ".join(rows),
        tuple(dict.fromkeys(row for row, _ in places)),
        tuple(sorted(dict.fromkeys(column for _, column in places))),
        entries,
        {f"{row}, {column}": e.note for (row, column), e in entries.items() if e.status != OK},
    )


Places = dict[tuple[str, str], list[tuple[object, ...]]]


def _with_failures(places: Places) -> Places:
    """Cells without figures have no provenance: they belong to the column of their name, whatever that is."""
    named = {column.rpartition(" (")[0]: column for _, column in places if column.endswith(")")}
    merged: Places = {}
    for (row, column), cells in places.items():
        merged.setdefault((row, named.get(column, column)), []).extend(cells)
    return merged


def _label(values: Sequence[object]) -> str:
    return " ".join("—" if value is None else printable(str(value), 80) for value in values)


def _entry(place: tuple[str, str], cells: Sequence[tuple[object, ...]], better: str) -> TableEntry:
    known = [cell for cell in cells if cell[0] == OK]
    if not known:
        return TableEntry(None, str(cells[0][1] or ""), str(cells[0][0]))
    if len(known) == 1:
        return TableEntry(_float(known[0][3]))
    if not better:
        raise UsageError(
            f"table: {len(known)} cells at {printable(' / '.join(place))} differ in {', '.join(_differ(known))}; "
            "expected these among --rows or --columns, a --where, or --best"
        )
    sign = 1 if better == "less" else -1
    least = min(known, key=lambda cell: (cell[3] is None, sign * (_float(cell[3]) or 0.0)))
    return TableEntry(_float(least[3]), " ".join(f"{name}={_choice(least, name)}" for name in _differ(known)))


def _differ(cells: Sequence[tuple[object, ...]]) -> list[str]:
    options = sorted({name for cell in cells for name in (cell[-1] or {})} - set(_CHOICE))  # type: ignore[attr-defined]
    names = [name for name in (*_CHOICE, *options) if len({_choice(cell, name) for cell in cells}) > 1]
    return names or ["nothing that a store knows"]


def _choice(cell: tuple[object, ...], name: str) -> str:
    options = cell[-1] if isinstance(cell[-1], dict) else {}
    value = cell[4 + _CHOICE.index(name)] if name in _CHOICE else options.get(name)
    return "—" if value is None else str(value)


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
