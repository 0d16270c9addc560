"""What is measured of an inference: its latency, its energy, its peak of RAM; and how rows and people write each."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ..core.units import format_bytes, format_joules, format_seconds


class Quantity(Enum):
    """What a measurement is of."""

    LATENCY = "latency"  # seconds
    ENERGY = "energy"  # joules
    RAM = "ram"  # bytes

    @property
    def column(self) -> str:
        """The column of a measurement file."""
        return _COLUMNS[self][0]

    @property
    def unit(self) -> float:
        """What 1 in that column is, in seconds, joules or bytes."""
        return _COLUMNS[self][1]

    @property
    def most(self) -> float:
        """What nobody measures, in seconds, joules or bytes."""
        return _COLUMNS[self][2]

    @property
    def words(self) -> str:
        """Several of them, for people."""
        return _COLUMNS[self][3]

    def text(self, value: float) -> str:
        return _COLUMNS[self][4](value)


_COLUMNS: dict[Quantity, tuple[str, float, float, str, Callable[[float], str]]] = {
    Quantity.LATENCY: ("latency_ms", 1e-3, 1e6, "times", format_seconds),
    Quantity.ENERGY: ("energy_uj", 1e-6, 1e9, "energies", format_joules),
    Quantity.RAM: ("ram_bytes", 1.0, 2.0**50, "sizes", format_bytes),
}
