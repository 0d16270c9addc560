"""Spans for a page: sorted, thinned without losing time, and the way back to the span table kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.recording.trace import SPAN, Lane, SpanKind, Trace, blank_spans
from opscope.views.page import spans as page_spans
from opscope.views.page.packed_columns import decode
from opscope.views.page.spans import SpanRows, rows_of
from support.draws import draws
from support.recording.page_build import small_run

LANES = 3


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Lanes on which no two spans overlap, their spans in any order."""
    rows = []
    for lane in range(LANES):
        now = 0
        for gap, length in draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 90)), max_size=25)):
            kind = draw(st.sampled_from((SpanKind.OP, SpanKind.WAIT)))
            rows.append(
                (lane, kind, 0, -1, 0, len(rows) % 5, len(rows), now + gap, now + gap + length, -1, -1, -1, 0, -1)
            )
            now += gap + length
    spans = np.array(draw(st.permutations(rows)), SPAN) if rows else blank_spans(0)
    return replace(small_run().trace, lanes=tuple(Lane(0, i, "e") for i in range(LANES)), spans=spans)


def obvious(trace: Trace, window: int) -> dict[tuple[int, int], list[int]]:
    """Spans by lane and window, one after the other."""
    groups: dict[tuple[int, int], list[int]] = {}
    for i in np.lexsort((trace.spans["end_ns"], trace.spans["start_ns"], trace.spans["lane"])).tolist():
        groups.setdefault((int(trace.spans["lane"][i]), int(trace.spans["start_ns"][i]) // window), []).append(i)
    return groups


@given(traces(), st.integers(LANES, 40))
@settings(max_examples=draws(1.5))
def test_thinning_is_what_grouping_span_by_span_gives(trace: Trace, most: int) -> None:
    found = rows_of(trace, most=most)
    spans = trace.spans
    groups = obvious(trace, found.window_ns) if found.window_ns else obvious_one_each(trace)
    assert len(found) == len(groups) <= max(most, LANES)
    for row, members in enumerate(groups.values()):
        lengths = (spans["end_ns"] - spans["start_ns"])[members]
        assert found.start[row] == spans["start_ns"][members].min()
        assert found.end[row] == spans["end_ns"][members].max()
        assert found.count[row] == len(members)
        assert found.busy[row] == lengths[spans["kind"][members] == SpanKind.OP].sum()
        assert found.spans["end_ns"][row] - found.spans["start_ns"][row] == lengths.max()
        assert (found.row_of_span[members] == row).all()


def obvious_one_each(trace: Trace) -> dict[tuple[int, int], list[int]]:
    order = np.lexsort((trace.spans["end_ns"], trace.spans["start_ns"], trace.spans["lane"])).tolist()
    return {(0, place): [i] for place, i in enumerate(order)}


@given(traces())
def test_rows_of_a_lane_stand_together_in_order_of_time(trace: Trace) -> None:
    found = rows_of(trace, most=None)
    assert found.window_ns == 0
    for lane in range(LANES):
        part = slice(found.lane_first[lane], found.lane_first[lane + 1])
        assert (found.spans["lane"][part] == lane).all()
        assert (np.diff(found.start[part]) >= 0).all()


def test_the_window_is_the_smallest_power_of_two_that_fits() -> None:
    spans = blank_spans(64)
    spans["start_ns"] = np.arange(64) * 8
    spans["end_ns"] = spans["start_ns"] + 4
    trace = replace(small_run().trace, lanes=(Lane(0, 0, "e"),), spans=spans)
    assert [rows_of(trace, most=most).window_ns for most in (64, 63, 32, 16, 15, 1)] == [0, 16, 16, 32, 64, 512]


@given(traces(), st.integers(1, 40))
def test_the_window_is_the_one_that_trying_each_in_turn_finds(trace: Trace, most: int) -> None:
    window = 1
    while window < 2 * trace.spans["end_ns"].max(initial=0) and len(obvious(trace, window)) > most:
        window *= 2
    assert rows_of(trace, most=most).window_ns == (window if len(trace.spans) > most else 0)


def pieces_of(found: SpanRows) -> dict[str, list[int]]:
    tables = [decode(piece) for piece in found.all_pieces()]
    return {name: [int(v) for table in tables for v in table[name]] for name in tables[0]}


def test_pieces_hold_every_row_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_spans, "PIECE_ROWS", 3)
    found = rows_of(small_run().trace)
    assert found.pieces == 4
    columns = pieces_of(found)
    assert columns["start"] == found.start.tolist()
    assert columns["length"] == (found.end - found.start).tolist()
    assert columns["command"] == found.spans["command"].tolist()
    assert "pcycles" in columns
    assert "count" not in columns


def test_a_thinned_piece_says_how_many_spans_a_row_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_spans, "MOST_CYCLES", 0)
    found = rows_of(small_run().trace, most=6)
    columns = pieces_of(found)
    assert sum(columns["count"]) == len(small_run().trace.spans)
    assert "pcycles" not in columns
