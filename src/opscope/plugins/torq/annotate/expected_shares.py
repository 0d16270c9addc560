"""What the compiler expects of the units of one inference, as the same figures that a log of the runtime gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from .annotated import SLICE, Job, Share
from .overlap import Busy, Part, UnitClass, shares
from .unit_usage import WAITING, Expected, expected_work, first_cycle

Unit = tuple[str, int | None]
_MOVES = (("dma_in", "DMA"), ("dma_out", "DMA"), ("cdma", ""))


def expected_shares(jobs: Sequence[Job], *, clock_hz: int, slices: int) -> tuple[Share, ...]:
    """Of work that the compiler gave cycles to; none where it gave none."""
    intervals: defaultdict[Unit, list[tuple[int, int]]] = defaultdict(list)
    for work in _on_one_axis(jobs):
        if work.end > work.start and work.unit != "task" and work.name != WAITING:
            intervals[work.unit, work.number].append((work.start, work.end))

    def busy(unit: str, number: int | None = None) -> Busy:
        cycles = np.array(intervals.get((unit, number), ()), np.float64).reshape(-1, 2)
        times = np.rint(cycles * (1e9 / clock_hz)).astype(np.int64)
        return Busy.of(times[:, 0], times[:, 1])

    classes = [UnitClass(unit.upper(), Part.MOVE, busy(unit), group) for unit, group in _MOVES]
    classes += [
        UnitClass(f"SLICE_{number}", Part.COMPUTE, busy(SLICE, number), "SLICE") for number in range(max(slices, 2))
    ]
    classes.append(UnitClass("CSS", Part.COMPUTE, busy("css")))
    return shares(classes) if intervals else ()


def _on_one_axis(jobs: Sequence[Job]) -> Iterator[Expected]:
    """All work with times from the start of the first job. A job without a time of its own follows the one before."""
    base = shift = end = 0
    for job in jobs:
        told = first_cycle(job)
        if told is not None and told + shift < base:  # cycles start again with every dispatch
            shift = end - told
        base = end if told is None else told + shift
        for work in expected_work(job):
            yield Expected(work.unit, work.number, work.name, base + work.start, base + work.end)
            end = max(end, base + work.end)
