"""Samples of power beside a timeline → energy, with what sampling and alignment leave open.

Between two samples power is taken to go straight from one to the other (the trapezoid rule). What it may have been
instead depends on how often the device began or stopped working meanwhile:

    at most once     the level before or the one behind may have held all the time: between the smaller and the larger
    more often       the samples are a draw among the levels: k such stretches are off by the span of the levels / √k

A sampler in step with the inferences always sees the same part of them; nothing in its samples tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.columns import Floats, Numbers
from ..recording.resources import Range

NANO = 1e-9
FINEST = 4  # steps of an alignment in a sample
MOST_STEPS = 1 << 20
_AS_GOOD = 0.98  # of the best correlation: shifts that cannot be told from it


@dataclass(frozen=True, slots=True)
class PowerSamples:
    """Watts at points in time, in order."""

    time_ns: Numbers
    watts: Floats

    def __post_init__(self) -> None:
        if len(self.time_ns) < 2 or bool((np.diff(self.time_ns) <= 0).any()):
            raise ValueError("expected two samples and more, each later than the one before")

    def shifted(self, by_ns: int) -> PowerSamples:
        return PowerSamples(self.time_ns + by_ns, self.watts)

    @property
    def interval_ns(self) -> float:
        return float(np.median(np.diff(self.time_ns)))


@dataclass(frozen=True, slots=True)
class Activity:
    """Stretches in which a device works, in order, apart from each other."""

    start_ns: Numbers
    end_ns: Numbers

    @classmethod
    def of(cls, start_ns: Numbers, end_ns: Numbers) -> Activity:
        """Of spans in any order, which may overlap."""
        order = np.argsort(start_ns, kind="stable")
        start, end = start_ns[order], np.maximum.accumulate(end_ns[order])
        opens = np.concatenate([[True], start[1:] > end[:-1]]) if len(start) else np.zeros(0, np.bool_)
        first = np.flatnonzero(opens)
        last = np.concatenate([first[1:] - 1, [len(start) - 1]]) if len(first) else first
        return cls(start[first], end[last])

    @property
    def window(self) -> tuple[int, int]:
        return int(self.start_ns[0]), int(self.end_ns[-1])

    def busy_until(self, time_ns: Floats) -> Floats:
        """Nanoseconds of work before each point in time."""
        ends = np.column_stack([self.start_ns, self.end_ns]).ravel()
        done = np.concatenate([[0.0], np.cumsum((self.end_ns - self.start_ns).astype(np.float64))])
        return np.asarray(np.interp(time_ns, ends, np.column_stack([done[:-1], done[1:]]).ravel()))

    def edges_between(self, time_ns: Numbers) -> Numbers:
        """How often work begins or ends from each point in time to the next."""
        edges = np.sort(np.concatenate([self.start_ns, self.end_ns]))
        return np.diff(np.searchsorted(edges, time_ns))


@dataclass(frozen=True, slots=True)
class Reading:
    """What a device drew between two points in time."""

    energy_j: Range
    above_idle_j: Range | None  # without what it draws anyway; None: no sample lies outside
    idle_w: Range | None
    average_w: float
    peak_w: float
    coarse: int  # stretches between samples in which work begins or ends more than once


def covers(samples: PowerSamples, window: tuple[int, int]) -> bool:
    return bool(samples.time_ns[0] <= window[0] and window[1] <= samples.time_ns[-1])


def read_energy(samples: PowerSamples, activity: Activity, *, unsure_ns: int = 0) -> Reading:
    """Energy of the window of an activity, which samples have to cover; `unsure_ns` is how far they may be off it."""
    start, end = activity.window
    if not covers(samples, (start, end)):
        raise ValueError("expected samples from before the work until after it")
    shifts = sorted({-unsure_ns, 0, unsure_ns})
    within = [shift for shift in shifts if covers(samples.shifted(shift), (start, end))]
    found = [_energy(samples.shifted(shift), activity) for shift in within]
    middle = found[within.index(0)]
    energy = Range(middle.value, min(each.low for each in found), max(each.high for each in found))
    seconds = (end - start) * NANO
    idle = _idle(samples, (start - unsure_ns, end + unsure_ns))
    inside = (samples.time_ns >= start) & (samples.time_ns <= end)
    nearest = inside if inside.any() else _around(samples.time_ns, start, end)
    return Reading(
        energy_j=energy,
        above_idle_j=None if idle is None else _without(energy, idle, seconds),
        idle_w=idle,
        average_w=energy.value / seconds if seconds else float(samples.watts[nearest].mean()),
        peak_w=float(samples.watts[nearest].max()),
        coarse=int((activity.edges_between(samples.time_ns) > 1).sum()),
    )


def _without(energy: Range, idle: Range, seconds: float) -> Range:
    return Range(
        energy.value - idle.value * seconds, energy.low - idle.high * seconds, energy.high - idle.low * seconds
    )


def _energy(samples: PowerSamples, activity: Activity) -> Range:
    start, end = activity.window
    time, watts = _cut(samples, start, end)
    seconds, edges = np.diff(time) * NANO, activity.edges_between(samples.time_ns)
    # The stretch between samples that each cut piece is a part of, with the levels at its own ends.
    place = np.clip(np.searchsorted(samples.time_ns, time[:-1], side="right") - 1, 0, len(samples.watts) - 2)
    low, high = (level(samples.watts[:-1], samples.watts[1:])[place] for level in (np.minimum, np.maximum))
    middle = (watts[:-1] + watts[1:]) / 2
    coarse = edges[place] > 1
    near = samples.watts[_around(samples.time_ns, start, end)]
    stretch = float(seconds[coarse].sum()) * float(near.max() - near.min()) / max(1, int(coarse.sum())) ** 0.5
    value = float((middle * seconds).sum())
    under = float(((middle - low) * seconds)[~coarse].sum()) + stretch
    over = float(((high - middle) * seconds)[~coarse].sum()) + stretch
    return Range(value, value - under, value + over)


def _cut(samples: PowerSamples, start: int, end: int) -> tuple[Floats, Floats]:
    """Samples inside, with the ends of the window between them."""
    inside = samples.time_ns[(samples.time_ns > start) & (samples.time_ns < end)]
    time = np.concatenate([[start], inside, [end]]).astype(np.float64)
    return time, np.interp(time, samples.time_ns, samples.watts)


def _around(time_ns: Numbers, start: int, end: int) -> Numbers:
    """Positions of the samples inside, and of one on either side."""
    first = max(0, int(np.searchsorted(time_ns, start, side="right")) - 1)
    last = min(len(time_ns) - 1, int(np.searchsorted(time_ns, end, side="left")))
    return np.arange(first, last + 1)


def _idle(samples: PowerSamples, window: tuple[int, int]) -> Range | None:
    """The median of samples outside, one sample away from the work on either side, and how far it may be off."""
    away = samples.interval_ns
    outside = samples.watts[(samples.time_ns < window[0] - away) | (samples.time_ns > window[1] + away)]
    if not len(outside):
        return None
    value = float(np.median(outside))
    spread = float(np.abs(outside - value).max()) / len(outside) ** 0.5
    return Range(value, value - spread, value + spread)


@dataclass(frozen=True, slots=True)
class Alignment:
    """What is added to the times of samples, and how far it may be off."""

    shift_ns: int
    unsure_ns: int
    likeness: float | None = None  # correlation of power and activity; None: it was not asked for


def aligned_at(samples: PowerSamples, marked_ns: int, activity: Activity) -> Alignment:
    """A mark among the samples stands for the begin of work: it is as exact as they are close."""
    return Alignment(activity.window[0] - marked_ns, round(samples.interval_ns))


def aligned_by_activity(samples: PowerSamples, activity: Activity) -> Alignment | None:
    """Where power follows the activity best, by cross-correlation; None where the samples do not last as long."""
    length, work = int(samples.time_ns[-1] - samples.time_ns[0]), activity.window[1] - activity.window[0]
    step = max(samples.interval_ns / FINEST, length / MOST_STEPS)
    count, wide = int(length / step), int(np.ceil(work / step)) + 1
    if count <= wide:
        return None
    ends = activity.window[0] + step * np.arange(wide + 1, dtype=np.float64)
    busy = np.diff(activity.busy_until(ends)) / step
    power = np.interp(samples.time_ns[0] + step * (0.5 + np.arange(count)), samples.time_ns, samples.watts)
    power = power - power.mean()
    size = 1 << (count + wide).bit_length()
    both = np.fft.irfft(np.fft.rfft(power, size) * np.conj(np.fft.rfft(busy, size)), size)[: count - wide + 1]
    best = int(np.argmax(both))
    padded = np.zeros(count)
    padded[best : best + wide] = busy
    spread = float(np.linalg.norm(power) * np.linalg.norm(padded - padded.mean()))
    as_good = np.flatnonzero(both >= _AS_GOOD * both[best])
    unsure = max(int(as_good[-1]) - best, best - int(as_good[0]), FINEST) * step
    shift = activity.window[0] - (int(samples.time_ns[0]) + best * step)
    return Alignment(round(shift), round(unsure), float(both[best]) / spread if spread else 0.0)


def unsteady(values: Sequence[float], *, more_than: float = 0.02) -> tuple[float, float] | None:
    """Least and most of a clock that moved by more than a share of it; None: it was steady."""
    least, most = min(values, default=0.0), max(values, default=0.0)
    return (least, most) if most - least > more_than * most else None
