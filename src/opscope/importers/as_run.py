"""Imported → Run: the same folder that a profile of our own leaves, with what the file does not tell left unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..imported import CLOCK, LATENCY, Imported, ImportedOp, Metric
from ..program import COMMAND, NO_OP, NO_ROUTE, Detail, OpInfo, Program, bare_program
from ..run import CommandTable, Run, RunInfo
from ..summary import LaneTotal, Latency, OpTotal, Summary
from ..trace import NONE, SpanKind, Trace

UNKNOWN = "unknown"


def as_run(imported: Imported, *, command: Sequence[str], created: str) -> tuple[Run, Program]:
    """The Run, and a Program that says only what its folder needs: ops, and which command waits for which."""
    trace = imported.trace
    program = _program(imported)
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
        batch=program.batch,
        clocks_hz={} if clock is None else {"core": clock},
        inferences=tuple(int(n) for n in np.unique(trace.spans["inference"]) if n != NONE),
        options={"imported_as": imported.format, "imported_from": imported.source, "tool": imported.tool},
    )
    return Run(info, program.ops, CommandTable.of(program), trace, _summary(imported)), program


def _program(imported: Imported) -> Program:
    trace, batch = imported.trace, imported.metric("batch")
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
        imported.model or imported.format, imported.target or UNKNOWN,
        [OpInfo(op.name, op.type or "", "", ", ".join(op.origins)) for op in imported.ops],
        devices=max((lane.device for lane in trace.lanes), default=0) + 1 or 1,
        cores=max((lane.core for lane in trace.lanes), default=0) + 1 or 1,
        batch=round(batch) if batch else 1, clock_hz=imported.metric(CLOCK) or 0.0,
        commands=commands, edges=(sources, targets),
    )  # fmt: skip
    return replace(program, details=details) if details else program


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
    latency, batch = imported.latency_ns, imported.metric("batch")
    return Summary(
        latency=Latency(latency, None, None, imported.provenance),
        throughput_per_s=imported.metric("throughput"),
        batch=round(batch) if batch else 1,
        lanes=lane_totals(imported.trace),
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
        )
        for op in imported.ops
    ]
    return tuple(sorted(rows, key=lambda row: -(row.busy_ns or 0)))


def lane_totals(trace: Trace) -> tuple[LaneTotal, ...]:
    """Busy and idle from the first start to the last end of the whole trace; spans of a lane do not overlap."""
    length = trace.spans["end_ns"] - trace.spans["start_ns"]
    busy = np.bincount(trace.spans["lane"], length, minlength=len(trace.lanes)).tolist()
    wall = int(trace.spans["end_ns"].max(initial=0) - trace.spans["start_ns"].min(initial=0))
    return tuple(
        LaneTotal(lane.device, lane.core, lane.name, round(ns), 0, wall - round(ns), 0)
        for lane, ns in zip(trace.lanes, busy, strict=True)
    )


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
        format="capture", source=source, tool="opscope", provenance=run.trace.provenance, trace=run.trace, ops=ops,
        metrics=(Metric(LATENCY, run.summary.latency.known_ns, "ns"),), target=run.info.target, model=run.info.model,
        inferences=len(run.info.inferences) or None, notes=("times of ops are of all lanes together",),
    )  # fmt: skip
