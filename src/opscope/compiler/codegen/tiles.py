"""Tiles: an op on a lane is computed tile by tile, so that loading, computing and storing overlap.

A tile waits for the pieces of its operands that it reads and for nothing else. Where a tensor is streamed through a
double buffer, slice k is loaded when the tile that read slice k - 2 is done, while tile k - 1 computes:

    load       s0   s1   s2 (after t0)   s3 (after t1)
    compute         t0   t1              t2 …
    store                w0   w1 …       tile t2 overwrites the buffer of t0, so it waits for w0

A product with streamed weights runs along its weight tiles, which cut channels; one that streams its activations too
runs along both: for every slice of rows all weight tiles, and the weights are read again for every slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from ...core.meaning import Carries
from ...graph.kinds import Family
from .context import LoweringContext
from .emit import CommandSpec, share
from .operands import Operand, OperandPlacement
from .tensors import CHANNELS, ROWS, LocalCopy, OuterCopy, Piece, Tensors
from .timing import TileCost

_PIECEWISE = (Family.ELEMENTWISE, Family.CONVERT)  # a piece of the output needs only that piece of the inputs


@dataclass(frozen=True, slots=True)
class Tile:
    """One step of an op on a lane: slice `row` of `rows` and, with streamed weights, weight tile `step` of `steps`."""

    row: int
    rows: int
    step: int = 0
    steps: int = 1

    @property
    def number(self) -> int:
        return self.row * self.steps + self.step

    @property
    def count(self) -> int:
        return self.rows * self.steps

    @property
    def low(self) -> float:
        return self.step / self.steps if self.rows == 1 else self.row / self.rows

    @property
    def high(self) -> float:
        return (self.step + 1) / self.steps if self.rows == 1 else (self.row + 1) / self.rows


class TileRunner:
    """Emits the commands of tiles, and keeps what their cycles are computed from."""

    def __init__(self, context: LoweringContext, tensors: Tensors) -> None:
        self.context, self.tensors = context, tensors
        self.costs: dict[int, TileCost] = {}  # command that computes → the inputs of its cycles
        self._fetched: dict[int, int] = {}  # lane → command after which the engine's private memory is free again

    def run(
        self, placement: OperandPlacement, tile: Tile, weights: Sequence[int] = (), *, weight_bytes: float = 0.0
    ) -> int:
        """Emit a tile, after the commands `weights` that load its weights. Returns the command that completes it."""
        along = self._along(placement, tile)
        after = list(weights)
        for operand in placement.operands:
            after += self._arrivals(placement, operand, tile, along)
        command = self._compute(placement, tile, self._cost(placement, tile, weight_bytes), after)
        for operand in placement.operands:
            self.tensors.record_use(operand.copy, command)
            if tile.step == tile.steps - 1:
                operand.users.append(command)
        for copy in placement.results:
            self.tensors.record_use(copy, command)
        if placement.streamed:
            placement.writes.append(self._write(placement, tile, command))
        else:
            for copy in placement.results:
                copy.along = along
                copy.pieces.append(Piece(tile.low, tile.high, command))
        return command

    def _compute(self, placement: OperandPlacement, tile: Tile, cost: TileCost, after: list[int]) -> int:
        """Emit the command; where its engine has a private memory, between a transfer into it and one out of it."""
        emitter, guards, spec = self.context.emitter, self._guards(placement, tile), self._spec(placement, tile, cost)
        if self.context.own_memory(self.context.plan.placed[placement.index].engine) is None:
            command = emitter.emit(spec, after, guards)
            self.costs[command] = cost
            return command
        worked = sum(operand.copy.size for operand in placement.operands) / tile.count
        before = [self._fetched[placement.lane]] if placement.lane in self._fetched else []
        bring = self.context.transfer(Carries.BRING, placement.lane, placement.index, worked, step=tile.number)
        brought = emitter.emit(bring, after, before)
        done = emitter.emit(replace(spec, address=0, local_bytes=0.0), [brought])
        self.costs[done] = cost
        fetch = self.context.transfer(
            Carries.FETCH,
            placement.lane,
            placement.index,
            spec.out_bytes,
            step=tile.number,
            address=spec.address,
            local_bytes=spec.local_bytes,
        )
        self._fetched[placement.lane] = emitter.emit(fetch, [done], guards)
        return self._fetched[placement.lane]

    def clear(self, placements: Sequence[OperandPlacement]) -> None:
        """Free the double buffers of streamed tensors."""
        for placement in placements:
            passing = [o.copy for o in placement.operands if o.streamed] + (
                placement.results if placement.streamed else []
            )
            for copy in passing:
                if copy.address is not None:
                    users = self.context.emitter.latest(copy.last_use.values())
                    self.tensors.memory[placement.lane].release(copy.address, tuple(users) or copy.guards)

    def _cost(self, placement: OperandPlacement, tile: Tile, weight_bytes: float) -> TileCost:
        portion = self.context.portion(self.context.plan.splits[placement.index], placement.lane)
        return TileCost(placement.index, portion, tile.count, weight_bytes)

    def _spec(self, placement: OperandPlacement, tile: Tile, cost: TileCost) -> CommandSpec:
        """The spec of the command that computes a tile; units of an engine take tiles in turn."""
        context, placed = self.context, self.context.plan.placed[placement.index]
        work, portion = placed.task.work, cost.portion
        size = share(context.out_bytes(placed.op) * portion, tile.number, tile.count)
        first = placement.results[0]
        return CommandSpec(
            placement.lane,
            context.group_of[placed.engine] + tile.number % context.engines[placed.engine].units,
            context.command_name(placed.form),
            placed.op.family.does,
            placement.index,
            context.compute_detail(placement.index, tile.number, tile.count),
            cost.cycles(placed),
            size,
            macs=share(work.macs * placed.task.trips * portion, tile.number, tile.count),
            address=first.tile_address(tile.number, tile.count),
            local_bytes=first.size / tile.count if first.address is not None else 0.0,
        )

    def _guards(self, placement: OperandPlacement, tile: Tile) -> list[int]:
        """Commands that must be done before the tile's result may be written: who used that memory before."""
        if placement.streamed and tile.number >= 2:
            return placement.writes[tile.number - 2]
        first = placement.streamed or tile.number == 0
        return [command for copy in placement.results for command in copy.guards] if first else []

    # ---- what a tile waits for ------------------------------------------------------------------------------------

    def _along(self, placement: OperandPlacement, tile: Tile) -> str:
        """Direction of the tiles: of an elementwise op that of its first full-size operand, so that pieces match."""
        op = self.context.plan.placed[placement.index].op
        if tile.steps > 1:
            return CHANNELS if tile.rows == 1 else ROWS
        if op.family not in _PIECEWISE:
            return ROWS
        full = (o.copy for o in placement.operands if not o.streamed and self._is_full(placement, o.position))
        return next((copy.along for copy in full if copy.pieces), ROWS)

    def _is_full(self, placement: OperandPlacement, position: int) -> bool:
        op, tensors = self.context.plan.placed[placement.index].op, self.context.graph.tensors
        return tensors[op.inputs[position]].elements == tensors[op.outputs[0]].elements

    def _arrivals(self, placement: OperandPlacement, operand: Operand, tile: Tile, along: str) -> list[int]:
        """Commands after which what a tile reads of an operand is there."""
        if operand.streamed:
            if tile.step == 0:
                operand.slice_done = self._slice(placement, operand, tile)
            return [operand.slice_done]
        copy = operand.copy
        if len(copy.pieces) <= 1:
            return [piece.command for piece in copy.pieces]
        return copy.commands(along, *self._window(placement, operand.position, copy, tile, along))

    def _window(
        self, placement: OperandPlacement, position: int, copy: LocalCopy, tile: Tile, along: str
    ) -> tuple[float, float]:
        """Range of an operand that a tile reads, as fractions of the lane's copy.

        Tile 1 of 4 of an op with 6 rows in common reads rows 1.5 to 3, so whole rows 1 to 2: (1/6, 3/6).
        """
        context = self.context
        op, split = context.plan.placed[placement.index].op, context.plan.splits[placement.index]
        needed = context.tensor_bytes(op.inputs[position]) * context.portion(split, placement.lane)
        if (tile.rows == 1 and tile.steps > 1) or (split.axis is not None and copy.size > 1.001 * needed):
            return 0.0, 1.0
        if along == CHANNELS:
            return (tile.low, tile.high) if self._is_full(placement, position) else (0.0, 1.0)
        rows = context.common_rows(placement.index, position, placement.lane)
        if rows <= 1:
            return 0.0, 1.0
        return floor(tile.low * rows + 1e-6) / rows, ceil(tile.high * rows - 1e-6) / rows

    # ---- streaming ------------------------------------------------------------------------------------------------

    def _slice(self, placement: OperandPlacement, operand: Operand, tile: Tile) -> int:
        """Load one slice of a streamed operand, and convert its layout where needed. Returns the last command."""
        context, tensors = self.context, self.tensors
        tensor = context.graph.ops[placement.index].inputs[operand.position]
        root, copy = tensors.root(tensor), operand.copy
        size, address = share(copy.size, tile.row, tile.rows), copy.tile_address(tile.row, tile.rows)
        guards = [operand.users[tile.row - 2]] if tile.row >= 2 else copy.guards
        moved = copy.size if self._is_needed_by_every_row(placement, operand.position) else size
        spec = context.transfer(
            Carries.READ,
            placement.lane,
            placement.index,
            moved,
            tensor=tensor,
            step=tile.row,
            address=address,
            local_bytes=size,
        )
        written = tensors.outer_writers(root, placement.lane)
        command = context.emitter.emit(
            spec, written[operand.awaited :], guards
        )  # the slice before, on the same queue, has waited for the earlier writes
        operand.awaited = len(written)
        tensors.record_use(copy, command)
        outer = tensors.outer_copy(root, placement.lane)
        tiled = outer is not None and outer.tiled
        if context.layout is None or tiled == placement.tiled or context.is_constant(root):
            return command
        change = tensors.conversion(
            placement.index,
            operand.position,
            placement.lane,
            moved,
            tiled=placement.tiled,
            step=tile.row,
            address=address,
        )
        command = context.emitter.emit(replace(change, local_bytes=size), [command])
        tensors.record_use(copy, command)
        return command

    def _is_needed_by_every_row(self, placement: OperandPlacement, position: int) -> bool:
        """Whether every slice needs all of an operand: the second one of a product that is not batched."""
        product = self.context.plan.placed[placement.index].op.family in (Family.CONTRACTION, Family.RECURRENT)
        return product and position > 0 and self.context.common_rows(placement.index, position, placement.lane) <= 1

    def _write(self, placement: OperandPlacement, tile: Tile, command: int) -> list[int]:
        """Write a tile of every output to outer memory. Returns the commands."""
        context, tensors = self.context, self.tensors
        op, split, writes = context.plan.placed[placement.index].op, context.plan.splits[placement.index], []
        for t in op.outputs:
            size = context.tensor_bytes(t) * context.portion(split, placement.lane)
            if not size:
                continue
            own = share(size, tile.number, tile.count)
            spec = context.transfer(Carries.WRITE, placement.lane, placement.index, own, tensor=t, step=tile.number)
            writes.append(context.emitter.emit(spec, [command]))
            tensors.record_use(placement.results[0], writes[-1])
            if tile.number == 0:
                tensors.set_outer_copy(t, placement.lane, OuterCopy(placement.tiled, size, []))
            state = tensors.outer_copy(t, placement.lane)
            if state is not None:
                state.writes.append(writes[-1])
        return writes
