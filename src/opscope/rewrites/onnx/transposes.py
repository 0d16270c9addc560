"""Transposes: merged and cancelled."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from .rule import Maker, Match, attribute, is_op, producer


def merge_transposes(node: ir.Node) -> Match | None:
    """Two transposes, one after the other, are one; where they undo each other, none."""
    first = producer(node.inputs[0], "Transpose") if is_op(node, "Transpose") else None
    outer = attribute(node, "perm")
    inner = None if first is None else attribute(first, "perm")
    if first is None or outer is None or inner is None:
        return None
    source, order = first.inputs[0], [inner[axis] for axis in outer]

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        if source is not None and order == sorted(order):
            return {node.outputs[0]: source}
        return {node.outputs[0]: make.op("Transpose", source, perm=order)}

    return Match((node, first), build)
