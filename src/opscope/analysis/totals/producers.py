"""Which producers are waited for longest?"""

from __future__ import annotations

import numpy as np

from ...recording.summary import ProducerTotal
from ...recording.trace import NONE
from .ops import OTHER
from .work import Work, total


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
