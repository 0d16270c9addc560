"""How long did every thread take, how busy was it, and what did its counters count?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...program.capture import Capture, Records
from ...program.program import ACTIVE_COUNTS, Program
from ...program.wire import INPUT_PORT, OUTPUT_PORT, StatsSection
from ...recording.summary import ActiveRow, DdrRow, DoorbellRow, OpPmuRow, PmuRow, PortRow, ThreadRow
from ..timeline.intervals import total

_PORT_LEVEL, _OP_LEVEL = 50, 70


def _records(capture: Capture, kind: StatsSection, core: int) -> list[Records]:
    found = capture.sections.get((kind, core))
    return [] if found is None else [found]


def thread_rows(program: Program, capture: Capture) -> tuple[ThreadRow, ...]:
    rows = []
    for core in range(capture.cores):
        busy = _busy_pcycles(capture, core)
        for records in _records(capture, StatsSection.THREADS, core):
            rows += [
                ThreadRow(
                    core,
                    thread,
                    program.groups[group].name,
                    start,
                    end,
                    pcycles,
                    None if busy is None else int(busy[thread]),
                    activate,
                )
                for thread, group, activate, start, end, pcycles in records.tolist()
            ]
    return tuple(rows)


def _busy_pcycles(capture: Capture, core: int) -> npt.NDArray[np.int64] | None:
    """Per thread, the pcycles of all its commands; None where the stats level does not record every command."""
    if capture.level < _OP_LEVEL:
        return None
    for records in _records(capture, StatsSection.OPS, core):
        return total(records["thread"].astype(np.int64), records["pcycles"], capture.threads)
    return np.zeros(capture.threads, np.int64)


def inference_pcycles(capture: Capture) -> tuple[int, ...]:
    """Per core, pcycles from its first start to its last end: those of the longest thread, carried to that window."""
    result = []
    for core in range(capture.cores):
        for records in _records(capture, StatsSection.THREADS, core):
            ticks = (records["end"] - records["start"]).astype(np.int64)
            longest = int(records["pcycles"].argmax())
            window = int(records["end"].max()) - int(records["start"].min())
            pcycles = int(records["pcycles"][longest])
            result.append(round(pcycles * window / int(ticks[longest])) if ticks[longest] else pcycles)
    return tuple(result)


def port_rows(capture: Capture) -> tuple[PortRow, ...]:
    """Every thread at every port; one that has no record did not wait."""
    if capture.level < _PORT_LEVEL:
        return ()
    rows = []
    for core in range(capture.cores):
        waits = {
            (port, thread): wait
            for records in _records(capture, StatsSection.PORTS, core)
            for thread, port, wait in records.tolist()
        }
        ports = sorted({INPUT_PORT, OUTPUT_PORT, *(port for port, _ in waits)})
        rows += [
            PortRow(core, thread, port, waits.get((port, thread), 0), port == INPUT_PORT)
            for port in ports
            for thread in range(capture.threads)
        ]
    return tuple(rows)


def doorbell_rows(capture: Capture) -> tuple[DoorbellRow, ...]:
    """When the host rang for an input, in the order of the records."""
    return tuple(
        DoorbellRow(core, port, time)
        for core in range(capture.cores)
        for records in _records(capture, StatsSection.DOORBELLS, core)
        for port, time in zip(records["port"].tolist(), records["time"].tolist(), strict=True)
    )


def ddr_rows(program: Program, capture: Capture) -> tuple[DdrRow, ...]:
    return tuple(
        DdrRow(core, program.outer_memory, *record)
        for core in range(capture.cores)
        for records in _records(capture, StatsSection.DDR, core)
        for record in records.tolist()
    )


def pmu_rows(program: Program, capture: Capture) -> tuple[PmuRow, ...]:
    """What every thread counted; events that are not simulated are unknown."""
    names, stats, rows = event_names(program), program.stats, []
    unknown = [event for event, counts in zip(stats.events, stats.event_counts, strict=False) if not counts]
    for core in range(capture.cores):
        for records in _records(capture, StatsSection.PMU, core):
            rows += [
                PmuRow(core, thread, event, names.get(event, f"{event:X}"), value)
                for thread, event, _, value in records.tolist()
            ]
        rows += [
            PmuRow(core, thread, event, names[event], None) for event in unknown for thread in range(capture.threads)
        ]
    return tuple(rows)


def op_pmu_rows(program: Program, capture: Capture) -> tuple[OpPmuRow, ...]:
    """Counters of single commands, added up by kind.

    Event and kind are one whole number, so that all records of a core are added up at once: with 20 kinds, event 3F
    (63) in commands of kind 4 is 63 × 20 + 4 = 1264, and divmod(1264, 20) gives both back. Every thread of a group
    counts, so commands are counted where the first thread of their group did.
    """
    names, rows = event_names(program), []
    first = np.searchsorted(program.lane_of_commands(), np.arange(program.lanes + 1))
    groups = np.repeat(np.arange(len(program.groups)), [group.threads for group in program.groups])
    for core in range(capture.cores):
        for records in _records(capture, StatsSection.OP_PMU, core):
            lane = (capture.device * program.cores + core) * len(program.groups) + groups[records["thread"]]
            kind = program.commands["kind"][np.minimum(first[lane] + records["ordinal"], len(program.commands) - 1)]
            key = records["event"].astype(np.int64) * len(program.kinds) + kind
            codes, place = np.unique(key, return_inverse=True)
            values = np.bincount(place.reshape(-1), records["value"].astype(np.float64))
            counts = np.bincount(
                place.reshape(-1), records["thread"] == _first_thread(groups)[groups[records["thread"]]]
            )
            for code, value, count in zip(codes.tolist(), values.tolist(), counts.tolist(), strict=True):
                event, number = divmod(code, len(program.kinds))
                rows.append(
                    OpPmuRow(
                        core, event, names.get(event, f"{event:X}"), program.kinds[number], round(value), round(count)
                    )
                )
    return tuple(sorted(rows, key=lambda row: (row.core, row.event, -row.value, row.kind)))


def _first_thread(groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.searchsorted(groups, np.arange(int(groups.max()) + 1))


def active_rows(program: Program, rows: tuple[PmuRow, ...]) -> tuple[ActiveRow, ...]:
    """Share of the counted cycles in which a group was at work, where both were counted."""
    counts, blocks = dict(zip(program.stats.events, program.stats.event_counts, strict=False)), program.stats.blocks()
    rows = tuple(row for row in rows if row.value is not None)
    cycles = {(row.core, row.thread): row.value or 0 for row in rows if counts.get(row.event) == "cycles"}
    found: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        what, _, group = counts.get(row.event, "").partition(":")
        if what in ACTIVE_COUNTS and group and (row.core, row.thread) in cycles:
            sums = found.setdefault((row.core, blocks[row.event]), [0, 0])
            sums[0] += row.value or 0
            sums[1] += cycles[row.core, row.thread]
    return tuple(
        ActiveRow(core, block, busy / whole if whole else 0.0) for (core, block), (busy, whole) in found.items()
    )


def event_names(program: Program) -> dict[int, str]:
    return dict(zip(program.stats.events, program.stats.event_names, strict=False))


def lost_records(capture: Capture) -> int:
    """Commands whose records did not fit, summed over threads."""
    return sum(
        int(records["count"].sum())
        for core in range(capture.cores)
        for records in _records(capture, StatsSection.LOST, core)
    )
