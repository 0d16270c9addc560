"""Laws that every Run must obey, each asked once: held, broken, or not knowable from what the run holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...recording.finding import LawCheck
from ..run_analysis import RunAnalysis
from .amounts import AMOUNTS
from .arithmetic import macs_within_peak
from .bandwidth import bytes_within_peak, counters_within_peak
from .conservation import CONSERVATION
from .window import busy_within_wall

PHYSICS = (bytes_within_peak, counters_within_peak, macs_within_peak, busy_within_wall, *AMOUNTS)
LAWS: tuple[Callable[[RunAnalysis], Iterator[LawCheck]], ...] = (*CONSERVATION, *PHYSICS)


def laws_of(analysis: RunAnalysis) -> tuple[LawCheck, ...]:
    """Every law that a run alone can be held to."""
    return tuple(law for question in LAWS for law in question(analysis))
