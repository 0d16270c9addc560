"""Flat counting: every operation priced like a multiply-accumulate, whoever runs it.

The rules of the simplest resource reports, kept for comparison with their numbers (`docs/reports.md` lists them):

- A convolution counts output positions × kernel × channels for one sample, a dense layer the elements of its weights;
  every other op counts its output elements as if they were MACs. An op that counts nothing is priced as one MAC.
- Acceleration is a flag; it changes no cycle. No memory traffic, no launch, no fusion.
- Peak RAM is the most bytes alive of tensors that ops produce, each element as wide as the network's input;
  graph inputs are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

from ...core.units import Bytes, Cycles
from ...estimate.build_report import model_facts
from ...estimate.cost import Cost, Part, Resource
from ...estimate.estimator import why_withheld
from ...estimate.memory import Buffer, live_bytes
from ...estimate.price import Machine
from ...estimate.report import Layer, Report
from ...estimate.traffic.stores import parameter_bytes
from ...estimate.work import channels_per_group, numbers
from ...graph.graph import ABSENT, DType, Graph, Op, Role
from ...machine import catalogue
from ...machine.target import Engine, Holds
from ...recording.resources import (
    Footprint,
    LayerAdvice,
    MemoryStack,
    MemoryUse,
    ModelFacts,
    PeakTensor,
    Range,
    Suggestion,
    Totals,
)

_PROFILES = Path(__file__).with_name("profiles")
LISTED_LAYERS = 5
DEFINITION = "flat counting: convolutions and dense layers by MACs, every other op by its output elements"
_NO_RATE = "latency is withheld: the target file has no MAC rate"
URGENT, CLEAR = 2.0, 0.5  # share of the RAM that is missing
CRITICAL, TIGHT = 0.95, 0.75


def vendor_machine(machine: Machine) -> Machine:
    """A part as the vendor's own profile has it, at one rate for everything; as its target has it, where none is."""
    path = _PROFILES / f"{machine.target.name}.toml"
    return replace(machine, target=catalogue.read(path)) if path.is_file() else machine


def flat_report(graph: Graph, machine: Machine, *, sha256: str | None) -> Report:
    """The report of a graph by flat counting."""
    machine = vendor_machine(machine)
    live = live_bytes(_produced(graph, _width_bits(graph)), len(graph.ops))
    layers = tuple(_layer(index, op, graph, machine, live[index]) for index, op in enumerate(graph.ops))
    parameters = parameter_bytes(graph)
    memory = _memory(graph, machine)
    totals = _totals(layers, parameters)
    return Report(
        model=_facts(graph, sha256, parameters),
        target=machine.target,
        devices=1,
        cores=1,
        graph=graph,
        memory=memory,
        totals=totals,
        layers=layers,
        suggestions=_suggestions(graph, totals, memory),
        heavy_memory=_heaviest(layers, [layer.parameter_bytes for layer in layers], 1024, _MEMORY_ADVICE),
        heavy_macs=_heaviest(layers, [layer.macs for layer in layers], 1, _MAC_ADVICE),
        notes=graph.notes,
        definition=DEFINITION,
    )


def flat_macs(op: Op, graph: Graph) -> int:
    """What flat counting calls the MACs of an op, for one sample."""
    out = graph.tensors[op.outputs[0]].shape if op.outputs and op.outputs[0] != ABSENT else ()
    elements = prod(out) if out is not None else 0
    if op.kind == "conv":
        sample = prod(out[1:]) if out else 0
        return sample * prod(numbers(op, "kernel")) * channels_per_group(op, graph.tensors[op.inputs[0]])
    if op.kind == "matmul" and len(op.inputs) > 1 and graph.tensors[op.inputs[1]].role is Role.CONSTANT:
        return graph.tensors[op.inputs[1]].elements or 0
    return elements


def _engine(op: Op, machine: Machine) -> Engine:
    engines = machine.target.engines
    return next((engine for engine in engines if engine.takes(op)), engines[-1])


def _layer(index: int, op: Op, graph: Graph, machine: Machine, live: int) -> Layer:
    """One layer, every operation priced like a MAC on the processor."""
    macs = flat_macs(op, graph)
    engine = _engine(op, machine)
    core = machine.target.engines[-1]  # the processor that prices everything
    rate, energy = core.rate(core.macs_per_cycle, DType.F32), core.rate(core.picojoules_per_mac, DType.F32)
    unknown = _why_uncounted(op, graph)
    cycles = int((macs or 1) / rate.value) if rate is not None and not unknown else None
    latency = None if cycles is None else cycles / machine.clock_hz
    joules = None if energy is None or unknown else macs * energy.value * 1e-12
    constants = [t for t in op.inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT]
    return Layer(
        index=index,
        operator=op.type,
        kind=op.kind,
        name=op.name,
        location=op.location,
        sources=(),
        trips=op.trips,
        engine=engine.name,
        accelerated=engine.accelerator,
        reason=unknown,
        dtype=graph.tensors[op.outputs[0]].dtype.label if op.outputs and op.outputs[0] != ABSENT else "",
        macs=macs,
        element_ops=0,
        cost=None if cycles is None else Cost((Part(Resource.of_engine(engine), Cycles(cycles)),)),
        cycles=cycles,
        latency_s=latency,
        energy_j=joules,
        power_w=joules / latency if joules is not None and latency else None,
        bound=engine.name,
        parameter_bytes=sum(graph.tensors[t].bytes or 0 for t in constants),
        shared_bytes=0,
        write_bytes=0,
        live_bytes=live,
        traffic={},
        kernel_shapes=tuple(graph.tensors[t].shape or () for t in constants),
        work_known=not unknown,
        unknown=unknown,
    )


def _why_uncounted(op: Op, graph: Graph) -> str:
    """Flat counting goes by the output of an op: one without a shape cannot be counted."""
    out = graph.tensors[op.outputs[0]] if op.outputs and op.outputs[0] != ABSENT else None
    if out is None or out.shape is not None:
        return ""
    return out.unknown_because or f"the model does not give the shape of {out.name}"


def _memory(graph: Graph, machine: Machine) -> MemoryStack:
    """Most bytes of activations alive at once, and the constants, against the target's memories."""
    buffers = _produced(graph, _width_bits(graph))
    live = live_bytes(buffers, len(graph.ops))
    peak = max(live, default=0)
    step = live.index(peak) if live else None
    alive = [b for b in buffers if step is not None and b.first <= step <= b.last]
    ram, store = machine.target.home(Holds.ACTIVATIONS), machine.target.home(Holds.CONSTANTS)
    uses = (
        MemoryUse(ram.name, "activations", peak, round(ram.bytes.value)),
        MemoryUse(store.name, "constants", parameter_bytes(graph), round(store.bytes.value)),
    )
    share = uses[0].share
    return MemoryStack(
        bound_bytes=Bytes(peak),
        arena_bytes=Bytes(peak),
        planner="live tensors",
        scratch_bytes=Bytes(0),
        runtime_bytes=None,
        peak_layer=step,
        peak_tensors=tuple(PeakTensor(graph.tensors[b.tensors[0]].name, b.size_bytes) for b in alive),
        unknown_tensors=sum(graph.tensors[b.tensors[0]].elements is None for b in buffers),
        uses=uses,
        issues=tuple(_issues(uses[0])),
        recommendations=tuple(_recommendations(uses[0])),
        status="CRITICAL" if share > CRITICAL else "WARNING" if share > TIGHT else "OK",
    )


def _width_bits(graph: Graph) -> int:
    """Of an element, by the rule: as wide as the network's input."""
    return graph.tensors[graph.inputs[0]].dtype.bits if graph.inputs else DType.F32.bits


def _produced(graph: Graph, width_bits: int) -> list[Buffer]:
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for step, op in enumerate(graph.ops):
        for t in op.inputs:
            if t in first:
                last[t] = step
        for t in op.outputs:
            if t != ABSENT:
                first.setdefault(t, step)
                last.setdefault(t, step)
    return [Buffer(Bytes((graph.tensors[t].elements or 0) * width_bits // 8), first[t], last[t], (t,)) for t in first]


def _issues(ram: MemoryUse) -> list[str]:
    if ram.fits:
        return []
    needed, have = ram.required_bytes / 1024, ram.available_bytes / 1024
    return [f"Peak RAM usage ({needed:.1f} KB) exceeds available RAM ({have:.1f} KB)"]


def _recommendations(ram: MemoryUse) -> list[str]:
    if ram.fits:
        return []
    missing = ram.required_bytes - ram.available_bytes
    share = missing / max(1, ram.available_bytes)
    figures = f"{missing / 1024:.0f} KB ({100 * share:.0f}%) more RAM than available"
    if share > URGENT:
        first = f"URGENT: Model requires {figures}"
    elif share > CLEAR:
        first = f"Model exceeds available RAM: {figures}"
    else:
        first = f"Model slightly exceeds available RAM: {figures}"
    return [first, "Evaluate quantization potential with representative dataset"]


def _totals(layers: Sequence[Layer], parameters: int) -> Totals:
    """Sums over layers; a sum with an unknown part is unknown."""
    cycles = _sum([layer.cycles for layer in layers])
    seconds, joules = _sum([layer.latency_s for layer in layers]), _sum([layer.energy_j for layer in layers])
    unknown = tuple(layer.index for layer in layers if layer.unknown)
    return Totals(
        cycles=cycles,
        latency_s=None if seconds is None else Range(seconds, seconds, seconds),
        energy_j=None if joules is None else Range(joules, joules, joules),
        power_w=joules / seconds if seconds and joules is not None else None,
        power_note="a constant of the target file",
        energy_note="MACs only" if joules is not None else "the target file has no energy per MAC",
        macs=sum(layer.macs for layer in layers),
        element_ops=0,
        parameter_bytes=parameters,
        accelerated_layers=sum(layer.accelerated for layer in layers),
        cpu_layers=sum(not layer.accelerated for layer in layers),
        unknown_layers=unknown,
        withheld=why_withheld(layers, unknown) or ("" if cycles is not None else _NO_RATE),
        known_latency_s=(sum(layer.latency_s or 0.0 for layer in layers) or None) if unknown else None,
        uncounted_layers=len(unknown),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    """One unknown makes the sum unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _facts(graph: Graph, sha256: str | None, parameters: int) -> ModelFacts:
    """The usual ones, but for what is counted here, and for the type, which is that of the first input."""
    dtype = graph.tensors[graph.inputs[0]].dtype if graph.inputs else DType.UNKNOWN
    usual = model_facts(graph, sha256, layer_count=len(graph.ops))
    return replace(usual, parameter_bytes=parameters, dtype=dtype.label)


def _suggestions(graph: Graph, totals: Totals, memory: MemoryStack) -> tuple[Suggestion, ...]:
    """Sizes only: flat counting cannot tell what a change does to time."""
    if not graph.inputs or not graph.tensors[graph.inputs[0]].dtype.is_float:
        return ()
    size, width = totals.parameter_bytes, graph.tensors[graph.inputs[0]].dtype.bits
    before = Footprint(None, memory.peak_bytes, size, None)
    after = Footprint(None, memory.peak_bytes * 8 // width, size * 8 // width, None)
    kilobytes = f"{size / 1024:.2f} KB"
    return (
        Suggestion(
            "quantize",
            f"Apply INT8 quantization: {kilobytes} → {size * 8 / width / 1024:.2f} KB "
            f"(~{100 - 800 / width:.0f}% reduction). Use tf.lite.Optimize.DEFAULT during conversion.",
            (),
            before,
            after,
        ),
        Suggestion(
            "prune",
            f"Apply structured pruning: {kilobytes} model can achieve 50-90% size reduction. "
            "Start with magnitude-based pruning.",
            (),
            before,
            Footprint(None, memory.peak_bytes, size // 2, None),
        ),
    )


_MEMORY_ADVICE = {
    "conv": "Consider depthwise separable convolution or low-rank factorization",
    "matmul": "Consider low-rank factorization",
}
_MAC_ADVICE = {"conv": "Replace with depthwise convolution to reduce MACs"}


def _heaviest(
    layers: Sequence[Layer], sizes: Sequence[int], at_least: int, advice: dict[str, str]
) -> tuple[LayerAdvice, ...]:
    ranked = sorted(range(len(layers)), key=lambda index: -sizes[index])[:LISTED_LAYERS]
    return tuple(
        LayerAdvice(index, advice.get(layers[index].kind, "Consider quantization"))
        for index in ranked
        if sizes[index] >= at_least
    )
