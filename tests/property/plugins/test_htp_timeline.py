"""Conservation laws of the HTP timeline: whatever the spans and constraints, parts add up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.plugins.qnn.node_path import Order
from opscope.plugins.qnn.node_times import node_cycles
from support.plugins.qnn.htp_samples import schematic, timeline

LANES = ("FG", "HVX 1", "HVX 2", "DMA")
Row = tuple[int, str, int, int, bool]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Spans that do not overlap in their lane; some of the foreground thread are bookkeeping."""
    made: list[Row] = []
    for lane in LANES:
        moment = 0
        for gap, length, keeps in draw(
            st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=6)
        ):
            made.append((len(made) + 1, lane, moment + gap, moment + gap + length, keeps and lane == "FG"))
            moment += gap + length
    return sorted(made, key=lambda row: row[2])


@given(rows(), st.randoms(use_true_random=False))
def test_the_dominant_path_is_one_piece_from_the_start_to_the_last_end(spans: list[Row], random: object) -> None:
    choose = random.sample  # type: ignore[attr-defined]
    line = timeline(*spans)
    numbers = [row[0] for row in spans]
    steps = [(n, n, tuple(choose(numbers[:place], min(place, 2)))) for place, n in enumerate(numbers)]
    parts = Order(line, schematic(*steps)).dominant_path()
    assert bool(parts) == bool(spans)
    for before, after in pairwise(parts):
        assert before.end == after.begin
    if parts:
        assert (parts[0].begin, parts[-1].end) == (0, line.end)
        assert all(part.begin <= part.end for part in parts)


@given(rows(), st.integers(1, 4))
def test_wall_is_alone_and_overlapped_and_never_more_than_busy(spans: list[Row], nodes: int) -> None:
    line = timeline(*spans)
    owner = [row[0] % nodes for row in spans]
    cycles = node_cycles(line, owner)
    for node, wall in cycles.wall.items():
        assert 0 <= cycles.alone.get(node, 0) <= wall <= line.end
        assert wall <= sum(cycles.busy[node].values())
    real = [row for row in spans if not row[4]]
    covered = np.zeros(line.end + 1, bool)
    for _, _, start, end, _ in real:
        covered[start:end] = True
    assert sum(cycles.alone.values()) <= covered.sum() <= sum(cycles.wall.values())


@given(rows())
def test_the_foreground_thread_works_or_waits_until_its_last_span(spans: list[Row]) -> None:
    line = timeline(*spans)
    cycles = node_cycles(line, [0] * len(spans))
    foreground = [row for row in spans if row[1] == "FG"]
    work = sum(end - start for _, _, start, end, keeps in foreground if not keeps)
    assert cycles.wait[0] + work == max((end for _, _, _, end, _ in foreground), default=0)
