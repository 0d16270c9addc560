"""Plan → commands: every lane runs the same ops on its own portion, tile by tile."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import UsageError
from ..graph import ABSENT, Family, Op
from ..program import NO_OP, Detail
from .emit import Order
from .exchange import exchange
from .place import has_weights
from .plan import Placed, Plan
from .tensors import CHANNELS, ROWS, Held, Piece, Tensors
from .weights import WeightStream
from .workbench import VECTOR_GROUP, Workbench

RESULT = -1  # stands for the result where operands are counted

_PIECEWISE = (Family.ELEMENTWISE, Family.CONVERT)  # a piece of the output needs only that piece of the inputs


@dataclass(frozen=True, slots=True)
class _Tile:
    """One step of an op on a lane."""

    index: int
    lane: int
    step: int
    steps: int

    @property
    def low(self) -> float:
        return self.step / self.steps

    @property
    def high(self) -> float:
        return (self.step + 1) / self.steps


@dataclass(slots=True)
class _Inputs:
    """What a tile reads: the commands it waits for, its operands' states, and which way pieces are cut."""

    after: list[int]
    operands: list[tuple[int, Held | None]]  # position; None: read slice by slice
    along: str  # empty: as each operand is cut


@dataclass(slots=True)
class _Staging:
    """Two places that take turns, and the commands that used them."""

    address: int
    guards: tuple[int, ...]
    users: list[int] = field(default_factory=list)


class Lowering:
    """The walk over the plan; `run` fills the emitter."""

    def __init__(self, plan: Plan) -> None:
        target = plan.machine.target
        if target.tiling is None or target.local is None:
            raise UsageError(f"{target.name}: cannot be compiled for; its file has no [tiling] or no local memory")
        self.plan = plan
        self.bench = Workbench(plan, target.tiling, target.local)
        self.weights = WeightStream(self.bench)
        self.tensors = Tensors(self.bench, reserved=self.weights.reserved)
        self._slices: dict[tuple[int, int, int], _Staging] = {}  # (op, lane, operand or RESULT)

    def run(self) -> None:
        self._doorbell("input", self.plan.graph.inputs)
        position = 0
        while position < len(self.plan.placed):
            chain = self._chain(position)
            self.tensors.now = position
            self._lower(chain)
            self._end_staging(chain)
            for index in chain:
                self.tensors.retire(self.plan.placed[index].op.inputs)
            position += len(chain)
        self._write_outputs()
        self._doorbell("output", self.plan.graph.outputs)

    def _chain(self, start: int) -> list[int]:
        """Elementwise ops that follow each other on tensors of one size: run piece by piece, depth first."""
        first, split = self.plan.placed[start], self.plan.splits[start]
        chain = [start]
        if first.op.family is not Family.ELEMENTWISE or not first.engine:
            return chain
        for index in range(start + 1, len(self.plan.placed)):
            placed, other = self.plan.placed[index], self.plan.splits[index]
            same = (
                placed.op.family is Family.ELEMENTWISE
                and placed.engine == first.engine
                and (other.axis, other.devices) == (split.axis, split.devices)
                and not other.gathers
                and self.bench.out_bytes(placed.op) == self.bench.out_bytes(first.op)
            )
            if not same:
                break
            chain.append(index)
        return chain

    def _lower(self, chain: list[int]) -> None:
        placed = self.plan.placed[chain[0]]
        op = placed.op
        exchange(self.bench, self.tensors, chain[0])
        if op.family is Family.VIEW and op.inputs and op.inputs[0] != ABSENT:
            for t in op.outputs:
                self.tensors.view(op.inputs[0], t)
        elif not placed.engine:
            for lane in range(self.bench.cores):
                for t in op.outputs:
                    self.tensors.store(t, lane, Held([], 0.0), tiled=False)
        elif op.family in (Family.CONTRACTION, Family.RECURRENT):
            self._product(chain[0], placed)
        else:
            for lane in self.bench.lanes(self.plan.splits[chain[0]]):
                self._vector(chain, lane)

    # ---- products -------------------------------------------------------------------------------------------------

    def _product(self, index: int, placed: Placed) -> None:
        """A product: along its weights when they are streamed, else along its rows; both when it is too large."""
        split, bench = self.plan.splits[index], self.bench
        weighted = has_weights(placed.op, self.plan.graph)
        lanes = bench.lanes(split)
        rows = {lane: self._row_tiles(index, lane) for lane in lanes}
        tiles = {lane: self.weights.tiles(placed, split, lane) if weighted else 1 for lane in lanes}
        outputs = {lane: self._output([index], index, lane, bench.is_tiled(placed), rows[lane]) for lane in lanes}
        for row in range(max(rows.values())):
            for step in range(max(tiles.values())):
                active = {lane: tiles[lane] for lane in lanes if row < rows[lane]}
                arrivals = self._bring(index, step, active, lanes) if weighted else {}
                for lane in active:
                    if step < tiles[lane]:
                        tile = _Tile(index, lane, row * tiles[lane] + step, rows[lane] * tiles[lane])
                        along = CHANNELS if weighted and rows[lane] == 1 else ROWS
                        self._product_tile(tile, placed, arrivals.get(lane, []), outputs[lane], along)

    def _bring(self, index: int, step: int, active: dict[int, int], lanes: list[int]) -> dict[int, list[int]]:
        counts = {lane: active.get(lane, 0) for lane in lanes}
        return self.weights.bring(index, step, counts)

    def _row_tiles(self, index: int, lane: int) -> int:
        """Pieces that the rows are cut into: one while operands and result fit local memory, or output is small."""
        bench, placed = self.bench, self.plan.placed[index]
        portion = bench.portion(self.plan.splits[index], lane)
        out = bench.out_bytes(placed.op) * portion
        skip = 1 if has_weights(placed.op, self.plan.graph) else ABSENT
        operands = sum(
            bench.read_bytes(index, i, lane) for i, t in enumerate(placed.op.inputs) if t != ABSENT and i != skip
        )
        pieces = 1 if has_weights(placed.op, self.plan.graph) else bench.pieces(out)
        room = self.tensors.memory[lane].capacity
        return max(pieces, self._slices_needed(operands + out, room))

    def _slices_needed(self, size: float, room: int) -> int:
        """One while everything fits; else two slices of everything must lie side by side, with room to spare."""
        return 1 if size <= room else int(-(-4 * size // room))

    def _product_tile(self, tile: _Tile, placed: Placed, weights: list[int], out: Held | None, along: str) -> None:
        op, graph = placed.op, self.plan.graph
        inputs = _Inputs(list(weights), [], along)
        for position, t in enumerate(op.inputs):
            if t == ABSENT or (position == 1 and has_weights(op, graph)):
                continue
            form = "weights_to_tiled" if position == 1 else "to_tiled"
            window = (tile.low, tile.high) if along == ROWS and position == 0 else (0.0, 1.0)
            self._operand(inputs, tile, position, form=form, tiled=self.bench.is_tiled(placed), window=window)
        command = self._compute(tile, inputs, out, at_least=self.weights.load_cycles(tile.index, tile.lane, tile.steps))
        if weights:
            self.weights.used(tile.lane, command)

    # ---- everything else ------------------------------------------------------------------------------------------

    def _vector(self, chain: list[int], lane: int) -> None:
        """Ops of one size on one engine, piece by piece through all of them."""
        bench = self.bench
        first = self.plan.placed[chain[0]]
        size = bench.out_bytes(first.op) * bench.portion(self.plan.splits[chain[0]], lane)
        operands = sum(bench.read_bytes(chain[0], i, lane) for i, t in enumerate(first.op.inputs) if t != ABSENT)
        steps = max(bench.pieces(size), self._slices_needed(operands + size, self.tensors.memory[lane].capacity))
        tiled: dict[int, bool] = {}
        outputs: dict[int, Held | None] = {}
        for index in chain:
            tiled[index] = self._layout(index, lane, tiled)
            outputs[index] = self._output(chain, index, lane, tiled[index], steps)
        for step in range(steps):
            for index in chain:
                self._vector_tile(_Tile(index, lane, step, steps), outputs[index], tiled=tiled[index])

    def _layout(self, index: int, lane: int, chain: dict[int, bool]) -> bool:
        """Ops that work in either order keep the one their operands have."""
        op = self.plan.placed[index].op
        if not self.bench.keeps_layout(op):
            return False
        made_here = {t: chain[i] for i in chain for t in self.plan.placed[i].op.outputs}
        return any(made_here.get(t, self.tensors.is_tiled(t, lane)) for t in op.inputs if t != ABSENT)

    def _vector_tile(self, tile: _Tile, out: Held | None, *, tiled: bool) -> None:
        placed = self.plan.placed[tile.index]
        inputs = _Inputs([], [], "" if placed.op.family in _PIECEWISE else ROWS)
        for position, t in enumerate(placed.op.inputs):
            if t != ABSENT:
                window = (tile.low, tile.high)
                self._operand(inputs, tile, position, form="to_tiled", tiled=tiled, window=window)
        if not inputs.along:  # pieces of the result are cut as those of the first operand
            first = inputs.operands[0][1] if inputs.operands else None
            inputs.along = first.along if first is not None else ROWS
        self._compute(tile, inputs, out)

    # ---- operands and results -------------------------------------------------------------------------------------

    def _operand(
        self, inputs: _Inputs, tile: _Tile, position: int, *, form: str, tiled: bool, window: tuple[float, float]
    ) -> None:
        """Note what to wait for before reading an operand; one that does not fit is read slice by slice."""
        held = self.tensors.need(tile.index, position, tile.lane, tiled=tiled, form=form)
        if held is not None:
            inputs.after += held.commands(inputs.along or held.along, *window)
        else:
            inputs.after.append(self._slice(tile, position))
        inputs.operands.append((position, held))

    def _slice(self, tile: _Tile, position: int) -> int:
        """Read one slice of an operand into one of two places that take turns."""
        bench = self.bench
        tensor = bench.graph.ops[tile.index].inputs[position]
        size = bench.read_bytes(tile.index, position, tile.lane) / tile.steps
        place = self._staging(tile, position, size)
        _, writes = self.tensors.writes_of(tensor, tile.lane) or (False, [])
        order = bench.transfer("read", tile.lane, tile.index, size, tensor=tensor, step=tile.step,
                               address=place.address + tile.step % 2 * round(size), local_bytes=size)  # fmt: skip
        return bench.emitter.emit(order, writes, place.users[-2:-1] if len(place.users) > 1 else place.guards)

    def _staging(self, tile: _Tile, position: int, size: float) -> _Staging:
        """Two places that slices of an operand, or of the result, take in turns while an op runs."""
        key = (tile.index, tile.lane, position)
        if key not in self._slices:
            ops = [self.plan.placed[tile.index].op]
            keep = {self.tensors.root(t) for op in ops for t in (*op.inputs, *op.outputs) if t != ABSENT}
            found = self.tensors.place(2 * size, tile.lane, keep=keep) or self.tensors.place(
                2 * size, tile.lane, keep=()
            )
            if found is None:
                name = self.plan.placed[tile.index].op.name
                raise UsageError(f"{name}: a tile of {size:,.0f} bytes does not fit the local memory; use more cores")
            self._slices[key] = _Staging(*found)
        return self._slices[key]

    def _end_staging(self, chain: list[int]) -> None:
        for key in [key for key in self._slices if key[0] in chain]:
            staging = self._slices.pop(key)
            self.tensors.memory[key[1]].release(staging.address, tuple(staging.users[-2:]))

    def _output(self, chain: list[int], index: int, lane: int, tiled: bool, steps: int) -> Held | None:
        """A place for what an op writes on a lane. None: it does not fit and goes to outer memory tile by tile."""
        op = self.plan.placed[index].op
        portion = self.bench.portion(self.plan.splits[index], lane)
        first: Held | None = None
        for t in op.outputs:
            size = self.bench.tensor_bytes(t) * portion
            held = self._in_place(chain, index, lane, tiled, size) or self._fresh(
                chain, index, t, lane, size=size, steps=steps
            )
            if held is None:
                return None
            self.tensors.store(t, lane, held, tiled=tiled)
            first = first or held
        return first

    def _in_place(self, chain: list[int], index: int, lane: int, tiled: bool, size: float) -> Held | None:
        """Write over an operand that nobody reads after this op; only where piece follows piece."""
        op = self.plan.placed[index].op
        if op.family is not Family.ELEMENTWISE or len(op.outputs) != 1:
            return None
        later = [i for i in chain if i > index]
        for t in op.inputs:
            operand = self.tensors.get(t, lane, tiled=tiled) if t != ABSENT else None
            if operand is None or operand.address is None or operand.size != size or self.bench.is_constant(t):
                continue
            read_here = sum(t in self.plan.placed[i].op.inputs for i in chain if i <= index)
            read_later = any(t in self.plan.placed[i].op.inputs for i in later)
            if not read_later and self.tensors.root(t) == t and self.tensors.readers(t) == read_here:
                made = {piece.command for piece in operand.pieces}  # a piece is overwritten after it was read: no wait
                guards = tuple(command for command in operand.touched.values() if command not in made)
                held = Held([], size, address=operand.address, guards=guards)
                operand.address = None  # the place has a new owner
                return held
        return None

    def _fresh(self, chain: list[int], index: int, tensor: int, lane: int, *, size: float, steps: int) -> Held | None:
        """A place of its own; what only later ops of the chain read needs room for two tiles, not for all of it."""
        later = [self.plan.placed[i].op for i in chain if i > index]
        inside = sum(tensor in op.inputs for op in later)
        transient = inside > 0 and inside == self.tensors.readers(tensor)
        ops = [self.plan.placed[i].op for i in chain]
        keep = {self.tensors.root(t) for op in ops for t in (*op.inputs, *op.outputs) if t != ABSENT}
        wanted = size * min(1.0, 2 / steps) if transient else size
        place = self.tensors.place(wanted, lane, keep=keep) if size else (0, ())
        if place is None:
            return None
        return Held([], size, address=place[0] if size else None, guards=place[1])

    def _compute(self, tile: _Tile, inputs: _Inputs, out: Held | None, *, at_least: float = 0.0) -> int:
        bench, placed = self.bench, self.plan.placed[tile.index]
        portion = bench.portion(self.plan.splits[tile.index], tile.lane) / tile.steps
        size = bench.out_bytes(placed.op) * portion
        group = bench.group_of[placed.engine]
        staging = self._staging(tile, RESULT, size) if out is None and size else None
        place = out.address or 0 if out is not None else staging.address if staging is not None else 0
        guards = out.guards if out is not None and not out.pieces else staging.users[-2:-1] if staging else ()
        order = Order(
            tile.lane, group, bench.command_name(placed.form), tile.index,
            bench.compute_detail(tile.index, tile.step, tile.steps), max(at_least, placed.cycles * portion), size,
            macs=placed.task.work.macs * portion, address=place, local_bytes=size,
        )  # fmt: skip
        command = bench.emitter.emit(order, inputs.after, guards)
        for position, held in inputs.operands:
            if held is not None:
                held.touched[group] = command
            else:
                self._slices[tile.index, tile.lane, position].users.append(command)
        if out is not None:
            out.along = inputs.along
            out.touched[group] = command
            out.pieces.append(Piece(tile.low, tile.high, command))
        elif staging is not None:
            staging.users.append(self._write_out(tile, placed.op, size, command))
        return command

    def _write_out(self, tile: _Tile, op: Op, size: float, command: int) -> int:
        order = self.bench.transfer("write", tile.lane, tile.index, size, tensor=op.outputs[0], step=tile.step)
        write = self.bench.emitter.emit(order, [command])
        for t in op.outputs:
            self.tensors.note_write(t, tile.lane, write, tiled=self.bench.is_tiled(self.plan.placed[tile.index]))
        self.tensors.spilled_bytes += round(size)
        return write

    # ---- ends of the network --------------------------------------------------------------------------------------

    def _write_outputs(self) -> None:
        for t in dict.fromkeys(self.plan.graph.outputs):
            maker = self.bench.maker.get(self.tensors.root(t))
            whole = maker is not None and self.plan.splits[maker].axis is None
            holders = list(self.tensors.lanes_holding(t))
            for lane, _, held in holders[:1] if whole else holders:
                if held.size:
                    order = self.bench.transfer("write", lane, NO_OP, held.size, tensor=t)
                    self.bench.emitter.emit(order, [piece.command for piece in held.pieces])

    def _doorbell(self, form: str, tensors: tuple[int, ...]) -> None:
        """The host has delivered the inputs; the outputs are ready."""
        bench = self.bench
        size = sum(bench.tensor_bytes(t) for t in tensors)
        name = ", ".join(bench.graph.tensors[t].name[:80] for t in tensors[:4])
        detail = bench.emitter.detail(Detail(f"{form} {name}", bench.local_name, "i8", "", (), ""))
        last = len(bench.emitter.rows) - 1
        for lane in range(bench.cores) if form == "input" else (0,):
            order = Order(lane, VECTOR_GROUP, bench.command_name(form), NO_OP, detail, 1.0, size if lane == 0 else 0.0)
            bench.emitter.emit(order, [last] if form == "output" and last >= 0 else ())
