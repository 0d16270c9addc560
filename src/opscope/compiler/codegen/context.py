"""Lowering context: what all steps of lowering share. The emitter, names, sizes, and which lanes take part in what.

In code generation a lane is one core of one device, numbered device × cores + core. (In a Program, whose commands are
sorted by thread group, a lane is one thread group of such a core.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil, inf
from typing import NamedTuple

from ...core.meaning import Carries, Direction, Does
from ...estimate.kernels import has_weights, keeps_layout
from ...estimate.price import launch_cycles
from ...estimate.traffic.stores import loop_bytes
from ...estimate.work import DEQUANTIZE, numbers, unpacked_bytes
from ...graph.graph import ABSENT, Op, Role
from ...graph.kinds import Family
from ...machine.target import Holds, Layout, Memory, Route, Target, Tiling
from ...program.program import NO_MEMORY, Channel, Group, MemoryInfo
from ..passes.axes import input_axes
from ..passes.split_prices import weight_cuts
from ..plan import Placed, Plan, Schedule, Split, channel_axis
from ..sharding import REDUCED, Sharding
from .details import DetailWords
from .emit import CommandSpec, Emitter, SequencerStarts
from .timing import VectorCost, issue_cycles

_WORTH = 4  # times the cycles of starting it: the mean work of a piece
RESIDENT_SHARE = 16  # biases and other small constants may stay in 1/16 of local memory
VECTOR_GROUP = 0  # the group with most threads also converts layouts and issues all-gathers


class _Transfer(NamedTuple):
    """What all transfers of a form over a route have in common."""

    name: str
    route: int
    issue_cycles: float
    memory: str  # the end of the way that its operand names
    direction: Direction


class LoweringContext:
    """A schedule and its machine, as code generation needs them; only the emitter changes meanwhile."""

    def __init__(self, plan: Schedule, tiling: Tiling, local: Memory) -> None:
        target = plan.machine.target
        self.plan = plan
        self.graph = plan.graph
        self.tiling = tiling
        self.layout: Layout | None = target.layout
        self.capacity = round(local.bytes.value)
        self.lane_count = plan.machine.lanes
        self.groups = engine_groups(plan)
        self.group_of: dict[str, int] = {}  # engine → its first group; further units follow
        for number, group in enumerate(self.groups):
            self.group_of.setdefault(group.engine, number)
        self.engines = {engine.name: engine for engine in target.engines}
        self.vector_costs: dict[int, VectorCost] = {}  # command between ops → the inputs of its cycles
        self.dma = len(self.groups) - 1
        self.doorbell_group = VECTOR_GROUP if target.sequencer is None else self.dma
        self._routes = {route.carries: (number, route) for number, route in enumerate(target.routes)}
        self._transfers: dict[tuple[Carries, str], _Transfer] = {}  # by what a route carries, and the form
        self.emitter = Emitter(cores=plan.machine.cores, groups=len(self.groups), starts=self._starts(target))
        self.local_name = local.name
        self._command_names = target.commands
        self.outer_name = target.home(Holds.CONSTANTS).name
        share = RESIDENT_SHARE if tiling.keeps_constants else inf
        self.resident_constants = resident_constants(plan, round(local.bytes.value / share))
        self.maker = {t: i for i, placed in enumerate(plan.placed) for t in placed.op.outputs}
        self.constant_details: list[int] = []  # of commands that move constants, by number at emission
        self._details: dict[tuple[object, ...], int] = {}
        self._held: dict[int, Mapping[int, float]] = {}  # op → bytes of its operands that a core has at once
        self.words = DetailWords(plan, local.name, constants=self.resident_constants, made=self.maker.keys())
        self._weight_cuts: dict[int, Sharding] = {}  # op → how lanes share its weights
        self._common_axes: dict[tuple[int, int], list[tuple[int, Sharding | None]]] = {}  # op, position of an input
        self.loop_bytes = loop_bytes(plan.graph)
        self._bytes = [float(tensor.bytes or 0) for tensor in plan.graph.tensors]

    def _starts(self, target: Target) -> SequencerStarts | None:
        found = target.sequencer
        if found is None:
            return None
        block = found.block_commands
        return SequencerStarts(
            self.dma,
            found.start_cycles.value,
            found.awaits_transfers,
            self._control,
            0.0 if found.descriptor_bytes is None else found.descriptor_bytes.value,
            0.0 if found.block_bytes is None else found.block_bytes.value,
            0 if block is None else round(block.value),
        )

    def _control(self, near: CommandSpec, size: float) -> CommandSpec:
        """The spec of a read of what controls the machine: a descriptor, or a block of the sequencer's program."""
        return self.transfer(Carries.READ, near.core, near.op, size)

    def lanes(self, split: Split) -> tuple[int, ...]:
        return split.sharding.lanes()

    def result_share(self, index: int, lane: int) -> float:
        """Share of an op's outputs that a lane makes; more than its work where lanes have partial sums."""
        return self.plan.splits[index].sharding.made.share(lane)

    def operand_share(self, index: int, position: int, lane: int) -> float:
        """Share of an input that a lane needs."""
        needed = self.plan.splits[index].needs
        return needed[position].share(lane) if needed else 1.0

    def hands_on_state(self, index: int) -> bool:
        """Whether lanes have hidden units of a recurrent op each, and need each other's before the next step."""
        op, split = self.plan.placed[index].op, self.plan.splits[index]
        return op.family is Family.RECURRENT and split.sharding.cut_on(channel_axis(op, self.graph)) is not None

    def has_partial_sums(self, index: int) -> bool:
        """Whether the lanes of a product have partial sums, which are to be added up."""
        return self.plan.splits[index].sharding.cut_on(REDUCED) is not None

    def sharding_of(self, tensor: int) -> Sharding | None:
        """Which part of a tensor each lane makes; None where no op makes it."""
        return self.plan.splits[self.maker[tensor]].sharding.made if tensor in self.maker else None

    def unpacked_weights(self, index: int) -> float:
        """Bytes of an op's weights as they enter its engine; more than in memory where they are stored in blocks."""
        placed = self.plan.placed[index]
        weights = self.graph.tensors[placed.op.inputs[1]]
        return unpacked_bytes(weights, placed.task.placement.dtype) or weights.bytes or 0

    def passes(self, index: int) -> int:
        """How often an op's weights are read: in every trip of a loop whose constants a core has no room for."""
        placed = self.plan.placed[index]
        return placed.task.trips if self.loop_bytes.get(placed.op.scope, 0) > self.capacity else 1

    def dequantizing(self, index: int) -> float | None:
        """Cycles per KB to convert an op's weights on the vector engine; None: they are stored as they are used."""
        kernel = DEQUANTIZE.get(self.graph.tensors[self.plan.placed[index].op.inputs[1]].dtype)
        return None if kernel is None else self.engines[self.groups[VECTOR_GROUP].engine].kernels[kernel].value

    def weight_share(self, index: int, lane: int) -> float:
        """Share of an op's weights that a lane needs."""
        return self.weight_sharding(index).share(lane)

    def weight_sharding(self, index: int) -> Sharding:
        """How lanes share an op's weights; asked for every tile, and found once."""
        if index not in self._weight_cuts:
            op, sharding = self.plan.placed[index].op, self.plan.splits[index].sharding
            self._weight_cuts[index] = weight_cuts(op, self.graph, sharding)
        return self._weight_cuts[index]

    def tensor_bytes(self, tensor: int) -> float:
        return self._bytes[tensor]

    def out_shape(self, op: Op) -> tuple[int, ...] | None:
        return self.graph.tensors[op.outputs[0]].shape

    def out_bytes(self, op: Op) -> float:
        return sum([self._bytes[t] for t in op.outputs])

    def common_rows(self, index: int, position: int, lane: int) -> int:
        """Number of rows on a lane for which row k of the result depends on row k of an operand and on no other.

        Rows run over the leading axes that the op leaves alone: 8 × 16 for a matmul [8,16,32]·[32,64]. Where windows
        overlap (convolution, pooling) only the first axis counts.
        """
        if (index, position) not in self._common_axes:
            self._common_axes[index, position] = self._axes_in_common(index, position)
        rows = 1.0
        for extent, cut in self._common_axes[index, position]:
            rows *= extent * (1.0 if cut is None else cut.share(lane))
        return round(rows)

    def is_needed_whole(self, index: int, position: int, lane: int) -> bool:
        """Whether every slice of rows needs all of an operand: the second one of a product that is not batched."""
        product = self.plan.placed[index].op.family in (Family.CONTRACTION, Family.RECURRENT)
        return product and position > 0 and self.common_rows(index, position, lane) <= 1

    def _axes_in_common(self, index: int, position: int) -> list[tuple[int, Sharding | None]]:
        """The leading axes that an op leaves alone: their extents, and how lanes share them where they do."""
        op, split = self.plan.placed[index].op, self.plan.splits[index]
        out, shape = (self.graph.tensors[t].shape or () for t in (op.outputs[0], op.inputs[position]))
        overlaps = op.family is Family.POOL or "kernel" in op.attributes
        found: list[tuple[int, Sharding | None]] = []
        for axis, (extent, own) in enumerate(zip(out[:1] if overlaps else out, shape, strict=False)):
            axes = input_axes(op, self.graph, axis)
            if axes is None or axes[position] != axis or extent != own:
                break
            cut = split.sharding.cut_on(axis)
            found.append((extent, None if cut is None else split.sharding.only((cut,))))
        return found

    def is_tiled(self, placed: Placed) -> bool:
        return self.layout is not None and placed.engine in self.layout.engines

    def keeps_layout(self, op: Op) -> bool:
        return self.layout is not None and keeps_layout(op, self.layout)

    def conversion_form(self, index: int, position: int, *, tiled: bool) -> str:
        """Name of the layout conversion of an operand: a figure of the target's layout."""
        if not tiled:
            return "from_tiled"
        reader, op = (index, position), self.plan.placed[index].op
        if op.kind == "exchange":  # in the layout of the op that reads what is exchanged
            reader = self.reader(index, op.outputs[0]) or reader
        product = self.plan.placed[reader[0]].op.family in (Family.CONTRACTION, Family.RECURRENT)
        return "weights_to_tiled" if product and reader[1] == 1 else "to_tiled"

    def reader(self, index: int, tensor: int) -> tuple[int, int] | None:
        """The first op behind another that reads a tensor, or a view of it, and at which position."""
        names = {tensor}
        for number, placed in enumerate(self.plan.placed[index + 1 :], index + 1):
            position = next((position for position, t in enumerate(placed.op.inputs) if t in names), None)
            if position is not None and placed.op.family is not Family.VIEW:
                return number, position
            if position is not None:
                names.update(placed.op.outputs)
        return None

    def is_constant(self, tensor: int) -> bool:
        return self.graph.tensors[tensor].role is Role.CONSTANT

    @property
    def vector_engine(self) -> str:
        return self.groups[VECTOR_GROUP].engine

    def vector_cycles(self, cost: VectorCost) -> float:
        return cost.cycles(self.plan.machine.target, self.engines.get(self.vector_engine))

    def command_name(self, form: str) -> str:
        return self._command_names.get(form, form)

    def piece_count(self, size: float) -> int:
        return max(1, ceil(size / self.tiling.activation_bytes.value))

    def own_memory(self, engine: str) -> Memory | None:
        """The private memory of an engine; None: it works in local memory."""
        name = self.engines[engine].memory
        return next((memory for memory in self.plan.machine.target.memories if memory.name == name), None)

    def is_by_rows(self, op: Op) -> bool:
        """Whether a row of the result depends on the same row of the inputs alone: softmax over the last axis does."""
        if op.family is Family.NORMALISE:
            rank = len(self.out_shape(op) or ())
            return rank > 1 and numbers(op, "axes") == (rank - 1,)
        return op.family in (Family.ELEMENTWISE, Family.CONVERT)

    def slice_count(self, chain: Sequence[int], portion: float, share: float) -> int:
        """Slices that a chain of ops runs in: at least one per unit, and small enough for the memory they work in.

        A lane has a portion of their work, and makes a share of their results.
        """
        placed = self.plan.placed[chain[0]]
        units = self.engines[placed.engine].units_for(placed.task.family)
        size = self.out_bytes(placed.op) * share
        least = min(units, max(1, round(size)))
        own = self.own_memory(placed.engine)
        if own is not None:
            worked = max(self.working_set_bytes(self.plan.placed[index].op) for index in chain)
            least = max(least, ceil(worked * share / own.bytes.value))
        return max(least, self.piece_count(size), self._overlapping_pieces(chain, portion))

    def _overlapping_pieces(self, chain: Sequence[int], portion: float) -> int:
        """Pieces that an op is cut into so that an engine may begin with the first while another makes the second.

        None is so small that starting it takes long beside its work.
        """
        placed = self.plan.placed[chain[0]]
        started = launch_cycles(self.engines[placed.engine])
        if not started or len(self.plan.machine.target.engines) < 2:
            return 1
        mean = sum(self.plan.placed[index].cycles for index in chain) / len(chain) * portion
        return max(1, min(self.plan.overlap_parts, int(mean / (_WORTH * started))))

    def working_set_bytes(self, op: Op) -> float:
        """Bytes that an op reads and writes."""
        return self.out_bytes(op) + sum(self.tensor_bytes(t) for t in op.inputs if t != ABSENT)

    def transfer(
        self,
        carries: Carries,
        lane: int,
        index: int,
        size: float,
        *,
        form: str = "",
        group: int | None = None,
        tensor: int = ABSENT,
        step: int = 0,
        address: int = 0,
        local_bytes: float = 0.0,
    ) -> CommandSpec:
        """The spec of a command that moves bytes over a route."""
        known = self._transfers.get((carries, form))
        if known is None:
            known = self._transfers[carries, form] = self._transfer(carries, form)
        name, route, issue, memory, direction = known
        return CommandSpec(
            lane,
            self.dma if group is None else group,
            name,
            Does.MOVE,
            index,
            self.move_detail(index, step, memory, tensor, direction),
            issue,
            size,
            route,
            size if size > 1.0 else 1.0,
            0.0,
            address,
            0.0 if carries is Carries.BRING else local_bytes,
        )

    def _transfer(self, carries: Carries, form: str) -> _Transfer:
        memory = self.outer_name if carries in (Carries.READ, Carries.WRITE) else self.local_name
        direction = Direction.OUT if carries is Carries.WRITE else Direction.IN
        number, route = self._routes[carries]
        return _Transfer(self.command_name(form or carries), number, issue_cycles(route), memory, direction)

    def move_detail(self, index: int, step: int, memory: str, tensor: int, direction: Direction = Direction.IN) -> int:
        """Number of the detail of a command that moves a tensor; commands of one tile on several lanes share it.

        The operand is the end of the way that `memory` is: what is read from there, or written to it.
        """
        key = (index, step, memory, tensor, direction)
        known = self._details.get(key)
        if known is None:
            known = self._details[key] = self.emitter.detail(partial(self.words.move, *key))
            if tensor != ABSENT and self.is_constant(tensor):
                self.constant_details.append(known)
        return known

    def compute_detail(self, index: int, step: int, steps: int, here: Callable[[], Mapping[int, float]] = dict) -> int:
        """Number of the detail of a command that computes one tile; tiles differ in their names only.

        `here`: bytes of inputs by position, and of the result (ABSENT), that a core has at once; of others all of it.
        """
        key = (index, step, steps)
        known = self._details.get(key)
        if known is None:
            if index not in self._held:
                self._held[index] = here()
            known = self._details[key] = self.emitter.detail(partial(self.words.compute, *key, self._held[index]))
        return known


def resident_constants(plan: Schedule, limit: int) -> frozenset[int]:
    """Constants that stay in local memory between inferences: all of them; or weights for which there is room, and
    small ones up to a limit.
    """
    graph = plan.graph
    streamed = {op.inputs[1] for op in graph.ops if has_weights(op, graph)}
    streamed |= {op.inputs[0] for op in graph.ops if op.kind == "gather" and op.inputs}
    used = {t for op in graph.ops for t in op.inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT}
    if plan.resident:
        return frozenset(used)
    chosen, total = set(), 0
    for t in sorted(used - streamed, key=lambda t: (graph.tensors[t].bytes or 0, t)):
        total += graph.tensors[t].bytes or 0
        if total > limit:
            break
        chosen.add(t)
    return frozenset(chosen) | plan.kept


def engine_groups(plan: Plan | Schedule) -> tuple[Group, ...]:
    """Thread groups of a core: engines with most threads first, and what issues transfers last."""
    target = plan.machine.target
    engines = sorted(target.engines, key=lambda engine: -engine.threads)
    names = [(e, f"{e.name} {unit}" if e.units > 1 else e.name) for e in engines for unit in range(e.units)]
    issuer = target.transfer_thread if target.sequencer is None else target.sequencer.name
    return (*(Group(name, engine.name, engine.threads) for engine, name in names), Group(issuer, "", 1))


def memories(target: Target) -> tuple[MemoryInfo, ...]:
    """The memories of a target, as a program lists them: in bytes per core cycle, after losses."""
    peaks = [(memory, memory.peak(target.clocks.core_hz.value)) for memory in target.memories]
    return tuple(
        MemoryInfo(
            memory.name,
            memory.is_outer,
            None if peak is None else peak * memory.reached,
            on_core_clock=memory.bytes_per_cycle is not None,
        )
        for memory, peak in peaks
    )


def channels(plan: Plan | Schedule) -> tuple[Channel, ...]:
    """The routes of a target, as a program lists them: in bytes per core cycle, after losses."""
    clock = plan.machine.clock_hz

    def channel(route: Route) -> Channel:
        shared = route.peak(clock) * route.reached
        own = target.core_rate(route)
        alone = min(shared, own.value / clock) if own is not None else shared
        return Channel(
            route.name,
            route.carries,
            shared,
            alone,
            numbers.get(target.memory_of(route), NO_MEMORY),
            latency_cycles=0.0 if route.latency_seconds is None else route.latency_seconds.value * clock,
            on_core_clock=route.bytes_per_cycle is not None,
        )

    target = plan.machine.target
    numbers = {memory.name: number for number, memory in enumerate(target.memories)}
    return tuple(channel(route) for route in plan.machine.target.routes)
