"""How weights of products and the cache are stored: the words of `--weights` and `--kv`.

Words with two widths and MX formats are those of `--precision` (`core/precisions.py`, `estimate/precision.py`). A width
alone (`w4`) is weights of so many bits that are turned into floats on the way to a product, as GGUF's Q4_0 has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.errors import UsageError, did_you_mean, printable
from ..core.precisions import PRECISIONS, copy_word
from ..core.units import Bytes
from ..graph.graph import DType

_GROUP = 32  # weights that share a scale in GGUF's Q4_0 and Q8_0
_BY_BITS = {4: DType.I4, 8: DType.I8, 16: DType.I16}


@dataclass(frozen=True, slots=True)
class StorageFormat:
    """A type of storage, what shares a scale, and the types that come with it."""

    word: str
    dtype: DType
    group: int | None = None  # elements that share a scale; None: a column of weights, a head's token of a cache
    scale_bits: int = 0  # 0: there are no scales, or the type has its own
    flows: DType = DType.F16  # type of activations between ops
    operand: DType | None = None  # of weights: type that activations have as operands of products; None: `flows`

    def size_bytes(self, rows: int, columns: int, copies: int = 1) -> Bytes:
        """Bytes of matrices whose columns have `rows` elements each, with their scales."""
        scales = copies * columns * (1 if self.group is None else -(-rows // self.group))
        return Bytes(self.dtype.size_bytes(copies * rows * columns) + (scales * self.scale_bits + 7) // 8)


def _widths() -> dict[str, StorageFormat]:
    found = {}
    for each in PRECISIONS.values():
        if each.weight_bits is None or each.activation_bits is None:
            continue
        operand = _BY_BITS[each.activation_bits]
        # Quantisers leave norms and softmax in float where activations have 8 bits; with 16 all of it is integers.
        flows = DType.I16 if operand is DType.I16 else DType.F16
        found[each.word] = StorageFormat(each.word, _BY_BITS[each.weight_bits], None, 32, flows, operand)
    return found


WEIGHTS: Mapping[str, StorageFormat] = {
    "f32": StorageFormat("f32", DType.F32, flows=DType.F32),
    "f16": StorageFormat("f16", DType.F16),
    "bf16": StorageFormat("bf16", DType.BF16, flows=DType.BF16),
    "f8e4m3": StorageFormat("f8e4m3", DType.F8E4M3, None, 16),
    "w8": StorageFormat("w8", DType.I8, _GROUP, 16),
    "w4": StorageFormat("w4", DType.I4, _GROUP, 16),
    **_widths(),
    "mxfp6": StorageFormat("mxfp6", DType.MXFP6),
    "mxfp4": StorageFormat("mxfp4", DType.F4E2M1, _GROUP, 8),
}
CACHES: Mapping[str, StorageFormat] = {
    "f32": StorageFormat("f32", DType.F32),
    "f16": StorageFormat("f16", DType.F16),
    "f8e4m3": StorageFormat("f8e4m3", DType.F8E4M3),
    "i8": StorageFormat("i8", DType.I8, None, 16),
    "i4": StorageFormat("i4", DType.I4, _GROUP, 16),
    "mxint8": StorageFormat("mxint8", DType.MXINT8),
}


def weight_format(word: str) -> StorageFormat:
    """The format of weights of that name; i8 is another name of w8a8."""
    return _found(copy_word(word), WEIGHTS, "--weights", word)


def cache_format(word: str) -> StorageFormat:
    return _found(word, CACHES, "--kv", word)


def _found(word: str, known: Mapping[str, StorageFormat], option: str, given: str) -> StorageFormat:
    if word not in known:
        hint = did_you_mean(word, known)
        raise UsageError(f"{option} {printable(given)}: not known; {hint}expected one of {', '.join(known)}")
    return known[word]
