"""Times of a part that the vendor's performance model does not know: those of the nearest that it does, scaled.

What the compiler decided for the part itself stays: bytes, VTCM, order and placement of its own compilation. Lanes and
kernels of the timeline are those of the neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, log, log2, sqrt

import numpy as np
import numpy.typing as npt

from ....core.errors import ModelError
from ....core.provenance import Provenance
from ....machine.target import Figure
from ....program.bounds import Bounds
from ....program.program import NO_OP
from ....recording.recording import KernelTotal, Metric, OpRecord, Placed, Recording
from ..attribution import Attribution
from ..causes import causes_of
from ..compilation import Compilation, CompiledGraph
from ..details import PARTS, parts_of
from ..hexagon import hexagon_of, scaling_spread
from ..importers.events import Event, Message
from ..metrics import CYCLES, HIGH, LOW
from ..options import HtpOptions
from ..socs import SOCS, Soc
from .scaling import Rates, scaled, span_macs

_TIMES = (  # what only a timeline tells of an op
    "time_ns",
    "wait_ns",
    "overlap_ns",
    "path_ns",
    "path_share",
    "busy_cycles",
    "threads",
    "engine_threads",
)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The nearest part with a model, and the model's timelines of it at the rates of the part asked for."""

    soc: Soc
    options: HtpOptions
    compilation: Compilation  # its timelines are scaled
    note: str

    @property
    def basis(self) -> str:
        size = self.options.vtcm_mb
        smaller = f" with {size} MB VTCM" if size is not None and size != self.soc.vtcm_mb else ""
        return f"{Provenance.VENDOR_MODEL} of {self.soc.label}{smaller}, scaled"


def distance(one: Soc, other: Soc) -> float:
    """How unlike two parts are: versions apart, and factors of two in VTCM, HVX threads and int8 MACs per cycle."""
    parts = [hexagon_of(soc) for soc in (one, other)]
    sizes = [
        (soc.vtcm_mb, part.hvx_threads.value, part.macs_per_cycle["i8"].value)
        for soc, part in zip((one, other), parts, strict=True)
    ]
    return abs(one.arch - other.arch) + sum(abs(log2(a / b)) for a, b in zip(*sizes, strict=True))


def nearest(soc: Soc, among: Sequence[Soc] = SOCS) -> tuple[Soc, ...]:
    """Other parts with a model, nearest first."""
    known = [other for other in among if other.has_model and other.id != soc.id]
    return tuple(sorted(known, key=lambda other: (distance(soc, other), other.id)))


def find_neighbour(
    options: HtpOptions, facts: Recording, compiled: Callable[[HtpOptions], Compilation]
) -> Neighbour | None:
    """The nearest part whose compilation cuts the model as that of the part itself; None: there is none."""
    on_cpu = {op.name for op in facts.placed(Placed.CPU)}
    for soc in nearest(options.soc):
        own = options.vtcm_mb or options.soc.vtcm_mb
        chosen = replace(options, soc=soc, vtcm_mb=own if own < soc.vtcm_mb else None)
        try:
            found = compiled(chosen)
        except ModelError:  # it may take other types and ops than the part itself
            continue
        alike = len(found.graphs) == len(parts_of(facts)) and {op.name for op in found.op_trace.refused} == on_cpu
        if alike and all(graph.timeline is not None for graph in found.graphs):
            return _scaled(chosen, found, options.soc)
    return None


def _scaled(options: HtpOptions, found: Compilation, target: Soc) -> Neighbour:
    base, part = Rates.of(hexagon_of(options.soc)), hexagon_of(target)
    typical, slow, fast = (Rates.of(part, end=end) for end in ("value", "smallest", "largest"))
    corners, spread = (fast, typical, slow), scaling_spread()
    graphs = tuple(scaled_graph(graph, base, corners, spread, macs_of(graph, found)) for graph in found.graphs)
    ratios = {"core clock": base.clock_hz / typical.clock_hz, "HVX": base.vector / typical.vector}
    ratios |= {
        f"HMX in {dtype}": rate / typical.matrix[dtype]
        for dtype, rate in base.matrix.items()
        if dtype in typical.matrix
    }
    ratios["outer memory"] = base.outer / typical.outer
    words = ", ".join(f"{name} × {ratio:.2f}" for name, ratio in ratios.items())
    note = (
        f"times: the vendor's performance model of {options.soc.label}, the nearest part that it knows, replayed at "
        f"the rates of {target.label} (time of {words}); lanes, kernels and bytes of the timeline are "
        f"{options.soc.label}'s"
    )
    return Neighbour(options.soc, options, replace(found, graphs=graphs), note)


def macs_of(graph: CompiledGraph, found: Compilation) -> npt.NDArray[np.float64] | None:
    """Of every span of a graph's timeline; None: the model was not read."""
    if graph.timeline is None or not found.work:
        return None
    macs = {name: known.work.macs for name, known in found.work.items()}
    mapped = found.op_trace.graphs[graph.name]
    return span_macs(graph.timeline, Attribution(graph, mapped, dict(found.nodes), macs))


def scaled_graph(
    graph: CompiledGraph,
    base: Rates,
    target: tuple[Rates, Rates, Rates],
    spread: Figure,
    macs: npt.NDArray[np.float64] | None = None,
) -> CompiledGraph:
    """With the timeline of the target, and its cycles with a range.

    The range has three causes: the model's own, that of the target's figures, and how far replays of parts that the
    model knows were off. They have nothing to do with each other, so that their squares add up, as factors.

    Args:
        target: rates at the fast end of their ranges, typical ones, and those at the slow end.
        spread: of time by the model of a part ÷ time replayed from another.
        macs: of every span.
    """
    line, message = graph.timeline, graph.prepared
    if line is None or message is None:
        return graph
    fast, typical, slow = (scaled(line, graph.schematic, base, rates, macs) for rates in target)
    own = {name: message.value(name) for name in (CYCLES, LOW, HIGH)}
    whole = own[CYCLES] or line.end
    time = typical.end / typical.clock_hz
    less = ((own[LOW] or whole) / whole, fast.end / fast.clock_hz / time, spread.smallest)
    more = ((own[HIGH] or whole) / whole, slow.end / slow.clock_hz / time, spread.largest)
    cycles = {
        CYCLES: typical.end,
        LOW: round(typical.end * exp(-_together(less))),
        HIGH: round(typical.end * exp(_together(more))),
    }
    events = tuple(_with_values(event, cycles) for event in message.events)
    return replace(graph, timeline=typical, prepared=Message(message.graph, message.method, events))


def _together(factors: Sequence[float]) -> float:
    """Logarithm of the factor that independent ones come to: the root of the sum of their squares."""
    return sqrt(sum(log(factor) ** 2 for factor in factors))


def _with_values(event: Event, values: Mapping[str, int]) -> Event:
    children = tuple(_with_values(child, values) for child in event.children)
    return replace(event, value=values.get(event.name, event.value), children=children)


def with_times(facts: Recording, timed: Recording, neighbour: Neighbour) -> Recording:
    """What the compiler says of a part, with the times of a recording of its neighbour."""
    ops, place = _ops(facts.ops, timed.ops)
    trace = replace(timed.trace, spans=_at(timed.trace.spans, place), provenance=Provenance.ESTIMATED)
    commands = timed.commands
    clock = timed.clocks_hz["core"]
    model = f"{timed.machine.get('vendor_model', '')} of {neighbour.soc.label}, scaled"
    merged = replace(
        facts,
        provenance=Provenance.ESTIMATED,
        basis=neighbour.basis,
        trace=trace,
        commands=None if commands is None else replace(commands, rows=_at(commands.rows, place)),
        ops=ops,
        machine={**facts.machine, "clock_hz": clock, "vendor_model": model},
        clocks_hz=timed.clocks_hz,
        classified=timed.classified,
        bounds=_bounds(facts.bounds, timed.bounds),
        latency=None if timed.latency is None else replace(timed.latency, provenance=Provenance.ESTIMATED),
        metrics=tuple(_metrics(facts, timed)),
        kernels=_kernels(facts.kernels, timed.kernels),
        lanes=timed.lanes,
        path_shares=timed.path_shares,
        details={**facts.details, PARTS: _parts(facts, timed)},
        notes=(*facts.notes, neighbour.note),
    )
    return replace(merged, causes=causes_of(merged))


def _ops(facts: Sequence[OpRecord], timed: Sequence[OpRecord]) -> tuple[tuple[OpRecord, ...], npt.NDArray[np.int64]]:
    """Ops by name, with times; and for every op of the second list its place in the result."""
    ops = list(facts)
    known = {op.name: number for number, op in reversed(list(enumerate(ops)))}
    place = np.zeros(len(timed), np.int64)
    for number, op in enumerate(timed):
        if op.name not in known:  # its bytes would be those of another part
            known[op.name] = len(ops)
            ops.append(OpRecord(op.name, op.type, op.kind, placed=op.placed, reason=op.reason, calls=0))
        place[number] = known[op.name]
        times = {name: getattr(op, name) for name in _TIMES}
        ops[known[op.name]] = replace(ops[known[op.name]], **times)
    return tuple(ops), place


def _at(rows: npt.NDArray[np.void], place: npt.NDArray[np.int64]) -> npt.NDArray[np.void]:
    """Rows whose ops stand elsewhere now."""
    rows = rows.copy()
    known = rows["op"] != NO_OP
    rows["op"][known] = place[rows["op"][known].astype(np.int64)]
    return rows


def _metrics(facts: Recording, timed: Recording) -> list[Metric]:
    """Bytes are of the part's own compilation, all else that the model tells is of the neighbour's."""
    model = {
        metric.name: replace(metric, provenance=Provenance.ESTIMATED)
        for metric in timed.metrics
        if metric.provenance is Provenance.VENDOR_MODEL and metric.unit != "bytes"
    }
    moved = [sum(recording.value(name) or 0 for name in ("ddr_read", "ddr_write")) for recording in (facts, timed)]
    if (rate := model.get("ddr_bandwidth")) and rate.value is not None and moved[1]:
        model["ddr_bandwidth"] = replace(rate, value=rate.value * moved[0] / moved[1])
    found = [model.pop(metric.name, metric) for metric in facts.metrics]
    return found + list(model.values())


def _kernels(facts: Sequence[KernelTotal], timed: Sequence[KernelTotal]) -> tuple[KernelTotal, ...]:
    """Those of the part, with cycles where the neighbour has the same."""
    known = {kernel.name: kernel for kernel in timed}
    rows = [
        replace(kernel, engine=other.engine, busy_cycles=other.busy_cycles)
        if (other := known.get(kernel.name)) is not None
        else kernel
        for kernel in facts
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.busy_cycles or 0), -(row.outer_bytes or 0), row.name)))


def _bounds(own: Bounds | None, timed: Bounds | None) -> Bounds | None:
    """Peaks of the part, on the lanes of the neighbour."""
    if own is None or timed is None:
        return own
    return replace(own, units=tuple(replace(a, name=b.name) for a, b in zip(own.units, timed.units, strict=False)))


def _parts(facts: Recording, timed: Recording) -> tuple[object, ...]:
    estimated = partial(replace, provenance=Provenance.ESTIMATED)
    return tuple(
        replace(
            part,
            latency=None if part.latency is None else estimated(part.latency),
            peak_local_bytes=own.peak_local_bytes,
        )
        for own, part in zip(parts_of(facts), parts_of(timed), strict=True)
    )
