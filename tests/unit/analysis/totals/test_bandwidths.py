"""Bytes per second over time: all bytes, in the time of their transfers, and never faster than the memory."""

from __future__ import annotations

import numpy as np
import pytest

from opscope.analysis.totals.bandwidths import bandwidths
from opscope.analysis.totals.work import InferenceWork
from support.decode.build import small
from support.device.build import DMA, HVX, READ, WRITE, Step

RATE = 8.0 * 1.2  # bytes per cycle of the memory, at 1.2 GHz: GB/s


def counters(*steps: Step) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    profile = small(steps=steps)
    return {
        track.name: (times, rates)
        for track, times, rates in bandwidths(InferenceWork.of(profile.trace(), profile.index))
    }


def moved(times: np.ndarray, rates: np.ndarray) -> float:
    return float((rates[:-1] * np.diff(times)).sum())


def test_transfers_that_wait_in_one_queue_are_not_under_way_at_once() -> None:
    """Twenty of them are asked for at once, and pass one after the other at the 4.8 GB/s of one core."""
    found = counters(*(Step(DMA, 10, route=READ, moved_bytes=40_000) for _ in range(20)))
    times, rates = found["DDR read bandwidth"]
    assert moved(times, rates) == pytest.approx(800_000)
    assert rates.max() <= 4.8 * 1.01


def test_reads_and_writes_of_all_cores_are_together_no_faster_than_the_memory() -> None:
    """Short transfers beside long ones: a long one moves less while the others pass, and more before and after."""
    long = [Step(DMA, 10, core=core, route=READ, moved_bytes=400_000) for core in range(2)]
    short = [
        step
        for core in range(2, 6)
        for step in (
            Step(HVX, 30_000, core=core),
            Step(DMA, 10, (len(long) + 2 * (core - 2),), core=core, route=WRITE, moved_bytes=20_000),
        )
    ]
    found = counters(*long, *short)
    total = sum(rates for _, rates in found.values())
    assert total.max() <= RATE * (1 + 1e-9)
    assert moved(*found["DDR read bandwidth"]) == pytest.approx(800_000)
    assert moved(*found["DDR write bandwidth"]) == pytest.approx(80_000)
