"""Columns sorted, ranked, numbered and cut by numpy against slow, obvious ways of doing the same."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median_low

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.analysis.laws.conservation import lanes_keep_order
from opscope.analysis.run_analysis import RunAnalysis
from opscope.analysis.timeline.activities import activities_of, typical_inference
from opscope.analysis.timeline.intervals import largest, ranked
from opscope.core.columns import rising
from opscope.importers.trace_events import coded
from opscope.recording.arrow_columns import distinct_rows
from opscope.recording.trace import NONE, Lane, SpanKind
from support.recording.analyse_build import HOST, Span, run_of

LEVELS = (HOST, *(Lane(NONE, NONE, f"{HOST.name} {depth}") for depth in (2, 3)))
VALUES = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**40), st.integers(0, 2**62)), max_size=30)


@given(VALUES)
def test_positions_in_rising_order_keep_the_order_of_equal_values(values: list[int]) -> None:
    found = rising(np.array(values, np.int64))
    assert found.tolist() == sorted(range(len(values)), key=values.__getitem__)


@given(VALUES, st.integers(1, 5))
def test_the_largest_values_come_first_and_equal_ones_in_order(values: list[int], most: int) -> None:
    found = largest(np.array(values, np.int64), most)
    assert found.tolist() == sorted(range(len(values)), key=lambda place: -values[place])[:most]


@given(st.lists(st.integers(-5, 5), max_size=12), st.lists(st.integers(-5, 5), max_size=12))
def test_entries_of_several_columns_are_ranked_together(one: list[int], other: list[int]) -> None:
    values, places = ranked(np.array(one, np.int64), np.array(other, np.int64))
    assert values.tolist() == sorted({*one, *other})
    assert [values[place].tolist() for place in places] == [one, other]


@given(st.lists(st.sampled_from(("a", "b", None, 3, 3000)), max_size=12))
def test_values_are_numbered_in_the_order_of_their_first_coming(values: list[str | int | None]) -> None:
    code, known = coded(values)
    assert known == list(dict.fromkeys(values))
    assert [known[number] for number in code.tolist()] == values


@given(st.lists(st.tuples(st.integers(-1, 2), st.sampled_from((0, 7, 10**9))), max_size=12))
def test_combinations_are_numbered_in_the_order_of_their_first_coming(rows: list[tuple[int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 2).T
    place, known = distinct_rows(*columns)
    assert known == list(dict.fromkeys(rows))
    assert [known[number] for number in place.tolist()] == rows


@st.composite
def calls(draw: st.DrawFn) -> list[Span]:
    """Calls on three levels of a thread, one after the other on each, some of them empty; rows in any order."""
    spans = []
    for level in range(len(LEVELS)):
        moment = 0
        for _ in range(draw(st.integers(0 if level else 1, 4))):
            moment += draw(st.integers(0, 3))
            end = moment + draw(st.integers(0, 4))
            spans.append(Span(level, moment, end, SpanKind.HOST, name=f"call {len(spans)}"))
            moment = end
    return draw(st.permutations(spans))


@given(calls())
def test_every_moment_of_a_thread_belongs_to_its_innermost_call(spans: list[Span]) -> None:
    work = activities_of(run_of(spans, lanes=LEVELS))
    expected = {}
    for span in sorted(spans, key=lambda span: span.lane):
        expected.update(dict.fromkeys(range(span.start, span.end), span.name))
    found = {}
    for position, (start, end) in enumerate(zip(work.start.tolist(), work.end.tolist(), strict=True)):
        assert not found.keys() & set(range(start, end))
        found.update(dict.fromkeys(range(start, end), work.name(position)))
    assert found == expected


def test_an_empty_call_does_not_hide_the_call_that_starts_with_it() -> None:
    spans = [
        Span(0, 0, 5, SpanKind.HOST, name="long"),
        Span(0, 0, 0, SpanKind.HOST, name="mark"),
        Span(1, 1, 2, SpanKind.HOST, name="inner"),
    ]
    work = activities_of(run_of(spans, lanes=LEVELS))
    times = [(work.name(n), int(work.start[n]), int(work.end[n])) for n in range(len(work))]
    assert times == [("mark", 0, 0), ("long", 0, 1), ("inner", 1, 2), ("long", 2, 5)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=12))
def test_the_typical_inference_is_that_of_median_length(rows: list[tuple[int, int, int]]) -> None:
    bounds: dict[int, list[int]] = defaultdict(list)
    for inference, start, length in rows:
        bounds[inference] += [start, start + length]
    run = run_of([Span(0, start, start + length, inference=number) for number, start, length in rows])
    lengths = [(max(times) - min(times), number) for number, times in bounds.items()]
    assert typical_inference(run) == median_low(lengths)[1]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=6))
def test_a_lane_is_in_order_when_no_span_starts_inside_another(rows: list[tuple[int, int, int]]) -> None:
    (law,) = lanes_keep_order(RunAnalysis(run_of([Span(lane, start, start + length) for lane, start, length in rows])))
    by_lane = sorted((lane, start, length > 0, number) for number, (lane, start, length) in enumerate(rows))
    ends = {number: start + length for number, (_, start, length) in enumerate(rows)}
    meets = [b[1] < ends[a[3]] for a, b in pairwise(by_lane) if a[0] == b[0]]
    assert law.holds is not any(meets)


def test_a_run_is_written_and_analysed_without_pandas(tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}')
    script = (
        "import sys; from opscope import api\n"
        f"api.import_profile([{str(trace)!r}], run={str(tmp_path / 'run')!r}); api.analyze({str(tmp_path / 'run')!r})\n"
        "print([name for name in ('pandas', 'pyarrow.compute', 'pyarrow.dataset') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
