"""Reshapes: chains of ops that only move elements in their shortest form, and ops that do nothing at all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from .grids import PAIR, Grid, grid_under, is_on_grid, pair_after, pair_before
from .layouts import COMMON_RANK, MOVES, Layout, follow, layout_of, make_layout, short_form, slices_of
from .rule import (
    Maker,
    Match,
    array_of,
    attribute,
    copy_extents,
    extents_of,
    is_op,
    numbers_of,
    only_reader,
    producer,
    reads_as,
)

RESHAPES = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1, "Pow": 1}  # second operand that changes nothing


def merge_layouts(node: ir.Node) -> Match | None:
    """A chain of ops that only move elements, as at most a Reshape, a Transpose and a Reshape."""
    if not is_op(node, *MOVES) or only_reader(node.outputs[0], *MOVES) is not None:
        return None
    grid = grid_under(node.inputs[0])
    after = pair_after(node.outputs[0], grid)
    if after is not None and only_reader(after[-1].outputs[0], *MOVES) is not None:
        return None
    found = _followed(_chain(node, grid))
    if found is None:
        return None
    source, layout, followed = found
    if grid is not None and len(followed) > 1 and not is_on_grid(source, grid):
        return None
    form = short_form(layout)
    if form.cost >= _cost(followed) or (form.ops == 0 and not reads_as(node.outputs[0], source)):
        return None
    return Match(followed, lambda make: {node.outputs[0]: make_layout(make, source, layout, grid)})


def _chain(node: ir.Node, grid: Grid | None) -> list[ir.Node]:
    """A move and those before it, the last first, with the pairs of one grid between them."""
    chain = [node]
    while True:
        pair = pair_before(chain[-1].inputs[0], grid) or []
        end = chain[-1].inputs[0] if not pair else pair[-1].inputs[0]
        before = producer(end, *MOVES)
        if before is None or only_reader(before.outputs[0]) is None:
            return chain
        chain += [*pair, before]


def _followed(chain: list[ir.Node]) -> tuple[ir.Value, Layout, list[ir.Node]] | None:
    """A chain, its last op first, as a layout: from the first value of which the rest is one."""
    for length in range(len(chain), 0, -1):
        source = chain[length - 1].inputs[0]
        shape = extents_of(source)
        layout = None if shape is None or 0 in shape or not is_op(chain[length - 1], *MOVES) else layout_of(shape)
        for node in reversed(chain[:length]):
            results = None if layout is None or not is_op(node, *MOVES) else follow(layout, node)
            layout = layout if is_op(node, *PAIR) else None if results is None else results[0][1]
        if layout is not None and source is not None:
            return source, layout, chain[:length]
    return None


def _cost(chain: list[ir.Node]) -> tuple[int, int, int]:
    """What a chain costs, as `Form.cost` has it: pairs between its ops come on top in both."""
    ranks = [len(attribute(node, "perm", ())) for node in chain if is_op(node, "Transpose")]
    return sum(is_op(node, *MOVES) for node in chain), len(ranks), max((*ranks, COMMON_RANK)) if ranks else 0


def merge_reshapes(node: ir.Node) -> Match | None:
    """A reshape of a reshape is one; extents need not be known."""
    first = producer(node.inputs[0], *RESHAPES) if is_op(node, "Reshape") else None
    wanted = numbers_of(node.inputs[1]) if first is not None else None
    if first is None or wanted is None or 0 in wanted:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = make.op("Reshape", first.inputs[0], node.inputs[1])
        copy_extents(made, node.outputs[0])
        return {node.outputs[0]: made}

    return Match((node, first), build)


def plain_reshape(node: ir.Node) -> Match | None:
    """A Reshape that may take a 0 for an extent, and has none → one without that mark: few compilers look behind it."""
    wanted = numbers_of(node.inputs[1]) if is_op(node, "Reshape") and attribute(node, "allowzero", 0) else None
    if wanted is None or 0 in wanted:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = make.op("Reshape", *node.inputs)
        copy_extents(made, node.outputs[0])
        return {node.outputs[0]: made}

    return Match((node,), build)


def drop_no_ops(node: ir.Node) -> Match | None:
    """An op whose result is its input: gone."""
    source = node.inputs[0] if node.inputs and len(node.outputs) >= 1 else None
    if source is None or not _does_nothing(node) or not reads_as(node.outputs[0], source):
        return None
    return Match((node,), lambda _: {node.outputs[0]: source})


def _does_nothing(node: ir.Node) -> bool:
    before, after = extents_of(node.inputs[0]), extents_of(node.outputs[0])
    if is_op(node, "Identity"):
        return True
    if is_op(node, "Cast"):
        return node.inputs[0] is not None and node.inputs[0].dtype == attribute(node, "to", -1)
    if is_op(node, "Transpose"):
        order = attribute(node, "perm")
        return order is not None and list(order) == sorted(order)
    if is_op(node, "Dropout"):
        return not node.outputs[1:] and len(node.inputs) < 3
    if is_op(node, "Concat"):
        return len(node.inputs) == 1
    if before is None or before != after:
        return False
    if is_op(node, "Pad"):  # one that adds and takes as much moves what is there
        pads = attribute(node, "pads") if len(node.inputs) < 2 else numbers_of(node.inputs[1])
        return pads is not None and not any(pads)
    if is_op(node, "Slice"):
        cuts = slices_of(node, before)
        return cuts is not None and all(step == 1 for _, _, step in cuts)
    if is_op(node, *NEUTRAL):
        array = array_of(node.inputs[1])
        return array is not None and bool(np.all(array == NEUTRAL[node.op_type]))
    return is_op(node, "Reshape", "Expand", "Squeeze", "Unsqueeze", "Flatten")
