"""Cost: the cycles one op should take, resource by resource; the total and the binding resource are read off them."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.units import Cycles

LAUNCH = "launch"
LAYOUT = "layout"
EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class Part:
    """Cycles on one resource. Parts that overlap hide behind the longest of them; the others add up."""

    resource: str
    cycles: Cycles
    overlaps: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """Core-clock cycles of one op, by resource."""

    parts: tuple[Part, ...] = ()

    @property
    def total(self) -> Cycles:
        hidden = max((part.cycles for part in self.parts if part.overlaps), default=0.0)
        return Cycles(hidden + sum(part.cycles for part in self.parts if not part.overlaps))

    @property
    def bound(self) -> str:
        """The resource that takes longest: speeding up any other one gains nothing. Empty for an op without work."""
        longest = max(self.parts, key=lambda part: part.cycles, default=None)
        return longest.resource if longest is not None and longest.cycles > 0 else ""
