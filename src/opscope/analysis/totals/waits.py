"""Whom do lanes wait for?"""

from __future__ import annotations

import numpy as np

from ...recording.summary import ProducerTotal, WaitTotal
from ...recording.trace import NONE
from .ops import OTHER
from .work import Numbers, Work, total

UNKNOWN_PRODUCER = "unknown"
_DISTANCES = ("", " of another core", " of another device")


def wait_totals(work: Work) -> tuple[WaitTotal, ...]:
    """Per waiting group and cause: an engine of the core, a transfer, another core, another device."""
    program = work.index.program
    cause, names = _causes(work)
    key = work.index.group[work.waits.command] * len(names) + cause
    count = len(program.groups) * len(names)
    counts, ns = np.bincount(key, minlength=count), total(key, work.waits.ns, count)
    rows = [
        WaitTotal(
            program.groups[place // len(names)].name, names[place % len(names)], int(ns[place]), int(counts[place])
        )
        for place in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.wait_ns, row.group, row.cause)))


def _causes(work: Work) -> tuple[Numbers, list[str]]:
    """Number of the cause of every wait, and what the numbers mean."""
    index, program, part = work.index, work.index.program, work.waits
    routes, groups = len(program.routes), len(program.groups)
    names = [UNKNOWN_PRODUCER]
    names += [f"DMA {route.name}{where}" for where in _DISTANCES for route in program.routes]
    names += [f"{group.name}{where}" for where in _DISTANCES for group in program.groups]
    known = work.waits_on != NONE
    producer = np.where(known, work.waits_on, 0)
    here, there = index.core[part.command], index.core[producer]
    far = (here != there).astype(np.int64) + (here // program.cores != there // program.cores)
    moved = 1 + far * routes + index.route[producer]
    computed = 1 + 3 * routes + far * groups + index.group[producer]
    return np.where(known, np.where(index.moves[producer], moved, computed), 0), names


def producer_totals(work: Work, *, most: int = 20) -> tuple[ProducerTotal, ...]:
    """The op and lane that was waited for longest, first."""
    index, program = work.index, work.index.program
    known, codes = work.waits_on != NONE, index.producers
    place = index.producer[work.waits_on[known]]
    ns, counts = total(place, work.waits.ns[known], len(codes)), np.bincount(place, minlength=len(codes))
    longest = np.lexsort((codes, -ns))[:most]
    rows = []
    for chosen in longest[counts[longest] > 0].tolist():
        rest, kind = divmod(int(codes[chosen]), len(program.kinds))
        op, lane_number = divmod(rest, program.lanes)
        core, group = divmod(lane_number, len(program.groups))
        name = program.ops[op].name if op < len(program.ops) else OTHER
        rows.append(
            ProducerTotal(
                name,
                program.kinds[kind],
                program.groups[group].name,
                *divmod(core, program.cores),
                int(ns[chosen]),
                int(counts[chosen]),
            )
        )
    return tuple(rows)
