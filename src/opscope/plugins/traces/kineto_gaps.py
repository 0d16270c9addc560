"""Where a device stood still, and what for: the host had not launched yet, or a launch was on its way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...recording.recording import Metric


def device_metrics(
    start: Numbers, end: Numbers, device: Numbers, launched: Numbers, has_launch: npt.NDArray[np.bool_]
) -> Iterator[Metric]:
    """Totals over kernels and copies. `launched` is when the call that launched each was made.

    Busy + idle = window, where a device's window is from its first start to its last end.
    """
    yield Metric("kernels", len(start), "1")
    if not len(start):
        return
    totals = np.array(
        [
            _device(start[on], end[on], launched[on], has_launch[on])
            for on in (device == number for number in np.unique(device).tolist())
        ]
    ).sum(axis=0)
    names = ("device window", "device busy", "device idle", "idle before launch", "idle after launch")
    for name, value in zip(names, totals.tolist(), strict=True):
        yield Metric(name, value, "ns")
    if has_launch.any():
        delay = (start - launched)[has_launch]
        yield Metric("launches", int(has_launch.sum()), "1")
        yield Metric("launch to start, median", float(np.median(delay)), "ns")
        yield Metric("launch to start, least", int(delay.min()), "ns")
        yield Metric("launch to start, most", int(delay.max()), "ns")


def _device(
    start: Numbers, end: Numbers, launched: Numbers, has_launch: npt.NDArray[np.bool_]
) -> tuple[int, int, int, int, int]:
    """Window, busy, idle; of idle, until the next kernel was launched, and from then on."""
    order = np.argsort(start, kind="stable")
    start, end, launched, has_launch = start[order], end[order], launched[order], has_launch[order]
    done = np.maximum.accumulate(end)
    window = int(done[-1] - start[0])
    gap = np.maximum(start[1:] - done[:-1], 0)
    before = np.where(has_launch[1:], np.clip(launched[1:] - done[:-1], 0, gap), 0)
    idle = int(gap.sum())
    return window, window - idle, idle, int(before.sum()), int((gap - before)[has_launch[1:]].sum())
