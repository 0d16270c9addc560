"""Plan → commands: every lane runs the same ops on its own portion, tile by tile."""

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
from .batch_parts import divide, join
from .context import Workbench
from .emit import Order
from .exchange import exchange
from .operands import Desk, Seating
from .tensors import Held, Outside, Piece, Tensors
from .tiles import Tile, TileRunner
from .weights import WeightStream


@dataclass(frozen=True, slots=True)
class _Body:
    """A control op whose body is being lowered."""

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
    """The same; None where the commands would move as many bytes as this to and from outer memory, or more."""
    if weight_bytes(plan) >= outer_bytes:
        return None
    unrolled = unroll(plan)
    lowering = Lowering(unrolled.plan)
    return Lowered(unrolled, lowering) if lowering.run(below=outer_bytes) else None


def weight_bytes(plan: Plan) -> int:
    """Bytes of weights that the commands of a plan read at least: those of every product once for each of its parts.

    Lanes that read a share each round it to whole bytes, so one byte a lane may be missing.
    """
    if plan.resident:
        return 0
    tensors, lanes = plan.graph.tensors, plan.machine.lanes
    products = ((p.op, parts) for p, parts in zip(plan.placed, plan.parts, strict=True) if p.engine)
    read = ((tensors[op.inputs[1]].bytes or 0, parts) for op, parts in products if has_weights(op, plan.graph))
    return sum(max(0, size - lanes) * parts for size, parts in read)


class Lowering:
    """The walk over the plan; `run` fills the emitter."""

    def __init__(self, plan: Plan) -> None:
        target = plan.machine.target
        if target.tiling is None or target.local is None:
            raise UsageError(f"{target.name}: cannot be compiled for; its file has no [tiling] or no local memory")
        self.plan = plan
        self.bench = Workbench(plan, target.tiling, target.local)
        self.weights = WeightStream(self.bench)
        if self.weights.reserved >= self.bench.capacity:
            raise UsageError(
                f"{target.name}: {self.weights.reserved:,} bytes of constants and weight tiles leave nothing of its "
                f"{self.bench.capacity:,} bytes of local memory; expected smaller tiles in [tiling]"
            )
        self.tensors = Tensors(self.bench, reserved=self.weights.reserved)
        self.seating = Seating(plan, self.bench, self.tensors)
        self.tiles = TileRunner(self.bench, self.tensors)
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
            self.tensors.now = position
            exchange(self.bench, self.tensors, position)
            self.tensors.busy = self.tensors.roots(t for op in ops for t in (*op.inputs, *op.outputs))
            self._lower(chain)
            self.tensors.busy = ()
            for op in ops:
                self.tensors.retire(op)
            position += len(chain)
        self._close_bodies(position)
        self._outputs_leave()
        return self.outer_bytes < below

    @property
    def outer_bytes(self) -> int:
        """Bytes that the commands so far move to and from outer memory."""
        return sum(self.bench.emitter.moved[self.bench.routes[carries]] for carries in (Carries.READ, Carries.WRITE))

    def _chain(self, start: int) -> list[int]:
        """Elementwise ops that follow each other on tensors of one size: run piece by piece, depth first."""
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
                and self.bench.out_bytes(placed.op) == self.bench.out_bytes(first.op)
                and self.bench.out_shape(placed.op) == self.bench.out_shape(first.op)
                and self.bench.keeps_layout(placed.op) == self.bench.keeps_layout(first.op)
                and self._reads_alike(chain, index)
            )
            if not same:
                break
            chain.append(index)
        return chain

    def _takes_chains(self, engine: str) -> bool:
        """What passes from op to op has room for two tiles: whoever reads one must come before who writes it again.

        A unit runs its commands in order, so that holds where every second tile is the same unit's.
        """
        found = self.bench.engines[engine]
        return found.units <= 2 and not found.memory

    def _reads_alike(self, chain: list[int], index: int) -> bool:
        """Whether an op reads the bytes that others read in the same form: their parts lie in memory once."""
        read = {t for i in (*chain, index) for t in self.plan.placed[i].op.inputs if t != ABSENT}
        return len(read) == len(self.tensors.roots(read))

    def _lower(self, chain: list[int]) -> None:
        placed = self.plan.placed[chain[0]]
        op = placed.op
        if op.kind == "join":
            join(self.tensors, op.inputs, op.outputs[0])
        elif op.kind == "divide":
            divide(self.tensors, op.inputs[0], op.outputs)
        elif op.family is Family.VIEW and op.inputs and op.inputs[0] != ABSENT:
            for t in op.outputs:
                self.tensors.view(op.inputs[0], t)
        elif op.family is Family.CONTROL:
            self._open_body(chain[0])
        elif not placed.engine:
            self._pass_through(chain[0])
        elif op.family in (Family.CONTRACTION, Family.RECURRENT):
            self._product(chain[0], placed)
        else:
            for lane in self.bench.lanes(self.plan.splits[chain[0]]):
                self._vector(chain, lane)

    # ---- ops with work --------------------------------------------------------------------------------------------

    def _product(self, index: int, placed: Placed) -> None:
        """A product: along its weights when they are streamed, else along its rows; both when it is too large."""
        split, bench = self.plan.splits[index], self.bench
        weighted = has_weights(placed.op, self.plan.graph)
        desks: dict[int, Desk] = {}
        for lane in bench.lanes(split):
            natural = 1 if weighted else bench.rows([index], lane)
            desks[lane] = self.seating.seat([index], lane, tiled=bench.is_tiled(placed), rows=natural)[0]
        tiles = {lane: self.weights.tiles(placed, split, lane) if weighted else 1 for lane in desks}
        for row in range(max(desk.rows for desk in desks.values())):
            active = {lane: tiles[lane] for lane, desk in desks.items() if row < desk.rows}
            for step in range(max(active.values())):
                arrivals = self.weights.bring(index, step, active) if weighted else {}
                for lane, steps in active.items():
                    if step < steps:
                        tile = Tile(row, desks[lane].rows, step, steps)
                        self._product_tile(desks[lane], tile, arrivals.get(lane, []), weighted=weighted)
        for desk in desks.values():
            self.tiles.clear([desk])

    def _product_tile(self, desk: Desk, tile: Tile, weights: list[int], *, weighted: bool) -> None:
        loaded = self.weights.loaded_bytes(desk.index, desk.lane, tile.steps) if weighted else 0.0
        command = self.tiles.run(desk, tile, weights, weight_bytes=loaded)
        if weights:
            self.weights.used(desk.lane, command)

    def _vector(self, chain: list[int], lane: int) -> None:
        """Ops of one size on one engine, piece by piece through all of them."""
        rows = self.bench.rows(chain, lane)
        desks = self.seating.seat(chain, lane, tiled=self._layout(chain, lane), rows=rows)
        for row in range(desks[0].rows):
            for desk in desks:
                self.tiles.run(desk, Tile(row, desk.rows))
        self.tiles.clear(desks)

    def _layout(self, chain: list[int], lane: int) -> bool:
        """Ops that work in either order keep the one that an operand has."""
        ops = [self.plan.placed[index].op for index in chain]
        operands = [t for op in ops for t in op.inputs if t != ABSENT]
        return self.bench.keeps_layout(ops[0]) and any(self.tensors.is_tiled(t, lane) for t in operands)

    # ---- ops without work of their own ----------------------------------------------------------------------------

    def _pass_through(self, index: int) -> None:
        """An op of unknown cost takes no time, but what it makes is there only after what it reads."""
        op, split = self.plan.placed[index].op, self.plan.splits[index]
        for lane in self.bench.lanes(split):
            after = [command for t in op.inputs if t != ABSENT for command in self.tensors.made_by(t, lane)]
            self._appear(op, lane, self.bench.emitter.latest(after))

    def _appear(self, op: Op, lane: int, after: list[int]) -> None:
        for t in op.outputs:
            size = self.bench.tensor_bytes(t)
            place = self.tensors.place(size, lane) if size else (0, ())
            if place is None:
                self.tensors.put_outside(t, lane, Outside(False, size, after))
                continue
            pieces = [Piece(0.0, 1.0, command) for command in (*after, *place[1])]
            self.tensors.store(t, lane, Held(pieces, size, address=place[0] if size else None), tiled=False)

    def _open_body(self, index: int) -> None:
        """The ops of a control op's body follow it; none of them starts before its operands are there."""
        op, split, graph = self.plan.placed[index].op, self.plan.splits[index], self.plan.graph
        self.tensors.gates[op.name] = {
            lane: [command for t in op.inputs if t != ABSENT for command in self.tensors.made_by(t, lane)]
            for lane in self.bench.lanes(split)
        }
        inside, end = {op.name}, index + 1
        while end < len(graph.ops) and graph.ops[end].scope in inside:
            if graph.ops[end].family is Family.CONTROL:
                inside.add(graph.ops[end].name)
            end += 1
        self._bodies.append(_Body(index, end, len(self.bench.emitter.rows)))

    def _close_bodies(self, position: int) -> None:
        """What a control op hands out is there when all of its body is done."""
        while self._bodies and self._bodies[-1].end <= position:
            body, bench = self._bodies.pop(), self.bench
            op, lanes = self.plan.placed[body.index].op, bench.lanes(self.plan.splits[body.index])
            commands = {*range(body.first, len(bench.emitter.rows))}
            commands.update(c for gate in self.tensors.gates[op.name].values() for c in gate)
            order = Order(
                lanes[0],
                bench.doorbells,
                bench.command_name(op.kind),
                op.family.does,
                body.index,
                bench.compute_detail(body.index, 0, 1),
                1.0,
            )
            done = bench.emitter.emit(order, bench.emitter.latest(commands))
            for lane in lanes:
                self._appear(op, lane, [done])

    # ---- ends of the network --------------------------------------------------------------------------------------

    def _inputs_arrive(self) -> None:
        """The host has delivered the inputs."""
        for lane in range(self.bench.lane_count):
            self.tensors.arrived[lane] = self._doorbell("input", self.plan.graph.inputs, lane, ())

    def _outputs_leave(self) -> None:
        """Write what is not in outer memory yet, then tell the host."""
        last = [len(self.bench.emitter.rows) - 1]
        written = [command for t in dict.fromkeys(self.plan.graph.outputs) for command in self._write_output(t)]
        self._doorbell("output", self.plan.graph.outputs, 0, self.bench.emitter.latest(written or last))

    def _write_output(self, tensor: int) -> list[int]:
        """Commands after which an output is in outer memory: of every part of it, or of one where lanes hold it all."""
        tensors = self.tensors
        root = tensors.root(tensor)
        if self.bench.graph.tensors[root].role in (Role.INPUT, Role.CONSTANT):
            return []
        parts = {lane: state for lane in tensors.lanes_outside(root) if (state := tensors.outside(root, lane))}
        complete = next((state for state in parts.values() if tensors.is_whole(root, state.size)), None)
        if complete is not None:
            return complete.writes
        holders = [
            (lane, tiled, held) for lane, tiled, held in tensors.holders(root) if held.size and lane not in parts
        ]
        entire = [holder for holder in holders if tensors.is_whole(root, holder[2].size)]
        writes = [command for state in parts.values() for command in state.writes]
        for lane, tiled, held in entire[:1] or holders:
            writes.append(tensors.write(root, lane, held, tiled=tiled, index=NO_OP))
        return writes

    def _doorbell(self, form: str, tensors: tuple[int, ...], lane: int, after: Iterable[int]) -> int:
        bench = self.bench
        size = sum(bench.tensor_bytes(t) for t in tensors) if lane == 0 else 0.0
        name = ", ".join(bench.graph.tensors[t].name[:80] for t in tensors[:4])
        detail = bench.emitter.detail(Detail(f"{form} {name}", bench.local_name, "i8", "", (), ""))
        order = Order(lane, bench.doorbells, bench.command_name(form), Does.SYNC, NO_OP, detail, 1.0, size)
        return bench.emitter.emit(order, after)
