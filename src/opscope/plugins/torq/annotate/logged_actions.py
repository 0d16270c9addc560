"""Rows of a host's log against the actions of a listing: what each row is, which jobs ran when, what the host did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ....core.columns import Numbers
from ....core.errors import UsageError, printable
from .annotated import ActionKind, ActionTimes, Listing, Role
from .overlap import HAL, Busy, Part, UnitClass
from .unit_usage import usage_of
from .unit_work import Operators, Units

_SHOWN = 5


def listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def dispatch_of(listing: Listing, log: ActionTimes) -> Numbers:
    """Dispatch of the listing for every name of the log; -1: not in it."""
    place = {dispatch.name: n for n, dispatch in enumerate(listing.dispatches)}
    if log.dispatches == ("",):  # a log of one dispatch, which it does not name
        if len(listing.dispatches) > 1:
            raise UsageError(
                f"{log.source}: a log of one dispatch, and {listing.source} has {len(listing.dispatches)}; expected "
                "the dump of that dispatch alone"
            )
        return np.zeros(1, np.int64)
    found = np.array([place.get(name, -1) for name in log.dispatches] or [-1], np.int64)
    acting = np.unique(log.dispatch[log.action >= 0])
    if len(acting) and (found[acting] < 0).all():
        counts = [
            f"{printable(log.dispatches[n])}: {int(((log.dispatch == n) & (log.action >= 0)).sum())} actions"
            for n in acting[:_SHOWN].tolist()
        ]
        have = [f"{printable(d.name)}: {len(d.actions)} actions" for d in listing.dispatches[:_SHOWN]]
        raise UsageError(
            f"{log.source} has {', '.join(counts)}; {listing.source} has {', '.join(have)}; expected dispatches of the "
            "same names"
        )
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """A kind of row, and the job that it starts or waits for: a position among those of all dispatches."""

    kind: ActionKind
    known: bool = True  # the dump has it, or it is no action
    role: Role = Role.OTHER
    job: int = -1
    logged_as: str = ""  # where the log says that it is of the sequencer and the dump that it is not, or the other way


def kinds_of(
    listing: Listing, log: ActionTimes, dispatches: Numbers, operators: Operators, places: Mapping[str, str]
) -> tuple[tuple[Found, ...], Numbers]:
    """The kinds of rows, and the kind of every row."""
    width = int(log.action.max(initial=0)) + 2
    key = (log.dispatch * width + log.action + 1) * max(len(log.types), 1) + log.type
    first, place = _first_of_each(key)
    actions = [{action.id: action for action in dispatch.actions} for dispatch in listing.dispatches]
    usage = [usage_of(dispatch.jobs) for dispatch in listing.dispatches]
    before = np.concatenate(([0], np.cumsum([len(dispatch.jobs) for dispatch in listing.dispatches]))).tolist()

    def shown(place: str | None) -> str | None:
        return None if place is None else places.get(place, place)

    def found(row: int) -> Found:
        number, action = int(dispatches[log.dispatch[row]]), int(log.action[row])
        name, logged = log.dispatches[log.dispatch[row]], log.types[log.type[row]]
        place = log.locations[log.location[row]] if log.location[row] >= 0 else None
        listed = actions[number].get(action) if number >= 0 else None
        if listed is None:
            kind = ActionKind(name, action if action >= 0 else None, logged, location=shown(place))
            return Found(kind, known=action < 0)
        place = listed.location or place
        kind = ActionKind(
            listing.dispatches[number].name,
            action,
            listed.operation,
            location=shown(place),
            operators=operators.get(place or "", ()),
        )
        is_job = log.parts[log.type[row]] == SEQUENCER
        logged_as = logged if is_job != (listed.role is not Role.OTHER) else ""
        if listed.job is None:
            return Found(kind, logged_as=logged_as)
        job = listing.dispatches[number].jobs[listed.job]
        kind = replace(
            kind,
            job=listed.job if job.id is None else job.id,
            invocations=job.invocations,
            usage=usage[number][listed.job],
        )
        return Found(kind, True, listed.role, before[number] + listed.job, logged_as)

    return tuple(found(row) for row in first.tolist()), place


def _first_of_each(key: Numbers) -> tuple[Numbers, Numbers]:
    """Of every key, its first row; and the place of the key of every row among them."""
    most = int(key.max(initial=0))
    if most > 4 * len(key) + 1024:
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        return first, place.reshape(-1)
    first = np.full(most + 1, -1)
    first[key[::-1]] = np.arange(len(key))[::-1]
    there = first >= 0
    return first[there], (np.cumsum(there) - 1)[key]


def unmatched(listing: Listing, log: ActionTimes, kinds: tuple[Found, ...], kind: Numbers) -> Iterator[str]:
    """What one side has and the other has not."""
    strange = np.array([not found.known for found in kinds] or [False])
    rows = int(strange[kind].sum())
    if rows:
        names = [f"{printable(f.kind.dispatch)} action {f.kind.action}" for f in kinds if not f.known]
        yield f"{rows} rows are of actions that {listing.source} does not have: {listed(names)}"
    twisted = np.array([bool(found.logged_as) for found in kinds] or [False])
    if rows := int(twisted[kind].sum()):
        names = [
            f"{printable(f.kind.dispatch)} action {f.kind.action} is {printable(f.logged_as)} there and "
            f"{printable(f.kind.operation)} here"
            for f in kinds
            if f.logged_as
        ]
        words = f"{rows} rows of {log.source} are something else in {listing.source}, which is of another compilation"
        yield f"{words}: {listed(names)}"
    seen = {(found.kind.dispatch, found.kind.action) for found in kinds}
    ran = {name for name, _ in seen}
    missing = [
        f"{printable(dispatch.name)} action {action.id}"
        for dispatch in listing.dispatches
        if dispatch.name in ran
        for action in dispatch.actions
        if (dispatch.name, action.id) not in seen
    ]
    if missing:
        yield f"{len(missing)} actions of {listing.source} are not in {log.source}: {listed(missing)}"


def units_of(
    listing: Listing, log: ActionTimes, kinds: tuple[Found, ...], kind: Numbers
) -> tuple[Units, tuple[str, ...]]:
    """Every run of a job: from the begin of the action that starts it to the end of the one that waits for it."""
    jobs = tuple(job for dispatch in listing.dispatches for job in dispatch.jobs)
    usage = tuple(use for dispatch in listing.dispatches for use in usage_of(dispatch.jobs))
    job = np.array([found.job for found in kinds] or [-1], np.int64)
    rows = [np.flatnonzero(np.array([f.role is role for f in kinds] or [False])[kind]) for role in _ENDS]
    keys = [log.invocation[at] * max(len(jobs), 1) + job[kind[at]] for at in rows]
    start, wait = (rows[0], rows[1]) if np.array_equal(keys[0], keys[1]) else _matched(rows, keys)
    good = log.end_ns[wait] >= log.start_ns[start]
    start, wait = start[good], wait[good]
    lone = len(rows[0]) - len(start)
    notes = (f"{lone} starts of jobs have no wait: their jobs are not counted as work",) if lone else ()
    return Units(jobs, usage, job[kind[start]], log.start_ns[start], log.end_ns[wait]), notes


def _matched(rows: list[Numbers], keys: list[Numbers]) -> tuple[Numbers, Numbers]:
    """Starts and waits of the same key, the first with the first; in order of start."""
    numbered = []
    for key in keys:
        order = np.argsort(key, kind="stable")
        fresh = np.flatnonzero(np.diff(key[order], prepend=-(1 << 62)))
        rank = np.empty(len(key), np.int64)
        rank[order] = np.arange(len(key)) - np.repeat(fresh, np.diff(np.append(fresh, len(key))))
        numbered.append(rank)
    width = max(int(rank.max(initial=0)) for rank in numbered) + 1
    both = [key * width + rank for key, rank in zip(keys, numbered, strict=True)]
    _, of_start, of_wait = np.intersect1d(both[0], both[1], return_indices=True)
    order = np.argsort(of_start, kind="stable")
    return rows[0][of_start[order]], rows[1][of_wait[order]]


SEQUENCER = "NSS Programs"  # part of the host that starts jobs and waits for them
_ENDS = (Role.START, Role.WAIT)
_HOST_CLASSES = {HAL: HAL, "Host Programs": "HOST", "Host Copy": "HOST_COPY"}


def parts_of(log: ActionTimes) -> dict[str, Numbers]:
    """Rows of every part of the host."""
    names = sorted(set(log.parts))
    part = np.array([names.index(name) for name in log.parts] or [0], np.int64)[log.type]
    return {name: np.flatnonzero(part == number) for number, name in enumerate(names)}


def host_classes(log: ActionTimes) -> tuple[UnitClass, ...]:
    rows, none = parts_of(log), np.zeros(0, np.int64)
    return tuple(
        UnitClass(name, Part.HOST, Busy.of(log.start_ns[rows.get(part, none)], log.end_ns[rows.get(part, none)]), name)
        for part, name in _HOST_CLASSES.items()
    )
