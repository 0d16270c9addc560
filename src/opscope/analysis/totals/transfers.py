"""How long were bytes in flight, on which route, and how many per second?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...recording.summary import RouteTotal
from ..timeline.intervals import most_open, union
from .work import Numbers, Part, Work, total


def route_totals(work: Work) -> tuple[RouteTotal, ...]:
    """Per device and route, then per core; the flush of the statistics is left out."""
    index, program = work.index, work.index.program
    part = work.transfers.where(~index.is_flush[work.transfers.command])
    routes = len(program.routes)
    core = index.core[part.command]
    device = core // program.cores * routes + index.route[part.command]
    rows = list(_totals(work, part, device, program.devices * routes, per_core=False))
    own = core * routes + index.route[part.command]
    return (*rows, *_totals(work, part, own, program.devices * program.cores * routes, per_core=True))


def _totals(work: Work, part: Part, key: Numbers, count: int, *, per_core: bool) -> Iterator[RouteTotal]:
    program = work.index.program
    moved = total(key, work.index.moved_bytes[part.command], count)
    busy = union(key, part.start, part.end).total(count)
    most = most_open(key, part.start, part.end, count)
    counts = np.bincount(key, minlength=count)
    for place in np.flatnonzero(counts).tolist():
        owner, route = divmod(place, len(program.routes))
        device, core = divmod(owner, program.cores) if per_core else (owner, None)
        yield RouteTotal(
            device,
            core,
            program.routes[route].name,
            int(counts[place]),
            int(moved[place]),
            int(busy[place]),
            int(most[place]),
        )
