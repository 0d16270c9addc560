"""Compiled graphs for tests, with a record of who used which place in local memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from opscope import compiler
from opscope.compiler import compile_graph
from opscope.compiler.codegen.context import LoweringContext
from opscope.compiler.codegen.local_memory import LocalMemory
from opscope.compiler.codegen.lower import Lowering
from opscope.compiler.codegen.tensors import LocalCopy, Tensors
from opscope.compiler.codegen.weights import WeightStream
from opscope.compiler.passes.footprint import Footprint, footprints
from opscope.compiler.plan import Plan
from opscope.estimate.price import Machine
from opscope.graph.graph import Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Figure, Holds, Route, Target
from opscope.options import CompileOptions
from opscope.program.program import Program

KB = 1024


def small_target(
    *,
    local_bytes: int = 1 << 20,
    weight_bytes: int = 16 * KB,
    activation_bytes: int = 64 * KB,
    buffers: int = 3,
    bandwidth: float = 1.0,
    cores: int = 4,
    devices: int = 2,
) -> Target:
    """aic100-std with less of everything, so that small graphs meet its limits; `bandwidth` scales every route."""
    target = targets.load("aic100-std")
    assert target.tiling is not None
    memories = tuple(
        replace(memory, bytes=_figure(local_bytes)) if Holds.TILES in memory.holds else memory
        for memory in target.memories
    )
    tiling = replace(
        target.tiling,
        weight_bytes=_figure(weight_bytes),
        activation_bytes=_figure(activation_bytes),
        buffers=_figure(buffers),
    )
    topology = replace(target.topology, cores=_figure(cores), devices=_figure(devices))
    routes = tuple(_faster(route, bandwidth) for route in target.routes)
    return replace(target, memories=memories, tiling=tiling, topology=topology, routes=routes)


def _figure(value: float) -> Figure:
    return Figure(value, "by hand")


def _faster(route: Route, factor: float) -> Route:
    own = route.core_bytes_per_second
    return replace(
        route,
        bytes_per_second=_figure(route.bytes_per_second.value * factor),
        core_bytes_per_second=_figure(own.value * factor) if own is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A tile_batch of one core's local memory, from its allocation to its release."""

    lane: int
    address: int
    size: int
    born: int  # commands there were at its allocation
    users: list[int] = field(default_factory=list)  # commands, as the emitter numbers them


@dataclass(frozen=True, slots=True)
class WeightTile:
    """A tile of weights in a slot of one core's ring."""

    lane: int
    arrivals: list[int]
    users: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Built:
    """A program with everything the compiler thought on the way."""

    passed: Plan  # as the passes left it
    plan: Plan  # as it was lowered: ops that run in parts stand there once for each
    program: Program
    lowering: Lowering
    places: list[Place]  # in order of allocation
    weight_tiles: list[WeightTile]
    row_of: list[int]  # number of a command at its emission → row in the program
    ops: npt.NDArray[np.int64]  # of every row, its op in the plan

    def lanes(self) -> npt.NDArray[np.int64]:
        """Core of every command, over all devices."""
        table = self.program.commands
        found: npt.NDArray[np.int64] = table["device"].astype(np.int64) * self.program.cores + table["core"]
        return found


def build(
    graph: Graph,
    target: Target,
    *,
    cores: int = 1,
    devices: int = 1,
    parallel: str = "tensor",
    level: int = 40,
    tile_batch: Callable[[Plan], Plan] | None = None,
) -> Built:
    """Compile, and note who used what; `tile_batch` may choose other parts of the batch than the compiler would."""
    plans: list[Plan] = []
    passes = tuple(
        (name, _lowered_last(tile_batch or run) if name == "batch-tiling" else run) for name, run in compiler.PASSES
    )
    options = CompileOptions(stats_level=level, parallel=parallel)
    machine = Machine(target, devices=devices, cores=cores)
    with _recorded() as record, patch.object(compiler, "PASSES", passes):
        program = compile_graph(graph, machine, options, after_pass=lambda _, plan: plans.append(plan))
    lowering = record.lowering[-1]
    order = np.argsort(np.array(lowering.context.emitter.stream_of) // 16, kind="stable")
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    ops = np.array([row[5] for row in lowering.context.emitter.rows], np.int64)[order]
    return Built(plans[-1], lowering.plan, program, lowering, record.places, record.tiles, row_of.tolist(), ops)


def _lowered_last(tile_batch: Callable[[Plan], Plan]) -> Callable[[Plan], Plan]:
    """The plan that is chosen is lowered once more, behind all that were tried: notes are taken of the last one."""
    return lambda plan: replace(tile_batch(plan), lowered=None)


def whole_batch(plan: Plan) -> Plan:
    """Instead of `tile_batch`: all of the batch at once, whatever is moved for it."""
    return replace(plan, batch_tiles=(1,) * len(plan.placed))


def any_parts(seed: int, *, most: int = 8) -> Callable[[Plan], Plan]:
    """Instead of `tile_batch`: numbers of parts at random, of those that are possible."""

    def chosen(plan: Plan) -> Plan:
        dice, found, now = np.random.default_rng(seed), [], 1
        for step in _footprints(plan):
            possible = [parts for parts in range(1, most + 1) if step.divisible % parts == 0]
            if now not in possible or (not step.views and dice.random() < 0.4):
                if step.views:
                    return whole_batch(plan)
                now = int(dice.choice(possible))
            found.append(now)
        return replace(plan, batch_tiles=tuple(found[:-1]))

    return chosen


def _footprints(plan: Plan) -> list[Footprint]:
    target = plan.machine.target
    assert target.tiling is not None
    assert target.local is not None
    return list(footprints(plan, LoweringContext(plan, target.tiling, target.local)))


@dataclass(slots=True)
class _Recorder:
    """Notes every allocation, and every command that works in one."""

    places: list[Place] = field(default_factory=list)
    taken: dict[tuple[int, int], Place] = field(default_factory=dict)  # (lane, address)
    lanes: dict[int, int] = field(default_factory=dict)  # id of a memory → lane
    tiles: list[WeightTile] = field(default_factory=list)
    tensors: list[Tensors] = field(default_factory=list)
    lowering: list[Lowering] = field(default_factory=list)

    def use(self, lane: int, addresses: Iterable[int], command: int) -> None:
        """What came before the allocation did not work there: it is only waited for."""
        for address in addresses:
            if command >= self.taken[lane, address].born:
                self.taken[lane, address].users.append(command)

    def forget(self) -> None:
        """Another try begins."""
        for notes in (self.places, self.tiles, self.tensors, self.lowering):
            notes.clear()
        self.taken.clear()


@contextmanager
def _recorded() -> Iterator[_Recorder]:
    record = _Recorder()
    allocate, release = LocalMemory.allocate, LocalMemory.release
    touch, store, start = Tensors.record_use, Tensors.store, Tensors.__init__
    bring, used, lower = WeightStream.load_tile, WeightStream.record_use, Lowering.__init__

    def noted_lower(self: Lowering, plan: Plan) -> None:
        record.forget()
        lower(self, plan)
        record.lowering.append(self)

    def noted_start(self: Tensors, context: LoweringContext, *, reserved_bytes: int) -> None:
        start(self, context, reserved_bytes=reserved_bytes)
        record.tensors.append(self)
        record.lanes = {id(memory): lane for lane, memory in enumerate(self.memory)}

    def noted_allocate(self: LocalMemory, size: float) -> tuple[int, tuple[int, ...]] | None:
        found = allocate(self, size)
        if found is not None:
            born = len(record.tensors[0].context.emitter.rows)
            place = Place(record.lanes[id(self)], found[0], -(-max(1, int(size)) // 128) * 128, born)
            record.places.append(place)
            record.taken[place.lane, place.address] = place
        return found

    def noted_release(self: LocalMemory, address: int, guards: tuple[int, ...]) -> None:
        release(self, address, guards)
        del record.taken[record.lanes[id(self)], address]

    def noted_touch(self: Tensors, copy: LocalCopy, command: int) -> None:
        touch(self, copy, command)
        device, core = self.context.emitter.rows[command][:2]
        record.use(device * self.context.plan.machine.cores + core, copy.addresses, command)

    def noted_store(self: Tensors, tensor: int, lane: int, copy: LocalCopy, *, tiled: bool) -> None:
        store(self, tensor, lane, copy, tiled=tiled)
        for piece in (
            copy.pieces if not copy.more_addresses else ()
        ):  # other lanes wrote them; parts are noted each for itself
            record.use(lane, copy.addresses, piece.command)

    def noted_bring(self: WeightStream, index: int, step: int, counts: dict[int, int]) -> dict[int, list[int]]:
        arrivals = bring(self, index, step, counts)
        record.tiles += [WeightTile(lane, list(commands)) for lane, commands in arrivals.items()]
        return arrivals

    def noted_used(self: WeightStream, lane: int, command: int) -> None:
        used(self, lane, command)
        next(tile for tile in reversed(record.tiles) if tile.lane == lane).users.append(command)

    with (
        patch.object(Lowering, "__init__", noted_lower),
        patch.object(Tensors, "__init__", noted_start),
        patch.object(LocalMemory, "allocate", noted_allocate),
        patch.object(LocalMemory, "release", noted_release),
        patch.object(Tensors, "record_use", noted_touch),
        patch.object(Tensors, "store", noted_store),
        patch.object(WeightStream, "load_tile", noted_bring),
        patch.object(WeightStream, "record_use", noted_used),
    ):
        yield record
