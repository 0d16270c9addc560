"""Search of tiles: for every op, the number of equal tiles of the batch that moves the fewest bytes.

Where the activations of the whole batch do not fit local memory, neighbouring ops with the same number of tiles form
a tile group: all of them run for the first tile, then for the second, and what passes between them stays local. More
tiles need less memory at a time, but the weights are read once per tile. A dynamic programme over the ops finds the
numbers of tiles that move the fewest bytes to and from outer memory.

Example: 100 bytes of local memory, an op with 120 bytes alive around it (60 of them not its own) and 30 of weights.
With 1 tile 20 bytes are spilled and read back: 2 × 20 + 30 = 70 bytes. With 2 tiles 60 bytes are alive at a time,
nothing is spilled, and the weights are read twice: 2 × 30 = 60 bytes, so 2 tiles win. With 50 bytes of weights it is
90 against 100, and the batch stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf, isqrt
from typing import NamedTuple

from .footprint import Footprint


def divisors(number: int) -> list[int]:
    """All divisors of a number, the smallest first."""
    small = [d for d in range(1, isqrt(max(1, number)) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)}) if number > 0 else [1]


def useful_tiles(choices: Sequence[int], steps: Sequence[Footprint], room: float) -> list[int]:
    """The choices up to the first with which every op fits, so that a huge batch does not take long to search.

    With more tiles no op would fit any better; there would only be more room for tensors that wait for a tile group to
    end.
    """
    most = max((step.need + step.gaps for step in steps), default=0.0)
    first = next((tiles for tiles in choices if most <= tiles * room), choices[-1])
    return [tiles for tiles in choices if tiles <= first]


class _PartialTiling(NamedTuple):
    """The cheapest tiling of all ops so far that gives the last of them a certain number of tiles."""

    moved: float = 0.0  # bytes to and from outer memory
    runs: int = 0  # sum of the tiles of all ops; breaks ties: fewer is better
    peak: float = 0.0  # most bytes that an op of the current tile group needs on a lane
    carried: float = 0.0  # bytes held throughout the current tile group: inputs of its other tiles
    spilled: float = 0.0  # bytes of a tile that are in outer memory until an op reads them


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

    def moved(self, steps: Sequence[Footprint], tiles: Sequence[int]) -> list[float]:
        """Bytes to and from outer memory of every op with these numbers of tiles, and at the end."""
        states, before = [_PartialTiling()], 1
        for step, now in zip(steps, (*tiles, 1), strict=True):
            state = states[-1] if before == now else self._regroup(states[-1], before, step, now)
            states.append(self._extend(state, step, now))
            before = now
        return [after.moved - state.moved for state, after in pairwise(states)]

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
        """The number of tiles of the op before from which this op is reached with fewest bytes, and that tiling.

        Its weights are read once per tile in any case: what has moved too much with them alone is not followed. The
        same number of tiles as before comes first: where nothing is regrouped, least is moved most often.
        """
        weights, found = step.weights * tiles, tiles
        best = self._extend(states[tiles], step, tiles) if tiles in states else None
        for before, state in states.items():
            if before == tiles:
                continue
            regrouped = self._regroup(state, before, step, tiles)
            if best is not None and regrouped.moved + weights > best.moved:
                continue
            reached = self._extend(regrouped, step, tiles)
            if best is None or (reached.moved, reached.runs) < (best.moved, best.runs):
                found, best = before, reached
        if best is None:
            raise ValueError("no op before this one has a tiling; expected one at the least")
        return found, best

    def _extend(self, state: _PartialTiling, step: Footprint, tiles: int) -> _PartialTiling:
        """The tiling with one op more, which has as many tiles as the one before it, or has been regrouped."""
        moved, runs, peak, carried, spilled = state
        need = self._need(step) / tiles
        if carried and need + carried > self.room:  # spilled and read back
            moved, carried = moved + 2 * carried * step.lanes, 0.0
        out = min(spilled, step.others / tiles)  # what the op reads is back
        others = min(max(0.0, need - self.room), step.others / tiles)
        moved += step.weights * tiles + 2 * max(0.0, others - out) * tiles * step.lanes
        moved += self._streamed(step, tiles, need - self.room - others)
        return _PartialTiling(moved, runs + tiles, max(peak, need), carried, max(out, others))

    def _need(self, step: Footprint) -> float:
        return step.need + step.gaps if self.gaps else step.need

    def _regroup(self, state: _PartialTiling, before: int, step: Footprint, tiles: int) -> _PartialTiling:
        """The tiling where the number of tiles changes: bytes move through outer memory, or stay on a lane instead.

        From 8 tiles to 2, each new tile is four old ones where they lie, if local memory holds them until the group
        ends: nothing moves. From 2 to 8 or to 3, everything is written out and read back tile by tile.
        """
        moved, runs, peak, _, spilled = state
        out = spilled * before / tiles
        if step.views:  # a view has no bytes of its own that could be joined or divided
            return _PartialTiling(inf, runs, 0.0, 0.0, out)
        waiting = step.alive * (1 - 1 / before)  # made by earlier tiles while the last one runs
        if before % tiles == 0 and waiting + peak <= self.room:
            return _PartialTiling(moved, runs, 0.0, step.alive * (1 - 1 / tiles), out)
        return _PartialTiling(moved + 2 * step.alive * step.lanes, runs, 0.0, 0.0, out)

    def _streamed(self, step: Footprint, tiles: int, over: float) -> float:
        """Bytes moved because an op does not fit even alone: results that can leave as they are made do, then its
        largest operands are streamed.

        An op whose operands are streamed runs in slices. It reads its weights once per slice, or its slices once per
        panel of weights that local memory holds.
        """
        if over <= 0:
            return 0.0
        moved = sliced = 0.0
        first, rest = ([step.made], step.read) if step.by_tiles else ([], sorted((step.made, *step.read), reverse=True))
        for size in first:
            moved, over = moved + size, over - size / tiles
        for size in rest:
            if over > 0:
                sliced, over = sliced + size, over - size / tiles
        if not sliced:
            return moved * step.lanes
        half = self.room / 2  # two slices of everything take the other half
        slices = max(1.0, 2 * (sum(step.read) + step.made) / tiles / half)
        panels = max(1.0, step.lane_weights / half)
        again = min(step.weights * tiles * (slices - 1), sliced * step.lanes * (panels - 1))
        return (moved + sliced) * step.lanes + again
