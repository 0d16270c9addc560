"""Residency: weights that fit beside the activations stay in local memory, so only the first inference reads them.

All or nothing: with some of the weights resident, the others would still need the ring of slots (`codegen/weights.py`).
"""

from __future__ import annotations

from dataclasses import replace

from ...estimate.memory import plan_memory
from ...graph.graph import ABSENT, Role
from ..plan import Plan, Split, channel_axis
from .place import has_weights


def choose_residency(plan: Plan) -> Plan:
    """The plan, with `resident` set where all constants of the busiest core fit beside the activations."""
    local = plan.machine.target.local
    if local is None or (tiling := plan.machine.target.tiling) is None or not tiling.keeps_constants:
        return plan
    activations = plan_memory(plan.graph, plan.machine.target.runtime).arena_bytes
    return replace(plan, resident=constants_per_core(plan) + activations <= local.bytes.value)


def constants_per_core(plan: Plan) -> float:
    """Bytes of constants that one core reads: its share of weights that are split by channel, all of the others."""
    needed: dict[int, float] = {}
    for placed, split in zip(plan.placed, plan.splits, strict=True):
        weights = placed.op.inputs[1] if has_weights(placed.op, plan.graph) else ABSENT
        cut = split.axis is not None and split.axis == channel_axis(placed.op, plan.graph)
        for t in placed.op.inputs:
            if t != ABSENT and plan.graph.tensors[t].role is Role.CONSTANT:
                part = _largest_part(plan, split) if cut and t == weights else 1.0
                needed[t] = max(needed.get(t, 0.0), (plan.graph.tensors[t].bytes or 0) * part)
    return sum(needed.values())


def _largest_part(plan: Plan, split: Split) -> float:
    lanes = len(split.devices) * plan.machine.cores
    return -(-split.extent // lanes) / split.extent
