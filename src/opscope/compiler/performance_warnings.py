"""Performance warnings: what in a program costs time that another choice would not, each with its op and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..core.meaning import Direction, Does
from ..estimate.kernels import padding
from ..estimate.placement import place_op
from ..graph.graph import DType
from ..program.program import NO_OP, Detail, Program
from .plan import Plan, running

CHURN_SHARE = 0.10  # of all vector work
POOR_TILING = 1.5  # padded work over real work
IMBALANCE = 1.25  # busiest core over the mean
_PACKED = [dtype.label for dtype in DType if dtype.has_blocks]


@dataclass(frozen=True, slots=True)
class PerformanceWarning:
    """One thing in a program that costs time."""

    kind: str
    op: str
    text: str
    cycles: float | None  # estimated cost; None: unknown


def performance_warnings(plan: Plan, program: Program) -> list[PerformanceWarning]:
    """All warnings of a program: those whose cost is unknown, then the costliest first."""
    found = [
        *_slow_engine(plan),
        *_poor_tiling(plan),
        *_spills(plan, program),
        *_imbalance(program),
        *_churn(program),
    ]
    return sorted(found, key=lambda warning: float("-inf") if warning.cycles is None else -warning.cycles)


def _slow_engine(plan: Plan) -> Iterator[PerformanceWarning]:
    """Products that a faster engine takes, but not in their type; every op is on the fastest of those that can."""
    for index, placed in enumerate(plan.placed):
        task = placed.task
        if placed.engine and task.work.macs:
            first = place_op(placed.op, task.work, plan.graph, plan.machine.target)
            if first.reason:
                text = f"runs on {placed.engine}, since {first.reason}: another type would be faster"
                yield PerformanceWarning("slow-engine", placed.op.name, text, _cycles(plan, index))
        elif placed.unknown:
            yield PerformanceWarning("unknown-cost", placed.op.name, f"is not costed: {placed.unknown}", None)


def _cycles(plan: Plan, index: int) -> float:
    """How long an op of a plan takes: that of the lane with the largest share of it, one part of the batch after the
    other.
    """
    parts = running(plan.parts, index)
    images = sum(part.images for part in parts)
    shares = (part.splits[index].sharding.largest * part.images / images for part in parts)
    return plan.placed[index].cycles * sum(shares)


def _poor_tiling(plan: Plan) -> Iterator[PerformanceWarning]:
    for index, placed in enumerate(plan.placed):
        engine = placed.task.placement.engine
        if engine is None or engine.tile_extent is None or not placed.task.work.macs:
            continue
        growth = padding(placed.task.extents, engine, placed.task.family)
        if growth > POOR_TILING:
            text = f"fills {100 / growth:.0f} % of its {engine.tile_extent.value:.0f}-wide tiles"
            yield PerformanceWarning("poor-tiling", placed.op.name, text, _cycles(plan, index) * (1 - 1 / growth))


def _spills(plan: Plan, program: Program) -> Iterator[PerformanceWarning]:
    """Ops whose results do not stay; outputs of the graph have to be written anyway."""
    table, leaving = program.commands, set(plan.graph.outputs)
    writes = [number for number, route in enumerate(program.routes) if route.carries == "write"]
    spilling = np.isin(table["route"], writes) & (table["op"] != NO_OP)
    for op in (op for op in np.unique(table["op"][spilling]) if not leaving.intersection(plan.placed[op].op.outputs)):
        moved = int(table["moved_bytes"][spilling & (table["op"] == op)].sum())
        cycles = 2 * moved / program.routes[writes[0]].bytes_per_cycle
        text = f"spills {moved / 1024:,.0f} KB to outer memory and reads them again"
        yield PerformanceWarning("spill", program.ops[op].name, text, cycles)


def _imbalance(program: Program) -> Iterator[PerformanceWarning]:
    table = program.commands
    computing = (table["route"] < 0) & (table["op"] != NO_OP)
    lanes = program.devices * program.cores
    core = table["device"].astype(np.int64) * program.cores + table["core"]
    cell = table["op"].astype(np.int64)[computing] * lanes + core[computing]
    work = np.bincount(cell, table["cycles"][computing], minlength=len(program.ops) * lanes).reshape(-1, lanes)
    busiest, mean = work.max(axis=1, initial=0), work.mean(axis=1)
    total = busiest.sum() or 1.0
    for op in np.nonzero((busiest > IMBALANCE * mean) & (busiest - mean > 0.001 * total))[0]:
        text = f"busiest core works {busiest[op] / mean[op]:.1f}× the mean"
        yield PerformanceWarning("imbalance", program.ops[op].name, text, float(busiest[op] - mean[op]))


def _churn(program: Program) -> Iterator[PerformanceWarning]:
    """Conversions between layouts that ops need, of all work on the engine that does them."""
    table = program.commands
    converts = np.array([_is_conversion(detail) for detail in program.details] or [False])
    converting = (table["does"] == Does.LAYOUT) & (table["route"] < 0) & converts[table["detail"]]
    if not converting.any():
        return
    engines = {program.groups[number].engine for number in np.unique(table["group"][converting]).tolist()}
    groups = [number for number, group in enumerate(program.groups) if group.engine in engines]
    cycles = table["cycles"][converting].sum()
    share = cycles / max(1, table["cycles"][np.isin(table["group"], groups) & (table["route"] < 0)].sum())
    if share > CHURN_SHARE:
        ops, counts = np.unique(table["op"][converting], return_counts=True)
        text = f"layout conversions are {100 * share:.0f} % of vector work, most of them for this op"
        lanes = program.devices * program.cores
        yield PerformanceWarning("layout-churn", program.ops[ops[counts.argmax()]].name, text, float(cycles / lanes))


def _is_conversion(detail: Detail) -> bool:
    """Reads a tensor and writes none: it is the same in another layout. Blocks are unpacked, which is no layout."""
    return all(operand.direction is Direction.IN and operand.dtype not in _PACKED for operand in detail.operands)
