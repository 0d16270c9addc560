"""Where do operands live: in local memory, or in outer memory?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..program import NO_ROUTE, Program
from ..summary import Placement
from .work import Work, total

LOCAL = "local"


def outer_memories(program: Program) -> tuple[str, ...]:
    """Names of memories that transfers read from or write to."""
    ways = np.array([route.carries in ("read", "write") for route in program.routes] + [False])
    outside = ways[program.commands["route"]] & (program.commands["route"] != NO_ROUTE)
    return tuple(sorted({program.details[d].memory for d in np.unique(program.commands["detail"][outside]).tolist()}))


def outer_operand(program: Program) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """Detail → 0 for all operands in local memory, else the number of the outer memory; and the names of the numbers."""
    outer = outer_memories(program)
    place = {name: number for number, name in enumerate(outer, start=1)}
    numbers = [
        max((place.get(name, 0) for name in (detail.memory, *map(_memory_of, detail.operands))), default=0)
        for detail in program.details
    ]
    return np.array(numbers or [0], np.int64), (LOCAL, *outer)


def _memory_of(operand: str) -> str:
    """`in DDR Src name f16 <1 x 2> 3KB` → DDR."""
    words = operand.split(" ", 2)
    return words[1] if len(words) > 1 else ""


def placements(work: Work) -> tuple[Placement, ...]:
    """Per kind and group of command, outer-memory time first."""
    index, program = work.index, work.index.program
    outer, names = outer_operand(program)
    spans = work.commands[~index.is_flush[work.commands["command"]]]
    commands = program.commands[spans["command"]]
    lies = outer[commands["detail"]]
    groups = len(program.groups)
    key = (commands["kind"].astype(np.int64) * groups + commands["group"]) * 2 + (lies > 0)
    count = len(program.kinds) * groups * 2
    counts = np.bincount(key, minlength=count).reshape(-1, 2)
    ns = total(key, spans["end_ns"] - spans["start_ns"], count).reshape(-1, 2)
    where = np.zeros(len(counts), np.int64)
    np.maximum.at(where, key // 2, lies)
    rows = []
    for place in np.flatnonzero(counts.sum(axis=1)).tolist():
        kind, group = divmod(place, groups)
        (local, outside), (local_ns, outside_ns) = counts[place].tolist(), ns[place].tolist()
        memory = names[where[place]] if outside else ""
        rows.append(Placement(program.kinds[kind], program.groups[group].name, local, local_ns, outside, outside_ns, memory))
    return tuple(sorted(rows, key=lambda row: (-row.outer_ns, -row.local_ns, row.kind)))
