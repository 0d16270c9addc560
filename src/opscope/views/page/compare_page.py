"""Two or more Runs on one self-contained page: metrics side by side and what changed per op."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TextIO

from ... import __version__
from ...core.errors import UsageError
from ...gate.comparison import ADDED, REMOVED, Comparison, OpDifference, Part
from ...recording.run import Run
from .contract import (
    COMPARE_SCHEMA,
    Compared,
    CompareData,
    ComparedCheck,
    ComparedFamily,
    ComparedOp,
    ComparedPart,
    ComparedRun,
    Producer,
)
from .html import write_page

MOST_PARTS = 40
MOST_OPS = 20_000


class ComparePage:
    """The first Run is the base.

    Args:
        labels: what to call the runs, one each; default: their networks, or their models where those are the same.
    """

    suffix = ".html"

    def __init__(self, *, labels: Sequence[str] | None = None) -> None:
        self.labels = labels

    def render(self, runs: Sequence[Run], comparison: Comparison | None, out: TextIO) -> None:
        """The page with every run in it, and their comparison where there is one."""
        if len(runs) < 2:
            raise UsageError(f"{len(runs)} run: nothing to compare; expected two or more")
        labels = list(self.labels) if self.labels is not None else default_labels(runs)
        if len(labels) != len(runs):
            raise UsageError(f"{len(labels)} labels for {len(runs)} runs; expected one each")
        write_page(
            out,
            title=f"{' against '.join(labels)} – opscope",
            generator=f"opscope {__version__}",
            data=CompareData(
                schema=COMPARE_SCHEMA,
                producer=Producer("opscope", __version__),
                runs=tuple(ComparedRun(label, run.info, run.summary) for label, run in zip(labels, runs, strict=True)),
                compared=None if comparison is None else _compared(comparison),
            ),
        )


def default_labels(runs: Sequence[Run]) -> list[str]:
    """Words that tell the runs apart, with numbers where nothing else does."""
    for words in (
        [run.info.network for run in runs],
        [PurePath(run.info.model).name for run in runs],
        [run.info.target for run in runs],
    ):
        if len(set(words)) == len(runs):
            return words
    return ["base", *([f"new {number}" for number in range(1, len(runs))] if len(runs) > 2 else ["new"])]


def _compared(comparison: Comparison) -> Compared:
    explanation = comparison.explanation
    parts: tuple[Part, ...] = () if explanation is None else (*explanation.parts[:MOST_PARTS], explanation.rest)
    return Compared(
        verdict=comparison.word,
        checks=tuple(ComparedCheck(check.name, check.passed, check.reason) for check in comparison.verdict.checks),
        change_ns=None if explanation is None else explanation.change_ns,
        parts=tuple(ComparedPart(part.name, part.how, part.ns) for part in parts),
        ops=tuple(_op(row) for row in comparison.ops[:MOST_OPS]),
        families=tuple(
            ComparedFamily(family.name, family.ops, family.predicted_ns, family.measured_ns)
            for family in comparison.families
        ),
        notes=comparison.notes,
    )


def _op(row: OpDifference) -> ComparedOp:
    """An op that only one run has costs nothing in the other."""
    base, new = row.time.base, row.time.new
    change = {ADDED: new, REMOVED: None if base is None else -base}.get(row.how, row.time.change)
    return ComparedOp(row.name, row.type, row.how, base, new, change)
