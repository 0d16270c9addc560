"""One tile of one op on one lane: wait for what it reads, compute, hand on what it made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from ...core.meaning import Carries
from ...graph.kinds import Family
from .context import Workbench
from .emit import Order, share
from .operands import Desk, Operand
from .tensors import CHANNELS, ROWS, Held, Outside, Piece, Tensors
from .timing import TileCost

_PIECEWISE = (Family.ELEMENTWISE, Family.CONVERT)  # a piece of the output needs only that piece of the inputs


@dataclass(frozen=True, slots=True)
class Tile:
    """A step of an op on a lane: some of its rows and, where weights are streamed, some of its channels."""

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
    """Emits the commands of tiles."""

    def __init__(self, bench: Workbench, tensors: Tensors) -> None:
        self.bench, self.tensors = bench, tensors
        self.costs: dict[int, TileCost] = {}  # command that computes → what its cycles follow from
        self._fetched: dict[int, int] = {}  # lane → command after which the memory of its own is free again

    def run(self, desk: Desk, tile: Tile, weights: Sequence[int] = (), *, weight_bytes: float = 0.0) -> int:
        """Compute a tile; `weights` bring the weights that it reads. Returns its command."""
        along = self._along(desk, tile)
        after = list(weights)
        for operand in desk.operands:
            after += self._arrivals(desk, operand, tile, along)
        command = self._compute(desk, tile, self._cost(desk, tile, weight_bytes), after)
        for operand in desk.operands:
            self.tensors.touch(operand.held, command)
            if tile.step == tile.steps - 1:
                operand.users.append(command)
        for held in desk.results:
            self.tensors.touch(held, command)
        if desk.streamed:
            desk.writes.append(self._write(desk, tile, command))
        else:
            for held in desk.results:
                held.along = along
                held.pieces.append(Piece(tile.low, tile.high, command))
        return command

    def _compute(self, desk: Desk, tile: Tile, cost: TileCost, after: list[int]) -> int:
        """Emit the command; around it, where its engine works in a memory of its own, what brings and fetches."""
        emitter, guards, order = self.bench.emitter, self._guards(desk, tile), self._order(desk, tile, cost)
        if self.bench.own_memory(self.bench.plan.placed[desk.index].engine) is None:
            command = emitter.emit(order, after, guards)
            self.costs[command] = cost
            return command
        worked = sum(operand.held.size for operand in desk.operands) / tile.count
        before = [self._fetched[desk.lane]] if desk.lane in self._fetched else []
        bring = self.bench.transfer(Carries.BRING, desk.lane, desk.index, worked, step=tile.number)
        brought = emitter.emit(bring, after, before)
        done = emitter.emit(replace(order, address=0, local_bytes=0.0), [brought])
        self.costs[done] = cost
        fetch = self.bench.transfer(
            Carries.FETCH,
            desk.lane,
            desk.index,
            order.out_bytes,
            step=tile.number,
            address=order.address,
            local_bytes=order.local_bytes,
        )
        self._fetched[desk.lane] = emitter.emit(fetch, [done], guards)
        return self._fetched[desk.lane]

    def clear(self, desks: Sequence[Desk]) -> None:
        """Give back the places that slices went through."""
        for desk in desks:
            passing = [o.held for o in desk.operands if o.streamed] + (desk.results if desk.streamed else [])
            for held in passing:
                if held.address is not None:
                    users = self.bench.emitter.latest(held.touched.values())
                    self.tensors.memory[desk.lane].release(held.address, tuple(users) or held.guards)

    def _cost(self, desk: Desk, tile: Tile, weight_bytes: float) -> TileCost:
        portion = self.bench.portion(self.bench.plan.splits[desk.index], desk.lane)
        return TileCost(desk.index, portion, tile.count, weight_bytes)

    def _order(self, desk: Desk, tile: Tile, cost: TileCost) -> Order:
        bench, placed = self.bench, self.bench.plan.placed[desk.index]
        work, portion = placed.task.work, cost.portion
        size = share(bench.out_bytes(placed.op) * portion, tile.number, tile.count)
        first = desk.results[0]
        return Order(
            desk.lane,
            bench.group_of[placed.engine] + tile.number % bench.engines[placed.engine].units,
            bench.command_name(placed.form),
            placed.op.family.does,
            desk.index,
            bench.compute_detail(desk.index, tile.number, tile.count),
            cost.cycles(placed),
            size,
            macs=share(work.macs * placed.task.trips * portion, tile.number, tile.count),
            address=first.at(tile.number, tile.count),
            local_bytes=first.size / tile.count if first.address is not None else 0.0,
        )

    def _guards(self, desk: Desk, tile: Tile) -> list[int]:
        """Commands that must be done before the tile may be written."""
        if desk.streamed and tile.number >= 2:
            return desk.writes[tile.number - 2]
        first = desk.streamed or tile.number == 0
        return [command for held in desk.results for command in held.guards] if first else []

    # ---- what a tile waits for ------------------------------------------------------------------------------------

    def _along(self, desk: Desk, tile: Tile) -> str:
        """Which way an op is cut: a piecewise one as its first operand of full size, so that pieces follow pieces."""
        op = self.bench.plan.placed[desk.index].op
        if tile.steps > 1:
            return CHANNELS if tile.rows == 1 else ROWS
        if op.family not in _PIECEWISE:
            return ROWS
        full = (o.held for o in desk.operands if not o.streamed and self._is_full(desk, o.position))
        return next((held.along for held in full if held.pieces), ROWS)

    def _is_full(self, desk: Desk, position: int) -> bool:
        op, tensors = self.bench.plan.placed[desk.index].op, self.bench.graph.tensors
        return tensors[op.inputs[position]].elements == tensors[op.outputs[0]].elements

    def _arrivals(self, desk: Desk, operand: Operand, tile: Tile, along: str) -> list[int]:
        if operand.streamed:
            if tile.step == 0:
                operand.slice_done = self._slice(desk, operand, tile)
            return [operand.slice_done]
        held = operand.held
        if len(held.pieces) <= 1:
            return [piece.command for piece in held.pieces]
        return held.commands(along, *self._window(desk, operand.position, held, tile, along))

    def _window(self, desk: Desk, position: int, held: Held, tile: Tile, along: str) -> tuple[float, float]:
        """Share of an operand that a tile reads."""
        bench = self.bench
        op, split = bench.plan.placed[desk.index].op, bench.plan.splits[desk.index]
        needed = bench.tensor_bytes(op.inputs[position]) * bench.portion(split, desk.lane)
        if (tile.rows == 1 and tile.steps > 1) or (split.axis is not None and held.size > 1.001 * needed):
            return 0.0, 1.0
        if along == CHANNELS:
            return (tile.low, tile.high) if self._is_full(desk, position) else (0.0, 1.0)
        rows = bench.common_rows(desk.index, position, desk.lane)
        if rows <= 1:
            return 0.0, 1.0
        return floor(tile.low * rows + 1e-6) / rows, ceil(tile.high * rows - 1e-6) / rows

    # ---- what passes through --------------------------------------------------------------------------------------

    def _slice(self, desk: Desk, operand: Operand, tile: Tile) -> int:
        """Read one slice of an operand, and change the order of its elements where the engine needs another."""
        bench, tensors = self.bench, self.tensors
        tensor = bench.graph.ops[desk.index].inputs[operand.position]
        root, held = tensors.root(tensor), operand.held
        size, address = share(held.size, tile.row, tile.rows), held.at(tile.row, tile.rows)
        guards = [operand.users[tile.row - 2]] if tile.row >= 2 else held.guards
        moved = held.size if self._is_needed_by_every_row(desk, operand.position) else size
        order = bench.transfer(
            Carries.READ, desk.lane, desk.index, moved, tensor=tensor, step=tile.row, address=address, local_bytes=size
        )
        written = tensors.sources(root, desk.lane)
        command = bench.emitter.emit(order, written[operand.awaited :], guards)  # issued behind the slice before it
        operand.awaited = len(written)
        tensors.touch(held, command)
        outside = tensors.outside(root, desk.lane)
        tiled = outside is not None and outside.tiled
        if bench.layout is None or tiled == desk.tiled or bench.is_constant(root):
            return command
        change = tensors.conversion(
            desk.index, operand.position, desk.lane, moved, tiled=desk.tiled, step=tile.row, address=address
        )
        command = bench.emitter.emit(replace(change, local_bytes=size), [command])
        tensors.touch(held, command)
        return command

    def _is_needed_by_every_row(self, desk: Desk, position: int) -> bool:
        """The second operand of a product that is not batched streams past every slice of the first."""
        product = self.bench.plan.placed[desk.index].op.family in (Family.CONTRACTION, Family.RECURRENT)
        return product and position > 0 and self.bench.common_rows(desk.index, position, desk.lane) <= 1

    def _write(self, desk: Desk, tile: Tile, command: int) -> list[int]:
        """Copy a tile of every output to outer memory."""
        bench, tensors = self.bench, self.tensors
        op, split, writes = bench.plan.placed[desk.index].op, bench.plan.splits[desk.index], []
        for t in op.outputs:
            size = bench.tensor_bytes(t) * bench.portion(split, desk.lane)
            if not size:
                continue
            own = share(size, tile.number, tile.count)
            order = bench.transfer(Carries.WRITE, desk.lane, desk.index, own, tensor=t, step=tile.number)
            writes.append(bench.emitter.emit(order, [command]))
            tensors.touch(desk.results[0], writes[-1])
            if tile.number == 0:
                tensors.put_outside(t, desk.lane, Outside(desk.tiled, size, []))
            state = tensors.outside(t, desk.lane)
            if state is not None:
                state.writes.append(writes[-1])
        return writes
