"""Precisions that a copy can have: w8a16 is weights of 8 bits and activations of 16."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.errors import UsageError, did_you_mean, printable


@dataclass(frozen=True, slots=True)
class Precision:
    """Bits of integers, or a copy in f16."""

    word: str
    weight_bits: int | None  # None: floats
    activation_bits: int | None

    @property
    def is_integer(self) -> bool:
        """Whether ranges have to be known, and so data to calibrate with."""
        return self.weight_bits is not None


PRECISIONS = {
    each.word: each
    for each in (
        Precision("w8a8", 8, 8),
        Precision("w8a16", 8, 16),
        Precision("w16a16", 16, 16),
        Precision("w4a8", 4, 8),
        Precision("w4a16", 4, 16),
        Precision("f16", None, None),
    )
}


def precision_of(word: str) -> Precision:
    """The precision of that name; i8 is another name of w8a8."""
    found = PRECISIONS.get("w8a8" if word == "i8" else word)
    if found is None:
        hint = did_you_mean(word, PRECISIONS)
        raise UsageError(f"--precision {printable(word)}: not known; {hint}expected one of {', '.join(PRECISIONS)}")
    return found
