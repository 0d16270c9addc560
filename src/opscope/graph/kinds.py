"""The vocabulary of op kinds: one row per kind, with the properties it has on every target.

To add a kind: one row here, its attributes in the table of `graph.py`, how it is split over cores in
`compiler/passes/axes.py` if its family's rule does not fit, and the operators of each reader that map to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from ..core.meaning import Does


class Family(Enum):
    """Groups of kinds with the same cost rule."""

    CONTRACTION = "contraction"  # multiply-accumulates
    RECURRENT = "recurrent"  # multiply-accumulates, step after step
    TRANSFORM = "transform"  # FFT-like: work is not a multiply-accumulate count
    POOL = "pool"
    NORMALISE = "normalise"
    REDUCE = "reduce"
    ELEMENTWISE = "elementwise"
    CONVERT = "convert"
    MOVE = "move"  # copies bytes, computes nothing
    VIEW = "view"  # renames bytes, copies nothing
    CONTROL = "control"
    OPAQUE = "opaque"  # cost unknown

    @property
    def does(self) -> Does:
        """What the commands of such an op do: whatever only moves, renames or converts data computes nothing."""
        return _DOES[self]


_DOES = {
    Family.CONTRACTION: Does.COMPUTE,
    Family.RECURRENT: Does.COMPUTE,
    Family.TRANSFORM: Does.COMPUTE,
    Family.POOL: Does.COMPUTE,
    Family.NORMALISE: Does.COMPUTE,
    Family.REDUCE: Does.COMPUTE,
    Family.ELEMENTWISE: Does.COMPUTE,
    Family.CONVERT: Does.LAYOUT,
    Family.MOVE: Does.LAYOUT,
    Family.VIEW: Does.LAYOUT,
    Family.CONTROL: Does.SYNC,
    Family.OPAQUE: Does.UNKNOWN,
}


class Touches(Enum):
    """How much of its operands an op reads and writes."""

    ALL = "all"  # every input once, every output once
    OUTPUT = "output"  # of the first input only the part that is copied
    UPDATE = "update"  # only the changed part, in place


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of op."""

    name: str
    family: Family
    element_ops: int | None = None  # per element; None if the family counts in another way
    touches: Touches = Touches.ALL
    does: Does = Does.UNKNOWN  # what its commands do
    called: tuple[str, ...] = ()  # words by which targets may name it, the closest first


# Element operations of transcendental functions are those of the polynomial that a kernel evaluates: a scale for
# comparing ops, not a cycle count.
_ROWS: Mapping[Family, str] = {
    Family.CONTRACTION: "conv conv_transpose matmul einsum attention",
    Family.RECURRENT: "lstm gru rnn",
    Family.TRANSFORM: "fft",
    Family.POOL: "max_pool average_pool resize:7 resize_nearest:7 roi_pool:16",
    Family.NORMALISE: (
        "softmax:12 masked_softmax:13 log_softmax:20 layer_norm:7 rms_norm:4 group_norm:7 instance_norm:7 batch_norm:2 "
        "l2_norm:4 lrn:20"
    ),
    Family.REDUCE: "reduce:1 argmax:1 topk cumsum:1 non_max_suppression",
    Family.ELEMENTWISE: (
        "add:1 sub:1 mul:1 div:4 pow:16 minimum:1 maximum:1 compare:1 logical:1 select:1 prelu:2 rotary:3 "
        "relu:1 clip:2 leaky_relu:2 elu:10 gelu:14 erf:12 exp:8 log:8 sqrt:4 rsqrt:5 tanh:10 sigmoid:10 "
        "silu:11 hard_swish:4 hard_sigmoid:3 softplus:12 negate:1 abs:1 round:1 sign:1 trigonometric:10 "
        "reciprocal:4 mish:23 softsign:6 unary:1 binary:1 random:4"
    ),
    # Those of MX formats are named after the format, since a kernel is. No op of a graph is a `dequantize_mxfp6`:
    # weights are converted tile by tile as the product streams them in.
    Family.CONVERT: "quantize:3 dequantize:2 cast:1 dequantize_mxfp6:2 quantize_mxint8:3 dequantize_mxint8:2",
    Family.MOVE: (
        "transpose:1 concat:1 split:1:output slice:1:output gather:1:output scatter:1:update pad:1 tile:1 "
        "expand:1 exchange:1 space_to_depth:1 depth_to_space:1 reverse:1 one_hot:1 fill:1 range:1 "
        "dynamic_update:1:update retile:1 move_tiles:1"
    ),
    Family.VIEW: "reshape identity shape join divide",
    Family.CONTROL: "if loop scan call variable sequence",
    Family.OPAQUE: "custom compiled",
}


# Kinds that are special cases of another, by whose figures a target that does not name them has their cost, and what
# they do: a resize to the nearest picks values, however alike the loops of its kernels are. An engine that looks any
# function of one value up does so with Mish, x·tanh(softplus(x)), and Softsign, x/(1+|x|).
_SPECIAL: Mapping[str, tuple[str, Does]] = {
    "resize_nearest": ("resize", Does.LAYOUT),
    "mish": ("unary", Does.COMPUTE),
    "softsign": ("unary", Does.COMPUTE),
}


def _kinds() -> Iterator[Kind]:
    """Parse the entries `name[:element ops][:touches]` of the table."""
    for family, row in _ROWS.items():
        for entry in row.split():
            name, *rest = entry.split(":")
            counts = [int(word) for word in rest if word.isdecimal()]
            touches = [Touches(word) for word in rest if not word.isdecimal()]
            general, does = _SPECIAL.get(name, ("", family.does))
            called = (name, general, family.value) if general else (name, family.value)
            yield Kind(
                name, family, counts[0] if counts else None, touches[0] if touches else Touches.ALL, does, called
            )


KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _kinds()}


def what_kind_does(kind: str) -> Does:
    """What ops of a kind do; a word that is no kind says nothing."""
    found = KINDS.get(kind)
    return Does.UNKNOWN if found is None else found.does
