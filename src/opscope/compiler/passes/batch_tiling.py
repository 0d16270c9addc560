"""Batch tiling: choose for every op how many equal tiles of the batch it runs in.

Where the activations of the whole batch do not fit local memory, neighbouring ops with the same number of tiles form
a tile group: all of them run for the first tile, then for the second, and what passes between them stays local. More
tiles need less memory at a time, but the weights are read once per tile. A dynamic programme over the ops finds the
numbers of tiles that move the fewest bytes to and from outer memory.

Example: 100 bytes of local memory, an op with 120 bytes alive around it (60 of them not its own) and 30 of weights.
With 1 tile 20 bytes are spilled and read back: 2 × 20 + 30 = 70 bytes. With 2 tiles 60 bytes are alive at a time,
nothing is spilled, and the weights are read twice: 2 × 30 = 60 bytes, so 2 tiles win. With 50 bytes of weights it is
90 against 100, and the batch stays whole.

How tightly tensors pack is known only after they have addresses. So the search runs twice, once assuming no
fragmentation of local memory and once assuming the worst. Both proposals, and the plan without tiles, are lowered to
commands, and the one whose commands move the fewest bytes is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isqrt

from ...core.errors import UsageError
from ...graph.graph import Graph
from ..codegen.context import LoweringContext
from ..codegen.lower import lower_below
from ..codegen.weights import WeightStream
from ..plan import Plan
from .footprint import Footprint, footprints


def tile_batch(plan: Plan) -> Plan:
    """The plan with a number of batch tiles for every op."""
    target, choices, undivided = plan.machine.target, divisors(batch_size(plan.graph)), (1,) * len(plan.placed)
    if len(choices) == 1 or plan.resident or target.local is None or target.tiling is None:
        return replace(plan, batch_tiles=undivided)
    context = LoweringContext(plan, target.tiling, target.local)
    room, steps = context.capacity - WeightStream(context).reserved_bytes, list(footprints(plan, context))
    if room <= 0:
        return replace(plan, batch_tiles=undivided)
    # Search twice: tensors packed without gaps, and with as much fragmentation as there can be.
    dense, loose = (TilingSearch(_useful(choices, steps, room), room, gaps=gaps) for gaps in (False, True))
    found = dict.fromkeys((undivided, dense.search(steps), loose.search(steps)))
    if len(found) == 1:
        return replace(plan, batch_tiles=undivided)
    promising = sorted(found, key=lambda tiles: dense.moved(steps, tiles))
    return cheapest([replace(plan, batch_tiles=tiles) for tiles in promising], preferred=list(found))


def batch_size(graph: Graph) -> int:
    """The leading extent of the first input; 1 where there is none."""
    shape = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    return shape[0] if shape else 1


def divisors(number: int) -> list[int]:
    """All divisors of a number, the smallest first."""
    small = [d for d in range(1, isqrt(max(1, number)) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)}) if number > 0 else [1]


def _useful(choices: Sequence[int], steps: Sequence[Footprint], room: float) -> list[int]:
    """The choices up to the first with which every op fits, so that a huge batch does not take long to search.

    With more tiles no op would fit any better; there would only be more room for tensors that wait for a tile group to
    end.
    """
    most = max((step.need + step.gaps for step in steps), default=0.0)
    first = next((tiles for tiles in choices if most <= tiles * room), choices[-1])
    return [tiles for tiles in choices if tiles <= first]


def cheapest(plans: Sequence[Plan], *, preferred: Sequence[tuple[int, ...]]) -> Plan:
    """The plan whose commands move fewest bytes to and from outer memory, with its commands.

    Plans are lowered in the order given, so the most promising should come first: lowering another one is abandoned as
    soon as it has moved more than the best so far. Among equals the one earliest in `preferred` wins.
    """
    best: Plan | None = None
    least = inf
    for plan in plans:
        wins_ties = best is not None and preferred.index(plan.batch_tiles) < preferred.index(best.batch_tiles)
        try:
            lowered = lower_below(plan, least + 1 if wins_ties else least)
        except UsageError:  # an op does not fit in any number of slices
            continue
        if lowered is not None:
            best, least = replace(plan, lowered=lowered), lowered.lowering.outer_bytes
    return best or next(plan for plan in plans if plan.batch_tiles == preferred[0])


@dataclass(frozen=True, slots=True)
class _PartialTiling:
    """The cheapest tiling of all ops so far that gives the last of them a certain number of tiles."""

    moved: float = 0.0  # bytes to and from outer memory
    runs: int = 0  # sum of the tiles of all ops; breaks ties: fewer is better
    peak: float = 0.0  # most bytes that an op of the current tile group needs on a lane
    carried: float = 0.0  # bytes held throughout the current tile group: inputs of its other tiles


class TilingSearch:
    """Dynamic programme over the ops: state = number of tiles of the last op, cost = bytes moved so far.

    `room` is the local memory of a lane; `gaps` says whether fragmentation is counted.
    """

    def __init__(self, choices: Sequence[int], room: float, *, gaps: bool) -> None:
        self.choices, self.room, self.gaps = choices, room, gaps

    def search(self, steps: Sequence[Footprint]) -> tuple[int, ...]:
        """The number of tiles of every op; the last step is the end of the graph, where everything is whole."""
        states = {1: _PartialTiling()}
        came_from: list[dict[int, int]] = []
        for step in steps:
            possible = [tiles for tiles in self.choices if step.divisible % tiles == 0]
            best = {tiles: self._best_predecessor(states, step, tiles) for tiles in possible}
            came_from.append({tiles: before for tiles, (before, _) in best.items()})
            states = {tiles: state for tiles, (_, state) in best.items()}
        return self._trace_back(came_from)

    def moved(self, steps: Sequence[Footprint], tiles: Sequence[int]) -> float:
        """Bytes to and from outer memory with these numbers of tiles."""
        state, before = _PartialTiling(), 1
        for step, now in zip(steps, (*tiles, 1), strict=True):
            state, before = self._extend(state, before, step, now), now
        return state.moved

    def _trace_back(self, came_from: Sequence[dict[int, int]]) -> tuple[int, ...]:
        """Follow the predecessors from the end, which has one tile, to the first op."""
        tiles, found = 1, []
        for before in reversed(came_from):
            tiles = before[tiles]
            found.append(tiles)
        return tuple(reversed(found[:-1]))

    def _best_predecessor(
        self, states: dict[int, _PartialTiling], step: Footprint, tiles: int
    ) -> tuple[int, _PartialTiling]:
        """The number of tiles of the op before from which this op is reached with fewest bytes, and that tiling."""
        reached = {before: self._extend(state, before, step, tiles) for before, state in states.items()}
        best = min(reached, key=lambda before: (reached[before].moved, reached[before].runs, before != tiles))
        return best, reached[best]

    def _extend(self, state: _PartialTiling, before: int, step: Footprint, tiles: int) -> _PartialTiling:
        """The tiling with one op more; `before` is the number of tiles of the op before it."""
        moved, carried, peak = state.moved, state.carried, state.peak
        if before != tiles:
            through, carried = self._regroup(state, before, step, tiles)
            moved, peak = moved + through, 0.0
        need = self._need(step) / tiles
        if carried and need + carried > self.room:  # spilled and read back
            moved, carried = moved + 2 * carried * step.lanes, 0.0
        moved += step.weights * tiles + self._spilled(step, tiles)
        return _PartialTiling(moved, state.runs + tiles, max(peak, need), carried)

    def _need(self, step: Footprint) -> float:
        return step.need + step.gaps if self.gaps else step.need

    def _regroup(self, state: _PartialTiling, before: int, step: Footprint, tiles: int) -> tuple[float, float]:
        """Where the number of tiles changes: bytes moved through outer memory, and bytes that stay on a lane instead.

        From 8 tiles to 2, each new tile is four old ones where they lie, if local memory holds them until the group
        ends: nothing moves. From 2 to 8 or to 3, everything is written out and read back tile by tile.
        """
        if step.views:  # a view has no bytes of its own that could be joined or divided
            return inf, 0.0
        waiting = step.alive * (1 - 1 / before)  # made by earlier tiles while the last one runs
        if before % tiles == 0 and waiting + state.peak <= self.room:
            return 0.0, step.alive * (1 - 1 / tiles)
        return 2 * step.alive * step.lanes, 0.0

    def _spilled(self, step: Footprint, tiles: int) -> float:
        """Bytes moved because an op does not fit: first other tensors are spilled, then its own largest are streamed.

        An op that streams runs in slices, and reads its weights once per slice.
        """
        over = self._need(step) / tiles - self.room
        if over <= 0:
            return 0.0
        others = min(over, step.others / tiles)
        moved, over = 2 * others * tiles, over - others
        for size in step.own if over > 0 else ():
            moved, over = moved + size, over - size / tiles
            if over <= 0:
                slices = max(1.0, 4 * sum(step.own) / tiles / self.room)  # two of each take half of local memory
                return moved * step.lanes + step.weights * tiles * (slices - 1)
        return moved * step.lanes
