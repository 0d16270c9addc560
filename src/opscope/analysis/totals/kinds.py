"""Where do the cycles of a core go, by kind of command and by length? The op table, with what lanes waited."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...program.capture import Capture
from ...program.wire import StatsSection
from ...recording.summary import KB, Bucket, KindRow
from ..timeline.intervals import total
from .work import InferenceWork

_FIRST_NS = 1000


def kind_rows(work: InferenceWork, capture: Capture) -> tuple[KindRow, ...]:
    """Per core, costliest first."""
    rows = [*_command_rows(work, capture), *_sync_rows(work, capture), *_barrier_rows(work, capture)]
    rows.sort(key=lambda row: (row.core, -row.ucycles, row.kind, row.group, row.memory, row.types))
    return tuple(rows)


def _command_rows(work: InferenceWork, capture: Capture) -> Iterator[KindRow]:
    """A row for every core and kind of command that ran there; kinds are told apart by group, memory and types too.

    Core and row of the table become one number, core × rows + row, so that each column is added up in one pass.
    """
    index, part = work.index, work.commands
    rows = len(index.row_keys)
    key = (index.core[part.command] - capture.device * capture.cores) * rows + index.row[part.command]
    count = capture.cores * rows
    out_bytes = index.out_bytes[part.command]
    counts = np.bincount(key, minlength=count)
    ucycles, pcycles = total(key, part.ucycles, count), total(key, part.pcycles, count)
    sizes = total(key, out_bytes, count)
    deviations = _deviation(key, part.pcycles, out_bytes, count)
    for place in np.flatnonzero(counts).tolist():
        core, row = divmod(place, rows)
        deviation = None if np.isnan(deviations[place]) else float(deviations[place])
        yield KindRow(
            core,
            *index.row_keys[row],
            int(ucycles[place]),
            int(pcycles[place]),
            int(counts[place]),
            int(sizes[place]),
            deviation,
        )


def _deviation(key: Numbers, pcycles: Numbers, out_bytes: Numbers, count: int) -> npt.NDArray[np.float64]:
    """Standard deviation, per key, of pcycles per KB over the commands that write anything; NaN: none does."""
    writes = out_bytes > 0
    key, rate = key[writes], pcycles[writes] / (out_bytes[writes] / KB)
    counts = np.bincount(key, minlength=count)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(key, rate, minlength=count) / counts
        spread: npt.NDArray[np.float64] = np.sqrt(np.bincount(key, (rate - mean[key]) ** 2, minlength=count) / counts)
    return spread


def _sync_rows(work: InferenceWork, capture: Capture) -> Iterator[KindRow]:
    index, part = work.index, work.waits
    groups = index.program.groups
    core = index.core[part.command] - capture.device * capture.cores
    key = core * len(groups) + index.group[part.command]
    counts = np.bincount(key, minlength=capture.cores * len(groups))
    ticks = total(key, part.ucycles, len(counts))
    for place in np.flatnonzero(counts).tolist():
        core_number, group = divmod(place, len(groups))
        yield _wait_row(core_number, "sync", groups[group].name, int(ticks[place]), int(counts[place]))


def _barrier_rows(work: InferenceWork, capture: Capture) -> Iterator[KindRow]:
    """Threads of a group meet after every command; the row counts the one that waited longest.

    A group of one thread meets nobody: its barriers last no tick.
    """
    for core in range(capture.cores):
        records = capture.sections.get((StatsSection.OPS, core))
        if records is None:
            continue
        for number, group in enumerate(work.index.program.groups):
            own = records["barrier"][records["group"] == number].reshape(-1, group.threads)
            ticks = int(np.maximum.reduce([own[:, thread] for thread in range(group.threads)]).sum()) if len(own) else 0
            if len(own):
                yield _wait_row(core, "barrier", group.name, ticks, len(own))


def _wait_row(core: int, kind: str, group: str, ticks: int, count: int) -> KindRow:
    return KindRow(core, kind, group, "", "", ticks, None, count, None, None, is_wait=True)


def histogram(work: InferenceWork) -> tuple[Bucket, ...]:
    """Commands by duration, in buckets that double: below 1 µs, below 2 µs, below 4 µs, …"""
    ns = work.network.ns
    if not len(ns):
        return ()
    most = int(ns.max()) // _FIRST_NS
    edges = _FIRST_NS << np.arange(most.bit_length() + 1)
    bucket = np.searchsorted(edges, ns, side="right")
    counts, sums = np.bincount(bucket, minlength=len(edges)), total(bucket, ns, len(edges))
    lows = [0, *edges.tolist()]
    return tuple(
        Bucket(low, int(high), int(count), int(busy))
        for low, high, count, busy in zip(lows, edges, counts, sums, strict=False)
    )
