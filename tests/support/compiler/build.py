"""Compiled graphs for tests, with a record of who used which place in local memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from opscope.compiler import compile_graph
from opscope.compiler.codegen.local_memory import LocalMemory
from opscope.compiler.codegen.lower import Lowering
from opscope.compiler.codegen.tensors import LocalCopy, Tensors
from opscope.compiler.codegen.weights import LoadedTile, Ring, WeightStream
from opscope.compiler.passes import tiling
from opscope.compiler.passes.batch import batch_axes, passing
from opscope.compiler.passes.footprint import part_footprints
from opscope.compiler.passes.parts import PartsChooser
from opscope.compiler.passes.split import Splitter
from opscope.compiler.plan import Join, Part, Plan, Schedule
from opscope.compiler.sharding import whole
from opscope.estimate.price import Machine
from opscope.graph.batch import batch_size
from opscope.graph.graph import Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Figure, Holds, Target
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
    depth_first: bool = True,
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
        depth_first=depth_first,
    )
    topology = replace(target.topology, cores=_figure(cores), devices=_figure(devices))
    return with_bandwidth(replace(target, memories=memories, tiling=tiling, topology=topology), bandwidth)


def _figure(value: float) -> Figure:
    return Figure(value, "by hand")


def with_bandwidth(target: Target, factor: float) -> Target:
    """The target with so many times the bandwidth of every route, and of every core on it."""

    def scaled(figure: Figure | None) -> Figure | None:
        return None if figure is None else _figure(figure.value * factor)

    return replace(
        target,
        memories=tuple(replace(m, core_bytes_per_second=scaled(m.core_bytes_per_second)) for m in target.memories),
        routes=tuple(replace(r, bytes_per_second=scaled(r.bytes_per_second)) for r in target.routes),
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A block of one core's local memory, from its allocation to its release."""

    lane: int
    address: int
    size: int
    born: int  # commands there were at its allocation
    users: list[int] = field(default_factory=list)  # commands, as the emitter numbers them


@dataclass(frozen=True, slots=True)
class WeightTile:
    """A tile of weights in a slot of one core's ring."""

    ring: Ring
    lane: int
    op: int
    arrivals: list[int]
    users: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Built:
    """A program with everything the compiler thought on the way."""

    passed: Plan  # as the passes left it
    schedule: Schedule  # what was lowered: ops that run in tiles stand there once for each
    program: Program
    lowering: Lowering
    places: list[Place]  # in order of allocation
    panels: list[Place]  # of those, the ones that are rings of weights
    weight_tiles: list[WeightTile]
    row_of: list[int]  # number of a command at its emission → row in the program
    ops: npt.NDArray[np.int64]  # of every row, its op in the schedule

    def lanes(self) -> npt.NDArray[np.int64]:
        """Core of every command, over all devices."""
        table = self.program.commands
        found: npt.NDArray[np.int64] = table["device"].astype(np.int64) * self.program.cores + table["core"]
        return found


Parts = Callable[[Plan], tuple[Part, ...]]
Choice = Callable[[Splitter, int, Sequence[float]], int]


def build(
    graph: Graph,
    target: Target,
    *,
    cores: int = 1,
    devices: int = 1,
    parallel: str = "tensor",
    level: int = 40,
    parts: Parts | None = None,
    splits: Choice | None = None,
    interleaved: bool = False,
) -> Built:
    """Compile, and note who used what; `parts`, which may be `interleaved`, and `splits` may choose otherwise than the
    compiler would.
    """
    plans: list[Plan] = []
    options = CompileOptions(stats_level=level, parallel=parallel)
    machine = Machine(target, devices=devices, cores=cores)
    proposals = (
        tiling.proposals if parts is None else lambda plan: [[tiling.Tiling(parts(plan), interleaved=interleaved)]]
    )
    best = Splitter.best if splits is None else splits
    with _recorded() as records, patch.object(tiling, "proposals", proposals), patch.object(Splitter, "best", best):
        program = compile_graph(graph, machine, options, after_pass=lambda _, plan: plans.append(plan))
    lowering = plans[-1].lowered
    assert lowering is not None
    record = records[id(lowering)]
    columns = lowering.context.emitter.columns()
    return Built(
        plans[-1],
        lowering.plan,
        program,
        lowering,
        record.places,
        record.panels,
        record.tiles,
        columns.row_of.tolist(),
        columns.commands["op"].astype(np.int64),
    )


def whole_batch(plan: Plan) -> tuple[Part, ...]:
    """All of the batch at once, whatever is moved for it."""
    return PartsChooser(plan).parts(batch_size(plan.graph))


def with_a_rest(seed: int) -> Parts:
    """Units of the batch, in one tile each, and what is left over, where the batch can be cut so."""

    def chosen(plan: Plan) -> tuple[Part, ...]:
        chooser, batch = PartsChooser(plan), batch_size(plan.graph)
        units = [unit for unit in range(1, batch) if batch % unit and chooser.is_possible(unit)]
        return chooser.parts(units[seed % len(units)] if units else batch)

    return chosen


def joined(seed: int) -> Parts:
    """The same, joined before some op, where that is possible."""

    def chosen(plan: Plan) -> tuple[Part, ...]:
        chooser, parts = PartsChooser(plan), with_a_rest(seed)(plan)
        begins = [index for index, tensors in enumerate(passing(plan.graph, chooser.axes)) if tensors]
        if len(parts) == 1 or not begins:
            return parts
        machine = plan.machine
        held = whole(tuple(range(machine.devices)), machine.cores, machine.cores)
        (together,) = chooser.parts(chooser.batch)
        return (*parts, replace(together, joined=Join(begins[seed % len(begins)], held, 0.0)))

    return chosen


def in_tiles(*tiles: int, unit: int = 1) -> Parts:
    """All of the batch, of every op so many tiles of so many images at the least."""
    return lambda plan: (replace(PartsChooser(plan).parts(unit)[0], tiles=tiles),)


def by_axis(axis: int) -> Choice:
    """Instead of the split that is priced lowest, the one along this axis and no other, where there is one."""
    return lambda splitter, index, _: _option_along(splitter, index, [axis])


def by_axes(*axes: list[int]) -> Choice:
    """The same with axes for every op."""
    return lambda splitter, index, _: _option_along(splitter, index, axes[index])


def _option_along(splitter: Splitter, index: int, axes: list[int]) -> int:
    cuts = [option.sharding.cuts for option in splitter.options[index]]
    return next((number for number, found in enumerate(cuts) if [cut.axis for cut in found] == axes), 0)


def any_splits(seed: int) -> Choice:
    """Instead of the split that is priced lowest, any that is possible."""
    dice = np.random.default_rng(seed)
    return lambda _, index, costs: int(dice.integers(len(costs)))


def any_parts(seed: int, *, most: int = 8) -> Parts:
    """Units of the batch and numbers of tiles at random, of those that are possible."""

    def chosen(plan: Plan) -> tuple[Part, ...]:
        dice, chooser = np.random.default_rng(seed), PartsChooser(plan)
        batch = batch_size(plan.graph)
        units = [unit for unit in range(1, min(batch, most) + 1) if chooser.is_possible(unit)]
        return tuple(_any_tiles(plan, part, dice, most) for part in chooser.parts(int(dice.choice(units))))

    return chosen


def _any_tiles(plan: Plan, part: Part, dice: np.random.Generator, most: int) -> Part:
    found, now = [], 1
    for step in part_footprints(plan, part, batch_axes(plan.graph)).steps:
        possible = [tiles for tiles in range(1, most + 1) if step.divisible % tiles == 0]
        if now not in possible or (not step.views and dice.random() < 0.4):
            if step.views:
                return part
            now = int(dice.choice(possible))
        found.append(now)
    return replace(part, tiles=tuple(found[:-1]))


@dataclass(slots=True)
class _Record:
    """Every allocation of one lowering, and every command that works in one."""

    lowering: Lowering
    places: list[Place] = field(default_factory=list)
    panels: list[Place] = field(default_factory=list)
    taken: dict[tuple[int, int], Place] = field(default_factory=dict)  # (lane, address)
    lanes: dict[int, int] = field(default_factory=dict)  # id of a memory → lane
    tiles: list[WeightTile] = field(default_factory=list)
    turns: dict[tuple[int, int], list[WeightTile]] = field(default_factory=dict)  # id of a ring, lane → its tiles

    def use(self, lane: int, addresses: Iterable[int], command: int) -> None:
        """What came before the allocation did not work there: it is only waited for."""
        for address in addresses:
            if command >= self.taken[lane, address].born:
                self.taken[lane, address].users.append(command)

    def use_panel(self, ring: Ring, lane: int, command: int) -> None:
        place = self.taken.get((lane, ring.address[lane])) if ring is not self.lowering.weights.ring else None
        if place is not None:
            place.users.append(command)
            if not any(place is known for known in self.panels):
                self.panels.append(place)


@contextmanager
def _recorded() -> Iterator[dict[int, _Record]]:
    records: dict[int, _Record] = {}
    now: list[_Record] = []
    allocate, release = LocalMemory.allocate, LocalMemory.release
    touch, store = Tensors.record_use, Tensors.store
    bring, used, lower = WeightStream.load_tile, Ring.record_use, Lowering.__init__

    def noted_lower(self: Lowering, plan: Schedule) -> None:
        now[:] = [_Record(self)]
        records[id(self)] = now[0]
        lower(self, plan)
        now[0].lanes = {id(memory): lane for lane, memory in enumerate(self.tensors.memory)}

    def noted_allocate(self: LocalMemory, size: float) -> tuple[int, tuple[int, ...]] | None:
        found = allocate(self, size)
        if found is not None:
            born = len(now[0].lowering.context.emitter.rows)
            place = Place(now[0].lanes[id(self)], found[0], -(-max(1, int(size)) // 128) * 128, born)
            now[0].places.append(place)
            now[0].taken[place.lane, place.address] = place
        return found

    def noted_release(self: LocalMemory, address: int, guards: tuple[int, ...]) -> None:
        release(self, address, guards)
        del now[0].taken[now[0].lanes[id(self)], address]

    def noted_touch(self: Tensors, command: int, *copies: LocalCopy) -> None:
        touch(self, command, *copies)
        device, core = self.context.emitter.rows[command][:2]
        for copy in copies:
            now[0].use(device * self.context.plan.machine.cores + core, copy.addresses, command)

    def noted_store(self: Tensors, tensor: int, lane: int, copy: LocalCopy, *, tiled: bool) -> None:
        store(self, tensor, lane, copy, tiled=tiled)
        for piece in (
            copy.pieces if not copy.more_addresses else ()
        ):  # other lanes wrote them; parts are noted each for itself
            now[0].use(lane, copy.addresses, piece.command)

    def noted_bring(
        self: WeightStream, ring: Ring, index: int, step: int, counts: dict[int, int]
    ) -> dict[int, LoadedTile]:
        loaded = bring(self, ring, index, step, counts)
        for lane, tile in loaded.items():
            now[0].tiles.append(WeightTile(ring, lane, index, list(tile.commands)))
            now[0].turns.setdefault((id(ring), lane), []).append(now[0].tiles[-1])
            for command in tile.commands:
                now[0].use_panel(ring, lane, command)
        return loaded

    def noted_used(self: Ring, lane: int, tile: int, command: int) -> None:
        used(self, lane, tile, command)
        now[0].turns[id(self), lane][tile].users.append(command)
        now[0].use_panel(self, lane, command)

    with (
        patch.object(Lowering, "__init__", noted_lower),
        patch.object(LocalMemory, "allocate", noted_allocate),
        patch.object(LocalMemory, "release", noted_release),
        patch.object(Tensors, "record_use", noted_touch),
        patch.object(Tensors, "store", noted_store),
        patch.object(WeightStream, "load_tile", noted_bring),
        patch.object(Ring, "record_use", noted_used),
    ):
        yield records
