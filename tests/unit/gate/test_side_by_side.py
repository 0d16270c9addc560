from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.meaning import ALLOWABLE
from opscope.gate.compare import compare
from opscope.gate.figures import Figures
from opscope.gate.side_by_side import side_by_side
from support.recording.compare_build import LABELS, figures, op

RUN = st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(0, 99))), max_size=6).map(
    lambda rows: figures([op(name, ns, kind=name) for name, ns in rows])
)


@given(st.lists(RUN, min_size=2, max_size=4))
def test_every_time_of_every_run_is_in_its_column_once(runs: list[Figures]) -> None:
    for label in (None, LABELS["type"]):
        found = side_by_side(runs, by="op", label=label)
        for number, run in enumerate(runs):
            column = [row.values[number] for row in found.rows]
            assert sum(v for v in column if v is not None) == sum(o.wall_ns for o in run.ops if o.wall_ns is not None)


def test_ops_are_matched_to_the_first_run_and_fused_ones_are_put_together() -> None:
    first = figures([op("conv", 50), op("relu", 20, kind="Relu"), op("out", 5, kind="O")], provenance="estimated")
    second = figures([op("conv + relu", 35, kind="Fused"), op("out", 10, kind="O"), op("x", 1, kind="X")])
    third = figures([op("conv", 140), op("relu", None, kind="Relu"), op("x", 2, kind="X")], provenance="measured")
    found = side_by_side([first, second, third], by="op", label=None)
    assert [(row.name, row.values) for row in found.rows] == [
        ("conv and 1 more", (70, 35, 140)),
        ("out", (5, 10, None)),
        ("x", (None, 1, 2)),
    ]
    assert found.rows[0].ratios == (1.0, 0.5, 2.0)
    assert found.rows[2].ratios == (None, None, None)
    assert found.matched == (3, 2, 2)
    assert "columns are of different provenance" in found.notes[0]


def test_unknown_stays_unknown_and_metrics_have_a_row_each() -> None:
    found = side_by_side([figures(latency=None), figures(latency=5)], by="type", label=LABELS["type"])
    assert [(row.name, row.values) for row in found.metrics] == [("latency", (None, 5)), ("peak_memory", (4096, 4096))]
    assert found.rows == ()


def test_ops_matched_by_their_surroundings_are_said() -> None:
    one = [op("in", kind="I"), op("old", kind="Conv")]
    other = [op("in", kind="I"), op("new", kind="Conv")]
    found = side_by_side([figures(one), figures(other, label="b")], by="op", label=None)
    assert found.notes == ("b: 1 op is matched by surroundings, not by name",)


def test_a_rollup_adds_up_what_is_known() -> None:
    runs = [figures([op("a", 1), op("b", None), op("c", 2, kind="Add")]), figures([])]
    found = side_by_side(runs, by="type", label=LABELS["type"])
    assert [(row.name, row.values) for row in found.rows] == [("Add", (2, None)), ("MatMul", (1, None))]


def test_a_time_of_nothing_has_no_ratio_and_no_bytes_have_one() -> None:
    first = figures([op("a", 3000), op("b", 10)], peak=8, provenance="measured")
    found = side_by_side([first, figures([op("a", 0), op("b", 0)], peak=0)], by="op", label=None)
    assert [row.ratios for row in found.rows] == [(1.0, None), (1.0, None)]
    assert next(row.ratios for row in found.metrics if row.name == "peak_memory") == (1.0, 0.0)


def test_what_makes_columns_unlike_is_said() -> None:
    runs = [replace(figures(label=name), caveats=(caveat,)) for name, caveat in (("a", "x"), ("b", "y"), ("c", "x"))]
    assert side_by_side(runs, by="op", label=None).notes == ("a, c: x", "b: y")


def test_a_batch_that_is_not_known_is_a_dash() -> None:
    found = side_by_side([figures(), replace(figures(batch=8), batch=None)], by="op", label=None)
    assert found.notes == ("batch: 1, —",)


def test_a_prediction_beside_a_measurement_says_which_types_it_is_wrong_about() -> None:
    """Names differ, order and types are the same: a log of a board."""
    predicted = [
        op("/a", 100, kind="Conv"),
        op("/b", 50, kind="Dw"),
        op("/c", 100, kind="Conv"),
        op("/d", 10, kind="S"),
    ]
    measured = [op("c0", 90, kind="Conv"), op("d1", 100, kind="Dw"), op("c2", 90, kind="Conv"), op("s3", 10, kind="S")]
    runs = [figures(predicted, provenance="calibrated"), figures(measured, provenance="measured", label="board")]
    found = side_by_side(runs, by="op", label=None)
    assert [row.values for row in found.rows] == [(100, 90), (100, 90), (50, 100), (10, 10)]
    assert found.notes[-1] == (
        "measured over calibrated, by type, farthest off first: "
        "Dw ×2.00 (34% of the time), Conv ×0.90 (62% of the time)"
    )
    assert not any("by type" in note for note in side_by_side(runs[::-1], by="op", label=None).notes)


def test_families_add_up_to_the_ops_that_both_have_and_the_costliest_error_comes_first() -> None:
    predicted = [op("/a", 100, kind="Conv"), op("/b", 50, kind="Dw"), op("/c", 40, kind="Conv"), op("/x", 9, kind="X")]
    measured = [op("/a", 150, kind="Conv"), op("/b", 40, kind="Dw"), op("/c", 90, kind="Conv")]
    runs = [figures(predicted, provenance="estimated"), figures(measured, provenance="measured", label="board")]
    families = side_by_side(runs, by="op", label=None).families
    assert [(family.name, family.ops, family.ratio, family.change_ns) for family in families] == [
        ("Conv", 2, pytest.approx(240 / 140), 100),
        ("Dw", 1, 0.8, -10),
    ]
    assert compare(*runs, allow=ALLOWABLE, labels={}).families == families
    assert not side_by_side([runs[1], runs[1]], by="op", label=None).families
