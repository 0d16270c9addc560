"""Tiles: an op on a lane is computed tile by tile, so that loading, computing and storing overlap.

A tile waits for the pieces of its operands that it reads and for nothing else. Where a tensor is streamed through a
double buffer, slice k is loaded when the tile that read slice k - 2 is done, while tile k - 1 computes:

    load       s0   s1   s2 (after t0)   s3 (after t1)
    compute         t0   t1              t2 …
    store                w0   w1 …       tile t2 overwrites the buffer of t0, so it waits for w0

Slice k + 1 is asked for before tile k computes: one queue does both, and a store that waits must not hold up a load.

A product with streamed weights runs along its weight tiles, which cut channels; one that streams its activations too
runs along both: for every panel of weights all slices of rows, and for every slice all tiles of the panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

from ...core.meaning import Carries
from ...estimate.price import commands_of, state_cycles
from ...estimate.work import numbers
from ...graph.kinds import Family
from ..passes.axes import halo
from .context import LoweringContext
from .emit import CommandSpec, share
from .operands import Operand, OperandPlacement
from .tensors import CHANNELS, ROWS, LocalCopy, OuterCopy, Piece, Tensors
from .timing import TileCost

STATE_WEIGHTS = 2  # position of the weights that meet the state of a recurrent op
_PIECEWISE = (Family.ELEMENTWISE, Family.CONVERT)  # a piece of the output needs only that piece of the inputs


@dataclass(frozen=True, slots=True)
class Tile:
    """One step of an op on a lane: slice `row` of `rows` and, with streamed weights, weight tile `step` of `steps`."""

    row: int
    rows: int
    step: int = 0
    steps: int = 1
    panel: int = 0  # of weights: slices of rows are loaded again for every panel

    @property
    def number(self) -> int:
        return self.row * self.steps + self.step

    @property
    def turn(self) -> int:
        """Number of its slice of rows in the order of loading."""
        return self.panel * self.rows + self.row

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
        placement.tiles += 1
        after = list(weights)
        for operand in placement.operands:
            after += self._arrivals(placement, operand, tile, along)
        command = self._compute(placement, tile, self._cost(placement, tile, weight_bytes), after)
        for operand in placement.operands:
            self.tensors.record_use(operand.copy, command)
            if operand.streamed:
                operand.users[tile.turn] = command
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
        emitter, guards, spec = self.context.emitter, self._guards(placement), self._spec(placement, tile, cost)
        if self.context.own_memory(self.context.plan.placed[placement.index].engine) is None:
            command = emitter.emit(spec, after, guards)
            self.costs[command] = cost
            return command
        worked = sum(operand.copy.size for operand in placement.operands) / tile.count
        before = [self._fetched[placement.lane]] if placement.lane in self._fetched else []
        bring = self.context.transfer(Carries.BRING, placement.lane, placement.index, worked, step=tile.number)
        brought = emitter.emit(bring, after, before)
        done = emitter.emit(spec._replace(address=0, local_bytes=0.0), [brought])
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

    def prefetch(self, placements: Sequence[OperandPlacement], tile: Tile) -> None:
        """Load a tile's slices of rows ahead of it; those that the same ops make come when they are made."""
        own = {placement.index for placement in placements}
        for placement in placements:
            op = self.context.plan.placed[placement.index].op
            for operand in placement.operands:
                made_here = self.context.maker.get(op.inputs[operand.position]) in own
                if operand.streamed and not made_here and tile.turn not in operand.slices:
                    operand.slices[tile.turn] = self._slice(placement, operand, tile)

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
        context, index = self.context, placement.index
        portion, waiting = context.portion(context.plan.splits[index], placement.lane), 0.0
        if context.hands_on_state(index):  # its bytes are a transfer of their own
            steps = context.plan.placed[index].task.work.steps
            waiting = steps * state_cycles(0.0, context.plan.machine) / tile.count
        return TileCost(index, portion, tile.count, weight_bytes, waiting)

    def _spec(self, placement: OperandPlacement, tile: Tile, cost: TileCost) -> CommandSpec:
        """The spec of the command that computes a tile; units of an engine take tiles in turn."""
        context, placed = self.context, self.context.plan.placed[placement.index]
        work, portion = placed.task.work, cost.portion
        made = context.result_share(placement.index, placement.lane)
        size = share(context.out_bytes(placed.op) * made, tile.number, tile.count)
        first = placement.results[0]
        turn = placement.tiles - 1 if placement.streamed else tile.number  # panels change the order of tiles
        engine = context.engines[placed.engine]
        return CommandSpec(
            placement.lane,
            context.group_of[placed.engine] + tile.number % engine.units_for(placed.task.family),
            context.command_name(placed.form),
            placed.op.family.does,
            placement.index,
            context.compute_detail(placement.index, tile.number, tile.count),
            cost.cycles(placed),
            size,
            macs=share(work.macs * placed.task.trips * portion, tile.number, tile.count),
            address=first.tile_address(turn, tile.count),
            local_bytes=first.size / tile.count if first.address is not None else 0.0,
            starts=commands_of(placed.op, engine),
        )

    def _guards(self, placement: OperandPlacement) -> list[int]:
        """Commands that must be done before the tile's result may be written: who used that memory before."""
        if placement.streamed and placement.tiles > 2:
            return placement.writes[placement.tiles - 3]
        first = placement.streamed or placement.tiles == 1
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
            if tile.turn not in operand.slices:
                operand.slices[tile.turn] = self._slice(placement, operand, tile)
            return [operand.slices[tile.turn]]
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
        op = context.plan.placed[placement.index].op
        own = context.operand_share(placement.index, position, placement.lane)
        needed = context.tensor_bytes(op.inputs[position]) * own
        if (tile.rows == 1 and tile.steps > 1) or copy.size > 1.001 * needed:
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
        size, address = share(copy.size, tile.row, tile.rows), copy.tile_address(tile.turn, tile.rows)
        guards = [operand.users[tile.turn - 2]] if tile.turn >= 2 else copy.guards
        moved = copy.size if self._is_needed_by_every_row(placement, operand.position) else size
        work = context.plan.placed[placement.index].task.work
        if work.state_weight_bytes and operand.position == STATE_WEIGHTS:
            moved = copy.size * work.steps / (tile.rows * placement.panels)
        moved += self._halo_bytes(placement, operand, tile)
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
        change, cost = tensors.conversion(
            placement.index,
            operand.position,
            placement.lane,
            moved,
            tiled=placement.tiled,
            step=tile.row,
            address=address,
        )
        command = context.emitter.emit(change._replace(local_bytes=size), [command])
        context.vector_costs[command] = cost
        tensors.record_use(copy, command)
        return command

    def _halo_bytes(self, placement: OperandPlacement, operand: Operand, tile: Tile) -> float:
        """Bytes of the rows that a slice shares with its neighbours, where windows overlap: they are read again."""
        op = self.context.plan.placed[placement.index].op
        if operand.position or tile.rows == 1 or not numbers(op, "kernel"):
            return 0.0
        shape = self.context.graph.tensors[op.inputs[0]].shape or ()
        channel = op.attributes.get("channel_axis")
        axis = next((i for i in range(1, len(shape)) if i != channel), 0)
        images = shape[0] * self.context.operand_share(placement.index, 0, placement.lane) if shape else 1.0
        if images >= tile.rows:  # slices are whole images
            return 0.0
        return operand.copy.size / max(1.0, images) * sum(halo(op, self.context.graph, axis, axis))

    def _is_needed_by_every_row(self, placement: OperandPlacement, position: int) -> bool:
        """Whether every slice needs all of an operand: the second one of a product that is not batched."""
        product = self.context.plan.placed[placement.index].op.family in (Family.CONTRACTION, Family.RECURRENT)
        return product and position > 0 and self.context.common_rows(placement.index, position, placement.lane) <= 1

    def _write(self, placement: OperandPlacement, tile: Tile, command: int) -> list[int]:
        """Write a tile of every output to outer memory. Returns the commands."""
        context, tensors = self.context, self.tensors
        op, writes = context.plan.placed[placement.index].op, []
        for t in op.outputs:
            size = context.tensor_bytes(t) * context.result_share(placement.index, placement.lane)
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
