"""Prices of splits, in core cycles: what an op costs that lanes share in some way, and an exchange between lanes.

Engines, weights on their way and spilled activations overlap within an op, so the slowest of them counts; layouts are
changed before it starts, and every command has its launch. Nothing here depends on what other ops do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf

from ...core.meaning import Carries
from ...estimate.price import Machine
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...machine.target import Engine, Layout
from ..plan import Placed, Split, channel_axis
from ..sharding import REDUCED, Moved, Sharding, moved_by_exchange
from .place import has_weights


class Prices:
    """Prices on one machine, for one graph."""

    def __init__(self, graph: Graph, placed: Sequence[Placed], machine: Machine, *, units: int = 1) -> None:
        """`units` of the batch are in the graph, and only one of them has to fit local memory."""
        self.graph, self.placed, self.machine = graph, placed, machine
        self.maker = {t: index for index, each in enumerate(placed) for t in each.op.outputs}
        self.units = units
        self._sizes = [tensor.bytes or 0 for tensor in graph.tensors]
        target, clock = machine.target, machine.clock_hz
        self.cores, self.devices = machine.cores, machine.devices
        self.rates: Mapping[str, float] = {route.carries: route.peak(clock) * route.reached for route in target.routes}
        self.latency = {route.carries: self._latency(route) for route in target.routes}
        own = {r.carries: r.core_bytes_per_second for r in target.routes}
        self.core_rates = {carries: f.value / clock for carries, f in own.items() if f is not None}
        tiling, local = target.tiling, target.local
        self.weight_tile = tiling.weight_bytes.value if tiling is not None else inf
        self.piece = tiling.activation_bytes.value if tiling is not None else inf
        self.room = inf
        if tiling is not None and local is not None:
            left = local.bytes.value - tiling.buffers.value * self.weight_tile
            self.room = max(1.0, left)  # a memory without room for anything is refused when commands are emitted
        self.layout: Layout | None = target.layout
        self.tiled = self._tiled_tensors(placed)
        engines = [engine for engine in target.engines if engine.launch_cycles is not None]
        self.barrier = max((e.launch_cycles.value for e in engines if e.launch_cycles is not None), default=0.0)
        self._exchanges: dict[tuple[Sharding, Sharding], tuple[float, ...]] = {}

    @staticmethod
    def _latency(route: object) -> float:
        return 0.0

    # ---- an op ----------------------------------------------------------------------------------------------------

    def total(self, splits: Sequence[Split], *, may_spill: bool) -> float:
        """Cycles of all ops, split so; or of what they would take if local memory held what is needed."""
        total = 0.0
        for placed, split in zip(self.placed, splits, strict=True):
            if split.needs or not placed.op.inputs:
                total += self.op(placed, split.sharding, split.needs, may_spill=may_spill)
            for position in split.exchanges:
                t = placed.op.inputs[position]
                total += self.exchange(t, splits[self.maker[t]].sharding.made, split.needs[position])
        return total

    def op(self, placed: Placed, sharding: Sharding, needed: Sequence[Sharding], *, may_spill: bool = True) -> float:
        """Cycles of the lane that has most to do."""
        op, engine = placed.op, placed.task.placement.engine
        if not placed.engine or engine is None:
            return 0.0
        share = sharding.largest
        launch = engine.launch_cycles.value if engine.launch_cycles is not None else 0.0
        cycles = placed.cycles * share
        out = sum(self._bytes(t) for t in op.outputs) * sharding.made.largest
        commands = max(1, ceil(out / self.piece), ceil(2 * out / self.room))
        if has_weights(op, self.graph):
            loading, tiles = self._weights(op, engine, sharding)
            cycles, commands = max(cycles, loading), tiles
        if may_spill:
            cycles = max(cycles, self._streamed(op, sharding, needed, out))
        if sharding.cut_on(REDUCED) is not None:
            cycles += self._adding_up(op, sharding)
        return cycles + self._changing_layouts(placed, needed) + commands * launch

    def _weights(self, op: Op, engine: Engine, sharding: Sharding) -> tuple[float, int]:
        """Cycles until the weights are in the engine, and the number of tiles that they come in."""
        size = self._bytes(op.inputs[1])
        cuts = weight_cuts(op, self.graph, sharding)
        largest = float(size)
        for cut in cuts.cuts:
            largest *= cut.largest
        rate = engine.weight_bytes_per_cycle
        entering = largest / rate.value if rate is not None else 0.0
        first = {lane: box for lane, box in cuts.boxes.items() if lane // self.cores == cuts.devices[0]}
        distinct = {box: cuts.share(lane) for lane, box in first.items()}
        read = size * sum(distinct.values())
        arriving = read / self._rate(Carries.READ)
        if len(first) > len(distinct):
            arriving = max(arriving, read / self._rate(Carries.MULTICAST))
        return max(entering, arriving), max(1, ceil(largest / self.weight_tile))

    def _streamed(self, op: Op, sharding: Sharding, needed: Sequence[Sharding], out: float) -> float:
        """Cycles to pass the operands through outer memory, where a lane cannot hold what it reads and writes."""
        weights = 1 if has_weights(op, self.graph) else ABSENT
        inputs = [
            (t, need) for p, (t, need) in enumerate(zip(op.inputs, needed, strict=True)) if t != ABSENT and p != weights
        ]
        own = sum(self._bytes(t) * need.largest for t, need in inputs if not self._is_constant(t))
        if own + out <= self.room * self.units:
            return 0.0
        lanes, first = sharding.lanes(), sharding.devices[0]
        here = [lane for lane in lanes if lane // self.cores == first]
        read = sum(self._bytes(t) * need.share(lane) for t, need in inputs for lane in here)
        written = sum(self._bytes(t) * sharding.made.share(lane) for t in op.outputs for lane in here)
        return read / self._rate(Carries.READ) + written / self._rate(Carries.WRITE)

    def has_room_for_sums(self, op: Op) -> bool:
        """Whether every lane can hold partial sums of the whole result, in a quarter of its local memory."""
        return 4 * sum(self._bytes(t) for t in op.outputs) <= self.room

    def _adding_up(self, op: Op, sharding: Sharding) -> float:
        """Partial sums: every lane sends its own to the others, and adds what it gets."""
        parts = next(cut.parts for cut in sharding.cuts if cut.axis == REDUCED)
        size = sum(self._bytes(t) for t in op.outputs) * sharding.made.largest
        kernel = next((e.kernels["add"].value for e in self.machine.target.engines if "add" in e.kernels), 0.0)
        sent = size * len(sharding.lanes())
        return sent / self._rate(Carries.MULTICAST) + (parts - 1) * size / 1024 * kernel + 2 * self.barrier

    def _changing_layouts(self, placed: Placed, needed: Sequence[Sharding]) -> float:
        if self.layout is None:
            return 0.0
        op, cycles = placed.op, 0.0
        weights = 1 if has_weights(op, self.graph) else ABSENT
        wants, keeps = placed.engine in self.layout.engines, keeps_layout(op, self.layout)
        for position, (t, need) in enumerate(zip(op.inputs, needed, strict=True)):
            if t == ABSENT or position == weights or self._is_constant(t) or (keeps and not wants):
                continue
            if wants != (t in self.tiled):
                product = wants and position == 1
                rate = (
                    self.layout.weights_to_tiled
                    if product
                    else self.layout.to_tiled
                    if wants
                    else self.layout.from_tiled
                )
                cycles += rate.value * self._bytes(t) * need.largest / 1024
        return cycles

    def _tiled_tensors(self, placed: Sequence[Placed]) -> frozenset[int]:
        """Tensors that are made in the tiled layout: by its engines, or by ops that keep the layout of an operand."""
        found: set[int] = set()
        layout = self.layout
        if layout is None:
            return frozenset()
        for each in placed:
            op = each.op
            carried = op.family is Family.VIEW or keeps_layout(op, layout)
            if each.engine in layout.engines or (carried and any(t in found for t in op.inputs)):
                found.update(op.outputs)
        return frozenset(found)

    # ---- an exchange ----------------------------------------------------------------------------------------------

    def is_there(self, held: Sharding, needed: Sharding) -> bool:
        """Whether every lane has what it needs."""
        return not moved_by_exchange(held, needed)

    def exchange(self, tensor: int, held: Sharding, needed: Sharding) -> float:
        """Cycles until every lane has what it needs of a tensor."""
        key = held, needed
        if key not in self._exchanges:
            self._exchanges[key] = self._parts_of(moved_by_exchange(held, needed), held, needed)
        fixed, per_byte, largest, detour = self._exchanges[key]
        size = self._bytes(tensor)
        if not fixed:
            return 0.0
        return fixed + size * per_byte + (size * detour if size * largest > self.room * self.units / 2 else 0.0)

    def _parts_of(self, moved: Moved, held: Sharding, needed: Sharding) -> tuple[float, float, float, float]:
        """Fixed cycles, cycles a byte, the largest share of a lane, and cycles a byte through outer memory instead."""
        if not moved:
            return 0.0, 0.0, 0.0, 0.0
        own = self.core_rates.get(Carries.MULTICAST, inf)
        per_byte = max(moved.bus / self._rate(Carries.MULTICAST), moved.sender / own)
        fixed = 2 * self.barrier
        if moved.link:
            per_byte += moved.link / self._rate(Carries.LINK)
            fixed += self.barrier + self.latency.get(Carries.LINK, 0.0)
        largest = max(needed.shares.values(), default=0.0)
        shares = needed.shares
        read = sum(share for lane, share in shares.items() if lane // self.cores == needed.devices[0])
        written = sum(s for lane, s in held.shares.items() if lane // self.cores == held.devices[0])
        detour = min(1.0, written) / self._rate(Carries.WRITE) + read / self._rate(Carries.READ)
        return fixed, per_byte, largest, detour

    # ---- sizes ----------------------------------------------------------------------------------------------------

    def _rate(self, carries: Carries) -> float:
        return self.rates.get(carries, inf)

    def _bytes(self, tensor: int) -> int:
        return self._sizes[tensor]

    def _is_constant(self, tensor: int) -> bool:
        return self.graph.tensors[tensor].role is Role.CONSTANT


def keeps_layout(op: Op, layout: Layout) -> bool:
    return op.kind in layout.keeps or op.family.value in layout.keeps


def weight_cuts(op: Op, graph: Graph, sharding: Sharding) -> Sharding:
    """How lanes share the weights of a product: by produced channels, and by the axis that it sums over."""
    axis = channel_axis(op, graph)
    return sharding.only(tuple(cut for cut in sharding.cuts if cut.axis in (axis, REDUCED)))
