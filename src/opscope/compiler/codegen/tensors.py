"""Where tensors are while commands are emitted: on which lane, in which layout, at which address.

A copy on a lane is a list of pieces, each made by a command, so that a reader waits for what it reads and no more.
When local memory is full, the tensor whose next use is farthest ahead is spilled to outer memory (Belady's rule; the
uses are known, since the order of ops is fixed) and read back when it is needed. Example: A is read by op 9, B by op
4, and op 3 needs room: A is spilled. A tensor that outer memory has already is dropped without being written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...core.meaning import Carries, Does
from ...graph.graph import ABSENT, Op, Role
from ...program.program import NO_OP
from ..sharding import Sharding
from .context import VECTOR_GROUP, LoweringContext
from .emit import CommandSpec, share
from .local_memory import LocalMemory
from .outer_use import OuterUse
from .timing import VectorCost

ROWS, CHANNELS = "rows", "channels"
NEVER = 1 << 60  # behind every op

# A tensor and how lanes share it; or an op and None: what it alone needs, such as rows.
TensorPart = tuple[int, Sharding | None]


class Piece(NamedTuple):
    """A range of a copy, from one fraction of it to another, and the command that makes it."""

    low: float
    high: float
    command: int


@dataclass(slots=True)
class LocalCopy:
    """A tensor, or a lane's part of it, in the local memory of one lane."""

    pieces: list[Piece]
    size: float
    along: str = ROWS  # direction in which pieces follow each other: ROWS or CHANNELS
    address: int | None = None  # None: takes no memory of its own
    more_addresses: tuple[int, ...] = ()  # of further blocks: joined batch tiles stay where they are
    guards: tuple[int, ...] = ()  # commands that used the block before; the first writer waits for them
    ring: bool = False  # a double buffer: room for two tiles, which alternate
    part: TensorPart | None = None  # which part of a tensor in outer memory was read; None: all of it
    last_use: dict[int, int] = field(default_factory=dict)  # stream → last command that read or wrote it

    def commands(self, along: str, low: float, high: float) -> list[int]:
        """Commands that make the pieces between two fractions; all of them where pieces run the other way."""
        if self.along != along:
            return [piece.command for piece in self.pieces]
        return [p.command for p in self.pieces if p.low < high - 1e-9 and p.high > low + 1e-9]

    @property
    def addresses(self) -> tuple[int, ...]:
        return self.more_addresses if self.address is None else (self.address, *self.more_addresses)

    def held(self, steps: int) -> float:
        """Bytes that are there at once while it is worked through in `steps` tiles."""
        return self.size * min(1.0, 2 / steps) if self.ring else self.size

    def tile_address(self, step: int, steps: int) -> int:
        """Address of one of `steps` tiles; in a double buffer even and odd tiles alternate."""
        return (self.address or 0) + round((step % 2 if self.ring else step) * self.size / steps)


@dataclass(slots=True)
class OuterCopy:
    """A tensor, or a lane's part of it, in outer memory, and the commands that wrote it."""

    tiled: bool
    size: float
    writes: list[int]


def _same_part(sharding: Sharding | None, lane: int, other: int) -> bool:
    return (
        sharding is not None
        and sharding.boxes.get(lane) is not None
        and sharding.boxes.get(lane) == sharding.boxes.get(other)
    )


class Tensors:
    """The state of all tensors on all lanes, and the commands that load, spill and convert them."""

    def __init__(self, context: LoweringContext, *, reserved_bytes: int) -> None:
        self.context = context
        room = context.capacity - reserved_bytes
        self.memory = [LocalMemory(room, context.emitter.latest) for _ in range(context.lane_count)]
        self.current_op = 0  # position of the op that is being lowered
        self.pinned: Collection[int] = ()  # operands of the ops that are being lowered: not to be spilled
        self.inputs_ready: dict[int, int] = {}  # lane → command after which the graph's inputs are there
        self.body_waits: dict[str, dict[int, list[int]]] = {}  # control op → lane → commands before its body
        self._copies: dict[tuple[int, bool], dict[int, LocalCopy]] = {}  # (tensor, tiled) → lane → state
        self._outer: dict[tuple[int, int], OuterCopy] = {}  # (tensor, lane)
        machine = context.plan.machine
        self.outer_use = OuterUse(devices=machine.devices, cores=machine.cores)
        self.outputs = frozenset(context.graph.outputs)
        self._alias: dict[int, int] = {}  # view → the tensor that owns its bytes, itself no view
        self._in_parts: set[int] = set()  # tensors of which a lane may have a part that an op needed
        self._parts: dict[tuple[int, int], TensorPart | None] = {}  # op, position of an input → what it needs
        self._readers = Counter(t for op in context.graph.ops for t in dict.fromkeys(op.inputs) if t != ABSENT)
        self._readers.update(context.graph.outputs)
        self._uses: dict[int, list[int]] = {}
        for index, op in enumerate(context.graph.ops):
            for t in op.inputs:
                self._uses.setdefault(t, []).append(index)

    # ---- names ----------------------------------------------------------------------------------------------------

    def root(self, tensor: int) -> int:
        """The tensor that owns the bytes: a view has none of its own."""
        return self._alias.get(tensor, tensor)

    def roots(self, tensors: Iterable[int]) -> set[int]:
        return {self.root(t) for t in tensors if t != ABSENT}

    def alias(self, source: int, result: int) -> None:
        """Make a tensor a view of another; its readers count for the owner of the bytes."""
        root = self.root(source)
        self._alias[result] = root
        self._readers[root] += self._readers[result]
        self._uses.setdefault(root, []).extend(self._uses.get(result, ()))

    # ---- state ----------------------------------------------------------------------------------------------------

    def get(self, tensor: int, lane: int, *, tiled: bool) -> LocalCopy | None:
        lanes = self._copies.get((self._alias.get(tensor, tensor), tiled))
        return None if lanes is None else lanes.get(lane)

    def is_tiled(self, tensor: int, lane: int) -> bool:
        """Whether a lane has a tensor in the tiled layout: here, or in outer memory if it is not here at all."""
        if self.get(tensor, lane, tiled=True) is not None:
            return True
        outer = self.outer_copy(tensor, lane)
        return outer is not None and outer.tiled and self.get(tensor, lane, tiled=False) is None

    def holders(self, tensor: int) -> Iterator[tuple[int, bool, LocalCopy]]:
        """Yield lane, layout and copy of a tensor, once per lane; the tiled one where a lane has both layouts.

        A lane that has read some rows back for one op holds nothing that could be given to others.
        """
        root = self.root(tensor)
        tiled, plain = (
            {lane: copy for lane, copy in self._copies.get((root, order), {}).items() if copy.part is None}
            for order in (True, False)
        )
        for lane in sorted({*tiled, *plain}):
            yield (lane, True, tiled[lane]) if lane in tiled else (lane, False, plain[lane])

    def store(self, tensor: int, lane: int, copy: LocalCopy, *, tiled: bool) -> None:
        self._copies.setdefault((tensor, tiled), {})[lane] = copy
        if copy.part is not None:
            self._in_parts.add(tensor)

    def remove(self, tensor: int, lane: int, *, tiled: bool) -> None:
        """Undo a `store`; the block stays allocated."""
        self._copies[tensor, tiled].pop(lane)

    def outer_copy(self, tensor: int, lane: int) -> OuterCopy | None:
        """A lane's copy in outer memory, if there is one."""
        return self._outer.get((self.root(tensor), lane))

    def outer_lanes(self, tensor: int) -> list[int]:
        root = self.root(tensor)
        return [lane for t, lane in self._outer if t == root]

    def set_outer_copy(self, tensor: int, lane: int, outer: OuterCopy) -> None:
        root = self.root(tensor)
        self._outer[root, lane] = outer
        if root not in self.outputs:  # outputs of the graph have their place from the start
            self.outer_use.hold(root, lane, outer.size, whole=self.context.tensor_bytes(root))

    def producers(self, tensor: int, lane: int) -> list[int]:
        """Commands after which a tensor is complete for a lane, in local or in outer memory."""
        for tiled in (False, True):
            copy = self.get(tensor, lane, tiled=tiled)
            if copy is not None:
                return [piece.command for piece in copy.pieces]
        outer = self.outer_copy(tensor, lane)
        return outer.writes if outer is not None else []

    def record_use(self, command: int, *copies: LocalCopy) -> None:
        """Note that a command reads or writes copies: their blocks are not free before the command is done."""
        stream = self.context.emitter.stream_of[command]
        for copy in copies:
            copy.last_use[stream] = command

    # ---- memory ---------------------------------------------------------------------------------------------------

    def allocate(self, size: float, lane: int, *, keep: Collection[int] = ()) -> tuple[int, tuple[int, ...]] | None:
        """Address and guards of a block, after spilling others if need be; None where pinned tensors leave no room."""
        memory = self.memory[lane]
        while True:
            found = memory.allocate(size)
            if found is not None or size > memory.capacity or not self._evict(lane, keep):
                return found

    def _evict(self, lane: int, keep: Collection[int]) -> bool:
        """Spill the tensor whose next use is farthest ahead. Returns whether there was one."""
        candidates = [
            (self._next_use(tensor), copy.size, tensor, tiled)
            for (tensor, tiled), lanes in self._copies.items()
            if tensor not in keep
            and tensor not in self.pinned
            and (copy := lanes.get(lane)) is not None
            and copy.address is not None
        ]
        if candidates:
            _, _, tensor, tiled = max(candidates)
            self._spill(tensor, lane, tiled=tiled)
        return bool(candidates)

    def spill(self, tensor: int, lane: int) -> None:
        """Free a lane's copies of a tensor; what exists nowhere else is written to outer memory first."""
        for tiled in (True, False):
            if lane in self._copies.get((tensor, tiled), {}):
                self._spill(tensor, lane, tiled=tiled)

    def _spill(self, tensor: int, lane: int, *, tiled: bool) -> None:
        copy = self._copies[tensor, tiled].pop(lane)
        if not self._is_elsewhere(tensor, lane) and self._is_read_on(tensor, lane):
            self._write_once(tensor, lane, copy, tiled=tiled)
        self._release(lane, copy)

    def write_out(self, tensor: int, lane: int) -> OuterCopy | None:
        """A lane's copy in outer memory, written there now if it is not yet; the one in local memory stays."""
        for tiled in (True, False):
            copy = self._copies.get((tensor, tiled), {}).get(lane)
            if copy is not None and (tensor, lane) not in self._outer:
                self._write_once(tensor, lane, copy, tiled=tiled)
        return self.outer_copy(tensor, lane)

    def _write_once(self, tensor: int, lane: int, copy: LocalCopy, *, tiled: bool) -> None:
        """Write a copy, unless another core of the device holds the same part and has written it."""
        same = self._written_by_another(tensor, lane)
        if same is not None:
            self.set_outer_copy(tensor, lane, same)
        else:
            self.write(tensor, lane, copy, tiled=tiled, index=self.context.maker.get(tensor, NO_OP))

    def _written_by_another(self, tensor: int, lane: int) -> OuterCopy | None:
        cores, sharding = self.context.plan.machine.cores, self.context.sharding_of(tensor)
        first = lane // cores * cores
        for other in range(first, first + cores):
            state = self._outer.get((tensor, other))
            if state is not None and (self.is_whole(tensor, state.size) or _same_part(sharding, lane, other)):
                return state
        return None

    def is_whole(self, tensor: int, size: float) -> bool:
        return size > 0.999999 * self.context.tensor_bytes(tensor)

    def write(self, tensor: int, lane: int, copy: LocalCopy, *, tiled: bool, index: int, count: int = 1) -> list[int]:
        """Write a lane's copy to outer memory in so many pieces, each when it is made. Returns the commands."""
        context, writes = self.context, list[int]()
        for step in range(count):
            own = share(copy.size, step, count)
            spec = context.transfer(Carries.WRITE, lane, index, own, tensor=tensor, step=step)
            made = copy.commands(copy.along, step / count, (step + 1) / count)
            writes.append(context.emitter.emit(spec, made))
            self.record_use(writes[-1], copy)
        self.set_outer_copy(tensor, lane, OuterCopy(tiled, copy.size, writes))
        return writes

    def _is_elsewhere(self, tensor: int, lane: int) -> bool:
        """Whether a lane can read a tensor back without writing it first."""
        role = self.context.graph.tensors[tensor].role
        other = any(lane in self._copies.get((tensor, tiled), {}) for tiled in (True, False))
        return role in (Role.CONSTANT, Role.INPUT) or other or (tensor, lane) in self._outer

    def _is_read_on(self, tensor: int, lane: int) -> bool:
        """Whether a lane's copy is needed again: by an op of that lane, or by one that takes from many lanes."""
        placed, splits = self.context.plan.placed, self.context.plan.splits
        uses = [use for use in self._uses.get(tensor, ()) if use >= self.current_op]
        return tensor in self.outputs or any(
            not placed[use].engine or lane in splits[use].sharding.boxes for use in uses
        )

    def _next_use(self, tensor: int) -> int:
        return min((use for use in self._uses.get(tensor, ()) if use >= self.current_op), default=NEVER)

    def _release(self, lane: int, copy: LocalCopy) -> None:
        if copy.address is not None:
            users = self.context.emitter.latest([*copy.last_use.values(), *(piece.command for piece in copy.pieces)])
            for address in copy.addresses:
                self.memory[lane].release(address, tuple(users) or copy.guards)

    def release_dead(self, op: Op) -> None:
        """Free the tensors that nobody reads after an op."""
        for t in dict.fromkeys(op.inputs):
            if t != ABSENT:
                for tensor in {t, self.root(t)}:
                    self._readers[tensor] -= 1
        for root in self.roots((*op.inputs, *op.outputs)):
            if self._readers[root] <= 0:
                self.free_copies(root)
                self.outer_use.free(root)

    def release_output(self, tensor: int) -> None:
        """Note that an output of the graph has been written: nobody outside waits for it any more."""
        root = self.root(tensor)
        self._readers[root] -= 1
        if self._readers[root] <= 0:
            self.free_copies(root)

    def free_copies(self, tensor: int) -> None:
        for tiled in (False, True):
            for lane, copy in self._copies.pop((tensor, tiled), {}).items():
                self._release(lane, copy)

    def drop(self, tensor: int, lane: int, *, tiled: bool) -> None:
        """Free a lane's copy in one layout: it has the other."""
        self._release(lane, self._copies[tensor, tiled].pop(lane))

    def readers(self, tensor: int) -> int:
        return self._readers[tensor]

    # ---- loading operands -----------------------------------------------------------------------------------------

    def load_operand(self, index: int, position: int, lane: int, *, tiled: bool) -> LocalCopy | None:
        """An input whole on a lane and in the wanted layout; None when it does not fit and must be streamed."""
        context = self.context
        tensor = context.graph.ops[index].inputs[position]
        self.discard_other_parts(index, position, lane)
        copy = self.get(tensor, lane, tiled=tiled)
        if copy is not None:
            return copy
        other = self.get(tensor, lane, tiled=not tiled) or self._read(index, position, lane, wanted=tiled)
        if other is None or not other.size or context.layout is None or context.is_constant(self.root(tensor)):
            return other
        return self.get(tensor, lane, tiled=tiled) or self._convert(index, position, lane, other, tiled=tiled)

    def discard_other_parts(self, index: int, position: int, lane: int) -> None:
        """Drop a lane's copy where it is a part of a tensor that another op needed, and not the part this op needs.

        Outer memory holds the whole, so nothing is lost: a lane that read rows for one op reads columns for another.
        """
        root = self.root(self.context.graph.ops[index].inputs[position])
        for tiled in (False, True) if root in self._in_parts else ():
            copy = self.get(root, lane, tiled=tiled)
            if copy is not None and copy.part is not None and copy.part != self.part(index, position):
                self._release(lane, self._copies[root, tiled].pop(lane))

    def part(self, index: int, position: int) -> TensorPart | None:
        """Which part of an input a lane needs where outer memory holds the whole; None: all of it."""
        if (index, position) not in self._parts:
            self._parts[index, position] = self._part(index, position)
        return self._parts[index, position]

    def _part(self, index: int, position: int) -> TensorPart | None:
        op, split = self.context.plan.placed[index].op, self.context.plan.splits[index]
        tensor = op.inputs[position]
        if op.kind in ("gather", "slice", "split") and position == 0:
            return index, None
        if not split.needs:
            return None
        root, need = self.root(tensor), split.needs[position]
        same = {(t, n) for t, n in zip(op.inputs, split.needs, strict=True) if t != ABSENT and self.root(t) == root}
        return None if len(same) > 1 or not need.cuts else (tensor, need)

    def bytes_to_read(self, index: int, position: int, lane: int) -> tuple[float, TensorPart | None]:
        """Bytes that a lane would read of an operand from outer memory, and which part of it they are."""
        placed = self.context.plan.placed[index]
        tensor = placed.op.inputs[position]
        outer, size = self.outer_copy(tensor, lane), self.context.tensor_bytes(tensor)
        if outer is not None and not self.is_whole(self.root(tensor), outer.size):
            return outer.size, None
        part = self.part(index, position)
        if part is None:
            return size, None
        if part == (index, None):
            return min(size, self.context.out_bytes(placed.op)) * self.context.result_share(index, lane), part
        return size * self.context.operand_share(index, position, lane), part

    def _read(self, index: int, position: int, lane: int, *, wanted: bool) -> LocalCopy | None:
        """Read a constant, a graph input or a spilled tensor, piece by piece; None where there is no room for it in the
        layout that outer memory has, and beside it in the one that is `wanted`: it is streamed then, and read once.
        """
        context = self.context
        tensor = context.graph.ops[index].inputs[position]
        root = self.root(tensor)
        outer = self.outer_copy(root, lane)
        size, part = self.bytes_to_read(index, position, lane)
        tiled = outer is not None and outer.tiled
        if not size or root in context.resident_constants or not self._is_stored(root, lane):
            gate = self.body_waits.get(context.graph.ops[index].scope, {}).get(lane, ())
            copy = LocalCopy([Piece(0.0, 1.0, command) for command in gate], 0.0)
            self.store(root, lane, copy, tiled=tiled)
            return copy
        place = self.allocate(size, lane)
        if place is None:
            return None
        if context.layout is not None and tiled != wanted and not context.is_constant(root):
            beside = self.allocate(size, lane)
            self.memory[lane].release(*(place if beside is None else beside))
            if beside is None:
                return None
        copy = LocalCopy([], size, address=place[0], part=part)
        count = context.piece_count(size)
        for step in range(count):
            own = share(size, step, count)
            spec = context.transfer(
                Carries.READ,
                lane,
                index,
                own,
                tensor=tensor,
                step=step,
                address=copy.tile_address(step, count),
                local_bytes=own,
            )
            command = context.emitter.emit(spec, self.outer_writers(root, lane), place[1])
            copy.pieces.append(Piece(step / count, (step + 1) / count, command))
            self.record_use(command, copy)
        self.store(root, lane, copy, tiled=tiled)
        return copy

    def _is_stored(self, root: int, lane: int) -> bool:
        """Whether outer memory has a tensor. Inputs of a control op's body have none: they stand for other tensors."""
        role = self.context.graph.tensors[root].role
        if role is not Role.ACTIVATION or (root, lane) in self._outer:
            return True
        if root in self.context.maker:
            raise LookupError(
                f"tensor {self.context.graph.tensors[root].name!r} is not on lane {lane}; expected it there"
            )
        return False

    def outer_writers(self, root: int, lane: int) -> list[int]:
        """Commands after which a tensor is complete in outer memory, for a lane."""
        if self.context.graph.tensors[root].role is Role.INPUT:
            return [self.inputs_ready[lane]] if lane in self.inputs_ready else []
        outer = self.outer_copy(root, lane)
        return outer.writes if outer is not None else []

    def _convert(self, index: int, position: int, lane: int, source: LocalCopy, *, tiled: bool) -> LocalCopy | None:
        """Convert the layout of a copy into another copy, piece by piece; None where there is no room."""
        context = self.context
        tensor = context.graph.ops[index].inputs[position]
        place = self.allocate(source.size, lane)
        if place is None:
            return None
        made = LocalCopy([], source.size, along=source.along, address=place[0], part=source.part)
        count = context.piece_count(source.size)
        for step in range(count):
            low, high = step / count, (step + 1) / count
            spec, cost = self.conversion(
                index,
                position,
                lane,
                share(source.size, step, count),
                tiled=tiled,
                step=step,
                address=made.tile_address(step, count),
            )
            command = context.emitter.emit(spec, source.commands(source.along, low, high), place[1])
            context.vector_costs[command] = cost
            made.pieces.append(Piece(low, high, command))
            self.record_use(command, made, source)
        self.store(self.root(tensor), lane, made, tiled=tiled)
        return made

    def conversion(
        self, index: int, position: int, lane: int, size: float, *, tiled: bool, step: int, address: int
    ) -> tuple[CommandSpec, VectorCost]:
        """The spec of a command that converts the layout of an operand, and the inputs of its cycles."""
        context = self.context
        form = context.conversion_form(index, position, tiled=tiled)
        cost = VectorCost(form, size)
        detail = context.move_detail(index, step, context.local_name, context.graph.ops[index].inputs[position])
        spec = CommandSpec(
            lane,
            VECTOR_GROUP,
            context.command_name(form),
            Does.LAYOUT,
            index,
            detail,
            context.vector_cycles(cost),
            size,
            address=address,
            local_bytes=size,
        )
        return spec, cost
