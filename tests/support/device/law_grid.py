"""The simulated card over a grid of networks, batches and machines, and the laws that hold between its points.

A point alone may look right; two of them show what cannot be: more cores that are slower, a larger batch that gets
less done in a second, half the bits that are three times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from opscope.analysis.causes import COMPUTE, LAUNCH, LAYOUT, LINK, WAIT
from opscope.analysis.laws import laws_of
from opscope.analysis.run_analysis import RunAnalysis
from opscope.core.errors import UsageError
from opscope.core.meaning import Carries, Does
from opscope.core.units import format_seconds
from opscope.estimate.cost import Resource
from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.machines import use_machine
from opscope.graph.graph import DType
from opscope.options import CompileOptions, ProfileOptions
from opscope.program.program import NO_ROUTE, Program
from opscope.readers import graph_of
from opscope.recording.trace import SpanKind
from opscope.simulation import simulate
from opscope.workflows.model_compiler import ModelCompiler
from opscope.workflows.record import analysis_of
from opscope.workflows.simulated_run import run_program
from opscope.zoo import Recipe, make

NETWORKS: Mapping[str, Recipe] = {
    "resnet50": Recipe("resnet50"),
    "mobilenetv2": Recipe("mobilenetv2"),
    "bert-base": Recipe("bert-base", sequence=128),
    "vit-b16": Recipe("vit-b16"),
    "llm-decode": Recipe("llm-decoder", options={"layers": 2}),
    "llm-prefill": Recipe("llm-decoder", sequence=128, options={"layers": 1, "step": "prefill"}),
    "kws-cnn": Recipe("kws-cnn"),
    "cifar-resnet": Recipe("cifar-resnet"),
    "sample-resnet": Recipe("sample-resnet"),
    "fc": Recipe("fc"),
    "conv-small": Recipe("conv-small"),
    "bert-2-layers": Recipe("bert-base", sequence=128, options={"layers": 2}),
    "vit-2-layers": Recipe("vit-b16", options={"layers": 2}),
}
MOST_BATCH = {"llm-prefill": 8}  # 1,024 tokens; a program for more has millions of commands
PRECISIONS = {"f16": "f16", "i8": "int8"}  # as printed → as the zoo spells it

CORES_SLOWER = 1.05  # more cores may be so much slower: they share what cannot be split
BATCH_LOSS = 0.90  # of the images per second of a smaller batch
TIMES_BOUND = 2.5  # that matrix engine and memories may take, what is named beside them apart
TIMES_MATRIX = 1.75  # the same of what `report` says of the matrix engines, which reach 0.7 of their peak
MOST_IS_NAMED = 0.8  # of what a time is above its bound: then it is explained
HALF_THE_BITS = 2.2  # times as fast: twice the MACs a cycle and half the bytes, and a tile that fits better
REPORT_FACTOR = 1.5  # between `report` and `profile`


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores of so many devices of a target."""

    target: str
    cores: int
    devices: int = 1

    def is_part_of(self, other: Machine) -> bool:
        """Whether the other one has all of its cores, and more."""
        return self != other and self.cores <= other.cores and self.devices <= other.devices

    def __str__(self) -> str:
        return f"{self.target} {f'{self.devices} × ' if self.devices > 1 else ''}{self.cores}"


@dataclass(frozen=True, slots=True)
class Case:
    """One network that is compiled for one machine after the other."""

    network: str
    precision: str
    batch: int
    machines: tuple[Machine, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One program on one machine: what it takes, and what it is judged by. Times are in seconds."""

    network: str
    precision: str
    batch: int
    machine: Machine
    seconds: float  # simulated, of the network alone
    bound: float  # no execution takes less
    bound_by: str
    estimate: float | None  # of `report`; None: withheld
    matrix: float  # that the matrix engines take by the formulas of `report`, shared evenly
    outer_bytes: int
    idle: float  # share of the cores that have nothing to compute
    same_clock: float | None = None  # seconds at the clock that floats are multiplied at; None: as many
    named: Mapping[str, float] = field(default_factory=dict)  # of the critical path, beside matrix engine and memory
    broken: tuple[str, ...] = ()  # laws that its run does not obey

    @property
    def efficiency(self) -> float:
        return self.bound / self.seconds

    @property
    def per_second(self) -> float:
        return self.batch / self.seconds

    def __str__(self) -> str:
        return f"{self.network} {self.precision} batch {self.batch} on {self.machine}"


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that a point, or two of them, break."""

    law: str
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{self.law}: {self.where}: {self.detail}"


# ---- points ------------------------------------------------------------------------------------------------------


def recipe(network: str) -> Recipe:
    """How a network of the grid is made; any other name is one of the zoo, as it is."""
    return NETWORKS.get(network) or Recipe(network)


def points_of(case: Case) -> list[Point]:
    """Every point of a case; machines that the program is too large for are left out."""
    wanted = replace(recipe(case.network), precision=PRECISIONS[case.precision], batch=case.batch, weights=False)
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        make(wanted, path)
        model = ModelCompiler(path)
        graph = graph_of(path)
        found = []
        for machine in case.machines:
            options = CompileOptions(cores=machine.cores, devices=machine.devices, stats_level=70)
            try:
                program, _ = model.compile(machine.target, options)
            except UsageError:
                continue
            used = use_machine(machine.target, cores=machine.cores, devices=machine.devices)
            found.append(_point(case, machine, program, estimate(graph, used)))
    return found


def _point(case: Case, machine: Machine, program: Program, estimated: Estimate) -> Point:
    rows, seconds = program.commands, _seconds(program)
    outer = np.array([*(route.carries.is_outer for route in program.routes), False])
    bound, bound_by = least_seconds(program)
    named, broken = _analysed(program, seconds)
    latency = estimated.totals.latency_s
    moved = int(rows["moved_bytes"][outer[rows["route"]] & (rows["route"] != NO_ROUTE)].sum())
    return Point(
        case.network,
        case.precision,
        case.batch,
        machine,
        seconds,
        bound,
        bound_by,
        None if latency is None else latency.value,
        _matrix_seconds(estimated, machine),
        moved,
        _idle_share(program),
        _seconds(_at_clock(program, use_machine(machine.target).clock_hz)),
        named | _spilling(program, moved),
        broken,
    )


def _seconds(program: Program) -> float:
    """Until the last command of the network is done; statistics are written behind it."""
    return float(simulate(program).done[program.commands["does"] != Does.STATS].max()) / program.clock_hz


def _at_clock(program: Program, clock_hz: float) -> Program:
    """The same commands at another clock of the cores: memories and links are as fast as before."""
    slower = clock_hz / program.clock_hz
    routes = tuple(
        route
        if route.on_core_clock
        else replace(
            route,
            bytes_per_cycle=route.bytes_per_cycle / slower,
            core_bytes_per_cycle=route.core_bytes_per_cycle / slower,
            latency_cycles=route.latency_cycles * slower,
        )
        for route in program.routes
    )
    memories = tuple(
        memory
        if memory.on_core_clock or memory.bytes_per_cycle is None
        else replace(memory, bytes_per_cycle=memory.bytes_per_cycle / slower)
        for memory in program.memories
    )
    return replace(program, clock_hz=clock_hz, routes=routes, memories=memories)


def least_seconds(program: Program) -> tuple[float, str]:
    """The roofline: MACs of the graph at the peak, or the bytes that have to be read at the peak, whichever is longer.

    Constants that do not stay in local memory and inputs are read once; outputs may stay where the next one needs them.
    """
    bounds = program.bounds
    assert bounds is not None
    assert bounds.macs is not None
    lanes = program.cores * program.devices
    compute = bounds.macs / (program.simulation.get("macs_per_cycle", float("inf")) * lanes * program.clock_hz)
    memory = _needed_bytes(program) / program.devices / _read_rate(program)
    return max((compute, "MACs"), (memory, "bytes"))


def _needed_bytes(program: Program) -> int:
    """Bytes of constants that do not stay in local memory, and of inputs."""
    assert program.bounds is not None
    entering = sum(prod(shape) * DType[dtype.upper()].bits // 8 for _, dtype, shape in program.inputs)
    return (program.bounds.streamed_bytes or 0) + entering


def _read_rate(program: Program) -> float:
    """Bytes per second that the cores of a device can read at the most: all together, or each over its own queue."""
    assert program.bounds is not None
    peaks = {peak.name: peak.rate.per_second(program.clock_hz) for peak in program.bounds.routes}
    return sum(
        min(peaks.get(route.name, float("inf")), route.core_bytes_per_cycle * program.cores * program.clock_hz)
        for route in program.routes
        if route.carries is Carries.READ
    )


def _spilling(program: Program, moved_bytes: int) -> dict[str, float]:
    """Seconds that activations take through outer memory, which `profile` reports as spills."""
    leaving = sum(prod(shape) * DType[dtype.upper()].bits // 8 for _, dtype, shape in program.outputs)
    spilled = max(0, moved_bytes - _needed_bytes(program) - leaving)
    return {"spill": spilled / _working_devices(program) / _read_rate(program)}


def _matrix_seconds(estimated: Estimate, machine: Machine) -> float:
    """Of all layers on the engine with most MACs in a cycle: fill of its tiles and loading of weights are in it.

    Shared evenly between all cores of the machine, also where `report` leaves devices idle.
    """
    engines = estimated.machine.target.engines
    matrix = max(engines, key=lambda engine: max((rate.value for rate in engine.macs_per_cycle.values()), default=0.0))
    cycles = sum(
        part.cycles * (1 if layer.trips is None else layer.trips)
        for layer in estimated.layers
        if layer.cost is not None
        for part in layer.cost.parts
        if part.resource == Resource.of_engine(matrix)
    )
    return cycles / estimated.machine.clock_hz * estimated.machine.lanes / (machine.cores * machine.devices)


def _working_devices(program: Program) -> float:
    """Devices that would have all MACs if each had as many as the one that has most: a few ops do not make one work."""
    rows = program.commands
    macs = np.bincount(rows["device"], rows["macs"].astype(np.float64), minlength=program.devices)
    return float(macs.sum() / macs.max()) if macs.max() else float(program.devices)


def _idle_share(program: Program) -> float:
    """Of the cores, with devices that have next to nothing to compute, and cores of the others that have nothing."""
    rows = program.commands[(program.commands["does"] == Does.COMPUTE)]
    lanes = np.unique(rows["device"].astype(np.int64) * program.cores + rows["core"])
    most = np.bincount(lanes // program.cores).max(initial=0)
    return float(1 - _working_devices(program) / program.devices * most / program.cores)


def _analysed(program: Program, seconds: float) -> tuple[dict[str, float], tuple[str, ...]]:
    """What of the time is neither matrix engine nor memory, by cause; and the laws that the run breaks."""
    recording = run_program(program, ProfileOptions(), step=lambda _: None)
    analysis = analysis_of(recording, command=(), created="", sha256=None)
    broken = tuple(f"{law.name} ({law.detail})" for law in laws_of(analysis) if law.holds is False)
    return _named(program, analysis, seconds), broken


def _named(program: Program, analysis: RunAnalysis, seconds: float) -> dict[str, float]:
    """Seconds of the critical path by cause, without what matrix engine and memory are at work.

    A command that moves bytes is all launch until they are on their way.
    """
    matrix, filled = _matrix_group(program), _filled_rate(program)
    parts: dict[str, float] = {}
    whole = 0.0
    for ns, place, cause, is_gap in zip(*_path(analysis), strict=True):
        if place >= 0 and analysis.on_host[place]:
            continue
        whole += ns
        command = program.commands[analysis.work.command[place]] if place >= 0 and not is_gap else None
        moves = place >= 0 and analysis.run.trace.spans["kind"][analysis.work.row[place]] == SpanKind.TRANSFER
        word = _WORDS.get(cause, "")
        if cause == COMPUTE and command is not None and command["group"] == matrix:
            least = int(command["macs"]) / filled
            parts["matrix engine not filled"] = parts.get("matrix engine not filled", 0.0) + max(0.0, ns - least)
        if cause == COMPUTE and command is not None and command["group"] != matrix:
            word = "vector engine"
        if command is not None and not moves and not program.groups[command["group"]].engine:
            word = "launch"
        if word:
            parts[word] = parts.get(word, 0.0) + ns
    return {word: ns / whole * seconds for word, ns in sorted(parts.items(), key=lambda part: -part[1])}


_WORDS = {LAYOUT: "layout", LAUNCH: "launch", LINK: "exchange", WAIT: "waiting for other cores"}


def _path(analysis: RunAnalysis) -> tuple[list[float], list[int], list[int], list[int]]:
    path = analysis.path
    return path.ns.astype(float).tolist(), path.activity.tolist(), path.cause.tolist(), path.is_gap.tolist()


def _filled_rate(program: Program) -> float:
    """MACs in a nanosecond of a matrix engine that no tile of is padded, and that does not wait for weights."""
    engines = use_machine(program.target).target.engines
    name = program.groups[_matrix_group(program)].engine
    reached = next((engine.efficiency for engine in engines if engine.name == name), None)
    share = 1.0 if reached is None else reached.value
    return program.simulation.get("macs_per_cycle", float("inf")) * share * program.clock_hz / 1e9


def _matrix_group(program: Program) -> int:
    """The group of the engine with most MACs in a cycle."""
    peaks = {unit.name: max(unit.macs_per_cycle.values()) for unit in program.bounds.units} if program.bounds else {}
    return max(range(len(program.groups)), key=lambda group: peaks.get(program.groups[group].name, 0.0))


# ---- laws --------------------------------------------------------------------------------------------------------


def violations(points: Sequence[Point]) -> list[Violation]:
    """Every law, over all points."""
    return [found for law in LAWS for found in law(points)]


def more_cores(points: Sequence[Point]) -> Iterator[Violation]:
    """No machine is slower than a smaller one of the same target, by more than what cannot be split."""
    for group in _groups(points, lambda point: (point.network, point.precision, point.batch, point.machine.target)):
        for point in group:
            smaller = [other for other in group if other.machine.is_part_of(point.machine)]
            best = min(smaller, key=lambda other: other.seconds, default=point)
            if point.seconds > CORES_SLOWER * best.seconds:
                yield Violation("more cores are not slower", str(point), _against(point, best, str(best.machine)))


def larger_batches(points: Sequence[Point]) -> Iterator[Violation]:
    """A larger batch gets as much done in a second as a smaller one, but for a tenth."""
    for group in _groups(points, lambda point: (point.network, point.precision, point.machine)):
        ordered = sorted(group, key=lambda point: point.batch)
        for number, point in enumerate(ordered[1:], 1):
            best = max(ordered[:number], key=lambda other: other.per_second)
            if point.per_second < BATCH_LOSS * best.per_second:
                words = f"{point.per_second:,.0f}/s, batch {best.batch} {best.per_second:,.0f}/s"
                yield Violation("a larger batch is not slower", str(point), words)


def near_the_bound(points: Sequence[Point]) -> Iterator[Violation]:
    """Not below the bound; and above it by no more than a factor, or by what is named."""
    for point in points:
        bound = f"bound {format_seconds(point.bound)} ({point.bound_by})"
        if point.seconds < point.bound:
            yield Violation("time ≥ bound", str(point), f"{format_seconds(point.seconds)}, {bound}")
        named = sum(point.named.values())
        least = max(TIMES_BOUND * point.bound, TIMES_MATRIX * point.matrix) / (1 - point.idle)
        is_near = point.seconds - named <= least
        if not is_near and named < MOST_IS_NAMED * (point.seconds - point.bound):
            words = f"{format_seconds(point.seconds)} = {1 / point.efficiency:.1f} × the {bound}"
            law = f"time ≤ {TIMES_BOUND} × bound, or named"
            yield Violation(law, str(point), f"{words}, {1 - named / point.seconds:.0%} not named")


def half_the_bits(points: Sequence[Point]) -> Iterator[Violation]:
    """Half the bits are at most so many times as fast at the same clock: twice the MACs in a cycle, half the bytes.

    A card multiplies integers at a higher clock than floats, since it takes less power. Cores are faster by that, and
    memories are not: so the program of integers is simulated at the clock of floats.
    """
    for group in _groups(points, lambda point: (point.network, point.batch, point.machine)):
        by_type = {point.precision: point for point in group}
        if not {"f16", "i8"} <= by_type.keys():
            continue
        wide, narrow = by_type["f16"], by_type["i8"]
        slowed = replace(narrow, seconds=narrow.same_clock or narrow.seconds)
        if wide.seconds > HALF_THE_BITS * slowed.seconds:
            law = f"half the bits are ≤ {HALF_THE_BITS} × as fast at the same clock"
            yield Violation(law, str(narrow), _against(slowed, wide, "f16"))


def report_agrees(points: Sequence[Point]) -> Iterator[Violation]:
    """`report` and `profile` say the same, but for a factor."""
    for point in points:
        if point.estimate and not 1 / REPORT_FACTOR <= point.seconds / point.estimate <= REPORT_FACTOR:
            words = f"{format_seconds(point.seconds)}, report {format_seconds(point.estimate)}"
            law = f"report and profile within {REPORT_FACTOR} ×"
            yield Violation(law, str(point), f"{words} ({point.seconds / point.estimate:.2f} ×)")


def runs_obey(points: Sequence[Point]) -> Iterator[Violation]:
    """What `opscope check` asks of every run: no engine, memory or link above its peak, and sums that add up."""
    for point in points:
        for law in point.broken:
            yield Violation("laws of a run", str(point), law)


LAWS = (more_cores, larger_batches, near_the_bound, half_the_bits, report_agrees, runs_obey)


def _groups(points: Iterable[Point], key: Callable[[Point], Hashable]) -> list[list[Point]]:
    found: dict[Hashable, list[Point]] = {}
    for point in points:
        found.setdefault(key(point), []).append(point)
    return list(found.values())


def _against(point: Point, other: Point, name: str) -> str:
    ratio = point.seconds / other.seconds
    return f"{format_seconds(point.seconds)}, {name} {format_seconds(other.seconds)} ({ratio:.2f} ×)"
