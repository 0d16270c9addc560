"""Small Runs for the pages, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opscope.core.meaning import Carries, Direction, Does, LaneRole
from opscope.program.program import COMMAND, MemoryInfo, Operand, OpInfo
from opscope.recording.finding import (
    UPPER_BOUND,
    Coverage,
    Finding,
    Findings,
    OpSlack,
    PathStep,
    Prediction,
    RooflineOp,
    Trial,
)
from opscope.recording.run import CommandTable, Run, RunInfo, RunRoute
from opscope.recording.summary import LaneTotal, Latency, MemoryTotal, OpTotal, Placement, RouteTotal, Share, Summary
from opscope.recording.trace import COUNTER, EDGE, NONE, SPAN, CounterTrack, Lane, SpanKind, Trace

OPS = ("/layer.0/query/MatMul", "/layer.0/Softmax", "/layer.1/query/MatMul", "/layer.1/Softmax")
MATMUL_NS, SOFTMAX_NS = 40_000, 25_000


def small_run(names: Sequence[str] = OPS) -> Run:
    """Four ops on two engines of one core: a matrix engine and a vector engine that waits for it."""
    ops = tuple(OpInfo(name, "MatMul" if i % 2 == 0 else "Softmax", "", f"node {i}") for i, name in enumerate(names))
    return Run(_info(), ops, _commands(ops), _trace(len(ops)), _summary(ops))


def _info() -> RunInfo:
    return RunInfo(
        command=("opscope", "run", "<b>"),
        created="2020-01-01T00:00:00+00:00",
        model="model.onnx",
        sha256="ab" * 32,
        target="hand-made",
        provenance="simulated",
        network="small",
        devices=1,
        cores=1,
        batch=2,
        clocks_hz={"core": 1e9},
        inferences=(0,),
        options={"level": 70},
        limits={"macs_per_s": 1e12, "outer_bytes_per_s": 1e10},
    )


def _commands(ops: tuple[OpInfo, ...]) -> CommandTable:
    """One command per op, and one transfer before the first; every op reads what the one before it wrote."""
    count = len(ops) + 1
    rows = np.zeros(count, COMMAND)
    rows["op"] = [0, *range(len(ops))]
    rows["group"] = [2, *(i % 2 for i in range(len(ops)))]
    rows["route"] = [0, *[-1] * len(ops)]
    rows["kind"] = rows["group"]
    rows["detail"] = np.arange(count)
    rows["cycles"], rows["macs"] = 1000, np.where(rows["group"] == 0, 5_000_000, 0)
    rows["moved_bytes"] = np.where(rows["route"] == 0, 65_536, 0)
    rows["out_bytes"], rows["local_bytes"] = 4096, 4096
    rows["local_address"] = np.arange(count) * 4096
    rows["does"] = [Does.MOVE, *[Does.COMPUTE] * len(ops)]
    made = (
        (
            Operand(Direction.OUT, "Dest", f"tensor {i}", 1, "f16", (4, 4), 4096),
            Operand(Direction.IN, "Src0", f"tensor {i - 1}", 1, "f16", (4, 4), 4096),
        )
        for i in range(len(ops))
    )
    operands = ((Operand(Direction.IN, "Src", "weight", 0, "f16", (4, 4)),), *made)
    names = ("load", *(op.name[:50] for op in ops))
    blank = ("",) * count
    return CommandTable(
        rows,
        ("matrix", "vector", "DMA"),
        (RunRoute("DDR read", Carries.READ, "DDR"),),
        ("product", "softmax", "copy"),
        names,
        ("DDR", *["VTCM"] * len(ops)),
        blank,
        blank,
        operands,
        blank,
        (MemoryInfo("DDR", is_outer=True), MemoryInfo("VTCM", is_outer=False)),
    )


def _trace(ops: int) -> Trace:
    transfer, at_work, wait, phase = SpanKind.TRANSFER, SpanKind.OP, SpanKind.WAIT, SpanKind.PHASE
    spans = [(2, transfer, Does.MOVE, 0, 0, 0, 0, 0, 10_000, 5, 100, NONE, 2)]
    now = 10_000
    for op in range(ops):
        end = now + (MATMUL_NS if op % 2 == 0 else SOFTMAX_NS)
        spans.append((op % 2, at_work, Does.COMPUTE, NONE, 0, op, op + 1, now, end, 5, 100, NONE, op % 2))
        spans.append((1 - op % 2, wait, Does.SYNC, NONE, 0, NONE, NONE, now, end, 5, 100, op + 1, 3))
        now = end
    spans.append((3, phase, Does.UNKNOWN, NONE, 0, NONE, NONE, 0, now, 5, 100, NONE, 4))
    edges = np.array([(i, i + 1, i > 0) for i in range(ops)], EDGE)
    samples = np.array([(0, 0, 0.0), (0, 10_000, 4096.0), (0, 50_000, 8192.0), (0, now, 0.0)], COUNTER)
    lanes = (
        Lane(0, 0, "matrix", role=LaneRole.ENGINE),
        Lane(0, 0, "vector", role=LaneRole.ENGINE),
        Lane(0, 0, "DMA DMA DDR read", role=LaneRole.TRANSFER),
        Lane(0, NONE, "Execution", role=LaneRole.EXECUTION),
    )
    return Trace(
        lanes,
        ("product", "softmax", "copy", "sync", "whole"),
        np.array([(*span, NONE) for span in spans], SPAN),
        edges,
        (CounterTrack(0, 0, "VTCM in use", "bytes"),),
        samples,
        "simulated",
    )


def _summary(ops: tuple[OpInfo, ...]) -> Summary:
    times = [MATMUL_NS if op.type == "MatMul" else SOFTMAX_NS for op in ops]
    whole = sum(times)
    rows = tuple(
        OpTotal(
            op.name,
            op.type,
            ns,
            ns,
            0,
            ns / whole,
            1,
            4096,
            65_536 if i == 0 else 0,
            5_000_000 if op.type == "MatMul" else 0,
            "matrix" if op.type == "MatMul" else "vector",
            "local",
            op=i,
            does=Does.COMPUTE.label,
        )
        for i, (op, ns) in enumerate(zip(ops, times, strict=True))
    )
    unknown = OpTotal("/folded/Reshape", "Reshape", None, None, None, None, None, None, None, None, "", "")
    latency = 10_000 + whole
    return Summary(
        latency=Latency(latency, latency - 5_000, latency + 5_000, "simulated"),
        throughput_per_s=14285.7,
        batch=2,
        lanes=(
            LaneTotal(0, 0, "matrix", 80_000, 50_000, 10_000, 0),
            LaneTotal(0, 0, "vector", 50_000, 80_000, 10_000, 0),
        ),
        memory=(
            MemoryTotal("VTCM", 0, 0, 8192, 4000.0, 65_536, None, None),
            MemoryTotal("DDR", 0, None, None, None, None, 65_536, 0),
        ),
        breakdown=(Share("compute", float(whole), whole / latency), Share("memory", 1e4, 1e4 / latency)),
        ops=(*rows, unknown),
        op_types=rows[:2],
        layers=rows[:2],
        routes=(RouteTotal(0, None, "DDR read", 1, 65_536, 10_000, 1),),
        placement=(Placement("product", "matrix", 1, 40_000, 1, 40_000, "DDR"),),
        samples_ns=(latency, latency + 10),
    )


def small_findings(run: Run) -> Findings:
    """The second wait on the vector engine is to blame; the critical path is all the work."""
    spans = run.trace.spans
    work = [i for i in range(len(spans)) if spans["kind"][i] in (SpanKind.OP, SpanKind.TRANSFER)]
    path = tuple(
        PathStep(
            int(spans["start_ns"][i]), int(spans["end_ns"][i]), i, run.ops[spans["op"][i]].name, "compute", "start"
        )
        for i in work
    )
    waits = tuple(i for i in range(len(spans)) if spans["kind"][i] == SpanKind.WAIT)
    latency = run.summary.latency.known_ns
    found = Finding(
        "waiting",
        "The vector engine waits for the matrix engine",
        "80 of 140 us.",
        (run.ops[0].name,),
        80_000,
        0.57,
        "Use both at once.",
        Prediction(30_000, latency - 30_000, UPPER_BOUND),
        waits[1:2],
    )
    return Findings(
        "compute",
        (Share("compute", 1e5, 0.7), Share("wait", 4e4, 0.3)),
        latency,
        "simulated",
        (found,),
        path,
        (OpSlack(run.ops[0].name, 0, 0, MATMUL_NS),),
        (
            RooflineOp(run.ops[0].name, 5_000_000, 65_536, 76.3, 1.25e11, 7.6e11, 5000, MATMUL_NS),
            RooflineOp(run.ops[1].name, 0, 0, None, None, None, None, SOFTMAX_NS),
        ),
        Coverage(1.0, 0, ("/folded/Reshape",)),
        trials=(Trial("cores=4", latency // 2, 2.0),),
    )
