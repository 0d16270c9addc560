"""Sizes to suggest for the extents that a file leaves open: what a network of that kind is usually run with.

Rank and type of the input tell most: four axes are an image, two of numbers with a fraction are sound, two of whole
numbers are tokens. The first operator with weights demands the number of channels.
"""

from __future__ import annotations

from ....graph.graph import ABSENT, DType
from ...usual_sizes import Purpose
from ..model import StoredOperator, Subgraph
from ..ops import Shape

_MOST_STEPS = 64  # operators followed from one input
_KEEP_AXES = frozenset(("ABS", "ADD", "CAST", "DEQUANTIZE", "DIV", "MUL", "PAD", "PADV2", "QUANTIZE", "RELU", "SUB"))
_CHANNELS = {"CONV_2D": 3, "FULLY_CONNECTED": 1}  # axis of the weights that is the last one of the data


def suggested(subgraph: Subgraph, tensor: int, rank: int) -> Shape:
    """Return a size for every axis of an input that leads with the batch; a vector has none."""
    is_whole = subgraph.tensors[tensor].dtype in (DType.I32, DType.I64)
    length = Purpose.TOKENS.size if is_whole else Purpose.SAMPLES.size
    if rank < 2:
        return (length,) * rank
    demanded = _demanded_channels(subgraph, tensor)
    if rank == 2:
        return 1, demanded or length
    if rank == 3:
        return 1, Purpose.TOKENS.size if is_whole else Purpose.STEPS.size, demanded or Purpose.UNKNOWN.size
    inner = {4: Purpose.HEIGHT.size, 5: Purpose.VOXELS.size}.get(rank, Purpose.UNKNOWN.size)
    return (1, *(inner,) * (rank - 2), demanded or Purpose.CHANNELS.size)


def _demanded_channels(subgraph: Subgraph, tensor: int) -> int:
    """Return the last extent that the first weights on the way demand; 0 if there are none."""
    for _ in range(_MOST_STEPS):
        reader = _first_reader(subgraph, tensor)
        if reader is None:
            return 0
        kind = reader.code.type
        if kind in _CHANNELS and len(reader.inputs) > 1 and reader.inputs[0] == tensor and reader.inputs[1] != ABSENT:
            weights = subgraph.tensors[reader.inputs[1]].shape or ()
            return weights[_CHANNELS[kind]] if len(weights) > _CHANNELS[kind] else 0
        if kind not in _KEEP_AXES or not reader.outputs or reader.outputs[0] in (ABSENT, tensor):
            return 0
        tensor = reader.outputs[0]
    return 0


def _first_reader(subgraph: Subgraph, tensor: int) -> StoredOperator | None:
    return next((operator for operator in subgraph.operators if tensor in operator.inputs), None)
