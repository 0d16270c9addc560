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
from functools import lru_cache
from math import ceil, floor, inf
from typing import NamedTuple

from ...core.meaning import Carries
from ...estimate.price import commands_of, state_cycles
from ...estimate.work import numbers
from ...graph.graph import ABSENT
from ...graph.kinds import Family
from ...program.program import NO_ROUTE
from ..passes.axes import halo
from .context import LoweringContext
from .emit import CommandSpec, share
from .operands import Operand, OperandPlacement, StreamedOperand
from .tensors import CHANNELS, ROWS, LocalCopy, OuterCopy, Piece, Tensors
from .timing import TileCost

STATE_WEIGHTS = 2  # position of the weights that meet the state of a recurrent op
_PIECEWISE = (Family.ELEMENTWISE, Family.CONVERT)  # a piece of the output needs only that piece of the inputs


class Tile(NamedTuple):
    """One step of an op on a lane: slice `row` of `rows` and, with streamed weights, weight tile `step` of `steps`."""

    row: int
    rows: int
    step: int
    steps: int
    panel: int  # of weights: slices of rows are loaded again for every panel
    number: int
    turn: int  # number of its slice of rows in the order of loading
    low: float  # where it begins in the result, as a fraction of it
    high: float


@lru_cache(maxsize=4096)
def tile_of(row: int, rows: int, step: int = 0, steps: int = 1, panel: int = 0) -> Tile:
    """A tile; lanes and ops have the same ones."""
    part, parts = (step, steps) if rows == 1 else (row, rows)
    number, turn = row * steps + step, panel * rows + row
    return Tile(row, rows, step, steps, panel, number, turn, part / parts, (part + 1) / parts)


class TileShares(NamedTuple):
    """What the tiles of an op on a lane take and make; lanes with as much to do have it in common."""

    cost: TileCost
    cycles: float  # of each
    results: list[int]  # bytes that each makes
    macs: list[int]


class TiledOp:
    """What all tiles of an op have in common, on every lane."""

    def __init__(self, context: LoweringContext, index: int) -> None:
        placed = context.plan.placed[index]
        self.index, self.placed, self.op = index, placed, placed.op
        self.engine = context.engines[placed.engine]
        self.first_group, self.units = context.group_of[placed.engine], self.engine.units_for(placed.task.family)
        self.kind, self.does = context.command_name(placed.form), self.op.does
        self.starts = commands_of(self.op, self.engine)
        self.sharding = context.plan.splits[index].sharding
        self.result_bytes, self.macs = context.out_bytes(self.op), placed.task.work.macs * placed.task.trips
        self.waiting = 0.0  # cycles in which lanes wait for each other; what they send is a transfer of its own
        if context.hands_on_state(index):
            self.waiting = placed.task.work.steps * state_cycles(0.0, context.plan.machine)
        self._shares: dict[tuple[float, float, int, float], TileShares] = {}

    def shares(self, lane: int, count: int, weight_bytes: float) -> TileShares:
        """What each of so many tiles on a lane takes and makes; `weight_bytes` enter the engine for each of them."""
        key = self.sharding.share(lane), self.sharding.made.share(lane), count, weight_bytes
        if key not in self._shares:
            portion, made, *_ = key
            cost = TileCost(self.index, portion, count, weight_bytes, self.waiting / count)
            totals = self.result_bytes * made, self.macs * portion
            results, macs = ([share(total, number, count) for number in range(count)] for total in totals)
            self._shares[key] = TileShares(cost, cost.cycles(self.placed), results, macs)
        return self._shares[key]


class TileSeries:
    """All tiles of an op on a lane: what they have in common, and the command of each."""

    def __init__(
        self,
        context: LoweringContext,
        tiled: TiledOp,
        placement: OperandPlacement,
        *,
        steps: int = 1,
        weight_bytes: float = 0.0,
    ) -> None:
        """`weight_bytes` enter the engine for each of the tiles, of which every slice of rows has `steps`."""
        self.context, self.tiled, self.placement, self.steps = context, tiled, placement, steps
        self.count = placement.rows * steps
        self.shares = tiled.shares(placement.lane, self.count, weight_bytes)
        self.copies = [*[operand.copy for operand in placement.operands], *placement.results]
        self.streamed = placement.streamed_operands
        self.along = ROWS
        self._windows: dict[int, float] = {}  # position of an operand → see `_window`

    def spec(self, tile: Tile) -> CommandSpec:
        """The spec of the command that computes a tile; units of an engine take tiles in turn."""
        tiled, placement, number, count = self.tiled, self.placement, tile.number, self.count
        first, shares = placement.results[0], self.shares
        turn = placement.tiles - 1 if placement.streamed else number  # panels change the order of tiles
        return CommandSpec(
            placement.lane,
            tiled.first_group + number % tiled.units,
            tiled.kind,
            tiled.does,
            tiled.index,
            self.context.compute_detail(tiled.index, number, count, self.local_bytes),
            shares.cycles,
            shares.results[number],
            NO_ROUTE,
            0.0,
            shares.macs[number],
            first.tile_address(turn, count),
            first.size / count if first.address is not None else 0.0,
            tiled.starts,
        )

    def local_bytes(self) -> dict[int, float]:
        """Bytes of operands by position, and of the result (ABSENT), that local memory has at once."""
        placement = self.placement
        first, slices = placement.results[0], self.count if placement.streamed else placement.rows
        here = {operand.position: operand.copy.held(placement.rows) for operand in placement.operands}
        return {1: self.shares.cost.weight_bytes, **here, ABSENT: first.held(slices)}

    def guards(self) -> list[int]:
        """Commands that must be done before the tile's result may be written: who used that memory before."""
        placement = self.placement
        if placement.streamed and placement.tiles > 2:
            return placement.writes[placement.tiles - 3]
        first = placement.streamed or placement.tiles == 1
        return [command for copy in placement.results for command in copy.guards] if first else []

    # ---- what a tile waits for ------------------------------------------------------------------------------------

    def arrivals(self, operand: Operand, tile: Tile) -> list[int]:
        """Commands after which what a tile reads of an operand in local memory is there."""
        copy, position = operand.copy, operand.position
        if len(copy.pieces) <= 1:
            return [copy.pieces[0].command] if copy.pieces else []
        if position not in self._windows:
            self._windows[position] = self._window(position, copy)
        rows = self._windows[position]
        if not rows:
            return copy.commands(self.along, 0.0, 1.0)
        if rows == inf:
            return copy.commands(self.along, tile.low, tile.high)
        return copy.commands(self.along, floor(tile.low * rows + 1e-6) / rows, ceil(tile.high * rows - 1e-6) / rows)

    def begin(self) -> None:
        """Find the direction of the tiles: of an elementwise op that of its first full-size operand, so that pieces
        match. Ops before this one in a chain have emitted their first tile by then.
        """
        if self.steps > 1 and self.placement.rows == 1:
            self.along = CHANNELS
        elif self.steps == 1 and self.tiled.op.family in _PIECEWISE:
            whole = (o for o in self.placement.operands if not isinstance(o, StreamedOperand))
            full = (operand.copy for operand in whole if self._is_full(operand.position))
            self.along = next((copy.along for copy in full if copy.pieces), ROWS)

    def _window(self, position: int, copy: LocalCopy) -> float:
        """Rows of an operand of which a tile reads its share, whole ones; 0: it reads all; infinite: just its share.

        Tile 1 of 4 of an op with 6 rows in common reads rows 1.5 to 3, so whole rows 1 to 2.
        """
        context, index, lane = self.context, self.tiled.index, self.placement.lane
        needed = context.tensor_bytes(self.tiled.op.inputs[position]) * context.operand_share(index, position, lane)
        if (self.placement.rows == 1 and self.steps > 1) or copy.size > 1.001 * needed:
            return 0.0
        if self.along == CHANNELS:
            return inf if self._is_full(position) else 0.0
        rows = context.common_rows(index, position, lane)
        return rows if rows > 1 else 0.0

    def _is_full(self, position: int) -> bool:
        op, tensors = self.tiled.op, self.context.graph.tensors
        return tensors[op.inputs[position]].elements == tensors[op.outputs[0]].elements


class SharedOperand(NamedTuple):
    """A streamed operand of which several lanes of a device need the same slices, in as many rows."""

    rows: int
    users: list[tuple[OperandPlacement, StreamedOperand]]


class TileRunner:
    """Emits the commands of tiles, and keeps what their cycles are computed from."""

    def __init__(self, context: LoweringContext, tensors: Tensors) -> None:
        self.context, self.tensors = context, tensors
        self.costs: dict[int, TileCost] = {}  # command that computes → the inputs of its cycles
        self._fetched: dict[int, int] = {}  # lane → command after which the engine's private memory is free again

    def run(self, series: TileSeries, tile: Tile, weights: Sequence[int] = ()) -> int:
        """Emit a tile, after the commands `weights` that load its weights. Returns the command that completes it."""
        placement = series.placement
        if not placement.tiles:
            series.begin()
        placement.tiles += 1
        after = list(weights)
        for operand in placement.operands:
            if isinstance(operand, StreamedOperand):
                after.append(self._load_slice(placement, operand, tile))
            else:
                after += series.arrivals(operand, tile)
        command = self._compute(series, tile, after)
        self.tensors.record_use(command, *series.copies)
        for operand in series.streamed:
            operand.users[tile.turn] = command
        if placement.streamed:
            placement.writes.append(self._write(series, tile, command))
        else:
            piece = Piece(tile.low, tile.high, command)
            for copy in placement.results:
                copy.along = series.along
                copy.pieces.append(piece)
        return command

    def _compute(self, series: TileSeries, tile: Tile, after: list[int]) -> int:
        """Emit the command; where its engine has a private memory, between a transfer into it and one out of it."""
        emitter, guards, spec = self.context.emitter, series.guards(), series.spec(tile)
        if not series.tiled.engine.memory:
            command = emitter.emit(spec, after, guards)
            self.costs[command] = series.shares.cost
            return command
        lane, index, number = spec.core, spec.op, tile.number
        worked = sum(operand.copy.size for operand in series.placement.operands) / series.count
        before = [self._fetched[lane]] if lane in self._fetched else []
        bring = self.context.transfer(Carries.BRING, lane, index, worked, step=number)
        brought = emitter.emit(bring, after, before)
        done = emitter.emit(spec._replace(address=0, local_bytes=0.0), [brought])
        self.costs[done] = series.shares.cost
        fetch = self.context.transfer(
            Carries.FETCH,
            lane,
            index,
            spec.out_bytes,
            step=number,
            address=spec.address,
            local_bytes=spec.local_bytes,
        )
        self._fetched[lane] = emitter.emit(fetch, [done], guards)
        return self._fetched[lane]

    def prefetch(self, chain: Sequence[TileSeries], tile: Tile) -> None:
        """Load the slices of rows of a tile and of the next one ahead of it; what the same ops make comes when it is
        made.
        """
        made = {t for series in chain for t in series.tiled.op.outputs}
        for row in range(tile.row, min(tile.row + 2, tile.rows)):
            ahead = tile_of(row, tile.rows, tile.step, tile.steps, tile.panel)
            for series in chain:
                for operand in series.streamed:
                    if series.tiled.op.inputs[operand.position] not in made:
                        self._load_slice(series.placement, operand, ahead)

    def prefetch_together(self, together: Sequence[SharedOperand], tile: Tile) -> None:
        """The same for operands that several lanes need alike: one of them reads a slice and sends it to the others.

        The reader changes with every slice, so that all queues share the work.
        """
        for row in range(tile.row, min(tile.row + 2, tile.rows)):
            ahead = tile_of(row, tile.rows, tile.step, tile.steps, tile.panel)
            for shared in together:
                if shared.rows == tile.rows and ahead.turn not in shared.users[0][1].slices:
                    self._load_together(shared, ahead)

    def _load_together(self, shared: SharedOperand, tile: Tile) -> None:
        reader = tile.turn % len(shared.users)
        placement, operand = shared.users[reader]
        moved = self._moved_bytes(placement, operand, tile)
        guards = self.context.emitter.latest(c for _, each in shared.users for c in each.guards(tile.turn))
        read = self._read_slice(placement, operand, tile, moved, guards)
        tensor = self.context.graph.ops[placement.index].inputs[operand.position]
        spec = self.context.transfer(
            Carries.MULTICAST, placement.lane, placement.index, moved, tensor=tensor, step=tile.row
        )
        sent = self.context.emitter.emit(spec, [read])
        self.tensors.record_use(sent, operand.copy)
        for number, (own, each) in enumerate(shared.users):
            if number == reader:  # what it converts where it is has left by then
                each.slices[tile.turn] = self._arrived(own, each, tile, moved, read, guards=[sent])
            else:
                each.slices[tile.turn] = self._arrived(own, each, tile, moved, sent)

    def clear(self, placements: Sequence[OperandPlacement]) -> None:
        """Free the double buffers of streamed tensors."""
        for placement in placements:
            passing = [operand.copy for operand in placement.streamed_operands]
            for copy in passing + (placement.results if placement.streamed else []):
                if copy.address is not None:
                    users = self.context.emitter.latest(copy.last_use.values())
                    self.tensors.memory[placement.lane].release(copy.address, tuple(users) or copy.guards)

    # ---- streaming ------------------------------------------------------------------------------------------------

    def _load_slice(self, placement: OperandPlacement, operand: StreamedOperand, tile: Tile) -> int:
        """Load a slice of a streamed operand, unless it has been. Returns the command after which it is there."""
        if tile.turn not in operand.slices:
            operand.slices[tile.turn] = self._slice(placement, operand, tile)
        return operand.slices[tile.turn]

    def _slice(self, placement: OperandPlacement, operand: StreamedOperand, tile: Tile) -> int:
        """Load one slice of a streamed operand, and convert its layout where needed. Returns the last command."""
        moved = self._moved_bytes(placement, operand, tile)
        guards = operand.guards(tile.turn)
        if operand.source is not None:
            made = [piece.command for piece in operand.source.pieces]
            return self._convert_slice(placement, operand, tile, moved, after=made, guards=guards)
        command = self._read_slice(placement, operand, tile, moved, guards)
        return self._arrived(placement, operand, tile, moved, command)

    def _moved_bytes(self, placement: OperandPlacement, operand: StreamedOperand, tile: Tile) -> float:
        """Bytes that are read for a slice."""
        copy = operand.copy
        moved: float = share(copy.size, tile.row, tile.rows)
        if self.context.is_needed_whole(placement.index, operand.position, placement.lane):
            moved = copy.size
        work = self.context.plan.placed[placement.index].task.work
        if work.state_weight_bytes and operand.position == STATE_WEIGHTS:
            moved = copy.size * work.steps / (tile.rows * placement.panels)
        return moved + self._halo_bytes(placement, operand, tile)

    def _read_slice(
        self,
        placement: OperandPlacement,
        operand: StreamedOperand,
        tile: Tile,
        moved: float,
        guards: Sequence[int],
    ) -> int:
        """Read a slice from outer memory. The slice before, on the same queue, has waited for the earlier writes."""
        context, tensors, copy = self.context, self.tensors, operand.copy
        tensor = context.graph.ops[placement.index].inputs[operand.position]
        spec = context.transfer(
            Carries.READ,
            placement.lane,
            placement.index,
            moved,
            tensor=tensor,
            step=tile.row,
            address=copy.tile_address(tile.turn, tile.rows),
            local_bytes=share(copy.size, tile.row, tile.rows),
        )
        written = tensors.outer_writers(tensors.root(tensor), placement.lane)
        command = context.emitter.emit(spec, written[operand.awaited :], guards)
        operand.awaited = len(written)
        tensors.record_use(command, copy)
        return command

    def _arrived(
        self,
        placement: OperandPlacement,
        operand: StreamedOperand,
        tile: Tile,
        moved: float,
        command: int,
        *,
        guards: Sequence[int] = (),
    ) -> int:
        """Convert the layout of a slice that a command has brought, where needed. Returns the last command."""
        context, tensors = self.context, self.tensors
        root = tensors.root(context.graph.ops[placement.index].inputs[operand.position])
        outer = tensors.outer_copy(root, placement.lane)
        tiled = outer is not None and outer.tiled
        if context.layout is None or tiled == placement.tiled or context.is_constant(root):
            return command
        return self._convert_slice(placement, operand, tile, moved, after=[command], guards=guards)

    def _convert_slice(
        self,
        placement: OperandPlacement,
        operand: StreamedOperand,
        tile: Tile,
        moved: float,
        *,
        after: Sequence[int],
        guards: Sequence[int] = (),
    ) -> int:
        """Convert the layout of a slice, behind these commands: where it was read to, or from the copy that is here."""
        context, tensors, copy = self.context, self.tensors, operand.copy
        change, cost = tensors.conversion(
            placement.index,
            operand.position,
            placement.lane,
            moved,
            tiled=placement.tiled,
            step=tile.row,
            address=copy.tile_address(tile.turn, tile.rows),
        )
        command = context.emitter.emit(
            change._replace(local_bytes=share(copy.size, tile.row, tile.rows)), after, guards
        )
        context.vector_costs[command] = cost
        for used in (copy, operand.source):
            if used is not None:
                tensors.record_use(command, used)
        return command

    def _halo_bytes(self, placement: OperandPlacement, operand: StreamedOperand, tile: Tile) -> float:
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

    def _write(self, series: TileSeries, tile: Tile, command: int) -> list[int]:
        """Write a tile of every output to outer memory. Returns the commands."""
        context, tensors, placement, writes = self.context, self.tensors, series.placement, []
        for t in series.tiled.op.outputs:
            size = context.tensor_bytes(t) * context.result_share(placement.index, placement.lane)
            if not size:
                continue
            own = share(size, tile.number, series.count)
            spec = context.transfer(Carries.WRITE, placement.lane, placement.index, own, tensor=t, step=tile.number)
            writes.append(context.emitter.emit(spec, [command]))
            tensors.record_use(writes[-1], placement.results[0])
            if tile.number == 0:
                tensors.set_outer_copy(t, placement.lane, OuterCopy(placement.tiled, size, []))
            state = tensors.outer_copy(t, placement.lane)
            if state is not None:
                state.writes.append(writes[-1])
        return writes
