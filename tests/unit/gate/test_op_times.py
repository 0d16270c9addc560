"""Parts of the clock and times at work, against counting nanosecond by nanosecond."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.gate import op_times
from opscope.gate.op_times import OpTimes, WorkSpans, own_times, wall_times
from opscope.recording.trace import NONE, SpanKind
from support.recording.compare_build import rows, spans_of

OPS = 4
Row = tuple[SpanKind, int, int, int, int]


def work_of(found: list[Row]) -> WorkSpans:
    return WorkSpans.of(spans_of(found), OPS)


def slow_own(found: list[Row]) -> dict[tuple[int, int], Fraction]:
    """(inference, op) → its part, instant by instant; op OPS is none."""
    parts: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for inference in {row[2] for row in found}:
        for instant in range(60):
            active = [row for row in found if row[2] == inference and row[3] <= instant < row[4]]
            lanes = [row for row in active if row[0] == SpanKind.OP]
            moving = [row for row in active if row[0] == SpanKind.TRANSFER]
            for row in lanes or moving:
                parts[inference, OPS if row[1] == NONE else row[1]] += Fraction(1, len(lanes or moving))
    return parts


def slow_wall(found: list[Row]) -> dict[tuple[int, int], int]:
    instants = defaultdict(set)
    for kind, op, inference, start, end in found:
        if kind in (SpanKind.OP, SpanKind.TRANSFER):
            instants[inference, OPS if op == NONE else op].update(range(start, end))
    return {key: len(found) for key, found in instants.items()}


def as_table(times: OpTimes) -> dict[tuple[int, int], float]:
    numbers = times.inferences[times.inference].tolist()
    return {(n, op): ns for n, op, ns in zip(numbers, times.op.tolist(), times.ns.tolist(), strict=True) if ns}


@given(rows(OPS))
def test_every_instant_is_divided_among_the_commands_at_work_in_it(found: list[Row]) -> None:
    expected = {key: float(value) for key, value in slow_own(found).items()}
    assert as_table(own_times(work_of(found))) == pytest.approx(expected)


@given(rows(OPS))
def test_parts_add_up_to_the_time_in_which_anything_is_at_work(found: list[Row]) -> None:
    busy = {(row[2], t) for row in found if row[0] in (SpanKind.OP, SpanKind.TRANSFER) for t in range(row[3], row[4])}
    assert own_times(work_of(found)).ns.sum() == pytest.approx(len(busy))


@given(rows(OPS))
def test_the_time_of_an_op_counts_every_instant_once(found: list[Row]) -> None:
    expected = {key: float(value) for key, value in slow_wall(found).items() if value}
    assert as_table(wall_times(work_of(found))) == expected


@given(rows(OPS))
def test_many_inferences_are_added_up_without_a_table_of_all(found: list[Row]) -> None:
    whole = as_table(own_times(work_of(found)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(op_times, "_MOST_CELLS", 0)
        assert as_table(own_times(work_of(found))) == pytest.approx(whole)


@given(rows(OPS), st.integers(0, 10**15))
def test_where_the_axis_starts_does_not_matter(found: list[Row], shift: int) -> None:
    moved = [(kind, op, n, start + shift, end + shift) for kind, op, n, start, end in found]
    assert as_table(own_times(work_of(moved))) == pytest.approx(as_table(own_times(work_of(found))))


def test_a_transfer_behind_computing_costs_nothing() -> None:
    found = [(SpanKind.OP, 0, 0, 0, 10), (SpanKind.TRANSFER, 1, 0, 0, 15)]
    assert as_table(own_times(work_of(found))) == {(0, 0): 10.0, (0, 1): 5.0}


def test_samples_are_one_per_inference_in_order() -> None:
    found = [(SpanKind.OP, 1, n, 100 * n, 100 * n + 5 + n) for n in (2, 0, 1)]
    assert {op: ns.tolist() for op, ns in wall_times(work_of(found)).samples().items()} == {1: [5.0, 6.0, 7.0]}
    assert wall_times(work_of([])).samples() == {}
    assert own_times(work_of(found)).of(2, OPS).tolist() == np.array([0, 7, 0, 0, 0]).tolist()
