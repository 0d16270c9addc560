"""Bytes of scratch that kernels ask for while a model is prepared, operator by operator.

Rules of tensorflow/lite/micro/kernels at 90b983c2 for the reference kernels. An operator that is not in a table asks
for none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ...graph.graph import DType
from ...readers.tflite.model import StoredTensor
from .arena import Node

_INT = 4  # bytes of a C int, and of an int32 and a float
_SVDF_RANK = 0  # field of its options

Rule = Callable[[Node], Sequence[int]]


def reference(node: Node) -> Sequence[int]:
    """What the reference kernel of an operator asks for."""
    rule = _REFERENCE.get(node.type)
    return rule(node) if rule is not None and all(node.inputs[:1]) and all(node.outputs[:1]) else ()


def extents(tensor: StoredTensor | None) -> tuple[int, ...]:
    """The shape as the runtime has it; nothing for an operand that is left out."""
    return () if tensor is None or tensor.shape is None else tensor.shape


def elements(tensor: StoredTensor | None) -> int:
    return prod(extents(tensor))


def dtype(tensor: StoredTensor | None) -> DType:
    return DType.UNKNOWN if tensor is None else tensor.dtype


def _operand(node: Node, number: int) -> StoredTensor | None:
    return node.inputs[number] if number < len(node.inputs) else None


def _unpacked_weights(node: Node) -> Sequence[int]:
    """4-bit weights are unpacked to 8 bits before use."""
    weights = _operand(node, 1)
    return (elements(weights),) if dtype(weights) is DType.I4 else ()


def _mean_or_sum(node: Node) -> Sequence[int]:
    """Accumulators of whole numbers, the position in the input, and the axes."""
    data, axes = node.inputs[0], _operand(node, 1)
    sums = (_INT * elements(node.outputs[0]),) if dtype(data) in {DType.I8, DType.I16} else ()
    return (*sums, _INT * len(extents(data)), _INT * elements(axes))


def _positions_and_axes(node: Node) -> Sequence[int]:
    return (_INT * len(extents(node.inputs[0])), _INT * elements(_operand(node, 1)))


def _mirror_pad(node: Node) -> Sequence[int]:
    return (_INT * len(extents(node.inputs[0])),) * 2


def _pointers(node: Node) -> Sequence[int]:
    """A pointer per input; counted with 8 bytes, as on the host, which never is less than on a chip."""
    return (8 * len(node.inputs),) if dtype(node.outputs[0]) in {DType.F32, DType.I8} else ()


def _transpose_conv(node: Node) -> Sequence[int]:
    """Sums of the whole output, and biases in 64 bits where they are stored in 16."""
    data, bias = _operand(node, 2), _operand(node, 3)
    result = elements(node.outputs[0])
    if dtype(data) is DType.I8:
        return (result * _INT,)
    if dtype(data) is DType.I16:
        return (result * 8, *((elements(bias) * 8,) if dtype(bias) is DType.I16 else ()))
    return ()


def _svdf(node: Node) -> Sequence[int]:
    data, features = node.inputs[0], _operand(node, 1)
    batch, filters = (extents(data) or (1,))[0], (extents(features) or (1,))[0]
    if dtype(data) is DType.I8:
        return (batch * filters * _INT, batch * (filters // max(node.option(_SVDF_RANK, 1), 1)) * _INT)
    return (batch * filters * _INT,)


def _lstm(node: Node) -> Sequence[int]:
    """One buffer per gate, of the type of the cell."""
    hidden, cell = _operand(node, 18), _operand(node, 19)
    return (elements(hidden) * (dtype(cell).bits // 8),) * 4


def _detection(node: Node) -> Sequence[int]:
    """Left out: the number of detections is in options that this reader does not take apart."""
    return ()


_REFERENCE: Mapping[str, Rule] = {
    "ADD_N": _pointers,
    "CONV_2D": _unpacked_weights,
    "DEPTHWISE_CONV_2D": _unpacked_weights,
    "FULLY_CONNECTED": _unpacked_weights,
    "MEAN": _mean_or_sum,
    "SUM": _mean_or_sum,
    "REDUCE_MAX": _positions_and_axes,
    "REDUCE_MIN": _positions_and_axes,
    "REDUCE_ALL": _positions_and_axes,
    "MIRROR_PAD": _mirror_pad,
    "TRANSPOSE_CONV": _transpose_conv,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
