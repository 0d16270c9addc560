"""Resources: what one inference takes of its target, figure by figure, with where each of them comes from.

The part of a resource report that outlives it: `resources.json` of a run, and the facts on its page. None is unknown,
never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core.units import Bytes
from ..graph.graph import Note


@dataclass(frozen=True, slots=True)
class ModelFacts:
    name: str
    path: str
    framework: str
    sha256: str | None
    file_bytes: int
    parameter_bytes: int
    dtype: str
    layer_count: int  # layers that run
    op_count: int  # operators in the file


@dataclass(frozen=True, slots=True)
class Range:
    """A number and how far it may lie off, from the ranges of the target's figures."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PeakTensor:
    name: str
    size_bytes: Bytes


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """One memory of the target: what the model needs of it."""

    name: str
    holds: str
    required_bytes: int
    available_bytes: int

    @property
    def share(self) -> float:
        if not self.available_bytes:
            return float("inf") if self.required_bytes else 0.0
        return self.required_bytes / self.available_bytes

    @property
    def fits(self) -> bool:
        return self.required_bytes <= self.available_bytes


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Bytes, and what they are for."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class OtherPlan:
    """What another planner would make of the same buffers."""

    planner: str
    arena_bytes: int  # with scratch
    saved_bytes: int  # less than this one; negative: more


@dataclass(frozen=True, slots=True)
class MemoryStack:
    """RAM from the ground up: what must be alive, what placement adds, what kernels and the runtime add."""

    bound_bytes: Bytes
    arena_bytes: Bytes
    planner: str
    scratch_bytes: Bytes
    runtime_bytes: Bytes | None
    peak_layer: int | None
    peak_tensors: tuple[PeakTensor, ...]
    unknown_tensors: int
    uses: tuple[MemoryUse, ...]
    issues: tuple[str, ...]
    recommendations: tuple[str, ...]
    status: str
    runtime_parts: tuple[MemoryPart, ...] = ()  # of `runtime_bytes`; empty: not told apart
    runtime_is_whole: bool = True  # False: there is more than `runtime_bytes`, of operators that nothing is known of
    other_plan: OtherPlan | None = None

    @property
    def peak_bytes(self) -> Bytes:
        """The sum of the known parts."""
        return Bytes(self.arena_bytes + self.scratch_bytes + (self.runtime_bytes or 0))

    @property
    def available_bytes(self) -> int:
        return self.uses[0].available_bytes

    @property
    def is_lower_bound(self) -> bool:
        """Whether there are tensors, or operators, of unknown size, which take more than is counted."""
        return self.unknown_tensors > 0 or not self.runtime_is_whole


@dataclass(frozen=True, slots=True)
class Totals:
    """The whole inference. Times and energy are None when a layer's cost is unknown: a partial sum would mislead."""

    cycles: float | None
    latency_s: Range | None
    energy_j: Range | None
    power_w: float | None
    power_note: str
    energy_note: str
    macs: int
    element_ops: int
    parameter_bytes: int  # every constant of the file once
    accelerated_layers: int
    cpu_layers: int
    unknown_layers: tuple[int, ...]
    withheld: str  # why totals are missing, if they are
    known_latency_s: float | None = None  # where the latency is withheld: what the other layers take at the least

    uncounted_layers: int = 0  # whose MACs and element operations are not all known

    @property
    def is_lower_bound(self) -> bool:
        """Whether there may be more MACs and element operations than are counted."""
        return self.uncounted_layers > 0


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the model takes as it is, or as a change would leave it; both by estimating the graph on one target."""

    latency_s: float | None
    peak_bytes: int
    parameter_bytes: int
    energy_j: float | None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change worth making, with the numbers before and after."""

    kind: str
    text: str
    layers: tuple[int, ...]
    before: Footprint
    after: Footprint


@dataclass(frozen=True, slots=True)
class LayerAdvice:
    """A heavy layer and what to do about it."""

    layer: int
    suggestion: str


@dataclass(frozen=True, slots=True)
class CostPart:
    """Cycles that a layer would take if one resource alone bound it."""

    resource: str
    cycles: float
    binds: bool = False  # it is part of the layer's time, and hides behind no other resource


@dataclass(frozen=True, slots=True)
class LayerResources:
    """What one layer takes; its name, type and place in the source are those of the op of the same number."""

    op: int
    dtype: str  # that it computes in
    sources: tuple[str, ...]  # names of the model's ops that run as this one, when there are several
    trips: int | None
    engine: str | None
    accelerated: bool
    reason: str  # why it is not on an accelerator that takes its kind, or not costed at all
    cycles: float | None
    latency_s: float | None
    energy_j: float | None
    power_w: float | None
    bound: str  # the resource that takes longest; empty: no work, or unknown
    costs: tuple[CostPart, ...]
    macs: int
    element_ops: int
    work_known: bool  # False: `macs` and `element_ops` are what is known of them, not all
    parameter_bytes: int  # of all its constants, shared or not
    shared_bytes: int  # the part of them that an earlier layer uses too
    live_bytes: int  # activations alive while it runs
    out_bytes: int
    moved_bytes: int
    constant_shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TargetFigure:
    """One number of a target file, and where it comes from. The unit is in its name."""

    part: str
    name: str
    value: float
    low: float | None
    high: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Resources:
    """The facts of a resource report."""

    target_title: str
    model: ModelFacts
    memory: MemoryStack
    totals: Totals
    layers: tuple[LayerResources, ...]
    suggestions: tuple[Suggestion, ...]
    heavy_memory: tuple[LayerAdvice, ...]
    heavy_macs: tuple[LayerAdvice, ...]
    notes: tuple[Note, ...]  # of who read the model
    definition: str  # of what is counted as a MAC
    figures: tuple[TargetFigure, ...]
