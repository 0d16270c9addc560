"""Ops → stretches: where the activations of a whole batch do not fit local memory, a part of the batch goes first.

Every op runs in so many equal parts of the batch; neighbours with the same number run together, part after part, and
what passes between them stays local. More parts need less room, but read the weights once for each. A walk over the
ops finds the numbers that move the fewest bytes to and from outer memory: for every number the cheapest way to get
there, as on a shortest path.

How tightly tensors pack is known only when they have their places. So there are two walks, one that counts no gaps
between tensors and one that counts as many as there may be, and of what they propose, and of no parts at all, the
plan is taken whose commands move fewest bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isqrt

import numpy as np

from ...core.errors import UsageError
from ...graph.graph import Graph
from ..codegen.context import Workbench
from ..codegen.lower import Lowering
from ..codegen.weights import WeightStream
from ..plan import Plan
from .footprint import Demand, demands
from .unroll import unroll


def stretch(plan: Plan) -> Plan:
    """Choose a number of parts for every op."""
    target, choices, undivided = plan.machine.target, divisors(batch_of(plan.graph)), (1,) * len(plan.placed)
    if len(choices) == 1 or plan.resident or target.local is None or target.tiling is None:
        return replace(plan, parts=undivided)
    bench = Workbench(plan, target.tiling, target.local)
    room, steps = bench.capacity - WeightStream(bench).reserved, list(demands(plan, bench))
    if room <= 0:
        return replace(plan, parts=undivided)
    proposed = (Walk(_useful(choices, steps, room), room, gaps=gaps).run(steps) for gaps in (False, True))
    plans = [replace(plan, parts=parts) for parts in dict.fromkeys((undivided, *proposed))]
    return min(plans, key=outer_bytes) if len(plans) > 1 else plans[0]


def batch_of(graph: Graph) -> int:
    shape = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    return shape[0] if shape else 1


def divisors(number: int) -> list[int]:
    """All of them, the least first."""
    small = [d for d in range(1, isqrt(max(1, number)) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)}) if number > 0 else [1]


def _useful(choices: Sequence[int], steps: Sequence[Demand], room: float) -> list[int]:
    """Numbers of parts up to the first with which every op fits, so that a huge batch does not take long to cut.

    With more, no op would fit any better; there would only be more room for what waits until a stretch ends.
    """
    most = max((step.need + step.gaps for step in steps), default=0.0)
    first = next((parts for parts in choices if most <= parts * room), choices[-1])
    return [parts for parts in choices if parts <= first]


def outer_bytes(plan: Plan) -> float:
    """Bytes that a plan's commands move to and from outer memory; without end where it cannot be lowered."""
    lowering = Lowering(unroll(plan).plan)
    try:
        lowering.run()
    except UsageError:  # an op does not fit in any number of slices
        return inf
    table = lowering.bench.emitter.columns().commands
    routes = [number for carries, number in lowering.bench.routes.items() if carries.is_outer]
    return float(table["moved_bytes"][np.isin(table["route"], routes)].sum())


@dataclass(frozen=True, slots=True)
class _Way:
    """The cheapest way to run all ops so far, the last of them in a certain number of parts."""

    moved: float = 0.0  # bytes to and from outer memory
    runs: int = 0  # parts of all ops: of two ways that move as much, the one with fewer
    peak: float = 0.0  # bytes that the stretch at hand needs on a lane at the most
    carried: float = 0.0  # bytes that it holds beside them: made before, for its other parts


class Walk:
    """Finds the parts of every op, in room for so many bytes on a lane."""

    def __init__(self, choices: Sequence[int], room: float, *, gaps: bool) -> None:
        self.choices, self.room, self.gaps = choices, room, gaps

    def run(self, steps: Sequence[Demand]) -> tuple[int, ...]:
        ways = {1: _Way()}
        came_from: list[dict[int, int]] = []
        for step in steps:
            possible = [parts for parts in self.choices if step.divisible % parts == 0]
            best = {parts: self._best(ways, step, parts) for parts in possible}
            came_from.append({parts: before for parts, (before, _) in best.items()})
            ways = {parts: way for parts, (_, way) in best.items()}
        return self._walk_back(came_from)

    def _walk_back(self, came_from: Sequence[dict[int, int]]) -> tuple[int, ...]:
        """From the end, which has one part, to the first op."""
        parts, found = 1, []
        for before in reversed(came_from):
            parts = before[parts]
            found.append(parts)
        return tuple(reversed(found[:-1]))

    def _best(self, ways: dict[int, _Way], step: Demand, parts: int) -> tuple[int, _Way]:
        """Of all numbers of parts for the op before, the one from which this op is reached with least."""
        reached = {before: self._step(way, before, step, parts) for before, way in ways.items()}
        best = min(reached, key=lambda before: (reached[before].moved, reached[before].runs, before != parts))
        return best, reached[best]

    def _step(self, way: _Way, before: int, step: Demand, parts: int) -> _Way:
        moved, carried, peak = way.moved, way.carried, way.peak
        if before != parts:
            through, carried = self._change(way, before, step, parts)
            moved, peak = moved + through, 0.0
        need = self._need(step) / parts
        if carried and need + carried > self.room:  # it is moved out after all
            moved, carried = moved + 2 * carried * step.lanes, 0.0
        moved += step.weights * parts + self._spilled(step, parts)
        return _Way(moved, way.runs + parts, max(peak, need), carried)

    def _need(self, step: Demand) -> float:
        return step.need + step.gaps if self.gaps else step.need

    def _change(self, way: _Way, before: int, step: Demand, parts: int) -> tuple[float, float]:
        """Bytes that are moved where the number of parts changes, and those that stay on a lane."""
        if step.views:  # a view has no bytes of its own that could be joined or divided
            return inf, 0.0
        waiting = step.alive * (1 - 1 / before)  # made by earlier parts while the last one runs
        if before % parts == 0 and waiting + way.peak <= self.room:
            return 0.0, step.alive * (1 - 1 / parts)
        return 2 * step.alive * step.lanes, 0.0

    def _spilled(self, step: Demand, parts: int) -> float:
        """Bytes that do not fit beside an op: others move out and in again, then its own largest are streamed."""
        over = self._need(step) / parts - self.room
        if over <= 0:
            return 0.0
        others = min(over, step.others / parts)
        moved, over = 2 * others * parts, over - others
        for size in step.own if over > 0 else ():
            moved, over = moved + size, over - size / parts
            if over <= 0:
                slices = max(1.0, 4 * sum(step.own) / parts / self.room)  # two of each take half of local memory
                return moved * step.lanes + step.weights * parts * (slices - 1)
        return moved * step.lanes
