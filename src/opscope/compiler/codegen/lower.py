"""Lowering: plan → commands. Every lane runs the same ops on its own portion, tile by tile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import ceil

from ...core.errors import UsageError
from ...core.meaning import Does
from ...estimate.kernels import has_weights
from ...graph.graph import ABSENT, Op, Role
from ...graph.kinds import Family
from ...program.program import NO_OP, Detail
from ..plan import Placed, Schedule, Split
from .batch_tiles import divide_into_batch_tiles, join_batch_tiles
from .context import LoweringContext
from .emit import CommandSpec
from .exchange import add_up, exchange_parts, hand_on_state
from .operands import Chain, OperandPlacement, OperandPlacer, StreamedOperand, operands_of
from .shared_reads import read_together
from .tensors import LocalCopy, OuterCopy, Piece, Tensors
from .tiles import SharedOperand, Tile, TiledOp, TileRunner, TileSeries, tile_of
from .weights import LoadedTile, Ring, TileLoads, WeightStream

_LONGEST_CHAIN = 32  # ops: placing a chain takes time with the cube of its length


@dataclass(frozen=True, slots=True)
class _Body:
    """A control op (loop, branch) whose body is being lowered."""

    index: int
    end: int  # position behind its last op
    first: int  # its first command


def lower(schedule: Schedule) -> Lowering:
    """The commands of a schedule."""
    lowering = Lowering(schedule)
    lowering.run()
    return lowering


class Lowering:
    """One pass over the ops of a schedule in order; `run` fills the emitter."""

    def __init__(self, plan: Schedule) -> None:
        target = plan.machine.target
        if target.tiling is None or target.local is None:
            raise UsageError(f"{target.name}: cannot be compiled for; its file has no [tiling] or no local memory")
        self.plan = plan
        self.context = LoweringContext(plan, target.tiling, target.local)
        self.weights = WeightStream(self.context)
        reserved = self.weights.reserved_bytes
        if reserved >= self.context.capacity:
            raise UsageError(
                f"{target.name}: {reserved:,} bytes of constants and weight tiles leave nothing of its "
                f"{self.context.capacity:,} bytes of local memory; expected smaller tiles in [tiling]"
            )
        self.tensors = Tensors(self.context, reserved_bytes=reserved)
        self.placer = OperandPlacer(self.context, self.tensors)
        self.tiles = TileRunner(self.context, self.tensors)
        self._bodies: list[_Body] = []

    def run(self) -> None:
        """Emit everything.

        Results of the graph leave behind the next ops: their writes wait until they are made, and loads that are
        issued behind a write wait with it.
        """
        self._inputs_arrive()
        position, made = 0, set[int]()
        while position < len(self.plan.placed):
            self._close_bodies(position)
            chain = self._chain(position)
            ops = [self.plan.placed[index].op for index in chain]
            self.tensors.current_op = position
            self.tensors.pinned = self.tensors.roots(t for op in ops for t in (*op.inputs, *op.outputs))
            self._lower(chain)
            self.tensors.pinned = ()
            self._leave(made)
            for op in ops:
                self.tensors.release_dead(op)
            made = {t for op in ops for t in op.outputs}
            position += len(chain)
        self._close_bodies(position)
        self._outputs_leave()

    def _chain(self, start: int) -> list[int]:
        """Positions of the ops from `start` that run as a chain: neighbours that make rows of one from rows of another.

        A chain runs depth first, tile 1 through all ops, then tile 2: what passes between them needs two tiles of
        memory instead of a whole tensor.
        """
        first, split = self.plan.placed[start], self.plan.splits[start]
        chain = [start]
        if not self.context.is_by_rows(first.op) or not first.engine or not self._takes_chains(first.engine):
            return chain
        for index in range(start + 1, min(start + _LONGEST_CHAIN, len(self.plan.placed))):
            placed, other = self.plan.placed[index], self.plan.splits[index]
            same = (
                self.context.is_by_rows(placed.op)
                and (placed.engine, placed.op.scope) == (first.engine, first.op.scope)
                and other.sharding == split.sharding
                and self.context.out_shape(placed.op) == self.context.out_shape(first.op)
                and (self._alike(placed.op, first.op) or self._is_too_large(first.op, split))
                and self._reads_alike(chain, index)
            )
            if not same:
                break
            chain.append(index)
        return chain

    def _alike(self, op: Op, other: Op) -> bool:
        """Whether two ops work in the same layouts, on results of one size."""
        same_size = self.context.out_bytes(op) == self.context.out_bytes(other)
        return same_size and self.context.keeps_layout(op) == self.context.keeps_layout(other)

    def _is_too_large(self, op: Op, split: Split) -> bool:
        """Whether a lane could not hold a result in both layouts and what is made of it: it must not become whole."""
        return 3 * self.context.out_bytes(op) * split.sharding.made.largest > self.context.capacity

    def _takes_chains(self, engine: str) -> bool:
        """Whether an engine runs chains safely, whose intermediate tensors are double buffers without guards.

        Tile k overwrites tile k - 2 after its reader, because a unit runs its commands in order. That holds where tiles
        k and k - 2 go to the same unit: with one or two units.
        """
        found = self.context.engines[engine]
        return found.units <= 2 and not found.memory

    def _reads_alike(self, chain: list[int], index: int) -> bool:
        """Whether no two different inputs of the chain and an op are views of the same bytes."""
        read = {t for i in (*chain, index) for t in self.plan.placed[i].op.inputs if t != ABSENT}
        return len(read) == len(self.tensors.roots(read))

    def _lower(self, chain: list[int]) -> None:
        """Emit the commands of one op, or of a chain of elementwise ops."""
        placed = self.plan.placed[chain[0]]
        op = placed.op
        if op.kind == "join":
            join_batch_tiles(self.tensors, op.inputs, op.outputs[0], outside="outside" in op.attributes)
        elif op.kind == "exchange":
            exchange_parts(self.context, self.tensors, chain[0])
        elif op.kind == "divide":
            divide_into_batch_tiles(self.tensors, op.inputs[0], op.outputs)
        elif op.family is Family.VIEW and op.inputs and op.inputs[0] != ABSENT:
            for t in op.outputs:
                self.tensors.alias(op.inputs[0], t)
        elif op.family is Family.CONTROL:
            self._open_body(chain[0])
        elif not placed.engine:
            self._pass_through(chain[0])
        elif op.family in (Family.CONTRACTION, Family.RECURRENT):
            self._read_together(chain)
            self._product(chain[0], placed)
        else:
            self._read_together(chain)
            self._vector(chain)

    # ---- ops with work --------------------------------------------------------------------------------------------

    def _product(self, index: int, placed: Placed) -> None:
        """Emit a product: along its weight tiles when weights are streamed, else by rows; both when it is too large."""
        split, context = self.plan.splits[index], self.context
        weighted = has_weights(placed.op, self.plan.graph)
        placements: dict[int, OperandPlacement] = {}
        chain = Chain(context, self.tensors, [index])
        tiles = {lane: self.weights.tiles(index, lane) if weighted else 1 for lane in context.lanes(split)}
        for lane, count in tiles.items():
            natural = 1 if weighted else chain.slice_count(lane)
            tiled = context.is_tiled(placed)
            placements[lane] = self.placer.place_chain(chain, lane, tiled=tiled, rows=natural, steps=count)[0]
        own = self._own_ring(index, tiles) if weighted and context.tiling.whole_weights else None
        steps = max(tiles.values())
        ring, panel = (self.weights.ring, steps) if own is None else (own, steps)
        if weighted and own is None:
            ring, panel = self._panel(index, placements, tiles)
        for placement in placements.values():
            placement.panels = ceil(steps / panel)
        tiled_op = TiledOp(context, index)
        series = {lane: self._series(tiled_op, placement, tiles[lane]) for lane, placement in placements.items()}
        self._product_tiles(index, series, ring, panel)
        if ring is not self.weights.ring:
            self._free_panel(ring)
        for placement in placements.values():
            self.tiles.clear([placement])
        if context.has_partial_sums(index):
            add_up(self.context, self.tensors, index)
        if context.hands_on_state(index):
            hand_on_state(self.context, self.tensors, index)

    def _series(self, tiled: TiledOp, placement: OperandPlacement, steps: int) -> TileSeries:
        """The tiles of a product on a lane, whose weights come in so many steps."""
        index, lane, size = placement.index, placement.lane, 0.0
        if has_weights(tiled.op, self.plan.graph):
            size = self.weights.loaded_bytes(index, lane, steps) * tiled.placed.task.trips
            size += self.weights.state_bytes(index, lane, placement.rows * steps)
        return TileSeries(self.context, tiled, placement, steps=steps, weight_bytes=size)

    def _product_tiles(self, index: int, series: dict[int, TileSeries], ring: Ring, panel: int) -> None:
        """Emit all tiles of a product: every panel of weights meets all slices of rows."""
        weighted = has_weights(self.plan.placed[index].op, self.plan.graph)
        rows, steps = max(s.placement.rows for s in series.values()), max(s.steps for s in series.values())
        stays = panel <= ring.slots
        active = [{lane: s for lane, s in series.items() if row < s.placement.rows} for row in range(rows)]
        counts = [{lane: s.steps for lane, s in found.items()} for found in active]
        together = self._streamed_together(index, [s.placement for s in series.values()])
        loads = TileLoads(self.weights, ring, index)
        for number, first in enumerate(range(0, steps, panel)):
            here = range(first, min(first + panel, steps))
            if weighted:
                loads.follow([(step, lanes) for lanes in (counts[:1] if stays else counts) for step in here])
            for row, step in product(range(rows), here):
                working = {
                    lane: (s, tile_of(row, s.placement.rows, step, s.steps, number))
                    for lane, s in active[row].items()
                    if step < s.steps
                }
                turn = step - first if stays else row * steps + step
                loads.emit(turn)
                for tile in dict.fromkeys(tile for _, tile in working.values()) if together else ():
                    self.tiles.prefetch_together(together, tile)
                for each, tile in working.values():
                    if each.streamed:
                        self.tiles.prefetch([each], tile)
                loads.emit_ahead(turn)
                for lane, (each, tile) in working.items():
                    self._product_tile(each, tile, loads.tile(turn, lane), ring)

    def _streamed_together(self, index: int, placements: Sequence[OperandPlacement]) -> list[SharedOperand]:
        """Operands that lanes stream alike: outer memory has them whole, and the lanes run in as many slices."""
        needs, inputs = self.plan.splits[index].needs, self.plan.graph.ops[index].inputs
        cores, tensors = self.plan.machine.cores, self.tensors
        found: dict[object, list[tuple[OperandPlacement, StreamedOperand]]] = {}
        for placement in placements if needs else ():
            lane = placement.lane
            for operand in placement.streamed_operands:
                root, box = tensors.root(inputs[operand.position]), needs[operand.position].boxes.get(lane)
                outer = tensors.outer_copy(root, lane)
                if operand.source is None and (outer is None or tensors.is_whole(root, outer.size)):
                    key = lane // cores, operand.position, box, placement.rows, placement.panels, operand.copy.size
                    found.setdefault(key, []).append((placement, operand))
        return [SharedOperand(users[0][0].rows, users) for users in found.values() if len(users) > 1]

    def _product_tile(self, series: TileSeries, tile: Tile, weights: LoadedTile | None, ring: Ring) -> None:
        """Emit one tile of a product, behind the load of its weights; None: it has none, or they are there."""
        command = self.tiles.run(series, tile, weights.commands if weights is not None else ())
        if weights is not None:
            ring.record_use(series.placement.lane, weights.number, command)

    def _own_ring(self, index: int, tiles: dict[int, int]) -> Ring | None:
        """A ring for the weights of one op, on the only lane: in as few tiles as there is room for.

        Units hold a tile each, and get the next when all of them are done. What is in the way is spilled before
        weights are read in more tiles than units.
        """
        (lane,) = tiles
        units = self.weights.units(self.plan.placed[index])
        size = self.weights.loaded_bytes(index, lane, 1)
        for count in range(units, max(tiles[lane], units) + 1, units):
            slot = ceil(size / count)
            place = self.tensors.allocate(slot * units, lane)
            if place is not None:
                tiles[lane] = count
                return Ring(units, slot, {lane: place[0]}, {lane: place[1]}, together=True)
        return None

    def _panel(self, index: int, placements: dict[int, OperandPlacement], tiles: dict[int, int]) -> tuple[Ring, int]:
        """The ring for an op's weights, and how many of its tiles stay there while all slices of rows pass.

        Weights that are read once per slice cost slices × weights; in panels, slices are read once per panel instead.
        """
        rows, steps, ring = max(p.rows for p in placements.values()), max(tiles.values()), self.weights.ring
        if rows == 1 or self.weights.are_at_hand(index) or steps <= ring.slots:
            return ring, steps
        slot = self.weights.slot_bytes
        streamed = sum(o.copy.size for p in placements.values() for o in p.streamed_operands)
        weights = sum(self.weights.loaded_bytes(index, lane, 1) for lane in placements)
        for count in (ceil(steps / parts) for parts in (1, 2, 4, 8, 16, 32, 64)):
            if count <= ring.slots or rows * weights <= weights + ceil(steps / count) * streamed:
                break
            found = {lane: self.tensors.memory[lane].allocate(count * slot) for lane in placements}
            placed = {lane: place for lane, place in found.items() if place is not None}
            if len(placed) == len(found):
                addresses = {lane: address for lane, (address, _) in placed.items()}
                return Ring(count, slot, addresses, {lane: guards for lane, (_, guards) in placed.items()}), count
            for lane, (address, users) in placed.items():
                self.tensors.memory[lane].release(address, users)
        return ring, steps

    def _free_panel(self, ring: Ring) -> None:
        for lane, address in ring.address.items():
            used = [command for users in ring.users.get(lane, ())[-ring.slots :] for command in users]
            guards = tuple(self.context.emitter.latest(used)) or ring.guards[lane]
            self.tensors.memory[lane].release(address, guards)

    def _vector(self, indices: list[int]) -> None:
        """Emit a chain on every lane, each tile through all of its ops before the next tile."""
        chain = Chain(self.context, self.tensors, indices)
        tiled_ops = [TiledOp(self.context, index) for index in indices]
        for lane in self.context.lanes(self.plan.splits[indices[0]]):
            rows = chain.slice_count(lane)
            placements = self.placer.place_chain(chain, lane, tiled=chain.is_tiled(lane), rows=rows)
            series = [TileSeries(self.context, *each) for each in zip(tiled_ops, placements, strict=True)]
            streams = any(each.streamed for each in series)
            for row in range(placements[0].rows):
                tile = tile_of(row, placements[0].rows)
                if streams:
                    self.tiles.prefetch(series, tile)
                for each in series:
                    self.tiles.run(each, tile)
            self.tiles.clear(placements)

    def _read_together(self, chain: list[int]) -> None:
        """Read graph inputs and constants that several cores need alike once for all of them; weights have a ring."""
        for index in chain:
            op = self.plan.placed[index].op
            for position, t in operands_of(op, self.plan.graph) if self.plan.splits[index].needs else ():
                root = self.tensors.root(t)
                is_read = self.plan.graph.tensors[root].role in (Role.INPUT, Role.CONSTANT)
                is_table = op.kind == "gather" and position == 0  # of which each lane reads its own rows
                if is_read and not is_table and root not in self.context.resident_constants:
                    read_together(self.tensors, index, position)

    # ---- ops without work of their own ----------------------------------------------------------------------------

    def _pass_through(self, index: int) -> None:
        """An op of unknown cost: it takes no time, but its outputs are there only after its inputs."""
        op, split, lanes = self.plan.placed[index].op, self.plan.splits[index], range(self.context.lane_count)
        inputs = [t for t in op.inputs if t != ABSENT]
        made = [command for t in inputs for lane in lanes for command in self.tensors.producers(t, lane)]
        after = self.context.emitter.latest(made)
        for lane in self.context.lanes(split):
            self._define_outputs(op, lane, after)

    def _define_outputs(self, op: Op, lane: int, after: list[int]) -> None:
        for t in op.outputs:
            size = self.context.tensor_bytes(t)
            place = self.tensors.allocate(size, lane) if size else (0, ())
            if place is None:
                self.tensors.set_outer_copy(t, lane, OuterCopy(False, size, after))
                continue
            pieces = [Piece(0.0, 1.0, command) for command in (*after, *place[1])]
            self.tensors.store(t, lane, LocalCopy(pieces, size, address=place[0] if size else None), tiled=False)

    def _open_body(self, index: int) -> None:
        """Begin the body of a control op, which follows it; no op of it starts before its operands are there."""
        op, split, graph = self.plan.placed[index].op, self.plan.splits[index], self.plan.graph
        for position, t in enumerate(op.inputs):  # the body has other names for what it gets of the graph's inputs
            if t != ABSENT and graph.tensors[t].role is Role.INPUT:
                if split.needs:
                    read_together(self.tensors, index, position)
                for lane in self.context.lanes(split):
                    self.tensors.load_operand(index, position, lane, tiled=False)
        self.tensors.body_waits[op.name] = {
            lane: [command for t in op.inputs if t != ABSENT for command in self.tensors.producers(t, lane)]
            for lane in self.context.lanes(split)
        }
        inside, end = {op.name}, index + 1
        while end < len(graph.ops) and graph.ops[end].scope in inside:
            if graph.ops[end].family is Family.CONTROL:
                inside.add(graph.ops[end].name)
            end += 1
        self._bodies.append(_Body(index, end, len(self.context.emitter.rows)))

    def _close_bodies(self, position: int) -> None:
        """End the bodies that end here: outputs of a control op are there when all commands of its body are done."""
        while self._bodies and self._bodies[-1].end <= position:
            body, context = self._bodies.pop(), self.context
            op, lanes = self.plan.placed[body.index].op, context.lanes(self.plan.splits[body.index])
            commands = {*range(body.first, len(context.emitter.rows))}
            commands.update(c for gate in self.tensors.body_waits[op.name].values() for c in gate)
            spec = CommandSpec(
                lanes[0],
                context.doorbell_group,
                context.command_name(op.kind),
                op.does,
                body.index,
                context.compute_detail(body.index, 0, 1),
                1.0,
            )
            done = context.emitter.emit(spec, context.emitter.latest(commands))
            for lane in lanes:
                self._define_outputs(op, lane, [done])

    # ---- ends of the network --------------------------------------------------------------------------------------

    def _inputs_arrive(self) -> None:
        """On every lane, wait for the doorbell that the host rings when the inputs are in outer memory."""
        for lane in range(self.context.lane_count):
            self.tensors.inputs_ready[lane] = self._doorbell("input", self.plan.graph.inputs, lane, ())

    def _leave(self, made: Collection[int]) -> None:
        """Write the outputs of the graph that are among these tensors; they are not kept for the end of it."""
        for t in sorted(self.tensors.outputs.intersection(made)):
            if self._write_output(t):
                self.tensors.release_output(t)

    def _outputs_leave(self) -> None:
        """Write the outputs that are not in outer memory yet, then ring the host's doorbell."""
        last = [len(self.context.emitter.rows) - 1]
        written = [
            command for t in dict.fromkeys(self.plan.graph.outputs) for command in self._write_output(t, in_pieces=True)
        ]
        self._doorbell("output", self.plan.graph.outputs, 0, self.context.emitter.latest(written or last))

    def _write_output(self, tensor: int, *, in_pieces: bool = False) -> list[int]:
        """Write an output: every lane its part, or one lane where lanes hold all of it. Returns the commands.

        What the network ends with leaves in pieces as it is made; what leaves behind a later op has been made.
        """
        tensors = self.tensors
        root = tensors.root(tensor)
        if self.context.graph.tensors[root].role in (Role.INPUT, Role.CONSTANT):
            return []
        parts = {lane: state for lane in tensors.outer_lanes(root) if (state := tensors.outer_copy(root, lane))}
        complete = next((state for state in parts.values() if tensors.is_whole(root, state.size)), None)
        if complete is not None:
            return complete.writes
        holders = [
            (lane, tiled, copy) for lane, tiled, copy in tensors.holders(root) if copy.size and lane not in parts
        ]
        entire = [holder for holder in holders if tensors.is_whole(root, holder[2].size)]
        writes = [command for state in parts.values() for command in state.writes]
        for lane, tiled, copy in entire[:1] or holders:
            index, count = self.context.maker.get(root, NO_OP), self.context.piece_count(copy.size) if in_pieces else 1
            writes += tensors.write(root, lane, copy, tiled=tiled, index=index, count=count)
        return writes

    def _doorbell(self, form: str, tensors: tuple[int, ...], lane: int, after: Iterable[int]) -> int:
        """A command that synchronises with the host: waits for its inputs, or reports the outputs."""
        context = self.context
        size = sum(context.tensor_bytes(t) for t in tensors) if lane == 0 else 0.0
        name = ", ".join(context.graph.tensors[t].name[:80] for t in tensors[:4])
        detail = context.emitter.detail(partial(Detail, f"{form} {name}", context.local_name, "i8", "", (), ""))
        spec = CommandSpec(
            lane, context.doorbell_group, context.command_name(form), Does.SYNC, NO_OP, detail, 1.0, size
        )
        return context.emitter.emit(spec, after)
