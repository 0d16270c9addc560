"""Target → peaks of its units, memories and routes, in the form that runs carry: before losses."""

from __future__ import annotations

from collections.abc import Iterable

from ..machine.target import Engine, Memory, Route, Scope, Target
from ..program.bounds import Bounds, MemoryPeak, Rate, RoutePeak, UnitPeak
from .price import launch_cycles


def peaks_of(target: Target, units: Iterable[tuple[str, Engine, int]]) -> Bounds:
    """Bounds that a target alone gives.

    Args:
        units: name in the run, its engine, and how many of them in a core go by that name.
    """
    memories = (
        MemoryPeak(memory.name, memory.scope is Scope.CORE, round(memory.bytes.value), _rate(memory))
        for memory in target.memories
    )
    routes = ((route.name, _rate(route)) for route in target.routes)
    tables = (
        (name, {dtype: figure.value * count for dtype, figure in engine.macs_per_cycle.items()}, launch_cycles(engine))
        for name, engine, count in units
    )
    return Bounds(
        memories=tuple(memories),
        routes=tuple(RoutePeak(name, rate) for name, rate in routes if rate is not None),
        units=tuple(UnitPeak(name, table, started) for name, table, started in tables if table),
    )


def _rate(part: Memory | Route) -> Rate | None:
    if part.bytes_per_second is not None:
        return Rate(part.bytes_per_second.value)
    return None if part.bytes_per_cycle is None else Rate(part.bytes_per_cycle.value, per_cycle=True)
