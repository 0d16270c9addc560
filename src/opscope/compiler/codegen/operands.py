"""Before an op runs on a lane: a place for everything it reads and writes there.

What does not fit is streamed: it passes through two places that take turns, slice by slice, from or to outer memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...core.errors import UsageError, printable
from ...graph.graph import ABSENT, Op
from ...graph.kinds import Family
from ..passes.place import has_weights
from ..plan import Plan
from .context import Workbench
from .tensors import Held, Tensors


@dataclass(slots=True)
class Operand:
    """An input of an op: held whole, or streamed through the places of `held`."""

    position: int
    held: Held
    streamed: bool
    slice_done: int = -1  # streamed: command after which the slice at hand is there
    awaited: int = 0  # streamed: so many writes of it to outer memory are done before the slice at hand is read
    users: list[int] = field(default_factory=list)  # the last command that read each slice


@dataclass(slots=True)
class Desk:
    """Everything that one op works with on one lane."""

    index: int
    lane: int
    tiled: bool
    rows: int  # slices that the op runs in
    operands: list[Operand]
    results: list[Held]  # one per output, or the places that all of them are streamed through
    streamed: bool  # results go to outer memory tile by tile
    writes: list[list[int]] = field(default_factory=list)  # streamed: the commands that wrote each tile


class Seating:
    """Finds places; of what does not fit together, the largest is streamed."""

    def __init__(self, plan: Plan, bench: Workbench, tensors: Tensors) -> None:
        self.plan, self.bench, self.tensors = plan, bench, tensors

    def seat(self, chain: list[int], lane: int, *, tiled: bool, rows: int) -> list[Desk]:
        """A desk for every op of a chain, which runs in `rows` slices or, where something is streamed, in more."""
        sizes = self._sizes(chain, lane)
        room = self.tensors.memory[lane].capacity
        total = sum(sizes.get(root, 0.0) * count for root, count in self._counts(chain).items())
        smaller = max(rows, int(-(-4 * total // room)))  # then two slices of everything take half of local memory
        streamed: set[int] = set()
        while True:
            attempt = _Attempt(self, chain, lane, tiled=tiled, rows=smaller if streamed else rows)
            if attempt.run(streamed, sizes):
                return attempt.desks
            attempt.undo()
            victim = self._victim(chain, sizes, streamed)
            if victim is None:
                name = printable(self.plan.placed[chain[0]].op.name)
                raise UsageError(
                    f"{name}: a slice of {total / smaller:,.0f} bytes does not fit the local memory of {room:,} bytes; "
                    "expected more cores or a smaller batch"
                )
            streamed.add(victim)
            self.tensors.move_out(victim, lane)

    def _victim(self, chain: list[int], sizes: dict[int, float], streamed: set[int]) -> int | None:
        """The largest tensor that is not streamed yet; one that has room for two tiles only comes last."""
        whole = [root for root in sizes if root not in streamed]
        passing = {t for index in chain for t in self.plan.placed[index].op.outputs if self.passes(chain, index, t)}
        return max(whole, key=lambda root: (root not in passing, sizes[root], root), default=None)

    def passes(self, chain: list[int], index: int, tensor: int) -> bool:
        """Whether only later ops of the chain read an output: then it is never there as a whole."""
        inside = sum(tensor in self.plan.placed[i].op.inputs for i in chain if i > index)
        return inside > 0 and inside == self.tensors.readers(tensor)

    def _counts(self, chain: list[int]) -> dict[int, int]:
        """How often each tensor would be streamed."""
        counts: dict[int, int] = {}
        for op in self._ops(chain):
            for t in (*(t for _, t in self.operands_of(op)), *op.outputs):
                root = self.tensors.root(t)
                counts[root] = counts.get(root, 0) + 1
        return counts

    def _sizes(self, chain: list[int], lane: int) -> dict[int, float]:
        """Bytes of everything that a chain reads and writes on a lane."""
        sizes: dict[int, float] = {}
        for index, op in zip(chain, self._ops(chain), strict=True):
            for position, t in self.operands_of(op):
                sizes.setdefault(self.tensors.root(t), self._operand_bytes(index, position, lane))
            for t in op.outputs:
                sizes[t] = self.result_bytes(index, t, lane)
        return {root: size for root, size in sizes.items() if size}

    def _ops(self, chain: list[int]) -> Iterator[Op]:
        return (self.plan.placed[index].op for index in chain)

    def operands_of(self, op: Op) -> list[tuple[int, int]]:
        """Position and tensor of the inputs that are not streamed as weights."""
        skip = 1 if has_weights(op, self.bench.graph) else ABSENT
        return [(position, t) for position, t in enumerate(op.inputs) if t != ABSENT and position != skip]

    def _operand_bytes(self, index: int, position: int, lane: int) -> float:
        """Bytes of an operand on a lane: as it is there, or as it would be read."""
        root = self.tensors.root(self.bench.graph.ops[index].inputs[position])
        if root in self.bench.settled:
            return 0.0
        self.tensors.forget_other_parts(index, position, lane)
        for tiled in (True, False):
            held = self.tensors.get(root, lane, tiled=tiled)
            if held is not None:
                return held.size
        return self.tensors.to_read(index, position, lane)[0]

    def result_bytes(self, index: int, tensor: int, lane: int) -> float:
        return self.bench.tensor_bytes(tensor) * self.bench.portion(self.plan.splits[index], lane)


class _Attempt:
    """One try to seat a chain. Places of results can be given back: nothing was written there yet."""

    def __init__(self, seating: Seating, chain: list[int], lane: int, *, tiled: bool, rows: int) -> None:
        self.seating, self.plan, self.bench, self.tensors = seating, seating.plan, seating.bench, seating.tensors
        self.chain, self.lane, self.tiled, self.rows = chain, lane, tiled, rows
        self.desks: list[Desk] = []
        self._fresh: list[Held] = []
        self._stored: list[int] = []
        self._taken: list[tuple[Held, int]] = []  # operands whose place a result took, and their address

    def run(self, streamed: set[int], sizes: dict[int, float]) -> bool:
        """Whether everything found a place, what is streamed as well as what is not."""
        for index in self.chain:
            outputs = self.plan.placed[index].op.outputs
            leaves = any(t in streamed for t in outputs)
            if leaves:
                results = [self._staging(sum(sizes.get(t, 0.0) for t in outputs))]
            else:
                results = [self._result(index, t, streamed) for t in outputs]
            found = [held for held in results if held is not None]
            if len(found) < len(results):
                return False
            self.desks.append(Desk(index, self.lane, self.tiled, self.rows, [], found, leaves))
        return all(self._seat_operands(desk, streamed, sizes) for desk in self.desks)

    def _seat_operands(self, desk: Desk, streamed: set[int], sizes: dict[int, float]) -> bool:
        for position, t in self.seating.operands_of(self.plan.placed[desk.index].op):
            root = self.tensors.root(t)
            if root in streamed:
                held = self._staging(sizes[root])
            else:
                held = self.tensors.need(desk.index, position, self.lane, tiled=self.tiled)
            if held is None:
                return False
            desk.operands.append(Operand(position, held, root in streamed))
        return True

    def undo(self) -> None:
        for t in self._stored:
            self.tensors.withdraw(t, self.lane, tiled=self.tiled)
        for operand, address in self._taken:
            operand.address = address
        for held in self._fresh:
            if held.address is not None:
                self.tensors.memory[self.lane].release(held.address, held.guards)

    def _staging(self, size: float) -> Held | None:
        """Two places that slices take in turns while an op runs."""
        return self._place(size, ring=True)

    def _place(self, size: float, *, ring: bool) -> Held | None:
        wanted = size * min(1.0, 2 / self.rows) if ring else size
        place = self.tensors.place(wanted, self.lane) if size else (0, ())
        if place is None:
            return None
        held = Held([], size, address=place[0] if size else None, guards=place[1], ring=ring)
        self._fresh.append(held)
        return held

    def _result(self, index: int, tensor: int, streamed: set[int]) -> Held | None:
        """A place for an output, over an operand where that is possible."""
        size = self.seating.result_bytes(index, tensor, self.lane)
        ring = self.seating.passes(self.chain, index, tensor)
        held = self._in_place(index, size, streamed, ring=ring) or self._place(size, ring=ring)
        if held is not None:
            self.tensors.store(tensor, self.lane, held, tiled=self.tiled)
            self._stored.append(tensor)
        return held

    def _in_place(self, index: int, size: float, streamed: set[int], *, ring: bool) -> Held | None:
        """Write over an operand that nobody reads after this op; only where piece follows piece."""
        op = self.plan.placed[index].op
        if op.family is not Family.ELEMENTWISE or len(op.outputs) != 1:
            return None
        for t in op.inputs:
            operand = self.tensors.get(t, self.lane, tiled=self.tiled) if t != ABSENT else None
            if operand is None or operand.address is None or operand.size != size or self.bench.is_constant(t):
                continue
            if operand.further:  # not one place
                continue
            if (operand.ring and not ring) or t in streamed or not self._is_last_read(t, index):
                continue
            made = {piece.command for piece in operand.pieces}  # a piece is overwritten after it was read: no wait
            guards = tuple(command for command in operand.touched.values() if command not in made)
            held = Held([], size, address=operand.address, guards=guards or operand.guards, ring=operand.ring)
            self._taken.append((operand, operand.address))
            operand.address = None  # the place has a new owner
            return held
        return None

    def _is_last_read(self, tensor: int, index: int) -> bool:
        reading = [i for i in self.chain if tensor in self.plan.placed[i].op.inputs]
        alone = self.tensors.root(tensor) == tensor and self.tensors.readers(tensor) == len(reading)
        return alone and max(reading) <= index
