"""A log of power and a timeline of what ran meanwhile → one Recording: counters on its axis, energy of an inference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

import numpy as np

from ..core.columns import Numbers
from ..core.errors import UsageError
from ..core.provenance import Provenance
from ..core.units import format_joules, format_ns
from ..recording.recording import Metric, Recording
from ..recording.resources import Range
from ..recording.summary import Energy
from ..recording.trace import COUNTER, NONE, SpanKind, Trace
from .power import (
    Activity,
    Alignment,
    PowerSamples,
    Reading,
    aligned_at,
    aligned_by_activity,
    covers,
    read_energy,
    unsteady,
)

POWER, CLOCK, THROTTLE, MARKER = "power", "clock", "throttle reasons", "marker"
_LEAST_LIKENESS = 0.5


class Align(StrEnum):
    """How times of samples are brought to the axis of a timeline."""

    CLOCK = "clock"  # they are on it already
    MARKER = "marker"  # one of them is marked as the begin of work
    ACTIVITY = "activity"  # by cross-correlation of power with what the device did


def is_power_log(part: Recording) -> bool:
    """Counters in watts, and no work."""
    return not len(part.trace.spans) and any(track.unit == "W" for track in part.trace.counters)


def join_power(whole: Recording, log: Recording, align: Align | None = None) -> Recording:
    """The recording with the tracks of the log, and the energy of its work."""
    if whole.provenance is not Provenance.MEASURED:
        raise UsageError(
            f"{log.source}: power was measured, the timeline is {whole.provenance}; expected a measured one"
        )
    activity, samples = _activity(whole), _samples(log)
    how = align or _usual(log, samples, activity)
    found = _alignment(how, log, samples, activity)
    moved = samples.shifted(found.shift_ns)
    if not covers(moved, activity.window):
        raise UsageError(
            f"{log.source}: the samples do not cover the {_length(activity)} of the work, by {how.value}; "
            f"expected some before and behind it{'' if how is Align.ACTIVITY else ', or --align activity'}"
        )
    reading = read_energy(moved, activity, unsure_ns=found.unsure_ns)
    energy = _per_inference(whole, reading)
    return replace(
        whole,
        options={**whole.options, "power_log": log.source},
        trace=_with_tracks(whole.trace, log.trace, found.shift_ns),
        energy=energy,
        totals=None if whole.totals is None else replace(whole.totals, energy=energy),
        metrics=(*whole.metrics, *_metrics(reading, found, how)),
        notes=tuple(dict.fromkeys((*whole.notes, *log.notes, *_notes(whole, log, reading, found)))),
    )


def _activity(whole: Recording) -> Activity:
    """Work of devices; where nothing is of a device, of the host."""
    spans = whole.trace.spans
    working = spans[np.isin(spans["kind"], (SpanKind.OP, SpanKind.TRANSFER))]
    spans = working if len(working) else spans
    if not len(spans):
        raise UsageError(f"{whole.source or whole.maker}: has no timeline; expected one to lay power over")
    return Activity.of(spans["start_ns"].astype(np.int64), spans["end_ns"].astype(np.int64))


def _samples(log: Recording) -> PowerSamples:
    number = next(n for n, track in enumerate(log.trace.counters) if track.unit == "W")
    rows = log.trace.samples[log.trace.samples["counter"] == number]
    return PowerSamples(rows["time_ns"].astype(np.int64), rows["value"].astype(np.float64))


def _usual(log: Recording, samples: PowerSamples, activity: Activity) -> Align:
    """By a mark where there is one; else as they are where they cover the work."""
    if log.metric(MARKER) is not None:
        return Align.MARKER
    return Align.CLOCK if covers(samples, activity.window) else Align.ACTIVITY


def _alignment(how: Align, log: Recording, samples: PowerSamples, activity: Activity) -> Alignment:
    if how is Align.CLOCK:
        return Alignment(0, 0)
    if how is Align.MARKER:
        marked = log.value(MARKER)
        if marked is None:
            raise UsageError(f"{log.source}: no sample is marked; expected a column `marker` that is 1 while work runs")
        return aligned_at(samples, round(marked), activity)
    found = aligned_by_activity(samples, activity)
    if found is None:
        raise UsageError(f"{log.source}: lasts no longer than the {_length(activity)} of the work; expected more")
    if found.likeness is not None and found.likeness < _LEAST_LIKENESS:
        raise UsageError(
            f"{log.source}: power does not follow the work (correlation {found.likeness:.2f}); expected at least "
            f"{_LEAST_LIKENESS}: samples closer together, or --align marker"
        )
    return found


def _length(activity: Activity) -> str:
    return format_ns(activity.window[1] - activity.window[0])


def _with_tracks(trace: Trace, log: Trace, shift_ns: int) -> Trace:
    samples = log.samples.copy()
    samples["time_ns"] += shift_ns
    samples["counter"] += len(trace.counters)
    tracks = tuple(replace(track, device=0) if track.device == NONE else track for track in log.counters)
    both = np.concatenate([trace.samples, samples.astype(COUNTER)])
    return replace(trace, counters=(*trace.counters, *tracks), samples=both)


def _per_inference(whole: Recording, reading: Reading) -> Energy:
    found = reading.energy_j if reading.above_idle_j is None else reading.above_idle_j
    count = whole.inferences or len(whole.numbers or ()) or _told_apart(whole.trace.spans["inference"])
    words = "above idle" if reading.idle_w is not None else "idle power included: no sample lies outside the work"
    if not count:
        words += "; of the whole recording: inferences are not told apart"
    each = max(1, count)
    return Energy(found.value / each, found.low / each, found.high / each, Provenance.MEASURED, words)


def _told_apart(inference: Numbers) -> int:
    return len(np.unique(inference[inference != NONE]))


def _metrics(reading: Reading, found: Alignment, how: Align) -> Iterator[Metric]:
    yield _ranged("energy", reading.energy_j, "J", f"aligned by {how.value}, ± {format_ns(found.unsure_ns)}")
    if reading.above_idle_j is not None and reading.idle_w is not None:
        yield _ranged("energy above idle", reading.above_idle_j, "J")
        yield _ranged("idle power", reading.idle_w, "W")
    yield Metric("average power", reading.average_w, "W")
    yield Metric("peak power", reading.peak_w, "W", note="of samples; shorter peaks are not seen")


def _ranged(name: str, found: Range, unit: str, note: str = "") -> Metric:
    return Metric(name, found.value, unit, low=found.low, high=found.high, note=note)


def _notes(whole: Recording, log: Recording, reading: Reading, found: Alignment) -> Iterator[str]:
    if reading.coarse:
        yield (
            f"samples of power are far apart: between {reading.coarse} pairs of them work began or ended more than once"
        )
    start, end = _activity(whole).window
    for number, track in enumerate(log.trace.counters):
        rows = log.trace.samples[log.trace.samples["counter"] == number]
        time = rows["time_ns"] + found.shift_ns
        moved = unsteady(rows["value"][(time >= start) & (time <= end)].tolist()) if track.name == CLOCK else None
        if moved is not None:
            yield f"clocks were not steady: {moved[0] / 1e6:,.0f} to {moved[1] / 1e6:,.0f} MHz while work ran"
    if reading.above_idle_j is not None and reading.above_idle_j.low < 0:
        yield f"energy above idle may be nothing: {format_joules(reading.above_idle_j.high)} at the most"
