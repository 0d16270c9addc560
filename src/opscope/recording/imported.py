"""Imported: what another tool wrote down about a model – timeline, rows per op, totals – with how it was obtained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .summary import DeviceSummary, HostStage
from .trace import COUNTER, EDGE, SPAN, Trace

PROVENANCES = ("measured", "vendor-model", "estimated", "compiler-fact", "simulated")
CLOCK = "clock"  # name of the metric, in Hz, that turns the cycles of ops into times
LATENCY = "latency"  # name of the metric, in ns, of one inference


@dataclass(frozen=True, slots=True)
class ImportedOp:
    """One op as the file has it. Times, cycles and calls are of one inference; what the file does not say is None.

    Where the file does not tell inferences apart (`Imported.inferences` is None), they are of the whole file.
    """

    name: str
    type: str | None = None  # as the file spells it
    engine: str | None = None  # what it ran on: NPU, CPU, an execution provider
    kernel: str | None = None  # the routine that did it
    shape: str | None = None
    origins: tuple[str, ...] = ()  # ops of the model that it was made from
    calls: float | None = None
    time_ns: int | None = None
    median_ns: int | None = None
    least_ns: int | None = None
    most_ns: int | None = None
    host_ns: int | None = None  # of the host, where `time_ns` is of a device
    estimated_ns: int | None = None  # as a model has it, where `time_ns` is measured
    cycles: int | None = None
    resource_cycles: tuple[tuple[str, int], ...] = ()  # resource → cycles it alone would take
    macs: int | None = None
    in_bytes: int | None = None
    out_bytes: int | None = None
    parameter_bytes: int | None = None
    memory_bytes: int | None = None

    @property
    def ratio(self) -> float | None:
        """Measured over estimated; of what was too short for its clock there is none."""
        return self.time_ns / self.estimated_ns if self.time_ns and self.estimated_ns else None


@dataclass(frozen=True, slots=True)
class Metric:
    """One total of the file."""

    name: str
    value: float
    unit: str  # ns, cycles, bytes, Hz, 1/s, 1: a count or a ratio


@dataclass(frozen=True, slots=True)
class Check:
    """An identity that the numbers of such a file obey, and whether these do."""

    name: str
    holds: bool
    detail: str


def empty_trace(provenance: str) -> Trace:
    """Of a file that has totals only."""
    return Trace((), (), np.zeros(0, SPAN), np.zeros(0, EDGE), (), np.zeros(0, COUNTER), provenance)


@dataclass(frozen=True, slots=True)
class Imported:
    """One file of another tool, read. The `op` of a span is a position in `ops`."""

    format: str  # name of the importer
    source: str
    tool: str  # what wrote it, with its version where the file says so
    provenance: str
    trace: Trace
    ops: tuple[ImportedOp, ...] = ()
    metrics: tuple[Metric, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()  # what was left out, how much of it, and why
    target: str | None = None
    model: str | None = None
    inferences: int | None = None
    tables: tuple[DeviceSummary, ...] = ()  # of formats that have such tables
    host: tuple[HostStage, ...] = ()  # of one inference, in order, where the file tells; together what it takes
    caveats: tuple[str, ...] = ()  # as in RunInfo

    def __post_init__(self) -> None:
        if self.provenance not in PROVENANCES or self.trace.provenance != self.provenance:
            known = ", ".join(PROVENANCES)
            raise ValueError(f"provenance {self.provenance!r}; expected one of {known}, the same as the trace's")

    def metric(self, name: str) -> float | None:
        return next((metric.value for metric in self.metrics if metric.name == name), None)

    @property
    def latency_ns(self) -> int | None:
        """Of one inference, where the file says it."""
        value = self.metric(LATENCY)
        return None if value is None else round(value)
