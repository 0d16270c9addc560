"""Estimated times of commands as CSV: ID, start and end in cycles, location, op type."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from ...program.program import Program

_PREFIX = {"read": "DI", "write": "DO"}
_TYPES = {"read": "DMA_IN", "write": "DMA_OUT", "multicast": "MULTICAST", "link": "P2P"}


class TimelineCsv:
    """One row per command in order of start. DI# reads from outer memory, DO# writes to it, S# does anything else."""

    suffix = ".csv"

    def render(self, program: Program, start: Sequence[float], end: Sequence[float], out: TextIO) -> None:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["ID", "Start", "End", "Location", "Op Type"])
        table = program.commands
        counts = {"DI": 0, "DO": 0, "S": 0}
        for command in sorted(range(len(table)), key=lambda c: (start[c], c)):
            route, op = int(table["route"][command]), int(table["op"][command])
            carries = program.routes[route].carries if route >= 0 else ""
            prefix = _PREFIX.get(carries, "S")
            kind = _TYPES.get(carries) or program.kinds[int(table["kind"][command])]
            location = f"{program.ops[op].location} {program.ops[op].name}" if op >= 0 else ""
            rows.writerow([f"{prefix}{counts[prefix]}", round(start[command]), round(end[command]), location, kind])
            counts[prefix] += 1
