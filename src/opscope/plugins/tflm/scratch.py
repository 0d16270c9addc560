"""Bytes of scratch that the reference kernels ask for while a model is prepared, operator by operator.

Rules of tensorflow/lite/micro/kernels at 90b983c2. An operator that is not in the table asks for none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...graph.graph import DType
from .nodes import INT, Node, dtype, elements, extent, extents

_SVDF_RANK = 0  # field of its options
_COORDINATES = 4  # of a box

Rule = Callable[[Node], Sequence[int]]


def reference(node: Node, pointer: int = 8) -> Sequence[int]:
    """What the reference kernel of an operator asks for, with pointers of so many bytes."""
    rule = _REFERENCE.get(node.type)
    if node.input(0) is None or node.output() is None:
        return ()
    if rule is None:
        return _pointers(node, pointer) if node.type in _WITH_POINTERS else ()
    return rule(node)


def _unpacked_weights(node: Node) -> Sequence[int]:
    """4-bit weights are unpacked to 8 bits before use."""
    weights = node.input(1)
    return (elements(weights),) if dtype(weights) is DType.I4 else ()


def _mean_or_sum(node: Node) -> Sequence[int]:
    """Accumulators of whole numbers, the position in the input, and the axes."""
    data, axes = node.input(0), node.input(1)
    sums = (INT * elements(node.output()),) if dtype(data) in {DType.I8, DType.I16} else ()
    return (*sums, INT * len(extents(data)), INT * elements(axes))


def _positions_and_axes(node: Node) -> Sequence[int]:
    return (INT * len(extents(node.input(0))), INT * elements(node.input(1)))


def _mirror_pad(node: Node) -> Sequence[int]:
    return (INT * len(extents(node.input(0))),) * 2


def _pointers(node: Node, pointer: int) -> Sequence[int]:
    """A pointer per input; for the coprocessor an address of 8 bytes and a size per operand."""
    if node.type == "CUSTOM:ethos-u":
        operands = len(node.stored.inputs) + len(node.stored.outputs)
        return (8 * operands, pointer * operands)
    return (pointer * len(node.stored.inputs),) if dtype(node.output()) in {DType.F32, DType.I8} else ()


def transpose_conv(node: Node) -> Sequence[int]:
    """Sums of the whole output, and biases in 64 bits where they are stored in 16."""
    data, bias = node.input(2), node.input(3)
    result = elements(node.output())
    if dtype(data) is DType.I8:
        return (result * INT,)
    if dtype(data) is DType.I16:
        return (result * 8, *((elements(bias) * 8,) if dtype(bias) is DType.I16 else ()))
    return ()


def svdf(node: Node) -> Sequence[int]:
    data, features = node.input(0), node.input(1)
    batch, filters = extent(data, 0), extent(features, 0)
    if dtype(data) is DType.I8:
        return (batch * filters * INT, batch * (filters // max(node.option(_SVDF_RANK, 1), 1)) * INT)
    return (batch * filters * INT,)


def lstm(node: Node, buffers: int = 4) -> Sequence[int]:
    """One buffer per gate, of the type of the cell."""
    hidden, cell = node.input(18), node.input(19)
    return (elements(hidden) * (dtype(cell).bits // 8),) * buffers


def _detection(node: Node) -> Sequence[int]:
    """Boxes, scores and lists for the suppression of all but the best, by the numbers in its options."""
    options = node.custom_options()
    most, classes = options.get("max_detections", 0), options.get("num_classes", 0)
    boxes, scores = extent(node.input(0), 1), node.input(1)
    each = boxes * INT
    return (
        boxes,
        each * _COORDINATES,
        extent(scores, 1) * extent(scores, 2) * INT,
        each,
        each,
        most * each,
        most * each,
        each,
        most * each,
        max(classes, most) * each,
        min(boxes, most) * each,
    )


_WITH_POINTERS = frozenset({"ADD_N", "CUSTOM:ethos-u"})
_REFERENCE: Mapping[str, Rule] = {
    "CONV_2D": _unpacked_weights,
    "CUSTOM:TFLite_Detection_PostProcess": _detection,
    "DEPTHWISE_CONV_2D": _unpacked_weights,
    "FULLY_CONNECTED": _unpacked_weights,
    "MEAN": _mean_or_sum,
    "SUM": _mean_or_sum,
    "REDUCE_MAX": _positions_and_axes,
    "REDUCE_MIN": _positions_and_axes,
    "REDUCE_ALL": _positions_and_axes,
    "MIRROR_PAD": _mirror_pad,
    "TRANSPOSE_CONV": transpose_conv,
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
}
