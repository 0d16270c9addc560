"""Bytes of the runtime's C structures, on a chip with pointers of 4 bytes and on a host with 8.

Figures of tensorflow/lite/micro at 90b983c2 by its headers: sizeof as GCC has it for the host, and with pointers of 32
bits, 8-byte alignment of doubles and enumerations as small as they can be for a chip, as the ABI of Arm's processors is
(AAPCS, bare metal).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Size(NamedTuple):
    """Of one structure."""

    chip: int
    host: int

    def bytes(self, pointer: int) -> int:
        return self.chip if pointer == 4 else self.host


def _same(size: int) -> Size:
    return Size(size, size)


POINTER = Size(4, 8)
EVAL_TENSOR = Size(12, 24)
TENSOR = Size(32, 64)
AFFINE_QUANTIZATION = Size(12, 24)
NODE = Size(32, 64)  # with its registration
SUBGRAPH = Size(8, 16)
BUILTIN_ALLOCATOR = Size(8, 16)
ARENA_ALLOCATOR = Size(36, 72)
PLANNER = Size(44, 72)
ALLOCATOR = Size(36, 72)
RECORDING_ARENA_ALLOCATOR = Size(52, 104)
RECORDING_ALLOCATOR = Size(136, 272)  # with compression
COMPRESSED_TENSORS = Size(4, 8)  # in the record of a subgraph, of a build with compression
MATMUL_QUANTIZATION = _same(28)


class Options(NamedTuple):
    """What an operator's options become, and their alignment."""

    size: Size
    alignment: int = 4


OPTIONS: Mapping[str, Options] = {  # an operator that is not here has none
    "ADD": Options(Size(2, 8)),
    "ARG_MAX": Options(Size(1, 4)),
    "ARG_MIN": Options(Size(1, 4)),
    "AVERAGE_POOL_2D": Options(_same(40)),
    "BATCH_MATMUL": Options(_same(3), 1),
    "CALL_ONCE": Options(_same(4)),
    "CAST": Options(Size(2, 8)),
    "CONCATENATION": Options(_same(8)),
    "CONV_2D": Options(_same(28)),
    "CUMSUM": Options(_same(2), 1),
    "DEPTHWISE_CONV_2D": Options(_same(28)),
    "DEPTH_TO_SPACE": Options(_same(4)),
    "DIV": Options(Size(1, 4)),
    "FULLY_CONNECTED": Options(Size(5, 16)),
    "GATHER": Options(_same(8)),
    "IF": Options(_same(8)),
    "L2_NORMALIZATION": Options(Size(1, 4)),
    "L2_POOL_2D": Options(_same(40)),
    "LEAKY_RELU": Options(_same(4)),
    "MAX_POOL_2D": Options(_same(40)),
    "MEAN": Options(_same(1), 1),
    "MIRROR_PAD": Options(Size(1, 4)),
    "MUL": Options(Size(1, 4)),
    "PACK": Options(_same(8)),
    "REDUCE_ALL": Options(_same(1), 1),
    "REDUCE_MAX": Options(_same(1), 1),
    "REDUCE_MIN": Options(_same(1), 1),
    "RESHAPE": Options(_same(36)),
    "RESIZE_BILINEAR": Options(_same(2), 1),
    "RESIZE_NEAREST_NEIGHBOR": Options(_same(2), 1),
    "SHAPE": Options(Size(1, 4)),
    "SOFTMAX": Options(_same(4)),
    "SPACE_TO_DEPTH": Options(_same(4)),
    "SPLIT": Options(_same(4)),
    "SPLIT_V": Options(_same(4)),
    "SQUEEZE": Options(_same(36)),
    "STRIDED_SLICE": Options(_same(24)),
    "SUB": Options(Size(2, 8)),
    "SUM": Options(_same(1), 1),
    "SVDF": Options(Size(8, 12)),
    "TRANSPOSE_CONV": Options(Size(16, 20)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Options(_same(16)),
    "UNPACK": Options(_same(8)),
    "VAR_HANDLE": Options(Size(8, 16), 8),
    "WHILE": Options(_same(8)),
}

PACKAGE_OPTIONS: Mapping[str, Options] = {"FULLY_CONNECTED": Options(Size(16, 32), 8)}
"""Of the Python package 0.dev20261023, on a host; its sources for a chip are not published yet."""

_COMPARISON = dict.fromkeys(("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), _same(32))
_REDUCTION = dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL"), _same(44))

AT_INIT: Mapping[str, Size] = {  # what a kernel keeps for an operator, whatever its types
    "ABS": _same(28),
    "ADD": _same(60),
    "AVERAGE_POOL_2D": _same(32),
    "BATCH_MATMUL": Size(16, 32),
    "CALL_ONCE": _same(8),
    "CONCATENATION": Size(24, 40),
    "CONV_2D": Size(56, 72),
    "CUSTOM:CIRCULAR_BUFFER": _same(8),
    "CUSTOM:TFLite_Detection_PostProcess": _same(112),
    "CUSTOM:ethos-u": _same(12),
    "DEPTHWISE_CONV_2D": Size(56, 72),
    "DEQUANTIZE": _same(32),
    "DIV": _same(28),
    "ELU": _same(256),
    "FULLY_CONNECTED": Size(48, 64),
    "HARD_SWISH": _same(20),
    "IF": _same(8),
    "L2_NORMALIZATION": _same(4),
    "LEAKY_RELU": _same(24),
    "LOGISTIC": _same(16),
    "MAX_POOL_2D": _same(32),
    "MIRROR_PAD": _same(20),
    "MUL": _same(36),
    "PAD": _same(56),
    "PADV2": _same(56),
    "PRELU": _same(28),
    "QUANTIZE": _same(32),
    "RELU": _same(28),
    "RELU6": _same(8),
    "RSQRT": _same(28),
    "SELECT_V2": _same(1),
    "SOFTMAX": Size(56, 80),
    "SPACE_TO_BATCH_ND": _same(4),
    "SQUARED_DIFFERENCE": _same(112),
    "STRIDED_SLICE": _same(84),
    "SUB": _same(52),
    "SVDF": _same(36),
    "TANH": _same(16),
    "TRANSPOSE_CONV": Size(72, 80),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _same(688),
    "VAR_HANDLE": _same(4),
    "WHILE": _same(8),
    **_COMPARISON,
    **_REDUCTION,
}

CMSIS_AT_INIT: Mapping[str, Size] = {  # where a kernel of CMSIS-NN keeps more or other things
    "AVERAGE_POOL_2D": _same(36),
    "BATCH_MATMUL": Size(36, 56),
    "CONV_2D": Size(60, 80),
    "DEPTHWISE_CONV_2D": Size(60, 80),
    "FULLY_CONNECTED": Size(72, 96),
    "MAX_POOL_2D": _same(36),
    "SOFTMAX": Size(64, 88),
    "SVDF": Size(40, 48),
    "TRANSPOSE_CONV": Size(76, 88),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Size(912, 1008),
}

ESP_NN_AT_INIT: Mapping[str, Size] = {  # the reference kernel's, and the number of a scratch buffer
    "CONV_2D": Size(60, 80),
    "DEPTHWISE_CONV_2D": Size(60, 80),
    "SOFTMAX": Size(64, 88),
}
COMPRESSION_AT_INIT: Mapping[str, Size] = {  # of a build that can unpack weights, as the Python package is
    "ASSIGN_VARIABLE": _same(4),
    "CONCATENATION": Size(64, 80),
    "CONV_2D": Size(64, 80),
    "DEPTHWISE_CONV_2D": Size(64, 80),
    "FULLY_CONNECTED": Size(56, 72),
    "TRANSPOSE_CONV": Size(80, 88),
}

ADD_N = _same(40)
CUMSUM = _same(36)
EMBEDDING_LOOKUP = Size(8, 16)
LOG_SOFTMAX = Size(28, 40)
RESOURCES = Size(12, 16)  # the list of resource variables, and each of them
RESOURCE = Size(20, 40)
LOOKUP_TABLE_BYTES = 513 * 2  # of softmax on 16 bits
