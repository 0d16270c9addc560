"""What every part can do at the most: clocks, HMX, HVX and ways to memory, each with its range and source.

`hexagon.toml` has the figures. Peaks of HMX are per cycle of its own clock; those of HVX per thread.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ...machine.target import Figure
from ...program.bounds import Bounds, MemoryPeak, Rate, UnitPeak
from ...recording.run import MACS_PER_S, OUTER_BYTES_PER_S, VECTOR_BYTES_PER_S
from .socs import Soc

FILE = Path(__file__).with_suffix(".toml")
MB = 1024 * 1024
_TYPES = {"QUInt8": "i8", "QInt8": "i8", "QUInt16": "i16", "QInt16": "i16", "Float16": "f16"}  # words of the compiler


@dataclass(frozen=True, slots=True)
class _Row:
    """Figures of one row of the file; None: said elsewhere."""

    core_hz: Figure | None = None
    hmx_hz: Figure | None = None
    i8: Figure | None = None
    i16: Figure | None = None
    f16: Figure | None = None
    hvx_threads: Figure | None = None
    hvx_bytes_per_cycle: Figure | None = None
    vtcm_bytes_per_cycle: Figure | None = None
    ddr_bytes_per_s: Figure | None = None
    ddr_efficiency: Figure | None = None
    way_bytes_per_s: Figure | None = None
    id: int | None = None
    version: int | None = None
    vtcm_mb: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _File:
    sources: Mapping[str, str]
    scaling: Mapping[str, Figure]
    all: _Row
    rates: tuple[_Row, ...]
    parts: tuple[_Row, ...]


@dataclass(frozen=True, slots=True)
class Hexagon:
    """One core of one part."""

    core_hz: Figure
    hmx_hz: Figure
    macs_per_cycle: Mapping[str, Figure]  # of HMX, by data type of activations; a type that is absent does not run
    hvx_threads: Figure
    hvx_bytes_per_cycle: Figure  # of one thread
    vtcm_bytes_per_cycle: Figure  # of one thread: a load and a store
    ddr_bytes_per_s: Figure
    ddr_efficiency: Figure
    way_bytes_per_s: Figure  # from the memory controller to the core
    sources: Mapping[str, str] = field(default_factory=dict)  # of the figures above, by their keys

    def macs_per_s(self, dtype: str) -> Figure | None:
        rate = self.macs_per_cycle.get(dtype)
        return None if rate is None else product(rate, self.hmx_hz)

    @property
    def outer_bytes_per_s(self) -> Figure:
        """What memory and the way to it leave for the core."""
        return least(product(self.ddr_bytes_per_s, self.ddr_efficiency), self.way_bytes_per_s)

    @property
    def vector_bytes_per_s(self) -> Figure:
        return product(product(self.hvx_threads, self.hvx_bytes_per_cycle), self.core_hz)

    def limits(self, dtype: str) -> dict[str, float]:
        """As a recording has them, for work of one data type."""
        macs = self.macs_per_s(dtype)
        return ({} if macs is None else {MACS_PER_S: macs.value}) | {
            OUTER_BYTES_PER_S: self.outer_bytes_per_s.value,
            VECTOR_BYTES_PER_S: self.vector_bytes_per_s.value,
        }

    def bounds(self, *, unit: str, vtcm_bytes: int) -> Bounds:
        """Peaks at the upper end of their ranges, which nothing can beat.

        Args:
            unit: the lane that HMX runs on.
        """
        per_core_cycle = self.hmx_hz.largest / self.core_hz.smallest
        peaks = {dtype: rate.largest * per_core_cycle for dtype, rate in self.macs_per_cycle.items()}
        return Bounds(
            memories=(
                MemoryPeak("VTCM", per_core=True, capacity_bytes=vtcm_bytes),
                MemoryPeak("DDR", per_core=False, capacity_bytes=None, rate=Rate(self.ddr_bytes_per_s.largest)),
            ),
            units=(UnitPeak(unit, peaks),) if peaks else (),
        )


@lru_cache(maxsize=1)
def _file() -> _File:
    import msgspec

    return msgspec.convert(tomllib.loads(FILE.read_text(encoding="utf-8")), _File)


def scaling_spread() -> Figure:
    """Of the time that the vendor's model has for a part ÷ that replayed from its nearest neighbour."""
    return _file().scaling["spread"]


def hexagon_of(soc: Soc) -> Hexagon:
    """The figures of a part: its own, else those of its version and size, else those that all share."""
    file = _file()
    rows = [row for row in file.parts if row.id == soc.id]
    rows += [row for row in file.rates if row.version == soc.arch and soc.vtcm_mb in row.vtcm_mb]
    rows.append(file.all)

    def own(name: str) -> Figure | None:
        return next((figure for row in rows if (figure := getattr(row, name)) is not None), None)

    def any_of(name: str) -> Figure:
        figure = own(name)
        if figure is None:
            raise LookupError(f"{FILE.name}: no {name} for {soc.label}; expected it in [all] at the least")
        return figure

    macs = {dtype: figure for dtype in ("i8", "i16", "f16") if (figure := own(dtype)) is not None}
    core = any_of("core_hz")
    return Hexagon(
        core,
        own("hmx_hz") or core,
        macs,
        any_of("hvx_threads"),
        any_of("hvx_bytes_per_cycle"),
        any_of("vtcm_bytes_per_cycle"),
        any_of("ddr_bytes_per_s"),
        any_of("ddr_efficiency"),
        any_of("way_bytes_per_s"),
        file.sources,
    )


def product(one: Figure, other: Figure) -> Figure:
    """Of two rates or counts; its range is that of both together."""
    source = one.source if one.source == other.source else f"{one.source}, {other.source}"
    return Figure(one.value * other.value, source, one.smallest * other.smallest, one.largest * other.largest)


def least(one: Figure, other: Figure) -> Figure:
    """The slower of two ways in a row."""
    slower = one if one.value <= other.value else other
    return Figure(slower.value, slower.source, min(one.smallest, other.smallest), min(one.largest, other.largest))


def type_of(word: str) -> str:
    """The data type that the compiler's word is; empty: one that has no rate."""
    return _TYPES.get(word, "")


def computed_in(types: Mapping[str, int]) -> str:
    """The data type of most ops, of those that a rate is known of; empty: of none.

    Args:
        types: word of the compiler → number of ops.
    """
    found: dict[str, int] = {}
    for word, count in types.items():
        if dtype := type_of(word):
            found[dtype] = found.get(dtype, 0) + count
    return max(found, key=lambda dtype: found[dtype], default="")
