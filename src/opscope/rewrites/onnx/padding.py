"""Padding: as an op of its own, or as part of the op that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from .rule import Maker, Match, array_of, attribute, is_op, numbers_of, producer
from .windows import Window, extents_of, weights_of, window_of

WINDOWED = ("Conv", "AveragePool", "MaxPool")
NOT_NEGATIVE = (
    "Relu",
    "Sigmoid",
    "Softmax",
    "HardSigmoid",
    "Abs",
    "Exp",
)  # what these give is padded by 0 as by nothing


def fold_pad(node: ir.Node) -> Match | None:
    """A Pad of the picture that a convolution or pooling op reads → padding of that op."""
    pad = producer(node.inputs[0], "Pad") if is_op(node, *WINDOWED) else None
    window = None if pad is None else _window(node)
    amounts = None if pad is None else _amounts(pad)
    if pad is None or window is None or amounts is None or attribute(node, "ceil_mode", 0):
        return None
    (begins, ends), value = amounts, _value(pad)
    if value is None or not _is_padding_of(node, pad, value, window):
        return None
    more = replace(
        window,
        begins=tuple(a + b for a, b in zip(window.begins, begins, strict=True)),
        ends=tuple(a + b for a, b in zip(window.ends, ends, strict=True)),
    )
    if not is_op(node, "Conv") and any(
        max(begin, end) >= size for begin, end, size in zip(more.begins, more.ends, more.reach, strict=True)
    ):
        return None  # a window of a pooling op has to read something

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {node.outputs[0]: _again(make, node, pad.inputs[0], more)}

    return Match((node, pad), build)


def pad_apart(node: ir.Node) -> Match | None:
    """Padding of a convolution that is not the same on either side, or that an average counts, → a Pad before it."""
    window = _window(node) if is_op(node, "Conv", "AveragePool") and "Pad" not in _before(node) else None
    if window is None or not window.is_padded or attribute(node, "ceil_mode", 0):
        return None
    counted = attribute(node, "count_include_pad", 0) if is_op(node, "AveragePool") else window.begins != window.ends
    if not counted or len(extents_of(node.inputs[0])) != window.rank + 2:
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        pads = make.constant([0, 0, *window.begins, 0, 0, *window.ends], "pads")
        padded = make.op("Pad", node.inputs[0], pads)
        bare = replace(window, begins=(0,) * window.rank, ends=(0,) * window.rank)
        return {node.outputs[0]: _again(make, node, padded, bare)}

    return Match((node,), build)


def _again(make: Maker, node: ir.Node, source: ir.Value | None, window: Window) -> ir.Value:
    """The op with another padding; an average counts what is padding now and was data."""
    kept = {name: each.value for name, each in node.attributes.items() if name != "auto_pad"}
    kept["pads"] = [*window.begins, *window.ends]
    if is_op(node, "AveragePool"):
        kept["count_include_pad"] = int(window.is_padded)
    return make.op(node.op_type, source, *node.inputs[1:], dtype=node.outputs[0].dtype, **kept)


def _before(node: ir.Node) -> str:
    found = producer(node.inputs[0])
    return "" if found is None else found.op_type


def _window(node: ir.Node) -> Window | None:
    weights = weights_of(node.inputs[1]) if is_op(node, "Conv") else None
    if is_op(node, "Conv"):
        return None if weights is None else window_of(node, weights.array.shape[2:])
    return None if any(each.uses() or each.is_graph_output() for each in node.outputs[1:]) else window_of(node)


def _is_padding_of(node: ir.Node, pad: ir.Node, value: float, window: Window) -> bool:
    """Whether padding with that value is what the op's own padding does."""
    if is_op(node, "MaxPool"):
        return value == -np.inf or (value == 0 and producer(pad.inputs[0], *NOT_NEGATIVE) is not None)
    counts = not window.is_padded or attribute(node, "count_include_pad", 0)
    return value == 0 and (is_op(node, "Conv") or bool(counts))


def _amounts(pad: ir.Node) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """What a Pad puts before and after each spatial axis, where it pads no other and takes nothing away."""
    rank = len(extents_of(pad.inputs[0]))
    pads = numbers_of(pad.inputs[1]) if len(pad.inputs) > 1 else None
    axes = numbers_of(pad.inputs[3]) if len(pad.inputs) > 3 and pad.inputs[3] is not None else list(range(rank))
    if not rank or pads is None or axes is None or len(pads) != 2 * len(axes) or min(pads, default=0) < 0:
        return None
    if not all(-rank <= axis < rank for axis in axes):
        return None
    begins, ends = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[place], pads[len(axes) + place]
    return None if any((*begins[:2], *ends[:2])) else (tuple(begins[2:]), tuple(ends[2:]))


def _value(pad: ir.Node) -> float | None:
    """The constant that a Pad writes; None where it repeats or mirrors what is there."""
    if attribute(pad, "mode", "constant") != "constant":
        return None
    if len(pad.inputs) < 3 or pad.inputs[2] is None:
        return 0.0
    array = array_of(pad.inputs[2])
    return None if array is None or array.size != 1 else float(array.ravel()[0])
