"""Which operators TensorFlow Lite Micro has kernels for, in which types, and what to use instead.

Operators of its resolver (micro_mutable_op_resolver.h) and types that the kernels of tensorflow/lite/micro/kernels take
in Prepare and Eval, at 90b983c2. Kernels of CMSIS-NN and of ESP-NN stand in for reference ones of the same types, so
that what runs is the same; NPU code that Vela has compiled runs where the driver of the Ethos-U is linked in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...graph.graph import DType
from ...readers.tflite.model import StoredTensor
from .nodes import ModelFile, Node, dtype

KERNELS = ("reference", "cmsis-nn", "esp-nn", "ethos-u")
_LETTERS = {
    "f": DType.F32,
    "b": DType.I8,
    "h": DType.I16,
    "i": DType.I32,
    "l": DType.I64,
    "o": DType.BOOL,
    "u": DType.U8,
    "w": DType.U32,
}
_TYPES: Mapping[str, str] = {  # types of the data → operators; "": any
    "f": "SIN COS LOG SQRT SQUARE CEIL EXP FLOOR FLOOR_DIV FLOOR_MOD ROUND L2_POOL_2D",
    "fb": "ADD_N ARG_MAX ARG_MIN BATCH_TO_SPACE_ND CUMSUM DEPTH_TO_SPACE ELU GATHER GATHER_ND HARD_SWISH "
    "L2_NORMALIZATION LOG_SOFTMAX MIRROR_PAD NEG REDUCE_MAX REDUCE_MIN RESIZE_BILINEAR RSQRT SPACE_TO_BATCH_ND "
    "SPACE_TO_DEPTH SVDF",
    "fbh": "ABS AVERAGE_POOL_2D BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED LEAKY_RELU LOGISTIC MAX_POOL_2D "
    "MEAN PRELU RELU RELU6 RESIZE_NEAREST_NEIGHBOR SELECT_V2 SOFTMAX SUM TANH TRANSPOSE TRANSPOSE_CONV "
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "fbi": "DIV FILL",
    "fbhi": "ADD DYNAMIC_UPDATE_SLICE EXPAND_DIMS MUL PAD PADV2 SPLIT SPLIT_V SQUARED_DIFFERENCE SUB UNPACK",
    "fbil": "GREATER GREATER_EQUAL LESS LESS_EQUAL ZEROS_LIKE",
    "fbilo": "EQUAL NOT_EQUAL",
    "fbhil": "MAXIMUM MINIMUM PACK",
    "fbhio": "STRIDED_SLICE",
    "fbhilo": "CONCATENATION SLICE",
    "fbhiw": "CAST",
    "fbhiou": "REVERSE_V2",
    "fbhiu": "QUANTIZE",
    "bhu": "DEQUANTIZE",
    "o": "LOGICAL_AND LOGICAL_NOT LOGICAL_OR REDUCE_ALL",
    "": "ASSIGN_VARIABLE BROADCAST_ARGS BROADCAST_TO CALL_ONCE EMBEDDING_LOOKUP IF READ_VARIABLE RESHAPE SHAPE SQUEEZE "
    "VAR_HANDLE WHILE",
}
_SIGNAL = (
    "Delay Energy FftAutoScale FilterBank FilterBankLog FilterBankSquareRoot FilterBankSpectralSubtraction Framer "
    "Irfft OverlapAdd PCAN Rfft Stacker Window"
)
_CUSTOM = {"CIRCULAR_BUFFER", "TFLM_DECODE", "TFLite_Detection_PostProcess"} | {
    f"Signal{name}" for name in _SIGNAL.split()
}
_DATA = {"TRANSPOSE_CONV": 2, "SELECT_V2": 1, "SPLIT": 1, "FILL": 1}  # operand whose type decides; else the first
_WEIGHTED = {  # pairs of types of data and weights
    "CONV_2D": "ff hb bb b4",
    "DEPTHWISE_CONV_2D": "ff hb bb b4",
    "FULLY_CONNECTED": "ff hb bb b4",
    "TRANSPOSE_CONV": "ff hb bb",
}
_INSTEAD: Mapping[str, str] = {
    "CONV_3D": "CONV_2D over slices",
    "DENSIFY": "weights stored dense: convert without sparsity",
    "GELU": "TANH or HARD_SWISH",
    "GRU": "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM, as Keras' LSTM converts with fixed batch size",
    "RANGE": "the values as a constant",
    "RELU_N1_TO_1": "MINIMUM and MAXIMUM",
    "SELECT": "SELECT_V2",
    "POW": "MUL with itself",
    "TILE": "BROADCAST_TO",
    "TOPK_V2": "the sorting on the application's side",
    "WHERE": "SELECT_V2",
}


class Refusal(NamedTuple):
    """An operator that the runtime would not prepare or run."""

    operator: str
    number: int  # in its subgraph
    subgraph: int
    reason: str
    instead: str


def refusals(file: ModelFile, *, has_npu: bool = False) -> tuple[Refusal, ...]:
    """Every operator of a file that the runtime refuses, in order; it stops at the first itself."""
    return tuple(
        Refusal(node.type, node.number, subgraph.index, reason, instead)
        for subgraph in file.subgraphs
        for node in file.nodes(subgraph)
        for reason, instead in _problems(node, has_npu)
    )


def _problems(node: Node, has_npu: bool) -> Iterator[tuple[str, str]]:
    """Why a kernel would not take an operator, and what it would take; nothing: it takes it."""
    if node.type.startswith("CUSTOM:"):
        name = node.type.removeprefix("CUSTOM:")
        if name == "ethos-u" and not has_npu:
            yield "code for an Ethos-U, which this runtime has no driver for", "the file before Vela compiled it"
        elif name != "ethos-u" and name not in _CUSTOM:
            yield "a custom operator without a kernel", "operators of TensorFlow Lite alone"
        return
    if node.type not in _TAKES:
        yield "no kernel", _INSTEAD.get(node.type, "operators that it has: docs/microcontrollers.md lists them")
        return
    data = node.input(_DATA.get(node.type, 0))
    if node.type in _WEIGHTED and not _pairs(node, data):
        shown = f"{dtype(data).label} data with {dtype(node.input(1)).label} weights"
        is_hybrid = dtype(data) is DType.F32 and dtype(node.input(1)) is not DType.F32
        reason = f"{shown}: a hybrid form" if is_hybrid else shown
        yield reason, "full integer quantisation, with a representative data set, or none at all"
        return
    takes = _TAKES[node.type]
    if data is not None and takes and dtype(data) not in takes:
        named = ", ".join(found.label for found in takes)
        half = "weights in f32 or i8: convert without float16 quantisation" if dtype(data) is DType.F16 else ""
        yield f"{dtype(data).label} data", half or f"data in {named}"


def _pairs(node: Node, data: StoredTensor | None) -> bool:
    """Whether the types of data and weights go together."""
    known = {**_LETTERS, "4": DType.I4}
    return (dtype(data), dtype(node.input(1))) in {
        (known[pair[0]], known[pair[1]]) for pair in _WEIGHTED[node.type].split()
    }


_TAKES: Mapping[str, tuple[DType, ...]] = {
    operator: tuple(_LETTERS[letter] for letter in letters)
    for letters, operators in _TYPES.items()
    for operator in operators.split()
}
