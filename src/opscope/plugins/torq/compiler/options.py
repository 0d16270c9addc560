"""Choices of the backend torq: the part, its clock, and how the compiler goes about it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ....backends.measuring import filled_options
from ....backends.registry import find
from ....core.errors import UsageError, printable
from ....core.manifest import Value
from ..manifest import BACKEND, PARTS
from ..parts import CLOCKS_HZ, Hardware

_CUSTOM = re.compile(r"\w+:\d+:\d+:\w+:\w+(?::[\d.]+(?::[\d.]+(?::[^:]*){0,3})?)?")
FORM = "ID:LRAM_KB:SLICES:CSS:NSS[:DMA_BYTES_PER_CYCLE[:FACTOR:TRIPLE:CPU:FEATURES]]"
_OWN = (  # what the backend itself says to the compiler
    "-o",
    "--torq-hw",
    "--torq-enable-profiling",
    "--torq-dump-profiling",
    "--dump-compilation-phases-to",
    "--mlir-print-debuginfo",
    "--mlir-elide-elementsattrs-if-larger",
)


@dataclass(frozen=True, slots=True)
class TorqOptions:
    """Checked choices."""

    hw: str
    clock_hz: float | None  # None: not known, so that cycles are all that is told
    prefetch: str | None = None
    fuse: str | None = None
    convert_dtypes: bool = False
    flags: tuple[str, ...] = ()
    tool: str | None = None

    @staticmethod
    def of(values: Mapping[str, Value]) -> TorqOptions:
        """Check the values of options."""
        filled = filled_options(BACKEND.name, find(BACKEND.name).options, values)
        hw = str(filled["torq-hw"])
        known = next((name for name in PARTS if name.lower() == hw.lower()), hw)
        if known not in PARTS and not _CUSTOM.fullmatch(known):
            expected = f"expected one of {', '.join(PARTS)}, or {FORM}"
            raise UsageError(f"--torq-hw {printable(hw)}: not a part, nor the description of one; {expected}")
        return TorqOptions(
            known,
            _clock(filled["torq-clock-mhz"], known),
            _text(filled["torq-prefetch"]),
            _text(filled["torq-fuse"]),
            bool(filled["torq-convert-dtypes"]),
            _flags(_text(filled["torq-flags"]) or ""),
            _text(filled.get("tool")),
        )

    @property
    def hardware(self) -> Hardware:
        return Hardware.of(self.hw)

    def words(self) -> list[str]:
        """For the compiler's command line."""
        return [
            f"--torq-hw={self.hw}",
            *([f"--torq-prefetch-algorithm={self.prefetch}"] if self.prefetch else ()),
            *([f"--torq-tile-and-fuse-producers-fuse-mode={self.fuse}"] if self.fuse else ()),
            *(["--torq-convert-dtypes"] if self.convert_dtypes else ()),
            *self.flags,
        ]

    def shown(self) -> dict[str, str | int | float | bool | None]:
        return {
            "torq_hw": self.hw,
            "torq_prefetch": self.prefetch,
            "torq_fuse": self.fuse,
            "torq_convert_dtypes": self.convert_dtypes or None,
            "torq_flags": shlex.join(self.flags) or None,
        }


def _text(value: Value) -> str | None:
    return None if value is None else str(value)


def _clock(value: Value, hw: str) -> float | None:
    if value is None:
        return CLOCKS_HZ.get(hw)
    try:
        hertz = float(str(value)) * 1e6
    except ValueError:
        hertz = 0.0
    if not 1e3 <= hertz <= 1e11:
        raise UsageError(f"--torq-clock-mhz {printable(str(value))}: expected a clock in MHz, from 0.001 to 100000")
    return hertz


def _flags(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--torq-flags {printable(text)}: {error}; expected words as a shell takes them") from error
    for word in words:
        if not word.startswith("-") or word.startswith("-o") or word.partition("=")[0] in _OWN:
            raise UsageError(
                f"--torq-flags {printable(word)}: not for here; expected flags of torq-compile but {', '.join(_OWN)}, "
                "which the backend sets itself"
            )
    return words
