"""Bytes per second over time: all bytes of every route, in their time, and never more than the memory has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.analysis.totals.bandwidths import SoFar, bandwidths, shared
from opscope.analysis.totals.work import InferenceWork
from opscope.program.program import StatsOptions
from support.decode.build import furnished, profiled
from support.device.build import DMA, HVX, READ, WRITE, Step, program_of

PEAK = 9.6  # GB/s of the memory: 8 bytes a cycle at 1.2 GHz


@st.composite
def transfers(draw: st.DrawFn) -> tuple[list[Step], float]:
    """Queues of several cores, each with transfers that follow one another or a pause; and a latency of routes."""
    steps: list[Step] = []
    for core in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 8))):
            pause, route = draw(st.sampled_from([0, 0, 30, 4_000])), draw(st.sampled_from([READ, WRITE]))
            needs: tuple[int, ...] = ()
            if pause:
                needs = (len(steps),)
                steps.append(Step(HVX, pause, core=core))
            size = draw(st.sampled_from([900, 20_000, 300_000]))
            steps.append(Step(DMA, draw(st.sampled_from([1, 40])), needs, core=core, route=route, moved_bytes=size))
    return steps, draw(st.sampled_from([0.0, 90.0, 1_300.0]))


@given(transfers())
def test_bytes_over_time_are_those_of_the_transfers_and_never_above_the_peak(drawn: tuple[list[Step], float]) -> None:
    steps, latency = drawn
    made = program_of(steps, stats=StatsOptions(level=70), stats_hz=19.2e6, clock_hz=1.2e9)
    routes = tuple(replace(route, latency_cycles=latency) for route in made.routes)
    profile = profiled(furnished(replace(made, routes=routes)))
    found = list(bandwidths(InferenceWork.of(profile.trace(), profile.index)))
    for track, edges, rates in found:
        route = READ if "read" in track.name else WRITE
        expected = sum(step.moved_bytes for step in steps if step.route == route)
        assert (rates >= 0).all()
        assert float((rates[:-1] * np.diff(edges)).sum()) == pytest.approx(expected, abs=1)
    assert sum(rates for _, _, rates in found).max() <= PEAK * (1 + 1e-6)


@given(st.data())
def test_routes_that_share_a_memory_keep_their_ends_where_a_schedule_of_them_is_known(data: st.DataObject) -> None:
    """Bytes are drawn window by window, no more than there is room for; a transfer ends where it is drawn to."""
    windows, most = data.draw(st.integers(1, 12)), 10.0
    moved = np.zeros((2, windows))
    for window in range(windows):
        first = data.draw(st.floats(0, most))
        moved[:, window] = first, data.draw(st.floats(0, most - first))
    parts = [_known(own, data.draw(st.sets(st.integers(1, windows)))) for own in moved]
    found = shared(parts, most * np.arange(windows + 1.0))
    for so_far, own, part in zip(found, moved, parts, strict=True):
        assert so_far[0] == pytest.approx(0, abs=1e-9)
        assert so_far[-1] == pytest.approx(own.sum())
        assert (np.diff(so_far) >= -1e-9).all()
        assert (so_far <= part.begun + 1e-9).all()
    assert (np.diff(sum(found)) <= most + 1e-9).all()
    assert (sum(found) >= sum(part.arrived for part in parts) - 1e-9).all()


def _known(moved: np.ndarray, ends: set[int]) -> SoFar:
    """Transfers that end at some windows, as a timeline tells of them: nothing of what is in between."""
    edges = np.arange(len(moved) + 1)
    known = np.array(sorted({0, len(moved)} | ends))
    so_far = np.concatenate(([0.0], np.cumsum(moved)))[known]
    before = np.searchsorted(known, edges, side="right") - 1
    after = np.searchsorted(known, edges, side="left")
    return SoFar(np.interp(edges, known, so_far), so_far[before], so_far[after])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 90)), min_size=1, max_size=8))
def test_a_queue_alone_is_told_as_it_was(drawn: list[tuple[int, int]]) -> None:
    """Of pauses and transfers, of which each takes as many windows as it has times 10 bytes."""
    rate = np.concatenate([[0.0] * pause + [10.0] * length for pause, length in drawn])
    so_far = np.concatenate(([0.0], np.cumsum(rate)))
    ends = np.cumsum([pause + length for pause, length in drawn])
    arrived = np.concatenate(([0.0], so_far[ends]))[np.searchsorted(ends, np.arange(len(so_far)), side="right")]
    (found,) = shared([SoFar(so_far, arrived, so_far)], 10.0 * np.arange(len(so_far)))
    assert found == pytest.approx(so_far)
