"""Bounds: what no execution of a program can beat – peaks and sizes of the machine, work that the graph asks for.

Peaks are those of the target's file, before losses; what is reached of them is no law. A program that was compiled
elsewhere, and a run of earlier versions, has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from ..core.errors import UsageError
from ..core.units import format_bytes

ANY_TYPE = "*"  # in a table by data type: every other one


@dataclass(frozen=True, slots=True)
class Rate:
    """Bytes per second, or per cycle of the core clock where that drives them."""

    value: float
    per_cycle: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.value < inf:
            raise ValueError(f"a peak is {self.value}; expected a positive number")

    def per_second(self, clock_hz: float) -> float:
        return self.value * clock_hz if self.per_cycle else self.value


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """One kind of memory: size and peak of one instance."""

    name: str
    per_core: bool  # every core has one; else every device
    capacity_bytes: int | None  # None: not known
    rate: Rate | None = None  # reads and writes together; None: not known


@dataclass(frozen=True, slots=True)
class RoutePeak:
    """One route of one device, shared by its cores."""

    name: str
    rate: Rate


@dataclass(frozen=True, slots=True)
class UnitPeak:
    """One execution unit of one core, by the name that it has in the run."""

    name: str
    macs_per_cycle: Mapping[str, float]  # by data type
    launch_cycles: float = 0.0  # of every command, before its work starts

    def __post_init__(self) -> None:
        if not 0 <= self.launch_cycles < inf:
            raise ValueError(f"starting {self.name!r} takes {self.launch_cycles} cycles; expected 0 or more")
        if not self.macs_per_cycle or not all(0 < rate < inf for rate in self.macs_per_cycle.values()):
            raise ValueError(f"peaks of {self.name!r} are {dict(self.macs_per_cycle)}; expected positive numbers")

    def rate_of(self, dtype: str) -> float | None:
        return self.macs_per_cycle.get(dtype, self.macs_per_cycle.get(ANY_TYPE))


@dataclass(frozen=True, slots=True)
class Holding:
    """What one device has in one of its memories at once, at the most."""

    memory: str
    device: int
    constants_bytes: int  # one copy of each, or the part that its cores work with
    ports_bytes: int  # inputs and outputs of the graph: the host puts and takes them
    spilled_bytes: int  # activations that local memory has no room for
    capacity_bytes: int

    @property
    def bytes(self) -> int:
        return self.constants_bytes + self.ports_bytes + self.spilled_bytes


@dataclass(frozen=True, slots=True)
class Bounds:
    """Everything that the numbers of a run are held to; a field that is empty or None is not known."""

    memories: tuple[MemoryPeak, ...] = ()
    routes: tuple[RoutePeak, ...] = ()
    units: tuple[UnitPeak, ...] = ()
    holdings: tuple[Holding, ...] = ()
    macs: int | None = None  # of the model's own graph, before any pass
    repeated_macs: int = 0  # by further cores, of ops that are not split, and by slices of rows that overlap
    streamed_bytes: int | None = None  # of constants that do not stay in local memory: each is read at least once


def together(programs: Sequence[Bounds | None]) -> Bounds:
    """What programs hold that are on the same devices, each with constants, ports and spills of its own."""
    found: dict[tuple[str, int], Holding] = {}
    for held in (held for bounds in programs if bounds is not None for held in bounds.holdings):
        key = held.memory, held.device
        found[key] = held if key not in found else _with_others(found[key], held)
    return Bounds(holdings=tuple(found.values()))


def _with_others(held: Holding, others: Holding) -> Holding:
    return replace(
        held,
        constants_bytes=held.constants_bytes + others.constants_bytes,
        ports_bytes=held.ports_bytes + others.ports_bytes,
        spilled_bytes=held.spilled_bytes + others.spilled_bytes,
    )


def check_capacity(bounds: Bounds | None, *, target: str, programs: int = 1) -> None:
    """Refuse a program, or several together, that are larger than a memory of their target."""
    if bounds is None:
        return
    for held in bounds.holdings:
        if held.bytes > held.capacity_bytes:
            needed, has = _needed(held, bounds, programs), format_bytes(held.capacity_bytes)
            raise UsageError(f"{target}: {needed}; it has {has}; expected {_expected(programs)}")


def _needed(held: Holding, bounds: Bounds, programs: int) -> str:
    """How much is needed where, and of what."""
    parts = {
        "constants": held.constants_bytes,
        "inputs and outputs": held.ports_bytes,
        "spills": held.spilled_bytes,
    }
    words = ", ".join(f"{format_bytes(size)} of {what}" for what, size in parts.items() if size)
    where = f" on device {held.device}" if any(other.device != held.device for other in bounds.holdings) else ""
    amount = f"{format_bytes(held.bytes)} of {held.memory}{where} ({words})"
    return f"{programs} programs need {amount} together" if programs > 1 else f"the program needs {amount}"


def _expected(programs: int) -> str:
    if programs > 1:
        return "programs that fit it together"
    return "a model that fits, more devices (--devices N) or a smaller data type (--precision)"
