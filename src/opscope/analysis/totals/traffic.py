"""How many bytes went to and from outer memory?"""

from __future__ import annotations

import numpy as np

from ...recording.summary import MemoryTotal
from .work import Numbers, Work, total


def outer_traffic(work: Work) -> tuple[MemoryTotal, ...]:
    """Per device, of the transfers that were recorded; the flush of the statistics is part of it."""
    index, program = work.index, work.index.program
    if len(index.memories) < 2:
        return ()
    command = work.transfers.command
    device = index.core[command] // program.cores
    sums: dict[str, Numbers] = {}
    for carries in ("read", "write"):
        wanted = np.array([route.carries == carries for route in program.routes] + [False])
        moved = np.where(wanted[index.route[command]], index.moved_bytes[command], 0)
        sums[carries] = total(device, moved, program.devices)
    return tuple(
        MemoryTotal(
            index.memories[1], number, None, None, None, None, int(sums["read"][number]), int(sums["write"][number])
        )
        for number in np.unique(device).tolist()
    )
