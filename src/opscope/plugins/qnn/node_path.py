"""Which op must be done before which, and the dominant path of a timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .importers.schematic import Schematic
from .importers.timeline import Timeline


class Order:
    """The scheduler's constraints, between the spans of a timeline."""

    def __init__(self, timeline: Timeline, schematic: Schematic) -> None:
        """Index the spans by op: which one starts it, and whose end is its end."""
        self.work = timeline.work
        self._ids: list[int] = self.work["id"].tolist()
        self._start: list[int] = self.work["start"].tolist()
        self._end: list[int] = self.work["end"].tolist()
        self._keeps: list[bool] = self.work["bookkeeping"].tolist()
        self._steps = {step.number: step for step in schematic.steps}
        self._number_of = {step.id: step.number for step in schematic.steps}
        self.done_by: dict[int, int] = {}  # op → span whose end is its end
        self._begun_by: dict[int, int] = {}  # op → span of the foreground thread that starts it
        for span, op in enumerate(self._ids):
            if not self._keeps[span] or op not in self.done_by:
                self.done_by[op] = span
            if self._keeps[span]:
                self._begun_by[op] = span
        self._before_in_lane = _before_in_lane(self.work)

    def op_of(self, span: int) -> int:
        return self._ids[span]

    def producers(self, op: int, *, of_work: bool) -> Iterator[int]:
        """Spans that an op waits for; constraints are followed through steps that have no span.

        With `of_work` they are also followed through the foreground thread's bookkeeping.
        """
        number = self._number_of.get(op)
        seen: set[int] = set()
        left = list(self._steps[number].after) if number is not None else []
        while left:
            step = self._steps.get(left.pop())
            if step is None or step.number in seen:
                continue
            seen.add(step.number)
            span = self.done_by.get(step.id)
            if span is not None and not (of_work and self._keeps[span]):
                yield span
            else:
                left.extend(step.after)

    def before(self, span: int) -> Iterator[int]:
        """Everything that could have held a span back."""
        lane = self._before_in_lane[span]
        if lane >= 0:
            yield lane
        op = self._ids[span]
        starter = self._begun_by.get(op)
        if not self._keeps[span] and starter is not None and starter != span:
            yield starter
        else:
            yield from self.producers(op, of_work=False)

    def dominant_path(self) -> tuple[PathPart, ...]:
        """From the last span back to the first, each time through what ended last; parts add up to the whole time."""
        if not len(self.work):
            return ()
        span = int(np.argmax(self.work["end"]))
        end, parts = self._end[span], []
        while True:
            causes = [(min(self._end[c], self._start[span]), c) for c in self.before(span) if self._precedes(c, span)]
            begin, cause = max(causes, default=(0, -1))
            parts.append(PathPart(span, begin, end))
            if cause < 0:
                return tuple(reversed(parts))
            span, end = cause, begin

    def _precedes(self, cause: int, span: int) -> bool:
        """Strictly earlier, so that a walk back comes to an end."""
        return (self._start[cause], self._end[cause], cause) < (self._start[span], self._end[span], span)


@dataclass(frozen=True, slots=True)
class PathPart:
    """A stretch of the dominant path, in cycles: a span with what it waited before it."""

    span: int
    begin: int
    end: int


def _before_in_lane(work: npt.NDArray[np.void]) -> list[int]:
    """The span before each in its lane; -1: it is the first."""
    order = np.lexsort((np.arange(len(work)), work["end"], work["start"], work["lane"]))
    before = np.full(len(work), -1, np.int64)
    same = work["lane"][order][1:] == work["lane"][order][:-1]
    before[order[1:][same]] = order[:-1][same]
    result: list[int] = before.tolist()
    return result
