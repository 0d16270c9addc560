"""Where tensors are while commands are emitted: on which lane, in which order of elements, at which address.

A tensor on a lane is a list of pieces, each made by a command, so that a reader waits for what it reads and no more.
When local memory is full, the tensor that is needed last moves to outer memory and is read again when needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ..graph import ABSENT, Role
from .emit import Order
from .local import LocalMemory
from .workbench import VECTOR_GROUP, Workbench

ROWS, CHANNELS = "rows", "channels"


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
    guards: tuple[int, ...] = ()  # commands that used the place before; the first writer waits for them
    touched: dict[int, int] = field(default_factory=dict)  # group → last command that read or wrote it

    def commands(self, along: str, low: float, high: float) -> list[int]:
        """Commands that made the pieces between two shares; all of them where the cut runs the other way."""
        if self.along != along:
            return [piece.command for piece in self.pieces]
        return [p.command for p in self.pieces if p.low < high - 1e-9 and p.high > low + 1e-9]


class Tensors:
    """All tensors on all lanes."""

    def __init__(self, bench: Workbench, *, reserved: int) -> None:
        self.bench = bench
        self.memory = [LocalMemory(bench.capacity - reserved) for _ in range(bench.cores)]
        self.spilled_bytes = 0
        self.now = 0  # position of the op that is being lowered
        self._held: dict[tuple[int, bool], dict[int, Held]] = {}  # (tensor, tiled) → lane → state
        self._outside: dict[tuple[int, int], tuple[bool, list[int]]] = {}  # (tensor, lane) → tiled, writes
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

    def lanes_holding(self, tensor: int) -> Iterator[tuple[int, bool, Held]]:
        for tiled in (True, False):
            for lane, held in self._held.get((self.root(tensor), tiled), {}).items():
                yield lane, tiled, held

    def store(self, tensor: int, lane: int, held: Held, *, tiled: bool) -> None:
        self._held.setdefault((tensor, tiled), {})[lane] = held

    def writes_of(self, tensor: int, lane: int) -> tuple[bool, list[int]] | None:
        """How a lane's part lies in outer memory, and the commands that wrote it there."""
        return self._outside.get((self.root(tensor), lane))

    def note_write(self, tensor: int, lane: int, command: int, *, tiled: bool) -> None:
        self._outside.setdefault((self.root(tensor), lane), (tiled, []))[1].append(command)

    # ---- places ---------------------------------------------------------------------------------------------------

    def place(self, size: float, lane: int, *, keep: Collection[int]) -> tuple[int, tuple[int, ...]] | None:
        """An address, after moving others out if need be; None when even an empty memory would be too small."""
        memory = self.memory[lane]
        while True:
            found = memory.allocate(size)
            if found is not None or size > memory.capacity:
                return found
            if not self._evict(lane, keep):
                return None

    def _evict(self, lane: int, keep: Collection[int]) -> bool:
        """Move out the tensor that is needed last. Returns whether there was one."""
        candidates = [
            (self._next_use(tensor), held.size, tensor, tiled)
            for (tensor, tiled), lanes in self._held.items()
            if tensor not in keep and (held := lanes.get(lane)) is not None and held.address is not None
        ]
        if not candidates:
            return False
        _, _, tensor, tiled = max(candidates)
        held = self._held[tensor, tiled].pop(lane)
        if not self._is_elsewhere(tensor, lane):
            order = self.bench.transfer("write", lane, self._maker(tensor), held.size, tensor=tensor)
            command = self.bench.emitter.emit(order, [piece.command for piece in held.pieces])
            held.touched[self.bench.dma] = command
            self.note_write(tensor, lane, command, tiled=tiled)
            self.spilled_bytes += round(held.size)
        self._release(lane, held)
        return True

    def _is_elsewhere(self, tensor: int, lane: int) -> bool:
        """Whether a tensor can be had again without writing it out first."""
        role = self.bench.graph.tensors[tensor].role
        other = any(lane in self._held.get((tensor, tiled), {}) for tiled in (True, False))
        return role in (Role.CONSTANT, Role.INPUT) or other or (tensor, lane) in self._outside

    def _maker(self, tensor: int) -> int:
        return self.bench.maker.get(tensor, -1)

    def _next_use(self, tensor: int) -> int:
        return next((use for use in self._uses.get(tensor, ()) if use >= self.now), 1 << 60)

    def _release(self, lane: int, held: Held) -> None:
        if held.address is not None:
            self.memory[lane].release(held.address, tuple(held.touched.values()) or held.guards)

    def retire(self, inputs: Collection[int]) -> None:
        """An op has read these; give back the places of those that nobody reads any more."""
        for t in dict.fromkeys(inputs):
            if t == ABSENT:
                continue
            root = self.root(t)
            for tensor in {t, root}:
                self._readers[tensor] -= 1
            if self._readers[root] <= 0:
                self.drop(root)

    def drop(self, tensor: int) -> None:
        for tiled in (False, True):
            for lane, held in self._held.pop((tensor, tiled), {}).items():
                self._release(lane, held)

    def readers(self, tensor: int) -> int:
        return self._readers[tensor]

    # ---- bringing a tensor where it is needed ---------------------------------------------------------------------

    def need(self, index: int, position: int, lane: int, *, tiled: bool, form: str) -> Held | None:
        """An input whole on a lane and in the order wanted; None when it does not fit and must be read in slices."""
        bench = self.bench
        tensor = bench.graph.ops[index].inputs[position]
        held = self.get(tensor, lane, tiled=tiled)
        if held is not None:
            return held
        other = self.get(tensor, lane, tiled=not tiled)
        if other is None:
            other = self._read(index, position, lane)
            if other is None:
                return None
        root = self.root(tensor)
        if bench.layout is None or bench.is_constant(root) or self.get(tensor, lane, tiled=tiled) is not None:
            return self.get(tensor, lane, tiled=tiled) or other
        return self._convert(index, tensor, lane, other, form if tiled else "from_tiled")

    def _read(self, index: int, position: int, lane: int) -> Held | None:
        """Read a constant, a graph input or a tensor that was moved out."""
        bench = self.bench
        tensor = bench.graph.ops[index].inputs[position]
        root = self.root(tensor)
        tiled, writes = self.writes_of(root, lane) or (False, [])
        size = bench.held_bytes(tensor, root, lane) if writes else bench.read_bytes(index, position, lane)
        if not size or root in bench.settled:
            held = Held([], 0.0)
            self.store(root, lane, held, tiled=tiled)
            return held
        keep = {self.root(t) for t in bench.graph.ops[index].inputs if t != ABSENT}
        place = self.place(size, lane, keep=keep)
        if place is None:
            return None
        held = Held([], size, address=place[0])
        count = bench.pieces(size)
        for step in range(count):
            order = bench.transfer("read", lane, index, size / count, tensor=tensor, step=step, address=place[0],
                                   local_bytes=size / count)  # fmt: skip
            command = bench.emitter.emit(order, writes, place[1])
            held.pieces.append(Piece(step / count, (step + 1) / count, command))
            held.touched[bench.dma] = command
        self.store(root, lane, held, tiled=tiled)
        return held

    def _convert(self, index: int, tensor: int, lane: int, source: Held, form: str) -> Held | None:
        """Change the order of a tensor's elements, piece by piece."""
        bench = self.bench
        keep = {self.root(t) for t in bench.graph.ops[index].inputs if t != ABSENT}
        place = self.place(source.size, lane, keep=keep) if source.size else None
        if place is None and source.size:
            return None
        made = Held([], source.size, along=source.along, address=place[0] if place else None)
        count = bench.pieces(source.size)
        for step in range(count):
            low, high = step / count, (step + 1) / count
            size = source.size / count
            cycles = getattr(bench.layout, form).value * size / 1024
            detail = bench.move_detail(index, step, bench.local_name, tensor)
            order = Order(lane, VECTOR_GROUP, bench.command_name(form), index, detail, cycles, size,
                          address=place[0] if place else 0, local_bytes=size)  # fmt: skip
            after = source.commands(source.along, low, high)
            command = bench.emitter.emit(order, after, place[1] if place else ())
            made.pieces.append(Piece(low, high, command))
            made.touched[VECTOR_GROUP] = source.touched[VECTOR_GROUP] = command
        self.store(self.root(tensor), lane, made, tiled=form != "from_tiled")
        return made
