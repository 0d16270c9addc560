"""Recording → Run: the only way in which a Run is made, whatever the source; what it does not tell stays unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.columns import Numbers
from ..core.meaning import LaneRole
from ..core.provenance import in_words
from ..core.sums import whole_sum
from ..graph.kinds import what_kind_does
from ..program.program import COMMAND, NO_OP, NO_ROUTE, Detail, OpCycles, OpInfo
from .classify import with_meaning
from .recording import CLOCK, THROUGHPUT, OpRecord, Placed, Recording
from .run import CommandTable, Run, RunInfo
from .summary import DeviceSummary, LaneTotal, Latency, OpTotal, Summary
from .trace import NONE, Lane, SpanKind, Trace, nested_lanes

UNKNOWN = "unknown"


def to_run(recording: Recording, *, command: Sequence[str], created: str, sha256: str | None) -> Run:
    """The Run that a recording tells of."""
    trace = recording.trace
    if len(trace.edges):
        trace = replace(trace, edges=trace.edges[np.argsort(trace.edges["target"], kind="stable")])
    ops = tuple(_op_info(op) for op in recording.ops)
    summary = withheld(recording.totals or _summary(recording), ops)
    told = recording.totals is not None
    unplaced = [number for number, op in enumerate(recording.ops) if not told and not op.tells_who_runs_it]
    if recording.language_model is not None:
        summary = replace(summary, language_model=recording.language_model)
    run = Run(
        info=_info(recording, summary, command=tuple(command), created=created, sha256=sha256),
        ops=ops,
        commands=recording.commands or _commands(recording),
        trace=trace,
        summary=summary,
        graph=recording.graph,
        resources=recording.resources,
        bounds=recording.bounds,
    )
    return with_meaning(run, unplaced)


def _info(
    recording: Recording, summary: Summary, *, command: tuple[str, ...], created: str, sha256: str | None
) -> RunInfo:
    """What the source says of itself; what it does not say is read off its lanes, or is unknown.

    Devices and cores are at least as many as lanes name, and one where none is named.
    """
    clock = recording.value(CLOCK)
    lanes = recording.trace.lanes
    return RunInfo(
        command=command,
        created=created,
        model=recording.model or UNKNOWN,
        sha256=sha256,
        target=recording.target or UNKNOWN,
        provenance=recording.provenance,
        basis=recording.basis,
        network=recording.network or recording.model or recording.maker,
        devices=recording.devices or max((lane.device for lane in lanes), default=0) + 1 or 1,
        cores=recording.cores or max((lane.core for lane in lanes), default=0) + 1 or 1,
        batch=_batch(recording),
        clocks_hz=recording.clocks_hz or ({} if clock is None else {"core": clock}),
        inferences=_inferences(recording),
        options=_options(recording),
        limits=recording.limits,
        classified=tuple(recording.classified),
        classified_rows=recording.classified,
        words=recording.words,
        caveats=(*recording.caveats, *_caveats(recording, summary)),
    )


def _batch(recording: Recording) -> int | None:
    batch = recording.batch or recording.value("batch")
    return round(batch) if batch else None


def _inferences(recording: Recording) -> tuple[int, ...]:
    if recording.numbers is not None:
        return recording.numbers
    return tuple(int(number) for number in np.unique(recording.trace.spans["inference"]) if number != NONE)


def _options(recording: Recording) -> dict[str, str | int | float | bool]:
    """Where it comes from, then what the user chose."""
    if recording.source:
        found = {"imported_as": recording.maker, "imported_from": recording.source, "tool": recording.tool}
    else:
        found = {"backend": recording.maker}
    return found | {name: value for name, value in recording.options.items() if value is not None}


def _caveats(recording: Recording, summary: Summary) -> Iterator[str]:
    trace = recording.trace
    if recording.basis:
        yield f"times are {in_words(recording.provenance, recording.basis)}"
    others = [lane.provenance for lane, own in zip(trace.lanes, trace.own_lanes, strict=True) if not own]
    if others:
        yield f"lanes marked ({'), ('.join(filter(None, dict.fromkeys(others)))}) are in no total"
    if not recording.lanes and recording.totals is None and summary.lanes and recording.inferences != 1:
        several = recording.inferences is not None
        rounds = f"{recording.inferences} inferences" if several else "inferences are not told apart"
        yield f"totals of lanes are of the whole timeline: {rounds}"


def _op_info(op: OpRecord) -> OpInfo:
    """Ops that do the work of others of the model say so: by that they are found in runs where those run alone."""
    place = ", ".join(filter(None, (op.location, *op.covers)))
    return OpInfo(op.name, op.type, op.kind, place, op.unknown, op.module, op.line)


def _commands(recording: Recording) -> CommandTable:
    """As many as the edges of a timeline name; without a timeline, one per op that a model of a compiler tells of."""
    trace, ops = recording.trace, recording.ops
    if not len(trace.spans) and not len(trace.edges) and any(op.resource_cycles for op in ops):
        details = [Detail(op.name, "", "", "", (), "") for op in ops]
        return CommandTable.from_details(_one_per_op(ops), details, op_cycles=tuple(_op_cycles(ops)))
    ends = [trace.edges[key].astype(np.int64) for key in ("source", "target")]
    count = int(max(end.max(initial=NONE) for end in ends)) + 1
    rows = np.zeros(count, COMMAND)
    rows["op"], rows["route"] = NO_OP, NO_ROUTE
    named = trace.spans[(trace.spans["command"] >= 0) & (trace.spans["command"] < count)]
    rows["op"][named["command"]] = named["op"]
    return CommandTable.from_details(rows, ())


def _op_cycles(ops: Sequence[OpRecord]) -> Iterator[OpCycles]:
    for number, op in enumerate(ops):
        for part in op.resource_cycles:
            yield OpCycles(number, part.resource, part.is_memory, part.cycles)


def _one_per_op(ops: Sequence[OpRecord]) -> npt.NDArray[np.void]:
    rows = np.zeros(len(ops), COMMAND)
    rows["op"] = rows["detail"] = rows["ordinal"] = np.arange(len(ops))
    rows["route"] = NO_ROUTE
    rows["cycles"] = [min(op.cycles or 0, np.iinfo(np.uint32).max) for op in ops]
    rows["macs"] = [op.macs or 0 for op in ops]
    return rows


def _summary(recording: Recording) -> Summary:
    latency = recording.latency or Latency(recording.latency_ns, None, None, recording.provenance)
    rate = recording.value(THROUGHPUT)
    if rate is None and recording.batch and latency.value_ns:
        rate = recording.batch * 1e9 / latency.value_ns
    return Summary(
        latency=latency,
        throughput_per_s=rate,
        batch=_batch(recording),
        lanes=recording.lanes or lane_totals(recording.trace) or _lanes_of_tables(recording.tables),
        memory=recording.memory,
        energy=recording.energy,
        ops=op_totals(recording.ops),
        host=recording.host,
        samples_ns=recording.samples_ns,
    )


def op_totals(ops: Sequence[OpRecord]) -> tuple[OpTotal, ...]:
    """Every op, costliest first; what the source does not tell is unknown."""
    work = [sum(op.busy_cycles.values()) if op.busy_cycles else None for op in ops]  # of all engines
    cycles = sum(busy or 0 for busy in work)
    whole = sum(op.time_ns or 0 for op in ops)
    rows = [
        OpTotal(
            name=op.name,
            type=op.type,
            wall_ns=op.time_ns,
            busy_ns=op.time_ns,
            wait_ns=op.wait_ns,
            share=_share(work[number], cycles) if cycles else _share(op.time_ns, whole),
            commands=None if op.calls is None else round(op.calls),
            out_bytes=op.out_bytes,
            moved_bytes=op.outer_bytes or whole_sum((op.outer_read_bytes, op.outer_write_bytes)),
            macs=op.macs,
            engine=op.engines[0] if op.engines else "",
            placed=op.placed,
            reason=op.reason,
            op=number,
            does=op.does.label,
            on_cpu=op.placed is Placed.CPU or bool(op.on_cpu),
            kernel=op.kernel,
            shape=op.shape,
            covers=op.covers,
            vector_bytes=op.vector_bytes,
            threads=op.threads,
            engine_threads=op.engine_threads,
        )
        for number, op in enumerate(ops)
    ]
    return tuple(sorted(rows, key=lambda row: -(row.busy_ns or 0)))


def _share(part: int | None, whole: int) -> float | None:
    return part / whole if part is not None and whole else None


def program_ops(ops: Sequence[OpInfo], totals: Summary) -> tuple[OpRecord, ...]:
    """Ops of a program, in its order, with what the totals of its run say of them."""
    known = {total.op: total for total in totals.ops}
    records = (
        OpRecord(op.name, op.type, op.kind, op.location, unknown=op.unknown, module=op.module, line=op.line)
        for op in ops
    )
    return tuple(_with_total(record, known.get(number)) for number, record in enumerate(records))


def _with_total(op: OpRecord, total: OpTotal | None) -> OpRecord:
    if total is None:
        return op
    return replace(
        op,
        reason=total.reason,
        engines=(total.engine,) if total.engine else (),
        calls=total.commands,
        time_ns=total.wall_ns,
        wait_ns=total.wait_ns,
        out_bytes=total.out_bytes,
        macs=total.macs,
    )


def lane_totals(trace: Trace, *, named_by_engine: bool = False) -> tuple[LaneTotal, ...]:
    """Busy, wait and idle from the first start to the last end of what the file is about.

    Spans of a lane do not overlap. A file without a single wait does not tell them. Lanes that only mark a part of the
    run, or hold what the calls of another lane consist of, are no lanes at work.

    Args:
        named_by_engine: Every lane has the name of its engine, and nothing else in it.
    """
    own = trace.own_spans
    lane, kind, start, end = (own[key].copy() for key in ("lane", "kind", "start_ns", "end_ns"))
    length, count, waits = end - start, len(trace.lanes), kind == SpanKind.WAIT
    total, wait = (np.bincount(lane, weights, minlength=count) for weights in (length, length * waits))
    spans, marks = (np.bincount(lane, weights, minlength=count) for weights in (None, kind == SpanKind.PHASE))
    only_marks = (spans > 0) & (marks == spans)
    wall, tells_waits = int(end.max() - start.min()) if len(end) else 0, bool(waits.any())
    left_out = _inside_others(trace, lane, start, end) | set(np.flatnonzero(~trace.own_lanes | only_marks).tolist())
    return tuple(
        LaneTotal(
            row.device,
            row.core,
            row.name,
            round(ns - waited),
            round(waited) if tells_waits else None,
            wall - round(ns - waited) - round(waited),
            engine=row.name if named_by_engine else _engine(row, trace.lanes),
        )
        for number, (row, ns, waited) in enumerate(zip(trace.lanes, total.tolist(), wait.tolist(), strict=True))
        if number not in left_out
    )


def _engine(lane: Lane, lanes: Sequence[Lane]) -> str:
    """The owner of a thread; a lane with the number of its thread apart bears the name of its engine. Else not told."""
    if lane.role is LaneRole.THREAD and lane.owner != NONE:
        return lanes[lane.owner].name
    return lane.name if lane.thread != NONE else ""


def _inside_others(trace: Trace, lane: Numbers, start: Numbers, end: Numbers) -> set[int]:
    """Lanes of deeper calls all of which lie in calls of the lane above; else they ran beside those."""
    deeper = nested_lanes(trace.lanes)
    if not deeper:
        return set()
    order = np.argsort(lane.astype(np.uint16) if len(trace.lanes) < 1 << 16 else lane, kind="stable")
    first = np.searchsorted(lane[order], np.arange(len(trace.lanes) + 1))
    found = set()
    for number, owner in deeper.items():
        own, outer = (order[first[n] : first[n + 1]] for n in (number, owner))
        if len(own) and len(outer):
            outer = outer[np.argsort(start[outer], kind="stable")]
            place = np.searchsorted(start[outer], start[own], side="right") - 1
            if bool(((place >= 0) & (end[outer[place]] >= end[own])).all()):
                found.add(number)
    return found


def _lanes_of_tables(tables: Sequence[DeviceSummary]) -> tuple[LaneTotal, ...]:
    """Of a file that says how busy threads were, and not when."""
    rows = []
    for table in tables:
        for thread in table.threads:
            if thread.utilization is not None:
                wall = round(thread.ucycles * 1e9 / table.stats_hz)
                busy = min(round(wall * thread.utilization), wall)
                idle, engine = wall - busy, thread.group
                rows.append(LaneTotal(table.device or 0, thread.core, engine, busy, None, idle, engine=engine))
    return tuple(rows)


def withheld(summary: Summary, ops: Sequence[OpInfo]) -> Summary:
    """Totals of a run: with an op of unknown cost among them, what the known ones take is the least of it.

    Latency becomes a range without an end, throughput and energy are not known, and neither is any time of the op.
    """
    unknown = {number: op for number, op in enumerate(ops) if op.unknown}
    if not unknown:
        return summary
    kept = [row for row in summary.ops if row.op not in unknown]
    return replace(
        summary,
        latency=_at_least(summary.latency),
        throughput_per_s=None,
        energy=None,
        samples_ns=(),
        ops=(*kept, *(_without_time(number, op, summary) for number, op in unknown.items())),
    )


def _at_least(latency: Latency) -> Latency:
    known = [ns for ns in (latency.low_ns, latency.value_ns) if ns is not None]
    return replace(latency, value_ns=None, low_ns=min(known, default=None), high_ns=None)


def _without_time(number: int, op: OpInfo, summary: Summary) -> OpTotal:
    """Where it was placed may be known all the same."""
    found = next((row for row in summary.ops if row.op == number), None)
    engine, placed = ("", "") if found is None else (found.engine, found.placed)
    rest = (None,) * 8
    total = OpTotal(op.name, op.type, *rest, engine=engine, placed=placed, reason=op.unknown, op=number)
    does = what_kind_does(op.kind).label
    return replace(total, does=does) if found is None else replace(total, does=found.does, on_cpu=found.on_cpu)
