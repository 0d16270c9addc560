"""Exchange: lanes send each other what they need of a tensor and do not have. The op `exchange` of a schedule.

Each lane sends what others need of its part: to the cores of its device over the multicast bus, once however many of
them need it; to other devices over a link, once to each. A gather to everybody, columns instead of rows, and the halo
of a convolution are all this:

    before    core 0: rows 0-3      core 1: rows 4-7      e0: core 0 sends row 3     e1: core 1 sends row 4
    after     core 0: rows 0-4      core 1: rows 3-7      readers on core 0 wait for e1, and for what made rows 0-3

Nothing is sent before the lanes that receive it have room. Where they have none, or a part has been spilled, the parts
go through outer memory instead: each is written there once, and readers later read as much as they need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ...core.meaning import Carries, Does
from ...estimate.work import state_bytes
from ..sharding import Exchange, exchange, keeps_parts
from .context import VECTOR_GROUP, LoweringContext
from .emit import CommandSpec
from .tensors import LocalCopy, OuterCopy, Piece, Tensors
from .timing import VectorCost

Places = dict[int, tuple[int, tuple[int, ...]]]  # lane → address, commands to wait for


def exchange_parts(context: LoweringContext, tensors: Tensors, index: int) -> None:
    """Emit the op `exchange` at a position of the schedule."""
    _Exchanger(context, tensors, index).run()


def add_up(context: LoweringContext, tensors: Tensors, index: int) -> None:
    """Partial sums → sums: every lane sends its own to those that share the result, and adds what it gets."""
    sharding, cores = context.plan.splits[index].sharding, context.plan.machine.cores
    for t in context.plan.placed[index].op.outputs:
        holders = {lane: (tiled, copy) for lane, tiled, copy in tensors.holders(t)}
        sent: dict[int, int] = {}
        for step, (lane, (_, copy)) in enumerate(holders.items()):
            spec = context.transfer(
                Carries.MULTICAST, lane, index, copy.size, form="multicast", group=VECTOR_GROUP, tensor=t, step=step
            )
            sent[lane] = context.emitter.emit(spec, [piece.command for piece in copy.pieces])
            tensors.record_use(sent[lane], copy)
        for lane, (tiled, copy) in holders.items():
            others = [
                other
                for other in sent
                if other != lane
                and other // cores == lane // cores  # devices have sums of their own
                and sharding.made.boxes.get(other) == sharding.made.boxes.get(lane)
            ]
            cost = VectorCost("add", copy.size, len(others))
            detail = context.move_detail(index, lane, context.local_name, t)
            spec = CommandSpec(
                lane,
                VECTOR_GROUP,
                context.command_name("add"),
                Does.COMPUTE,
                index,
                detail,
                context.vector_cycles(cost),
                copy.size,
                address=copy.address or 0,
                local_bytes=copy.size if copy.address is not None else 0.0,
            )
            done = context.emitter.emit(spec, [sent[other] for other in others], [sent[lane]])
            context.vector_costs[done] = cost
            whole = replace(copy, pieces=[Piece(0.0, 1.0, done)])
            tensors.record_use(done, whole)
            tensors.store(t, lane, whole, tiled=tiled)


def hand_on_state(context: LoweringContext, tensors: Tensors, index: int) -> None:
    """The state that lanes with hidden units each send each other in every step, as one transfer of every lane."""
    op, split = context.plan.placed[index].op, context.plan.splits[index]
    size, steps = state_bytes(op, context.graph), context.plan.placed[index].task.work.steps
    for step, (lane, _, copy) in enumerate(list(tensors.holders(op.outputs[0]))):
        spec = context.transfer(
            Carries.MULTICAST,
            lane,
            index,
            size * steps * split.sharding.share(lane),
            form="multicast",
            group=VECTOR_GROUP,
            tensor=op.outputs[0],
            step=step,
        )
        tensors.record_use(context.emitter.emit(spec, [piece.command for piece in copy.pieces]), copy)


class _Exchanger:
    """The exchange of one tensor."""

    def __init__(self, context: LoweringContext, tensors: Tensors, index: int) -> None:
        op, split = context.plan.placed[index].op, context.plan.splits[index]
        self.context, self.tensors, self.index = context, tensors, index
        self.source, self.result = tensors.root(op.inputs[0]), op.outputs[0]
        self.bytes = context.tensor_bytes(self.result)
        self.cores = context.plan.machine.cores
        self.held, self.needed = split.needs[0], split.sharding
        self.moves: Exchange = exchange(self.held, self.needed)
        self.extends = False  # copies stay where they are, and only what is received needs room

    def run(self) -> None:
        """Through local memories where that is possible, else through outer memory."""
        self._change_layouts()
        holders = {lane: (tiled, copy) for lane, tiled, copy in self.tensors.holders(self.source)}
        senders = {*self.moves.sent, *self.moves.linked}
        lanes = self.needed.lanes()
        complete = senders <= holders.keys() and all(lane in holders for lane in lanes if self.held.share(lane) > 0)
        layouts = {holders[lane][0] for lane in senders} if complete else set()
        self.extends = self._extends(holders)
        staying = [] if self.extends else self._staying(holders)
        places = self._places(lane for lane in lanes if lane not in staying) if len(layouts) == 1 else None
        if places is not None:
            self._through_local_memory(places, {lane: copy for lane, (_, copy) in holders.items()}, tiled=layouts.pop())
            for lane in staying:
                tiled, copy = holders[lane]
                self.tensors.remove(self.source, lane, tiled=tiled)
                self.tensors.store(self.result, lane, copy, tiled=tiled)
        else:
            self._through_outer_memory(sorted({*holders, *self.tensors.outer_lanes(self.source)}))

    def _change_layouts(self) -> None:
        """Bring every part into the layout that the reader needs before it is sent: each lane has less to convert."""
        context = self.context
        found = context.reader(self.index, self.result)
        reader = None if found is None else context.plan.placed[found[0]]
        if context.layout is None or reader is None or context.keeps_layout(reader.op) or not reader.engine:
            return
        wanted = context.is_tiled(reader)
        for lane, tiled, copy in list(self.tensors.holders(self.source)):
            if copy.size and tiled != wanted:
                changed = self.tensors.load_operand(self.index, 0, lane, tiled=wanted)
                if changed is not None and changed is not copy and self.tensors.readers(self.source) == 1:
                    self.tensors.drop(self.source, lane, tiled=tiled)

    def _extends(self, holders: dict[int, tuple[bool, LocalCopy]]) -> bool:
        """Whether every lane goes on with what it has, and nobody else reads the tensor: a halo is put beside it."""
        whole = all(lane in holders and holders[lane][1].address is not None for lane in self.needed.lanes())
        alone = self.tensors.readers(self.source) == 1 and len({tiled for tiled, _ in holders.values()}) == 1
        return keeps_parts(self.held, self.needed) and whole and alone and holders.keys() == self.needed.boxes.keys()

    def _staying(self, holders: Collection[int]) -> list[int]:
        """Lanes that have all they need: where nobody reads the tensor otherwise, their copies stay where they are."""
        if self.tensors.readers(self.source) > 1:
            return []
        return [lane for lane in self.needed.lanes() if lane in holders and lane not in self.moves.sources]

    def _size(self, lane: int) -> float:
        return self.bytes * self.needed.share(lane)

    def _new_size(self, lane: int) -> float:
        """Bytes that a lane needs room for."""
        return self._size(lane) - (self.bytes * self.held.share(lane) if self.extends else 0.0)

    def _places(self, lanes: Iterable[int]) -> Places | None:
        """A block for what every lane needs; None, and nothing allocated, where one of them has no room."""
        found: Places = {}
        for lane in lanes:
            size = self._new_size(lane)
            place = self.tensors.allocate(size, lane, keep={self.source}) if size >= 1 else (0, ())
            if place is None:
                for other, (address, guards) in found.items():
                    if self._new_size(other) >= 1:
                        self.tensors.memory[other].release(address, guards)
                return None
            found[lane] = place
        return found

    # ---- through local memories -----------------------------------------------------------------------------------

    def _through_local_memory(self, places: Places, copies: dict[int, LocalCopy], *, tiled: bool) -> None:
        """Allocate-then-send: parts go out when their destinations are free; then each lane holds what it needs.

        Example: two devices of two cores. Lane 0 has all of a tensor, which the other three need:

            command     on lane   waits for
            multicast   0         what made the tensor; then until the block of lane 1 is free
            send        0         what made the tensor; then until the blocks of lanes 2 and 3 are free
            receive     2         send

        Readers on lane 1 wait for `multicast`, those on lanes 2 and 3 for `receive`, the barrier of their device.
        """
        inside, across = self._send(places, copies)
        received = self._receive(across)
        for lane, (address, guards) in places.items():
            own = copies.get(lane)
            commands = self._arrivals(lane, inside, received)
            if own is not None:
                commands += [piece.command for piece in own.pieces]
            if lane not in self.moves.sources:
                commands += guards  # nobody sends anything there who would have waited for them
            size, fresh = self._size(lane), self._new_size(lane) >= 1
            pieces = [Piece(0.0, 1.0, command) for command in self.context.emitter.latest(commands)]
            copy = LocalCopy(pieces, size, address=address if fresh else None, guards=guards)
            if self.extends and own is not None:
                self.tensors.remove(self.source, lane, tiled=tiled)
                more = (*own.more_addresses, *((address,) if fresh else ()))
                copy = replace(copy, address=own.address, more_addresses=more, last_use=own.last_use)
            self.tensors.store(self.result, lane, copy, tiled=tiled)

    def _send(self, places: Places, copies: dict[int, LocalCopy]) -> tuple[dict[int, int], dict[int, int]]:
        """Lane → its command to the cores of its device, and lane → its command to other devices."""
        receivers: dict[int, list[int]] = {}
        for lane, sources in self.moves.sources.items():
            for source in sources:
                receivers.setdefault(source, []).append(lane)
        inside: dict[int, int] = {}
        across: dict[int, int] = {}
        for step, lane in enumerate(sorted(receivers)):
            copy = copies[lane]
            made = [piece.command for piece in copy.pieces]
            for shares, sent, carries in (
                (self.moves.sent, inside, Carries.MULTICAST),
                (self.moves.linked, across, Carries.LINK),
            ):
                if lane in shares:
                    is_near = carries is Carries.MULTICAST
                    to = [other for other in receivers[lane] if (other // self.cores == lane // self.cores) is is_near]
                    free = [command for other in to for command in places[other][1]]
                    spec = self._spec(carries, lane, step, self.bytes * shares[lane])
                    sent[lane] = self.context.emitter.emit(spec, made, self.context.emitter.latest(free))
                    self.tensors.record_use(sent[lane], copy)
        return inside, across

    def _arrivals(self, lane: int, inside: dict[int, int], received: dict[int, list[int]]) -> list[int]:
        """Commands after which a lane has all that others send it: those of its device, and the barrier of the rest."""
        device, sources = lane // self.cores, self.moves.sources.get(lane, ())
        near = [inside[source] for source in sources if source in inside and source // self.cores == device]
        is_far = any(source // self.cores != device for source in sources)
        return [*near, *(received.get(device, ()) if is_far else ())]

    def _spec(self, carries: Carries, lane: int, step: int, size: float) -> CommandSpec:
        form = "send" if carries is Carries.LINK else "multicast"
        return self.context.transfer(
            carries, lane, self.index, size, form=form, group=VECTOR_GROUP, tensor=self.result, step=step
        )

    def _receive(self, across: dict[int, int]) -> dict[int, list[int]]:
        """Device → a barrier that is done when all that other devices send it has arrived."""
        received: dict[int, list[int]] = {}
        for device in sorted({lane // self.cores for lane in self.moves.sources}):
            sources = {s for lane, found in self.moves.sources.items() if lane // self.cores == device for s in found}
            coming = [across[s] for s in sorted(sources) if s // self.cores != device and s in across]
            if coming:
                received[device] = [self._barrier(device * self.cores, coming)]
        return received

    def _barrier(self, lane: int, after: Iterable[int]) -> int:
        """A command that is done when all of `after` are."""
        context = self.context
        detail = context.move_detail(self.index, 0, context.local_name, self.result)
        spec = CommandSpec(lane, VECTOR_GROUP, context.command_name("receive"), Does.SYNC, self.index, detail, 1.0)
        return context.emitter.emit(spec, after)

    # ---- through outer memory -------------------------------------------------------------------------------------

    def _through_outer_memory(self, sources: list[int]) -> None:
        """Write every part to the outer memory of its device and send it to the others; lanes read it there later."""
        inside: dict[int, list[int]] = {}
        across: dict[int, int] = {}
        tiled = False
        for step, lane in enumerate(sources):
            part = self.tensors.write_out(self.source, lane)
            if part is None:
                continue
            tiled = part.tiled
            inside.setdefault(lane // self.cores, []).extend(part.writes)
            if lane in self.moves.linked:
                spec = self._spec(Carries.LINK, lane, step, self.bytes * self.moves.linked[lane])
                across[lane] = self.context.emitter.emit(spec, part.writes)
        received = self._receive(across)
        for lane in self.needed.lanes():
            device = lane // self.cores
            writes = [*inside.get(device, ()), *received.get(device, ())]
            self.tensors.set_outer_copy(self.result, lane, OuterCopy(tiled, self._size(lane), writes))
