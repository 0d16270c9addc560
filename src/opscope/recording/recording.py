"""Recording: what one source found out about one execution, before it is a Run.

The simulated device, estimates, real compilers and runtimes, and importers of foreign files all return this and
nothing else; `build.to_run` makes the Run. None is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from ..core.meaning import Does
from ..core.provenance import Provenance
from ..core.target_words import OUR_WORDS, TargetWords
from ..program.bounds import Bounds
from .finding import Finding
from .language_model import LanguageModel
from .resources import Resources
from .run import CommandTable
from .summary import DeviceSummary, Energy, HostStage, LaneTotal, Latency, MemoryTotal, Share, Summary
from .trace import COUNTER, EDGE, SPAN, Trace

CLOCK = "clock"  # name of the metric, in Hz, that turns the cycles of ops into times
CYCLES = "cycles of one inference"  # name of the metric, of sources that count and do not tell how fast
LATENCY = "latency"  # name of the metric, in ns, of one inference
THROUGHPUT = "throughput"  # name of the metric, in inferences per second
COMPILE_TIME = "compile_time"  # name of the metric, in ns or us, of what a compiler took on the host

Value = str | int | float | bool | None


class Placed(StrEnum):
    """Who runs an op of the model."""

    ACCELERATOR = "accelerator"
    CPU = "cpu"
    FUSED = "fused"  # its work is done by another op
    REMOVED = "removed"  # an optimiser took it out before compilation
    INSERTED = "inserted"  # not in the model: a change of layout, a cast
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class ResourceCycles:
    """Cycles that an op would take if one resource alone bound it."""

    resource: str
    is_memory: bool
    cycles: int


@dataclass(frozen=True, slots=True)
class OpRecord:
    """One op of the model, or one that a compiler added. Times, cycles and calls are of one inference.

    Where the source does not tell inferences apart (`Recording.inferences` is None), they are of the whole recording.
    """

    name: str
    type: str = ""  # as the source spells it
    kind: str = ""  # in the words of our graphs; empty: unknown
    location: str = ""  # in the file of the model
    does: Does = Does.UNKNOWN
    placed: Placed = Placed.UNKNOWN
    reason: str = ""  # why it runs where it runs
    unknown: str = ""  # why its cost is not known; empty: it is, or nobody asked
    covers: tuple[str, ...] = ()  # other ops of the model that it does the work of, or that it was made from
    engines: tuple[str, ...] = ()  # what it ran on, busiest first
    on_cpu: bool | None = None  # of what `placed` says something else about, or nothing; None: not told
    kernel: str = ""  # the routine that did it
    shape: str = ""
    dtype: str = ""  # of what it reads, where the source tells
    calls: float | None = None  # of kernels
    time_ns: int | None = None  # at least one of its kernels at work
    median_ns: int | None = None  # of several inferences
    low_ns: int | None = None
    high_ns: int | None = None
    wait_ns: int | None = None
    overlap_ns: int | None = None  # of its time: another op was at work too
    host_ns: int | None = None  # of the host, where `time_ns` is of a device
    estimated_ns: int | None = None  # as a model has it, where `time_ns` is measured
    path_ns: int | None = None  # of the dominant path
    path_share: float | None = None
    cycles: int | None = None
    busy_cycles: Mapping[str, int] = field(default_factory=dict)  # engine → cycles, over all its threads
    resource_cycles: tuple[ResourceCycles, ...] = ()
    macs: int | None = None
    in_bytes: int | None = None
    out_bytes: int | None = None
    parameter_bytes: int | None = None
    vector_bytes: int | None = None  # that pass through vector units for it, at the least
    threads: int | None = None  # of its busiest engine, that it used
    engine_threads: int | None = None  # that this engine has
    cores: int | None = None  # of its device, that it ran on
    outer_read_bytes: int | None = None
    outer_write_bytes: int | None = None
    outer_bytes: int | None = None  # both ways together, where the source does not tell them apart
    local_read_bytes: int | None = None
    local_write_bytes: int | None = None
    spill_bytes: int = 0
    fill_bytes: int = 0
    memory_bytes: int | None = None  # most of the working memory in use while it runs
    bound: str = ""  # what the source says it waits for most
    module: str = ""  # path of the Python module that it was exported from
    line: str = ""  # of the user's code that called for it

    @property
    def tells_who_runs_it(self) -> bool:
        """Ops that somebody put in may run anywhere."""
        return self.on_cpu is not None or self.placed not in (Placed.UNKNOWN, Placed.INSERTED)

    @property
    def ratio(self) -> float | None:
        """Measured over estimated; of what was too short for its clock there is none."""
        return self.time_ns / self.estimated_ns if self.time_ns and self.estimated_ns else None


@dataclass(frozen=True, slots=True)
class KernelTotal:
    """All kernels with one name."""

    name: str
    engine: str
    count: int
    busy_cycles: int | None = None
    outer_bytes: int | None = None
    local_bytes: int | None = None
    time_ns: int | None = None  # of one inference


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of the compilation, on this machine."""

    name: str
    microseconds: int


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a recording."""

    name: str
    value: float | None
    unit: str  # ns, us, cycles, bytes, share, Hz, 1/s, J, W, 1: a count or a ratio
    provenance: Provenance | None = None  # None: that of the recording
    note: str = ""  # why it is unknown, or how to read it
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """An identity that the numbers of such a source obey, and whether these do."""

    name: str
    holds: bool
    detail: str


def empty_trace(provenance: Provenance) -> Trace:
    """Of a source that has totals only."""
    return Trace((), (), np.zeros(0, SPAN), np.zeros(0, EDGE), (), np.zeros(0, COUNTER), provenance)


NO_TRACE = empty_trace(Provenance.ESTIMATED)  # what stands for it until the provenance of a recording is known


@dataclass(frozen=True, slots=True)
class Recording:
    """One execution, as one source tells it. The `op` of a span is a position in `ops`."""

    maker: str  # backend or importer that made it
    provenance: Provenance  # of its times
    trace: Trace = NO_TRACE
    ops: tuple[OpRecord, ...] = ()
    basis: str = ""  # what its times rest on, where that is more than their provenance says
    model: str | None = None
    target: str | None = None
    network: str = ""  # name of the model; empty: that of `model`
    tool: str = ""  # what wrote it down, with its version where that is known
    producer: Mapping[str, str] = field(default_factory=dict)  # packages that made the numbers, with their versions
    source: str = ""  # the file that it was read from
    options: Mapping[str, Value] = field(default_factory=dict)  # as the user chose them
    words: TargetWords = OUR_WORDS  # of what it ran on
    machine: Mapping[str, Value] = field(default_factory=dict)  # title, id, architecture, … of what it ran on
    limits: Mapping[str, float] = field(default_factory=dict)  # of what it ran on, all cores: macs_per_s, …
    clocks_hz: Mapping[str, float] = field(default_factory=dict)
    devices: int | None = None
    cores: int | None = None  # per device
    batch: int | None = None
    inferences: int | None = None
    numbers: tuple[int, ...] | None = None  # of the inferences; None: those of the spans
    commands: CommandTable | None = None  # where a program is known
    graph: npt.NDArray[np.void] | None = None  # of run.GRAPH_EDGE
    resources: Resources | None = None  # where a resource report was made
    bounds: Bounds | None = None  # where peaks of the machine are known
    latency: Latency | None = None
    samples_ns: tuple[int, ...] = ()  # latency of every inference, in order
    totals: Summary | None = None  # where the source adds up better than its rows tell
    metrics: tuple[Metric, ...] = ()
    kernels: tuple[KernelTotal, ...] = ()
    lanes: tuple[LaneTotal, ...] = ()
    path_shares: tuple[Share, ...] = ()  # as the source itself divides the time; adds up to the whole
    path_shares_of: str = ""  # what of
    memory: tuple[MemoryTotal, ...] = ()
    energy: Energy | None = None  # of one inference
    host: tuple[HostStage, ...] = ()  # of one inference, in order; together what it takes
    stages: tuple[StageTime, ...] = ()  # of the compiler
    language_model: LanguageModel | None = None  # of sources that tell of tokens
    causes: tuple[Finding, ...] = ()  # that the source itself found
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()  # what was left out, how much of it, and why
    caveats: tuple[str, ...] = ()  # as in RunInfo
    # as in RunInfo: table → rows of which the source told from words what they do
    classified: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[DeviceSummary, ...] = ()  # of sources that have such tables
    details: Mapping[str, object] = field(default_factory=dict)  # what only this source tells, in its own words
    # for files in a vendor's form; in no file of ours
    vendor_tables: Mapping[str, object] = field(default_factory=dict)
    # name → content: what lies beside the tables of its run, such as the copy of a model that was compiled
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.trace is NO_TRACE:
            object.__setattr__(self, "trace", empty_trace(self.provenance))
        if self.trace.provenance != self.provenance:
            raise ValueError(
                f"the trace is {self.trace.provenance}, the recording {self.provenance}; expected the same"
            )

    @property
    def latency_ns(self) -> int | None:
        """Of one inference, where the source tells."""
        if self.latency is not None:
            return self.latency.value_ns
        known = self.metric(LATENCY)
        return None if known is None or known.value is None or known.unit != "ns" else round(known.value)

    def placed(self, where: Placed) -> tuple[OpRecord, ...]:
        return tuple(op for op in self.ops if op.placed is where)

    def metric(self, name: str) -> Metric | None:
        return next((metric for metric in self.metrics if metric.name == name), None)

    def value(self, name: str) -> float | None:
        metric = self.metric(name)
        return None if metric is None else metric.value
