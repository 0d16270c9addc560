"""Start sequence: what a core's sequencer does for a program, in order. Jobs consist of tasks, tasks of steps.

A step starts one unit (an engine's unit, a route) or waits for what that unit was started with last. A task is a run
of steps in the fixed order of units (`Unit`), each unit at most once started and once awaited. A job is what the host
starts and waits for as one: it begins where the first command of an op computes and ends where the next op's does, so
that its time is that op's; what is read ahead for the next op falls into it.

Example: an op reads a tile, computes, and writes it, twice, and the second read goes ahead of the first write:

    commands    read0   start→compute0   read1   start→compute1   write0 …
    task 0      start read  wait read  start compute
    task 1      start read  wait read  wait compute      new, because read comes before compute in the order of units
    task 2      start compute  start write …             new, because a start comes before the wait for its unit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from ..core.errors import ProgramError, printable
from ..core.meaning import Carries, Does
from .program import NO_OP, NO_ROUTE, Program

Times = npt.NDArray[np.float64]


class Unit(Enum):
    """What a sequencer starts, in the order in which a task has it."""

    READ = "read"
    COMPUTE = "compute"  # a group of an engine that works in local memory
    WRITE = "write"
    APART = "apart"  # a group of an engine that works in a memory of its own
    BRING = "bring"
    FETCH = "fetch"


_ORDER = {unit: 2 * place for place, unit in enumerate(Unit)}  # a start, and behind it the wait


@dataclass(frozen=True, slots=True)
class SequencerStep:
    """A start of a unit, or a wait for it."""

    unit: Unit
    number: int  # of several units alike: 0, 1, …
    command: int  # of the program: what is started, or waited for
    op: int  # of the program: whom it is for; of what belongs to none, the op before it
    waits: bool
    issued_by: int  # the sequencer's command that it belongs to

    @property
    def order(self) -> int:
        return _ORDER[self.unit] + self.waits


@dataclass(slots=True)
class SequencerTask:
    """Steps in the order of units; tasks are numbered through the whole program."""

    number: int
    steps: list[SequencerStep] = field(default_factory=list)


@dataclass(slots=True)
class SequencerJob:
    """Tasks that the host starts together, and the sequencer's commands they are: from `first` to `last`."""

    number: int
    first: int
    last: int
    ops: list[int] = field(default_factory=list)  # that compute in it, in order of appearance
    tasks: list[SequencerTask] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StartSequence:
    """All jobs of a program, and when a job begins and ends given the times of its commands."""

    jobs: Sequence[SequencerJob]

    def bounds(self, ready: Times, start: Times, issued: Times, done: Times) -> list[tuple[float, float]]:
        """Begin and end of every job, given the times of commands; the last ends when everything is done."""
        if not self.jobs:
            return []
        begins = [float(ready[self.jobs[0].first]), *(float(start[job.first]) for job in self.jobs[1:])]
        return list(zip(begins, [*begins[1:], float(max(done.max(), issued.max()))], strict=True))

    def starts(self) -> Iterator[tuple[SequencerTask, SequencerStep]]:
        """Every start with its task, in order."""
        for job in self.jobs:
            for task in job.tasks:
                for step in task.steps:
                    if not step.waits:
                        yield task, step


def sequence_of(program: Program) -> StartSequence:
    """The jobs of a program that was compiled for a target with a sequencer, on its only core."""
    return StartSequence(_SequenceBuilder(program).run())


class _SequenceBuilder:
    """One pass over the sequencer's commands. A unit does one thing at a time, so a wait is for its last start."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.issuer = next((n for n, group in enumerate(program.groups) if not group.engine), -1)
        self.table = program.commands
        issued = self.table["group"] == self.issuer
        self.starts = issued & (self.table["does"] == Does.LAUNCH)
        if program.devices * program.cores != 1 or (not issued.all() and not self.starts.any()):
            raise ProgramError(
                printable(program.name), "has no sequencer; expected a program for one core of a target with one"
            )
        known = {unit.value for unit in Unit}
        for route in program.routes:
            if route.carries not in known:
                what = f"route {printable(route.name)!r} carries {printable(route.carries)!r}"
                raise ProgramError(printable(program.name), f"{what}; expected one of {', '.join(sorted(known))}")
        self.started = self._find_started()
        self.brings = [n for n, route in enumerate(program.routes) if route.carries is Carries.BRING]
        self.apart = self._engines_apart()
        self.first_group = {g.engine: n for n, g in reversed(list(enumerate(program.groups)))}
        self.outstanding: dict[tuple[Unit, int], int] = {}
        self.jobs: list[SequencerJob] = []
        self.tasks = 0
        self.highest = NO_OP
        self.listed: set[tuple[int, int]] = set()  # jobs and their ops

    def _find_started(self) -> Mapping[int, int]:
        """Start command of the sequencer → the command that it starts: the one that depends on it."""
        groups = self.table["group"]
        found = {}
        for command in np.flatnonzero(groups != self.issuer).tolist():
            for source in self.program.dependencies(command):
                if self.starts[source]:
                    found[source] = command
        return found

    def run(self) -> list[SequencerJob]:
        """All jobs: per command of the sequencer its waits, then its start; at last waits for what still runs."""
        own = np.flatnonzero(self.table["group"] == self.issuer).tolist()
        if own:
            self.jobs.append(SequencerJob(0, own[0], own[0]))
        for command in own:
            self._add_waits(command)
            self._open_job(command)
            self._add_start(command)
        if own:
            for command in list(self.outstanding.values()):
                self._add_wait(command, own[-1])
        return self.jobs

    def _open_job(self, command: int) -> None:
        """Open a job where a new op begins to compute, or to bring its operands into an engine's private memory."""
        op, job = int(self.table["op"][command]), self.jobs[-1]
        if command in self.started or self.table["route"][command] in self.brings:
            if op > self.highest and job.ops:
                job = SequencerJob(len(self.jobs), command, command)
                self.jobs.append(job)
            self.highest = max(self.highest, op)
            if op != NO_OP and (job.number, op) not in self.listed:
                self.listed.add((job.number, op))
                job.ops.append(op)
        job.last = command

    def _unit_of(self, command: int) -> tuple[Unit, int]:
        row = self.table[command]
        if row["route"] != NO_ROUTE:
            return Unit(self.program.routes[row["route"]].carries.value), 0
        group = int(row["group"])
        engine = self.program.groups[group].engine
        return (Unit.APART if engine in self.apart else Unit.COMPUTE), group - self.first_group[engine]

    def _engines_apart(self) -> frozenset[str]:
        """Engines with a private memory: those whose commands depend on a transfer into it, or on the read of their
        descriptor behind it."""
        found = set()
        for start, command in self.started.items():
            sources = self._before(start)
            if any(self.table["route"][source] in self.brings for source in sources):
                found.add(self.program.groups[self.table["group"][command]].engine)
        return frozenset(found)

    def _before(self, start: int) -> set[int]:
        """What a start depends on: itself, and by what the sequencer reads for the same op before it."""
        found: set[int] = set()
        waiting = list(self.program.dependencies(start))
        while waiting:
            source = waiting.pop()
            same = self.table["group"][source] == self.issuer and self.table["op"][source] == self.table["op"][start]
            if source not in found and same:
                waiting += self.program.dependencies(source)
            found.add(source)
        return found

    def _add_waits(self, command: int) -> None:
        for source in self.program.dependencies(command):
            self._add_wait(source, command)

    def _add_wait(self, source: int, command: int) -> None:
        if self.table["group"][source] == self.issuer and self.table["route"][source] == NO_ROUTE:
            return  # of the sequencer itself: done in order anyway
        unit = self._unit_of(source)
        if self.outstanding.get(unit) == source:
            del self.outstanding[unit]
            self._add_step(SequencerStep(*unit, source, self._op_of(source), True, command))

    def _add_start(self, command: int) -> None:
        if self.table["route"][command] != NO_ROUTE:
            what = command
        elif command in self.started:
            what = self.started[command]
        else:
            return
        unit = self._unit_of(what)
        self.outstanding[unit] = what
        self._add_step(SequencerStep(*unit, what, self._op_of(what), False, command))

    def _op_of(self, command: int) -> int:
        own = int(self.table["op"][command])
        return self.highest if own == NO_OP else own

    def _add_step(self, step: SequencerStep) -> None:
        """Append a step to the current task, or to a new one where the order of units does not allow it there."""
        tasks = self.jobs[-1].tasks
        if not tasks or not _may_follow(tasks[-1].steps[-1], step):
            tasks.append(SequencerTask(self.tasks))
            self.tasks += 1
        tasks[-1].steps.append(step)


def _may_follow(before: SequencerStep, step: SequencerStep) -> bool:
    return step.order > before.order or (step.order == before.order and step.number > before.number)
