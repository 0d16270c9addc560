"""Programs that cannot be run are refused before anything is allocated for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import ProgramError
from opscope.program.check import check_duration, check_limits
from opscope.program.program import StatsOptions
from support.recording.run_build import program_of


def test_a_good_program_passes() -> None:
    check_limits(program_of(), source="p")
    check_duration(1.0, source="p")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"devices": 0}, r"^p: devices is 0; expected 1 to 65535"),
        ({"devices": 60_000}, r"^p: devices is 60000; expected 1 to 1$"),
        ({"cores": 10**9}, r"^p: cores is 1e\+09; expected 1 to 65535"),
        ({"device_cores": 10**9}, r"^p: device_cores is 1e\+09; expected 1 to 65535"),
        ({"clock_hz": float("nan")}, r"^p: clock_hz is nan; expected 1000 to 1e\+12"),
        ({"stats_hz": 0.0}, r"^p: stats_hz is 0; expected 1000 to 1e\+09"),
        ({"stats": StatsOptions(batch_size=0)}, r"^p: stats\.batch_size is 0; expected 1 to 4\.29497e\+09"),
        ({"stats": StatsOptions(level=10**6)}, r"^p: stats\.level is 1e\+06; expected 0 to 65535"),
        ({"stats": StatsOptions(events=(2,))}, r"^p: number of stats\.event_names is 0; expected 1 to 1"),
    ],
)
def test_an_impossible_figure_is_named_with_its_range(change: dict[str, object], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        check_limits(replace(program_of(), **change), source="p")  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [1e5, float("inf"), float("nan")])
def test_an_inference_of_hours_is_a_broken_program(seconds: float) -> None:
    with pytest.raises(ProgramError, match=r"^p: an inference takes .* s; expected at most 1e\+04"):
        check_duration(seconds, source="p")
