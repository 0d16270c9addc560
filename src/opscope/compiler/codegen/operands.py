"""Operand placement: before an op runs on a lane, an address for everything that it reads and writes there.

Everything whole, if it fits. Else the largest tensor is streamed: it stays in outer memory and passes through a double
buffer, slice by slice, and the op runs in as many slices. If that is not enough the next largest is streamed too. The
second operand of a product, all of which passes for every slice, comes last, and after smaller slices of the others.

Example: an add of two tensors of 60 KB, both read again later, in 128 KB of local memory. 180 KB do not fit, so the
result is streamed (of equals, the tensor with the highest number). The op now runs in 4 × 180 / 128, rounded up to 6
slices: two slices of everything would take half of local memory. The double buffer of the result takes 2 × 60 / 6 =
20 KB and the operands 120 KB: still too much, so an operand is streamed as well, and 60 + 20 + 20 KB fit.

An operand that is here in the other layout only need not go through outer memory for that: its slices are converted
into the double buffer one by one, from where it is.

An elementwise result takes the place of an operand that nobody reads afterwards, where both have one size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import ceil

from ...core.errors import UsageError, printable
from ...estimate.kernels import has_weights
from ...graph.graph import ABSENT, Graph, Op
from ...graph.kinds import Family
from ..plan import leaves_by_tiles
from ..sharding import Sharding
from .context import LoweringContext
from .tensors import LocalCopy, Tensors

_MOST_TIMES = 8  # as many slices as usual, before what all of them need is streamed
_FEW_SLICES = (0.55, 0.75, 1.0)  # of those that surely fit: tried one after the other


@dataclass(slots=True)
class Operand:
    """An input of an op, in local memory."""

    position: int
    copy: LocalCopy


@dataclass(slots=True)
class StreamedOperand(Operand):
    """An input of an op that passes through the double buffer `copy`, slice by slice."""

    source: LocalCopy | None = None  # in the other layout, which slices are converted from; None: outer memory has it
    slices: dict[int, int] = field(default_factory=dict)  # turn → command after which its slice is there
    awaited: int = 0  # number of its writes to outer memory that earlier slices have waited for
    users: dict[int, int] = field(default_factory=dict)  # turn → last command that read its slice

    def guards(self, turn: int) -> Sequence[int]:
        """Commands after which the half of the double buffer is free that the slice of a turn goes to."""
        return [self.users[turn - 2]] if turn >= 2 else self.copy.guards


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

    @property
    def streamed_operands(self) -> list[StreamedOperand]:
        return [operand for operand in self.operands if isinstance(operand, StreamedOperand)]


@dataclass(frozen=True, slots=True)
class ChainedOp:
    """An op of a chain: what of placing it is the same on all lanes."""

    index: int
    op: Op
    operands: tuple[tuple[int, int], ...]  # position of an input, and the tensor that has its bytes; without weights
    made: Sharding  # of its results
    overwritable: tuple[int, ...]  # inputs, of it or of ops before it, whose place its result may take


class Chain:
    """Ops that run together, tile by tile, as every lane sees them."""

    def __init__(self, context: LoweringContext, tensors: Tensors, indices: Sequence[int]) -> None:
        self.context, self.tensors, self.indices = context, tensors, indices
        self._inputs = {index: context.plan.placed[index].op.inputs for index in indices}
        self.ops = [self._chained(index) for index in indices]
        self.made = frozenset(t for each in self.ops for t in each.op.outputs)
        self.passing = frozenset(t for each in self.ops for t in each.op.outputs if self._passes(each.index, t))
        # Partial sums are added up where they are.
        self.sums = frozenset(t for each in self.ops if context.has_partial_sums(each.index) for t in each.op.outputs)
        self._sharding = context.plan.splits[indices[0]].sharding
        self._slice_counts: dict[tuple[float, float], int] = {}  # portion of the work, share of the results → slices
        self._keeps_layout = all(context.keeps_layout(each.op) for each in self.ops)
        self._read = dict.fromkeys(t for inputs in self._inputs.values() for t in inputs if t != ABSENT)

    def slice_count(self, lane: int) -> int:
        """Slices that the chain runs in on a lane, if all of it fits local memory."""
        shares = self._sharding.share(lane), self._sharding.made.share(lane)
        if shares not in self._slice_counts:
            self._slice_counts[shares] = self.context.slice_count(self.indices, *shares)
        return self._slice_counts[shares]

    def counts(self) -> Counter[int]:
        """How many times each tensor is an operand or a result: as often it would be streamed."""
        found = Counter(root for each in self.ops for _, root in each.operands)
        found.update(self.tensors.root(t) for each in self.ops for t in each.op.outputs)
        return found

    def is_tiled(self, lane: int) -> bool:
        """Whether it works in the tiled layout on a lane: all of it keeps layouts, and an operand is tiled."""
        return self._keeps_layout and any(self.tensors.is_tiled(t, lane) for t in self._read)

    def _chained(self, index: int) -> ChainedOp:
        op, made = self.context.plan.placed[index].op, self.context.plan.splits[index].sharding.made
        operands = ((position, self.tensors.root(t)) for position, t in operands_of(op, self.context.graph))
        return ChainedOp(index, op, tuple(operands), made, self._overwritable(index))

    def _passes(self, index: int, tensor: int) -> bool:
        """Whether only later ops of the chain read an output: then a double buffer is enough for it."""
        inside = sum(tensor in inputs for i, inputs in self._inputs.items() if i > index)
        return inside > 0 and inside == self.tensors.readers(tensor)

    def _overwritable(self, index: int) -> tuple[int, ...]:
        """Inputs that are dead after an op, whose place its result may take; for ops that work by rows only.

        Element k of the result is written after element k of the operand was read, so a tile may overwrite its input;
        or that of an op before it in the chain, which has read the same tile of it.
        """
        op = self.context.plan.placed[index].op
        if not self.context.is_by_rows(op) or len(op.outputs) != 1:
            return ()
        earlier = self.indices[: self.indices.index(index) + 1]
        found = dict.fromkeys(t for i in reversed(earlier) for t in self._inputs[i] if t != ABSENT)
        return tuple(t for t in found if not self.context.is_constant(t) and self._is_last_read(t, index))

    def _is_last_read(self, tensor: int, index: int) -> bool:
        reading = [i for i, inputs in self._inputs.items() if tensor in inputs]
        alone = self.tensors.root(tensor) == tensor and self.tensors.readers(tensor) == len(reading)
        return alone and max(reading) <= index


def operands_of(op: Op, graph: Graph) -> list[tuple[int, int]]:
    """Position and tensor of the inputs other than weights, which have slots of their own."""
    skip = 1 if has_weights(op, graph) else ABSENT
    return [(position, t) for position, t in enumerate(op.inputs) if t != ABSENT and position != skip]


class OperandPlacer:
    """Places the operands of ops; of tensors that do not fit together, the largest is streamed."""

    def __init__(self, context: LoweringContext, tensors: Tensors) -> None:
        self.context, self.tensors = context, tensors

    def place_chain(self, chain: Chain, lane: int, *, tiled: bool, rows: int, steps: int = 1) -> list[OperandPlacement]:
        """A placement for every op of a chain, which runs in `rows` slices or, where something is streamed, in more.

        Try, and undo it where not everything fits. A product makes its result in `steps` weight tiles anyway: to stream
        that alone, it needs no slices of rows.
        """
        sizes = self._sizes(chain, lane)
        attempt = _PlacementAttempt(chain, lane, sizes, tiled=tiled, rows=rows, steps=steps)
        if attempt.run(set()):
            return attempt.placements
        attempt.undo()
        return self._place_streamed(chain, lane, sizes, tiled=tiled, rows=rows, steps=steps)

    def _place_streamed(
        self, chain: Chain, lane: int, sizes: dict[int, float], *, tiled: bool, rows: int, steps: int
    ) -> list[OperandPlacement]:
        """Place what does not fit whole: stream one tensor more and try again, at last with all of them streamed."""
        whole, room = self._needed_whole(chain, lane), self.tensors.memory[lane].capacity
        bytes_of = {root: sizes.get(root, 0.0) * count for root, count in chain.counts().items()}
        sliced = sum([size for root, size in bytes_of.items() if root not in whole])
        smaller = max(rows, int(-(-4 * sliced // room)))  # then two slices of everything take half of local memory
        smallest = max(rows, int(-(-4 * sum(bytes_of.values()) // room)))  # the same, with what all slices need
        placed = self._place_by_slices(chain, lane, sizes, tiled=tiled, rows=smallest, steps=steps)
        if placed is not None:
            return placed
        by_tiles = chain.made if leaves_by_tiles(steps) else frozenset[int]()
        streamed, more, in_slices = set[int](), 1, False
        while True:
            victim = self._victim(chain, sizes, streamed, first=by_tiles, last=whole)
            if victim is None:
                name, least = printable(chain.ops[0].op.name), sum(bytes_of.values()) / smallest
                raise UsageError(
                    f"{name}: a slice of {least:,.0f} bytes does not fit the local memory of {room:,} bytes; "
                    "expected more cores or a smaller batch"
                )
            more = more * 2 if in_slices and victim in whole and more < _MOST_TIMES else 1
            if more == 1:
                streamed.add(victim)
                self.tensors.spill(victim, lane)
            in_slices = not streamed <= by_tiles
            again = not whole.isdisjoint(streamed)  # all of it passes for every slice: as few slices as fit
            counts = [ceil(share * smallest) for share in _FEW_SLICES] if again else [smaller * more]
            for slices in counts if in_slices else (rows,):
                attempt = _PlacementAttempt(chain, lane, sizes, tiled=tiled, rows=max(rows, slices), steps=steps)
                if attempt.run(streamed):
                    return attempt.placements
                attempt.undo()

    def _place_by_slices(
        self, chain: Chain, lane: int, sizes: dict[int, float], *, tiled: bool, rows: int, steps: int
    ) -> list[OperandPlacement] | None:
        """Try with operands whose layout is changed slice by slice, in so many slices or in more; weights would enter
        their engine for each of them.
        """
        sources = self._other_layout(chain, lane, tiled=tiled)
        for more in (1, 2, 4, 8) if steps == 1 else (1,):
            attempt = _PlacementAttempt(chain, lane, sizes, tiled=tiled, rows=rows * more, steps=steps, sources=sources)
            if sources and attempt.run(set(sources)):
                return attempt.placements
            attempt.undo()
        return None

    def _other_layout(self, chain: Chain, lane: int, *, tiled: bool) -> dict[int, LocalCopy]:
        """Operands that are here in the other layout only, of which a slice of the result needs a slice."""
        found: dict[int, LocalCopy] = {}
        whole = set[int]()
        for each in chain.ops if self.context.layout is not None else ():
            for position, root in each.operands:
                copy = self.tensors.get(root, lane, tiled=not tiled)
                if position and each.op.family in (Family.CONTRACTION, Family.RECURRENT):
                    whole.add(root)
                elif copy is not None and copy.address is not None and not self.context.is_constant(root):
                    found[root] = copy
        return {
            root: copy
            for root, copy in found.items()
            if root not in whole and self.tensors.get(root, lane, tiled=tiled) is None
        }

    def _needed_whole(self, chain: Chain, lane: int) -> frozenset[int]:
        """Operands all of which every slice needs: streamed, they would be read again for each of them."""
        return frozenset(
            root
            for each in chain.ops
            for position, root in each.operands
            if self.context.is_needed_whole(each.index, position, lane)
        )

    def _victim(
        self,
        chain: Chain,
        sizes: dict[int, float],
        streamed: set[int],
        *,
        first: Collection[int],
        last: Collection[int],
    ) -> int | None:
        """The largest tensor that is not streamed yet; one that is a double buffer in the chain anyway comes last."""
        left = [root for root, size in sizes.items() if size and root not in streamed and root not in chain.sums]
        return max(
            left,
            key=lambda root: (root not in chain.passing, root in first, root not in last, sizes[root], root),
            default=None,
        )

    def _sizes(self, chain: Chain, lane: int) -> dict[int, float]:
        """Bytes of everything that a chain reads and writes on a lane."""
        sizes: dict[int, float] = {}
        for each in chain.ops:
            for position, root in each.operands:
                sizes.setdefault(root, self._operand_bytes(each.index, position, root, lane))
            for t in each.op.outputs:
                sizes[t] = self.context.tensor_bytes(t) * each.made.share(lane)
        return sizes

    def _operand_bytes(self, index: int, position: int, root: int, lane: int) -> float:
        """Bytes of an operand on a lane: of the copy that is there, or of what would be read."""
        if root in self.context.resident_constants:
            return 0.0
        self.tensors.discard_other_parts(index, position, lane)
        copy = self.tensors.get(root, lane, tiled=True) or self.tensors.get(root, lane, tiled=False)
        return self.tensors.bytes_to_read(index, position, lane)[0] if copy is None else copy.size


class _PlacementAttempt:
    """One attempt to place a chain. It can be undone: no command has written to the results yet."""

    def __init__(
        self,
        chain: Chain,
        lane: int,
        sizes: dict[int, float],
        *,
        tiled: bool,
        rows: int,
        steps: int,
        sources: Mapping[int, LocalCopy] | None = None,
    ) -> None:
        """`sources`: copies in the other layout, of operands that are streamed."""
        self.chain, self.tensors, self.sources = chain, chain.tensors, sources or {}
        self.lane, self.sizes, self.tiled, self.rows, self.steps = lane, sizes, tiled, rows, steps
        self.placements: list[OperandPlacement] = []
        self._fresh: list[LocalCopy] = []
        self._stored: list[int] = []
        self._taken: list[tuple[LocalCopy, int]] = []  # operands whose block a result took, and its address

    def run(self, streamed: set[int]) -> bool:
        """Place the results, then the operands. Returns whether everything found room."""
        for each in self.chain.ops:
            outputs = each.op.outputs
            leaves = not streamed.isdisjoint(outputs)
            if leaves:
                results = [self._staging(sum(self.sizes[t] for t in outputs), self.rows * self.steps)]
            else:
                results = [self._result(each, t, streamed) for t in outputs]
            found = [copy for copy in results if copy is not None]
            if len(found) < len(results):
                return False
            self.placements.append(OperandPlacement(each.index, self.lane, self.tiled, self.rows, [], found, leaves))
        return all(map(self._place_operands, self.chain.ops, self.placements, repeat(streamed)))

    def _place_operands(self, each: ChainedOp, placement: OperandPlacement, streamed: set[int]) -> bool:
        for position, root in each.operands:
            passes = root in streamed
            if passes:
                copy = self._staging(self.sizes[root], self.rows)
            else:
                copy = self.tensors.load_operand(each.index, position, self.lane, tiled=self.tiled)
            if copy is None:
                return False
            streams = StreamedOperand(position, copy, self.sources.get(root))
            placement.operands.append(streams if passes else Operand(position, copy))
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
        copy = LocalCopy([], size, ring=ring)
        place = self.tensors.allocate(copy.held(slices), self.lane) if size else (None, ())
        if place is None:
            return None
        copy.address, copy.guards = place
        self._fresh.append(copy)
        return copy

    def _result(self, each: ChainedOp, tensor: int, streamed: set[int]) -> LocalCopy | None:
        """A block for an output: that of an operand where possible, else a new one."""
        size, ring = self.sizes[tensor], tensor in self.chain.passing
        copy = self._in_place(each, size, streamed, ring=ring) or self._place(size, ring=ring, slices=self.rows)
        if copy is not None:
            self.tensors.store(tensor, self.lane, copy, tiled=self.tiled)
            self._stored.append(tensor)
        return copy

    def _in_place(self, each: ChainedOp, size: float, streamed: set[int], *, ring: bool) -> LocalCopy | None:
        """The block of an operand that is dead after this op, if it can be written over."""
        for t in each.overwritable:
            operand = self.tensors.get(t, self.lane, tiled=self.tiled)
            if operand is None or operand.address is None or operand.size != size:
                continue
            if operand.more_addresses:  # not contiguous
                continue
            if (operand.ring and not ring) or t in streamed:
                continue
            made = {piece.command for piece in operand.pieces}  # the tile waits for the pieces that it reads anyway
            guards = tuple(command for command in operand.last_use.values() if command not in made)
            copy = LocalCopy([], size, address=operand.address, guards=guards or operand.guards, ring=operand.ring)
            self._taken.append((operand, operand.address))
            operand.address = None  # the block has a new owner
            return copy
        return None
