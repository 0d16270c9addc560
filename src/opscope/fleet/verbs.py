"""One function per verb of sweeps, stores and baselines, for `import opscope` and the command line.

A store is a folder, or an address that fsspec knows; `commit` and `created` are what rows are marked with.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import time

from ..core.errors import UsageError
from ..core.files import as_text, replacing
from ..gate.figures import Figures
from ..options import SweepOptions, chosen
from ..workflows import comparing
from ..workflows.comparing import Source, Updated
from . import sides
from . import sweep as sweeps
from .compaction import Cleaned
from .export import export
from .keeping import Content, add_runs, clean, content, put_together
from .page import StorePage
from .query import Answer, ask
from .spec import Spec, read_spec
from .store import Store
from .sweep import Progress, Started, SweepPlan
from .table import Table, pivot
from .trend import Series
from .trend import trend as trend_of


def plan_sweep(
    spec: Spec | str | Path, store: str | Path, options: SweepOptions | None = None, **named: object
) -> SweepPlan:
    """What `sweep` would do; nothing is run or written."""
    return sweeps.plan_sweep(_spec(spec), store, chosen(SweepOptions, options, named))


def sweep(
    spec: Spec | str | Path,
    store: str | Path,
    options: SweepOptions | None = None,
    *,
    commit: str | None = None,
    created: str | None = None,
    started: Callable[[Started], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
    **named: object,
) -> Progress:
    """Profile every cell of a sweep that the store does not have, each in its own process.

    `spec` is a Spec or a TOML file; `store` is a folder or the address of an object store. `commit` is kept with every
    row, by default the commit that git has in the models' folder. `started` is called with the plan, `progress` with
    the state of the sweep.
    """
    chosen_spec = _spec(spec)
    return sweeps.sweep(
        chosen_spec,
        store,
        chosen(SweepOptions, options, named),
        created=created or datetime.now(UTC).isoformat(timespec="seconds"),
        commit=commit or commit_of(chosen_spec.folder),
        started=started,
        progress=progress,
    )


def add_to_store(runs: Sequence[str | Path], store: str | Path, *, commit: str | None = None) -> int:
    """Put runs into a store; return how many."""
    return add_runs(str(store), [Path(run) for run in runs], commit=commit or commit_of(Path()))


def store_content(store: str | Path) -> Content:
    """What a store holds, by target, backend and provenance."""
    return content(str(store))


def ask_store(store: str | Path, sql: str, *, most: int | None = None) -> Answer:
    """The answer to a SELECT over cells, ops, findings and latest, with at most `most` rows.

    Example:
        >>> answer = opscope.ask_store("fleet.store", "SELECT model, cores, latency_ns FROM latest")
        >>> [row["latency_ns"] for row in answer.dictionaries()]
    """
    return ask(Store(store), sql, most=most)


def compact_store(store: str | Path) -> Cleaned:
    """Put small files of a store together; one of an earlier version is brought up to date."""
    return put_together(str(store), now_s=time())


def clean_store(store: str | Path, *, superseded: bool = False) -> Cleaned:
    """Remove what nothing in a store needs; with `superseded`, also rows that newer ones replace."""
    return clean(str(store), now_s=time(), superseded=superseded)


def export_store(
    store: str | Path, form: str, output: str | Path, *, table: str = "cells", where: str | None = None
) -> int:
    """Write a table as csv, json, xlsx or runs of mlflow; returns how many rows."""
    return export(Store(store), form, str(output), table=table, where=where)


def table(
    store: str | Path,
    *,
    rows: Sequence[str] = ("model",),
    columns: Sequence[str] = ("target",),
    metric: str = "latency",
    best: bool = False,
    where: str | None = None,
) -> Table:
    """One metric of the latest cells of a store by two axes; `best` picks one if several cells share a place."""
    return pivot(Store(store), rows=rows, columns=columns, metric=metric, best=best, where=where)


def trend(
    store: str | Path, *, metric: str = "latency", by: str = "commit", where: str | None = None, seed: int = 0
) -> list[Series]:
    """Every series of a store with its change points; `seed` is that of shuffles and of the bootstrap."""
    return trend_of(Store(store), metric=metric, by=by, where=where, seed=seed)


def store_page(store: str | Path, output: str | Path, *, where: str = "", figures: Sequence[str | Path] = ()) -> None:
    """Write the page of a store as one file; `figures` are CSV files with more columns, such as prices."""
    path = Path(output)
    page = StorePage(where=where, given=[Path(file) for file in figures], beside=path.absolute().parent)
    with replacing(path) as out, as_text(out) as text:
        page.render(Store(store), text)


def save_baseline(run: Source, file: str | Path) -> Figures:
    """Save the numbers of a run as a new baseline: a small file for a repository, or `STORE:NAME`."""
    found = _in_store(file)
    return comparing.save_baseline(run, Path(file)) if found is None else sides.save_baseline(_folder(run), *found)


def update_baseline(run: Source, file: str | Path) -> Updated:
    """Replace a baseline, in a file or a store, by the numbers of a run; return what changes."""
    found = _in_store(file)
    if found is None:
        return comparing.update_baseline(run, Path(file))
    return sides.update_baseline(_folder(run), *found, now_s=time())


def _in_store(file: str | Path) -> tuple[str, str] | None:
    """Store and name of a baseline that is in one; None: it is a file."""
    return sides.split_side(str(file)) if ":" in str(file) else None


def _folder(run: Source) -> Path:
    if not isinstance(run, str | Path):
        raise UsageError("baseline: what is put into a store is a run with its ops; expected the folder of one")
    return Path(run)


def _spec(spec: Spec | str | Path) -> Spec:
    return read_spec(Path(spec)) if isinstance(spec, str | Path) else spec


def commit_of(folder: Path) -> str | None:
    """Of the repository that a folder is in, with a + behind it where files differ from it; None: there is none."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    return f"{commit}+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else commit


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and words of our own
            ["git", "-C", str(folder), *words],  # noqa: S607 - the git that the user has
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
