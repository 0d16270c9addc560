"""A store as one page: models by targets, trade-offs, scaling and history, with filters that become SQL."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import compute

from .. import __version__
from ..core.errors import printable
from ..gate.metrics import METRICS
from ..views.page.contract import STORE_SCHEMA, MovedOp, Producer, StoreAxis, StoreChange, StoreData, StoreMetric
from ..views.page.html import write_page
from ..views.page.packed_columns import encode
from ..workflows.viewing import PAGE
from .figure_tables import FigureTable, read_figure_tables
from .query import ask, ask_columns
from .schema import METRIC_COLUMNS
from .store import Store
from .table import column_of, metric_of
from .trend import MOST_EXPLAINED, ChangePoint, trend

MOST_ROWS = 200_000
MOST_VALUES = 2_000_000  # rows × metrics: parts of metrics are left out before cells are
_LINK_DIGITS = 16  # of a cell's id, which its page goes by
_HALF = 8
_AXES = (
    *("model", "target", "backend", "precision", "batch", "cores", "devices"),
    *("provenance", "status", "bound", "commit", "sweep", "host"),
)
_MOST_OPTIONS = 12  # that are axes: those that most cells have
_RANGES = {"latency": ("latency_low_ns", "latency_high_ns"), "energy": ("energy_low_j", "energy_high_j")}
_HISTORY = ("latency", "peak_memory", "energy")
_MOST_CHANGES = 5000
_MOST_REASON = 300

Columns = dict[str, npt.NDArray[np.generic]]


class StorePage:
    """One HTML file that needs no network and no other file.

    Args:
        where: a condition on cells, in SQL.
        given: CSV files of figures that the store does not have.
        beside: folder that the file will be in, from which it leads to pages of runs; None: a server has them.
    """

    suffix = ".html"

    def __init__(self, *, where: str = "", given: Sequence[Path] = (), beside: Path | None = None) -> None:
        self.where, self.given, self.beside = where, tuple(given), beside

    def render(self, store: Store, out: TextIO) -> None:
        condition = f" WHERE ({self.where})" if self.where else ""
        counted = ask(store, f"SELECT count(*), (SELECT count(*) FROM cells) FROM cells{condition}")  # noqa: S608
        fitting, cells = (int(str(value)) for value in counted.rows[0])
        found = _Cells(store, condition, self.given, fitting)
        changes = found.changes(store, self.where or None)
        notes = [] if fitting <= MOST_ROWS else [f"the newest {MOST_ROWS:,} of {fitting:,} cells are in this page"]
        if found.parts_left_out:
            notes.append(f"{found.parts_left_out} parts of metrics, such as memory_read:DDR, are not in this page")
        name = Path(store.place.address).name or store.place.address
        write_page(
            out,
            title=f"{name} – opscope",
            generator=f"opscope {__version__}",
            data=StoreData(
                schema=STORE_SCHEMA,
                producer=Producer("opscope", __version__),
                store=store.place.address,
                where=self.where,
                served=self.beside is None,
                cells=cells,
                rows=len(found.table),
                axes=found.axes,
                metrics=found.metrics,
                reasons=found.reasons,
                runs=self._runs(store, found),
                changes=changes,
                notes=tuple(notes),
            ),
            blocks=[("cells", encode(found.columns, steps=()))],
            served=self.beside is None,
        )

    def _runs(self, store: Store, found: _Cells) -> tuple[str, ...]:
        """Addresses of the pages of runs that are there, and their numbers among the columns of cells."""
        kept: dict[str, int] = {}
        numbers = np.full(len(found.table), -1)
        top = Path(store.place.root)
        places = found.table["run"].to_pylist() if store.place.is_local else []
        for row, place in enumerate(places):
            if place is None or not (top / place / PAGE).is_file():
                continue
            link = f"run/{found.ids[row][:_LINK_DIGITS]}/"
            if self.beside is not None:
                link = quote(os.path.relpath(top / place / PAGE, self.beside).replace(os.sep, "/"))
            numbers[row] = kept.setdefault(link, len(kept))
        found.columns["run"] = numbers
        return tuple(kept)


class _Cells:
    """Columns of cells, newest of their series first, with the words that numbers in them stand for."""

    def __init__(self, store: Store, condition: str, given: Sequence[Path], rows: int) -> None:
        options = _names(store, "options", condition)[:_MOST_OPTIONS]
        axes = [*_AXES, *(name for name in options if name not in _AXES)]
        metrics, self.parts_left_out = _metric_names(store, condition, min(rows, MOST_ROWS))
        ranges = [name for name in _RANGES if name in metrics]
        chosen = [
            "id, series, run, epoch(created) AS created, newest",
            "coalesce(reason, unknown) AS reason, findings[1].rule AS finding",
            *(f"CAST({column_of(name, 'axis')} AS VARCHAR) AS a{place}" for place, name in enumerate(axes)),
            *(f"CAST({metric_of(name)[0]} AS DOUBLE) AS m{place}" for place, name in enumerate(metrics)),
            *(
                f"CAST({column} AS DOUBLE) AS {end}{metrics.index(name)}"
                for name in ranges
                for end, column in zip("lh", _RANGES[name], strict=True)
            ),
        ]
        newest = "row_number() OVER (PARTITION BY series ORDER BY created DESC, id) = 1 AS newest"
        self.table = ask_columns(
            store,
            f"SELECT {', '.join(chosen)} FROM (SELECT *, {newest} FROM cells){condition} "  # noqa: S608
            f"ORDER BY newest DESC, created DESC, id LIMIT {MOST_ROWS}",
        )
        self.ids: list[str] = self.table["id"].to_pylist()
        self.metric_names = metrics
        self.columns: Columns = {}
        self.axes = self._axes(axes)
        self.reasons = self._words("reason", "reason", most=_MOST_REASON)
        self._words("series", "series")
        self._place()
        self.metrics = (*self._metrics(metrics, ranges), *self._given(given, axes))

    def _axes(self, names: Sequence[str]) -> tuple[StoreAxis, ...]:
        """Those that tell anything: one without a word is left out."""
        found: list[StoreAxis] = []
        wanted = [(name, column_of(name, "axis"), f"a{place}") for place, name in enumerate(names)]
        for name, sql, column in [*wanted, ("finding", "findings[1].rule", "finding")]:
            if self.table[column].null_count < len(self.table) or name in _AXES[:2]:
                words = self._words(column, f"a{len(found)}")
                found.append(StoreAxis(name, sql, words, _are_numbers(words)))
        return tuple(found)

    def _words(self, column: str, name: str, *, most: int | None = None) -> tuple[str, ...]:
        """Distinct words in order; the column of that name gets their places."""
        values = self.table[column]
        words = compute.unique(values.drop_null()).to_pylist()
        words.sort(key=_order if _are_numbers(words) else None)
        places = compute.index_in(values, value_set=pa.array(words, pa.string()))
        self.columns[name] = compute.fill_null(places, -1).to_numpy()
        return tuple(words if most is None else (printable(word, most) for word in words))

    def _place(self) -> None:
        """What tells a cell: the beginning of its id, when, and whether it is the newest of its series."""
        for half, start in (("id0", 0), ("id1", _HALF)):
            self.columns[half] = np.array([_hexadecimal(text[start : start + _HALF]) for text in self.ids], np.int64)
        created = self.table["created"].to_numpy()
        self.columns["created"] = np.nan_to_num(created).astype(np.int64)
        self.columns["newest"] = self.table["newest"].cast(pa.int8()).to_numpy()

    def _metrics(self, names: Sequence[str], ranges: Sequence[str]) -> list[StoreMetric]:
        found = []
        for place, name in enumerate(names):
            sql, unit, better = metric_of(name)
            for column in (f"m{place}", *((f"l{place}", f"h{place}") if name in ranges else ())):
                self.columns[column] = _short(self.table[column].to_numpy())
            found.append(StoreMetric(name, unit, better, sql, name in ranges))
        return found

    def _given(self, files: Sequence[Path], axes: Sequence[str]) -> list[StoreMetric]:
        found: list[StoreMetric] = []
        for figure in [figure for file in files for figure in read_figure_tables(file, axes)]:
            self.columns[f"m{len(self.metric_names) + len(found)}"] = _short(self._values(figure, axes))
            found.append(StoreMetric(figure.name, "", figure.better, "", ranged=False))
        return found

    def _values(self, figure: FigureTable, axes: Sequence[str]) -> npt.NDArray[np.float64]:
        columns = [self.table[f"a{axes.index(name)}"].to_pylist() for name in figure.axes]
        keys = zip(*([word or "" for word in column] for column in columns), strict=True)  # null: nothing in the file
        return np.array([figure.values.get(key, np.nan) for key in keys], np.float64)

    def changes(self, store: Store, where: str | None) -> tuple[StoreChange, ...]:
        """Change points of every series that has several points, as `opscope trend` finds them."""
        rows = {row_id: row for row, row_id in enumerate(self.ids)}
        found = []
        for name in _HISTORY:
            if name in self.metric_names:
                explained = MOST_EXPLAINED if name == _HISTORY[0] else 0
                for series in trend(store, metric=name, where=where, explained=explained):
                    for change in series.changes:
                        if change.new in rows:
                            found.append(_change(change, self.metric_names.index(name), rows))
        found.sort(key=lambda change: (change.metric, -abs(change.after - change.before) / (abs(change.before) or 1)))
        return tuple(found[:_MOST_CHANGES])


def _change(change: ChangePoint, metric: int, rows: Mapping[str, int]) -> StoreChange:
    interval = change.interval
    return StoreChange(
        metric,
        rows[change.new],
        change.before,
        change.after,
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        change.note,
        None if change.cause is None else MovedOp(*change.cause),
        tuple(MovedOp(printable(name, 200), ns) for name, ns in change.ops),
    )


def _names(store: Store, column: str, condition: str) -> list[str]:
    """Keys of a map that cells have, those that most have first."""
    keys = f"SELECT unnest(map_keys({column})) AS name FROM cells{condition}"  # noqa: S608
    rows = ask(store, f"SELECT name, count(*) AS n FROM ({keys}) GROUP BY name ORDER BY n DESC, name").rows  # noqa: S608
    return [str(row[0]) for row in rows]


def _metric_names(store: Store, condition: str, rows: int) -> tuple[list[str], int]:
    """Metrics that any cell has, their parts behind them as far as there is room; and how many parts are left out."""
    known = _names(store, "metrics", condition)
    whole = [name for name in METRIC_COLUMNS if name in known] or [
        _HISTORY[0]
    ]  # cells without any figure are shown too
    parts = [name for name in known if ":" in name and name.partition(":")[0] in METRICS]
    room = max(0, MOST_VALUES // max(rows, 1) - len(whole))
    order = list(METRICS)
    kept = sorted(parts[:room], key=lambda name: (order.index(name.partition(":")[0]), name))
    return [*whole, *kept], len(parts) - len(kept)


def _short(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """With seven digits, which is more than a page shows: the rest are zeros, and take no room."""
    return values.astype(np.float32).astype(np.float64)


def _hexadecimal(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0


def _are_numbers(words: Sequence[str]) -> bool:
    return bool(words) and all(word.isdecimal() and len(word) < 16 for word in words)


def _order(word: str) -> int:
    return int(word)
