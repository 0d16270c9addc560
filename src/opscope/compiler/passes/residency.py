"""Residency: weights that fit beside the activations stay in local memory, so only the first inference reads them.

All or nothing: with some of the weights resident, the others would still need the ring of slots (`codegen/weights.py`).
"""

from __future__ import annotations

from ...estimate.kernels import has_weights
from ...estimate.memory import plan_memory
from ...graph.graph import ABSENT, Graph, Role
from ..plan import Schedule
from .split_prices import weight_cuts


def is_resident(schedule: Schedule, graph: Graph) -> bool:
    """Whether all constants of the busiest core fit beside the activations of a graph."""
    target = schedule.machine.target
    if target.local is None or target.tiling is None or not target.tiling.keeps_constants:
        return False
    activations = plan_memory(graph, target.runtime).arena_bytes
    return constants_per_core(schedule) + activations <= target.local.bytes.value


def constants_per_core(schedule: Schedule) -> float:
    """Bytes of constants that one core reads: its share of weights that are split by channel, all of the others."""
    needed: dict[int, float] = {}
    for placed, split in zip(schedule.placed, schedule.splits, strict=True):
        weights = placed.op.inputs[1] if has_weights(placed.op, schedule.graph) else ABSENT
        for t in placed.op.inputs:
            if t != ABSENT and schedule.graph.tensors[t].role is Role.CONSTANT:
                part = weight_cuts(placed.op, schedule.graph, split.sharding).largest if t == weights else 1.0
                needed[t] = max(needed.get(t, 0.0), (schedule.graph.tensors[t].bytes or 0) * part)
    return sum(needed.values())
