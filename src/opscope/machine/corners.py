"""A target with every figure at one end of its range: how fast and how slow an inference may be."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from math import exp, hypot, log
from typing import TypeVar

from .target import Clocks, Compression, Engine, Figure, Memory, Route, Target


class Corner(Enum):
    """Which end of every figure's range to read."""

    FAST = "fast"
    TYPICAL = "typical"
    SLOW = "slow"


_Figures = TypeVar("_Figures", Clocks, Compression, Engine, Memory, Route, Target)

_RATES = frozenset(
    {  # figures that are fast where they are large
        "core_hz",
        "integer_hz",
        "macs_per_cycle",
        "element_ops_per_cycle",
        "efficiency",
        "write_efficiency",
        "weight_bytes_per_cycle",
        "operand_bytes_per_cycle",
        "output_elements_per_cycle",
        "lookup_elements_per_cycle",
        "vector_bytes_per_cycle",
        "reached",
        "bytes_per_second",
        "bytes_per_cycle",
        "core_bytes_per_second",
        "call_bytes_per_second",
        "ratio",
        "decoded_bytes_per_cycle",
    }
)
_COSTS = frozenset(
    {  # figures that are fast where they are small
        "launch_cycles",
        "dispatch_seconds",
        "command_cycles",
        "kernels",
        "picojoules_per_mac",
        "picojoules_per_element_op",
        "picojoules_per_byte",
        "issue_cycles",
        "latency_seconds",
        "busy_watts",
        "idle_watts",
        "call_seconds",
    }
)


def is_rate(key: str) -> bool:
    """Whether a figure, by its key, makes an inference faster where it is larger."""
    return not _RATES.isdisjoint(re.split(r"[.\[\]]", key))


def at_corner(target: Target, corner: Corner) -> Target:
    """The same target with every figure at the fast or the slow end of its range; sizes and counts stay."""
    if corner is Corner.TYPICAL:
        return target
    return replace(
        _part_at_corner(target, corner),
        clocks=_part_at_corner(target.clocks, corner),
        engines=tuple(_part_at_corner(engine, corner) for engine in target.engines),
        memories=tuple(_part_at_corner(memory, corner) for memory in target.memories),
        routes=tuple(_part_at_corner(route, corner) for route in target.routes),
        compression=None if target.compression is None else _part_at_corner(target.compression, corner),
    )


def _part_at_corner(part: _Figures, corner: Corner) -> _Figures:
    """A part of a target with its own figures at a corner: rates at their largest are fast, costs at their smallest."""
    changes: dict[str, object] = {}
    for name in _RATES | _COSTS:
        found = getattr(part, name, None)
        to_largest = (corner is Corner.FAST) == (name in _RATES)
        if isinstance(found, Figure):
            changes[name] = _at_end(found, to_largest)
        elif isinstance(found, Mapping):
            changes[name] = {key: _table_at_end(value, to_largest) for key, value in found.items()}
    return replace(part, **changes)  # type: ignore[arg-type]


def range_with(error: Figure | None, value: float, ends: Sequence[float]) -> tuple[float, float]:
    """Least and most that a time may be: figures may be off, and so may the model itself, each on its own.

    Logarithms of both are added as squares: figures that may make it 3 % faster and a model that may be 4 % off leave
    it 5 % faster.
    """
    low, high = min(value, *ends), max(value, *ends)
    if error is None or low <= 0:
        return low, high
    faster = hypot(log(value / low), log(error.value / error.smallest))
    slower = hypot(log(high / value), log(error.largest / error.value))
    return value / exp(faster), value * exp(slower)


def _table_at_end(value: Figure | Mapping[str, Figure], to_largest: bool) -> Figure | dict[str, Figure]:
    if isinstance(value, Figure):
        return _at_end(value, to_largest)
    return {key: _at_end(figure, to_largest) for key, figure in value.items()}


def _at_end(figure: Figure, to_largest: bool) -> Figure:
    return Figure(figure.largest if to_largest else figure.smallest, figure.source)
