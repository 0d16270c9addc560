"""Run: everything about one profile – what was run, on what, when every command ran, and the totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ..core.errors import printable
from ..core.meaning import Carries
from ..core.provenance import Provenance, in_words
from ..core.target_words import TargetWords
from ..core.units import format_latency
from ..graph.graph import ABSENT, Graph
from ..program.bounds import Bounds
from ..program.program import Detail, MemoryInfo, OpCycles, Operand, OpInfo, Program
from .resources import Resources
from .summary import Latency, Summary
from .trace import Trace
from .unknown import UnknownOp, unknown_of

# names of RunInfo.limits
MACS_PER_S, OUTER_BYTES_PER_S, VECTOR_BYTES_PER_S = "macs_per_s", "outer_bytes_per_s", "vector_bytes_per_s"

GRAPH_EDGE = np.dtype([("source", "<i4"), ("target", "<i4")])  # two ops: the second reads what the first writes


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The head of a run: `run.json`."""

    command: tuple[str, ...]  # as it was typed
    created: str  # ISO 8601, UTC
    model: str  # path or name of the model or program
    sha256: str | None  # of that file
    target: str
    provenance: Provenance
    network: str
    devices: int
    cores: int  # per device
    batch: int | None
    clocks_hz: Mapping[str, float]
    inferences: tuple[int, ...]
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)  # of what it ran on, all cores: macs_per_s, …
    caveats: tuple[str, ...] = ()  # what to know before its totals are set against those of another run
    basis: str = ""  # what its times rest on, where that is more than their provenance says
    classified: tuple[str, ...] = ()  # tables in which the meaning of something was told from words
    classified_rows: Mapping[str, int] = field(default_factory=dict)  # of such a table; what is not there is not known
    words: TargetWords | None = None  # of what it ran on; None: not known (a file of an earlier version)

    @property
    def obtained(self) -> str:
        """How its times were obtained, in words."""
        return in_words(self.provenance, self.basis)

    def with_classified(self, rows: Mapping[str, int]) -> RunInfo:
        """With the marks of what words told; rows that were marked before may be among them."""
        most = {table: max(count, self.classified_rows.get(table, 0)) for table, count in rows.items()}
        tables = dict.fromkeys((*self.classified, *rows))
        return replace(self, classified=tuple(tables), classified_rows={**self.classified_rows, **most})

    def headline(self, latency: Latency) -> str:
        """What ran where and how long it took, in one line."""
        network, target, provenance = (printable(word) for word in (self.network, self.target, self.provenance))
        time = format_latency(latency.value_ns, latency.low_ns, latency.high_ns)
        return f"{network} on {target}, {time}, {provenance}"


@dataclass(frozen=True, slots=True)
class RunRoute:
    """A way for bytes."""

    name: str
    carries: Carries = Carries.UNKNOWN
    memory: str = ""  # that it serves; empty: none, or not known
    bytes_per_s: float | None = None  # of one device, at the most


@dataclass(frozen=True, slots=True)
class CommandTable:
    """The commands of a program with what they point to beside them; one row per command."""

    rows: npt.NDArray[np.void]  # of program.COMMAND
    groups: tuple[str, ...]
    routes: tuple[RunRoute, ...]
    kinds: tuple[str, ...]
    names: tuple[str, ...]  # detail → name
    memories: tuple[str, ...]
    types: tuple[str, ...]
    shapes: tuple[str, ...]
    operands: tuple[tuple[Operand, ...], ...]
    attributes: tuple[str, ...]
    places: tuple[MemoryInfo, ...] = ()  # memories that operands lie in
    op_cycles: tuple[OpCycles, ...] = ()
    floats: frozenset[int] = frozenset()  # details without operands whose types are floats, as their word for them says

    @classmethod
    def of(cls, program: Program) -> CommandTable:
        return cls.from_details(
            program.commands,
            program.details,
            groups=tuple(group.name for group in program.groups),
            routes=routes_of(program),
            kinds=program.kinds,
            places=program.memories,
            op_cycles=program.op_cycles,
        )

    @classmethod
    def from_details(
        cls,
        rows: npt.NDArray[np.void],
        details: Sequence[Detail],
        *,
        kinds: tuple[str, ...] = ("",),
        groups: tuple[str, ...] = ("",),
        routes: tuple[RunRoute, ...] = (),
        places: tuple[MemoryInfo, ...] = (),
        op_cycles: tuple[OpCycles, ...] = (),
    ) -> CommandTable:
        """Commands of which a source knows no more than their details."""
        details = details or (Detail("", "", "", "", (), ""),)
        return cls(
            rows=rows,
            groups=groups,
            routes=routes,
            kinds=kinds,
            names=tuple(detail.name for detail in details),
            memories=tuple(detail.memory for detail in details),
            types=tuple(detail.types for detail in details),
            shapes=tuple(detail.shape for detail in details),
            operands=tuple(detail.operands for detail in details),
            attributes=tuple(detail.attributes for detail in details),
            places=places,
            op_cycles=op_cycles,
        )

    def place(self, operand: Operand) -> str:
        """Name of the memory that an operand lies in, for people."""
        return self.places[operand.memory].name if 0 <= operand.memory < len(self.places) else ""


def routes_of(program: Program) -> tuple[RunRoute, ...]:
    """Routes of a program; one whose rate is not known has none."""
    return tuple(
        RunRoute(
            route.name,
            route.carries,
            program.memory_name(route.memory),
            route.bytes_per_cycle * program.clock_hz or None,
        )
        for route in program.routes
    )


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """One profile, whole."""

    info: RunInfo
    ops: tuple[OpInfo, ...]
    commands: CommandTable
    trace: Trace
    summary: Summary
    graph: npt.NDArray[np.void] | None = None  # of GRAPH_EDGE, each pair once; None: only the commands tell what flows
    resources: Resources | None = None  # None: nobody made a resource report of it
    bounds: Bounds | None = None  # None: the peaks of what it ran on are not known

    @property
    def unknown_ops(self) -> tuple[UnknownOp, ...]:
        """Ops whose cost is not known: with one of them, the latency is what the others take at the least."""
        return unknown_of(self.ops)

    @property
    def routes(self) -> tuple[RunRoute, ...]:
        """That commands and spans point to."""
        return self.commands.routes

    def __repr__(self) -> str:  # the fields of one run are megabytes of text
        return f"<Run {self.info.headline(self.summary.latency)}>"


def graph_edges(graph: Graph) -> npt.NDArray[np.void]:
    """Op → op, where one reads what the other wrote, whether or not either has commands."""
    writer: dict[int, int] = {}
    edges: dict[tuple[int, int], None] = {}
    for number, op in enumerate(graph.ops):
        edges |= dict.fromkeys((writer[tensor], number) for tensor in op.inputs if tensor in writer)
        writer |= dict.fromkeys((tensor for tensor in op.outputs if tensor != ABSENT), number)
    return np.array(list(edges), GRAPH_EDGE)
