"""A timeline at other rates: the same ones change nothing, faster ones never cost time, lanes stay in order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.plugins.qnn.importers.schematic import Schematic
from opscope.plugins.qnn.importers.timeline import DMA, ENGINES, HVX, Timeline
from opscope.plugins.qnn.parts.scaling import Rates, scaled
from support.plugins.qnn.htp_samples import MHZ, schematic, timeline

LANES = {"FG": "scalar", "HVX 1": HVX, "HVX 2": HVX, "DMA": DMA}
BASE = Rates(MHZ * 1e6, {"i8": 1e12}, 1e11, 1e10)
FACTORS = st.floats(0.2, 5.0)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Timeline, Schematic]:
    """Spans that do not overlap in their lane, each after up to two that ended before it; some are waits for them."""
    rows = []
    for lane in LANES:
        moment = 0
        for gap, length, keeps in draw(
            st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.booleans()), max_size=6)
        ):
            rows.append((len(rows) + 1, lane, moment + gap, moment + gap + length, keeps and lane == "FG"))
            moment += gap + length
    rows.sort(key=lambda row: row[2])
    line = timeline(*rows, engines=tuple(ENGINES.index(LANES[row[1]]) for row in rows))
    line.work["dram_read"][line.work["engine"] == ENGINES.index(DMA)] = 64
    steps = []
    for row in rows:
        done = [other[0] for other in rows if other[3] <= (row[3] if row[4] else row[2]) and other[0] != row[0]]
        steps.append((row[0], row[0], tuple(draw(st.lists(st.sampled_from(done), max_size=2)) if done else ())))
    return line, schematic(*steps)


def seconds(line: Timeline) -> float:
    return line.end / line.clock_hz


@given(graphs())
def test_equal_rates_move_nothing(made: tuple[Timeline, Schematic]) -> None:
    line, plan = made
    same = scaled(line, plan, BASE, replace(BASE, matrix={"i8": 5e12}))  # nothing here is done on HMX
    assert np.array_equal(same.work, line.work)


@given(graphs(), FACTORS, FACTORS, FACTORS, st.floats(1.0, 4.0))
def test_a_faster_part_is_never_slower(
    made: tuple[Timeline, Schematic], clock: float, vector: float, outer: float, gain: float
) -> None:
    line, plan = made
    slow = Rates(BASE.clock_hz * clock, BASE.matrix, BASE.vector * vector, BASE.outer * outer)
    fast = Rates(slow.clock_hz * gain, slow.matrix, slow.vector * gain, slow.outer * gain)
    rounding = 2 * len(line.work) / slow.clock_hz
    assert seconds(scaled(line, plan, BASE, fast)) <= seconds(scaled(line, plan, BASE, slow)) + rounding


@given(graphs(), FACTORS, FACTORS, FACTORS)
def test_spans_keep_their_lane_and_their_order_and_do_not_overlap(
    made: tuple[Timeline, Schematic], clock: float, vector: float, outer: float
) -> None:
    line, plan = made
    found = scaled(
        line, plan, BASE, Rates(BASE.clock_hz * clock, BASE.matrix, BASE.vector * vector, BASE.outer * outer)
    )
    for lane in range(len(line.lanes)):
        here, there = (work[work["lane"] == lane] for work in (line.work, found.work))
        assert sorted(here["id"].tolist()) == sorted(there["id"].tolist())
        spans = sorted(there[["start", "end"]].tolist())
        assert all(start <= end for start, end in spans)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
