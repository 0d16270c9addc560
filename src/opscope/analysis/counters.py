"""What changes over time: clock of every core, bandwidth of outer memory, how full local memory is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..trace import COUNTER, NONE, CounterTrack, Trace
from .intervals import total_between
from .residency import Occupancy
from .work import Numbers, Work

FREQUENCY_TICKS = 2048  # so many ticks of work give the clock to better than 0.1 %
BANDWIDTH_POINTS = 500


def with_counters(work: Work, held: Occupancy, local_name: str) -> Trace:
    """The trace with the counters that can be read off it."""
    tracks, blocks = [], []
    found = (*_frequencies(work), *_bandwidths(work), *_occupancies(work, held, local_name))
    for number, (track, times, values) in enumerate(found):
        block = np.zeros(len(times), COUNTER)
        block["counter"], block["time_ns"], block["value"] = number, times, values
        tracks.append(track)
        blocks.append(block)
    samples = np.concatenate([np.zeros(0, COUNTER), *blocks])
    return replace(work.trace, counters=tuple(tracks), samples=samples)


Found = Iterator[tuple[CounterTrack, Numbers, np.ndarray[tuple[int], np.dtype[np.float64]]]]


def _frequencies(work: Work) -> Found:
    """Core cycles per tick of the commands that computed, over stretches long enough to tell."""
    index, program = work.index, work.index.program
    spans = work.ops[~index.moves[work.ops["command"]]]
    spans = spans[spans["ucycles"] > 0]
    core = index.core_of[spans["command"]]
    order = np.lexsort((spans["start_ns"], core))
    bounds = np.searchsorted(core[order], np.arange(program.devices * program.cores + 1))
    for number, (low, high) in enumerate(zip(bounds.tolist(), bounds[1:].tolist(), strict=False)):
        own = spans[order[low:high]]
        if len(own):
            device, place = divmod(number, program.cores)
            stretch = np.cumsum(own["ucycles"]) // FREQUENCY_TICKS
            ticks, cycles = np.bincount(stretch, own["ucycles"]), np.bincount(stretch, own["pcycles"])
            used = np.flatnonzero(ticks)
            first = np.searchsorted(stretch, used)
            megahertz = cycles[used] / ticks[used] * program.stats_hz / 1e6
            yield CounterTrack(device, place, "Freq", "MHz"), own["start_ns"][first], megahertz


def _bandwidths(work: Work) -> Found:
    """Bytes in flight to and from outer memory, averaged over equal windows of the inference."""
    program, windows = work.index.program, work.core_windows()
    if not windows or not len(work.transfers):
        return
    begin, end = min(start for start, _ in windows.values()), max(end for _, end in windows.values())
    edges = np.unique(np.linspace(begin, max(end, begin + 1), BANDWIDTH_POINTS + 1).astype(np.int64))
    commands = program.commands[work.transfers["command"]]
    for device in np.unique(commands["device"]).tolist():
        for number, route in enumerate(program.routes):
            if route.carries in ("read", "write"):
                rows = (commands["device"] == device) & (commands["route"] == number)
                spans = work.transfers[rows]
                moved = commands["moved_bytes"][rows].astype(np.int64)
                amount = total_between(edges, spans["start_ns"], spans["end_ns"], moved)
                rate = np.append(np.maximum(amount, 0.0) / np.diff(edges), 0.0)
                yield CounterTrack(device, NONE, f"{route.name} bandwidth", "GB/s"), edges, rate


def _occupancies(work: Work, held: Occupancy, local_name: str) -> Found:
    for number, (times, values) in held.items():
        device, core = divmod(number, work.index.program.cores)
        yield CounterTrack(device, core, f"{local_name} in use", "bytes"), times, values.astype(np.float64)
