"""Prices of splits, in core cycles: what an op costs that lanes share in some way, and an exchange between lanes.

Engines, weights on their way and spilled activations overlap within an op, so the slowest of them counts; layouts are
changed before it starts, and every command has its launch. Nothing here depends on what other ops do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, inf
from typing import NamedTuple

from ...core.meaning import Carries
from ...estimate.kernels import converted_inputs, has_weights, tiled_tensors
from ...estimate.memory import plan_memory
from ...estimate.price import Machine, barrier_cycles, launch_cycles, launches_of, link_price, state_cycles
from ...estimate.traffic.stores import parameter_bytes
from ...estimate.work import DEQUANTIZE, Work, number, state_bytes, unpacked_bytes
from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import Family
from ...machine.target import Engine, Layout
from ..codegen.timing import VectorCost
from ..plan import Part, Placed, Split, channel_axis, leaves_by_tiles, spans
from ..sharding import REDUCED, Moved, Sharding, moved_by_exchange

_PRODUCTS = (Family.CONTRACTION, Family.RECURRENT, Family.POOL)


class OpPrice(NamedTuple):
    """Cycles of an op, one after the other."""

    exchange: float  # of inputs that lanes hold otherwise than it needs them; engines have other work meanwhile
    converting: float  # of their layouts, by the vector engine
    own: float  # by its engine

    @property
    def total(self) -> float:
        return self.exchange + self.converting + self.own


_NOTHING = OpPrice(0.0, 0.0, 0.0)


def done_after(placed: Sequence[Placed], parts: Sequence[Sequence[OpPrice]], vector: str) -> float:
    """Cycles until all ops are done, for all parts of the batch that run op by op, given what each takes.

    An engine does its ops in order, and one begins when its inputs are there: branches of a network, and parts of a
    batch, that do not wait for each other share the engines. What starts an exchange comes in the order of the vector
    engine, which waits for what is to be sent.

        matrix   a    c    d          b, behind a, is on the vector engine; c is not behind b, and d is behind both
        vector        b
    """
    free: dict[str, float] = {}
    made: list[dict[int, float]] = [{} for _ in parts]  # when tensors are there
    for index, each in enumerate(placed):
        for prices, there in zip(parts, made, strict=True):
            price = prices[index]
            now = max([there.get(t, 0.0) for t in each.op.inputs], default=0.0)
            if price.exchange:  # a vector thread starts it
                now = free[vector] = max(now, free.get(vector, 0.0))
                now += price.exchange
            for engine, cycles in ((vector, price.converting), (each.engine, price.own)):
                if cycles:
                    now = free[engine] = max(now, free.get(engine, 0.0)) + cycles
            there.update(dict.fromkeys(each.op.outputs, now))
    return max((now for there in made for now in there.values()), default=0.0)


def parts_done_after(
    placed: Sequence[Placed],
    parts: Sequence[Part],
    prices: Sequence[Sequence[OpPrice]],
    vector: str,
    *,
    interleaved: bool = True,
) -> float:
    """The same for parts of the batch, given what their ops take: op by op, the rest of the batch first, or one part
    after the other; and behind them for the one that they are joined in.
    """
    found = [
        [price if index in span else _NOTHING for index, price in enumerate(each)]
        for each, span in zip(prices, spans(parts), strict=True)
    ]
    join = parts[-1].joined
    together, behind = (found, []) if join is None else (found[:-1], found[-1:])
    groups = [together[::-1]] if interleaved else [[each] for each in together]
    cycles = sum(done_after(placed, group, vector) for group in (*groups, behind))
    return cycles if join is None else cycles + join.cycles


class Prices:
    """Prices on one machine, for one graph."""

    def __init__(
        self,
        graph: Graph,
        placed: Sequence[Placed],
        machine: Machine,
        *,
        units: int = 1,
        cores: int | None = None,
        resident: bool = False,
    ) -> None:
        """`units` of the batch are in the graph, and only one of them has to fit local memory; `cores` of a device
        take part; `resident`: constants are known to stay in local memory.
        """
        self.using = machine.cores if cores is None else cores
        self.graph, self.placed, self.machine = graph, placed, machine
        self.maker = {t: index for index, each in enumerate(placed) for t in each.op.outputs}
        self.units = units
        self._sizes = [tensor.bytes or 0 for tensor in graph.tensors]
        target, clock = machine.target, machine.clock_hz
        self.cores, self.devices = machine.cores, machine.devices
        self.rates: Mapping[str, float] = {route.carries: route.peak(clock) * route.reached for route in target.routes}
        self.link = link_price(machine)
        own = {r.carries: target.core_rate(r) for r in target.routes}
        self.core_rates = {carries: f.value / clock for carries, f in own.items() if f is not None}
        tiling, local = target.tiling, target.local
        self.weight_tile = tiling.weight_bytes.value if tiling is not None else inf
        self.piece = tiling.activation_bytes.value if tiling is not None else inf
        self.room = inf
        if tiling is not None and local is not None:
            left = local.bytes.value - tiling.buffers.value * self.weight_tile
            self.room = max(1.0, left)  # a memory without room for anything is refused when commands are emitted
        self.resident = resident or _stays(graph, machine)
        self.layout: Layout | None = target.layout
        self.tiled = tiled_tensors([(each.op, each.engine) for each in placed], target.layout)
        self.barrier = barrier_cycles(target)
        self.vector = max(target.engines, key=lambda engine: engine.threads).name
        issues = {route.carries: route.issue_cycles for route in target.routes}
        sending = issues.get(Carries.MULTICAST)
        self.sending = 0.0 if sending is None else sending.value
        self._converted: dict[int, Mapping[int, float]] = {}
        self._exchanges: dict[tuple[Sharding, Sharding], tuple[float, ...]] = {}
        self._inputs: dict[tuple[int, float | None], InputPrices] = {}  # by size, and rate of conversion

    # ---- an op ----------------------------------------------------------------------------------------------------

    def by_op(self, splits: Sequence[Split]) -> list[OpPrice]:
        """What every op takes, split so, if local memory holds what is needed. A tensor is exchanged once for all
        readers that need the same of it, and once converted for all of them.
        """
        found, exchanged, converted = [], set[tuple[int, Sharding]](), set[int]()
        for placed, split in zip(self.placed, splits, strict=True):
            own = exchange = converting = 0.0
            if split.needs or not placed.op.inputs:
                own = self.op(placed, split.sharding, split.needs, may_spill=False)
            for position, t in enumerate(placed.op.inputs if split.needs else ()):
                if t in self.maker:
                    held, prices = splits[self.maker[t]].sharding.made, self.of_input(placed, position)
                    need, before = split.needs[position], sum(prices.converting(held))
                    exchange += 0.0 if (t, need) in exchanged else prices.cycles(held, need) - before
                    converting += 0.0 if t in converted else before
                    exchanged.add((t, need))
                    converted.update([t] if before else [])
            found.append(OpPrice(exchange, converting, own))
        return found

    def op(self, placed: Placed, sharding: Sharding, needed: Sequence[Sharding], *, may_spill: bool = True) -> float:
        """Cycles of the lane that has most to do."""
        op, engine = placed.op, placed.task.placement.engine
        if not placed.engine or engine is None:
            return 0.0
        share = sharding.largest
        launch = launch_cycles(engine) * launches_of(op)
        cycles = placed.cycles * share
        out = sum(self._bytes(t) for t in op.outputs) * sharding.made.largest
        commands = max(1, ceil(out / self.piece), ceil(2 * out / self.room))
        if has_weights(op, self.graph):
            slices = self._slices(op, sharding, self._held(op, needed) + out, out)
            loading, tiles = self._weights(op, placed.task.work, engine, sharding, slices)
            cycles, commands = max(cycles, loading), slices * tiles
        cycles = max(cycles, self._arriving(op, needed))
        if may_spill:
            cycles = max(cycles, self._streamed(op, sharding, needed, out))
        if sharding.cut_on(REDUCED) is not None:
            cycles += self._adding_up(op, sharding)
        if op.family is Family.RECURRENT:
            cycles = max(cycles, self._passing_weights(placed, sharding)) + self._handing_on(op, sharding)
        return cycles + self._changing_layouts(placed, needed) + commands * launch

    def _passing_weights(self, placed: Placed, sharding: Sharding) -> float:
        """Cycles of weights that meet a state, where a lane cannot hold its part: it reads them in every step."""
        work, cuts = placed.task.work, weight_cuts(placed.op, self.graph, sharding)
        if work.state_weight_bytes * cuts.largest <= self.room:
            return 0.0
        return work.steps * work.state_weight_bytes * cuts.on_first_device.share / self._rate(Carries.READ)

    def _handing_on(self, op: Op, sharding: Sharding) -> float:
        """Cycles of lanes that have hidden units each: in every step they hand each other the state."""
        if sharding.cut_on(channel_axis(op, self.graph)) is None:
            return 0.0
        return number(op, "steps") * state_cycles(state_bytes(op, self.graph), self.machine)

    def _slices(self, op: Op, sharding: Sharding, total: float, out: float) -> int:
        """Slices of rows that a product runs in where a lane cannot hold what it reads and writes: all of its weights
        enter the engine for each of them. A result alone can leave tile by tile (`codegen/operands.py`).
        """
        total, out = total / self.units, out / self.units
        weights = self._bytes(op.inputs[1]) * weight_cuts(op, self.graph, sharding).largest
        if total <= self.room or (leaves_by_tiles(weights / self.weight_tile) and total - out <= self.room):
            return 1
        return ceil(4 * total / self.room)

    def _weights(self, op: Op, work: Work, engine: Engine, sharding: Sharding, slices: int) -> tuple[float, int]:
        """Cycles until the weights are in the engine for every slice, and the number of tiles that they come in."""
        size, cuts = self._bytes(op.inputs[1]), weight_cuts(op, self.graph, sharding)
        weights, unpacking = self.graph.tensors[op.inputs[1]], 0.0
        largest = cuts.largest * (unpacked_bytes(weights, self.graph.tensors[op.inputs[0]].dtype) or size)
        again = cuts.largest * work.steps * work.state_weight_bytes
        if weights.dtype in DEQUANTIZE:
            rates = (e.kernels.get(DEQUANTIZE[weights.dtype]) for e in self.machine.target.engines)
            unpacking = max((rate.value for rate in rates if rate is not None), default=0.0) * largest / 1024
        rate = engine.weight_bytes_per_cycle
        entered = largest * slices * (op.trips or 1) + again
        entering = max(unpacking, entered / rate.value if rate is not None else 0.0)
        here = cuts.on_first_device
        read = size * here.once
        arriving = 0.0 if self.resident else read / self._rate(Carries.READ)
        if here.lanes > here.boxes and not self.resident:
            arriving = max(arriving, read / self._rate(Carries.MULTICAST))
        return max(entering, arriving), max(1, ceil(largest / self.weight_tile))

    def _arriving(self, op: Op, needed: Sequence[Sharding]) -> float:
        """Cycles until graph inputs and constants other than weights are there; what cores need alike is read once."""
        weights = 1 if has_weights(op, self.graph) else ABSENT
        read = 0.0
        for position, (t, need) in enumerate(zip(op.inputs, needed, strict=True)):
            if (
                t != ABSENT
                and position != weights
                and t not in self.maker
                and not (op.kind == "gather" and not position)
                and not (self.resident and self._is_constant(t))
            ):
                read += self._bytes(t) * need.on_first_device.once
        return read / self._rate(Carries.READ)

    def _streamed(self, op: Op, sharding: Sharding, needed: Sequence[Sharding], out: float) -> float:
        """Cycles to pass the operands through outer memory, where a lane cannot hold what it reads and writes."""
        own = self._held(op, needed)
        in_either = 2 if self.layout is not None and op.family in _PRODUCTS else 1  # layout, or before an exchange
        if in_either * own + out <= self.room * self.units:
            return 0.0
        lanes, first = sharding.lanes(), sharding.devices[0]
        here = [lane for lane in lanes if lane // self.cores == first]
        together = op.family in (Family.CONTRACTION, Family.RECURRENT)
        read = 0.0
        for t, need in self._inputs_of(op, needed):  # outer memory has inputs of the graph whole, for all cores
            once = together and t not in self.maker
            read += self._bytes(t) * (need.on_first_device.once if once else need.on_first_device.share)
        written = sum(self._bytes(t) * sharding.made.share(lane) for t in op.outputs for lane in here)
        if has_weights(op, self.graph):
            read += self._read_again(op, sharding, read, self._slices(op, sharding, own + out, out))
        return read / self._rate(Carries.READ) + written / self._rate(Carries.WRITE)

    def _read_again(self, op: Op, sharding: Sharding, read: float, slices: int) -> float:
        """Bytes that slices of rows cost beyond the first time: weights for each of them, or the slices for each panel
        of weights that half of local memory holds.
        """
        cuts = weight_cuts(op, self.graph, sharding)
        size = self._bytes(op.inputs[1])
        panels = ceil(size * cuts.largest / (self.room / 2))
        return self.units * min(size * cuts.on_first_device.once * (slices - 1), read / self.units * (panels - 1))

    def _held(self, op: Op, needed: Sequence[Sharding]) -> float:
        """Bytes of activations that a lane reads."""
        inputs = self._inputs_of(op, needed)
        return sum(self._bytes(t) * need.largest for t, need in inputs if not self._is_constant(t))

    def _inputs_of(self, op: Op, needed: Sequence[Sharding]) -> list[tuple[int, Sharding]]:
        """The inputs of an op as it needs them, beside weights."""
        weights = 1 if has_weights(op, self.graph) else ABSENT
        pairs = enumerate(zip(op.inputs, needed, strict=True))
        return [(t, need) for position, (t, need) in pairs if t != ABSENT and position != weights]

    def has_room_for_sums(self, op: Op) -> bool:
        """Whether every lane can hold partial sums of the whole result, in a quarter of its local memory."""
        return 4 * sum(self._bytes(t) for t in op.outputs) <= self.room

    def _adding_up(self, op: Op, sharding: Sharding) -> float:
        """Partial sums: every lane sends its own to the others, and adds what it gets."""
        parts = next(cut.parts for cut in sharding.cuts if cut.axis == REDUCED)
        size = sum(self._bytes(t) for t in op.outputs) * sharding.made.largest
        target = self.machine.target
        vector = max(target.engines, key=lambda engine: engine.threads)
        adding = VectorCost("add", size, parts - 1).cycles(target, vector)
        sent = size * len(sharding.lanes())
        return sent / self._rate(Carries.MULTICAST) + adding + self.sending + self.barrier

    def _changing_layouts(self, placed: Placed, needed: Sequence[Sharding]) -> float:
        """Cycles to convert what is read from outer memory; what ops make is converted where it is (`InputPrices`)."""
        cycles = 0.0
        for position, rate in self._conversions(placed).items():
            t = placed.op.inputs[position]
            if t not in self.maker:
                cycles += rate * self._bytes(t) * needed[position].largest / 1024 + self.barrier
        return cycles

    def _conversions(self, placed: Placed) -> Mapping[int, float]:
        """Positions of the inputs of an op whose layout is changed, with cycles per KB."""
        key = placed.op.outputs[0] if placed.op.outputs else ABSENT
        if self.layout is None or not placed.engine:
            return {}
        if key not in self._converted:
            op, engine = placed.op, placed.engine
            self._converted[key] = converted_inputs(op, engine, self.graph, tiled=self.tiled, layout=self.layout)
        return self._converted[key]

    def sent(self, tensor: int, held: Sharding, needed: Sharding) -> float:
        """Cycles until every lane has what it needs of a tensor, as it is."""
        return self.exchange(self._bytes(tensor), held, needed)

    # ---- an exchange ----------------------------------------------------------------------------------------------

    def is_there(self, held: Sharding, needed: Sharding) -> bool:
        """Whether every lane has what it needs."""
        return not moved_by_exchange(held, needed)

    def of_input(self, placed: Placed, position: int) -> InputPrices:
        """What it costs to have an input of an op as the op needs it; the same for all that are of one size."""
        key = self._bytes(placed.op.inputs[position]), self._conversions(placed).get(position)
        if key not in self._inputs:
            self._inputs[key] = InputPrices(self, *key)
        return self._inputs[key]

    def converting(self, size: float, rate: float | None, held: Sharding) -> tuple[float, float]:
        """Cycles to convert a tensor where it is, and to stream it where it has no room for both layouts."""
        if rate is None:  # its layout is not changed
            return 0.0, 0.0
        own, streaming = size * held.largest, 0.0
        if 2 * own > self.room * self.units:
            streaming = 2 * own * min(len(held.boxes), self.cores) / self._rate(Carries.READ)
        return rate * own / 1024 + self.barrier, streaming

    def exchange(self, size: float, held: Sharding, needed: Sharding) -> float:
        """Cycles until every lane has what it needs of a tensor."""
        key = held, needed
        if key not in self._exchanges:
            self._exchanges[key] = self._parts_of(moved_by_exchange(held, needed), held, needed)
        fixed, per_byte, largest, detour = self._exchanges[key]
        if not fixed:
            return 0.0
        return fixed + size * per_byte + (size * detour if size * largest > self.room * self.units else 0.0)

    def _parts_of(self, moved: Moved, held: Sharding, needed: Sharding) -> tuple[float, float, float, float]:
        """Fixed cycles, cycles a byte, the largest share of a lane before and after it together, which need room, and
        cycles a byte through outer memory instead.
        """
        if not moved:
            return 0.0, 0.0, 0.0, 0.0
        own = self.core_rates.get(Carries.MULTICAST, inf)
        per_byte = max(moved.bus / self._rate(Carries.MULTICAST), moved.sender / own)
        fixed = self.sending
        if moved.link:
            per_byte += moved.link * self.link.per_byte
            fixed += self.link.start
        largest = max((needed.share(lane) + held.share(lane) for lane in needed.shares), default=0.0)
        read, written = needed.on_first_device.share, held.on_first_device.share
        detour = min(1.0, written) / self._rate(Carries.WRITE) + read / self._rate(Carries.READ)
        return fixed, per_byte, largest, detour

    # ---- sizes ----------------------------------------------------------------------------------------------------

    def size_and_layout(self, tensor: int) -> tuple[int, bool]:
        """Bytes of a tensor, and whether it is made in the tiled layout: all that prices depend on, beside its form."""
        return self._sizes[tensor], tensor in self.tiled

    def _rate(self, carries: Carries) -> float:
        return self.rates.get(carries, inf)

    def _bytes(self, tensor: int) -> int:
        return self._sizes[tensor]

    def _is_constant(self, tensor: int) -> bool:
        return self.graph.tensors[tensor].role is Role.CONSTANT


class InputPrices:
    """What it costs to have an input of some size as an op needs it: converted where it is, then exchanged.

    An op asks for the same pairs of shardings again for every option of its neighbours, and so do ops that are alike.
    """

    def __init__(self, prices: Prices, size: int, rate: float | None) -> None:
        self._prices, self._size, self._rate = prices, size, rate
        self._cycles: dict[tuple[Sharding, Sharding], float] = {}
        self._converting: dict[Sharding, tuple[float, float]] = {}

    def cycles(self, held: Sharding, needed: Sharding) -> float:
        """Cycles until every lane has what it needs."""
        key = held, needed
        found = self._cycles.get(key)
        if found is None:
            converting, streaming = self.converting(held)
            found = self._prices.exchange(self._size, held, needed) + converting + streaming
            self._cycles[key] = found
        return found

    def converting(self, held: Sharding) -> tuple[float, float]:
        """The parts of it that are due even where nothing is exchanged."""
        if held not in self._converting:
            self._converting[held] = self._prices.converting(self._size, self._rate, held)
        return self._converting[held]


def _stays(graph: Graph, machine: Machine) -> bool:
    """Whether all constants fit beside the activations on every core, however ops are split: they are not read then."""
    target = machine.target
    if target.local is None or target.tiling is None or not target.tiling.keeps_constants:
        return False
    left = target.local.bytes.value - parameter_bytes(graph)
    return left > 0 and plan_memory(graph, target.runtime).arena_bytes <= left


def weight_cuts(op: Op, graph: Graph, sharding: Sharding) -> Sharding:
    """How lanes share the weights of a product: by produced channels, and by the axis that it sums over."""
    axis = channel_axis(op, graph)
    return sharding.only(tuple(cut for cut in sharding.cuts if cut.axis in (axis, REDUCED)))
