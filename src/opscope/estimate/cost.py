"""Cost: the cycles one op should take, resource by resource; the total and the binding resource are read off them."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.meaning import Does
from ..core.units import Cycles
from ..machine.target import Figure

LAUNCH = "launch"
DISPATCH = "dispatch"
LAYOUT = "layout"
TRANSFER = "transfer"  # of cores, each with a memory that they share
EXCHANGE = "exchange"
CALL = "call"
DECODE = "weight decoder"

# What cycles are spent on that are those of no engine and no memory.
AROUND = {
    LAUNCH: Does.LAUNCH,
    DISPATCH: Does.LAUNCH,
    CALL: Does.LAUNCH,
    LAYOUT: Does.LAYOUT,
    EXCHANGE: Does.MOVE,
}


@dataclass(frozen=True, slots=True)
class Part:
    """Cycles on one resource. Those of one resource add up; resources that overlap hide behind the longest of them,
    the others add up."""

    resource: str
    cycles: Cycles
    overlaps: bool = True
    figures: tuple[Figure, ...] = ()  # of the target, that the cycles are proportional or inversely proportional to


@dataclass(frozen=True, slots=True)
class Cost:
    """Core-clock cycles of one op, by resource."""

    parts: tuple[Part, ...] = ()

    def by_resource(self) -> dict[str, float]:
        """Cycles on every resource, in the order of the parts."""
        found: dict[str, float] = {}
        for part in self.parts:
            found[part.resource] = found.get(part.resource, 0.0) + part.cycles
        return found

    @property
    def total(self) -> Cycles:
        overlapping: dict[str, float] = {}
        total = 0.0
        for part in self.parts:
            if part.overlaps:
                overlapping[part.resource] = overlapping.get(part.resource, 0.0) + part.cycles
            else:
                total += part.cycles
        return Cycles(max(overlapping.values(), default=0.0) + total)

    def binding(self) -> list[Part]:
        """Parts that make the total: those that do not overlap, and those of the longest resource that does."""
        hidden = {part.resource for part in self.parts if part.overlaps}
        by_resource = self.by_resource()
        longest = max(hidden, key=lambda resource: (by_resource[resource], resource), default="")
        return [part for part in self.parts if not part.overlaps or part.resource == longest]

    def spent(self, work: Does) -> dict[Does, float]:
        """The total by what it is spent on: starting, converting and handing over, then the work itself, if any.

        Args:
            work: what the op does; cycles on engines and memories are of that.
        """
        found = {work: 0.0}
        for part in self.binding():
            does = AROUND.get(part.resource, work)
            found[does] = found.get(does, 0.0) + part.cycles
        return {does: found[does] for does in sorted(found, key=lambda does: (does is work, does))}

    @property
    def bound(self) -> str:
        """The resource that takes longest: speeding up any other one gains nothing. Empty for an op without work."""
        found = self.by_resource()
        longest = max(found, key=lambda resource: found[resource], default="")
        return longest if longest and found[longest] > 0 else ""


@dataclass(frozen=True, slots=True)
class Energy:
    """What an op draws: for its work, trip by trip, and for as long as it takes."""

    work: tuple[tuple[float, tuple[Figure, ...]], ...] = ()
    """Picojoules of one trip, and the figures that they are proportional or inversely proportional to."""
    draws: tuple[Figure, ...] = ()  # watts

    def joules(self, trips: float, seconds: float) -> float:
        """Joules of all trips, which take so long together."""
        work = sum(picojoules for picojoules, _ in self.work) * 1e-12 * trips
        return work + sum(watts.value for watts in self.draws) * seconds
