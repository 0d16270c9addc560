"""Work on an engine → Cost: cycles on every resource the op uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import prod

from ..core.meaning import Carries
from ..core.units import Cycles
from ..graph.graph import ABSENT, Graph, Op, Role
from ..graph.kinds import Family
from ..graph.work_families import TRANSCENDENTAL_KINDS, WorkFamily, work_family
from ..machine.target import ANY, Engine, Figure, Target
from .cost import CALL, DISPATCH, EXCHANGE, LAUNCH, LAYOUT, Cost, Energy, Part, Resource
from .forms.state import State
from .kernels import Extents, blocks_for, constant_form, form_of, padding, product_extents, waves
from .placement import Placement, can_price, place_op
from .traffic.moving import moving_parts, streams, uneven_tiles
from .work import DEQUANTIZE_INTEGERS, Work, most_parts, number, state_bytes, work_of

_REORDERED = 3  # tensors of an op: what it reads, its weights, its result


class Sharing(Enum):
    """What several devices have of the work."""

    LEAST = auto()  # whatever takes least
    IMAGES = auto()  # of a batch, each device its own
    PRODUCTS = auto()  # a part of each, and of its weights: what they make crosses the links before the next one
    PAIRS = auto()  # of products, cut so that sums alone cross the links; the caller prices them


@dataclass(frozen=True, slots=True)
class Machine:
    """The part of a target that is used: devices and cores per device."""

    target: Target
    devices: int = 1
    cores: int = 1  # per device
    sharing: Sharing = Sharing.LEAST  # of several devices

    @property
    def lanes(self) -> int:
        return self.devices * self.cores

    @property
    def clock_hz(self) -> float:
        return self.target.clocks.core_hz.value


@dataclass(frozen=True, slots=True)
class Task:
    """An op with its work, placement and traffic, ready to be priced."""

    op: Op
    work: Work
    placement: Placement
    traffic: Mapping[str, int]  # bytes by memory name
    written: Mapping[str, int] = field(default_factory=dict)  # of them, results that leave for an outer memory
    form: str = ""  # the kernel that a published cost is of; empty: its kind
    family: WorkFamily | None = None
    outputs: int = 0  # elements
    extents: Extents | None = None  # of a product: what a matrix engine tiles
    layout_cycles: float = 0.0  # of one lane changing the layout of its inputs, launches aside
    layout_commands: int = 0
    coded: Mapping[str, int] = field(default_factory=dict)  # of the traffic, weights that travel compressed
    ratio: float = 1.0  # bytes of weights for each of those
    input_layout_cycles: float = 0.0  # of them, those for inputs of the network
    images: int = 1  # of the batch that it is for
    own_share: float = 1.0  # of a device's work, where devices share images: that of the one that has most of them
    linked_bytes: int = 0  # that a device sends to others before it
    state_bytes: int = 0  # of a recurrent op, handed from step to step
    most_parts: int = 0  # that it can be cut into; 0: any number
    entering_bytes: int = 0  # of a device's traffic, what has to be there first: the network begins with the op
    leaving_bytes: int = 0  # of the same, what leaves behind the op: the network ends with it

    @property
    def trips(self) -> int:
        """How often the op runs; an unknown count is taken as 1, with a note from the reader."""
        return 1 if self.op.trips is None else self.op.trips


def task_of(op: Op, graph: Graph, target: Target) -> Task:
    """Return an op with its work on the engine that is to run it.

    Where a compiler is free to choose, that is the one with the fewest cycles; else the first that takes it.
    """
    work = work_of(op, graph)
    first = place_op(op, work, graph, target)
    extents = product_extents(op, graph) if work.known and (work.macs or op.family is Family.POOL) else None
    outputs = sum(graph.tensors[t].elements or 0 for t in op.outputs[:1] if t != ABSENT)
    task = Task(op, work, first, {}, {}, form_of(op, graph), work_family(op, graph), outputs, extents)
    task = replace(task, most_parts=most_parts(op, graph))
    if op.family is Family.RECURRENT and work.known:
        task = replace(task, state_bytes=state_bytes(op, graph))
    if first.engine is None or not work.known or not target.is_compilable:
        return task
    able = [
        engine
        for engine in target.engines
        if engine.takes(op) and can_price(engine, op, work, first.dtype, task.family)
    ]
    able = [engine for engine in able if engine.command_cycles is None] or able  # a fixed cost compares with nothing
    costs = [engine_cycles(task, without_weight_load(engine)) for engine in able]
    best = min(range(len(able)), key=lambda number: costs[number])
    reason = f"{able[0].name} would take {costs[0]:,.0f} cycles" if best else first.reason
    return replace(task, placement=Placement(able[best], first.dtype, reason))


def without_weight_load(engine: Engine) -> Engine:
    """Return an engine that weights enter at once: lanes load a part each, which is counted on its own."""
    return replace(engine, weight_bytes_per_cycle=None)


def price(task: Task, engine: Engine, machine: Machine) -> Cost:
    """Return the cost of one trip on all cores, each of which has a part of the op, or whole images of the batch; or on
    one of them where that is cheaper: small ops gain nothing.

    So do those of a loop's body, which wait for each other in every trip.
    """
    if machine.sharing is Sharing.IMAGES and machine.devices > 1:
        return price(_of_device(task, machine.devices), engine, replace(machine, devices=1))
    if 0 < task.most_parts < machine.lanes:  # the other cores have nothing to do
        machine = replace(machine, devices=1, cores=min(machine.cores, task.most_parts))
    ways = [_price(task, engine, machine)]
    if machine.lanes > 1:
        alone = _price(task, engine, replace(machine, devices=1, cores=1))
        ways = [alone] if task.op.is_looped else [*ways, alone]
    if not task.op.is_looped and machine.devices == 1 < machine.cores <= task.images:
        ways.append(_price(task, engine, machine, by_images=True))
    shared = min(ways, key=lambda cost: cost.total)
    return Cost((*shared.parts, *_linked(task, machine)))


def _of_device(task: Task, devices: int) -> Task:
    """Return what one of several devices has of a task that they share image by image."""
    share, work = task.own_share, task.work
    own = replace(
        work,
        macs=round(work.macs * share),
        element_ops=round(work.element_ops * share),
        read_bytes=round(work.read_bytes * share),
        write_bytes=round(work.write_bytes * share),
    )
    return replace(
        task,
        work=own,
        images=round(task.images * share),
        traffic={name: size // devices for name, size in task.traffic.items()},
        written={name: size // devices for name, size in task.written.items()},
        outputs=round(task.outputs * share),
        layout_cycles=task.layout_cycles * share,
        input_layout_cycles=task.input_layout_cycles * share,
    )


@dataclass(frozen=True, slots=True)
class LinkPrice:
    """Cycles of what one device sends to others: until the first byte is there and all cores know, and for each."""

    start: float
    per_byte: float


def link_price(machine: Machine) -> LinkPrice:
    """Return what a link between devices takes; nothing where a target has none."""
    target, clock = machine.target, machine.clock_hz
    route = next((route for route in target.routes if route.carries is Carries.LINK), None)
    if route is None:
        return LinkPrice(0.0, 0.0)
    latency = 0.0 if route.latency_seconds is None else route.latency_seconds.value * clock
    return LinkPrice(barrier_cycles(target) + latency, 1 / (route.peak(clock) * route.reached))


def barrier_cycles(target: Target) -> float:
    """Return the cycles until the slowest engine has met a barrier."""
    return max((launch_cycles(engine) for engine in target.engines), default=0.0)


def _linked(task: Task, machine: Machine) -> list[Part]:
    """Return what devices wait for each other before an op that needs all channels of what each has a part of."""
    if machine.devices == 1 or not task.linked_bytes:
        return []
    link = link_price(machine)
    return [Part(EXCHANGE, Cycles(link.start + task.linked_bytes * link.per_byte), overlaps=False)]


def _price(task: Task, engine: Engine, machine: Machine, *, by_images: bool = False) -> Cost:
    """Return the cost of one trip. Engine and memories overlap; launches, layouts and exchanges do not.

    Cores that have images each have nothing to exchange, but all weights enter every one of them; and some have an
    image more than others, where the batch does not divide.
    """
    most = -(-task.images // machine.cores) * machine.cores / task.images if by_images else 1.0
    units = 1 if engine.command_cycles is not None else machine.lanes * engine.units_for(task.family)
    entering = machine.lanes / most if by_images else 1.0  # how often, of which each lane counts its share
    stages = [stage for stage in _stages(task, engine, units, entering=entering) if stage.cycles]
    uneven = most * _uneven_units(task, engine, machine)
    uneven *= 1.0 if task.work.macs else uneven_tiles(task, machine, units)
    parts = [
        Part(Resource.of_engine(engine), Cycles(stage.cycles * uneven / units), figures=stage.figures)
        for stage in stages
    ]
    parts += _unpacking(task, machine, entering)
    parts += moving_parts(task, machine)
    if task.layout_commands:
        vector = max(machine.target.engines, key=lambda each: each.threads)
        cycles = most * task.layout_cycles / machine.lanes + task.layout_commands * launch_cycles(vector)
        if not by_images:
            cycles += (1 - 1 / machine.lanes) * min(task.input_layout_cycles, _entering(task, engine))
        parts.append(Part(LAYOUT, Cycles(cycles), overlaps=False))
    parts += _reordering(task, machine)
    parts += [] if by_images else _exchange(task, machine)
    if parts:
        parts += _control(task, engine, machine)
    if parts:
        parts += _starts(task.op, engine, machine)
    return Cost(tuple(parts))


def _entering(task: Task, engine: Engine) -> float:
    """Return the cycles until all weights are in one engine: cores cut channels where this is long, and then each of
    them needs the whole input, in its layout.
    """
    rate = engine.weight_bytes_per_cycle
    return 0.0 if rate is None else task.work.weight_bytes / rate.value


def _uneven_units(task: Task, engine: Engine, machine: Machine) -> float:
    """Return what the busiest core does over the mean: hidden units of a recurrent op are cut in whole tiles.

    512 units are 16 tiles; 14 cores have 2 of them at the most, and 8 would do as well.
    """
    if task.op.family is not Family.RECURRENT or engine.tile_extent is None:
        return 1.0
    tiles = -(-number(task.op, "hidden_size") // round(engine.tile_extent.value))
    return -(-tiles // machine.lanes) * machine.lanes / tiles


def _starts(op: Op, engine: Engine, machine: Machine) -> list[Part]:
    """Return what starting the commands of an op takes: on the engine, and of a host that starts ahead of it.

    What the host takes for the next op overlaps this one; but no op begins before the host has started it, so that one
    that is shorter lasts as long.
    """
    launches = launches_of(op) * commands_of(op, engine)
    found = []
    if engine.launch_cycles is not None:
        cycles = Cycles(engine.launch_cycles.value * launches)
        found.append(Part(LAUNCH, cycles, overlaps=False, figures=(engine.launch_cycles,)))
    if engine.dispatch_seconds is not None:
        cycles = Cycles(engine.dispatch_seconds.value * launches * machine.clock_hz)
        found.append(Part(DISPATCH, cycles, figures=(engine.dispatch_seconds,)))
    return found


def _reordering(task: Task, machine: Machine) -> list[Part]:
    """Return what passes before and behind an op take that put its operands, weights too, and its result in order."""
    if task.family is None or task.family.value not in machine.target.runtime.reorders:
        return []
    for engine in machine.target.engines:
        rate = engine.rate_of(WorkFamily.TRANSPOSITION, task.placement.dtype)
        if rate is not None:
            cycles = 2 * task.work.bytes / (rate[0].value * rate[1].value) / (machine.lanes * engine.units)
            parts = [Part(LAYOUT, Cycles(cycles), overlaps=False, figures=rate)]
            if engine.launch_cycles is not None:
                starts = Cycles(_REORDERED * engine.launch_cycles.value)
                parts.append(Part(LAYOUT, starts, overlaps=False, figures=(engine.launch_cycles,)))
            return parts
    return []


def price_call(graph: Graph, machine: Machine) -> Cost:
    """Return what an inference costs beside its ops: the call, and handing over inputs and outputs.

    A cache that is updated in place is handed over once, and stays.
    """
    target, clock = machine.target, machine.clock_hz
    given = [graph.tensors[t].dtype.label for t in graph.inputs if graph.tensors[t].role is not Role.CONSTANT]
    figures = (target.call_seconds.get(word) for word in (*given[:1], ANY))
    fixed = next((figure for figure in figures if figure is not None), None)
    parts = []
    if fixed is not None:
        parts.append(Part(CALL, Cycles(fixed.value * clock), overlaps=False, figures=(fixed,)))
    rate = target.call_bytes_per_second
    if rate is not None:
        caches = State.of(graph).caches
        size = sum(graph.tensors[t].bytes or 0 for t in (*graph.inputs, *graph.outputs) if t not in caches)
        parts.append(Part(CALL, Cycles(size / rate.value * clock), overlaps=False, figures=(rate,)))
    return Cost(tuple(parts))


def _exchange(task: Task, machine: Machine) -> list[Part]:
    """Return what cores wait for each other before an op that reads beyond its own rows: a product, or a window.

    Each core sends its part of the input to the others, once: whether all of it is needed, or the rows at its edges,
    is for a compiler to find out.
    """
    route = next((route for route in machine.target.routes if route.carries is Carries.MULTICAST), None)
    if machine.cores > 1 and route is not None and task.op.family is Family.RECURRENT:
        return [Part(EXCHANGE, Cycles(task.work.steps * state_cycles(task.state_bytes, machine)), overlaps=False)]
    if machine.cores == 1 or route is None or task.op.family not in (Family.CONTRACTION, Family.POOL):
        return []
    issue = route.issue_cycles.value if route.issue_cycles is not None else 0.0
    own = machine.target.core_rate(route)
    rate = own.value / machine.clock_hz if own is not None else route.peak(machine.clock_hz)
    sent = task.work.read_bytes / machine.lanes / rate
    return [Part(EXCHANGE, Cycles(issue + sent), overlaps=False)]


def state_cycles(size_bytes: float, machine: Machine) -> float:
    """Return what cores that have hidden units each take to hand each other a state, before the next step begins."""
    route = next((route for route in machine.target.routes if route.carries is Carries.MULTICAST), None)
    moving = 0.0 if route is None else size_bytes / (route.peak(machine.clock_hz) * route.reached)
    return 2 * barrier_cycles(machine.target) + moving


def commands_of(op: Op, engine: Engine) -> int:
    """Return how many commands an engine takes for an op: some kinds are several kernels, one behind the other."""
    found = next((engine.commands[word] for word in op.called if word in engine.commands), None)
    return 1 if found is None else round(found.value)


def _control(task: Task, engine: Engine, machine: Machine) -> list[Part]:
    """Return what reading the control of an op takes: a descriptor of every command, and the program around it.

    Of a sequencer that awaits transfers, engines wait for both. A command is a descriptor, a start and a wait; its
    operands are transfers of their own.
    """
    sequencer, target = machine.target.sequencer, machine.target
    route = next((route for route in target.routes if route.carries is Carries.READ), None)
    if sequencer is None or sequencer.descriptor_bytes is None or route is None:
        return []
    units = engine.units_for(task.family)
    commands = commands_of(task.op, engine) * units
    size = commands * sequencer.descriptor_bytes.value
    if sequencer.block_bytes is not None and sequencer.block_commands is not None:
        transfers = units * sum(t != ABSENT for t in task.op.inputs[1:])
        size += (3 * commands + transfers) / sequencer.block_commands.value * sequencer.block_bytes.value
    rate = route.peak(machine.clock_hz) * route.reached
    return [Part(LAUNCH, Cycles(size / rate), overlaps=False, figures=(sequencer.descriptor_bytes,))]


def launches_of(op: Op) -> int:
    """Return how often an engine starts anew: steps of a recurrent op wait for each other."""
    return number(op, "steps", 1) if op.family is Family.RECURRENT else 1


def launch_cycles(engine: Engine | None) -> float:
    """Return the cycles that every command of an engine takes before its work starts."""
    return 0.0 if engine is None or engine.launch_cycles is None else engine.launch_cycles.value


def _unpacking(task: Task, machine: Machine, entering: float) -> list[Part]:
    """Return the cost of converting weights that are stored in blocks, or as integers that floats meet.

    It is done by the engine that has the kernel for it, else at the rate at which types are converted. It goes on tile
    by tile beside the product: while one tile is multiplied, the next is converted.
    """
    work, kernel = task.work, task.work.unpacked_by
    by = task.placement.engine
    if kernel == DEQUANTIZE_INTEGERS and by is not None and by.widens_weights:
        return []
    for engine in machine.target.engines:
        rate = engine.rate_of(WorkFamily.CONVERSION, task.placement.dtype)
        if work.unpacked_bytes and kernel in engine.kernels:
            figures: tuple[Figure, ...] = (engine.kernels[kernel],)
            cycles = figures[0].value * work.unpacked_bytes / 1024
        elif work.unpacked_bytes and rate is not None and kernel == DEQUANTIZE_INTEGERS:
            figures = rate
            cycles = (work.packed_bytes + work.unpacked_bytes) / (rate[0].value * rate[1].value)
        else:  # a target without the kernel does not take weights in blocks
            continue
        return [
            Part(
                Resource.of_engine(engine), Cycles(cycles * entering / (machine.lanes * engine.units)), figures=figures
            )
        ]
    return []


def engine_cycles(task: Task, engine: Engine) -> float:
    """Return the cycles on a single lane."""
    return sum(stage.cycles for stage in _stages(task, engine))


@dataclass(frozen=True, slots=True)
class _Stage:
    """Cycles of an engine, and the figures that they are proportional or inversely proportional to."""

    cycles: float
    figures: tuple[Figure, ...]


def _stages(task: Task, engine: Engine, units: int = 1, *, entering: float = 1.0) -> tuple[_Stage, ...]:
    """What an engine does for an op, one after the other, on a single lane of so many units that share it, if weights
    enter it so often.

    A published kernel cost takes precedence over the rate of a family of work, and that over the peak rate.
    """
    op, work, dtype = task.op, task.work, task.placement.dtype
    if engine.command_cycles is not None:
        return (_Stage(engine.command_cycles.value, (engine.command_cycles,)),)
    constant = (constant_form(op),) if work.constant_bytes else ()
    named = (task.form, *constant, *op.called)
    kernel = next((engine.kernels[name] for name in named if name in engine.kernels), None)
    if kernel is not None:
        return (_Stage(kernel.value * work.write_bytes / 1024, (kernel,)),)
    rate = engine.rate_of(task.family, dtype, op.kind)
    if rate is not None and not work.macs:
        return (_Stage((work.read_bytes + work.write_bytes) / (rate[0].value * rate[1].value), rate),)
    elements = engine.rate(engine.element_ops_per_cycle, dtype)
    stages = list(_product(task, engine, rate, units, entering)) if work.macs else []
    in_passing = bool(stages) and bool(engine.output_elements_per_cycle)  # the output stage applies activations
    if work.element_ops and elements is not None and not in_passing:
        growth = (
            1.0 if work.macs else padding(task.extents, engine, task.family)
        )  # a pool to one pixel leaves most lanes idle
        stages.append(_Stage(work.element_ops * growth / elements.value, (elements,)))
    return tuple(stages)


def _product(
    task: Task, engine: Engine, rate: tuple[Figure, Figure] | None, units: int, entering: float
) -> tuple[_Stage, ...]:
    """Multiply-accumulates, with padding to full tiles and waves: a matrix engine computes whole tiles only.

    Weights stream in and results leave while the array computes: the slowest of the three decides. Where results leave
    apart, theirs is a stage of its own.
    """
    work, dtype = task.work, task.placement.dtype
    found, apart = [], []
    peak = engine.rate(engine.macs_per_cycle, dtype)
    if peak is not None:
        figures = rate or ((peak,) if engine.efficiency is None else (peak, engine.efficiency))
        # A share that depthwise convolutions reach is of vector units, unless tiles are of taps as well.
        depthwise = task.family is WorkFamily.DEPTHWISE_CONVOLUTION
        whole = rate is not None and depthwise and engine.tap_extent is None
        growth = 1.0 if whole else padding(task.extents, engine, task.family)
        cycles = work.macs * growth / prod(figure.value for figure in figures)
        blocks = _in_waves(task, engine, figures, units) if blocks_for(task.extents, engine, task.family) else []
        found, apart = blocks[:1] or [_Stage(cycles, figures)], blocks[1:]
    if engine.weight_bytes_per_cycle is not None and found:
        load = engine.weight_bytes_per_cycle
        found.append(_Stage(entering * work.weight_bytes / load.value, (load,)))
    leaves = engine.rate(engine.output_elements_per_cycle, dtype)
    results = [] if leaves is None else [_Stage(task.outputs / leaves.value, (leaves,))]
    table = engine.lookup_elements_per_cycle
    if table is not None and task.op.attributes.get("activation") in TRANSCENDENTAL_KINDS:
        results.append(_Stage(task.outputs / table.value, (table,)))
    together = [found, results] if engine.results_apart else [[*found, *results]]
    return (*(max(stages, key=lambda stage: stage.cycles) for stages in together if stages), *apart)


def _in_waves(task: Task, engine: Engine, figures: tuple[Figure, ...], units: int) -> list[_Stage]:
    """Stages of a product that is cut into blocks, in the way that takes least: its MACs or operands on their way,
    whichever take longer, and the start of what adds up parts. All units are busy as long as the last of them.
    """
    shapes = blocks_for(task.extents, engine, task.family)
    if task.extents is None:
        return []
    rate, size = engine.operand_bytes_per_cycle, task.placement.dtype.size_bytes(1024) / 1024
    ways = []
    for way in waves(task.extents, task.work.macs, shapes, engine, units):
        stages = [_Stage(way.macs * units / prod(figure.value for figure in figures), figures)]
        if rate is not None:
            stages.append(_Stage(way.operands * units * size / rate.value, (rate,)))
        longest = [max(stages, key=lambda stage: stage.cycles)]
        if way.parts > 1 and engine.launch_cycles is not None:
            longest.append(_Stage(engine.launch_cycles.value * units, (engine.launch_cycles,)))
        ways.append(longest)
    return min(ways, key=lambda stages: sum(stage.cycles for stage in stages))


def energy_of(task: Task, engine: Engine, target: Target) -> Energy | None:
    """Return what an op draws for arithmetic, bytes moved and time; None if the target has no energy figures for it."""
    counts = ((task.work.macs, engine.picojoules_per_mac), (task.work.element_ops, engine.picojoules_per_element_op))
    rates = [(count, engine.rate(table, task.placement.dtype)) for count, table in counts]
    work: list[tuple[float, tuple[Figure, ...]]] = [(count * rate.value, (rate,)) for count, rate in rates if rate]
    for memory in target.memories:
        each = memory.picojoules_per_byte
        if each is None:
            continue
        for size, ratio in streams(task, memory, target):
            stored = size if ratio is None else size / ratio.value
            work.append((stored * each.value, (each,) if ratio is None else (each, ratio)))
    if not work and engine.busy_watts is None:
        return None
    return Energy(tuple(work), tuple(watts for watts in (engine.busy_watts, target.idle_watts) if watts is not None))
