"""The critical path on the table of spans: what of it each span is, and the stretches that it is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.columns import Numbers
from ...recording.trace import NONE
from ..causes import CAUSES
from ..run_analysis import RunAnalysis
from .intervals import total


@dataclass(frozen=True, slots=True)
class PathMarks:
    """Of one run; rows are of its spans table. It is the path that `opscope analyze --path` lists."""

    ns: Numbers  # per row, how much of the path it is
    start: Numbers  # of stretches, which lie end to end
    end: Numbers
    row: Numbers  # the span at work in a stretch; NONE: a gap
    cause: Numbers  # position in `causes`
    causes: tuple[str, ...] = CAUSES


def path_marks(analysis: RunAnalysis) -> PathMarks:
    """The path of a run; of one without a timeline it is empty."""
    path, rows = analysis.path, np.append(analysis.work.row, NONE)
    row = np.where(path.is_gap == 1, NONE, rows[path.activity])
    at_work = row != NONE
    ns = total(row[at_work], path.ns[at_work], len(analysis.run.trace.spans))
    return PathMarks(ns, path.start, path.end, row, path.cause)
