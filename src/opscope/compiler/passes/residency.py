"""Residency: weights that fit beside the activations stay in local memory, so only the first inference reads them.

Where not all of them do, those that fewest rows meet come first: reading them takes longest beside the work that they
are for. The others go through the ring of slots (`codegen/weights.py`). Weights in blocks stay as they are stored, and
go through the ring to be unpacked.
"""

from __future__ import annotations

from collections.abc import Collection

from ...estimate.kernels import has_weights
from ...estimate.memory import plan_memory
from ...estimate.work import DEQUANTIZE
from ...graph.graph import ABSENT, Graph, Role
from ..plan import Schedule
from .split_prices import weight_cuts


def is_resident(schedule: Schedule, graph: Graph) -> bool:
    """Whether all constants of the busiest core fit beside the activations of a graph."""
    target = schedule.machine.target
    if target.local is None or target.tiling is None or not target.tiling.keeps_constants:
        return False
    constants, room = constants_per_core(schedule), target.local.bytes.value
    if has_packed_weights(graph):
        room -= target.tiling.buffers.value * target.tiling.weight_bytes.value
    if constants > room:  # then the arena need not be planned
        return False
    return constants + plan_memory(graph, target.runtime).arena_bytes <= room


def has_packed_weights(graph: Graph) -> bool:
    """Whether weights of a graph are stored in blocks that have to be unpacked."""
    return any(has_weights(op, graph) and graph.tensors[op.inputs[1]].dtype in DEQUANTIZE for op in graph.ops)


def kept_weights(schedule: Schedule, room: float) -> frozenset[int]:
    """Weights that stay in so many bytes of the local memory of every core."""
    macs: dict[int, float] = {}
    for placed in schedule.placed:
        if has_weights(placed.op, schedule.graph) and placed.engine:
            t = placed.op.inputs[1]
            macs[t] = macs.get(t, 0.0) + placed.task.work.macs
    sizes = _bytes_per_core(schedule, macs)
    chosen: set[int] = set()
    for t in sorted(macs, key=lambda t: (macs[t] / max(1, schedule.graph.tensors[t].bytes or 0), t)):
        if sizes[t] <= room:
            chosen.add(t)
            room -= sizes[t]
    return frozenset(chosen)


def kept_bytes(schedule: Schedule, kept: Collection[int]) -> float:
    """Bytes that weights take in the local memory of the core that has most of them."""
    return sum(_bytes_per_core(schedule, kept).values()) if kept else 0.0


def _bytes_per_core(schedule: Schedule, weights: Collection[int]) -> dict[int, float]:
    found: dict[int, float] = dict.fromkeys(weights, 0.0)
    for placed, split in zip(schedule.placed, schedule.splits, strict=True):
        t = placed.op.inputs[1] if has_weights(placed.op, schedule.graph) else ABSENT
        if t in found:
            part = weight_cuts(placed.op, schedule.graph, split.sharding).largest
            found[t] = max(found[t], (schedule.graph.tensors[t].bytes or 0) * part)
    return found


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
