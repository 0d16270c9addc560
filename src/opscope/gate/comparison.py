"""Comparison: what differs between two runs, what explains it, and whether it passes; or several runs in columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.provenance import Provenance
from ..core.units import UNKNOWN, format_bytes, format_joules, format_ns, format_percent
from .families import Family
from .figures import BYTES, JOULES, NS, PER_SECOND, Figures, Spread
from .verdict import Verdict

NAME, LOCATION, STRUCTURE = "name", "location", "structure"  # how ops of two runs were found to be the same
FUSED, SPLIT = "fused", "split"  # several became one; one became several
ADDED, REMOVED = "added", "removed"


@dataclass(frozen=True, slots=True)
class Interval:
    """What repeated samples say about a relative change: it lies between these, with the confidence stated."""

    low: float  # 0.05: at least 5 % more
    high: float
    confidence: float
    base: Spread
    new: Spread

    @property
    def is_noise(self) -> bool:
        """No change is as good an explanation."""
        return self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure in two runs."""

    name: str
    base: float | None
    new: float | None
    unit: str
    base_provenance: Provenance
    new_provenance: Provenance
    better: str = ""  # "less" or "more"; empty: neither
    interval: Interval | None = None  # None: exact, or noise is not known
    note: str = ""  # how much the numbers can be trusted, where that is not obvious

    @property
    def change(self) -> float | None:
        return None if self.base is None or self.new is None else self.new - self.base

    @property
    def ratio(self) -> float | None:
        """Relative change: 0.05 is 5 % more. From nothing to something it is infinite."""
        if self.base is None or self.new is None:
            return None
        if self.base == 0:
            return 0.0 if self.new == 0 else float("inf") if self.new > 0 else float("-inf")
        return self.new / self.base - 1

    @property
    def provenance(self) -> str:
        if self.base_provenance == self.new_provenance:
            return self.new_provenance
        return f"{self.base_provenance} → {self.new_provenance}"


@dataclass(frozen=True, slots=True)
class Match:
    """Ops of the one run that are the same work as ops of the other; positions in `Figures.ops`."""

    base: tuple[int, ...]
    new: tuple[int, ...]
    how: str  # NAME, LOCATION, STRUCTURE, FUSED, SPLIT, ADDED, REMOVED


@dataclass(frozen=True, slots=True)
class OpDifference:
    """One op, or a group of ops that became another group; or all ops under one label."""

    name: str
    type: str
    how: str  # of a Match; empty: a rollup
    base_names: tuple[str, ...]
    new_names: tuple[str, ...]
    time: Difference
    own: Difference  # parts of the clock: their changes and what is not explained add up to the change of latency
    cause: str = ""  # what is different about the work of the op; empty: a rollup, or not told


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the change of latency."""

    name: str
    ns: float
    how: str = ""
    row: OpDifference | None = None  # whose part it is; None: of no op


@dataclass(frozen=True, slots=True)
class Explanation:
    """The change of latency taken apart; the parts and the rest add up to it."""

    change_ns: float
    parts: tuple[Part, ...]  # largest first
    rest: Part  # what no op explains


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side, and the verdict."""

    base: Figures
    new: Figures
    metrics: tuple[Difference, ...]
    ops: tuple[OpDifference, ...]  # largest change first
    rollups: Mapping[str, tuple[OpDifference, ...]]  # by COMPARED_BY without "op"
    explanations: Mapping[str, Explanation]  # by COMPARED_BY; empty: one of the latencies is unknown
    verdict: Verdict
    notes: tuple[str, ...] = ()  # what was insisted on, what noise is unknown
    families: tuple[Family, ...] = ()  # of a prediction beside a measurement

    @property
    def explanation(self) -> Explanation | None:
        """By op."""
        return self.explanations.get("op")

    @property
    def word(self) -> str:
        return self.verdict.word


@dataclass(frozen=True, slots=True)
class SideRow:
    """One figure, or one op, in every run."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    better: str = ""

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """To the first run. A time of nothing has none: it was too short for its clock."""
        first = self.values[0]
        return tuple(
            None if value is None or not first or (not value and self.unit == NS) else value / first
            for value in self.values
        )


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Several runs, one column each; a column has one provenance."""

    runs: tuple[Figures, ...]
    metrics: tuple[SideRow, ...]
    by: str  # one of COMPARED_BY
    rows: tuple[SideRow, ...]  # times, in the order of the costliest
    matched: tuple[int, ...]  # per run: ops that are also in the first
    notes: tuple[str, ...] = ()
    families: tuple[Family, ...] = ()  # of a prediction beside a measurement


def show_value(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    if unit == NS:
        return format_ns(value)
    if unit == BYTES:
        return format_bytes(value)
    if unit == JOULES:
        return format_joules(value)
    if unit == PER_SECOND:
        return f"{value:,.4g}/s" if abs(value) < 1000 else f"{value:,.0f}/s"
    return f"{value:,.0f}"


def show_change(found: Difference) -> str:
    """`+5.0% (+100 us)`"""
    if found.change is None or found.ratio is None:
        return UNKNOWN
    if found.change == 0:
        return "unchanged"
    sign = "+" if found.change > 0 else "−"
    absolute = f"{sign}{show_value(abs(found.change), found.unit)}"
    if abs(found.ratio) == float("inf"):
        return f"{absolute} (from nothing)"
    return f"{sign}{format_percent(abs(found.ratio))} ({absolute})"


def show_interval(found: Difference) -> str:
    interval = found.interval
    if interval is None:
        return found.note
    counts = f"{interval.base.count} and {interval.new.count} samples"
    return f"{interval.confidence:.0%} interval {interval.low:+.1%} to {interval.high:+.1%}, {counts}"
