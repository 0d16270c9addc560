"""What commands cost: the only part of them that depends on how fast a target is, and not on how large.

Commands are emitted once, and can be timed again for a machine on which every decision of the compiler stays the same:
the same chip at the fast or at the slow end of its figures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...machine.target import Route
from ..plan import Placed, Plan
from .emit import Columns, whole_cycles


@dataclass(frozen=True, slots=True)
class TileCost:
    """What the cycles of one tile follow from."""

    op: int
    portion: float  # of the op's work that falls to the lane
    tiles: int  # that the portion is cut into
    weight_bytes: float  # that enter the engine for it; 0: none

    def cycles(self, placed: Placed) -> float:
        """An equal share of the lane's work, or what the engine charges for any command; loading weights is a bound."""
        engine = placed.task.placement.engine
        fixed = None if engine is None else engine.command_cycles
        computing = placed.cycles * self.portion / self.tiles if fixed is None else fixed.value
        rate = None if engine is None else engine.weight_bytes_per_cycle
        loading = 0.0 if rate is None or not self.weight_bytes else self.weight_bytes / rate.value
        return max(loading, computing)


def issue_cycles(route: Route) -> float:
    """Of the thread that starts a transfer."""
    return route.issue_cycles.value if route.issue_cycles is not None else 1.0


def timed_for(plan: Plan, columns: Columns, costs: dict[int, TileCost]) -> Columns:
    """The same commands with the cycles that they take in another plan; `costs` are of tiles, by number of command."""
    commands = columns.commands.copy()
    cycles = commands["cycles"]
    for number, route in enumerate(plan.machine.target.routes):
        cycles[commands["route"] == number] = whole_cycles(issue_cycles(route))
    numbers = np.fromiter(costs, np.int64, len(costs))
    cycles[columns.place[numbers]] = [whole_cycles(cost.cycles(plan.placed[cost.op])) for cost in costs.values()]
    return replace(columns, commands=commands)
