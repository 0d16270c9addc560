"""Laws that every Run must obey, each asked once: held, broken, or not knowable from what the run holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...recording.finding import LawCheck
from ...recording.run import Run
from ..run_analysis import RunAnalysis
from .amounts import AMOUNTS
from .arithmetic import macs_within_peak
from .bandwidth import bytes_within_peak, counters_within_peak
from .conservation import CONSERVATION
from .window import busy_within_wall

PHYSICS = (bytes_within_peak, counters_within_peak, macs_within_peak, busy_within_wall, *AMOUNTS)
LAWS: tuple[Callable[[RunAnalysis], Iterator[LawCheck]], ...] = (*CONSERVATION, *PHYSICS)


def check_laws(run: Run) -> tuple[LawCheck, ...]:
    """Every law that a run alone can be held to."""
    return laws_of(RunAnalysis(run))


def laws_of(analysis: RunAnalysis) -> tuple[LawCheck, ...]:
    """The same, of a run whose analysis has begun: what it has computed is used again."""
    return tuple(law for question in LAWS for law in question(analysis))
