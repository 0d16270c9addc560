"""A battery lasts its energy over the average power; words that are not understood are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import ProfilerError
from opscope.estimate.battery import BatteryLife, battery_life
from opscope.estimate.estimator import estimate
from opscope.recording.resources import Totals
from support.build import Sketch, engine, figure, machine

MACHINE = machine(engine(busy_watts=figure(2, 1, 4)))  # 128 us of work


def totals() -> Totals:
    draw = Sketch()
    graph = draw.graph(draw.dense(draw.input(1, 16), 8))
    return estimate(graph, MACHINE).totals


def life(battery: str = "1Wh", duty: str = "10/s", sleep: str | None = None) -> BatteryLife:
    return battery_life(totals(), MACHINE.target, battery=battery, duty=duty, sleep=sleep)


def test_a_battery_lasts_its_energy_over_the_average_power() -> None:
    found = life(sleep="1mW")
    busy = 128e-6 * 10
    assert found.busy_share == pytest.approx(busy)
    assert found.watts == pytest.approx(2 * busy + 1e-3 * (1 - busy))
    assert found.seconds is not None
    assert found.seconds.value == pytest.approx(3600 / found.watts)
    assert found.seconds.low < found.seconds.value < found.seconds.high


@pytest.mark.parametrize(("one", "other"), [("1Wh", "1000mWh"), ("1Wh", "250mAh@4V"), ("1Wh", ".5Ah@2V")])
def test_charge_and_energy_are_two_ways_to_say_it(one: str, other: str) -> None:
    assert life(one).seconds == life(other).seconds


@pytest.mark.parametrize(("one", "other"), [("1/s", "60/min"), ("1/10s", "6/min"), ("24/d", "1/h")])
def test_a_rate_is_a_number_in_a_time(one: str, other: str) -> None:
    assert life(duty=one).watts == pytest.approx(life(duty=other).watts)


def test_more_than_there_is_time_for_is_refused() -> None:
    with pytest.raises(ProfilerError, match=r"takes 0.000128 s; expected at most 7.81e\+03/s"):
        life(duty="8000/s")


@given(st.text(max_size=12), st.sampled_from(["battery", "duty", "sleep"]))
def test_any_other_words_are_an_error_in_one_line(text: str, option: str) -> None:
    message = ""
    try:
        life(**{option: text})
    except ProfilerError as error:
        message = str(error)
    assert "\n" not in message
    assert not message or "; expected" in message
