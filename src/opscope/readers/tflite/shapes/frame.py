"""One call of one subgraph: what is known of its tensors, and the calls that its operators make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....graph.graph import ABSENT
from ..model import Subgraph
from ..ops import Shape

if TYPE_CHECKING:
    from .evaluate import Array


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not known before the model runs."""

    origin: str  # where it comes from: "the values of input 'x'"


@dataclass(frozen=True, slots=True)
class CalledBody:
    """A subgraph that an operator runs, as shaped there."""

    frame: Frame
    runs: int | None  # each time the operator runs; None: unknown


@dataclass(frozen=True, slots=True)
class Call:
    """What a control-flow operator runs."""

    bodies: tuple[CalledBody, ...]
    is_settled: bool  # which bodies run, and how often, is known

    def choice(self) -> tuple[object, ...]:
        """Return what was chosen, nested calls included, for a comparison of two trips of a loop."""
        return tuple((body.frame.subgraph.index, body.runs, body.frame.choices()) for body in self.bodies)


@dataclass(frozen=True, slots=True)
class Wiring:
    """Who writes what in a subgraph, the same in every call."""

    producers: Mapping[int, int]  # number of the operator that writes a tensor
    inputs: frozenset[int]

    @classmethod
    def of(cls, subgraph: Subgraph) -> Wiring:
        producers = {
            tensor: number
            for number, operator in enumerate(subgraph.operators)
            for tensor in operator.outputs
            if tensor != ABSENT and not subgraph.tensors[tensor].is_variable
        }
        return cls(producers, frozenset(subgraph.inputs))


@dataclass(slots=True, eq=False)
class Frame:
    """One call of a subgraph. Lists and mappings are by tensor number."""

    subgraph: Subgraph
    wiring: Wiring
    shapes: list[Shape | None]
    reasons: dict[int, str] = field(default_factory=dict)  # why a tensor has no shape
    references: dict[int, tuple[Frame, int]] = field(default_factory=dict)  # tensors that are another call's
    values: dict[int, Array | Unknown] = field(default_factory=dict)  # as far as they were asked for
    handles: dict[int, str] = field(default_factory=dict)  # variables that a tensor refers to
    calls: dict[int, Call] = field(default_factory=dict)  # by operator number
    asked: set[int] = field(default_factory=set)  # inputs whose value decided something here

    def reference(self, tensor: int) -> tuple[Frame, int]:
        """Return the call and tensor that this tensor is. References are stored resolved: one step is enough."""
        return self.references.get(tensor, (self, tensor))

    def choices(self) -> tuple[object, ...]:
        return tuple((number, call.choice()) for number, call in self.calls.items())
