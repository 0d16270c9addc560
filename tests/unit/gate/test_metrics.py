"""Totals and ops of a run, against adding them up by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.gate.metrics import METRICS, figures_of
from opscope.gate.run_figures import figures_of_parts
from opscope.recording.finding import BOUNDS, OTHER_BOUND
from opscope.recording.summary import HostStage, LaneTotal, MemoryTotal, Share, Summary
from opscope.recording.trace import SpanKind
from support.recording.compare_build import info, op_infos, rows, spans_of, summary_of, total

LANES = st.lists(
    st.builds(
        LaneTotal,
        st.integers(0, 1),
        st.integers(0, 3),
        st.sampled_from(["HVX", "HMX", "HMX 0", "t1"]),
        st.integers(0, 10**6),
        st.one_of(st.none(), st.integers(0, 10**6)),
        st.integers(0, 10**6),
        engine=st.sampled_from(["HVX", "HMX", "HVX 2"]),
    ),
    max_size=6,
)
BYTES = st.one_of(st.none(), st.integers(0, 10**9))
MEMORY = st.lists(
    st.builds(
        MemoryTotal,
        st.sampled_from(["DDR", "VTCM"]),
        st.just(0),
        st.just(None),
        BYTES,
        st.none(),
        st.none(),
        BYTES,
        BYTES,
    ),
    max_size=5,
)


def values_of(summary: Summary) -> dict[str, float | None]:
    return {figure.name: figure.value for figure in figures_of(summary, provenance="simulated", spread=None)}


@given(LANES)
def test_busy_wait_and_idle_are_sums_over_lanes_of_an_engine_whatever_these_are_called(lanes: list[LaneTotal]) -> None:
    found = values_of(summary_of(lanes=lanes))
    for word in ("busy", "wait", "idle"):
        for name, engine in ((word, ""), *((f"{word}:{engine}", engine) for engine in ("HVX", "HMX", "HVX 2"))):
            mine = [getattr(lane, f"{word}_ns") for lane in lanes if engine in ("", lane.engine)]
            assert found.get(name) == (None if not mine or None in mine else sum(mine))


@given(MEMORY)
def test_memory_is_the_largest_peak_and_the_sum_of_the_traffic(memory: list[MemoryTotal]) -> None:
    found = values_of(summary_of(memory=memory))
    peaks = [row.peak_bytes for row in memory if row.peak_bytes is not None]
    assert found["peak_memory"] == (max(peaks) if peaks else None)
    for metric, field in (("memory_read", "read_bytes"), ("memory_write", "write_bytes")):
        for name in ("DDR", "VTCM"):
            mine = [getattr(row, field) for row in memory if row.name == name and getattr(row, field) is not None]
            assert found.get(f"{metric}:{name}") == (sum(mine) if mine else None)


def test_stages_causes_and_counts_are_there_when_known_and_absent_when_not() -> None:

    summary = replace(
        summary_of(
            [
                total("(no op)", 5, macs=3, commands=2, op=0),
                total("b", None, macs=None, commands=None, op=1),
                total("of none", 7, macs=0),
            ]
        ),
        host=(HostStage("enqueue", 5), HostStage("driver", 6)),
        breakdown=(Share("compute", 80.0, 0.8),),
        occupancy=(Share("transfer only", 30.0, 0.3),),
    )
    found = values_of(summary)
    assert found["host_latency"] == 11
    assert found["host_latency:driver"] == 6
    assert found["cause:compute"] == 80
    assert [found[f"cause:{bound}"] for bound in (*BOUNDS, OTHER_BOUND) if bound != "compute"] == [0] * len(BOUNDS)
    assert found["occupancy:transfer only"] == 30
    assert (found["macs"], found["ops"], found["commands"]) == (3, 1, 3)
    bare = values_of(summary_of(latency=None))
    assert {name for name, value in bare.items() if value is not None} == set()
    assert set(METRICS) >= {name.partition(":")[0] for name in found}


@given(rows(5))
def test_the_parts_of_ops_are_those_of_the_inference_that_the_summary_is_of(
    found: list[tuple[SpanKind, int, int, int, int]],
) -> None:
    numbers = sorted({row[2] for row in found if row[0] in (SpanKind.OP, SpanKind.TRANSFER)})
    samples = tuple(100 + n for n in range(len(numbers)))
    latency = samples[-1] if samples else None
    summary = summary_of(
        [replace(total("layer0/op1", 9), op=1)], latency=latency, samples=samples if len(samples) > 1 else ()
    )
    figures = figures_of_parts(info(), op_infos(5), summary, spans_of(found), label="run")
    chosen = [row for row in found if numbers and row[2] == (numbers[-1] if len(numbers) > 1 else numbers[0])]
    alone = figures_of_parts(info(), op_infos(5), summary_of([]), spans_of(chosen), label="run")
    if any(row[0] in (SpanKind.OP, SpanKind.TRANSFER) for row in chosen):
        assert [o.own_ns for o in figures.ops[:5]] == [o.own_ns for o in alone.ops[:5]]
    assert figures.ops[1].wall_ns == 9
    assert figures.ops[0].wall_ns is None


def test_measured_ops_have_the_median_of_their_inferences_and_its_spread() -> None:
    times = [10, 30, 20, 12, 11, 14, 13]
    spans = spans_of([(SpanKind.OP, 0, n, 1000 * n, 1000 * n + ns) for n, ns in enumerate(times)])
    summary = summary_of([total("layer0/op0", 99)], latency=13, provenance="measured", samples=times)
    figures = figures_of_parts(info("measured"), op_infos(1), summary, spans, label="run")
    only = figures.ops[0]
    assert (only.wall_ns, only.own_ns) == (13, 13)
    assert only.spread is not None
    assert (only.spread.count, only.spread.values) == (7, tuple(sorted(map(float, times))))
    latency, throughput = figures.metric("latency"), figures.metric("throughput")
    assert latency is not None
    assert throughput is not None
    assert latency.spread is not None
    assert throughput.spread is not None
    assert throughput.spread.median == pytest.approx(1e9 / latency.spread.median)


def test_times_of_an_emulation_are_not_figures() -> None:
    summary = summary_of(
        [total("layer0/op0", 99)],
        latency=13,
        provenance="emulated",
        memory=[MemoryTotal("DDR", 0, None, 5, None, None, None, None)],
    )
    found = figures_of_parts(info("emulated"), op_infos(1), summary, spans_of([(SpanKind.OP, 0, 0, 0, 9)]), label="r")
    assert found.metric("latency") is None
    assert found.metric("busy") is None
    assert found.metric("peak_memory") is not None
    assert (found.ops[0].wall_ns, found.ops[0].own_ns) == (None, None)


def test_ops_with_the_same_name_have_the_totals_of_their_numbers() -> None:
    infos = [op_infos(1)[0]] * 2
    summary = summary_of([replace(total(infos[0].name, 7), op=1), replace(total(infos[0].name, 3), op=0)])
    figures = figures_of_parts(info(), infos, summary, spans_of([]), label="run")
    assert [op.wall_ns for op in figures.ops] == [3, 7]
