"""How long each thread of a core sets up before the first inference of an activation.

Threads and cores are started one after the other and go on together: a thread that is started later has less to wait.
In the published run of BERT-base core 0 took 4386, 4339, 4246, 4161, 4067 ticks on its engines' threads and 1519 on the
one that issues transfers; core 1 took 335 less, and the same on the last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..program.check import fault
from ..program.program import Program

_U32 = 0xFFFFFFFF
_GIGABYTE = 1e9


def activate_ticks(program: Program, core: int) -> npt.NDArray[np.int64]:
    """Return the set-up of every thread of a core: a fixed part, and the constants that are mapped."""
    constants = program.metrics.constants_bytes / program.devices / _GIGABYTE
    first = _ticks(program, "activate_ticks") + constants * _ticks(program, "activate_ticks_per_gigabyte")
    least = min(_ticks(program, "activate_least_ticks"), first)
    later = _ticks(program, "activate_core_ticks") * core
    found: list[float] = []
    for group in program.groups:
        for _ in range(group.threads):
            own = first - later - _ticks(program, "activate_thread_ticks") * len(found)
            found.append(max(own, least) if group.engine or not least else least)
    return np.array([min(round(ticks), _U32) for ticks in found], np.int64)


def _ticks(program: Program, name: str) -> float:
    """Return a figure of the target; 0 if the target does not give it."""
    ticks = program.simulation.get(name, 0.0)
    if not 0.0 <= ticks <= _U32:
        raise fault(program, f"simulation: {name} is {ticks}; expected 0 to {_U32}")
    return ticks
