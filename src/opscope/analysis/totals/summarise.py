"""Trace, Program, Capture → Summary: every question asked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median_low

from ...core.meaning import Carries
from ...core.target_words import OUR_WORDS
from ...program.capture import Capture
from ...program.program import Program
from ...recording.run import MACS_PER_S, OUTER_BYTES_PER_S, Run, RunInfo
from ...recording.summary import DeviceSummary, Latency, Summary
from ...recording.trace import Trace
from ...recording.unknown import in_a_line, unknown_of
from ..run_analysis import RunAnalysis
from ..run_totals import wait_totals
from ..structure import structure_of
from .counters import with_counters
from .kinds import histogram, kind_rows
from .lanes import core_balance, lane_totals, occupancy_shares
from .memory import local_memory, outer_traffic, placements, residency, route_totals
from .ops import OpSums, producer_totals
from .threads import (
    active_rows,
    ddr_rows,
    doorbell_rows,
    inference_pcycles,
    lost_records,
    op_pmu_rows,
    pmu_rows,
    port_rows,
    thread_rows,
)
from .work import InferenceWork

_PORT_LEVEL, _OP_LEVEL, _OP_PMU_LEVEL = 50, 70, 100


def summarise(work: InferenceWork, captures: Mapping[int, Capture]) -> Summary:
    """Totals of one inference on all its devices; the latency is from the first start on any core to the last end.

    Breakdown and waits need dependencies, and so a Run: who makes one adds them (`run_totals.with_breakdown`).

    Args:
        captures: device → its stats buffer.
    """
    program, sums, groups = work.index.program, OpSums.of(work), structure_of(work.index.program.ops)
    windows = work.windows.values()
    latency_ns = max((end for _, end in windows), default=0) - min((start for start, _ in windows), default=0)
    return Summary(
        latency=Latency(latency_ns, None, None, work.trace.provenance),
        throughput_per_s=program.stats.batch_size * 1e9 / latency_ns if latency_ns else None,
        batch=program.stats.batch_size,
        lanes=lane_totals(work, captures),
        memory=(*local_memory(work, residency(work)), *outer_traffic(work)),
        occupancy=occupancy_shares(work),
        op_types=sums.by_type(),
        ops=sums.by_op(),
        layers=sums.by_label(groups.layers),
        blocks=sums.by_label(groups.blocks),
        routes=route_totals(work),
        producers=producer_totals(work),
        balance=core_balance(work),
        placement=placements(work),
        histogram=histogram(work),
    )


def _with_waits(totals: Summary, work: InferenceWork) -> Summary:
    """Totals of one inference that no Run is made of, with what its lanes wait for."""
    return replace(totals, waits=wait_totals(RunAnalysis(_run_of_inference(work, totals)).waits))


def _run_of_inference(work: InferenceWork, summary: Summary) -> Run:
    """One decoded inference as a Run: what is asked of every Run can be asked of it."""
    program, trace = work.index.program, work.trace
    info = RunInfo(
        command=(),
        created="",
        model=program.model,
        sha256=None,
        target=program.target,
        provenance=trace.provenance,
        network=program.name,
        devices=program.devices,
        cores=program.cores,
        batch=program.batch,
        clocks_hz={"core": program.clock_hz, "stats": program.stats_hz},
        inferences=(),
        limits=limits_of(program),
    )
    return Run(info, program.ops, work.index.table, trace, summary, bounds=program.bounds)


def limits_of(program: Program) -> dict[str, float]:
    """What the cores and devices of a program can do at the most."""
    rate = program.simulation.get("macs_per_cycle")
    limits = {} if rate is None else {MACS_PER_S: rate * program.clock_hz * program.cores * program.devices}
    read = [route.bytes_per_cycle for route in program.routes if route.carries is Carries.READ]
    return limits | ({OUTER_BYTES_PER_S: max(read) * program.clock_hz * program.devices} if read else {})


def summarise_device(
    work: InferenceWork, capture: Capture, *, network: str, totals: Summary | None = None
) -> DeviceSummary:
    """The tables of one stats buffer.

    Args:
        work: of that device alone.
        totals: of the same work, where they are known already.
    """
    program, whole = work.index.program, capture.level >= _OP_LEVEL
    if whole:
        totals = _with_waits(totals or summarise(work, {capture.device: capture}), work)
    counters = pmu_rows(program, capture)
    return DeviceSummary(
        network=network,
        device=capture.device,
        inference=capture.inference,
        level=capture.level,
        batch_size=capture.batch_size,
        stats_hz=capture.stats_hz,
        kinds=kind_rows(work, capture),
        threads=thread_rows(program, capture),
        ports=port_rows(capture),
        doorbells=doorbell_rows(capture),
        ddr=ddr_rows(program, capture),
        pmu=counters,
        active=active_rows(program, counters),
        op_pmu=op_pmu_rows(program, capture),
        inference_pcycles=inference_pcycles(capture),
        lost=lost_records(capture),
        totals=totals if whole else None,
        notes=missing(program, capture),
        words=program.words or OUR_WORDS,
    )


def timeline(work: InferenceWork) -> Trace:
    """The trace with its counters."""
    return with_counters(work, residency(work))


def missing(program: Program, capture: Capture) -> tuple[str, ...]:
    """What the stats level leaves out, and the flag that adds it."""
    level, stats = capture.level, program.stats
    unknown = unknown_of(program.ops)
    notes = [f"times are lower bounds: {in_a_line(unknown, len(program.ops))}"] if unknown else []
    if level < _PORT_LEVEL:
        notes.append(
            "no waits on I/O ports and no doorbells at this stats level; compile with --stats-level 50 or more"
        )
    if level < _OP_LEVEL:
        notes.append("no operator cycle counts at this stats level; compile with --stats-level 70 or more")
    if not stats.ddr:
        notes.append(f"no {program.outer_memory} traffic counters; compile with --ddr-stats")
    if not stats.events:
        notes.append("no PMU counters; compile with --pmu-recipe or --pmu-events")
    elif level < _OP_PMU_LEVEL:
        notes.append("no PMU counters per operator; compile with --stats-level 100")
    if lost_records(capture):
        notes.append(f"{lost_records(capture)} records did not fit the stats buffer; totals leave them out")
    return tuple(notes)


def typical(summaries: list[Summary]) -> Summary:
    """The inference of median latency, with the range of all."""
    times = [summary.latency.known_ns for summary in summaries]
    chosen = summaries[times.index(median_low(times))]
    several = len(times) > 1
    latency = replace(chosen.latency, low_ns=min(times) if several else None, high_ns=max(times) if several else None)
    return replace(chosen, latency=latency, samples_ns=tuple(times) if several else ())
