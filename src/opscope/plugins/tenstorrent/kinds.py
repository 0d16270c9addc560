"""What an op of tt-metal is in the words of our graphs: its kind, shapes, data types and where operands lie.

What only changes how a tensor lies (tilize, reshard, halo, moves between memories) is no op of a model, and has no
kind; nor have ops of several devices, and those that our graphs have no word for.
"""

from __future__ import annotations

import re
from math import prod

from ...graph.kinds import KINDS
from .rows import Row, Tensor

# Names differ between releases by what stands behind them: Matmul, MatmulDeviceOperation, MinimalMatmulOp.
_SUFFIX = re.compile(r"(?:DeviceOperation|Operation|Op)$")
_KINDS = {
    "Matmul": "matmul",
    "MinimalMatmul": "matmul",
    "Conv2d": "conv",
    "OptimizedConvNew": "conv",
    "Ternary": "select",
    "Typecast": "cast",
    "Softmax": "softmax",
    "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm",
    "BatchNorm": "batch_norm",
    "Embeddings": "gather",
    "Transpose": "transpose",
    "Permute": "transpose",
    "NlpCreateHeads": "transpose",
    "NLPConcatHeads": "transpose",
    "Reshape": "reshape",
    "Concat": "concat",
    "Split": "split",
    "Slice": "slice",
    "PaddedSlice": "slice",
    "TilizeWithValPadding": "pad",
    "UntilizeWithUnpadding": "slice",
    "Upsample": "resize",
    "Accumulation": "cumsum",
    "FastReduceNC": "reduce",
    "Reduce": "reduce",
    "RotaryEmbeddingLlama": "rotary",
}
_BY_ATTRIBUTE = {  # codes whose attributes tell which op it is, and what it is called where they do not
    "BinaryNg": (re.compile(r"BinaryOpType::(\w+)"), "binary"),
    "Binary": (re.compile(r"BinaryOpType::(\w+)"), "binary"),
    "Unary": (re.compile(r"UnaryOpType::(\w+)"), "unary"),
    "Pool2D": (re.compile(r"Pool2DType::(\w+)_POOL2D"), ""),
    "LayerNorm": (re.compile(r"LayerNormType::(RMS)NORM"), "layer_norm"),
}
_WORDS = {
    "recip": "reciprocal",
    "neg": "negate",
    "avg": "average_pool",
    "max": "max_pool",
    "rms": "rms_norm",
    "relu6": "clip",
    "hardtanh": "clip",
}
_MOST_INPUTS = {"BinaryNg": 2, "Binary": 2, "Unary": 1, "Typecast": 1, "Pool2D": 1}  # a result made before is no input
_IMAGE = re.compile(r"'input_tensor_shape': '\{(\d{1,9}); (\d{1,9}); (\d{1,9}); (\d{1,9})\}'")
_WINDOW = re.compile(r"window_hw=\((\d{1,4});\s?(\d{1,4})\)")
_GROUPS = re.compile(r"'groups': '(\d{1,9})'")
_LABELS = {"bfloat8_b": "bfp8", "bfloat4_b": "bfp4"}


def kind_of(row: Row) -> str:
    """In the words of our graphs; empty: none."""
    code = _SUFFIX.sub("", row.code)
    by_attribute = _BY_ATTRIBUTE.get(code)
    if by_attribute is None:
        return _KINDS.get(code, "")
    pattern, otherwise = by_attribute
    told = pattern.search(row.attributes)
    word = "" if told is None else told[1].lower()
    found = _WORDS.get(word, word)
    return found if found in KINDS else otherwise


def label_of(tensor: Tensor) -> str:
    """Its data type, in the words of our graphs where they have one."""
    return _LABELS.get(tensor.label, tensor.label)


def is_told(row: Row) -> bool:
    """Whether the row has what it reads and one result."""
    return any(tensor.is_input for tensor in row.tensors) and sum(not tensor.is_input for tensor in row.tensors) == 1


def shapes_of(row: Row) -> str:
    """Of inputs and result, as rows of single ops have them: `1x1x32x768;1x1x768x3072->1x1x32x3072`."""
    kind = kind_of(row)
    shapes = _convolution(row) if kind == "conv" else None
    if shapes is None:
        shapes = [tensor.shape for tensor in operands_of(row)]
    if kind in ("max_pool", "average_pool"):
        shapes = [(shape[0], shape[-1], prod(shape[1:-1]), 1) for shape in shapes]
    return _joined(["x".join(map(str, shape)) for shape in shapes], row)


def types_of(row: Row) -> str:
    """Of inputs and result: `bf16;bfp8->bf16`; one word where all are alike."""
    labels = [label_of(tensor) for tensor in operands_of(row)]
    return labels[0] if len(set(labels)) == 1 else _joined(labels, row)


def _joined(words: list[str], row: Row) -> str:
    last = len(words) - sum(not tensor.is_input for tensor in row.tensors)
    return "->".join(filter(None, (";".join(words[:last]), ";".join(words[last:]))))


def operands_of(row: Row) -> list[Tensor]:
    """Inputs, then results. A result that was made before the op is among the inputs of the file: it is none."""
    most = _MOST_INPUTS.get(_SUFFIX.sub("", row.code), len(row.tensors))
    inputs = [tensor for tensor in row.tensors if tensor.is_input][:most]
    return [*inputs, *(tensor for tensor in row.tensors if not tensor.is_input)]


def _convolution(row: Row) -> list[tuple[int, ...]] | None:
    """Images with channels second. Tensors of the file have a row for each pixel, and weights one for each tap."""
    image, window = _IMAGE.search(row.attributes), _WINDOW.search(row.attributes)
    operands = operands_of(row)
    if image is None or window is None or len(operands) < 3:
        return None
    batch, height, width, channels = map(int, image.groups())
    groups = _GROUPS.search(row.attributes)
    result = operands[-1].shape
    weights = (result[-1], channels // (int(groups[1]) if groups else 1), *map(int, window.groups()))
    biases = [tensor.shape for tensor in operands[2:-1]]
    pixels = result[-2] // batch if batch else 0
    return [(batch, channels, height, width), weights, *biases, (batch, result[-1], pixels, 1)]
