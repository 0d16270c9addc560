"""What a search comes to: the steps that were taken, what else was tried, and what the model takes before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .judge import Judged, speedup
from .rewrite import Site


class TrialResult(StrEnum):
    """What became of a rewrite that was tried."""

    TAKEN = "taken"
    NO_GAIN = "no gain"
    SLOWER = "slower"
    REFUSED = "refused"  # by the judge: it does not compile, say
    WRONG = "wrong"  # outputs are not the model's
    FAILED = "failed"  # the rewrite itself
    NO_TIME = "no time"


@dataclass(frozen=True, slots=True)
class Tried:
    """A rewrite at some places of a model, and what that came to."""

    rewrite: str
    groups: tuple[str, ...] | None  # None: wherever it fits
    sites: tuple[Site, ...]
    verdict: TrialResult
    before: Judged | None = None  # None: there is no judge
    after: Judged | None = None
    error: float | None = None  # against the model: noise for one of signal, as amplitudes
    is_exact: bool = True
    rounding: float | None = None  # of what rounding allows, at the worst element
    reason: str = ""
    with_: tuple[str, ...] = ()  # rewrites that were made before it, to open it, and that alone gain nothing

    @property
    def speedup(self) -> float | None:
        """Time before ÷ time after; None: not known."""
        return speedup(self.before, self.after)

    @property
    def nodes(self) -> int:
        """Ops that went."""
        return len({name for site in self.sites for name in site.removed})

    @property
    def added(self) -> int:
        return len({name for site in self.sites for name in site.added})


@dataclass(frozen=True, slots=True)
class Optimized:
    """A model that was rewritten, or that nothing helped."""

    model: str
    sha256: str
    output: str
    judge: str  # who told times, in words; empty: nobody
    before: Judged | None
    after: Judged | None
    steps: tuple[Tried, ...]
    tried: tuple[Tried, ...]  # that are no steps, in the order in which they were tried
    checked_with: str  # what outputs were compared on
    max_error: float
    trials: int = 0  # that had to run; others were known from an earlier search
    stopped: bool = False  # for want of time, with things left to try
    budget_minutes: float | None = None
    notes: tuple[str, ...] = ()
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # what lies there: steps, runs, page

    @property
    def speedup(self) -> float | None:
        return speedup(self.before, self.after)

    @property
    def is_exact(self) -> bool:
        """Whether nothing but rounding tells it from the model."""
        return all(step.is_exact for step in self.steps)
