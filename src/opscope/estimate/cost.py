"""Cost: the cycles one op should take, resource by resource; the total and the binding resource are read off them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..core.meaning import Does
from ..core.units import Cycles
from ..machine.target import Engine, Figure, Memory, Target


class Role(StrEnum):
    """What a resource is; all but engines and memories are there once."""

    ENGINE = "engine"
    LOCAL = "local memory"
    OUTER = "memory"
    TRANSFER = "transfer"  # of cores, each with a memory that they share
    DECODE = "weight decoder"
    LAUNCH = "launch"
    DISPATCH = "dispatch"
    CALL = "call"
    LAYOUT = "layout"
    EXCHANGE = "exchange"


_AROUND = {  # what cycles are spent on that are those of no engine and no memory
    Role.LAUNCH: Does.LAUNCH,
    Role.DISPATCH: Does.LAUNCH,
    Role.CALL: Does.LAUNCH,
    Role.LAYOUT: Does.LAYOUT,
    Role.EXCHANGE: Does.MOVE,
}


@dataclass(frozen=True, slots=True)
class Resource:
    """What cycles are spent on. Names are those of target files, which may call an engine or a memory anything."""

    role: Role
    name: str

    @classmethod
    def of_engine(cls, engine: Engine) -> Resource:
        return cls(Role.ENGINE, engine.name)

    @classmethod
    def of_memory(cls, memory: Memory) -> Resource:
        return cls(Role.OUTER if memory.is_outer else Role.LOCAL, memory.name)

    @property
    def is_part(self) -> bool:
        """An engine, or bytes on their way through a memory: what can bind the work itself."""
        return self.role in (Role.ENGINE, Role.LOCAL) or self.is_outer

    @property
    def is_outer(self) -> bool:
        """Bytes on their way through a memory beyond the cores."""
        return self.role in (Role.OUTER, Role.TRANSFER)

    @property
    def around(self) -> Does | None:
        """What is done around work; None: it is that of the op."""
        return _AROUND.get(self.role)


def _only(role: Role) -> Resource:
    """What is there once, and is called what it is."""
    return Resource(role, role.value)


TRANSFER = _only(Role.TRANSFER)
DECODE = _only(Role.DECODE)
LAUNCH = _only(Role.LAUNCH)
DISPATCH = _only(Role.DISPATCH)
CALL = _only(Role.CALL)
LAYOUT = _only(Role.LAYOUT)
EXCHANGE = _only(Role.EXCHANGE)
_OURS = (TRANSFER, DECODE, LAUNCH, DISPATCH, CALL, LAYOUT, EXCHANGE)


def labels(target: Target) -> Mapping[Resource, str]:
    """What people are shown of every resource: its name, and its role where something else is called the same."""
    parts = (*map(Resource.of_engine, target.engines), *map(Resource.of_memory, target.memories))
    called = Counter(resource.name for resource in (*parts, *_OURS))
    own = {each: each.name if called[each.name] == 1 else f"{each.name} ({each.role})" for each in parts}
    return own | {each: each.name for each in _OURS}


@dataclass(frozen=True, slots=True)
class Part:
    """Cycles on one resource. Those of one resource add up; resources that overlap hide behind the longest of them,
    the others add up."""

    resource: Resource
    cycles: Cycles
    overlaps: bool = True
    figures: tuple[Figure, ...] = ()  # of the target, that the cycles are proportional or inversely proportional to


@dataclass(frozen=True, slots=True)
class Cost:
    """Core-clock cycles of one op, by resource."""

    parts: tuple[Part, ...] = ()

    def by_resource(self) -> dict[Resource, float]:
        """Cycles on every resource, in the order of the parts."""
        found: dict[Resource, float] = {}
        for part in self.parts:
            found[part.resource] = found.get(part.resource, 0.0) + part.cycles
        return found

    @property
    def total(self) -> Cycles:
        overlapping: dict[Resource, float] = {}
        total = 0.0
        for part in self.parts:
            if part.overlaps:
                overlapping[part.resource] = overlapping.get(part.resource, 0.0) + part.cycles
            else:
                total += part.cycles
        return Cycles(max(overlapping.values(), default=0.0) + total)

    def binding(self) -> list[Part]:
        """Parts that make the total: those that do not overlap, and those of the longest resource that does; of
        several that take as long, the first."""
        by_resource = self.by_resource()
        hidden = dict.fromkeys(part.resource for part in self.parts if part.overlaps)
        longest = max(hidden, key=lambda resource: by_resource[resource], default=None)
        return [part for part in self.parts if not part.overlaps or part.resource == longest]

    def spent(self, work: Does) -> dict[Does, float]:
        """The total by what it is spent on: starting, converting and handing over, then the work itself, if any.

        Args:
            work: what the op does; cycles on engines and memories are of that.
        """
        found = {work: 0.0}
        for part in self.binding():
            around = part.resource.around
            does = work if around is None else around
            found[does] = found.get(does, 0.0) + part.cycles
        return {does: found[does] for does in sorted(found, key=lambda does: (does is work, does))}

    @property
    def bound(self) -> Resource | None:
        """The resource that takes longest: speeding up any other one gains nothing. None for an op without work."""
        found = self.by_resource()
        longest = max(found, key=lambda resource: found[resource], default=None)
        return longest if longest is not None and found[longest] > 0 else None


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
