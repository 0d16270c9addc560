"""Words of `--precision` that say two widths: w8a16 is weights of 8 bits and activations of 16. One table for copies
that a quantiser makes, for estimates and for the simulated device."""

from typing import NamedTuple

from .errors import UsageError, did_you_mean, printable


class Precision(NamedTuple):
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
_SAME = {"i4": "w4a4", "i8": "w8a8", "i16": "w16a16"}  # a type alone is that of weights and of activations


def copy_word(word: str) -> str:
    """The word for a copy that is meant: i8 is another name of w8a8; any other word stays as it is."""
    return _SAME.get(word, word)


def precision_of(word: str) -> Precision:
    """The precision of that name, or of a type."""
    found = PRECISIONS.get(copy_word(word))
    if found is None:
        hint = did_you_mean(word, PRECISIONS)
        raise UsageError(f"--precision {printable(word)}: not known; {hint}expected one of {', '.join(PRECISIONS)}")
    return found
