"""Lowering: plan → commands. Every lane runs the same ops on its own portion, tile by tile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from ...core.errors import UsageError
from ...core.meaning import Carries, Does
from ...graph.graph import ABSENT, Op, Role
from ...graph.kinds import Family
from ...program.program import NO_OP, Detail
from ..passes.place import has_weights
from ..passes.unroll import Unrolled, unroll
from ..plan import Placed, Plan
from .all_gather import all_gather_inputs
from .batch_tiles import divide_into_batch_tiles, join_batch_tiles
from .context import LoweringContext
from .emit import CommandSpec
from .operands import OperandPlacement, OperandPlacer
from .tensors import LocalCopy, OuterCopy, Piece, Tensors
from .tiles import Tile, TileRunner
from .weights import WeightStream


@dataclass(frozen=True, slots=True)
class _Body:
    """A control op (loop, branch) whose body is being lowered."""

    index: int
    end: int  # position behind its last op
    first: int  # its first command


@dataclass(frozen=True, slots=True)
class Lowered:
    """The commands of a plan, and the plan with its batch unrolled that they were emitted from."""

    unrolled: Unrolled
    lowering: Lowering


def lower(plan: Plan) -> Lowered:
    """Emit the commands of a plan."""
    unrolled = unroll(plan)
    lowering = Lowering(unrolled.plan)
    lowering.run()
    return Lowered(unrolled, lowering)


def lower_below(plan: Plan, outer_bytes: float) -> Lowered | None:
    """As `lower`; None as soon as the commands move `outer_bytes` or more to and from outer memory."""
    if weight_bytes(plan) >= outer_bytes:
        return None
    unrolled = unroll(plan)
    lowering = Lowering(unrolled.plan)
    return Lowered(unrolled, lowering) if lowering.run(below=outer_bytes) else None


def weight_bytes(plan: Plan) -> int:
    """Bytes of weights that the commands of a plan read at least: of every product once for each of its batch tiles.

    Lanes that read a share each round it to whole bytes, so one byte a lane may be missing.
    """
    if plan.resident:
        return 0
    tensors, lanes = plan.graph.tensors, plan.machine.lanes
    products = ((p.op, tiles) for p, tiles in zip(plan.placed, plan.batch_tiles, strict=True) if p.engine)
    read = ((tensors[op.inputs[1]].bytes or 0, tiles) for op, tiles in products if has_weights(op, plan.graph))
    return sum(max(0, size - lanes) * tiles for size, tiles in read)


class Lowering:
    """One pass over the ops of a plan in order; `run` fills the emitter."""

    def __init__(self, plan: Plan) -> None:
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
        self.placer = OperandPlacer(plan, self.context, self.tensors)
        self.tiles = TileRunner(self.context, self.tensors)
        self._bodies: list[_Body] = []

    def run(self, *, below: float = inf) -> bool:
        """Emit everything, or stop with False as soon as so many bytes go to and from outer memory."""
        self._inputs_arrive()
        position = 0
        while position < len(self.plan.placed):
            if self.outer_bytes >= below:
                return False
            self._close_bodies(position)
            chain = self._chain(position)
            ops = [self.plan.placed[index].op for index in chain]
            self.tensors.current_op = position
            all_gather_inputs(self.context, self.tensors, position)
            self.tensors.pinned = self.tensors.roots(t for op in ops for t in (*op.inputs, *op.outputs))
            self._lower(chain)
            self.tensors.pinned = ()
            for op in ops:
                self.tensors.release_dead(op)
            position += len(chain)
        self._close_bodies(position)
        self._outputs_leave()
        return self.outer_bytes < below

    @property
    def outer_bytes(self) -> int:
        """Bytes that the commands so far move to and from outer memory."""
        return sum(
            self.context.emitter.moved[self.context.routes[carries]] for carries in (Carries.READ, Carries.WRITE)
        )

    def _chain(self, start: int) -> list[int]:
        """Positions of the ops from `start` that run as a chain: neighbouring elementwise ops on tensors of one size.

        A chain runs depth first, tile 1 through all ops, then tile 2: what passes between them needs two tiles of
        memory instead of a whole tensor.
        """
        first, split = self.plan.placed[start], self.plan.splits[start]
        chain = [start]
        if first.op.family is not Family.ELEMENTWISE or not first.engine or not self._takes_chains(first.engine):
            return chain
        for index in range(start + 1, len(self.plan.placed)):
            placed, other = self.plan.placed[index], self.plan.splits[index]
            same = (
                placed.op.family is Family.ELEMENTWISE
                and (placed.engine, placed.op.scope) == (first.engine, first.op.scope)
                and (other.axis, other.extent, other.devices) == (split.axis, split.extent, split.devices)
                and not other.gathers
                and self.context.out_bytes(placed.op) == self.context.out_bytes(first.op)
                and self.context.out_shape(placed.op) == self.context.out_shape(first.op)
                and self.context.keeps_layout(placed.op) == self.context.keeps_layout(first.op)
                and self._reads_alike(chain, index)
            )
            if not same:
                break
            chain.append(index)
        return chain

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
            join_batch_tiles(self.tensors, op.inputs, op.outputs[0])
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
            self._product(chain[0], placed)
        else:
            for lane in self.context.lanes(self.plan.splits[chain[0]]):
                self._vector(chain, lane)

    # ---- ops with work --------------------------------------------------------------------------------------------

    def _product(self, index: int, placed: Placed) -> None:
        """Emit a product: along its weight tiles when weights are streamed, else by rows; both when it is too large."""
        split, context = self.plan.splits[index], self.context
        weighted = has_weights(placed.op, self.plan.graph)
        placements: dict[int, OperandPlacement] = {}
        for lane in context.lanes(split):
            natural = 1 if weighted else context.slice_count([index], lane)
            placements[lane] = self.placer.place_chain([index], lane, tiled=context.is_tiled(placed), rows=natural)[0]
        tiles = {lane: self.weights.tiles(placed, split, lane) if weighted else 1 for lane in placements}
        for row in range(max(placement.rows for placement in placements.values())):
            active = {lane: tiles[lane] for lane, placement in placements.items() if row < placement.rows}
            for step in range(max(active.values())):
                arrivals = self.weights.load_tile(index, step, active) if weighted else {}
                for lane, steps in active.items():
                    if step < steps:
                        tile = Tile(row, placements[lane].rows, step, steps)
                        self._product_tile(placements[lane], tile, arrivals.get(lane, []), weighted=weighted)
        for placement in placements.values():
            self.tiles.clear([placement])

    def _product_tile(self, placement: OperandPlacement, tile: Tile, weights: list[int], *, weighted: bool) -> None:
        loaded = self.weights.loaded_bytes(placement.index, placement.lane, tile.steps) if weighted else 0.0
        command = self.tiles.run(placement, tile, weights, weight_bytes=loaded)
        if weights:
            self.weights.record_use(placement.lane, command)

    def _vector(self, chain: list[int], lane: int) -> None:
        """Emit a chain on a lane, each tile through all of its ops before the next tile."""
        rows = self.context.slice_count(chain, lane)
        placements = self.placer.place_chain(chain, lane, tiled=self._layout(chain, lane), rows=rows)
        for row in range(placements[0].rows):
            for placement in placements:
                self.tiles.run(placement, Tile(row, placement.rows))
        self.tiles.clear(placements)

    def _layout(self, chain: list[int], lane: int) -> bool:
        """Whether a chain works in the tiled layout: it keeps layouts, and an operand is tiled."""
        ops = [self.plan.placed[index].op for index in chain]
        operands = [t for op in ops for t in op.inputs if t != ABSENT]
        return self.context.keeps_layout(ops[0]) and any(self.tensors.is_tiled(t, lane) for t in operands)

    # ---- ops without work of their own ----------------------------------------------------------------------------

    def _pass_through(self, index: int) -> None:
        """An op of unknown cost: it takes no time, but its outputs are there only after its inputs."""
        op, split = self.plan.placed[index].op, self.plan.splits[index]
        for lane in self.context.lanes(split):
            after = [command for t in op.inputs if t != ABSENT for command in self.tensors.producers(t, lane)]
            self._define_outputs(op, lane, self.context.emitter.latest(after))

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
                op.family.does,
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

    def _outputs_leave(self) -> None:
        """Write the outputs that are not in outer memory yet, then ring the host's doorbell."""
        last = [len(self.context.emitter.rows) - 1]
        written = [command for t in dict.fromkeys(self.plan.graph.outputs) for command in self._write_output(t)]
        self._doorbell("output", self.plan.graph.outputs, 0, self.context.emitter.latest(written or last))

    def _write_output(self, tensor: int) -> list[int]:
        """Write an output: every lane its part, or one lane where lanes hold all of it. Returns the commands."""
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
            writes.append(tensors.write(root, lane, copy, tiled=tiled, index=NO_OP))
        return writes

    def _doorbell(self, form: str, tensors: tuple[int, ...], lane: int, after: Iterable[int]) -> int:
        """A command that synchronises with the host: waits for its inputs, or reports the outputs."""
        context = self.context
        size = sum(context.tensor_bytes(t) for t in tensors) if lane == 0 else 0.0
        name = ", ".join(context.graph.tensors[t].name[:80] for t in tensors[:4])
        detail = context.emitter.detail(Detail(f"{form} {name}", context.local_name, "i8", "", (), ""))
        spec = CommandSpec(
            lane, context.doorbell_group, context.command_name(form), Does.SYNC, NO_OP, detail, 1.0, size
        )
        return context.emitter.emit(spec, after)
