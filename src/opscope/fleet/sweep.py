"""`opscope sweep` behind the api: what is planned and not in the store yet is run, here or on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time

import msgspec

from ..core.errors import UsageError
from ..core.keys import digest_of
from ..options import SweepOptions
from ..options.sweep import RUNS
from .cell import Job, Outcome, Outcomes
from .cluster import cluster, outcomes_there, started_cluster, threads_of, versions_there
from .compaction import compact, empty_inbox
from .place import Place
from .plan import Cell, planned
from .query import ask
from .runner import outcomes_here
from .schema import FAILED, OK, REFUSED
from .spec import Spec
from .store import HEAD, Store

_COMPACT_FROM = 64  # files of the inbox that are worth a compaction
_EMPTY_EACH = 5000  # cells: questions to a store stay quick while a long sweep fills it


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What a sweep will do."""

    cells: tuple[Cell, ...]
    todo: tuple[Cell, ...]  # not in the store
    failed: tuple[str, ...]  # in the store without figures, and not tried again
    seconds: float | None  # that `todo` should take one after the other; None: nothing like it was run before


@dataclass(slots=True)
class Progress:
    """Where a sweep is."""

    total: int
    jobs: int
    done: int = 0
    failed: int = 0
    refused: int = 0
    seconds: float = 0.0  # of the clock, since the first cell was given out
    last: Outcome | None = None

    @property
    def ended(self) -> int:
        return self.done + self.failed + self.refused

    @property
    def left_s(self) -> float | None:
        """What the rest should take at the pace so far."""
        return self.seconds / self.ended * (self.total - self.ended) if self.ended else None

    def count(self, outcome: Outcome, seconds: float) -> None:
        self.done += outcome.status == OK
        self.failed += outcome.status == FAILED
        self.refused += outcome.status == REFUSED
        self.seconds, self.last = seconds, outcome


def plan_for(store: Store | None, cells: Sequence[Cell], *, retry_failed: bool = False) -> SweepPlan:
    """What is left to do, with what earlier cells of the same backends took."""
    if store is None or not store.listing().count:
        return SweepPlan(tuple(cells), tuple(cells), (), None)
    known = {str(row_id): str(status) for row_id, status in ask(store, "SELECT id, status FROM cells").rows}
    wanted = [cell for cell in cells if cell.id not in known or (retry_failed and known[cell.id] != OK)]
    failed = tuple(cell.id for cell in cells if known.get(cell.id, OK) != OK)
    took = ask(store, "SELECT backend, median(seconds) FROM cells WHERE status = 'ok' GROUP BY backend").rows
    each = {str(backend): float(str(seconds)) for backend, seconds in took if seconds is not None}
    is_known = all(cell.backend in each for cell in wanted)
    seconds = sum(each[cell.backend] for cell in wanted) if is_known else None
    return SweepPlan(tuple(cells), tuple(wanted), () if retry_failed else failed, seconds)


@dataclass(frozen=True, slots=True)
class Started:
    """What a sweep is about to do, and where."""

    plan: SweepPlan
    at_once: int
    dashboard: str = ""  # address of the cluster's page


def plan_sweep(spec: Spec, store: str | Path, options: SweepOptions) -> SweepPlan:
    """What a sweep would do; nothing is written, and no cluster is asked."""
    known = Store(store) if Place(store).get(HEAD) is not None else None
    return plan_for(known, planned(spec, again="fresh" if options.fresh else ""), retry_failed=options.retry_failed)


def sweep(
    spec: Spec | Sequence[Spec],
    store: str | Path,
    options: SweepOptions,
    *,
    created: str,
    commit: str | None = None,
    started: Callable[[Started], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Run every cell that the store does not have, here or on a cluster; several specs are one sweep."""
    specs = [spec] if isinstance(spec, Spec) else spec
    place = Store(store, create=True)
    if options.keep == RUNS and not place.place.is_local:
        raise UsageError(f"--keep runs: {place.place.address} is no folder; expected --keep ops or rows")
    mark = digest_of(created, place.place.address)[:12]
    jobs = options.jobs or os.cpu_count() or 1
    job = Job(
        store=place.place.root if place.place.is_local else place.place.address,
        sweep=mark,
        created=created,
        commit=commit,
        keep=options.keep,
        time_limit_s=options.time_limit_s,
        memory_limit_bytes=options.memory_limit_bytes,
        profile=options.profile,
    )
    names = [str(name) for each in specs for name in each.axes.get("backend", ())]
    with _workers(options, job, jobs, names) as workers:
        again = mark if options.fresh else ""
        cells = [cell for each in specs for cell in planned(each, versions=workers.versions, again=again)]
        plan = plan_for(place, cells, retry_failed=options.retry_failed)
        if started is not None:
            started(Started(plan, workers.jobs, workers.dashboard))
        forget(place, [cell.id for cell in plan.todo])
        return _run(place, plan, workers, progress, tidy=options.tidy)


@dataclass(frozen=True, slots=True)
class _Workers:
    """Who runs cells."""

    give: Callable[[Sequence[Cell]], Outcomes]
    jobs: int
    versions: Callable[[str], str] | None = None  # of backends, where they run elsewhere
    dashboard: str = ""


@contextmanager
def _workers(options: SweepOptions, job: Job, jobs: int, backends: Sequence[str]) -> Iterator[_Workers]:
    """Processes of this machine, or workers of a cluster that is there or is started for this."""
    if options.scheduler is None and options.cluster is None:
        limit = options.memory_limit_bytes or part_of_memory(jobs)
        here = msgspec.structs.replace(job, memory_limit_bytes=limit)
        yield _Workers(lambda cells: outcomes_here(cells, here, jobs=jobs), jobs)
        return
    with started_cluster(options.cluster, jobs) if options.cluster else cluster(options.scheduler) as client:
        versions = versions_there(client, backends).__getitem__ if backends else None
        dashboard = client.dashboard_link
        yield _Workers(lambda cells: outcomes_there(client, cells, job), threads_of(client), versions, dashboard)


def _run(
    store: Store,
    plan: SweepPlan,
    workers: _Workers,
    progress: Callable[[Progress], None] | None,
    *,
    tidy: bool,
) -> Progress:
    state = Progress(len(plan.todo), workers.jobs)
    start = time()
    with closing(workers.give(plan.todo)) as outcomes:  # an interrupt ends the processes, wherever it comes
        for outcome in outcomes:
            state.count(outcome, time() - start)
            if progress is not None:
                progress(state)
            if state.ended % _EMPTY_EACH == 0:
                empty_inbox(store)
    if tidy and state.ended >= _COMPACT_FROM:
        compact(store, now_s=time())
    return state


def part_of_memory(jobs: int) -> int | None:
    """Of one process, where all together may have four fifths of this machine's."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return None
    return int(0.8 * whole / jobs)


def forget(store: Store, ids: Sequence[str]) -> None:
    """Rows that are about to be written again, and those that nobody wants."""
    if not store.listing().count:
        return
    known = {str(row[0]) for row in ask(store, "SELECT id FROM cells").rows}
    gone = known.intersection(ids)
    if gone:
        compact(store, now_s=time(), drop=gone)
