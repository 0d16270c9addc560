"""Graph, Machine → Estimate: cost of every layer, memory plan, totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose, prod

from ..graph.graph import ABSENT, Graph, Note, Op, Role
from ..graph.kinds import KINDS, Touches
from ..graph.work_families import WorkFamily, work_family
from ..machine.corners import Corner, at_corner
from ..machine.target import Holds, Layout, Target
from ..recording.resources import Footprint, Range, Totals
from .canonical import canonicalise
from .cost import Cost, Energy
from .forms.state import State
from .kernels import converted_inputs, tiled_tensors
from .machines import at_clock_of
from .memory import MemoryPlan, plan_memory
from .price import Machine, Task, energy_of, price, price_call, task_of
from .ranges import Strange, calibrated_range, energy_shares, range_by
from .report import Layer
from .work import Work, number


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost and memory plan of one graph on one machine."""

    graph: Graph  # canonical
    machine: Machine
    plan: MemoryPlan
    layers: tuple[Layer, ...]
    totals: Totals
    call: Cost  # of an inference beside its layers

    @property
    def costs(self) -> tuple[tuple[Cost, int], ...]:
        """Of the layers that have one, and of the call; each with how often it is paid."""
        layers = ((layer.cost, layer.trips or 1) for layer in self.layers)
        return (*((cost, trips) for cost, trips in layers if cost is not None), (self.call, 1))

    @property
    def draws(self) -> tuple[tuple[Energy, Cost, int], ...]:
        """What layers draw, for how long, and how often."""
        layers = ((layer.energy, layer.cost, layer.trips or 1) for layer in self.layers)
        return tuple((energy, cost, trips) for energy, cost, trips in layers if energy is not None and cost is not None)


def estimate(graph: Graph, machine: Machine) -> Estimate:
    """Cost every op of the graph in the form the target runs it."""
    canonical = canonicalise(graph, machine.target)
    machine = at_clock_of(canonical, machine)
    plan = plan_memory(canonical, machine.target.runtime)
    tasks = _tasks(canonical, machine, plan)
    layers = _layers(canonical, machine, plan, tasks)
    call = price_call(canonical, machine)
    calls = {corner: _call_seconds(canonical, machine, corner) for corner in Corner}
    found = Estimate(canonical, machine, plan, layers, _totals(graph, machine, tasks, layers, calls), call)
    return _with_calibrated_ranges(found)


def _with_calibrated_ranges(found: Estimate) -> Estimate:
    """Replace ranges of figures by those of errors seen on networks left out, and say what is unlike them."""
    target, totals, notes = found.machine.target, found.totals, list(found.graph.notes)
    if target.calibration is not None and totals.latency_s is not None:
        spread, odd = calibrated_range(totals.latency_s.value, found.costs, target)
        totals = replace(totals, latency_s=spread, energy_j=_energy_of_time(found, spread))
        notes += _unlike(odd, "time", target)
    if target.energy.calibration is not None and totals.energy_j is not None:
        by_figure = energy_shares(found.draws, target)
        energy, odd = range_by(totals.energy_j.value, by_figure, target, target.energy.calibration)
        totals = replace(totals, energy_j=energy)
        notes += _unlike(odd, "energy", target)
    return replace(found, graph=replace(found.graph, notes=tuple(notes)), totals=totals)


def _unlike(odd: Sequence[Strange], what: str, target: Target) -> list[Note]:
    return [
        Note(
            "unlike-measured",
            f"{row.key} takes {row.share:.0%} of the {what}, and at most {row.seen:.0%} in the networks that "
            f"{target.name} was calibrated with: the range is wider",
        )
        for row in odd
    ]


def _energy_of_time(found: Estimate, spread: Range) -> Range | None:
    """The range of energy: where all of it is power times time, that of the power times that of the latency."""
    energy, watts = found.totals.energy_j, [engine.busy_watts for engine in found.machine.target.engines]
    draws = [figure for figure in watts if figure is not None]
    if energy is None or len(draws) < len(watts):
        return energy
    least = min(figure.smallest / figure.value for figure in draws)
    most = max(figure.largest / figure.value for figure in draws)
    return Range(
        energy.value, energy.value * least * spread.low / spread.value, energy.value * most * spread.high / spread.value
    )


def predict(graph: Graph, machine: Machine) -> Footprint:
    """Return the four numbers that suggestions are compared by, as in `estimate` but without layers and ranges."""
    canonical = canonicalise(graph, machine.target)
    machine = at_clock_of(canonical, machine)
    plan = plan_memory(canonical, machine.target.runtime)
    latencies: list[float | None] = []
    energies: list[float] = []
    for task in _tasks(canonical, machine, plan):
        cost = _cost(task, machine)
        latency = None if cost is None else cost.total * task.trips / machine.clock_hz
        energy = _energy(task, machine)
        latencies.append(latency)
        energies += [] if energy is None or latency is None else [energy.joules(task.trips, latency)]
    known = None not in latencies
    call = price_call(canonical, machine).total / machine.clock_hz
    return Footprint(
        latency_s=sum((latency or 0.0 for latency in latencies), call) if known else None,
        peak_bytes=plan.arena_bytes + plan.scratch_bytes,
        parameter_bytes=parameter_bytes(canonical),
        energy_j=sum(energies) if energies and known else None,
    )


def _cost(task: Task, machine: Machine) -> Cost | None:
    engine = task.placement.engine
    return price(task, engine, machine) if engine is not None and task.work.known else None


def _energy(task: Task, machine: Machine) -> Energy | None:
    engine = task.placement.engine
    return energy_of(task, engine, machine.target) if engine is not None and task.work.known else None


def _tasks(graph: Graph, machine: Machine, plan: MemoryPlan) -> list[Task]:
    """Return each op with its work, its engine and its memory traffic."""
    routes = _Routes(graph, machine, plan)
    tasks = []
    for step, op in enumerate(graph.ops):
        task = task_of(op, graph, machine.target)
        written = {routes.activations: routes.written(step, op, task.work)} if routes.writes_apart else {}
        tasks.append(replace(task, traffic=routes.traffic(step, op, task.work), written=written))
    return _with_layouts(graph, machine.target.layout, tasks)


def _with_layouts(graph: Graph, layout: Layout | None, tasks: list[Task]) -> list[Task]:
    """Return the tasks with the cost of changing the layout of their inputs, on targets with more than one."""
    if layout is None:
        return tasks
    engines = [task.placement.engine.name if task.placement.engine and task.work.bytes else "" for task in tasks]
    tiled = tiled_tensors([(task.op, name) for task, name in zip(tasks, engines, strict=True)], layout)
    found = []
    for task, name in zip(tasks, engines, strict=True):
        rates = converted_inputs(task.op, name, graph, tiled=tiled, layout=layout) if name else {}
        cycles = sum(rate * (graph.tensors[task.op.inputs[p]].bytes or 0) / 1024 for p, rate in rates.items())
        found.append(replace(task, layout_cycles=cycles, layout_commands=len(rates)))
    return found


class _Routes:
    """Decides through which memory the bytes of an op travel.

    With a local memory (on-chip SRAM), every byte passes through it. Activations cross to the outer memory only at the
    network's inputs and outputs, or if the live set does not fit at that step; constants are re-read from their home
    memory in each inference unless they all fit beside the activations. A table that rows are gathered from stays in
    its home memory: the rows are read where they are.
    """

    def __init__(self, graph: Graph, machine: Machine, plan: MemoryPlan) -> None:
        target = machine.target
        self.graph = graph
        self.plan = plan
        self.activations = target.home(Holds.ACTIVATIONS).name
        self.burst = target.home(Holds.ACTIVATIONS).burst_bytes
        self.writes_apart = target.home(Holds.ACTIVATIONS).write_efficiency is not None
        self.constants = target.home(Holds.CONSTANTS).name
        self.local = target.local
        own, instances = 0.0, 1
        if self.local is not None:
            own = self.local.bytes.value
            instances = target.instances(self.local, devices=machine.devices, cores=machine.cores)
        self.capacity = own * instances
        # Where work is cut in tiles, an image for every core is in local memory at a time, however large the batch.
        images = _images(graph) if target.tiling is not None else 1
        self.at_a_time = min(images, machine.lanes) / images
        self.kept = _kept_share(graph, machine, own - plan.bound_bytes / instances, images) if own else 0.0
        self.outputs = frozenset(graph.outputs)
        self.state = State.of(graph)
        self.live = self.state.live_beside(plan, len(graph.ops))
        self.slices: dict[int, int] = {}  # of tensors within an attention, how many parts of them are independent
        # Devices that share the images of a batch read all constants each; else each reads its own part of them.
        self.copies = machine.devices if images >= machine.devices and not machine.shares_products else 1

    def traffic(self, step: int, op: Op, work: Work) -> dict[str, int]:
        """Return the bytes per memory for one trip of an op."""
        if not work.bytes:
            return {}
        if self.local is None:
            moved = {self.activations: work.read_bytes + work.write_bytes + self._lost_bytes(op)}
            moved[self.constants] = moved.get(self.constants, 0) + work.constant_bytes
            return moved
        moved = {self.local.name: work.bytes}
        if self.activations != self.local.name:  # otherwise its bytes are counted already
            boundary = self._boundary_bytes(op, work)
            inside = work.read_bytes + work.write_bytes - boundary - self.state.streamed_bytes(op, self.graph)
            leaves = round(inside * self._outer_share(step, op, work))
            moved[self.activations] = boundary + leaves + self._lost_bytes(op)
        read = round(work.constant_bytes * self.copies * (1.0 if _reads_in_part(op) else 1.0 - self.kept))
        if read and self.constants != self.local.name:
            moved[self.constants] = moved.get(self.constants, 0) + read
        return moved

    def written(self, step: int, op: Op, work: Work) -> int:
        """Return the bytes of results among the traffic of the memory that holds activations."""
        if self.local is None or self.activations == self.local.name:
            return work.write_bytes
        result = min(sum(self.graph.tensors[t].bytes or 0 for t in op.outputs if t in self.outputs), work.write_bytes)
        return result + round((work.write_bytes - result) * self._outer_share(step, op, work))

    def _outer_share(self, step: int, op: Op, work: Work) -> float:
        """Return the share of what an op reads and writes inside the network that passes the outer memory."""
        ruled = self.local is not None and self.local.op_share is not None
        return float(self._streams(op, work)) if ruled else self._spilled_share(step)

    def _streams(self, op: Op, work: Work) -> bool:
        """Whether the operands of an op pass through local memory tile by tile, since they do not fit it together.

        Heads of an attention do not depend on each other: scores, softmax and weighted sum are computed head by head,
        and it is one head that has to fit.
        """
        if self.local is None or self.local.op_share is None:
            return False
        slices = self._slices(op)
        self.slices.update(dict.fromkeys(op.outputs, slices))
        return work.bytes / slices > self.local.op_share.value * self.capacity

    def _slices(self, op: Op) -> int:
        """Parts of an op that can run to the end of its attention one after the other; 1 outside of one."""
        if told := number(op, "slices", 0):
            return told
        family = work_family(op, self.graph)
        if family in (WorkFamily.ACTIVATIONS_PRODUCT, WorkFamily.SOFTMAX):
            shape = self.graph.tensors[op.outputs[0]].shape or ()
            return max(1, prod(shape[:-2]))
        if family is not None and family.general in (WorkFamily.ELEMENTWISE, WorkFamily.TRANSCENDENTAL):
            return max((self.slices.get(t, 1) for t in op.inputs), default=1)
        return 1

    def _spilled_share(self, step: int) -> float:
        """Return the share of what is live at a step that local memory has no room for.

        Only that much goes out and comes back: of 154 MB in 116 MB, a quarter.
        """
        live = self.live[step] * self.at_a_time
        return max(0.0, 1 - self.capacity / live) if live else 0.0

    def _lost_bytes(self, op: Op) -> int:
        """Return what bursts carry in vain: a convolution reads an input of the network pixel by pixel, and a pixel of
        three channels fills a part of a burst only. Inside the network, tensors are laid out as the memory likes it."""
        tensor = self.graph.tensors[op.inputs[0]] if op.kind == "conv" and op.inputs[0] != ABSENT else None
        if self.burst is None or tensor is None or tensor.role is not Role.INPUT or not tensor.elements:
            return 0
        channels = (tensor.shape or ())[number(op, "channel_axis")]
        size = tensor.bytes or 0
        return max(0, round(size * self.burst.value * tensor.elements / (channels * size)) - size)

    def _boundary_bytes(self, op: Op, work: Work) -> int:
        """Return the bytes of network inputs, outputs and state that the op moves to or from outer memory."""
        tensors = self.graph.tensors
        read = sum(tensors[t].bytes or 0 for t in op.inputs if t in self.state.outside)
        written = sum(tensors[t].bytes or 0 for t in op.outputs if t in self.outputs)
        return min(read, work.read_bytes) + min(written, work.write_bytes)


def _kept_share(graph: Graph, machine: Machine, room: float, images: int) -> float:
    """Share of the constants that stay in local memory: all where each core has room for all of them.

    A compiler that cuts work in tiles keeps as many as there is room for beside tiles that are read ahead. Cores that
    share images need all constants each, those that share one image a part.
    """
    tiling, whole = machine.target.tiling, _whole_constant_bytes(graph)
    if tiling is not None and not tiling.keeps_constants:
        return 0.0
    if whole <= room:
        return 1.0
    if tiling is None or tiling.whole_weights:
        return 0.0
    ahead = tiling.buffers.value * tiling.weight_bytes.value
    own = whole if images >= machine.lanes else whole / machine.lanes
    return max(0.0, min(1.0, (room - ahead) / 2 / own))


def _images(graph: Graph) -> int:
    """Images in a batch: the leading extent that all inputs and outputs have in common; 1 where they differ."""
    found = {(graph.tensors[t].shape or (1,))[0] for t in (*graph.inputs, *graph.outputs)}
    return max(1, *found) if len(found) == 1 else 1


def parameter_bytes(graph: Graph) -> int:
    """Return the bytes of all constants that ops read, each counted once."""
    return _constant_bytes(graph, graph.ops)


def _whole_constant_bytes(graph: Graph) -> int:
    """Return the bytes of constants that ops read whole, each counted once."""
    return _constant_bytes(graph, [op for op in graph.ops if not _reads_in_part(op)])


def _constant_bytes(graph: Graph, ops: Sequence[Op]) -> int:
    used = {t for op in ops for t in op.inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT}
    return sum(graph.tensors[t].bytes or 0 for t in used)


def _reads_in_part(op: Op) -> bool:
    return KINDS[op.kind].touches is Touches.OUTPUT


@dataclass(frozen=True, slots=True)
class _Constants:
    """The constants that a layer reads."""

    size_bytes: int
    shared_bytes: int  # read by an earlier layer too
    shapes: tuple[tuple[int, ...], ...]


def _layers(graph: Graph, machine: Machine, plan: MemoryPlan, tasks: Sequence[Task]) -> tuple[Layer, ...]:
    """Return the report row of each op; `shared_bytes` are constants that an earlier op reads too."""
    seen: set[int] = set()
    layers = []
    for index, task in enumerate(tasks):
        inputs = dict.fromkeys(task.op.inputs)  # an op may read one constant twice
        constants = [t for t in inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT]
        shared = sum(graph.tensors[t].bytes or 0 for t in constants if t in seen)
        seen.update(constants)
        facts = _Constants(
            size_bytes=sum(graph.tensors[t].bytes or 0 for t in constants),
            shared_bytes=shared,
            shapes=tuple(graph.tensors[t].shape or () for t in constants),
        )
        layers.append(_layer(index, task, machine, facts, plan.live_bytes[index]))
    return tuple(layers)


def _layer(index: int, task: Task, machine: Machine, constants: _Constants, live_bytes: int) -> Layer:
    """Return the report row of one op, with cost and work over all its trips."""
    op, work, engine, trips = task.op, task.work, task.placement.engine, task.trips
    cost = _cost(task, machine)
    unknown = "" if cost is not None else work.unknown_because or task.placement.reason or "no engine has a rate for it"
    cycles = None if cost is None else cost.total * trips
    latency = None if cycles is None else cycles / machine.clock_hz
    draws = _energy(task, machine)
    energy = None if draws is None or latency is None else draws.joules(trips, latency)
    return Layer(
        index=index,
        operator=op.type,
        kind=op.kind,
        name=op.name,
        location=op.location,
        sources=op.sources,
        trips=op.trips,
        engine=engine.name if engine else None,
        accelerated=bool(engine and engine.accelerator),
        reason=unknown or task.placement.reason,
        dtype=task.placement.dtype.label,
        macs=work.macs * trips,
        element_ops=work.element_ops * trips,
        cost=cost,
        cycles=cycles,
        latency_s=latency,
        energy_j=energy,
        power_w=energy / latency if energy is not None and latency and _prices_more_than_arithmetic(machine) else None,
        bound=cost.bound if cost is not None else "",
        parameter_bytes=constants.size_bytes,
        shared_bytes=constants.shared_bytes,
        kernel_shapes=constants.shapes,
        read_bytes=work.read_bytes * trips,
        write_bytes=work.write_bytes * trips,
        live_bytes=live_bytes,
        traffic={name: size * trips for name, size in task.traffic.items()},
        work_known=work.known,
        unknown=unknown,
        module=op.module,
        line=op.line,
        energy=draws,
    )


def _totals(
    graph: Graph, machine: Machine, tasks: Sequence[Task], layers: tuple[Layer, ...], calls: Mapping[Corner, float]
) -> Totals:
    """Return the totals; latency and energy are withheld if any layer has no known cost."""
    unknown = tuple(layer.index for layer in layers if layer.cycles is None)
    latency = None if unknown else _latency_range(machine, tasks, layers, calls)
    energy, energy_note = _energy_range(machine, tasks, layers)
    if unknown and energy is not None:
        energy, energy_note = None, "withheld: a layer has no known cost"
    power_is_informative = _prices_more_than_arithmetic(machine)
    return Totals(
        cycles=None
        if unknown
        else sum((layer.cycles or 0.0 for layer in layers), calls[Corner.TYPICAL] * machine.clock_hz),
        latency_s=latency,
        energy_j=energy,
        power_w=energy.value / latency.value if energy and latency and latency.value and power_is_informative else None,
        power_note=""
        if power_is_informative
        else "would only repeat the energy per operation of the target file, so it is not shown",
        energy_note=energy_note,
        macs=sum(layer.macs for layer in layers),
        element_ops=sum(layer.element_ops for layer in layers),
        parameter_bytes=parameter_bytes(graph),
        accelerated_layers=sum(layer.accelerated for layer in layers),
        cpu_layers=sum(not layer.accelerated for layer in layers),
        unknown_layers=unknown,
        withheld=why_withheld(layers, unknown),
        known_latency_s=(_seconds_at(Corner.FAST, machine, tasks) or None) if unknown else None,
        uncounted_layers=sum(not layer.work_known for layer in layers),
    )


def _prices_more_than_arithmetic(machine: Machine) -> bool:
    """Whether power is worth showing.

    With a price per operation alone, power would be that price times the clock for every network.
    """
    target = machine.target
    draws = target.idle_watts is not None or any(engine.busy_watts is not None for engine in target.engines)
    return draws or any(memory.picojoules_per_byte is not None for memory in target.memories)


def why_withheld(layers: Sequence[Layer], unknown: Sequence[int]) -> str:
    """Return which layers keep the latency from being known, and why the first of them does; empty if none."""
    if not unknown:
        return ""
    first = layers[unknown[0]]
    others = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return f"latency is withheld: layer {first.index} ({first.operator}){others} has no known cost; {first.reason}"


def _latency_range(
    machine: Machine, tasks: Sequence[Task], layers: Sequence[Layer], calls: Mapping[Corner, float]
) -> Range:
    value = sum((layer.latency_s or 0.0 for layer in layers), calls[Corner.TYPICAL])
    ends = (_seconds_at(corner, machine, tasks) + calls[corner] for corner in (Corner.FAST, Corner.SLOW))
    return _range(value, *ends)


def _call_seconds(graph: Graph, machine: Machine, corner: Corner) -> float:
    there = replace(machine, target=at_corner(machine.target, corner))
    return price_call(graph, there).total / there.clock_hz


def _range(value: float, low: float, high: float) -> Range:
    """Return a range; corners that differ from the value only by rounding collapse to it."""
    # Sums in another order differ in the last digit.
    return Range(
        value,
        value if isclose(low, value, rel_tol=1e-9) else min(low, value),
        value if isclose(high, value, rel_tol=1e-9) else max(high, value),
    )


def _seconds_at(corner: Corner, machine: Machine, tasks: Sequence[Task]) -> float:
    """Return the latency of all tasks with a cost, with the target's figures at their fast or slow ends."""
    corner_machine = replace(machine, target=at_corner(machine.target, corner))
    engines = {engine.name: engine for engine in corner_machine.target.engines}
    cycles = 0.0
    for task in tasks:
        if task.placement.engine is not None and task.work.known:
            cycles += price(task, engines[task.placement.engine.name], corner_machine).total * task.trips
    return cycles / corner_machine.clock_hz


def _energy_range(machine: Machine, tasks: Sequence[Task], layers: Sequence[Layer]) -> tuple[Range | None, str]:
    """Return the energy of the layers that have one, and a note on the parts it covers."""
    priced = [layer.energy_j for layer in layers if layer.energy_j is not None]
    if not priced:
        return None, "the target file has no energy figures"
    missing = sum(layer.energy_j is None and task.work.bytes > 0 for task, layer in zip(tasks, layers, strict=True))
    target = machine.target
    parts = ["arithmetic"]
    parts += ["bytes moved"] if any(memory.picojoules_per_byte is not None for memory in target.memories) else []
    parts += ["idle power"] if target.idle_watts is not None else []
    note = " and ".join(parts) if len(parts) > 1 else "arithmetic only; the target file has no energy per byte"
    if any(engine.busy_watts is not None for engine in target.engines):
        note = ""  # power while it works is all that is drawn
    if missing:
        note += f"{'; ' if note else ''}a lower bound: {missing} layers run on engines without an energy figure"
    corners = (Corner.FAST, Corner.SLOW)
    return _range(sum(priced), *(_joules_at(corner, machine, tasks) for corner in corners)), note


def _joules_at(corner: Corner, machine: Machine, tasks: Sequence[Task]) -> float:
    """Return the energy with the target's figures at their fast or slow ends."""
    there = replace(machine, target=at_corner(machine.target, corner))
    engines = {engine.name: engine for engine in there.target.engines}
    total = 0.0
    for task in tasks:
        if task.placement.engine is None or not task.work.known:
            continue
        engine = engines[task.placement.engine.name]
        energy = energy_of(task, engine, there.target)
        if energy is not None:
            seconds = price(task, engine, there).total / there.clock_hz if energy.draws else 0.0
            total += energy.joules(1, seconds) * task.trips
    return total
