"""What rows of predictions have in common, and what their errors say."""

from __future__ import annotations

from pathlib import Path

from opscope.calibration.accuracy import errors_by, ruled_by, unexplained
from opscope.calibration.calibrate import Prediction
from opscope.calibration.measurements import Measurement


def row(network: str, measured: float, predicted: float, *, shares: dict[str, float] | None = None) -> Prediction:
    measurement = Measurement("m.csv:1", Path(f"{network}.onnx"), measured)
    return Prediction(measurement, 0, predicted, None, 0.8 * predicted, 1.2 * predicted, shares or {})


def test_bias_has_a_sign_and_the_error_has_none() -> None:
    (found,) = errors_by([row("a", 1.0, 0.5), row("a", 1.0, 0.7), row("a", 1.0, 1.1)], "precision")
    assert (found.name, found.judged.rows) == ("float", 3)
    assert round(found.judged.median_error, 9) == 0.3
    assert round(found.bias, 9) == -0.3
    assert round(found.width, 9) == 1.5


def test_what_rules_a_time_is_the_largest_share_of_a_figure_that_one_part_has() -> None:
    assert ruled_by(row("a", 1, 1, shares={"engines[0].reached.conv": 0.6, "engines[1].launch_cycles": 0.3})) == "conv"
    assert ruled_by(row("a", 1, 1)) == ""


def test_a_network_is_unexplained_where_most_of_its_rows_lie_outside_of_their_range() -> None:
    off = [row("off", 1.0, 0.25), row("off", 1.0, 0.25), row("off", 1.0, 1.0)]
    assert unexplained([*off, row("fine", 1.0, 0.25), row("fine", 1.0, 1.0)]) == [
        "off in float: predicted ÷ measured is 0.25, 2 of 3 rows outside the range; ruled by —"
    ]
