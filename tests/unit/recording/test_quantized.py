"""How far off a copy is, in words."""

from __future__ import annotations

from opscope.recording.quantized import Difference, OutputDifference, summary_line, worst_of

EXACT = OutputDifference("same", Difference(4.0, 0.0, 1.0, 0.0, 2.0))
NEAR = OutputDifference("near", Difference(100.0, 1.0, 0.99, 0.5, 9.0))
NOISE = OutputDifference("zeros", Difference(0.0, 0.25, None, 0.5, 0.0))  # the float model gives zeros


def test_the_worst_output_is_named_with_its_ratio() -> None:
    assert summary_line([EXACT, NEAR]) == "error against float: near 20.0 dB SQNR"
    assert summary_line([EXACT]) == "error against float: same exact"


def test_noise_without_signal_is_the_worst_and_never_exact() -> None:
    assert worst_of([NEAR, NOISE, EXACT]) == NOISE
    assert summary_line([NEAR, NOISE]) == "error against float: zeros off by 0.5 where the model gives zeros"


def test_without_outputs_of_floats_the_error_is_unknown() -> None:
    assert worst_of([]) is None
    assert "unknown (no output of floats)" in summary_line([])
