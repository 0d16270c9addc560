"""Finding: a stated cause with evidence, its share of the time, what to do about it and what that would gain.

Times are of the inference that `Summary` describes. None is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.provenance import Provenance
from .summary import Share
from .unknown import UnknownOp

BOUNDS = ("compute", "memory", "link", "host-link", "wait", "layout", "launch", "host")  # what a run can be bound by
OTHER_BOUND = "unknown"  # the part of the wall time that nothing in the run explains

WHAT_IF = "what-if"  # simulated or compiled again with the change made
UPPER_BOUND = "upper bound"  # the cost taken off the critical path; other work may take its place
NO_COMPUTE, OUTLIER = "no-compute", "outlier"  # ids of findings that others go by


@dataclass(frozen=True, slots=True)
class Prediction:
    """What acting on a finding would gain."""

    gain_ns: int
    latency_ns: int  # of the run afterwards
    basis: str  # WHAT_IF or UPPER_BOUND
    text: str = ""  # which change was tried


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. `id` is the rule's and stays the same from release to release."""

    id: str
    title: str
    detail: str
    ops: tuple[str, ...] = ()  # costliest first
    cost_ns: int | None = None
    share: float | None = None  # of the wall time
    action: str = ""
    predicted: Prediction | None = None
    spans: tuple[int, ...] = ()  # rows of the spans table that show it, costliest first; a sample where there are many
    bytes: int | None = None  # that it is about, where it is about bytes


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Work that computes nothing first, then the costliest; those whose cost is unknown come last."""
    return tuple(sorted(findings, key=lambda found: (found.id != NO_COMPUTE, -(found.cost_ns or 0))))


@dataclass(frozen=True, slots=True)
class Trial:
    """One change that a user could make, made: the run was simulated, or estimated, with it."""

    change: str  # of a simulated run: in the words of `opscope analyze --what-if`
    latency_ns: int  # on the device
    speedup: float  # latency of the run as it is ÷ latency with the change

    def __post_init__(self) -> None:
        if not self.speedup > 0:
            raise ValueError(f"speedup is {self.speedup}; expected more than 0")


@dataclass(frozen=True, slots=True)
class PathStep:
    """A stretch of the critical path: one span, or the gap before it."""

    start_ns: int
    end_ns: int
    span: int | None  # row of the spans table; None: nothing that was recorded explains the gap
    op: str | None
    cause: str  # one of BOUNDS, or OTHER_BOUND
    after: str  # what it followed: "data of NAME", "lane NAME was busy", "start"


@dataclass(frozen=True, slots=True)
class OpSlack:
    """How much later an op could have ended without the run ending later."""

    op: str
    row: int  # of the ops table: several ops may have one name
    slack_ns: int
    path_ns: int  # of the critical path that is this op's


@dataclass(frozen=True, slots=True)
class RooflineOp:
    """One op against the machine's limits; None where the run or the target does not tell."""

    op: str
    macs: int
    outer_bytes: int
    intensity: float | None  # MACs per byte of outer memory
    macs_per_s: float | None
    attainable_macs_per_s: float | None
    bound_ns: int | None  # lower bound of its time by compute and by bandwidth
    wall_ns: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the run the capture caught."""

    share: float | None  # of the wall time in which at least one span or transfer is known
    lost_records: int | None
    ops_without_time: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineUse:
    """All lanes of one name: at work, waiting for something that is known, and neither; per lane, on average."""

    engine: str
    lanes: int
    busy_ns: int
    wait_ns: int | None  # None: waits are not recorded, and in `idle_ns`
    idle_ns: int

    @property
    def utilization(self) -> float | None:
        wall = self.busy_ns + (self.wait_ns or 0) + self.idle_ns
        return self.busy_ns / wall if wall else None


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch in which a lane did nothing, and what ended it."""

    device: int
    core: int
    lane: str
    start_ns: int
    end_ns: int
    before: str | None  # op that the lane then went on with
    ended_by: str  # "data of NAME", "lane NAME was busy", … as in PathStep.after


@dataclass(frozen=True, slots=True)
class WaitFor:
    """What lanes of one name waited for, over all of them."""

    engine: str  # who waited
    cause: str  # an engine, "NAME of another core", "DMA NAME" of a route, "host", …
    op: str | None  # the producer that was waited for longest
    wait_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class RollupRow:
    """Ops under one label, added up; None where the run does not tell."""

    name: str
    ops: int
    busy_ns: int | None  # of all lanes together
    path_ns: int | None  # of the critical path
    share: float | None  # of the busy time of all rows
    macs: int | None
    moved_bytes: int | None


@dataclass(frozen=True, slots=True)
class Rollup:
    """One way to add ops up, costliest first. The rows hold every op once."""

    by: str  # one of ROLLUPS
    rows: tuple[RollupRow, ...]


@dataclass(frozen=True, slots=True)
class LawCheck:
    """A law, and whether the numbers of a run obey it."""

    name: str
    holds: bool | None  # None: the run does not tell enough
    detail: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The analysis of one Run: the verdict first, then causes, costliest first."""

    bound: str  # the largest part of the breakdown
    breakdown: tuple[Share, ...]  # of the wall time, by BOUNDS; adds up to the whole
    wall_ns: int | None  # None: not known, as of a run with an op of unknown cost
    provenance: Provenance
    findings: tuple[Finding, ...] = ()
    path: tuple[PathStep, ...] = ()
    slack: tuple[OpSlack, ...] = ()
    roofline: tuple[RooflineOp, ...] = ()
    coverage: Coverage | None = None
    engines: tuple[EngineUse, ...] = ()
    gaps: tuple[Gap, ...] = ()  # longest first
    waits: tuple[WaitFor, ...] = ()  # longest first
    rollups: tuple[Rollup, ...] = ()
    checks: tuple[LawCheck, ...] = ()
    notes: tuple[str, ...] = ()  # what cannot be known of this run, and why
    trials: tuple[Trial, ...] = ()  # changes made one at a time, best first
    unknown_ops: tuple[UnknownOp, ...] = ()  # whose cost is not known: everything here is of the others

    @property
    def outliers(self) -> tuple[Finding, ...]:
        """Ops whose modelled time is in doubt: far above what their bytes and operations need."""
        return tuple(finding for finding in self.findings if finding.id == OUTLIER)

    @property
    def without_outliers_ns(self) -> int | None:
        """The wall time that is left without them; None: there are none, or the time is not known."""
        if self.wall_ns is None or not self.outliers:
            return None
        return max(self.wall_ns - sum(finding.cost_ns or 0 for finding in self.outliers), 0)

    def rollup(self, by: str) -> Rollup | None:
        return next((rollup for rollup in self.rollups if rollup.by == by), None)
