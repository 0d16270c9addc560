"""How many bytes went to and from outer memory?"""

from __future__ import annotations

import numpy as np

from ..summary import MemoryTotal
from .placement import outer_memories
from .work import Work


def outer_traffic(work: Work) -> tuple[MemoryTotal, ...]:
    """Per device, of the transfers that were recorded; the flush of the statistics is part of it."""
    program = work.index.program
    commands = program.commands[work.transfers["command"]]
    outer = outer_memories(program)
    if not outer:
        return ()
    sums = {}
    for carries in ("read", "write"):
        wanted = np.array([route.carries == carries for route in program.routes] + [False])
        chosen = commands[wanted[commands["route"]]]
        sums[carries] = np.bincount(chosen["device"], chosen["moved_bytes"], minlength=program.devices)
    seen = np.unique(commands["device"]).tolist()
    return tuple(
        MemoryTotal(outer[0], device, None, None, None, None, round(sums["read"][device]), round(sums["write"][device]))
        for device in seen
    )
