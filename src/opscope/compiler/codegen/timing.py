"""Cycles of commands: the only part of a program that depends on how fast a target is, and not on how large.

Placement, splits, tiles, addresses and order follow from sizes and from comparisons of costs. Where a faster or slower
target (the ends of its figures' ranges) leads to the same decisions, only the `cycles` column can differ. Then the
commands are not emitted again: `TileCost` keeps what the cycles of each tile were computed from, and `retime_columns`
computes that column anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...core.errors import UsageError
from ...estimate.price import launch_cycles, launches_of
from ...machine.target import Engine, Route, Target
from ..plan import Placed, Schedule
from .emit import Columns, whole_cycles


class TileCost(NamedTuple):
    """The inputs from which the cycles of one tile are computed."""

    op: int
    portion: float  # of the op's work that falls to the lane
    tiles: int  # that the portion is cut into
    weight_bytes: float  # that enter the engine for it; 0: none
    waiting: float = 0.0  # cycles that lanes wait for each other while it runs

    def cycles(self, placed: Placed) -> float:
        """Cycles of the tile: an equal share of the lane's work, but no less than loading its weights takes.

        64 KB of weights at 256 bytes a cycle take 256 cycles, however few rows they are multiplied with. An engine
        with a fixed cost per command takes that instead of the share. Every command is launched, and every step of one
        that is recurrent.
        """
        engine = placed.task.placement.engine
        fixed = None if engine is None else engine.command_cycles
        computing = placed.cycles * self.portion / self.tiles if fixed is None else fixed.value
        rate = None if engine is None else engine.weight_bytes_per_cycle
        loading = 0.0 if rate is None or not self.weight_bytes else self.weight_bytes / rate.value
        starts = placed.task.trips * launches_of(placed.op)
        return max(loading, computing) + launch_cycles(engine) * starts + self.waiting


class VectorCost(NamedTuple):
    """What the vector engine does between ops: it adds partial sums, converts layouts, or dequantizes weights."""

    form: str  # a kernel of the engine, a figure of the target's layout, or `add`
    size: float  # bytes
    times: int = 1

    def cycles(self, target: Target, engine: Engine | None) -> float:
        """Cycles of the command, launches included."""
        return self.times * (self._working(target, engine) + launch_cycles(engine))

    def _working(self, target: Target, engine: Engine | None) -> float:
        if engine is not None and self.form in engine.kernels:
            return engine.kernels[self.form].value * self.size / 1024
        if self.form != "add":
            return float(getattr(target.layout, self.form).value) * self.size / 1024
        if engine is None:
            return 0.0
        rate = engine.element_ops_per_cycle.get("f16", engine.element_ops_per_cycle.get("*"))
        return self.size / 2 / rate.value if rate is not None else 0.0


def issue_cycles(route: Route) -> float:
    """Cycles that the issuing thread spends on starting a transfer."""
    return route.issue_cycles.value if route.issue_cycles is not None else 1.0


def retime_columns(
    plan: Schedule, columns: Columns, costs: dict[int, TileCost], between: dict[int, VectorCost], *, vector: str
) -> Columns:
    """The same commands with the cycles of another plan.

    `costs` are those of tiles, `between` those of what the engine `vector` does between ops, by number at emission.
    """
    commands = columns.commands.copy()
    cycles = commands["cycles"]
    for number, route in enumerate(plan.machine.target.routes):
        cycles[commands["route"] == number] = whole_cycles(issue_cycles(route))
    target = plan.machine.target
    engine = next((engine for engine in target.engines if engine.name == vector), None)
    numbers = np.array([*costs, *between], np.int64)
    found = [whole_cycles(cost.cycles(plan.placed[cost.op])) for cost in costs.values()]
    found += [whole_cycles(cost.cycles(target, engine)) for cost in between.values()]
    most = np.iinfo(cycles.dtype).max
    if max(found, default=0) > most:
        raise UsageError(
            f"{target.name}: one command takes {max(found):,} cycles at the end of its figures' ranges; "
            f"expected at most {most:,}"
        )
    cycles[columns.row_of[numbers]] = found
    return replace(columns, commands=commands)
