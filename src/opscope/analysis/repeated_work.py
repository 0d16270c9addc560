"""Which products did more than one core compute whole? Commands say what they write, and of which tensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.columns import Numbers
from ..core.meaning import Does
from ..program.program import NO_OP, NO_ROUTE
from ..recording.run import Run
from ..recording.trace import NONE
from .outer_memory import named_tensors

ONE_RESULT = ("conv", "conv_transpose", "matmul", "einsum")  # kinds whose commands write one tensor and nothing beside


@dataclass(frozen=True, slots=True)
class RepeatedWork:
    """A product that was computed several times over."""

    op: int
    times: int
    macs: int  # of all times together
    commands: Numbers

    @property
    def again_macs(self) -> int:
        """Beyond the first time."""
        return self.macs - self.macs // self.times


def repeated_work(run: Run) -> tuple[RepeatedWork, ...]:
    """Per tensor that was written more than once; none where commands do not name tensors.

    Partial sums are as large as the result too. Commands without products add them up, and tell them apart.

    Example: a result of 100 bytes, and commands that multiply on two cores. Where each writes 50 bytes, it was computed
    once; where each writes 100, twice. Where each writes 100 and another command, of no products, writes it as well,
    the two are partial sums, and the tensor is left out.
    """
    rows = run.commands.rows
    products = np.array([*(op.kind in ONE_RESULT for op in run.ops), False])  # the last is where NO_OP points
    at_work = np.flatnonzero((rows["route"] == NO_ROUTE) & (rows["op"] >= NO_OP))
    at_work = at_work[products[rows["op"][at_work]]]
    named, tensors = named_tensors(run)
    tensor = named[rows["detail"][at_work]]
    multiplies, is_named = rows["macs"][at_work] > 0, tensor != NONE
    sums = tensor[~multiplies & (rows["does"][at_work] == Does.COMPUTE) & is_named]
    kept = multiplies & is_named & ~np.isin(tensor, sums)
    chosen, tensor = at_work[kept], tensor[kept]
    written = np.bincount(tensor, rows["out_bytes"][chosen], minlength=len(tensors))
    found = []
    for number in np.flatnonzero(written).tolist():
        size = tensors[number][1]
        times = round(written[number] / size) if size else 1
        if times > 1:
            commands = chosen[tensor == number]
            op, macs = int(rows["op"][commands[0]]), int(rows["macs"][commands].sum())
            found.append(RepeatedWork(op, times, macs, commands))
    return tuple(found)
