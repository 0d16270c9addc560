"""Trend: how a metric went from commit to commit, and where it changed in a way that noise does not explain.

Figures that are exact change when they differ. For noisy ones the points of a series, in order, are ranked; the place
where the sums of ranks before and after drift apart most is a change point if shuffled points seldom drift so far, and
if the gate's interval of the two medians leaves out no change. Each half is then looked at alone. Example: 100, 101,
99, 100, 102, 101 | 110, 111, 109, 112, 110, 111 changes: of 2,000 shuffles none drifts as far. The level begins where
two medians leave the least of the points' differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..core.errors import ProfilerError, UsageError
from ..core.meaning import ALLOWABLE
from ..core.provenance import Provenance
from ..gate.bootstrap import FEWEST, ratio_interval, spread_of
from ..gate.compare import compare
from ..gate.comparison import Comparison, Interval
from ..gate.figures import EXACT, Figures, Spread
from ..workflows.comparing import LABELS
from .query import ask
from .rows import spread_of_row
from .sides import figures_by_id
from .store import Store
from .table import metric_of

BY = ("commit", "sweep", "created")
_SHUFFLES = 2000
_RARE = 0.01  # share of shuffles that drift as far
_MOST_POINTS = 2000  # of a series: the newest
_NAMED_OPS = 3
MOST_EXPLAINED = 60  # changes, the largest: each takes two cells with all of their ops
_CAUSE = "cause:"


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of a series."""

    id: str
    at: str  # commit, sweep or time
    value: float
    samples: Spread | None = None  # of the latency, where it was measured several times


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change point: what was before, what is from then on, and what explains it."""

    at: str
    before: float
    after: float
    interval: Interval | None  # None: exact
    note: str = ""
    ops: tuple[tuple[str, float], ...] = ()  # name and change in ns, largest first
    cause: tuple[str, float] | None = None  # what the time goes to, and its change in ns
    base: str = ""  # ids of the cells that explain it
    new: str = ""

    @property
    def ratio(self) -> float:
        return self.after / self.before - 1 if self.before else float("inf")


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one model on one target with one choice of options, oldest first."""

    name: str
    provenance: Provenance
    unit: str
    better: str
    points: tuple[Point, ...]
    changes: tuple[ChangePoint, ...]


def trend(
    store: Store,
    *,
    metric: str,
    by: str = "commit",
    where: str | None = None,
    seed: int = 0,
    explained: int = MOST_EXPLAINED,
) -> list[Series]:
    """Every series that has at least two points, those with the largest change first; so many changes are explained."""
    sql, unit, better = metric_of(metric)
    if by not in BY:
        raise UsageError(f"--by {by}: not known; expected one of {', '.join(BY)}")
    condition = f" AND ({where})" if where else ""
    rows = ask(
        store,
        f"SELECT series, model, target, backend, options, provenance, id, {by} AS at, {sql} AS value, latency_samples "  # noqa: S608
        f"FROM cells WHERE status = 'ok' AND {sql} IS NOT NULL{condition} "
        "QUALIFY count(*) OVER (PARTITION BY series, provenance) > 1 ORDER BY series, created, id",
    ).dictionaries()
    groups: dict[tuple[object, object], list[dict[str, object]]] = {}
    for row in rows:
        groups.setdefault((row["series"], row["provenance"]), []).append(row)
    found = []
    for group in groups.values():
        points = tuple(_point(row, metric) for row in group[-_MOST_POINTS:])
        provenance = Provenance(str(group[0]["provenance"]))
        places = _exact(points) if provenance in EXACT else _noisy(points, seed)
        found.append(Series(_name(group[-1]), provenance, unit, better, points, tuple(places)))
    found.sort(key=lambda series: (-max((abs(change.ratio) for change in series.changes), default=-1.0), series.name))
    return _with_reasons(store, found, explained)


def _with_reasons(store: Store, found: Sequence[Series], most: int) -> list[Series]:
    """The largest changes with what explains them; all of their cells are asked for at once."""
    changes = sorted((change for series in found for change in series.changes), key=lambda change: -abs(change.ratio))
    ids = sorted({row_id for change in changes[:most] for row_id in (change.base, change.new)})
    if not ids:
        return list(found)
    figures = figures_by_id(store, ids)
    reasons = {(change.base, change.new): _explained(figures, change) for change in changes[:most]}
    return [
        replace(series, changes=tuple(reasons.get((change.base, change.new), change) for change in series.changes))
        for series in found
    ]


def _point(row: Mapping[str, object], metric: str) -> Point:
    spread = spread_of_row(row["latency_samples"]) if metric == "latency" else None
    return Point(str(row["id"]), str(row["at"] or "—"), float(str(row["value"])), spread)


def _name(row: Mapping[str, object]) -> str:
    options = row["options"] if isinstance(row["options"], dict) else {}
    words = [str(row["model"]), str(row["target"] or "—"), str(row["backend"])]
    return " ".join([*words, *(f"{name}={value}" for name, value in options.items())])


def _exact(points: Sequence[Point]) -> Iterator[ChangePoint]:
    for one, other in pairwise(points):
        if one.value != other.value:
            yield ChangePoint(other.at, one.value, other.value, None, base=one.id, new=other.id)


def _noisy(points: Sequence[Point], seed: int) -> Iterator[ChangePoint]:
    """By the points themselves where they are enough, else by the samples that neighbours have."""
    if len(points) < 2 * FEWEST:
        for one, other in pairwise(points):
            if one.samples and other.samples:
                interval = ratio_interval(one.samples, other.samples, seed=seed)
                if interval is not None and not interval.is_noise:
                    note = "by the samples of two cells: how far repeated cells lie apart is not known"
                    yield ChangePoint(other.at, one.value, other.value, interval, note, base=one.id, new=other.id)
        return
    values = np.array([point.value for point in points])
    edges = [0, *splits(values, seed=seed), len(points)]
    for first, middle, last in zip(edges, edges[1:], edges[2:], strict=False):
        before, after = values[first:middle], values[middle:last]
        interval = ratio_interval(spread_of(before), spread_of(after), seed=seed)
        ends = points[middle - 1].id, points[middle].id
        medians = float(np.median(before)), float(np.median(after))
        yield ChangePoint(points[middle].at, *medians, interval, base=ends[0], new=ends[1])


def splits(values: npt.NDArray[np.float64], *, seed: int = 0) -> list[int]:
    """Positions at which a new level begins."""
    if len(values) < 2 * FEWEST:
        return []
    order = values.argsort(kind="stable").argsort(kind="stable").astype(np.float64)
    for value in np.unique(values):  # equal values share a rank
        order[values == value] = order[values == value].mean()
    random = np.random.default_rng(seed)
    drift = _drift(order)
    shuffled = random.permuted(np.broadcast_to(order, (_SHUFFLES, len(order))), axis=1)
    if (_drift(shuffled).max(axis=1) >= drift.max()).mean() >= _RARE:
        return []
    place = _where(values)
    interval = ratio_interval(spread_of(values[:place]), spread_of(values[place:]), seed=seed)
    if interval is None or interval.is_noise:
        return []
    left, right = splits(values[:place], seed=seed), splits(values[place:], seed=seed)
    return [*left, place, *(place + found for found in right)]


def _where(values: npt.NDArray[np.float64]) -> int:
    """The place at which two levels, each a median, leave the least: ranks tell whether, but blur where."""

    def left_over(part: npt.NDArray[np.float64]) -> float:
        return float(np.abs(part - np.median(part)).sum())

    places = range(FEWEST, len(values) - FEWEST + 1)
    return min(places, key=lambda place: left_over(values[:place]) + left_over(values[place:]))


def _drift(ranks: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How far ranks before and after each place lie apart, in units of chance; both sides have enough points."""
    count = ranks.shape[-1]
    before = np.arange(FEWEST, count - FEWEST + 1)
    sums = np.cumsum(ranks - ranks.mean(axis=-1, keepdims=True), axis=-1)[..., before - 1]
    found: npt.NDArray[np.float64] = np.abs(sums) / np.sqrt(before * (count - before) / count)
    return found


def _explained(figures: Mapping[str, Figures], change: ChangePoint) -> ChangePoint:
    """With the ops and the cause that the comparison of the two cells names."""
    try:
        found = compare(figures[change.base], figures[change.new], allow=ALLOWABLE, labels=LABELS)
    except (ProfilerError, KeyError):  # gone since, or not to be compared
        return change
    return replace(change, ops=_ops(found), cause=_cause(found))


def _ops(found: Comparison) -> tuple[tuple[str, float], ...]:
    parts = found.explanation.parts if found.explanation else ()
    return tuple((part.name, part.ns) for part in parts[:_NAMED_OPS])


def _cause(found: Comparison) -> tuple[str, float] | None:
    moved = [(m.name.removeprefix(_CAUSE), m.change) for m in found.metrics if m.name.startswith(_CAUSE) and m.change]
    return max(moved, key=lambda cause: abs(cause[1]), default=None)
