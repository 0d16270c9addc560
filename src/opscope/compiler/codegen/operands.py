"""Operand placement: before an op runs on a lane, an address for everything that it reads and writes there.

Everything whole, if it fits. Else the largest tensor is streamed: it stays in outer memory and passes through a double
buffer, slice by slice, and the op runs in as many slices. If that is not enough the next largest is streamed too.

Example: an add of two tensors of 60 KB, both read again later, in 128 KB of local memory. 180 KB do not fit, so the
result is streamed (of equals, the tensor with the highest number). The op now runs in 4 × 180 / 128, rounded up to 6
slices: two slices of everything would take half of local memory. The double buffer of the result takes 2 × 60 / 6 =
20 KB and the operands 120 KB: still too much, so an operand is streamed as well, and 60 + 20 + 20 KB fit.

An elementwise result takes the place of an operand that nobody reads afterwards, where both have one size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ...core.errors import UsageError, printable
from ...estimate.kernels import has_weights
from ...graph.graph import ABSENT, Op
from ..plan import Schedule
from .context import LoweringContext
from .tensors import LocalCopy, Tensors

_ENOUGH_STEPS = 3  # weight tiles, whose results pass through a double buffer


def leaves_by_tiles(steps: float) -> bool:
    """Whether a product can be streamed out as it is made, with so many weight tiles, and needs no slices of rows."""
    return steps > _ENOUGH_STEPS


@dataclass(slots=True)
class Operand:
    """An input of an op: whole in local memory, or streamed through the double buffer `copy`."""

    position: int
    copy: LocalCopy
    streamed: bool
    slices: dict[int, int] = field(default_factory=dict)  # streamed: turn → command after which its slice is there
    awaited: int = 0  # streamed: number of its writes to outer memory that earlier slices have waited for
    users: dict[int, int] = field(default_factory=dict)  # streamed: turn → last command that read its slice


@dataclass(slots=True)
class OperandPlacement:
    """Where the operands and results of one op are on one lane."""

    index: int
    lane: int
    tiled: bool
    rows: int  # slices that the op runs in
    operands: list[Operand]
    results: list[LocalCopy]  # one per output, or one double buffer through which all are streamed
    streamed: bool  # results go to outer memory tile by tile
    panels: int = 1  # of weights, for each of which all slices pass
    tiles: int = 0  # that have been emitted
    writes: list[list[int]] = field(default_factory=list)  # streamed: the commands that wrote each tile


class OperandPlacer:
    """Places the operands of ops; of tensors that do not fit together, the largest is streamed."""

    def __init__(self, plan: Schedule, context: LoweringContext, tensors: Tensors) -> None:
        self.plan, self.context, self.tensors = plan, context, tensors

    def place_chain(
        self, chain: list[int], lane: int, *, tiled: bool, rows: int, steps: int = 1
    ) -> list[OperandPlacement]:
        """A placement for every op of a chain, which runs in `rows` slices or, where something is streamed, in more.

        Try, and on failure undo it, stream one tensor more and try again, at last with all of them streamed. A product
        makes its result in `steps` weight tiles anyway: to stream that alone, it needs no slices of rows.
        """
        sizes = self._sizes(chain, lane)
        room = self.tensors.memory[lane].capacity
        total = sum(sizes.get(root, 0.0) * count for root, count in self._counts(chain).items())
        smaller = max(rows, int(-(-4 * total // room)))  # then two slices of everything take half of local memory
        streamed: set[int] = set()
        made = {t for op in self._ops(chain) for t in op.outputs}
        while True:
            in_slices = not streamed <= made if leaves_by_tiles(steps) else bool(streamed)
            attempt = _PlacementAttempt(
                self, chain, lane, tiled=tiled, rows=smaller if in_slices else rows, steps=steps
            )
            if attempt.run(streamed, sizes):
                return attempt.placements
            attempt.undo()
            victim = self._victim(chain, sizes, streamed, first=made if leaves_by_tiles(steps) else frozenset())
            if victim is None:
                name = printable(self.plan.placed[chain[0]].op.name)
                raise UsageError(
                    f"{name}: a slice of {total / smaller:,.0f} bytes does not fit the local memory of {room:,} bytes; "
                    "expected more cores or a smaller batch"
                )
            streamed.add(victim)
            self.tensors.spill(victim, lane)

    def _victim(
        self, chain: list[int], sizes: dict[int, float], streamed: set[int], *, first: Collection[int]
    ) -> int | None:
        """The largest tensor that is not streamed yet; one that is a double buffer in the chain anyway comes last.

        Partial sums are not streamed: they are added up where they are.
        """
        sums = {t for i in chain if self.context.has_partial_sums(i) for t in self.plan.placed[i].op.outputs}
        whole = [root for root in sizes if root not in streamed and root not in sums]
        passing = {t for index in chain for t in self.plan.placed[index].op.outputs if self.passes(chain, index, t)}
        return max(whole, key=lambda root: (root not in passing, root in first, sizes[root], root), default=None)

    def passes(self, chain: list[int], index: int, tensor: int) -> bool:
        """Whether only later ops of the chain read an output: then a double buffer is enough for it."""
        inside = sum(tensor in self.plan.placed[i].op.inputs for i in chain if i > index)
        return inside > 0 and inside == self.tensors.readers(tensor)

    def _counts(self, chain: list[int]) -> dict[int, int]:
        """How many times each tensor is an operand or a result in the chain: as often it would be streamed."""
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
        """Position and tensor of the inputs other than weights, which have slots of their own."""
        skip = 1 if has_weights(op, self.context.graph) else ABSENT
        return [(position, t) for position, t in enumerate(op.inputs) if t != ABSENT and position != skip]

    def _operand_bytes(self, index: int, position: int, lane: int) -> float:
        """Bytes of an operand on a lane: of the copy that is there, or of what would be read."""
        root = self.tensors.root(self.context.graph.ops[index].inputs[position])
        if root in self.context.resident_constants:
            return 0.0
        self.tensors.discard_other_parts(index, position, lane)
        for tiled in (True, False):
            copy = self.tensors.get(root, lane, tiled=tiled)
            if copy is not None:
                return copy.size
        return self.tensors.bytes_to_read(index, position, lane)[0]

    def result_bytes(self, index: int, tensor: int, lane: int) -> float:
        return self.context.tensor_bytes(tensor) * self.context.result_share(index, lane)


class _PlacementAttempt:
    """One attempt to place a chain. It can be undone: no command has written to the results yet."""

    def __init__(
        self, placer: OperandPlacer, chain: list[int], lane: int, *, tiled: bool, rows: int, steps: int
    ) -> None:
        self.placer, self.plan, self.context, self.tensors = placer, placer.plan, placer.context, placer.tensors
        self.chain, self.lane, self.tiled, self.rows, self.steps = chain, lane, tiled, rows, steps
        self.placements: list[OperandPlacement] = []
        self._fresh: list[LocalCopy] = []
        self._stored: list[int] = []
        self._taken: list[tuple[LocalCopy, int]] = []  # operands whose block a result took, and its address

    def run(self, streamed: set[int], sizes: dict[int, float]) -> bool:
        """Place the results, then the operands. Returns whether everything found room."""
        for index in self.chain:
            outputs = self.plan.placed[index].op.outputs
            leaves = any(t in streamed for t in outputs)
            if leaves:
                results = [self._staging(sum(sizes.get(t, 0.0) for t in outputs), self.rows * self.steps)]
            else:
                results = [self._result(index, t, streamed) for t in outputs]
            found = [copy for copy in results if copy is not None]
            if len(found) < len(results):
                return False
            self.placements.append(OperandPlacement(index, self.lane, self.tiled, self.rows, [], found, leaves))
        return all(self._place_operands(placement, streamed, sizes) for placement in self.placements)

    def _place_operands(self, placement: OperandPlacement, streamed: set[int], sizes: dict[int, float]) -> bool:
        for position, t in self.placer.operands_of(self.plan.placed[placement.index].op):
            root = self.tensors.root(t)
            if root in streamed:
                copy = self._staging(sizes[root], self.rows)
            else:
                copy = self.tensors.load_operand(placement.index, position, self.lane, tiled=self.tiled)
            if copy is None:
                return False
            placement.operands.append(Operand(position, copy, root in streamed))
        return True

    def undo(self) -> None:
        """Give back everything that was allocated, and the blocks of operands that results had taken over."""
        for t in self._stored:
            self.tensors.remove(t, self.lane, tiled=self.tiled)
        for operand, address in self._taken:
            operand.address = address
        for copy in self._fresh:
            if copy.address is not None:
                self.tensors.memory[self.lane].release(copy.address, copy.guards)

    def _staging(self, size: float, slices: int) -> LocalCopy | None:
        """A double buffer for the slices of a tensor."""
        return self._place(size, ring=True, slices=slices)

    def _place(self, size: float, *, ring: bool, slices: int) -> LocalCopy | None:
        wanted = size * min(1.0, 2 / slices) if ring else size
        place = self.tensors.allocate(wanted, self.lane) if size else (0, ())
        if place is None:
            return None
        copy = LocalCopy([], size, address=place[0] if size else None, guards=place[1], ring=ring)
        self._fresh.append(copy)
        return copy

    def _result(self, index: int, tensor: int, streamed: set[int]) -> LocalCopy | None:
        """A block for an output: that of an operand where possible, else a new one."""
        size = self.placer.result_bytes(index, tensor, self.lane)
        ring = self.placer.passes(self.chain, index, tensor)
        copy = self._in_place(index, size, streamed, ring=ring) or self._place(size, ring=ring, slices=self.rows)
        if copy is not None:
            self.tensors.store(tensor, self.lane, copy, tiled=self.tiled)
            self._stored.append(tensor)
        return copy

    def _in_place(self, index: int, size: float, streamed: set[int], *, ring: bool) -> LocalCopy | None:
        """The block of an operand that is dead after this op, if it can be written over; ops that work by rows only.

        Element k of the result is written after element k of the operand was read, so a tile may overwrite its input;
        or that of an op before it in the chain, which has read the same tile of it.
        """
        op = self.plan.placed[index].op
        if not self.context.is_by_rows(op) or len(op.outputs) != 1:
            return None
        earlier = self.chain[: self.chain.index(index) + 1]
        for t in dict.fromkeys(t for i in reversed(earlier) for t in self.plan.placed[i].op.inputs):
            operand = self.tensors.get(t, self.lane, tiled=self.tiled) if t != ABSENT else None
            if operand is None or operand.address is None or operand.size != size or self.context.is_constant(t):
                continue
            if operand.more_addresses:  # not contiguous
                continue
            if (operand.ring and not ring) or t in streamed or not self._is_last_read(t, index):
                continue
            made = {piece.command for piece in operand.pieces}  # the tile waits for the pieces that it reads anyway
            guards = tuple(command for command in operand.last_use.values() if command not in made)
            copy = LocalCopy([], size, address=operand.address, guards=guards or operand.guards, ring=operand.ring)
            self._taken.append((operand, operand.address))
            operand.address = None  # the block has a new owner
            return copy
        return None

    def _is_last_read(self, tensor: int, index: int) -> bool:
        reading = [i for i in self.chain if tensor in self.plan.placed[i].op.inputs]
        alone = self.tensors.root(tensor) == tensor and self.tensors.readers(tensor) == len(reading)
        return alone and max(reading) <= index
