"""Figures: what a comparison needs of one run – totals, the time of every op, and how far samples lie apart.

Small enough to be kept in a repository: a baseline file is the Figures of a run. None is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from ..core.provenance import Provenance
from ..core.units import LARGEST

EXACT = (  # the same input gives the same number
    Provenance.ESTIMATED,
    Provenance.SIMULATED,
    Provenance.CALIBRATED,
    Provenance.VENDOR_MODEL,
    Provenance.COMPILER_FACT,
)

NS, BYTES, COUNT, PER_SECOND, JOULES = "ns", "bytes", "1", "1/s", "J"


class Row(StrEnum):
    """What a row of times is of; its name is for people."""

    OP = "op"
    NO_OP = "no-op"  # work that belongs to no op of the graph
    OTHERS = "others"  # ops that a baseline file has only the sum of


def check_range(name: str, *values: float | None) -> None:
    """A file may hold any number; what is out of range would overflow somewhere else."""
    for value in values:
        if value is not None and not -LARGEST <= value <= LARGEST:
            raise ValueError(f"{name!r}: a value is out of range")


@dataclass(frozen=True, slots=True)
class Spread:
    """How far repeated samples lie apart: quantiles at evenly spaced levels, least first."""

    count: int
    effective: float  # independent samples that say as much: fewer where neighbours are alike
    values: tuple[float, ...]  # all samples, or a sketch of them
    tick: float = 0.0  # of the clock that took them: the true median may lie half of it further up or down

    def __post_init__(self) -> None:
        if not 1 <= self.count <= LARGEST or not self.values or not 0 < self.effective <= self.count:
            raise ValueError("a spread needs at least one sample, and no more effective samples than samples")
        check_range("samples", self.values[0], self.values[-1], self.tick)
        if any(a > b for a, b in zip(self.values, self.values[1:], strict=False)):
            raise ValueError("the values of a spread must not fall")

    @property
    def median(self) -> float:
        return float(median(self.values))

    @property
    def mad(self) -> float:
        """Median distance from the median."""
        middle = self.median
        return float(median(abs(value - middle) for value in self.values))


@dataclass(frozen=True, slots=True)
class Figure:
    """One total of a run. A name may have a selector: `memory_read:DDR`."""

    name: str
    value: float | None
    unit: str  # NS, BYTES, COUNT, PER_SECOND, JOULES
    provenance: Provenance
    spread: Spread | None = None

    def __post_init__(self) -> None:
        check_range(self.name, self.value)


@dataclass(frozen=True, slots=True)
class OpFigure:
    """One op of a run, or the row of what is none."""

    name: str
    type: str
    engine: str
    location: str  # where in the model, or the ops of the model that it was made from
    wall_ns: int | None  # time in which at least one command of it is at work
    own_ns: int | None  # its part of the clock: an instant is divided among the commands at work in it
    spread: Spread | None = None  # of wall_ns, over inferences
    kind: str = ""  # the type in the vocabulary of a Graph, whatever the model's format calls it; empty: unknown
    module: str = ""  # path of the Python module that it was exported from; empty: unknown
    work: Mapping[str, int] = field(default_factory=dict)  # how much of what, by the names of op_causes
    row: Row = Row.OP

    def __post_init__(self) -> None:
        check_range(self.name, self.wall_ns, self.own_ns, *self.work.values())

    @property
    def is_timed(self) -> bool:
        """Has a time of its own; one that others do the work of may be written down with none, or with 0."""
        return bool(self.wall_ns or self.own_ns)


@dataclass(frozen=True, slots=True)
class Figures:
    """One run, as far as it is compared."""

    label: str
    model: str
    sha256: str | None
    target: str
    provenance: Provenance
    devices: int
    cores: int
    batch: int | None
    metrics: tuple[Figure, ...]
    ops: tuple[OpFigure, ...]  # in the order of the model
    created: str = ""
    caveats: tuple[str, ...] = ()  # as in RunInfo
    unknown: str = ""  # which ops have no known cost, and why: then there are no totals but counts of ops and commands
    backend: str = ""  # who told; empty: not known
    options: Mapping[str, str] = field(default_factory=dict)  # what was asked of it, and the sizes of local memories

    def metric(self, name: str) -> Figure | None:
        return next((metric for metric in self.metrics if metric.name == name), None)

    @property
    def latency_ns(self) -> float | None:
        found = self.metric("latency")
        return None if found is None else found.value

    @property
    def tells_op_times(self) -> bool:
        """Whether an op that is not among `ops` took no time; else nothing is known of it."""
        return any(op.wall_ns is not None or op.own_ns is not None for op in self.ops)

    @property
    def is_exact(self) -> bool:
        """Whether running again would give the same numbers."""
        return self.provenance in EXACT


ALWAYS = "precision"  # is said of a run even where others have the same
_DEFAULT = "default"


def choices_of(runs: Sequence[Figures]) -> list[dict[str, str]]:
    """Of every run, what was chosen otherwise than in another of them, and its precision.

    What one run does not name is the default, where another of the same backend names it; else it is not known.
    """
    names = dict.fromkeys((ALWAYS, *(name for run in runs for name in sorted(run.options))))
    known = {(run.backend, name) for run in runs for name in run.options}
    columns = {
        name: [run.options.get(name, _DEFAULT if (run.backend, name) in known else None) for run in runs]
        for name in names
    }
    shown = {
        name: values
        for name, values in columns.items()
        if len(set(values) - {None}) > 1 or (name == ALWAYS and any(name in run.options for run in runs))
    }
    return [
        {name: value for name, values in shown.items() if (value := values[place]) is not None}
        for place in range(len(runs))
    ]


Labels = Callable[[Figures], Sequence[str]]  # what every op of a run is added up under: its type, its layer, …


def caveats_of(runs: Sequence[Figures]) -> Iterator[str]:
    """What has to be known before totals of runs are set against each other: each once, with the runs it is true of."""
    told = [(run.label, {*run.caveats, run.unknown} - {""}) for run in runs]
    for caveat in dict.fromkeys(caveat for run in runs for caveat in (run.unknown, *run.caveats) if caveat):
        labels = dict.fromkeys(label for label, caveats in told if caveat in caveats)
        yield f"{', '.join(labels)}: {caveat}"


def known_labels(labels: Mapping[str, Labels], *runs: Figures) -> dict[str, Labels]:
    """Ways to add ops up that these runs have words for: modules are known of models that torch exported."""
    has_modules = any(op.module for run in runs for op in run.ops)
    return {name: label for name, label in labels.items() if name != "module" or has_modules}
