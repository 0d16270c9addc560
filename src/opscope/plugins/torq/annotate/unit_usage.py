"""Steps of jobs → which units a job used, and when the compiler expects each to work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .annotated import SLICE, Job, Phase, Step, Usage

WAITING = "WAITING"  # a unit that is done, until the sequencer waits for it
_ISSUE_CYCLES = {SLICE: 1, "css": 1}  # of the sequencer, for a start


def usage_of(jobs: Sequence[Job]) -> tuple[Usage, ...]:
    """A unit is used in a job that starts it, and in those that follow until the one that waits for it.

    The job that waits uses it too: it was at work when the job began.
    """
    active: set[tuple[str, int | None]] = set()
    result = []
    for job in jobs:
        used = set(active)
        for step in job.steps:
            unit = (step.unit, step.number)
            if step.phase is Phase.START:
                active.add(unit)
                used.add(unit)
            elif step.phase is Phase.WAIT:
                active.discard(unit)
        units = frozenset(name for name, _ in used if name != SLICE)
        result.append(Usage(units, frozenset(number or 0 for name, number in used if name == SLICE)))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Expected:
    """A stretch of work in cycles from the start of its job."""

    unit: str
    number: int | None
    name: str
    start: int
    end: int


def expected_work(job: Job) -> Iterator[Expected]:
    """What the compiler expects of a job: starts at the sequencer's clock, waits move it to the end of their unit.

    Work without cycles takes none; a task that says when it begins is believed.
    """
    clock, origin = 0, first_cycle(job)
    ends: dict[tuple[str, int | None], int] = {}
    for task in job.tasks:
        if task.start_cycles is not None and origin is not None:
            clock = max(task.start_cycles - origin, 0)
        began = clock
        for step in task.steps:
            unit = (step.unit, step.number)
            if step.phase is Phase.START:
                end = clock + (step.cycles or 0)
                yield Expected(step.unit, step.number, work_name(step), clock, end)
                ends[unit] = max(ends.get(unit, 0), end)
                clock += _ISSUE_CYCLES.get(step.unit, 0)
            elif step.phase is Phase.WAIT:
                done = ends.pop(unit, clock)
                if done < clock:
                    yield Expected(step.unit, step.number, WAITING, done, clock)
                clock = max(clock, done)
        number = "" if task.number is None else f" {task.number}"
        yield Expected("task", None, f"task{number}", began, clock)


def first_cycle(job: Job) -> int | None:
    """When a job begins, where its tasks say so."""
    return next((task.start_cycles for task in job.tasks if task.start_cycles is not None), None)


def work_name(step: Step) -> str:
    """What a unit does, in words: the program of a slice, or from where to where bytes go."""
    if step.invocation:
        return step.invocation
    if step.source and step.destination:
        return f"{step.unit.upper()} {step.source} to {step.destination}"
    words = {"dma_in": "DMA In", "dma_out": "DMA Out", "cdma": "CDMA", "css": "CSS", SLICE: "Slice"}
    return words.get(step.unit, step.unit)
