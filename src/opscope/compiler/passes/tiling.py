"""Tiling: choose for every op how many equal tiles of the batch it runs in.

Where the activations of the whole batch do not fit local memory, neighbouring ops with the same number of tiles form
a tile group: all of them run for the first tile, then for the second, and what passes between them stays local. More
tiles need less memory at a time, but the weights are read once per tile. A dynamic programme over the ops finds the
numbers of tiles that move the fewest bytes to and from outer memory.

Example: 100 bytes of local memory, an op with 120 bytes alive around it (60 of them not its own) and 30 of weights.
With 1 tile 20 bytes are spilled and read back: 2 × 20 + 30 = 70 bytes. With 2 tiles 60 bytes are alive at a time,
nothing is spilled, and the weights are read twice: 2 × 30 = 60 bytes, so 2 tiles win. With 50 bytes of weights it is
90 against 100, and the batch stays whole.

How tightly tensors pack is known only after they have addresses. So the search runs twice, once assuming no
fragmentation of local memory and once assuming the worst. These proposals, for the parts of the batch that are priced
lowest and for the alternatives to them, are lowered to commands, and the one that is done first is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, isqrt

from ...core.errors import UsageError
from ..codegen.context import LoweringContext
from ..codegen.lower import Lowering, lower
from ..codegen.weights import WeightStream
from ..forecast import forecast_cycles
from ..plan import Part, Plan, Schedule
from .batch import batch_axes, batch_size, some_of, with_images
from .depth_first import depth_first
from .footprint import Footprint, footprints
from .residency import is_resident, kept_weights
from .schedule import schedule

_MOST_SLOTS = 16  # for weight tiles: 3 MB of them hide what vectors take between two products
MOST_COMMANDS = 30_000  # of all proposals that are lowered; beyond, the best so far is taken


def tile(plan: Plan) -> Plan:
    """The plan with the number of tiles of every op, of the proposal that is done first, and with its commands."""
    best: Plan | None = None
    least, spent = inf, 0
    problem: UsageError | None = None
    for parts in proposals(plan):
        if best is not None and spent > MOST_COMMANDS and parts[0].units > 1:
            continue
        written = depth_first(schedule(plan, parts))
        written = replace(written, resident=is_resident(written, plan.graph))
        try:
            lowering = lower(written)
        except UsageError as error:  # an op does not fit in any number of slices
            problem = problem or error
            continue
        cycles = forecast_cycles(lowering)
        spent += len(lowering.context.emitter.rows)
        if cycles < 0.995 * least:
            best, least = replace(plan, parts=parts, lowered=lowering), cycles
    if best is None or best.lowered is None:
        raise problem or UsageError(f"{plan.graph.name}: nothing to compile; expected ops")
    wider = _with_more_weights(best.lowered)
    if wider is not None:
        lowering = lower(wider)
        best = replace(best, lowered=lowering) if forecast_cycles(lowering) <= least else best
    return best


def proposals(plan: Plan) -> Iterator[tuple[Part, ...]]:
    """Yield parts with numbers of tiles, the most promising first."""
    seen: set[tuple[tuple[int, int, tuple[int, ...]], ...]] = set()  # images, number of the splits, tiles
    for parts in (plan.parts, *plan.alternatives):
        for tilings in product(*(_tilings(plan, part) for part in parts)):
            proposal = tuple(replace(part, tiles=tiles) for part, tiles in zip(parts, tilings, strict=True))
            key = tuple((part.images, id(part.splits), part.tiles) for part in proposal)
            if key not in seen:
                seen.add(key)
                yield proposal


def _tilings(plan: Plan, part: Part) -> list[tuple[int, ...]]:
    """Numbers of tiles for the ops of a part: as found with tensors packed without gaps, and with the worst gaps; and
    every unit on its own, where all ops can be cut so: it reads weights most often and needs least room.
    """
    undivided, choices = (1,) * len(plan.placed), divisors(part.units)
    if len(choices) == 1:
        return [undivided]
    found = part_footprints(plan, part)
    if found.resident or found.room <= 0:
        return [undivided]
    choices = _useful(choices, found.steps, found.room)
    searches = [TilingSearch(choices, found.room, gaps=gaps) for gaps in (False, True)]
    tilings = [search.search(found.steps) for search in searches]
    if all(step.divisible % part.units == 0 for step in found.steps[:-1]):
        tilings.append((part.units,) * len(plan.placed))
    return list(dict.fromkeys(tilings))


def _with_more_weights(lowering: Lowering) -> Schedule | None:
    """The schedule with local memory that no activation was put into given to weights; None: there is none.

    Half of it is for weight tiles that are read ahead while vectors are computed, the rest for weights that stay.
    """
    schedule, context = lowering.plan, lowering.context
    tiling = context.tiling
    if tiling.whole_weights or schedule.resident:
        return None
    least, size = lowering.weights.slots, lowering.weights.slot_bytes
    free = context.capacity - lowering.weights.reserved_bytes - max(memory.peak for memory in lowering.tensors.memory)
    slots = min(_MOST_SLOTS, least + int(free / 2 / size))
    kept = kept_weights(schedule, free - (slots - least) * size) if tiling.keeps_constants else frozenset[int]()
    return replace(schedule, slots=slots, kept=kept) if slots > least or kept else None


@dataclass(frozen=True, slots=True)
class PartFootprints:
    """What the ops of a part need, and the local memory that there is for it."""

    steps: list[Footprint]
    room: float
    resident: bool  # all constants fit beside the activations


def part_footprints(plan: Plan, part: Part) -> PartFootprints:
    """Footprints of a part's ops, were all of it run at once."""
    target = plan.machine.target
    if target.local is None or target.tiling is None:
        return PartFootprints([], 0.0, resident=False)
    axes, share = batch_axes(plan.graph), part.images / batch_size(plan.graph)
    graph = with_images(plan.graph, axes, part.images)
    placed = tuple(some_of(each, each.op, share) for each in plan.placed)
    whole = Schedule(graph, plan.machine, placed, part.splits, tuple(range(len(placed))))
    context = LoweringContext(whole, target.tiling, target.local)
    room = context.capacity - WeightStream(context).reserved_bytes
    return PartFootprints(list(footprints(whole, context, axes, part.units)), room, resident=is_resident(whole, graph))


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
