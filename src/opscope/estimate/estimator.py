"""Graph, Machine → Estimate: cost of every layer, memory plan, totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose

from ..graph.graph import ABSENT, Graph, Note, Role
from ..machine.calibration import OP
from ..machine.corners import Corner, at_corner
from ..machine.target import Engine, Holds, Layout, Target
from ..recording.resources import Footprint, Range, Totals
from .canonical import canonicalise
from .cost import Cost, Energy, labels
from .kernels import converted_inputs, tiled_tensors
from .machines import at_clock_of
from .memory import MemoryPlan, plan_memory
from .price import Machine, Sharing, Task, energy_of, price, price_call, task_of
from .ranges import Strange, calibrated_range, energy_shares, range_by
from .report import Layer
from .traffic.links import shared_ops, ways_to_share
from .traffic.routes import Routes, images_of
from .traffic.stores import parameter_bytes, ratio_of


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
    plan = plan_memory(canonical, machine.target.runtime)
    asked = machine.devices
    machine, tasks = _shared(canonical, at_clock_of(canonical, machine), plan)
    canonical = replace(canonical, notes=(*canonical.notes, *_sharing_notes(machine, asked)))
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
        if target.calibration.unit == OP and len(found.graph.ops) > 1:
            told = "was calibrated with single ops: what a runtime does between them, and fuses, is not in the range"
            notes.append(Note("calibrated-with-ops", f"{target.name} {told}"))
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
    plan = plan_memory(canonical, machine.target.runtime)
    machine, tasks = _shared(canonical, at_clock_of(canonical, machine), plan)
    latencies: list[float | None] = []
    energies: list[float] = []
    for task in tasks:
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


def _shared(graph: Graph, machine: Machine, plan: MemoryPlan) -> tuple[Machine, list[Task]]:
    """Return each op with its work, its engine and what it moves, and how devices share them: as takes least."""
    tasks = _with_layouts(graph, machine.target.layout, [task_of(op, graph, machine.target) for op in graph.ops])
    ways = [(way, _moving(tasks, graph, way, plan)) for way in ways_to_share(graph, machine)]
    return min(ways, key=lambda way: _seconds_at(Corner.TYPICAL, *way)) if len(ways) > 1 else ways[0]


def _sharing_notes(machine: Machine, asked: int) -> list[Note]:
    """Say how several devices share the work, where that was for the estimate to choose."""
    if asked == 1 or machine.sharing not in (Sharing.IMAGES, Sharing.PRODUCTS):
        return []
    words = f"{machine.devices} of {asked} devices have images of the batch each, and all constants"
    if machine.sharing is Sharing.PRODUCTS:
        words = f"{machine.devices} of {asked} devices have a part of every product, and send it to each other"
    if machine.devices == 1:
        words = f"one of {asked} devices does all of it: what others would have to send takes longer"
    return [Note("devices", words)]


def _moving(tasks: Sequence[Task], graph: Graph, machine: Machine, plan: MemoryPlan) -> list[Task]:
    """Return the tasks with what they move through memories and between devices."""
    routes, images = Routes(graph, machine, plan), images_of(graph)
    own = -(-images // machine.devices) / images
    found = []
    begin, end = _ends(tasks, machine)
    for step, (task, shared) in enumerate(zip(tasks, shared_ops(graph, machine), strict=True)):
        op, work, ratio = task.op, task.work, ratio_of(task.op, machine.target)
        moving = replace(
            task,
            traffic=routes.traffic(step, op, work, readers=shared.readers),
            written={routes.activations: routes.written(step, op, work)},
            coded=routes.constants(op, work) if ratio != 1.0 else {},
            ratio=ratio,
            images=images,
            own_share=own,
            linked_bytes=shared.linked_bytes,
            entering_bytes=routes.entering(op, work) if step == begin else 0,
            leaving_bytes=routes.leaving(op, work) if step == end else 0,
        )
        found.append(moving)
    return found


def _ends(tasks: Sequence[Task], machine: Machine) -> tuple[int, int]:
    """Return the positions of the ops that a network begins and ends with, where a compiler starts with its inputs in
    outer memory; -1: nothing waits for them.
    """
    outer = machine.target.local is not None and machine.target.home(Holds.ACTIVATIONS) != machine.target.local
    if not outer or not machine.target.is_compilable:
        return -1, -1
    working = [step for step, task in enumerate(tasks) if task.work.bytes and task.placement.engine is not None]
    return (working[0], working[-1]) if working else (-1, -1)


def _with_layouts(graph: Graph, layout: Layout | None, tasks: list[Task]) -> list[Task]:
    """Return the tasks with the cost of changing the layout of their inputs, on targets with more than one."""
    if layout is None:
        return tasks
    engines = [task.placement.engine.name if task.placement.engine and task.work.bytes else "" for task in tasks]
    tiled = tiled_tensors([(task.op, name) for task, name in zip(tasks, engines, strict=True)], layout)
    found = []
    for task, name in zip(tasks, engines, strict=True):
        rates = converted_inputs(task.op, name, graph, tiled=tiled, layout=layout) if name else {}
        tensors = {p: graph.tensors[task.op.inputs[p]] for p in rates}
        cycles = {p: rate * (tensors[p].bytes or 0) / 1024 for p, rate in rates.items()}
        inputs = sum(each for p, each in cycles.items() if tensors[p].role is Role.INPUT)
        total = sum(cycles.values())
        found.append(replace(task, layout_cycles=total, input_layout_cycles=inputs, layout_commands=len(rates)))
    return found


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
        bound="" if cost is None or cost.bound is None else labels(machine.target)[cost.bound],
        parameter_bytes=constants.size_bytes,
        shared_bytes=constants.shared_bytes,
        kernel_shapes=constants.shapes,
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
    there, _ = _at(corner, machine)
    return price_call(graph, there).total / there.clock_hz


def _range(value: float, low: float, high: float) -> Range:
    """Return a range; corners that differ from the value only by rounding collapse to it."""
    # Sums in another order differ in the last digit.
    return Range(
        value,
        value if isclose(low, value, rel_tol=1e-9) else min(low, value),
        value if isclose(high, value, rel_tol=1e-9) else max(high, value),
    )


def _at(corner: Corner, machine: Machine) -> tuple[Machine, dict[str, Engine]]:
    """The machine with the target's figures at their fast or slow ends, and its engines by name."""
    there = replace(machine, target=at_corner(machine.target, corner))
    return there, {engine.name: engine for engine in there.target.engines}


def _seconds_at(corner: Corner, machine: Machine, tasks: Sequence[Task]) -> float:
    """Return the latency of all tasks with a cost at one end of the target's ranges."""
    there, engines = _at(corner, machine)
    cycles = 0.0
    for task in tasks:
        if task.placement.engine is not None and task.work.known:
            cycles += price(task, engines[task.placement.engine.name], there).total * task.trips
    return cycles / there.clock_hz


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
    """Return the energy at one end of the target's ranges."""
    there, engines = _at(corner, machine)
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
