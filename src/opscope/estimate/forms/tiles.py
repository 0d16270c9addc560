"""Tensors that lie in whole tiles: the rows and columns of their last two axes are padded, and so are their bytes.

A tensor of 19 rows of 1,280 takes 32 rows where tiles are 32 x 32. Of images, pixels are rows and channels are columns;
of weights of a convolution, taps and channels in are rows, channels out are columns. A reshape that changes rows or
columns moves elements to other tiles: it is a `retile`. A transposition that leaves the last two axes the last two
keeps tiles together, and turns each on its own where they change places: it is a `move_tiles`.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...graph.graph import ABSENT, Graph, Op, Tensor


def in_tiles(graph: Graph, rows: int, columns: int) -> Graph:
    """The graph with the bytes that its tensors take in tiles."""
    convolved = [op for op in graph.ops if op.attributes.get("channel_axis") == 1]
    images = {graph.tensors[t].shape for op in convolved for t in (*op.inputs[:1], *op.outputs) if t != ABSENT}
    weights = {op.inputs[1] for op in convolved if len(op.inputs) > 1}
    tensors = []
    for number, tensor in enumerate(graph.tensors):
        channels = 0 if number in weights else 1 if tensor.shape in images else None
        tensors.append(_tiled(tensor, channels, rows, columns))
    return replace(graph, tensors=tuple(tensors), ops=tuple(_moved(op, graph) for op in graph.ops))


def _tiled(tensor: Tensor, channels: int | None, rows: int, columns: int) -> Tensor:
    """A tensor with the bytes of whole tiles.

    Args:
        channels: the axis that columns are of, all others being rows; None: the last, and rows of the one before it.
    """
    shape = tensor.shape
    if not shape or not prod(shape) or tensor.stored_bytes is not None or not tensor.dtype.bits:
        return tensor
    if channels is None:
        high, wide = (1, *shape)[-2:]
    else:
        wide = shape[channels]
        high = prod(shape) // wide
    whole = -(-high // rows) * rows * -(-wide // columns) * columns
    return replace(tensor, stored_bytes=tensor.dtype.size_bytes(prod(shape) // (high * wide) * whole))


def _moved(op: Op, graph: Graph) -> Op:
    """What a change of order is where tensors lie in tiles."""
    if op.kind == "reshape" and op.inputs and op.inputs[0] != ABSENT:
        before, after = (graph.tensors[t].shape or () for t in (op.inputs[0], op.outputs[0]))
        return op if before[-2:] == after[-2:] else replace(op, kind="retile", inputs=op.inputs[:1])
    order = op.attributes.get("permutation") if op.kind == "transpose" else None
    if not isinstance(order, tuple) or len(order) < 2:
        return op
    return replace(op, kind="move_tiles") if min(order[-2:]) == len(order) - 2 else op
