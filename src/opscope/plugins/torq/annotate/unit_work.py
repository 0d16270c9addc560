"""Jobs that ran → classes of units for the metrics, and lanes of a timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....core.columns import Numbers
from .annotated import SLICE, Job, Phase, Share, Usage, WorkColumns
from .expected_shares import expected_shares
from .overlap import EMPTY, Busy, Part, UnitClass
from .unit_usage import expected_work, work_name

Operators = Mapping[str, tuple[str, ...]]  # location → ops of the model's file
HostRows = tuple[str, Numbers, Numbers, Numbers]  # part of the host, type, start, end
MOST_SPANS = 4_000_000
_MOST_LOCATIONS = 200
_LANES = {"dma_in": "NDMA In", "dma_out": "NDMA Out", "cdma": "CDMA", "css": "CSS", "task": "NSS CFG Tasks"}
_USED = {"dma_in": "DMA In Used", "dma_out": "DMA Out Used", "cdma": "CDMA Used", "css": "CSS Used"}
HOST, BREAKDOWN, MEASURED = "Host", "NPU Task Breakdown", "NPU Task Measurements"
LOCATIONS, TYPES, OVERVIEW = "Compiler Input Locations", "Operator Type Totals", "Host Profile Overview"
EXPECTED = "Compile Profile Overview"
_NONE = np.zeros(0, np.int64)
_HOST_ORDER = ("HAL", "NSS Programs", "Host Programs", "Host Copy")


@dataclass(frozen=True, slots=True)
class Units:
    """Jobs as they ran. A job was seen as a whole, so what it used counts as at work from its start to its end."""

    jobs: tuple[Job, ...]
    usage: tuple[Usage, ...]  # per job
    job: Numbers  # per run of a job, in order of start
    start_ns: Numbers
    end_ns: Numbers

    def _using(self, used: Sequence[bool]) -> Busy:
        if all(used) or not any(used):  # as most jobs have it: nothing to choose
            return Busy.of(self.start_ns, self.end_ns) if any(used) else EMPTY
        chosen = np.array(used)[self.job]
        return Busy.of(self.start_ns[chosen], self.end_ns[chosen])

    def classes(self, slices: int) -> list[UnitClass]:
        """What the metrics are about: DMA in and out, CDMA, slices, CSS; and the sequencer, busy in every job."""
        result = [
            UnitClass(unit.upper(), Part.MOVE, self._using([use.uses(unit) for use in self.usage]), group)
            for unit, group in (("dma_in", "DMA"), ("dma_out", "DMA"), ("cdma", ""))
        ]
        for number in range(max(slices, 2)):
            busy = self._using([number in use.slices for use in self.usage])
            result.append(UnitClass(f"SLICE_{number}", Part.COMPUTE, busy, "SLICE"))
        result.append(UnitClass("CSS", Part.COMPUTE, self._using([use.uses("css") for use in self.usage])))
        return [*result, UnitClass("NSS", Part.SEQUENCE, Busy.of(self.start_ns, self.end_ns))]

    def first(self, count: int) -> Units:
        return replace(self, job=self.job[:count], start_ns=self.start_ns[:count], end_ns=self.end_ns[:count])


class _Lanes:
    """Spans, lane by lane."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, str], int] = {}
        self._names: dict[str, int] = {}
        self._parts: list[tuple[Numbers, Numbers, Numbers, Numbers]] = []

    def add(
        self, group: str, lane: str, name: str | tuple[Sequence[str], Numbers], start: Numbers, end: Numbers
    ) -> None:
        """Spans of one name, or of several with the one of each span; a lane without spans is there too."""
        number = self._lanes.setdefault((group, lane), len(self._lanes))
        texts, chosen = ((name,), np.zeros(len(start), np.int64)) if isinstance(name, str) else name
        codes = np.array([self._names.setdefault(text, len(self._names)) for text in texts] or [0], np.int64)
        self._parts.append((np.full(len(start), number), codes[chosen], start, end))

    def columns(self) -> WorkColumns:
        lane, name, start, end = (
            np.concatenate([part[i] for part in self._parts]) if self._parts else np.zeros(0, np.int64)
            for i in range(4)
        )
        return WorkColumns(lane, tuple(self._lanes), name, tuple(self._names), start, end)


def work_columns(
    units: Units,
    host: Sequence[HostRows],
    operators: Operators,
    *,
    clock_hz: int,
    slices: int,
    shares: Sequence[Share],
    types: Sequence[str] = (),
) -> tuple[WorkColumns, tuple[str, ...]]:
    """Everything a timeline shows, and a note where it is too much."""
    per_run = 3 + max((2 * len(job.steps) + len(job.tasks) for job in units.jobs), default=0)
    shown = units.first(max(MOST_SPANS // per_run, 1))
    notes: tuple[str, ...] = ()
    if len(shown.job) < len(units.job):
        notes = (f"the timeline shows the first {len(shown.job)} of {len(units.job)} jobs that ran",)
    lanes = _Lanes()
    _host_lanes(lanes, shown, host, types)
    _breakdown(lanes, shown, slices)
    _expected(lanes, shown, clock_hz, slices)
    _measured(lanes, shown, slices)
    _sources(lanes, shown, operators)
    _bars(lanes, OVERVIEW, shares)
    _bars(lanes, EXPECTED, expected_shares(units.jobs, clock_hz=clock_hz, slices=slices))
    return lanes.columns(), notes


def _bars(lanes: _Lanes, group: str, shares: Sequence[Share]) -> None:
    """A bar per metric."""
    for share in shares:
        percent = "" if share.percent is None else f" ({share.percent:.2f}%)"
        label = f"{share.name}: {share.time_ns / 1000:.3f}us{percent}"
        lanes.add(group, share.name, label, np.zeros(1, np.int64), np.array([share.time_ns]))


def _host_lanes(lanes: _Lanes, units: Units, host: Sequence[HostRows], types: Sequence[str]) -> None:
    rows = {part: (kind, start, end) for part, kind, start, end in host}
    for part in (*_HOST_ORDER, *(part for part in rows if part not in _HOST_ORDER)):
        if part == "NSS Programs":
            lanes.add(HOST, part, ([job.name for job in units.jobs], units.job), units.start_ns, units.end_ns)
        elif part in rows:
            kind, start, end = rows[part]
            lanes.add(HOST, part, (types, kind), start, end)


def _slots(slices: int) -> Iterator[tuple[str, int | None, str]]:
    """Unit, its number and its lane, in the order in which they are shown."""
    yield "cdma", None, _LANES["cdma"]
    yield "dma_in", None, _LANES["dma_in"]
    yield "dma_out", None, _LANES["dma_out"]
    yield from ((SLICE, number, f"Slice {number}") for number in range(max(slices, 2)))
    yield "css", None, _LANES["css"]


def _used(usage: Usage, unit: str, number: int | None) -> bool:
    return number in usage.slices if unit == SLICE else usage.uses(unit)


def _breakdown(lanes: _Lanes, units: Units, slices: int) -> None:
    """What every unit did in each job; configuration alone on a lane of its own."""
    _add_jobs(lanes, BREAKDOWN, _LANES["task"], units, [_names(job, Phase.CONFIGURE) for job in units.jobs])
    for unit, number, lane in _slots(slices):
        names = [
            (_names(job, Phase.START, unit, number) or "still at work") if _used(usage, unit, number) else ""
            for job, usage in zip(units.jobs, units.usage, strict=True)
        ]
        _add_jobs(lanes, BREAKDOWN, lane, units, names)


def _names(job: Job, phase: Phase, unit: str | None = None, number: int | None = None) -> str:
    """What the steps of a phase do, each once."""
    steps = (s for s in job.steps if s.phase is phase and (unit is None or (s.unit, s.number) == (unit, number)))
    return " + ".join(
        dict.fromkeys(step.operation.rpartition(".")[2] if unit is None else work_name(step) for step in steps)
    )


def _measured(lanes: _Lanes, units: Units, slices: int) -> None:
    for unit, number, lane in _slots(slices):
        label = f"{lane} Used" if unit == SLICE else _USED[unit]
        _add_jobs(lanes, MEASURED, label, units, [label if _used(use, unit, number) else "" for use in units.usage])


def _add_jobs(lanes: _Lanes, group: str, lane: str, units: Units, names: Sequence[str]) -> None:
    """A span for every run of a job that has a name here."""
    chosen = np.array([*(bool(name) for name in names), False])[units.job]
    lanes.add(group, lane, (names, units.job[chosen]), units.start_ns[chosen], units.end_ns[chosen])


def _expected(lanes: _Lanes, units: Units, clock_hz: int, slices: int) -> None:
    """Estimates of the compiler, pinned where their job began."""
    order = np.argsort(units.job, kind="stable")
    edges = np.searchsorted(units.job[order], np.arange(len(units.jobs) + 1))
    named: dict[tuple[str, int | None], str] = {("task", None): f"{_LANES['task']} (Compile)"}
    named |= {(unit, number): f"{lane} (Compile)" for unit, number, lane in _slots(slices)}
    for lane in named.values():  # in this order, whatever comes first
        lanes.add(BREAKDOWN, lane, "", _NONE, _NONE)
    for number, job in enumerate(units.jobs):
        begin = units.start_ns[order[edges[number] : edges[number + 1]]]
        for work in expected_work(job):
            if (work.unit, work.number) in named and work.end > work.start:
                first, last = (round(cycles * 1e9 / clock_hz) for cycles in (work.start, work.end))
                lanes.add(BREAKDOWN, named[work.unit, work.number], work.name, begin + first, begin + last)


def _sources(lanes: _Lanes, units: Units, operators: Operators) -> None:
    """A lane per place of the model's file with its total, and a bar per type of op; longest first."""
    length = np.bincount(units.job, units.end_ns - units.start_ns, minlength=len(units.jobs)).astype(np.int64).tolist()
    totals: dict[str, int] = {}
    types: dict[str, int] = {}
    for job, total in zip(units.jobs, length, strict=True):
        if job.location:
            totals[job.location] = totals.get(job.location, 0) + total
            for kind in dict.fromkeys(name.partition("@")[0] for name in operators.get(job.location, ())):
                types[kind] = types.get(kind, 0) + total
    ranked = sorted(totals, key=lambda place: (-totals[place], place))[:_MOST_LOCATIONS]
    for place in ranked:
        label = " ".join(operators.get(place, ())) or place
        names = [label if job.location == place else "" for job in units.jobs]
        _add_jobs(lanes, LOCATIONS, f"{label}: {totals[place] / 1000:.3f}us", units, names)
    for kind in sorted(types, key=lambda name: (-types[name], name)):
        lanes.add(TYPES, kind, f"{kind}: {types[kind] / 1000:.3f}us", np.zeros(1, np.int64), np.array([types[kind]]))
