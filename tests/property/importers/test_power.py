"""Energy from samples of power: what holds for any work and any sampler."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from opscope.importers.power import Activity, PowerSamples, aligned_at, aligned_by_activity, read_energy

STEP = 1000  # ns between samples
IDLE, BUSY = 60.0, 200.0


@st.composite
def works(draw: st.DrawFn, shortest: int = STEP) -> Activity:
    """Stretches of work and of rest, none shorter than `shortest`."""
    lengths = draw(st.lists(st.integers(shortest, 9 * shortest), min_size=1, max_size=9).filter(lambda x: len(x) % 2))
    edges = np.cumsum([50 * STEP, *lengths])
    return Activity(edges[0::2].astype(np.int64), edges[1::2].astype(np.int64))


def sampled(work: Activity, step: int = STEP, phase: int = 0, busy: float = BUSY) -> PowerSamples:
    time = np.arange(phase, work.window[1] + 50 * STEP, step, dtype=np.int64)
    at_work = np.searchsorted(work.start_ns, time, side="right") > np.searchsorted(work.end_ns, time, side="left")
    return PowerSamples(time, np.where(at_work, busy, IDLE))


def truth(work: Activity) -> float:
    working = float((work.end_ns - work.start_ns).sum())
    whole = work.window[1] - work.window[0]
    return (working * BUSY + (whole - working) * IDLE) * 1e-9


@given(works(), st.floats(0.1, 1e3), st.integers(1, 5 * STEP))
def test_energy_of_a_constant_is_power_times_time(work: Activity, watts: float, step: int) -> None:
    time = np.arange(0, work.window[1] + 2 * step, step, dtype=np.int64)
    found = read_energy(PowerSamples(time, np.full(len(time), watts)), work)
    expected = watts * (work.window[1] - work.window[0]) * 1e-9
    assert found.energy_j.value == pytest.approx(expected)
    assert (found.energy_j.low, found.energy_j.high) == (pytest.approx(expected), pytest.approx(expected))
    assert (found.average_w, found.peak_w) == (pytest.approx(watts), watts)


@given(works(), st.integers(0, STEP - 1), st.integers(-(10**9), 10**9), st.integers(0, 3 * STEP))
def test_shifting_both_clocks_changes_nothing(work: Activity, phase: int, by: int, unsure: int) -> None:
    moved = Activity(work.start_ns + by, work.end_ns + by)
    samples = sampled(work, phase=phase)
    here, there = (read_energy(s, w, unsure_ns=unsure) for s, w in ((samples, work), (samples.shifted(by), moved)))
    assert here.energy_j.value == pytest.approx(there.energy_j.value)
    assert here.energy_j.low == pytest.approx(there.energy_j.low)
    assert here.energy_j.high == pytest.approx(there.energy_j.high)
    assert here.idle_w == there.idle_w


@given(works(shortest=4 * STEP), st.integers(0, STEP - 1))
def test_coarser_samples_leave_more_open_and_still_hold_the_truth(work: Activity, phase: int) -> None:
    widths = []
    for factor in (1, 2, 4):
        found = read_energy(sampled(work, factor * STEP, phase), work).energy_j
        slack = 1e-9 * truth(work)
        assert found.low - slack <= truth(work) <= found.high + slack
        widths.append(found.high - found.low)
    assert all(wide >= narrow * (1 - 1e-9) for narrow, wide in pairwise(widths))


@given(works(), st.integers(0, STEP - 1))
def test_idle_power_is_taken_off_once_for_all_of_the_time(work: Activity, phase: int) -> None:
    found = read_energy(sampled(work, phase=phase), work)
    assert found.idle_w is not None
    assert found.above_idle_j is not None
    assert found.idle_w.value == IDLE
    seconds = (work.window[1] - work.window[0]) * 1e-9
    assert found.above_idle_j.value == pytest.approx(found.energy_j.value - IDLE * seconds)


@given(works(), st.integers(0, STEP - 1), st.integers(0, 4 * STEP))
def test_an_unsure_alignment_never_narrows_the_range(work: Activity, phase: int, unsure: int) -> None:
    sure, open_ = (read_energy(sampled(work, phase=phase), work, unsure_ns=ns).energy_j for ns in (0, unsure))
    assert open_.low <= sure.low
    assert open_.high >= sure.high
    assert open_.value == sure.value


@given(works(shortest=3 * STEP), st.integers(-(10**7), 10**7), st.integers(0, STEP - 1))
def test_activity_brings_samples_of_another_clock_back(work: Activity, off: int, phase: int) -> None:
    found = aligned_by_activity(sampled(work, phase=phase).shifted(off), work)
    assert found is not None
    assert abs(found.shift_ns + off) <= found.unsure_ns
    assert found.likeness is not None
    assert found.likeness > 0.5


@given(works(), st.integers(-(10**7), 10**7), st.integers(0, STEP - 1))
def test_a_mark_is_as_exact_as_samples_are_close(work: Activity, off: int, phase: int) -> None:
    samples = sampled(work, phase=phase).shifted(off)
    marked = samples.time_ns[samples.watts == BUSY]
    assume(len(marked))
    found = aligned_at(samples, int(marked[0]), work)
    assert abs(found.shift_ns + off) <= found.unsure_ns


def test_many_short_bursts_between_samples_are_told_by_their_number() -> None:
    start = 50 * STEP + np.arange(4000, dtype=np.int64) * 137  # 40 % of the time, seven bursts in a sample
    work = Activity(start, start + 55)
    found = read_energy(sampled(work, phase=1), work)
    assert found.coarse > 400
    assert found.energy_j.low <= truth(work) <= found.energy_j.high
    assert found.energy_j.high - found.energy_j.low < 0.2 * truth(work)
