"""Report: everything one model should take on one target, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.errors import printable
from ..core.provenance import Provenance
from ..core.units import format_latency
from ..graph.graph import Graph, Note
from ..machine.target import Target
from ..recording.resources import LayerAdvice, MemoryStack, ModelFacts, Suggestion, Totals
from ..recording.unknown import UnknownOp
from .battery import BatteryLife
from .cost import Cost, Energy
from .memory import ArenaBlock


@dataclass(frozen=True, slots=True)
class Layer:
    """One op of the canonical graph, costed. Unknown numbers are None."""

    index: int
    operator: str  # as the model names it
    kind: str
    name: str
    location: str
    sources: tuple[str, ...]  # names of the model's ops that run as this one, when there are several
    trips: int | None
    engine: str | None
    accelerated: bool
    reason: str  # why it is not on an accelerator that takes its kind, or not costed at all
    dtype: str
    macs: int
    element_ops: int
    cost: Cost | None
    cycles: float | None
    latency_s: float | None
    energy_j: float | None
    power_w: float | None
    bound: str
    parameter_bytes: int  # of all its constants, shared or not
    shared_bytes: int  # the part of them that an earlier layer uses too
    write_bytes: int
    live_bytes: int  # activations alive while it runs
    traffic: Mapping[str, int]  # bytes by memory
    kernel_shapes: tuple[tuple[int, ...], ...]  # shapes of its constants
    work_known: bool = True  # False: `macs` and `element_ops` are what is known of them, not all
    unknown: str = ""  # why it has no cost; empty: it has
    module: str = ""  # path of the Python module that it was exported from
    line: str = ""  # of the user's code that called for it
    energy: Energy | None = None  # what `energy_j` adds up; None: the target does not tell


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The five parts of a resource report."""

    model: ModelFacts
    target: Target
    devices: int
    cores: int
    graph: Graph  # canonical
    memory: MemoryStack
    totals: Totals
    layers: tuple[Layer, ...]
    suggestions: tuple[Suggestion, ...]
    heavy_memory: tuple[LayerAdvice, ...]
    heavy_macs: tuple[LayerAdvice, ...]
    notes: tuple[Note, ...]
    definition: str  # of what is counted as a MAC
    call_s: float = 0.0  # of an inference before its first layer
    battery: BatteryLife | None = None  # where it was asked for and can be told
    arena: tuple[ArenaBlock, ...] = ()  # as it is planned, with what the runtime keeps
    arena_steps: int = 0  # operators of the file, where an interpreter plans it, else layers

    @property
    def provenance(self) -> Provenance:
        """Formulas; fitted to measurements where the target's figures are."""
        return Provenance.ESTIMATED if self.target.calibration is None else Provenance.CALIBRATED

    @property
    def unknown_ops(self) -> tuple[UnknownOp, ...]:
        """Layers without a cost, which make the totals lower bounds."""
        return tuple(UnknownOp(layer.name, layer.operator, layer.unknown) for layer in self.layers if layer.unknown)

    def __repr__(self) -> str:  # the fields of a whole network are megabytes of text
        latency = self.totals.latency_s
        if latency is None:
            time = "latency not known"
        else:
            time = format_latency(latency.value * 1e9, latency.low * 1e9, latency.high * 1e9)
        return f"<Report {printable(self.model.name)} on {self.target.name}, {time}, {self.provenance}>"
