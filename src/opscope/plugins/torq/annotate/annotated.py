"""Annotated: what a compiler listed – dispatches, jobs, tasks, steps – beside the times at which a runtime saw it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

import numpy as np
import numpy.typing as npt

from ....core.columns import Numbers
from ....core.provenance import Provenance

SLICE = "slice"


class Phase(Enum):
    """What a step does with its unit."""

    CONFIGURE = "cfg"
    START = "start"
    WAIT = "wait"


class Payload(StrEnum):
    """What a transfer carries."""

    PROGRAM = "program"  # of the sequencer: what it does next
    DESCRIPTOR = "descriptor"  # of a slice: what it does when it is started
    CONSTANT = "constant"
    BINDING = "binding"  # an input or an output of the model
    INTERMEDIATE = "intermediate"
    UNKNOWN = ""

    @property
    def is_control(self) -> bool:
        """No data of the model: it starts other work."""
        return self in (Payload.PROGRAM, Payload.DESCRIPTOR)


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction to one unit."""

    operation: str  # as the listing spells it
    unit: str  # dma_in, dma_out, cdma, slice or css
    phase: Phase
    number: int | None = None  # which slice
    invocation: str | None = None  # program that a slice runs
    cycles: int | None = None  # how long the unit should take, as the compiler has it
    source: str | None = None  # memory that is read
    destination: str | None = None  # memory that is written
    location: str | None = None
    bytes: int | None = None  # that a transfer moves
    payload: Payload = Payload.UNKNOWN
    buffers: tuple[str, ...] = ()  # named memory among its operands, in order: of a transfer from and to; "": no name


@dataclass(frozen=True, slots=True)
class Task:
    """Steps that the sequencer takes at once."""

    steps: tuple[Step, ...]
    number: int | None = None
    start_cycles: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A program of the sequencer: what a runtime starts and waits for as a whole."""

    name: str
    tasks: tuple[Task, ...]
    id: int | None = None
    location: str | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for task in self.tasks for step in task.steps)

    @property
    def invocations(self) -> tuple[str, ...]:
        """Slice programs that it starts, in order, each once."""
        found = (step.invocation for step in self.steps if step.phase is Phase.START)
        return tuple(dict.fromkeys(name for name in found if name))


class Role(Enum):
    """Which end of a job an action is."""

    START = "start"
    WAIT = "wait"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that the host does, numbered by the compiler."""

    id: int
    operation: str
    role: Role = Role.OTHER
    job: int | None = None  # position in Dispatch.jobs
    location: str | None = None
    host_program: str | None = None  # that the host's own processor runs, where the action starts one


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Of one memory: the most that is allocated at once, and all allocations added up, which is no footprint."""

    name: str
    peak_bytes: int
    allocated_bytes: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One function of the model on the device. Jobs stand in the order in which they are waited for."""

    name: str
    jobs: tuple[Job, ...]
    actions: tuple[Action, ...] = ()
    memories: tuple[MemoryUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that was compiled."""

    source: str
    dispatches: tuple[Dispatch, ...]
    notes: tuple[str, ...] = ()
    producer: str | None = None  # where the dump names it; a program of ours runs on the simulated device

    @property
    def slices(self) -> int:
        """How many slices there must be; the hardware has two at least."""
        steps = (step for dispatch in self.dispatches for job in dispatch.jobs for step in job.steps)
        return max([step.number + 1 for step in steps if step.number is not None], default=0)


@dataclass(frozen=True, slots=True)
class JobTimes:
    """Jobs that a runtime completed, in order; on one axis."""

    source: str
    id: Numbers
    start_ns: Numbers
    end_ns: Numbers
    location: Numbers  # position in `locations`; -1: none
    locations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionTimes:
    """What the host did, in order of start; `action` is -1 for what is no numbered action."""

    source: str
    dispatch: Numbers  # position in `dispatches`
    dispatches: tuple[str, ...]
    invocation: Numbers
    action: Numbers
    type: Numbers  # position in `types`
    types: tuple[str, ...]
    parts: tuple[str, ...]  # of the host, one per type: HAL, NSS Programs, Host Programs, Host Copy, …
    start_ns: Numbers
    end_ns: Numbers
    ended: npt.NDArray[np.bool_]  # false: the log has no end of it; `end_ns` is that of what it is part of
    location: Numbers  # position in `locations`; -1: none
    locations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Units that were at work in a job, or still at work when it began."""

    units: frozenset[str] = frozenset()  # dma_in, dma_out, cdma or css
    slices: frozenset[int] = frozenset()

    def uses(self, unit: str) -> bool:
        return unit in self.units


@dataclass(frozen=True, slots=True)
class Share:
    """One metric of where the time went."""

    name: str
    time_ns: int
    percent: float | None  # of the whole; None: the whole is empty


@dataclass(frozen=True, slots=True)
class StepRows:
    """A row per step of every job of every inference: a table of steps that repeats, and the times of jobs."""

    jobs: tuple[Job, ...]
    usage: tuple[Usage, ...]  # per job
    start_ns: Numbers  # inference × job, from the first start
    end_ns: Numbers

    @property
    def inferences(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class ActionRows:
    """A row per action that the runtime logged, in columns; `kind` is a position in `kinds`."""

    kind: Numbers
    kinds: Sequence[ActionKind]
    start_ns: Numbers
    end_ns: Numbers
    ended: npt.NDArray[np.bool_]  # false: the log has no end of it, so its total is unknown


@dataclass(frozen=True, slots=True)
class ActionKind:
    """What all rows of one action of one dispatch have in common."""

    dispatch: str
    action: int | None
    operation: str
    job: int | None = None  # number by which the compiler knows the job
    invocations: tuple[str, ...] = ()
    usage: Usage | None = None  # None: no job
    location: str | None = None
    operators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkColumns:
    """Stretches of work on named lanes, for a timeline; lanes stand in groups."""

    lane: Numbers  # position in `lanes`
    lanes: tuple[tuple[str, str], ...]  # group, lane
    name: Numbers  # position in `names`
    names: tuple[str, ...]
    start_ns: Numbers
    end_ns: Numbers


@dataclass(frozen=True, slots=True)
class Annotated:
    """A listing and a runtime's times, joined."""

    listing: str  # file names
    runtime: str
    provenance: Provenance  # of the times
    rows: StepRows | ActionRows
    slices: int
    shares: tuple[Share, ...]
    work: WorkColumns | None = None  # where a timeline was asked for
    memories: Mapping[str, tuple[MemoryUse, ...]] = field(default_factory=dict)  # dispatch → memories
    clock_hz: int | None = None  # that turned the compiler's cycles into time
    notes: tuple[str, ...] = ()
