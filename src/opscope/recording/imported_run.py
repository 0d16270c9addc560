"""Imported → Run: the same folder that a profile of our own leaves, with what the file does not tell left unknown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..program.program import COMMAND, NO_OP, NO_ROUTE, Detail, OpCycles, OpInfo, Program, bare_program
from .classify import is_memory, with_meaning
from .imported import CLOCK, LATENCY, Imported, ImportedOp, Metric
from .run import CommandTable, Run, RunInfo
from .summary import DeviceSummary, LaneTotal, Latency, OpTotal, Summary
from .trace import NONE, SpanKind, Trace, nested_lanes

UNKNOWN = "unknown"
Numbers = npt.NDArray[np.int64]


def as_run(imported: Imported, *, command: Sequence[str], created: str) -> tuple[Run, Program]:
    """The Run, and a Program that says only what its folder needs: ops, and which command waits for which."""
    trace = imported.trace
    program, summary = _program(imported), _summary(imported)
    clock = imported.metric(CLOCK)
    info = RunInfo(
        command=tuple(command),
        created=created,
        model=imported.model or UNKNOWN,
        sha256=None,
        target=imported.target or UNKNOWN,
        provenance=imported.provenance,
        network=program.name,
        devices=program.devices,
        cores=program.cores,
        batch=_batch(imported),
        clocks_hz={} if clock is None else {"core": clock},
        inferences=tuple(int(n) for n in np.unique(trace.spans["inference"]) if n != NONE),
        options={"imported_as": imported.format, "imported_from": imported.source, "tool": imported.tool},
        caveats=(*imported.caveats, *_caveats(imported, lanes=bool(summary.lanes))),
    )
    return with_meaning(Run(info, program.ops, CommandTable.of(program), trace, summary), program)


def _caveats(imported: Imported, *, lanes: bool) -> Iterator[str]:
    trace = imported.trace
    others = dict.fromkeys(lane.provenance for lane, own in zip(trace.lanes, trace.own_lanes, strict=True) if not own)
    if others:
        yield f"lanes marked ({'), ('.join(others)}) are in no total"
    if lanes and imported.inferences != 1:
        rounds = "inferences are not told apart" if imported.inferences is None else f"{imported.inferences} inferences"
        yield f"totals of lanes are of the whole timeline: {rounds}"


def _batch(imported: Imported) -> int | None:
    batch = imported.metric("batch")
    return round(batch) if batch else None


def _program(imported: Imported) -> Program:
    trace = imported.trace
    sources, targets = trace.edges["source"].astype(np.int64), trace.edges["target"].astype(np.int64)
    count = int(max(sources.max(initial=NONE), targets.max(initial=NONE))) + 1
    commands = np.zeros(count, COMMAND)
    commands["op"], commands["route"] = NO_OP, NO_ROUTE
    named = trace.spans[(trace.spans["command"] >= 0) & (trace.spans["command"] < count)]
    commands["op"][named["command"]] = named["op"]
    details = () if count or len(trace.spans) else _resource_details(imported.ops)
    if details:
        commands = _one_per_op(imported.ops)
    program = bare_program(
        imported.model or imported.format,
        imported.target or UNKNOWN,
        [OpInfo(op.name, op.type or "", "", ", ".join(op.origins)) for op in imported.ops],
        devices=max((lane.device for lane in trace.lanes), default=0) + 1 or 1,
        cores=max((lane.core for lane in trace.lanes), default=0) + 1 or 1,
        batch=_batch(imported) or 1,
        clock_hz=imported.metric(CLOCK) or 0.0,
        commands=commands,
        edges=(sources, targets),
    )
    if not details:
        return program
    cycles = (
        OpCycles(number, name, is_memory(name), value)
        for number, op in enumerate(imported.ops)
        for name, value in op.resource_cycles
    )
    return replace(program, details=details, op_cycles=tuple(cycles))


def _resource_details(ops: Sequence[ImportedOp]) -> tuple[Detail, ...]:
    """What each op would take on every resource alone, as a model of a compiler has it; empty: the file has none."""
    words = [", ".join(f"{name}={cycles}" for name, cycles in op.resource_cycles) for op in ops]
    return (
        tuple(Detail(op.name, "", "", "", (), text) for op, text in zip(ops, words, strict=True)) if any(words) else ()
    )


def _one_per_op(ops: Sequence[ImportedOp]) -> npt.NDArray[np.void]:
    commands = np.zeros(len(ops), COMMAND)
    commands["op"] = commands["detail"] = commands["ordinal"] = np.arange(len(ops))
    commands["route"] = NO_ROUTE
    commands["cycles"] = [min(op.cycles or 0, np.iinfo(np.uint32).max) for op in ops]
    commands["macs"] = [op.macs or 0 for op in ops]
    return commands


def _summary(imported: Imported) -> Summary:
    return Summary(
        latency=Latency(imported.latency_ns, None, None, imported.provenance),
        throughput_per_s=imported.metric("throughput"),
        batch=_batch(imported),
        lanes=lane_totals(imported.trace) or _lanes_of_tables(imported.tables),
        ops=op_totals(imported),
        host=imported.host,
    )


def op_totals(imported: Imported) -> tuple[OpTotal, ...]:
    """Every op as the file has it, costliest first; what the file does not tell is unknown."""
    whole = sum(op.time_ns or 0 for op in imported.ops)
    rows = [
        OpTotal(
            name=op.name,
            type=op.type or "",
            wall_ns=op.time_ns,
            busy_ns=op.time_ns,
            wait_ns=None,
            share=op.time_ns / whole if op.time_ns is not None and whole else None,
            commands=None if op.calls is None else round(op.calls),
            out_bytes=op.out_bytes,
            moved_bytes=None,
            macs=op.macs,
            engine=op.engine or "",
            placed="",
            op=number,
        )
        for number, op in enumerate(imported.ops)
    ]
    return tuple(sorted(rows, key=lambda row: -(row.busy_ns or 0)))


def lane_totals(trace: Trace) -> tuple[LaneTotal, ...]:
    """Busy, wait and idle from the first start to the last end of what the file is about.

    Spans of a lane do not overlap. A file without a single wait does not tell them. Lanes that only mark a part of the
    run, or hold what the calls of another lane consist of, are no lanes at work.
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
            round(ns - stood),
            round(stood) if tells_waits else None,
            wall - round(ns - stood) - round(stood),
        )
        for number, (row, ns, stood) in enumerate(zip(trace.lanes, total.tolist(), wait.tolist(), strict=True))
        if number not in left_out
    )


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
                rows.append(LaneTotal(table.device or 0, thread.core, thread.group, busy, None, wall - busy))
    return tuple(rows)


def from_run(run: Run, *, source: str) -> Imported:
    """What `as_run` would take: of a Run that was decoded, not imported."""
    length = run.trace.spans["end_ns"] - run.trace.spans["start_ns"]
    at_work = (run.trace.spans["kind"] == SpanKind.OP) & (run.trace.spans["op"] != NONE)
    time = np.bincount(run.trace.spans["op"][at_work], length[at_work], minlength=len(run.ops)).tolist()
    rounds = max(len(run.info.inferences), 1)
    ops = tuple(
        ImportedOp(op.name, type=op.type or None, time_ns=round(ns / rounds))
        for op, ns in zip(run.ops, time, strict=True)
    )
    return Imported(
        format="capture",
        source=source,
        tool="opscope",
        provenance=run.trace.provenance,
        trace=run.trace,
        ops=ops,
        metrics=(Metric(LATENCY, run.summary.latency.known_ns, "ns"),),
        target=run.info.target,
        model=run.info.model,
        inferences=len(run.info.inferences) or None,
        notes=("times of ops are of all lanes together",),
    )
