"""Tables of nodes that benchmark_model prints → ops of one inference, each time counted once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...importers.reading import to_ns
from ...recording.recording import OpRecord

GRAPH, SUBGRAPH, INSIDE = "graph", "subgraph", "inside of delegates"
_MS, _US = 1e6, 1e3
_NAME = re.compile(r"\[(.*)\]:(\d+)")
_DELEGATE = re.compile(r"TfLite\w*Delegate\w*")
_OF_DELEGATE = "Delegate/"
_DIGIT_NS = 1_000  # of a row


@dataclass(frozen=True, slots=True)
class Row:
    """One node: the average is of one call, the share of all runs."""

    type: str
    average_ms: float
    share: float
    calls: float
    name: str

    @property
    def is_delegate(self) -> bool:
        return _DELEGATE.fullmatch(self.type) is not None

    @property
    def is_inside(self) -> bool:
        return self.name.startswith(_OF_DELEGATE)


@dataclass(slots=True)
class NodeTable:
    """Nodes of one graph in run order."""

    section: str
    rows: list[Row] = field(default_factory=list)
    runs: int | None = None
    average_us: float | None = None

    def parted(self) -> tuple[list[Row], list[Row]]:
        """Rows that make up the time of a run, and those inside of a delegate that has a row of its own."""
        if not any(row.is_delegate for row in self.rows):
            return self.rows, []
        return [row for row in self.rows if not row.is_inside], [row for row in self.rows if row.is_inside]

    def times_ns(self, rows: Sequence[Row]) -> list[int | None]:
        """Of one inference. The tool divides calls by runs and drops the rest: 0 is fewer than one, not none."""
        counts = any(row.calls for row in self.rows)  # the first releases did not
        return [self._time_ns(row, row.calls if counts else 1.0) for row in rows]

    def _time_ns(self, row: Row, calls: float) -> int | None:
        if calls:
            return to_ns(row.average_ms * calls, _MS)
        return None if self.average_us is None else to_ns(row.share / 100 * self.average_us, _US)

    def ops(self, rows: Sequence[Row]) -> list[OpRecord]:
        return [_op(row, time) for row, time in zip(rows, self.times_ns(rows), strict=True)]


def _op(row: Row, time_ns: int | None) -> OpRecord:
    match = _NAME.fullmatch(row.name)
    name = (match[1] or f"{row.type}:{match[2]}") if match is not None else row.name or row.type
    return OpRecord(
        name.replace("\t", ","),
        type=row.type,
        engines=("delegate",) if row.is_delegate or row.is_inside else (),
        calls=row.calls or None,
        time_ns=time_ns,
        covers=_origins(match[1]) if match is not None else (),
    )


def _origins(name: str) -> tuple[str, ...]:
    """A fused node is named after all that went into it."""
    return tuple(part.strip() for part in name.split(";") if part.strip()) if ";" in name else ()


def ops_of(tables: Sequence[NodeTable]) -> tuple[NodeTable | None, tuple[OpRecord, ...], tuple[str, ...]]:
    """The table that has the inference, its ops with delegates taken apart, and notes on what is in no op."""
    by_section = {kind: [t for t in tables if t.section == kind and t.rows] for kind in (GRAPH, SUBGRAPH, INSIDE)}
    main = next((table for kind in by_section.values() for table in kind), None)
    if main is None:
        return None, (), ()
    notes = []
    bodies = [table for table in by_section[SUBGRAPH] if table is not main]
    if bodies:
        count = sum(len(table.rows) for table in bodies)
        notes.append(f"{count} nodes of {len(bodies)} subgraphs are part of the ops that run them")
    others = [table for table in by_section[GRAPH] if table is not main]
    if others:
        notes.append(f"{len(others)} more tables of nodes, of other runs, are not read")
    inside = [table for table in by_section[INSIDE] if table is not main][:1]
    rows, parts = main.parted()
    ops, more = _taken_apart(main.ops(rows), inside[0].ops(inside[0].rows) if inside else main.ops(parts))
    return main, ops, (*notes, *more)


def _taken_apart(whole: Sequence[OpRecord], parts: Sequence[OpRecord]) -> tuple[tuple[OpRecord, ...], tuple[str, ...]]:
    """Ops inside of delegates in the place of these, and what they leave of their time; all times add up as before."""
    places = [number for number, op in enumerate(whole) if _DELEGATE.fullmatch(op.type or "") is not None]
    if not parts:
        return tuple(whole), ()
    rest = sum(whole[number].time_ns or 0 for number in places) - sum(op.time_ns or 0 for op in parts)
    if not places or rest < -_DIGIT_NS * len(parts):
        why = "they take longer than these" if places else "no row of a delegate holds them"
        return tuple(whole), (f"{len(parts)} nodes inside of delegates are left out: {why}",)
    names = ", ".join(whole[number].name for number in places[:3]) + (", …" if len(places) > 3 else "")
    left = OpRecord(f"{names}: the rest", type=whole[places[0]].type, engines=("delegate",), time_ns=max(rest, 0))
    delegates = set(places)
    after = [op for number, op in enumerate(whole) if number > places[0] and number not in delegates]
    note = f"{len(places)} delegates are shown as the {len(parts)} nodes inside of them, and the rest of their time"
    return (*whole[: places[0]], *parts, left, *after), (note,)
