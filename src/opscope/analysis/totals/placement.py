"""Where do operands live: in local memory, or in outer memory?"""

from __future__ import annotations

import numpy as np

from ...recording.summary import Placement
from .work import Work, total


def placements(work: Work) -> tuple[Placement, ...]:
    """Per kind and group of command, outer-memory time first."""
    index, program, part = work.index, work.index.program, work.network
    lies = index.outer[part.command]
    groups = len(program.groups)
    key = (index.kind[part.command] * groups + index.group[part.command]) * 2 + (lies > 0)
    count = len(program.kinds) * groups * 2
    counts = np.bincount(key, minlength=count).reshape(-1, 2)
    ns = total(key, part.ns, count).reshape(-1, 2)
    where = np.zeros(len(counts), np.int64)
    for number in range(1, len(index.memories)):
        where[np.bincount(key[lies == number] // 2, minlength=len(counts)) > 0] = number
    rows = []
    for place in np.flatnonzero(counts.sum(axis=1)).tolist():
        kind, group = divmod(place, groups)
        (local, outside), (local_ns, outside_ns) = counts[place].tolist(), ns[place].tolist()
        memory = index.memories[where[place]] if outside else ""
        rows.append(
            Placement(program.kinds[kind], program.groups[group].name, local, local_ns, outside, outside_ns, memory)
        )
    return tuple(sorted(rows, key=lambda row: (-row.outer_ns, -row.local_ns, row.kind)))
