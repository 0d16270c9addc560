"""Profiled: what one profile on a real runtime, or one imported from a vendor's files, comes to.

Every number has its provenance beside it; None is unknown and carries the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..program.program import Program
from .finding import Finding
from .summary import LaneTotal, Latency, MemoryTotal, Share
from .trace import NONE, Trace

VENDOR_MODEL, COMPILER_FACT, MEASURED, EMULATED = "vendor-model", "compiler-fact", "measured", "emulated"

ON_ACCELERATOR = "accelerator"
ON_CPU = "cpu"
FUSED = "fused"  # its work is done by another node
REMOVED = "removed"  # the runtime's own optimiser took it out before compilation
INSERTED = "inserted"  # not in the model: a change of layout, a cast


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a profile."""

    name: str
    value: float | None
    unit: str  # us, bytes, cycles, share, MB/s, count
    provenance: str
    note: str = ""  # why it is unknown, or how to read it
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class NodeTotal:
    """One node of the model, or one that the compiler added."""

    name: str
    type: str
    placed: str  # ON_ACCELERATOR, ON_CPU, FUSED, REMOVED, INSERTED
    reason: str = ""
    covers: tuple[str, ...] = ()  # other nodes of the model that it does the work of
    kernels: int = 0  # ops of the compiled graph
    wall_ns: int | None = None  # at least one of its kernels at work
    busy_cycles: Mapping[str, int] = field(default_factory=dict)  # engine → cycles, over all its threads
    dram_read_bytes: int | None = None
    dram_write_bytes: int | None = None
    vtcm_read_bytes: int | None = None
    vtcm_write_bytes: int | None = None
    spill_bytes: int = 0
    fill_bytes: int = 0
    engines: tuple[str, ...] = ()
    path_ns: int | None = None  # of the dominant path
    path_share: float | None = None
    wait_ns: int | None = None  # the foreground thread stood before it
    overlap_ns: int | None = None  # of its wall time: another node was at work too
    cycles: int | None = None  # what the runtime, or the vendor's model, counted for it
    low_ns: int | None = None  # of several inferences: the 10th and the 90th percentile around `wall_ns`, the median
    high_ns: int | None = None
    macs: int | None = None
    memory_bytes: int | None = None  # most of the working memory in use while it runs
    bound: str = ""  # what it waits for most; empty: unknown


@dataclass(frozen=True, slots=True)
class KernelTotal:
    """All ops of the compiled graph with one name."""

    name: str
    engine: str
    count: int
    busy_cycles: int | None
    dram_bytes: int
    vtcm_bytes: int
    wall_ns: int | None = None  # of one inference


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of the compilation, on this machine."""

    name: str
    microseconds: int


@dataclass(frozen=True, slots=True)
class Part:
    """One compiled graph of the model: the accelerator runs them one after the other."""

    name: str
    latency: Latency | None
    cycles: int | None
    low_cycles: int | None
    high_cycles: int | None
    peak_local_bytes: int | None


@dataclass(frozen=True, slots=True)
class Profiled:
    """One profile, whole."""

    backend: str
    model: str
    target: Mapping[str, str | int | float | None]  # name, title, id, architecture, …
    options: Mapping[str, str | int | bool | None]
    producer: Mapping[str, str]  # packages and versions that made the numbers
    provenance: str  # of the times
    latency: Latency | None
    metrics: tuple[Metric, ...]
    nodes: tuple[NodeTotal, ...] = ()
    kernels: tuple[KernelTotal, ...] = ()
    lanes: tuple[LaneTotal, ...] = ()
    path_shares: tuple[Share, ...] = ()  # in the words of the backend; `path_shares_of` says of what they are parts
    memory: tuple[MemoryTotal, ...] = ()
    stages: tuple[StageTime, ...] = ()
    parts: tuple[Part, ...] = ()
    causes: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    tables: Mapping[str, object] = field(default_factory=dict)  # in the vendor's own words
    trace: Trace | None = None
    program: Program | None = None
    samples_ns: tuple[int, ...] = ()  # latency of every inference, in order, where there were several
    path_shares_of: str = "dominant path"
    caveats: tuple[str, ...] = ()  # as in RunInfo

    @property
    def inferences(self) -> tuple[int, ...]:
        """Numbers of the inferences in the timeline: as many as `samples_ns` has, where there were several."""
        if self.trace is None:
            return (0,)
        return tuple(sorted(set(self.trace.spans["inference"].tolist()) - {NONE})) or (0,)

    def metric(self, name: str) -> Metric | None:
        return next((metric for metric in self.metrics if metric.name == name), None)

    def value(self, name: str) -> float | None:
        metric = self.metric(name)
        return None if metric is None else metric.value

    def of(self, placed: str) -> tuple[NodeTotal, ...]:
        return tuple(node for node in self.nodes if node.placed == placed)


@dataclass(frozen=True, slots=True)
class WhatIfPoint:
    """One combination of choices, and what it comes to."""

    label: str  # "SA8255, 4 MB VTCM, w8a8"
    choices: Mapping[str, str | int | bool | None]
    profiled: Profiled | None
    problem: str = ""  # why there is no profile
    on_front: bool = False  # no other point is at least as good in time, DDR bytes and local memory

    @property
    def time_us(self) -> float | None:
        return None if self.profiled is None else self.profiled.value("htp_execution_time")

    @property
    def ddr_bytes(self) -> float | None:
        if self.profiled is None:
            return None
        return (self.profiled.value("ddr_read") or 0) + (self.profiled.value("ddr_write") or 0)

    @property
    def local_bytes(self) -> float | None:
        return None if self.profiled is None else self.profiled.value("vtcm_peak")


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A grid of points, best first."""

    model: str
    backend: str
    points: tuple[WhatIfPoint, ...]
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
