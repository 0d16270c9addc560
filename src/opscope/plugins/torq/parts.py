"""Parts with a Torq NPU as the vendor's compiler describes them, and which of them a schedule was made for."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.columns import Numbers
from .manifest import PARTS

CLOCKS_HZ = {"SL2610": 800_000_000}  # the vendor's own conversion of this part's cycles; none is published for another
BURST_BEATS, BURST_OVERHEAD_BEATS = 16, 1.5  # of the compiler's model of a transfer
_ROUNDING = 1e-6  # of cycles: the compiler divides in floating point


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a part's name, or a description between colons, tells."""

    lram_bytes: int
    slices: int
    dma_bytes_per_cycle: float | None  # None: the compiler's default, which is not published

    @staticmethod
    def of(text: str) -> Hardware:
        fields = PARTS.get(text, text).split(":")
        rate = float(fields[5]) if len(fields) > 5 else None
        factor = float(fields[6]) if len(fields) > 6 else 1.0
        burst = BURST_BEATS / (BURST_BEATS + BURST_OVERHEAD_BEATS)
        return Hardware(int(fields[1]) * 1024, int(fields[2]), None if rate is None else rate * factor * burst)


def part_of(sizes: Numbers, cycles: Numbers, slices: int) -> str | None:
    """The part whose rate all transfers have: bytes over rate, rounded up; None: of no part, or of several.

    Args:
        slices: that the schedule uses; a part has no fewer.
    """
    fitting = [part for part in PARTS if _fits(Hardware.of(part), sizes, cycles, slices)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(part: Hardware, sizes: Numbers, cycles: Numbers, slices: int) -> bool:
    if part.dma_bytes_per_cycle is None or slices > part.slices:
        return False
    over = cycles - sizes / part.dma_bytes_per_cycle  # what rounding up added
    return bool(((over > -_ROUNDING) & (over < 1 + _ROUNDING)).all())
