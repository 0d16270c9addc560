"""Listing × times → Annotated: a row per step of every job, or a row per action, whatever the runtime's log tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ....core.columns import Numbers
from ....core.errors import UsageError, printable
from ....core.provenance import Provenance
from .annotated import ActionRows, ActionTimes, Annotated, Job, JobTimes, Listing, StepRows, WorkColumns
from .logged_actions import dispatch_of, host_classes, kinds_of, listed, parts_of, units_of, unmatched
from .overlap import HAL, UnitClass, shares
from .unit_usage import usage_of
from .unit_work import HostRows, Operators, Units, work_columns

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class AnnotateOptions:
    """How to join, and what to make of it."""

    provenance: Provenance  # of the runtime's times
    clock_hz: int  # that the compiler's cycles are of
    inferences: int | None = None  # in a log of jobs; None: a job number that does not rise begins another
    charge_gaps: bool = False  # a job begins where the one before it ended, as if the host took no time
    timeline: bool = False
    operators: Operators = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)  # location → how a table shows it


def annotate_jobs(listing: Listing, times: JobTimes, options: AnnotateOptions) -> Annotated:
    """A row per step of every job of every inference."""
    jobs = tuple(job for dispatch in listing.dispatches for job in dispatch.jobs)
    usage = tuple(use for dispatch in listing.dispatches for use in usage_of(dispatch.jobs))
    _check_counts(listing, jobs, times, options.inferences)
    origin = int(times.start_ns[0]) if len(times.start_ns) else 0
    shape = (-1, len(jobs))
    start, end = (times.start_ns - origin).reshape(shape), (times.end_ns - origin).reshape(shape)
    job = np.tile(np.arange(len(jobs)), len(start))
    units = Units(jobs, usage, job, start.reshape(-1), end.reshape(-1))
    shown = np.concatenate(([0], units.end_ns[:-1])).reshape(shape) if options.charge_gaps and len(end) else start
    rows = StepRows(jobs, usage, shown, end)
    return _annotated(listing, _Seen(times.source, rows, units, times.notes), options)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a log told, joined: rows, runs of jobs, and what the host did."""

    source: str
    rows: StepRows | ActionRows
    units: Units
    notes: tuple[str, ...]
    classes: tuple[UnitClass, ...] = ()
    host: tuple[HostRows, ...] = ()
    types: tuple[str, ...] = ()


def _annotated(listing: Listing, seen: _Seen, options: AnnotateOptions) -> Annotated:
    """Shares of units, notes and, where asked for, the timeline, of a log in either form."""
    found = shares([*seen.units.classes(listing.slices), *seen.classes])
    work: WorkColumns | None = None
    too_much: tuple[str, ...] = ()
    if options.timeline:
        work, too_much = work_columns(
            seen.units,
            seen.host,
            options.operators,
            clock_hz=options.clock_hz,
            slices=listing.slices,
            shares=found,
            types=seen.types,
        )
    memories = {dispatch.name: dispatch.memories for dispatch in listing.dispatches if dispatch.memories}
    return Annotated(
        listing=listing.source,
        runtime=seen.source,
        provenance=options.provenance,
        rows=seen.rows,
        slices=max(listing.slices, 2),
        shares=found,
        work=work,
        memories=memories,
        clock_hz=options.clock_hz,
        notes=(*listing.notes, *seen.notes, *too_much),
    )


def _check_counts(listing: Listing, jobs: tuple[Job, ...], times: JobTimes, inferences: int | None) -> None:
    """Rows are jobs in order, inference after inference. What does not fit is explained."""
    rows = len(times.id)
    have = f"{times.source} has {_count(rows, 'row')}, {listing.source} has {_count(len(jobs), 'job')}"
    have += f" ({', '.join(f'{printable(d.name)}: {len(d.jobs)}' for d in listing.dispatches[:_SHOWN])})"
    if not jobs:
        raise UsageError(f"{have}; expected the dump that the runtime was run from")
    if inferences is not None:
        if rows != inferences * len(jobs):
            raise UsageError(f"{have}; expected {inferences * len(jobs)} rows of {inferences} inferences")
        return
    begins = np.flatnonzero(np.diff(times.id, prepend=np.iinfo(np.int64).max) <= 0)
    lengths = np.diff(np.append(begins, rows))
    odd = np.flatnonzero(lengths != len(jobs))
    if len(odd):
        which = f"inference {odd[0]}, from row {begins[odd[0]] + 1} on," if len(begins) > 1 else "it"
        ids = times.id[begins[odd[0]] : begins[odd[0]] + lengths[odd[0]]]
        raise UsageError(f"{have}: {which} {_difference(jobs, ids)}; expected a row per job: {_ADVICE}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_ADVICE = (
    "the dump is of another compilation, rows are missing, or ids run on over inferences (`--inferences` says how many)"
)


def _difference(jobs: tuple[Job, ...], ids: Numbers) -> str:
    """Which jobs have no row, or which rows no job."""
    told = set(ids.tolist())
    missing = [f"{number} ({printable(job.name)})" for number, job in enumerate(jobs) if number not in told]
    strange = [str(number) for number in ids.tolist() if number >= len(jobs)]
    parts = [f"has no row of job {listed(missing)}"] if missing else []
    parts += [f"has rows of job {listed(strange)}, which the dump does not have"] if strange else []
    return " and ".join(parts) or f"has {len(ids)} rows"


def annotate_actions(listing: Listing, log: ActionTimes, options: AnnotateOptions) -> Annotated:
    """A row per action that the host logged; what the runtime did for itself comes behind."""
    kinds, kind = kinds_of(listing, log, dispatch_of(listing, log), options.operators, options.places)
    origin = int(log.start_ns.min()) if len(log.start_ns) else 0
    log = replace(log, start_ns=log.start_ns - origin, end_ns=log.end_ns - origin)
    of_hal = np.array([part == HAL for part in log.parts] or [False])[log.type]
    order = np.concatenate((np.flatnonzero((log.action >= 0) & ~of_hal), np.flatnonzero(of_hal)))
    told = tuple(found.kind for found in kinds)
    rows = ActionRows(kind[order], told, log.start_ns[order], log.end_ns[order], log.ended[order])
    units, notes = units_of(listing, log, kinds, kind)
    host = tuple((part, log.type[at], log.start_ns[at], log.end_ns[at]) for part, at in parts_of(log).items())
    notes = (*log.notes, *unmatched(listing, log, kinds, kind), *notes)
    return _annotated(listing, _Seen(log.source, rows, units, notes, host_classes(log), host, log.types), options)
