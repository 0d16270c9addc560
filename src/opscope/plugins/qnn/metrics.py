"""The figures of a profile, each with its provenance; what only a device can tell says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ...core.provenance import Provenance
from ...core.sums import known_sum, whole_sum
from ...recording.recording import Metric
from ...recording.summary import LaneTotal, Latency, MemoryTotal, Share
from .compilation import CompiledGraph
from .details import Part
from .importers.events import Message
from .importers.schematic import Traffic
from .importers.timeline import DMA, ENGINES, FOREGROUND, HLX, HMX, HVX, HVX_DMA, Thread, Timeline
from .node_times import is_wait, merged
from .nodes import GraphNodes
from .parts.correction import Correction

CYCLES = "Simulated (Accelerator exec cycles)"
LOW, HIGH = (
    "Simulated (Accelerator exec cycles (lower estimate))",
    "Simulated (Accelerator exec cycles (upper estimate))",
)
MISSING = "Missing Ops (Number of Ops with no Costs associated)"
_SPILLS = ("Output Spill", "Intermediate Spill")
_FILLS = {"Input Fill": "input_fill", "Output Spill": "output_spill"}
_UNITS = (FOREGROUND, HVX, HVX_DMA, HLX, HMX, DMA)  # in the order of tables
BETWEEN = "dispatch and waits"
ON_DEVICE = "only a device can tell: import its profile"
ACCELERATOR_ALONE = "the vendor's model covers the accelerator alone: no host, no RPC"
NO_MODEL = "the vendor's performance model does not know this part"


def part_of(graph: CompiledGraph) -> Part:
    """The vendor's estimate of one graph."""
    message, timeline = graph.prepared, graph.timeline
    peak, _ = _occupancy(graph)
    cycles = message.value(CYCLES) if message else None
    if message is None or timeline is None or cycles is None:
        return Part(graph.name, None, None, None, None, peak)
    low, high = message.value(LOW), message.value(HIGH)
    scale = 1e9 / timeline.clock_hz
    latency = Latency(round(cycles * scale), _scaled(low, scale), _scaled(high, scale), Provenance.VENDOR_MODEL)
    return Part(graph.name, latency, cycles, low, high, peak)


def _scaled(cycles: int | None, scale: float) -> int | None:
    return None if cycles is None else round(cycles * scale)


def whole_latency(parts: Sequence[Part]) -> Latency | None:
    """Of all graphs together: the accelerator runs them one after the other."""
    times = [part.latency for part in parts if part.latency is not None]
    if not times or len(times) != len(parts):
        return None
    return Latency(
        sum(time.known_ns for time in times),
        whole_sum(time.low_ns for time in times),
        whole_sum(time.high_ns for time in times),
        Provenance.VENDOR_MODEL,
    )


def lane_totals(graphs: Sequence[GraphNodes], whole_ns: int) -> tuple[LaneTotal, ...]:
    """Every thread over all graphs: busy + wait + idle = wall."""
    busy: dict[Thread, int] = {}
    wait: dict[Thread, int] = {}
    for graph in graphs:
        line = graph.graph.timeline
        if line is None:
            return ()
        work, waits = line.work, is_wait(line)
        length = (work["end"] - work["start"]) * (1e9 / line.clock_hz)
        for number, lane in enumerate(line.lanes):
            here = work["lane"] == number
            if here.any():
                busy[lane] = busy.get(lane, 0) + round(float(length[here & ~waits].sum()))
                wait[lane] = wait.get(lane, 0) + round(float(length[here & waits].sum()))
    return tuple(
        LaneTotal(0, lane.core, lane.name, ns, wait[lane], max(0, whole_ns - ns - wait[lane]), engine=lane.unit)
        for lane, ns in sorted(busy.items(), key=lambda item: _lane_order(item[0]))
    )


def path_shares(graphs: Sequence[GraphNodes]) -> tuple[Share, ...]:
    """What the dominant path is made of: work of an engine, or the time between."""
    spent: dict[str, float] = {}
    for graph in graphs:
        line = graph.graph.timeline
        if line is None:
            return ()
        for part in graph.path_parts:
            work = line.work[part.span]
            begin = min(max(part.begin, int(work["start"])), part.end)
            cause = BETWEEN if work["bookkeeping"] else ENGINES[int(work["engine"])]
            spent[cause] = spent.get(cause, 0.0) + (part.end - begin) * 1e9 / line.clock_hz
            spent[BETWEEN] = spent.get(BETWEEN, 0.0) + (begin - part.begin) * 1e9 / line.clock_hz
    whole = sum(spent.values())
    return tuple(Share(cause, ns, ns / whole) for cause, ns in sorted(spent.items(), key=lambda item: -item[1]) if ns)


def _lane_order(lane: Thread) -> tuple[int, int, int]:
    place = _UNITS.index(lane.unit) if lane.unit in _UNITS else len(_UNITS)
    return lane.core, place, lane.number


def memory_totals(graphs: Sequence[GraphNodes], vtcm_bytes: int) -> tuple[MemoryTotal, ...]:
    """VTCM and DDR: by the vendor's own counters where it has them, else by the compiler's plan."""
    moved = [row for graph in graphs for row in graph.graph.schematic.moved]
    peaks, means = zip(*(_occupancy(graph.graph) for graph in graphs), strict=True) if graphs else ((0,), (0.0,))
    read, write = (sum(getattr(row, key) for row in moved) for key in ("vtcm_read", "vtcm_write"))
    counted = sum((_traffic_by_kind(graph.graph) for graph in graphs), Counter[Traffic]())
    ddr_write = sum(_ddr_write(graph.graph) for graph in graphs)
    ddr_read = counted[Traffic.INPUT] + counted[Traffic.INTERMEDIATE]
    return (
        MemoryTotal("VTCM", 0, 0, max(peaks), sum(means) / len(means), vtcm_bytes, read, write),
        MemoryTotal("DDR", 0, None, None, None, None, ddr_read, ddr_write),
    )


def _occupancy(graph: CompiledGraph) -> tuple[int, float]:
    """Most and mean bytes of VTCM in use: over time where the vendor's model tells, else over the run list."""
    if graph.timeline is not None and len(graph.timeline.usage):
        moments, sizes = graph.timeline.usage.T
        lengths = np.diff(np.append(moments, max(graph.timeline.end, int(moments[-1]))))
        return int(sizes.max()), float((sizes * lengths).sum()) / max(int(lengths.sum()), 1)
    steps = graph.schematic.occupancy()
    return int(steps.max(initial=0)), float(steps.mean()) if len(steps) else 0.0


def _traffic_by_kind(graph: CompiledGraph) -> Counter[Traffic]:
    """Bytes that the compiler's plan reads from DDR; of tensors there, what copies and kernels move at the least."""
    found: Counter[Traffic] = Counter()
    for row in graph.schematic.moved:
        if row.dram_read or row.dram_write:
            kind = graph.schematic.traffic_of(row)
            found[kind] += row.dram_read if kind is not Traffic.DIRECT or row.is_dma else 0
            found[kind] += row.dram_write if kind is Traffic.DIRECT else 0
    return found


def _ddr_write(graph: CompiledGraph) -> int:
    """Outputs and spills."""
    counters = [graph.prepared.value(event) for event in _SPILLS] if graph.prepared is not None else [None]
    if None not in counters:
        return sum(value or 0 for value in counters)
    kinds = (Traffic.INPUT, Traffic.INTERMEDIATE)
    schematic = graph.schematic
    return sum(row.dram_write for row in schematic.moved if row.dram_write and schematic.traffic_of(row) in kinds)


def all_metrics(
    graphs: Sequence[GraphNodes],
    parts: Sequence[Part],
    memory: Sequence[MemoryTotal],
    *,
    on_cpu: int,
    correction: Correction | None,
) -> tuple[Metric, ...]:
    """The list of the seed first, then what goes beyond it.

    Args:
        correction: what was measured beside the vendor's model of the part, where the model ran as it covers it.
    """
    latency = whole_latency(parts)
    return (
        _whole_time(graphs, on_cpu, correction),
        *_times(latency),
        *_utilisation(graphs),
        *_traffic(graphs, memory, latency),
        *_vtcm(memory),
        *_spills(graphs),
        *_fills([graph.graph.prepared for graph in graphs]),
        *_compilation([graph.graph.prepared for graph in graphs]),
    )


def _whole_time(graphs: Sequence[GraphNodes], on_cpu: int, correction: Correction | None) -> Metric:
    """The time of an inference with its call: of the vendor's model and what was measured, else unknown."""
    name, one_call = "total_inference_time", len(graphs) == 1 and not on_cpu
    found = correction.inference(path_shares(graphs)) if correction is not None and one_call else None
    if correction is not None and found is not None:
        value, low, high = (seconds * 1e6 for seconds in (found.value, found.low, found.high))
        return Metric(name, value, "us", Provenance.CALIBRATED, correction.note, low, high)
    on_host = f"; and the time of nodes on the CPU ({on_cpu}) is unknown" if on_cpu else ""
    return Metric(name, None, "us", None, ACCELERATOR_ALONE + on_host)


def _times(latency: Latency | None) -> Iterator[Metric]:
    """Times that the vendor's tools name; those that the model does not cover are unknown, with the reason."""
    if latency is None:
        yield Metric("htp_execution_time", None, "us", None, NO_MODEL)
    else:
        low, high = (None if ns is None else ns / 1e3 for ns in (latency.low_ns, latency.high_ns))
        note = "at the highest clock; htp_performance_mode has no effect on it"
        yield Metric("htp_execution_time", latency.known_ns / 1e3, "us", Provenance.VENDOR_MODEL, note, low, high)
    for name, unit in (
        ("vtcm_acquisition_time", "us"),
        ("power_up_time", "us"),
        ("rpc_time", "us"),
        ("yields", "count"),
    ):
        yield Metric(name, None, unit, None, ON_DEVICE)


def _utilisation(graphs: Sequence[GraphNodes]) -> Iterator[Metric]:
    lines = [graph.graph.timeline for graph in graphs]
    timelines = [line for line in lines if line is not None]
    for engine in (HVX, HMX, DMA, HLX):
        name = f"{engine.lower()}_utilization"
        if not timelines or len(timelines) != len(lines):
            if engine != HLX:
                yield Metric(name, None, "share", None, NO_MODEL)
        elif engine != HLX or _threads(timelines, HLX):
            busy, whole = (sum(values) for values in zip(*(_busy(line, engine) for line in timelines), strict=True))
            note = "mean of its threads" if engine in (HVX, HLX) else "share of the time in which it works"
            yield Metric(name, busy / whole if whole else None, "share", Provenance.VENDOR_MODEL, note)


def _threads(timelines: Sequence[Timeline], engine: str) -> int:
    return max(sum(lane.unit == engine for lane in line.lanes) for line in timelines)


def _busy(line: Timeline, engine: str) -> tuple[int, int]:
    """Cycles of work and cycles that there were."""
    work = line.work[(line.work["engine"] == ENGINES.index(engine)) & ~line.work["bookkeeping"]]
    if engine in (HVX, HLX):
        threads = max(_threads([line], engine), 1)
        return int((work["end"] - work["start"]).sum()), line.end * threads
    return merged(work["start"], work["end"]), line.end


def _traffic(graphs: Sequence[GraphNodes], memory: Sequence[MemoryTotal], latency: Latency | None) -> Iterator[Metric]:
    ddr = memory[1]
    yield Metric(
        "ddr_read", ddr.read_bytes, "bytes", Provenance.COMPILER_FACT, "inputs and weights, and intermediate fill"
    )
    yield Metric("ddr_write", ddr.write_bytes, "bytes", Provenance.COMPILER_FACT, "outputs, and intermediate spill")
    beside = sum((_traffic_by_kind(graph.graph) for graph in graphs), Counter[Traffic]())
    if again := beside[Traffic.AGAIN]:
        note = "inputs and weights a second time, to make room in VTCM meanwhile; in none of the vendor's counters"
        yield Metric("ddr_read_again", again, "bytes", Provenance.COMPILER_FACT, note)
    if direct := beside[Traffic.DIRECT]:
        note = "at least: intermediate tensors that lie in DDR; in none of the vendor's counters"
        yield Metric("ddr_direct", direct, "bytes", Provenance.COMPILER_FACT, note)
    moved = (ddr.read_bytes or 0) + (ddr.write_bytes or 0)
    if latency is None or not latency.known_ns:
        yield Metric("ddr_bandwidth", None, "MB/s", None, NO_MODEL)
    else:
        note = "bytes of the compiler's plan over the estimated time"
        yield Metric("ddr_bandwidth", moved * 1e3 / latency.known_ns, "MB/s", Provenance.VENDOR_MODEL, note)


def _vtcm(memory: Sequence[MemoryTotal]) -> Iterator[Metric]:
    vtcm = memory[0]
    yield Metric("vtcm_peak", vtcm.peak_bytes, "bytes", Provenance.COMPILER_FACT)
    yield Metric("vtcm_mean", vtcm.mean_bytes, "bytes", Provenance.COMPILER_FACT, "over time, or over the run list")
    yield Metric("vtcm_capacity", vtcm.capacity_bytes, "bytes", Provenance.COMPILER_FACT, "what the compiler may use")


def _spills(graphs: Sequence[GraphNodes]) -> Iterator[Metric]:
    """Intermediate results that did not fit VTCM."""
    for name, operation in (("intermediate_spill", "@Spill"), ("intermediate_fill", "@Fill")):
        size = sum(facts.moved[operation] for graph in graphs for facts in graph.facts.values())
        yield Metric(name, size, "bytes", Provenance.COMPILER_FACT)


def _fills(prepared: Sequence[Message | None]) -> Iterator[Metric]:
    """The vendor's division of the DDR traffic."""
    for event, name in _FILLS.items():
        size = whole_sum(None if message is None else message.value(event) for message in prepared)
        note = "includes weights" if name == "input_fill" else ""
        if size is None:
            yield Metric(name, None, "bytes", None, NO_MODEL)
        else:
            yield Metric(name, size, "bytes", Provenance.VENDOR_MODEL, note)


def _compilation(prepared: Sequence[Message | None]) -> Iterator[Metric]:
    from .importers.events import FINALIZE_TIME

    messages = [message for message in prepared if message is not None]
    compiled = whole_sum(message.value(FINALIZE_TIME) for message in messages)
    if compiled is not None:
        note = "time of the compiler on this machine, not of the model"
        yield Metric("compile_time", compiled, "us", Provenance.MEASURED, note)
    missing = known_sum(message.value(MISSING) for message in messages)
    if missing is not None:
        yield Metric("ops_without_cost", missing, "count", Provenance.VENDOR_MODEL, "the estimate leaves these out")
