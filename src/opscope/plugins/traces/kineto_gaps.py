"""Where a device stood still, and what for: the host had not launched yet – it was busy, or waited for the device
itself – or a launch was on its way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from ...core.columns import Flags, Numbers
from ...importers.power import Activity
from ...recording.recording import Metric


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Kernels and copies in columns."""

    start: Numbers
    end: Numbers
    device: Numbers
    launched: Numbers  # when the call that launched each was made
    has_launch: Flags
    copies: Flags  # moves bytes, and computes nothing

    def of(self, chosen: Flags | Numbers) -> DeviceWork:
        return DeviceWork(*(getattr(self, field.name)[chosen] for field in fields(self)))


def device_metrics(work: DeviceWork, waits: Activity | None) -> Iterator[Metric]:
    """Totals over kernels and copies; `waits` is when the host did nothing but wait for a device.

    Busy + idle = window, where a device's window is from its first start to its last end.
    """
    start, launched, has_launch = work.start, work.launched, work.has_launch
    yield Metric("kernels", len(start), "1")
    if not len(start):
        return
    totals = np.array(
        [_device(work.of(on), waits) for on in (work.device == number for number in np.unique(work.device).tolist())]
    ).sum(axis=0)
    names = ("device window", "device busy", "device idle", "idle before launch", "idle after launch")
    for name, value in zip((*names, "idle while the host waited"), totals.tolist(), strict=True):
        yield Metric(name, value, "ns")
    if work.copies.any():
        yield Metric("device copies", int((work.end - start)[work.copies].sum()), "ns")
    if has_launch.any():
        delay = (start - launched)[has_launch]
        yield Metric("launches", int(has_launch.sum()), "1")
        yield Metric("launch to start, median", float(np.median(delay)), "ns")
        yield Metric("launch to start, least", int(delay.min()), "ns")
        yield Metric("launch to start, most", int(delay.max()), "ns")


def _device(work: DeviceWork, waits: Activity | None) -> tuple[int, int, int, int, int, int]:
    """Window, busy, idle; of idle, until the next kernel was launched, from then on, and while the host waited."""
    work = work.of(np.argsort(work.start, kind="stable"))
    done = np.maximum.accumulate(work.end)
    window = int(done[-1] - work.start[0])
    gap = np.maximum(work.start[1:] - done[:-1], 0)
    has_launch = work.has_launch[1:]
    before = np.where(has_launch, np.clip(work.launched[1:] - done[:-1], 0, gap), 0)
    waited = 0.0
    if waits is not None:
        until, since = (waits.busy_until(time.astype(np.float64)) for time in (done[:-1] + before, done[:-1]))
        waited = float((until - since).sum())
    idle = int(gap.sum())
    return window, window - idle, idle, int(before.sum()), int((gap - before)[has_launch].sum()), round(waited)
