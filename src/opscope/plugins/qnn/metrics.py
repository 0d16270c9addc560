"""The figures of a profile, each with its provenance; what only a device can tell says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.provenance import Provenance
from ...recording.recording import Metric
from ...recording.summary import LaneTotal, Latency, MemoryTotal, Share
from .compilation import CompiledGraph
from .details import Part
from .importers.events import Message
from .importers.timeline import DMA, ENGINES, HLX, HMX, HVX, Timeline
from .node_times import FOREGROUND, is_wait, merged
from .nodes import GraphNodes

CYCLES = "Simulated (Accelerator exec cycles)"
LOW, HIGH = (
    "Simulated (Accelerator exec cycles (lower estimate))",
    "Simulated (Accelerator exec cycles (upper estimate))",
)
MISSING = "Missing Ops (Number of Ops with no Costs associated)"
_FILLS = {"Input Fill": "input_fill", "Output Spill": "output_spill"}
BETWEEN = "dispatch and waits"
ON_DEVICE = "only a device can tell: import its profile"
NO_MODEL = "the vendor's performance model does not know this part"


def part_of(graph: CompiledGraph) -> Part:
    """The vendor's estimate of one graph."""
    message, timeline = graph.prepared, graph.timeline
    peak = graph.schematic.peak_vtcm_bytes
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
    low, high = [time.low_ns for time in times], [time.high_ns for time in times]
    return Latency(
        sum(time.known_ns for time in times),
        None if None in low else sum(value or 0 for value in low),
        None if None in high else sum(value or 0 for value in high),
        Provenance.VENDOR_MODEL,
    )


def lane_totals(graphs: Sequence[GraphNodes], whole_ns: int) -> tuple[LaneTotal, ...]:
    """Every thread over all graphs: busy + wait + idle = wall."""
    busy: dict[tuple[int, str], int] = {}
    wait: dict[tuple[int, str], int] = {}
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
        LaneTotal(0, core, name, ns, wait[core, name], max(0, whole_ns - ns - wait[core, name]))
        for (core, name), ns in sorted(busy.items(), key=lambda item: _lane_order(item[0]))
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


def _lane_order(lane: tuple[int, str]) -> tuple[int, int, str]:
    kinds = (FOREGROUND, HVX, HLX, HMX, DMA)
    place = next((number for number, kind in enumerate(kinds) if lane[1].startswith(kind)), len(kinds))
    return lane[0], place, lane[1]


def memory_totals(graphs: Sequence[GraphNodes], vtcm_bytes: int) -> tuple[MemoryTotal, ...]:
    """VTCM and DDR, by the compiler's own plan."""
    moved = [row for graph in graphs for row in graph.graph.schematic.moved]
    use = [graph.graph.schematic.occupancy() for graph in graphs]
    steps = sum(len(occupancy) for occupancy in use)
    mean = sum(float(occupancy.sum()) for occupancy in use) / steps if steps else None
    peak = max((int(occupancy.max(initial=0)) for occupancy in use), default=0)
    read, write = (sum(getattr(row, key) for row in moved) for key in ("vtcm_read", "vtcm_write"))
    dram = [sum(getattr(row, key) for row in moved) for key in ("dram_read", "dram_write")]
    return (
        MemoryTotal("VTCM", 0, 0, peak, mean, vtcm_bytes, read, write),
        MemoryTotal("DDR", 0, None, None, None, None, dram[0], dram[1]),
    )


def all_metrics(
    graphs: Sequence[GraphNodes], parts: Sequence[Part], memory: Sequence[MemoryTotal], *, on_cpu: int
) -> tuple[Metric, ...]:
    """The list of the seed first, then what goes beyond it."""
    latency = whole_latency(parts)
    return (
        *_times(latency, on_cpu),
        *_utilisation(graphs),
        *_traffic(memory, latency),
        *_vtcm(memory),
        *_spills(graphs),
        *_fills([graph.graph.prepared for graph in graphs]),
        *_compilation([graph.graph.prepared for graph in graphs]),
    )


def _times(latency: Latency | None, on_cpu: int) -> Iterator[Metric]:
    """Times that the vendor's tools name; those that the model does not cover are unknown, with the reason."""
    total = "the vendor's model covers the accelerator alone: no host, no RPC"
    if on_cpu:
        total += f"; and the time of nodes on the CPU ({on_cpu}) is unknown"
    yield Metric("total_inference_time", None, "us", None, total)
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
    return max(sum(name.startswith(f"{engine} ") for _, name in line.lanes) for line in timelines)


def _busy(line: Timeline, engine: str) -> tuple[int, int]:
    """Cycles of work and cycles that there were."""
    work = line.work[(line.work["engine"] == ENGINES.index(engine)) & ~line.work["bookkeeping"]]
    if engine in (HVX, HLX):
        threads = max(_threads([line], engine), 1)
        return int((work["end"] - work["start"]).sum()), line.end * threads
    return merged(work["start"], work["end"]), line.end


def _traffic(memory: Sequence[MemoryTotal], latency: Latency | None) -> Iterator[Metric]:
    ddr = memory[1]
    yield Metric("ddr_read", ddr.read_bytes, "bytes", Provenance.COMPILER_FACT)
    yield Metric("ddr_write", ddr.write_bytes, "bytes", Provenance.COMPILER_FACT)
    moved = (ddr.read_bytes or 0) + (ddr.write_bytes or 0)
    if latency is None or not latency.known_ns:
        yield Metric("ddr_bandwidth", None, "MB/s", None, NO_MODEL)
    else:
        note = "bytes of the compiler's plan over the estimated time"
        yield Metric("ddr_bandwidth", moved * 1e3 / latency.known_ns, "MB/s", Provenance.VENDOR_MODEL, note)


def _vtcm(memory: Sequence[MemoryTotal]) -> Iterator[Metric]:
    vtcm = memory[0]
    yield Metric("vtcm_peak", vtcm.peak_bytes, "bytes", Provenance.COMPILER_FACT)
    yield Metric("vtcm_mean", vtcm.mean_bytes, "bytes", Provenance.COMPILER_FACT, "over the steps of the run list")
    yield Metric("vtcm_capacity", vtcm.capacity_bytes, "bytes", Provenance.COMPILER_FACT, "what the compiler may use")


def _spills(graphs: Sequence[GraphNodes]) -> Iterator[Metric]:
    """Intermediate results that did not fit VTCM."""
    for name, operation in (("intermediate_spill", "@Spill"), ("intermediate_fill", "@Fill")):
        size = sum(facts.moved[operation] for graph in graphs for facts in graph.facts.values())
        yield Metric(name, size, "bytes", Provenance.COMPILER_FACT)


def _fills(prepared: Sequence[Message | None]) -> Iterator[Metric]:
    """The vendor's division of the DDR traffic."""
    for event, name in _FILLS.items():
        values = [message.value(event) for message in prepared if message is not None]
        known = [value for value in values if value is not None]
        complete = len(known) == len(prepared) and known
        yield Metric(
            name,
            sum(known) if complete else None,
            "bytes",
            Provenance.VENDOR_MODEL if complete else None,
            ("includes weights" if name == "input_fill" else "") if complete else NO_MODEL,
        )


def _compilation(prepared: Sequence[Message | None]) -> Iterator[Metric]:
    from .importers.events import FINALIZE_TIME

    times = [message.value(FINALIZE_TIME) for message in prepared if message is not None]
    if times and None not in times:
        note = "time of the compiler on this machine, not of the model"
        yield Metric("compile_time", sum(time or 0 for time in times), "us", Provenance.MEASURED, note)
    missing = [message.value(MISSING) for message in prepared if message is not None]
    known = [value for value in missing if value is not None]
    if known:
        yield Metric("ops_without_cost", sum(known), "count", Provenance.VENDOR_MODEL, "the estimate leaves these out")
