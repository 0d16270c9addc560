from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import UsageError
from opscope.core.provenance import Provenance
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.whatif import device_advice, grid, neighbours, point_of, with_evidence, with_front
from opscope.recording.finding import WHAT_IF, Finding, Prediction
from opscope.recording.recording import Metric, Recording, empty_trace
from opscope.recording.what_if import WhatIfPoint

CHOICES = {"soc": "SA8255", "vtcm_mb": None, "opt_level": None, "precision": "as-is", "io_quant": "on"}


def point(time: float | None, ddr: float, vtcm: float, **choices: str | int) -> WhatIfPoint:
    metrics = (
        Metric("htp_execution_time", time, "us", Provenance.VENDOR_MODEL),
        Metric("ddr_read", ddr, "bytes", Provenance.COMPILER_FACT),
        Metric("vtcm_peak", vtcm, "bytes", Provenance.COMPILER_FACT),
    )
    of_model = Provenance.VENDOR_MODEL
    recording = Recording("htp", of_model, empty_trace(of_model), options=CHOICES, metrics=metrics)
    return point_of(" ".join(map(str, choices.values())) or "base", {**CHOICES, **choices}, recording)


def test_the_front_has_the_points_that_no_other_beats() -> None:
    points = [point(10, 5, 5), point(20, 4, 5), point(20, 5, 5), point(30, 9, 1), point(None, 0, 0)]
    assert [p.on_front for p in with_front(points)] == [True, True, False, True, False]


def test_equal_points_are_both_on_the_front() -> None:
    assert [p.on_front for p in with_front([point(1, 1, 1), point(1, 1, 1)])] == [True, True]


def test_the_grid_has_every_combination_once_and_says_what_it_left_out() -> None:
    points, notes = grid({"soc": ["SA8255", "52", "SAR2230P"], "vtcm-mb": ["4", "8"], "io-quant": ["on", "off"]})
    assert len(points) == 2 * 2 + 1 * 2
    assert notes == ("SAR2230P has 4 MB VTCM: left out --vtcm-mb 8",)


def test_a_grid_beyond_reason_is_refused() -> None:
    with pytest.raises(UsageError, match="501 combinations; expected at most 500"):
        grid({"vtcm-mb": ["1"] * 501})


def test_a_size_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="--vtcm-mb big: not a whole number"):
        grid({"vtcm-mb": ["big"]})


def test_neighbours_differ_in_one_choice() -> None:
    base = HtpOptions.of({"soc": "SA8255"})
    found = neighbours(base, is_float=False)
    assert [o.vtcm_mb for o in found if o.vtcm_mb] == [1, 2, 4]
    assert sum(not o.io_quant for o in found) == 1
    assert all(o.precision == "as-is" for o in found)
    assert {o.precision for o in neighbours(base, is_float=True)} == {"as-is", "w8a8", "w8a16"}


def test_causes_cite_the_point_that_helps_and_never_one_that_does_not() -> None:
    base = point(100, 1, 1).recording
    assert base is not None
    causes = (Finding("layout", "t", "d"), Finding("spill", "t", "d"))
    tried = [point(80, 1, 1, io_quant="off"), point(99.5, 1, 1, vtcm_mb=4), point(120, 1, 1, opt_level=3)]
    best, conversions, spill = with_evidence(replace(base, causes=causes), tried).causes
    assert best.title == "one change saves 20%: --io-quant off"
    text = "off: 80.0 us instead of 100.0 us (vendor-model, without the CPU's part)"
    assert conversions.predicted == Prediction(20_000, 80_000, WHAT_IF, text)
    assert spill.predicted is None


def test_device_advice_names_the_best_point_of_each_part() -> None:
    lines = list(device_advice([point(1, 1, 1), point(None, 1, 1, soc="SM8650")]))
    assert lines == [
        "SA8255: best is base (1.0 us); does not spill",
        "SM8650: best is SM8650 (no time); does not spill",
    ]


def test_a_trial_that_failed_is_listed_with_its_reason() -> None:
    base = point(100, 1, 1).recording
    assert base is not None
    failed = WhatIfPoint("w8a8", {**CHOICES, "precision": "w8a8"}, None, "the model is odd")
    result = with_evidence(base, [point(80, 1, 1, opt_level=3), failed])
    assert result.notes == ("not tried: --precision w8a8 fails: the model is odd",)
    assert result.causes[0].detail.startswith("best of 1 compilations")
    assert result.causes[0].detail.endswith("; 1 more failed, see the notes")
    untimed = replace(base, metrics=())
    assert with_evidence(untimed, [failed]).notes == result.notes
