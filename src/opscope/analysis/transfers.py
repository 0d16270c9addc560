"""How long were bytes in flight, on which route, and how many per second?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..summary import RouteTotal
from .intervals import most_open, union_ns
from .work import Numbers, Spans, Work, total


def route_totals(work: Work) -> tuple[RouteTotal, ...]:
    """Per device and route, then per core; the flush of the statistics is left out."""
    program = work.index.program
    spans = work.transfers[~work.index.is_flush[work.transfers["command"]]]
    routes = len(program.routes)
    commands = program.commands[spans["command"]]
    device = commands["device"].astype(np.int64) * routes + commands["route"]
    core = work.index.core_of[spans["command"]] * routes + commands["route"]
    rows = list(_totals(work, spans, device, program.devices * routes, per_core=False))
    return (*rows, *_totals(work, spans, core, program.devices * program.cores * routes, per_core=True))


def _totals(work: Work, spans: Spans, key: Numbers, count: int, *, per_core: bool) -> Iterator[RouteTotal]:
    program = work.index.program
    moved = total(key, program.commands["moved_bytes"][spans["command"]], count)
    busy = union_ns(key, spans["start_ns"], spans["end_ns"], count)
    most = most_open(key, spans["start_ns"], spans["end_ns"], count)
    counts = np.bincount(key, minlength=count)
    for place in np.flatnonzero(counts).tolist():
        owner, route = divmod(place, len(program.routes))
        device, core = divmod(owner, program.cores) if per_core else (owner, None)
        yield RouteTotal(device, core, program.routes[route].name, int(counts[place]), int(moved[place]),
                         int(busy[place]), int(most[place]))  # fmt: skip
