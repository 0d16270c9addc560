"""State: caches that a network is given, updates and gives out again, as a target holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...graph.graph import Graph, Op, Role
from ...graph.kinds import KINDS, Family, Touches
from ..memory import MemoryPlan, live_bytes


@dataclass(frozen=True, slots=True)
class State:
    """What a network keeps from one inference to the next, or is given: a cache of keys and values.

    It stays in outer memory while it is updated in place. Where it is converted before it is used, that is done tile by
    tile on the way to the product that reads it, as for weights: the converted form is nowhere as a whole.
    """

    outside: frozenset[
        int
    ]  # tensors whose home is outer memory: inputs, variables, and what updating them leaves there
    caches: frozenset[int]  # of them, those that are updated
    streamed: frozenset[int]  # converted forms of caches

    @classmethod
    def of(cls, graph: Graph) -> State:
        outside = {t for t, tensor in enumerate(graph.tensors) if tensor.role in (Role.INPUT, Role.VARIABLE)}
        caches: set[int] = set()
        streamed: set[int] = set()
        for op in graph.ops:
            if KINDS[op.kind].touches is Touches.UPDATE and op.inputs[0] in outside:
                outside.update(op.outputs)
                caches.update((op.inputs[0], *op.outputs))
            if op.family is Family.CONVERT and op.inputs[0] in caches:
                streamed.update(op.outputs)
        return cls(frozenset(outside), frozenset(caches), frozenset(streamed))

    def live_beside(self, plan: MemoryPlan, steps: int) -> Sequence[int]:
        """Bytes that ask for local memory at each step."""
        if not self.caches:
            return plan.live_bytes
        away = self.caches | self.streamed
        return live_bytes([b for b in plan.buffers if b.tensors and away.isdisjoint(b.tensors)], steps)

    def streamed_bytes(self, op: Op, graph: Graph) -> int:
        """Of what an op reads and writes, the bytes that exist tile by tile only."""
        return sum(graph.tensors[t].bytes or 0 for t in (*op.inputs, *op.outputs) if t in self.streamed)
