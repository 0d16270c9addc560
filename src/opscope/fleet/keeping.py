"""Runs into a store, and what a store holds: behind `opscope store add`, `ls`, `compact` and `gc`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from platform import node

from ..analysis.run_totals import with_known_breakdown
from ..core.errors import UsageError
from ..recording.folder_reader import read_run
from ..workflows.analysing import current_findings
from .compaction import Cleaned, collect_garbage, compact
from .query import Answer, ask
from .rows import rows_of_run
from .store import Columns, Store

_CONTENT = """
    SELECT target, backend, provenance, count(*) AS cells, count(*) FILTER (status = 'ok') AS ok,
           count(*) FILTER (status = 'failed') AS failed, count(*) FILTER (status = 'refused') AS refused,
           count(DISTINCT model) AS models, count(DISTINCT commit) AS commits, max(created) AS newest
    FROM cells GROUP BY ALL ORDER BY ALL
"""
_SUPERSEDED = "SELECT id FROM cells WHERE id NOT IN (SELECT id FROM latest)"


@dataclass(frozen=True, slots=True)
class Content:
    """What a store holds."""

    version: int
    groups: Answer  # one row per target, backend and provenance
    files: int
    size_bytes: int


def add_runs(store: str, runs: Sequence[Path], *, commit: str | None) -> int:
    """A row per run, with its ops; a run that is there already takes its own place."""
    place = Store(store, create=True)
    for folder in runs:
        place.add(*run_rows(folder, commit=commit))
    return len(runs)


def run_rows(folder: Path, *, commit: str | None) -> tuple[dict[str, object], Columns]:
    """The rows of a run that is a folder."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: is no folder; expected the run of `opscope profile … -o RUN`")
    run = with_known_breakdown(read_run(folder)).run
    return rows_of_run(run, current_findings(folder, run), folder=folder, commit=commit, host=node())


def content(store: str) -> Content:
    """By target, backend and provenance; and what it takes."""
    place = Store(store)
    names = [name for files in place.listing().files.values() for name in files]
    return Content(place.version, ask(place, _CONTENT), len(names), sum(map(place.place.size_bytes, names)))


def put_together(store: str, *, now_s: float) -> Cleaned:
    """Small files into large ones; a store of an earlier version becomes one of this."""
    return compact(Store(store), now_s=now_s)


def clean(store: str, *, now_s: float, superseded: bool) -> Cleaned:
    """Remove what nothing needs; with `superseded`, also rows that newer ones of their series stand for."""
    place = Store(store)
    before = place.listing().count
    if superseded:
        compact(place, now_s=now_s, drop={str(row[0]) for row in ask(place, _SUPERSEDED).rows})
    ids = {str(row[0]) for row in ask(place, "SELECT id FROM cells").rows}
    found = collect_garbage(place, ids, now_s=now_s)
    return Cleaned(before, found.after, found.removed)
