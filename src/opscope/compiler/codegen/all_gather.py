"""All-gather: a tensor of which every lane holds a part becomes whole on every lane.

Each lane multicasts its part to the other cores of its device, and sends it over a link where other devices need it:

    before    core 0: A        core 1: B        A0: multicast A    B0: multicast B
    after     core 0: A B      core 1: A B      readers wait for A0 and B0

No part is sent before every lane has room for the whole tensor, because a multicast writes on all lanes at once. Where
the whole does not fit every lane, or a part has been spilled, the parts are gathered in outer memory instead: each is
written there once, and readers later read as much of the whole as they need.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...core.meaning import Carries, Does
from .context import VECTOR_GROUP, LoweringContext
from .emit import CommandSpec
from .tensors import ROWS, LocalCopy, OuterCopy, Piece, Tensors

Places = dict[int, tuple[int, tuple[int, ...]]]  # lane → address, commands to wait for


def all_gather_inputs(context: LoweringContext, tensors: Tensors, index: int) -> None:
    """Gather every input that the op's split lists in `gathers`."""
    for t in context.plan.splits[index].gathers:
        _AllGather(context, tensors, index, tensors.root(t)).run()


class _AllGather:
    """The gathering of one tensor for one op."""

    def __init__(self, context: LoweringContext, tensors: Tensors, index: int, tensor: int) -> None:
        self.context, self.tensors, self.index, self.tensor = context, tensors, index, tensor
        self.lanes = context.all_lanes(context.plan.splits[index])
        self.cores = context.plan.machine.cores
        self.devices = sorted({lane // self.cores for lane in self.lanes})
        self.whole = context.tensor_bytes(tensor)

    def run(self) -> None:
        """Gather through local memory where that is possible, else through outer memory."""
        parts = list(self.tensors.holders(self.tensor))
        outer = self.tensors.outer_lanes(self.tensor)
        complete = next((lane for lane in outer if self._is_whole(self.tensors.outer_copy(self.tensor, lane))), None)
        if complete is not None:
            self._through_outer_memory([complete])
            return
        entire = [part for part in parts if self._is_whole(part[2])]
        if entire:  # one lane that has all of it is enough
            parts, outer = entire[:1], []
        same_layout = len({tiled for _, tiled, _ in parts}) == 1
        places = self._places() if same_layout and not set(outer) - {lane for lane, *_ in parts} else None
        if places is not None:
            self._through_local_memory(places, [(lane, copy) for lane, _, copy in parts], tiled=parts[0][1])
        elif parts or outer:
            self._through_outer_memory(sorted({*(lane for lane, *_ in parts), *outer}))

    def _is_whole(self, state: LocalCopy | OuterCopy | None) -> bool:
        return state is not None and self.tensors.is_whole(self.tensor, state.size)

    def _places(self) -> Places | None:
        """A block for the whole tensor on every lane; None, and nothing allocated, where one of them has no room."""
        found: Places = {}
        for lane in self.lanes:
            place = self.tensors.allocate(self.whole, lane, keep={self.tensor}) if self.whole else (0, ())
            if place is None:
                for other, (address, guards) in found.items():
                    self.tensors.memory[other].release(address, guards)
                return None
            found[lane] = place
        return found

    # ---- through local memories -----------------------------------------------------------------------------------

    def _through_local_memory(self, places: Places, sources: list[tuple[int, LocalCopy]], *, tiled: bool) -> None:
        """Allocate-then-send: parts go out when all destinations are free; then each lane holds the whole."""
        free = self._free_everywhere([command for _, guards in places.values() for command in guards], len(sources))
        inside: dict[int, list[int]] = {}
        across: dict[int, list[int]] = {}
        emit = self.context.emitter.emit
        for step, (lane, copy) in enumerate(sources):
            device, made = lane // self.cores, [piece.command for piece in copy.pieces]
            for carries in self._transports(lane) if copy.size else ():
                command = emit(self._spec(carries, lane, step, copy.size), made, free)
                self.tensors.record_use(copy, command)
                (across if carries is Carries.LINK else inside).setdefault(device, []).append(command)
            if self.cores == 1 or not copy.size:
                inside.setdefault(device, []).extend(made)
        received = self._receive(across)
        self.tensors.free_copies(self.tensor)
        for lane, (address, _) in places.items():
            device = lane // self.cores
            commands = [*inside.get(device, ()), *received.get(device, ())]
            pieces = [Piece(0.0, 1.0, command) for command in commands]
            copy = LocalCopy(pieces, self.whole, along=ROWS, address=address if self.whole else None)
            self.tensors.store(self.tensor, lane, copy, tiled=tiled)

    def _free_everywhere(self, guards: Iterable[int], senders: int) -> list[int]:
        """Commands after which all destinations are free: the guards, or one barrier where that saves dependencies.

        4 senders that wait for 16 guards each are 64 dependencies; through a barrier there are 20.
        """
        latest = self.context.emitter.latest(guards)
        return latest if len(latest) <= senders else [self._barrier(self.lanes[0], latest)]

    def _barrier(self, lane: int, after: Iterable[int]) -> int:
        """A command that is done when all of `after` are."""
        context = self.context
        detail = context.move_detail(self.index, 0, context.local_name, self.tensor)
        spec = CommandSpec(lane, VECTOR_GROUP, context.command_name("receive"), Does.SYNC, self.index, detail, 1.0)
        return context.emitter.emit(spec, after)

    def _spec(self, carries: Carries, lane: int, step: int, size: float) -> CommandSpec:
        form = "send" if carries is Carries.LINK else "multicast"
        return self.context.transfer(
            carries, lane, self.index, size, form=form, group=VECTOR_GROUP, tensor=self.tensor, step=step
        )

    def _receive(self, across: dict[int, list[int]]) -> dict[int, list[int]]:
        """Device → a barrier that is done when all parts from other devices have arrived."""
        received: dict[int, list[int]] = {}
        for device in self.devices:
            coming = [command for source, commands in across.items() if source != device for command in commands]
            if coming:
                received[device] = [self._barrier(device * self.cores, coming)]
        return received

    def _transports(self, lane: int) -> list[Carries]:
        """The routes over which a lane's part reaches the other lanes."""
        device = lane // self.cores
        ways = [Carries.MULTICAST] if device in self.devices and self.cores > 1 else []
        return ways + ([Carries.LINK] if set(self.devices) - {device} else [])

    # ---- through outer memory -------------------------------------------------------------------------------------

    def _through_outer_memory(self, sources: list[int]) -> None:
        """Write every part to the outer memory of its device and send it to the others; lanes read it there later."""
        inside: dict[int, list[int]] = {}
        across: dict[int, list[int]] = {}
        tiled = False
        for step, lane in enumerate(sources):
            self.tensors.spill(self.tensor, lane)
            part = self.tensors.outer_copy(self.tensor, lane)
            if part is None:
                continue
            device, tiled = lane // self.cores, part.tiled
            inside.setdefault(device, []).extend(part.writes)
            if set(self.devices) - {device}:
                spec = self._spec(Carries.LINK, lane, step, part.size)
                across.setdefault(device, []).append(self.context.emitter.emit(spec, part.writes))
        received = self._receive(across)
        self.tensors.free_copies(self.tensor)
        for lane in self.lanes:
            device = lane // self.cores
            writes = [*inside.get(device, ()), *received.get(device, ())]
            self.tensors.set_outer_copy(self.tensor, lane, OuterCopy(tiled, self.whole, writes))
