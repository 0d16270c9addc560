"""Whom do lanes wait for?"""

from __future__ import annotations

import numpy as np

from ..program import NO_OP, NO_ROUTE, Program
from ..summary import ProducerTotal, WaitTotal
from ..trace import NONE
from .ops import OTHER
from .work import Numbers, Spans, Work, total

UNKNOWN_PRODUCER = "unknown"
_TRANSFERS = {"multicast": "multicast", "link": "link"}  # of other routes, the name says more


def wait_totals(work: Work) -> tuple[WaitTotal, ...]:
    """Per waiting group and cause: an engine of the core, a transfer, another core, another device."""
    program, spans = work.index.program, work.waits
    cause, names = _causes(program, spans)
    group = program.commands["group"][spans["command"]].astype(np.int64)
    key = group * len(names) + cause
    count = len(program.groups) * len(names)
    counts = np.bincount(key, minlength=count)
    ns = total(key, spans["end_ns"] - spans["start_ns"], count)
    rows = [
        WaitTotal(program.groups[place // len(names)].name, names[place % len(names)], int(ns[place]), int(counts[place]))
        for place in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.wait_ns, row.group, row.cause)))


def _causes(program: Program, spans: Spans) -> tuple[Numbers, list[str]]:
    """Number of the cause of every wait, and what the numbers mean."""
    routes, groups = len(program.routes), len(program.groups)
    names = [UNKNOWN_PRODUCER]
    names += [f"DMA {route.name}" for route in program.routes]
    names += [f"DMA {route.name} of another core" for route in program.routes]
    names += [f"DMA {route.name} of another device" for route in program.routes]
    for where in ("", " of another core", " of another device"):
        names += [f"{group.name}{where}" for group in program.groups]
    known = spans["waits_on"] != NONE
    producer = program.commands[np.where(known, spans["waits_on"], 0)]
    waiter = program.commands[spans["command"]]
    far = (producer["core"] != waiter["core"]).astype(np.int64)
    far = np.where(producer["device"] != waiter["device"], 2, far)
    transfer = producer["route"] != NO_ROUTE
    moved = 1 + far * routes + producer["route"]
    computed = 1 + 3 * routes + far * groups + producer["group"]
    return np.where(known, np.where(transfer, moved, computed), 0).astype(np.int64), names


def producer_totals(work: Work, *, most: int = 20) -> tuple[ProducerTotal, ...]:
    """The op and lane that was waited for longest, first."""
    program = work.index.program
    spans = work.waits[work.waits["waits_on"] != NONE]
    if not len(spans):
        return ()
    source = program.commands[spans["waits_on"]]
    op = np.where(source["op"] == NO_OP, len(program.ops), source["op"]).astype(np.int64)
    lane = work.index.core_of[spans["waits_on"]] * len(program.groups) + source["group"]
    key = (op * program.lanes + lane) * len(program.kinds) + source["kind"]
    codes, place = np.unique(key, return_inverse=True)
    place = place.reshape(-1)
    ns = total(place, spans["end_ns"] - spans["start_ns"], len(codes))
    counts = np.bincount(place, minlength=len(codes))
    rows = []
    for chosen in np.lexsort((codes, -ns))[:most].tolist():
        rest, kind = divmod(int(codes[chosen]), len(program.kinds))
        op_number, lane_number = divmod(rest, program.lanes)
        core, group = divmod(lane_number, len(program.groups))
        name = program.ops[op_number].name if op_number < len(program.ops) else OTHER
        rows.append(ProducerTotal(name, program.kinds[kind], program.groups[group].name, *divmod(core, program.cores),
                                  int(ns[chosen]), int(counts[chosen])))  # fmt: skip
    return tuple(rows)
