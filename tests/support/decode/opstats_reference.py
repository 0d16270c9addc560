"""The op table and the totals again, slowly and obviously, from raw records and the program alone."""

from __future__ import annotations

from collections import defaultdict
from statistics import pstdev

from opscope.program.capture import Capture
from opscope.program.program import Program
from opscope.program.wire import StatsSection


def records_by_command(program: Program, capture: Capture, core: int) -> dict[int, list[dict[str, int]]]:
    """Command → its records, one per thread."""
    found: dict[int, list[dict[str, int]]] = defaultdict(list)
    for record in capture.sections.get((StatsSection.OPS, core), ()):
        for number, command in enumerate(program.commands):
            place = (command["device"], command["core"], command["group"], command["ordinal"])
            if place == (capture.device, core, record["group"], record["ordinal"]):
                found[number].append({name: int(record[name]) for name in record.dtype.names})
    return found


def op_table(program: Program, capture: Capture, core: int) -> dict[tuple[str, str, str, str], dict[str, float | None]]:
    """(kind, group, memory, types) → ucycles, pcycles, count, out_bytes, deviation."""
    rows: dict[tuple[str, str, str, str], dict[str, float | None]] = {}
    rates: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for number, records in records_by_command(program, capture, core).items():
        command = program.commands[number]
        detail = program.details[command["detail"]]
        key = (program.kinds[command["kind"]], program.groups[command["group"]].name, detail.memory, detail.types)
        row = rows.setdefault(key, {"ucycles": 0, "pcycles": 0, "count": 0, "out_bytes": 0})
        pcycles = max(record["pcycles"] for record in records)
        row["ucycles"] += max(record["ucycles"] for record in records)  # type: ignore[operator]
        row["pcycles"] += pcycles  # type: ignore[operator]
        row["count"] += 1  # type: ignore[operator]
        row["out_bytes"] += int(command["out_bytes"])  # type: ignore[operator]
        if command["out_bytes"]:
            rates[key].append(pcycles / (int(command["out_bytes"]) / 1024))
    for key, row in rows.items():
        row["deviation"] = pstdev(rates[key]) if rates[key] else None
    return rows


def waits(program: Program, capture: Capture, core: int) -> dict[tuple[str, str], tuple[int, int]]:
    """("sync" or "barrier", group) → ticks, count."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for records in records_by_command(program, capture, core).values():
        group = program.groups[records[0]["group"]]
        wait, barrier = records[0]["wait"], max(record["barrier"] for record in records)
        if wait:
            ticks, count = found.get(("sync", group.name), (0, 0))
            found["sync", group.name] = ticks + wait, count + 1
        ticks, count = found.get(("barrier", group.name), (0, 0))
        found["barrier", group.name] = ticks + barrier, count + 1
    return found


def busy_pcycles(capture: Capture, core: int, thread: int) -> int:
    return sum(int(r["pcycles"]) for r in capture.sections.get((StatsSection.OPS, core), ()) if r["thread"] == thread)


def covered(intervals: list[tuple[int, int]]) -> int:
    """Length of the union, nanosecond by nanosecond."""
    return len({ns for start, end in intervals for ns in range(start, end)})
