"""Where tensors are while commands are emitted: on which lane, in which order of elements, at which address.

A tensor on a lane is a list of pieces, each made by a command, so that a reader waits for what it reads and no more.
When local memory is full, the tensor that is needed last moves to outer memory and is read again when needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from ...core.meaning import Carries, Does
from ...graph.graph import ABSENT, Op, Role
from ...program.program import NO_OP
from ..passes.axes import WHOLE, input_axes
from .context import VECTOR_GROUP, Workbench
from .emit import Order, share
from .local_memory import LocalMemory

ROWS, CHANNELS = "rows", "channels"
NEVER = 1 << 60  # later than any op
OWN = -2  # instead of an axis: what one op alone needs, such as the rows that it gathers

Part = tuple[int, int]  # tensor and axis that lanes cut it along, or op and OWN


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of what a lane holds of a tensor: from one share of it to another, made by a command."""

    low: float
    high: float
    command: int


@dataclass(slots=True)
class Held:
    """A tensor on one lane."""

    pieces: list[Piece]
    size: float
    along: str = ROWS  # which way the pieces are cut
    address: int | None = None  # None: takes no place of its own
    further: tuple[int, ...] = ()  # addresses of parts that lie elsewhere
    guards: tuple[int, ...] = ()  # commands that used the place before; the first writer waits for them
    ring: bool = False  # has room for two tiles, which take turns
    part: Part | None = None  # what was read of a tensor that outer memory holds whole; None: all
    touched: dict[int, int] = field(default_factory=dict)  # stream → last command that read or wrote it

    def commands(self, along: str, low: float, high: float) -> list[int]:
        """Commands that made the pieces between two shares; all of them where the cut runs the other way."""
        if self.along != along:
            return [piece.command for piece in self.pieces]
        return [p.command for p in self.pieces if p.low < high - 1e-9 and p.high > low + 1e-9]

    @property
    def places(self) -> tuple[int, ...]:
        return self.further if self.address is None else (self.address, *self.further)

    def at(self, step: int, steps: int) -> int:
        """Address of one tile of several."""
        return (self.address or 0) + round((step % 2 if self.ring else step) * self.size / steps)


@dataclass(slots=True)
class Outside:
    """A lane's part of a tensor in outer memory."""

    tiled: bool
    size: float
    writes: list[int]


class Tensors:
    """All tensors on all lanes."""

    def __init__(self, bench: Workbench, *, reserved: int) -> None:
        self.bench = bench
        room = bench.capacity - reserved
        self.memory = [LocalMemory(room, bench.emitter.latest) for _ in range(bench.lane_count)]
        self.now = 0  # position of the op that is being lowered
        self.busy: Collection[int] = ()  # what ops that are being lowered read and write: stays where it is
        self.arrived: dict[int, int] = {}  # lane → command after which the graph's inputs are there
        self.gates: dict[str, dict[int, list[int]]] = {}  # name of a control op → lane → commands before its body
        self._held: dict[tuple[int, bool], dict[int, Held]] = {}  # (tensor, tiled) → lane → state
        self._outside: dict[tuple[int, int], Outside] = {}  # (tensor, lane)
        self._alias: dict[int, int] = {}
        self._readers = Counter(t for op in bench.graph.ops for t in dict.fromkeys(op.inputs) if t != ABSENT)
        self._readers.update(bench.graph.outputs)
        self._uses: dict[int, list[int]] = {}
        for index, op in enumerate(bench.graph.ops):
            for t in op.inputs:
                self._uses.setdefault(t, []).append(index)

    # ---- names ----------------------------------------------------------------------------------------------------

    def root(self, tensor: int) -> int:
        """The tensor whose bytes these are: views have none of their own."""
        while tensor in self._alias:
            tensor = self._alias[tensor]
        return tensor

    def roots(self, tensors: Iterable[int]) -> set[int]:
        return {self.root(t) for t in tensors if t != ABSENT}

    def view(self, source: int, result: int) -> None:
        root = self.root(source)
        self._alias[result] = root
        self._readers[root] += self._readers[result]
        self._uses.setdefault(root, []).extend(self._uses.get(result, ()))

    # ---- state ----------------------------------------------------------------------------------------------------

    def get(self, tensor: int, lane: int, *, tiled: bool) -> Held | None:
        return self._held.get((self.root(tensor), tiled), {}).get(lane)

    def is_tiled(self, tensor: int, lane: int) -> bool:
        return self.get(tensor, lane, tiled=True) is not None

    def holders(self, tensor: int) -> Iterator[tuple[int, bool, Held]]:
        """Lane, order and state of a tensor where it is local: once per lane, tiled where there are both orders."""
        root = self.root(tensor)
        tiled, plain = self._held.get((root, True), {}), self._held.get((root, False), {})
        for lane in sorted({*tiled, *plain}):
            yield (lane, True, tiled[lane]) if lane in tiled else (lane, False, plain[lane])

    def store(self, tensor: int, lane: int, held: Held, *, tiled: bool) -> None:
        self._held.setdefault((tensor, tiled), {})[lane] = held

    def withdraw(self, tensor: int, lane: int, *, tiled: bool) -> None:
        """Take back a `store` before anything was written there."""
        self._held[tensor, tiled].pop(lane)

    def outside(self, tensor: int, lane: int) -> Outside | None:
        """How a lane's part lies in outer memory, if it does."""
        return self._outside.get((self.root(tensor), lane))

    def lanes_outside(self, tensor: int) -> list[int]:
        root = self.root(tensor)
        return [lane for t, lane in self._outside if t == root]

    def put_outside(self, tensor: int, lane: int, outside: Outside) -> None:
        self._outside[self.root(tensor), lane] = outside

    def made_by(self, tensor: int, lane: int) -> list[int]:
        """Commands after which a tensor is complete on a lane, wherever it is."""
        for tiled in (False, True):
            held = self.get(tensor, lane, tiled=tiled)
            if held is not None:
                return [piece.command for piece in held.pieces]
        outside = self.outside(tensor, lane)
        return outside.writes if outside is not None else []

    def touch(self, held: Held, command: int) -> None:
        """A command reads or writes a tensor: its place is not free before the command is done."""
        held.touched[self.bench.emitter.stream_of[command]] = command

    # ---- places ---------------------------------------------------------------------------------------------------

    def place(self, size: float, lane: int, *, keep: Collection[int] = ()) -> tuple[int, tuple[int, ...]] | None:
        """An address, after moving others out if need be; None when what must stay leaves too little."""
        memory = self.memory[lane]
        while True:
            found = memory.allocate(size)
            if found is not None or size > memory.capacity or not self._evict(lane, keep):
                return found

    def _evict(self, lane: int, keep: Collection[int]) -> bool:
        """Move out the tensor that is needed last. Returns whether there was one."""
        candidates = [
            (self._next_use(tensor), held.size, tensor, tiled)
            for (tensor, tiled), lanes in self._held.items()
            if tensor not in keep
            and tensor not in self.busy
            and (held := lanes.get(lane)) is not None
            and held.address is not None
        ]
        if candidates:
            _, _, tensor, tiled = max(candidates)
            self._move_out(tensor, lane, tiled=tiled)
        return bool(candidates)

    def move_out(self, tensor: int, lane: int) -> None:
        """Give back the place of a tensor; what cannot be had again is written to outer memory first."""
        for tiled in (True, False):
            if lane in self._held.get((tensor, tiled), {}):
                self._move_out(tensor, lane, tiled=tiled)

    def _move_out(self, tensor: int, lane: int, *, tiled: bool) -> None:
        held = self._held[tensor, tiled].pop(lane)
        if not self._is_elsewhere(tensor, lane):
            same = self._written_whole(tensor, lane)
            if same is not None:
                self.put_outside(tensor, lane, same)
            else:
                self.write(tensor, lane, held, tiled=tiled, index=self.bench.maker.get(tensor, NO_OP))
        self._release(lane, held)

    def _written_whole(self, tensor: int, lane: int) -> Outside | None:
        """All of a tensor in the outer memory of a lane's device, where another core has written it."""
        cores = self.bench.plan.machine.cores
        first = lane // cores * cores
        found = (self._outside.get((tensor, other)) for other in range(first, first + cores))
        return next((state for state in found if state is not None and self.is_whole(tensor, state.size)), None)

    def is_whole(self, tensor: int, size: float) -> bool:
        return size > 0.999999 * self.bench.tensor_bytes(tensor)

    def write(self, tensor: int, lane: int, held: Held, *, tiled: bool, index: int) -> int:
        """Copy what a lane holds to outer memory."""
        order = self.bench.transfer(Carries.WRITE, lane, index, held.size, tensor=tensor)
        command = self.bench.emitter.emit(order, [piece.command for piece in held.pieces])
        self.touch(held, command)
        self.put_outside(tensor, lane, Outside(tiled, held.size, [command]))
        return command

    def _is_elsewhere(self, tensor: int, lane: int) -> bool:
        """Whether a tensor can be had again without writing it out first."""
        role = self.bench.graph.tensors[tensor].role
        other = any(lane in self._held.get((tensor, tiled), {}) for tiled in (True, False))
        return role in (Role.CONSTANT, Role.INPUT) or other or (tensor, lane) in self._outside

    def _next_use(self, tensor: int) -> int:
        return min((use for use in self._uses.get(tensor, ()) if use >= self.now), default=NEVER)

    def _release(self, lane: int, held: Held) -> None:
        if held.address is not None:
            users = self.bench.emitter.latest([*held.touched.values(), *(piece.command for piece in held.pieces)])
            for address in held.places:
                self.memory[lane].release(address, tuple(users) or held.guards)

    def retire(self, op: Op) -> None:
        """An op is done; give back the places of what nobody reads any more."""
        for t in dict.fromkeys(op.inputs):
            if t != ABSENT:
                for tensor in {t, self.root(t)}:
                    self._readers[tensor] -= 1
        for root in self.roots((*op.inputs, *op.outputs)):
            if self._readers[root] <= 0:
                self.drop(root)

    def drop(self, tensor: int) -> None:
        for tiled in (False, True):
            for lane, held in self._held.pop((tensor, tiled), {}).items():
                self._release(lane, held)

    def readers(self, tensor: int) -> int:
        return self._readers[tensor]

    # ---- bringing a tensor where it is needed ---------------------------------------------------------------------

    def need(self, index: int, position: int, lane: int, *, tiled: bool) -> Held | None:
        """An input whole on a lane and in the order wanted; None when it does not fit and must be read in slices."""
        bench = self.bench
        tensor = bench.graph.ops[index].inputs[position]
        self.forget_other_parts(index, position, lane)
        held = self.get(tensor, lane, tiled=tiled)
        if held is not None:
            return held
        other = self.get(tensor, lane, tiled=not tiled) or self._read(index, position, lane)
        if other is None or not other.size or bench.layout is None or bench.is_constant(self.root(tensor)):
            return other
        return self.get(tensor, lane, tiled=tiled) or self._convert(index, position, lane, other, tiled=tiled)

    def forget_other_parts(self, index: int, position: int, lane: int) -> None:
        """Of a tensor that outer memory holds whole, a lane may have what another op needed; it is read anew then."""
        root = self.root(self.bench.graph.ops[index].inputs[position])
        for tiled in (False, True):
            held = self.get(root, lane, tiled=tiled)
            if held is not None and held.part is not None and held.part != self.part(index, position):
                self._release(lane, self._held[root, tiled].pop(lane))

    def part(self, index: int, position: int) -> Part | None:
        """What a lane needs of a tensor that outer memory holds whole; None: all of it."""
        op, split = self.bench.plan.placed[index].op, self.bench.plan.splits[index]
        tensor = op.inputs[position]
        if op.kind in ("gather", "slice", "split") and position == 0:
            return index, OWN
        axes = input_axes(op, self.bench.graph, split.axis) if split.axis is not None else None
        if axes is None:
            return None
        root = self.root(tensor)
        parts = {(t, axis) for t, axis in zip(op.inputs, axes, strict=True) if t != ABSENT and self.root(t) == root}
        return None if len(parts) > 1 or axes[position] == WHOLE else (tensor, axes[position])

    def to_read(self, index: int, position: int, lane: int) -> tuple[float, Part | None]:
        """Bytes that a lane reads of an operand from outer memory, and what they are of it."""
        placed, split = self.bench.plan.placed[index], self.bench.plan.splits[index]
        tensor = placed.op.inputs[position]
        outside, size = self.outside(tensor, lane), self.bench.tensor_bytes(tensor)
        if outside is not None and not self.is_whole(self.root(tensor), outside.size):
            return outside.size, None
        part = self.part(index, position)
        if part == (index, OWN):
            size = min(size, self.bench.out_bytes(placed.op))
        return (size, None) if part is None else (size * self.bench.portion(split, lane), part)

    def _read(self, index: int, position: int, lane: int) -> Held | None:
        """Read a constant, a graph input or a tensor that was moved out."""
        bench = self.bench
        tensor = bench.graph.ops[index].inputs[position]
        root = self.root(tensor)
        outside = self.outside(root, lane)
        size, part = self.to_read(index, position, lane)
        tiled = outside is not None and outside.tiled
        if not size or root in bench.settled or not self._is_stored(root, lane):
            gate = self.gates.get(bench.graph.ops[index].scope, {}).get(lane, ())
            held = Held([Piece(0.0, 1.0, command) for command in gate], 0.0)
            self.store(root, lane, held, tiled=tiled)
            return held
        place = self.place(size, lane)
        if place is None:
            return None
        held = Held([], size, address=place[0], part=part)
        count = bench.pieces(size)
        for step in range(count):
            own = share(size, step, count)
            order = bench.transfer(
                Carries.READ, lane, index, own, tensor=tensor, step=step, address=held.at(step, count), local_bytes=own
            )
            command = bench.emitter.emit(order, self.sources(root, lane), place[1])
            held.pieces.append(Piece(step / count, (step + 1) / count, command))
            self.touch(held, command)
        self.store(root, lane, held, tiled=tiled)
        return held

    def _is_stored(self, root: int, lane: int) -> bool:
        """Whether outer memory has it. What a control op hands to its body is nowhere: it is another tensor there."""
        role = self.bench.graph.tensors[root].role
        if role is not Role.ACTIVATION or (root, lane) in self._outside:
            return True
        if root in self.bench.maker:
            raise LookupError(
                f"tensor {self.bench.graph.tensors[root].name!r} is not on lane {lane}; expected it there"
            )
        return False

    def sources(self, root: int, lane: int) -> list[int]:
        """Commands after which a tensor lies in outer memory."""
        if self.bench.graph.tensors[root].role is Role.INPUT:
            return [self.arrived[lane]] if lane in self.arrived else []
        outside = self.outside(root, lane)
        return outside.writes if outside is not None else []

    def _convert(self, index: int, position: int, lane: int, source: Held, *, tiled: bool) -> Held | None:
        """Change the order of a tensor's elements, piece by piece."""
        bench = self.bench
        tensor = bench.graph.ops[index].inputs[position]
        place = self.place(source.size, lane)
        if place is None:
            return None
        made = Held([], source.size, along=source.along, address=place[0], part=source.part)
        count = bench.pieces(source.size)
        for step in range(count):
            low, high = step / count, (step + 1) / count
            order = self.conversion(
                index,
                position,
                lane,
                share(source.size, step, count),
                tiled=tiled,
                step=step,
                address=made.at(step, count),
            )
            command = bench.emitter.emit(order, source.commands(source.along, low, high), place[1])
            made.pieces.append(Piece(low, high, command))
            self.touch(made, command)
            self.touch(source, command)
        self.store(self.root(tensor), lane, made, tiled=tiled)
        return made

    def conversion(
        self, index: int, position: int, lane: int, size: float, *, tiled: bool, step: int, address: int
    ) -> Order:
        """A command that changes the order of elements of an operand."""
        bench = self.bench
        form = bench.conversion_form(index, position, tiled=tiled)
        cycles = getattr(bench.layout, form).value * size / 1024
        detail = bench.move_detail(index, step, bench.local_name, bench.graph.ops[index].inputs[position])
        return Order(
            lane,
            VECTOR_GROUP,
            bench.command_name(form),
            Does.LAYOUT,
            index,
            detail,
            cycles,
            size,
            address=address,
            local_bytes=size,
        )
