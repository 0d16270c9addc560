"""What changes over time: clock of every core, bandwidth of outer memory, how full local memory is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...recording.trace import COUNTER, CounterTrack, Trace
from .bandwidths import Found, bandwidths
from .memory import Residency
from .work import InferenceWork

FREQUENCY_TICKS = 2048  # so many ticks of work give the clock to better than 0.1 %
MOST_POINTS = 2000  # of one counter


def with_counters(work: InferenceWork, held: Residency) -> Trace:
    """The trace with the counters that can be read off it."""
    tracks: list[CounterTrack] = []
    blocks = []
    for track, times, values in (*_frequencies(work), *bandwidths(work), *_residencies(work, held)):
        block = np.zeros(len(times), COUNTER)
        block["counter"], block["time_ns"], block["value"] = len(tracks), times, values
        tracks.append(track)
        blocks.append(block)
    samples = np.concatenate([np.zeros(0, COUNTER), *blocks])
    return replace(work.trace, counters=tuple(tracks), samples=samples)


def _frequencies(work: InferenceWork) -> Found:
    """Core cycles per tick of the commands that computed, over stretches long enough to tell."""
    index, program = work.index, work.index.program
    part = work.ops.where(~index.moves[work.ops.command] & (work.ops.ucycles > 0))
    core = index.core[part.command]
    order = np.lexsort((part.start, core))
    bounds = np.searchsorted(core[order], np.arange(program.devices * program.cores + 1)).tolist()
    for number, (low, high) in enumerate(pairwise(bounds)):
        if high > low:
            rows = order[low:high]
            stretch = np.cumsum(part.ucycles[rows]) // FREQUENCY_TICKS
            ticks, cycles = np.bincount(stretch, part.ucycles[rows]), np.bincount(stretch, part.pcycles[rows])
            used = np.flatnonzero(ticks)
            first = rows[np.searchsorted(stretch, used)]
            megahertz = cycles[used] / ticks[used] * program.stats_hz / 1e6
            yield CounterTrack(*divmod(number, program.cores), "Freq", "MHz"), part.start[first], megahertz


def _residencies(work: InferenceWork, held: Residency) -> Found:
    for number, (times, values) in held.items():
        track = CounterTrack(*divmod(number, work.index.program.cores), f"{work.index.local_name} in use", "bytes")
        yield track, *_peaks(times, values.astype(np.float64))


def _peaks(times: Numbers, values: npt.NDArray[np.float64]) -> tuple[Numbers, npt.NDArray[np.float64]]:
    """Where there are too many points, the largest of every window: peaks stay true."""
    if len(times) <= MOST_POINTS:
        return times, values
    first = np.linspace(0, len(times), MOST_POINTS, endpoint=False).astype(np.int64)
    return times[first], np.maximum.reduceat(values, first)
