"""Runs and figures by hand for comparisons: the least that a test needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from opscope.gate.bootstrap import spread_of
from opscope.gate.figures import BYTES, NS, Figure, Figures, OpFigure, Spread
from opscope.program.program import OpInfo
from opscope.recording.run import RunInfo
from opscope.recording.summary import LaneTotal, Latency, MemoryTotal, OpTotal, Summary
from opscope.recording.trace import NONE, OpSpans, SpanKind

LABELS = {
    "type": lambda run: [op.type for op in run.ops],
    "layer": lambda run: [op.name.split("/")[0] for op in run.ops],
    "engine": lambda run: [op.engine for op in run.ops],
}


def op(
    name: str,
    ns: int | None = 100,
    *,
    kind: str = "MatMul",
    location: str = "",
    own: int | None = -1,
    spread: Spread | None = None,
) -> OpFigure:
    """`own` is as long as `ns` unless said."""
    return OpFigure(name, kind, "HMX", location, ns, ns if own == -1 else own, spread)


def figures(
    ops: Sequence[OpFigure] = (),
    *,
    latency: float | None = 1000,
    peak: float | None = 4096,
    label: str = "run",
    target: str = "chip",
    provenance: str = "simulated",
    batch: int = 1,
    model: str = "net",
    sha256: str | None = None,
    samples: Sequence[float] | None = None,
    cores: int = 1,
) -> Figures:
    spread = None if samples is None else spread_of(samples)
    metrics = (
        Figure("latency", latency, NS, provenance, spread),
        Figure("peak_memory", peak, BYTES, provenance),
    )
    return Figures(label, model, sha256, target, provenance, 1, cores, batch, metrics, tuple(ops))


def info(provenance: str = "simulated", *, target: str = "chip", batch: int = 1) -> RunInfo:
    return RunInfo(
        (),
        "2026-01-01T00:00:00+00:00",
        "net.onnx",
        "ab" * 32,
        target,
        provenance,
        "net",
        1,
        2,
        batch,
        {"core": 1e9},
        (0,),
    )


def spans_of(rows: Sequence[tuple[SpanKind, int, int, int, int]]) -> OpSpans:
    """Rows of kind, op, inference, start, end."""
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return OpSpans(*(np.array(column, np.int64) for column in columns))


@st.composite
def rows(draw: st.DrawFn, ops: int) -> list[tuple[SpanKind, int, int, int, int]]:
    """Spans of a few ops and inferences, overlapping in every way."""
    kinds = st.sampled_from([SpanKind.OP, SpanKind.OP, SpanKind.TRANSFER, SpanKind.WAIT, SpanKind.PHASE])
    found = []
    for _ in range(draw(st.integers(0, 14))):
        start = draw(st.integers(0, 30))
        found.append(
            (
                draw(kinds),
                draw(st.integers(NONE, ops - 1)),
                draw(st.integers(0, 2)) * 7,
                start,
                start + draw(st.integers(0, 12)),
            )
        )
    return found


def op_infos(count: int) -> list[OpInfo]:
    return [OpInfo(f"layer{n // 2}/op{n}", ("MatMul", "Add", "Softmax")[n % 3], "", f"node {n}") for n in range(count)]


def summary_of(
    ops: Sequence[OpTotal] = (),
    *,
    latency: int | None = 100,
    provenance: str = "simulated",
    lanes: Sequence[LaneTotal] = (),
    memory: Sequence[MemoryTotal] = (),
    samples: Sequence[int] = (),
    batch: int = 1,
) -> Summary:
    rate = None if not latency else batch * 1e9 / latency
    return Summary(
        Latency(latency, None, None, provenance),
        rate,
        batch,
        tuple(lanes),
        tuple(memory),
        ops=tuple(ops),
        samples_ns=tuple(samples),
    )


def total(name: str, ns: int | None, **fields: int | str | None) -> OpTotal:
    values = {
        "type": "MatMul",
        "busy_ns": ns,
        "wait_ns": None,
        "share": None,
        "commands": 1,
        "out_bytes": None,
        "moved_bytes": None,
        "macs": 10,
        "engine": "HMX",
        "placed": "",
    } | fields
    return OpTotal(name=name, wall_ns=ns, **values)  # type: ignore[arg-type]
