"""Channels between two convolutions, filled up to the width of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import onnx_ir as ir

from .convolutions import Convolution, convolution_of
from .rule import Array, Maker, Match, array_of, is_op, only_reader, producer

WIDTH = 32  # channels: the depth of the blocks in which matrix engines keep activations is this or a part of it
# Elementwise ops that give a number for 0: what they make of a channel that is not there is multiplied by 0.
FINITE = (
    *("Relu", "LeakyRelu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Elu", "Softplus", "Mish", "Gelu"),
    *("Identity", "Exp", "Neg", "Abs", "Erf"),
)


def pad_channels(node: ir.Node) -> Match | None:
    """Channels between two convolutions → as many more of zeros as fill the width of an engine."""
    second = convolution_of(node)
    between = None if second is None else _back(second.source)
    first = None if not between else convolution_of(between[-1])
    if second is None or not between or first is None or first.group != 1 or second.group != 1:
        return None
    count = first.weights.array.shape[0]
    bias = array_of(first.bias)
    if first.weights.dequantize or second.weights.dequantize or (first.bias is not None and bias is None):
        return None
    if count % WIDTH == 0 or second.weights.array.shape[1] != count:
        return None
    more = -count % WIDTH

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        wide = None if bias is None else make.constant(_filled(bias, 0, more), "bias")
        value = first.again(make, first.source, _filled(first.weights.array, 0, more), first.window, group=1, bias=wide)
        made = {first.node.outputs[0]: value}
        for each in between[-2::-1]:
            inputs = [made.get(given, given) if given is not None else None for given in each.inputs]
            kept = {name: given.value for name, given in each.attributes.items()}
            made[each.outputs[0]] = make.op(each.op_type, *inputs, **kept)
        return {node.outputs[0]: _last(make, second, made[second.source], more)}

    return Match((node, *between), build)


def _last(make: Maker, conv: Convolution, source: ir.Value, more: int) -> ir.Value:
    array = _filled(conv.weights.array, 1, more)
    made = conv.again(make, source, array, conv.window, group=1, bias=conv.bias)
    made.shape = conv.node.outputs[0].shape
    return made


def _filled(array: Array, axis: int, more: int) -> Array:
    """An array with so many zeros after its last elements along an axis."""
    return np.pad(array, [(0, more if place == axis else 0) for place in range(array.ndim)])


def _back(value: ir.Value | None) -> list[ir.Node]:
    """Elementwise ops, the last first, and the convolution that they start from; nothing where others read between."""
    nodes: list[ir.Node] = []
    readers = 1
    while value is not None and (node := producer(value)) is not None:
        if value.is_graph_output() or len(value.consumers()) != readers:
            return []
        gate = _gate(node)
        nodes += [node] if gate is None else [node, gate]
        if is_op(node, "Conv"):
            return nodes
        if gate is None and not (is_op(node, *FINITE) and _is_unary(node)):
            return []
        value, readers = (node.inputs[0], 1) if gate is None else (gate.inputs[0], 2)
    return []


def _is_unary(node: ir.Node) -> bool:
    """Whether all that an op reads beside its first operand is constant."""
    return all(given is None or array_of(given) is not None for given in node.inputs[1:])


def _gate(node: ir.Node) -> ir.Node | None:
    """The Sigmoid of a SiLU that is written as a product of a value with its Sigmoid."""
    if not is_op(node, "Mul"):
        return None
    for one, other in pairwise((*node.inputs, node.inputs[0])):
        gate = producer(other, "Sigmoid", "HardSigmoid")
        if gate is not None and gate.inputs[0] is one and only_reader(gate.outputs[0]) is node:
            return gate
    return None
