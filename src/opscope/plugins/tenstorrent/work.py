"""What an op of tt-metal multiplies, and what a Tensix core could."""

from __future__ import annotations

import re
from math import prod

from .kinds import kind_of
from .rows import Row, Tensor

# The matrix engine multiplies 8 x 16 by 16 x 16 in a cycle, in the lowest fidelity; HiFi2 takes 2 passes, HiFi3 and
# HiFi4 3 and 4 (tt-metal, tech report on GEMM FLOPS; `PM COMPUTE` of matmuls on Blackhole comes out the same).
MACS_PER_CYCLE = 8 * 16 * 16
ARCHITECTURES = ("wormhole_b0", "blackhole")
PASSES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}

_GROUPS = re.compile(r"'groups': '(\d{1,9})'")
_TRANSPOSED = re.compile(r"'transpose_a': '(?:true|1)'")
_MOST = 2**62


def macs_of(row: Row) -> int | None:
    """Of a matmul: what it writes times the inner dimension. Weights of a convolution lie as [inner, channels out]."""
    inputs = {tensor.number: tensor for tensor in row.tensors if tensor.is_input}
    out = next((tensor for tensor in row.tensors if not tensor.is_input), None)
    inner = _inner(row, inputs)
    if out is None or inner is None:
        return None
    macs = prod(out.shape) * inner
    return macs if 0 < macs < _MOST else None


def _inner(row: Row, inputs: dict[int, Tensor]) -> int | None:
    if 0 not in inputs or 1 not in inputs:
        return None
    kind = kind_of(row)
    if kind == "matmul":
        return inputs[0].shape[2 if _TRANSPOSED.search(row.attributes) else 3]
    groups = _GROUPS.search(row.attributes)
    if kind == "conv" and (groups is None or groups[1] == "1"):  # of groups, weights are laid out with zeros between
        return inputs[1].shape[2]
    return None
