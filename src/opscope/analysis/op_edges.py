"""Which op gives data to which: as the graph says, else read off the dependencies and operands of commands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.columns import Numbers
from ..core.meaning import Direction
from ..recording.run import CommandTable, Run

MOST_EDGES = 60_000


class OpEdges(NamedTuple):
    """Pairs of ops, each once, ordered."""

    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()


def op_edges(run: Run) -> OpEdges:
    """Data that flows from op to op. An order of commands that memory alone asks for is no flow of data."""
    count = len(run.ops)
    if not count:
        return OpEdges()
    if run.graph is not None:
        codes = _codes(run.graph["source"].astype(np.int64), run.graph["target"].astype(np.int64), count)
    else:
        codes = np.concatenate((_of_commands(run), _of_tensors(run.commands, count)))
    codes = np.unique(codes)[:MOST_EDGES]
    sources, targets = np.divmod(codes, count)
    return OpEdges(tuple(sources.tolist()), tuple(targets.tolist()))


def _of_commands(run: Run) -> Numbers:
    edges = run.trace.edges[run.trace.edges["data"]]
    op = run.commands.rows["op"].astype(np.int64)
    source, target = edges["source"], edges["target"]
    inside = (source >= 0) & (source < len(op)) & (target >= 0) & (target < len(op))
    return _codes(op[source[inside]], op[target[inside]], len(run.ops))


def _codes(source: Numbers, target: Numbers, count: int) -> Numbers:
    known = (source >= 0) & (target >= 0) & (source < count) & (target < count) & (source != target)
    codes: Numbers = source[known] * count + target[known]
    return codes


def _of_tensors(commands: CommandTable, count: int) -> Numbers:
    """A command that names a tensor as its input follows the op that names it as its output."""
    rows = commands.rows
    detail, first = np.unique(rows["detail"], return_index=True)
    ops = rows["op"][first].tolist()
    makers: dict[str, int] = {}
    users: list[tuple[str, int]] = []
    for number, op in zip(detail.tolist(), ops, strict=True):
        for operand in commands.operands[number] if number < len(commands.operands) else ():
            if operand.direction is Direction.OUT:
                makers.setdefault(operand.tensor, op)
            else:
                users.append((operand.tensor, op))
    pairs = [(makers[tensor], op) for tensor, op in users if tensor in makers]
    found = np.array(pairs or np.zeros((0, 2)), np.int64)
    return _codes(found[:, 0], found[:, 1], count)
