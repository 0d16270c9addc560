"""Serialises the tables of a TensorFlow Lite file, as far as the zoo needs them.

Field numbers follow `schema.fbs` of TensorFlow Lite, version 3. A flatbuffer is built back to front: the targets of a
table's offsets are written before the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from flatbuffers import Builder

SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"
DATA_ALIGNMENT = 16  # `force_align: 16` on Buffer.data

TENSOR_TYPES = {"float32": 0, "int32": 2, "int8": 9}  # enum TensorType
NO_ACTIVATION, RELU, RELU6 = 0, 1, 3  # enum ActivationFunctionType
SAME, VALID = 0, 1  # enum Padding

Scalar = tuple[str, int | float]  # flatbuffers type and value; the schema's default of every one used here is zero


@dataclass(frozen=True, slots=True)
class OpCode:
    """BuiltinOperator number, BuiltinOptions number (0: none), and operator version for f32 and for int8."""

    builtin: int
    options: int
    version: int
    int8_version: int


OP_CODES: Mapping[str, OpCode] = {
    "ADD": OpCode(0, 11, 1, 2),
    "AVERAGE_POOL_2D": OpCode(1, 5, 1, 2),
    "BATCH_MATMUL": OpCode(126, 101, 1, 2),
    "CONCATENATION": OpCode(2, 10, 1, 2),
    "CONV_2D": OpCode(3, 1, 1, 3),
    "CONV_2D_IN_GROUPS": OpCode(3, 1, 6, 6),
    "DEPTHWISE_CONV_2D": OpCode(4, 2, 1, 3),
    "FULLY_CONNECTED": OpCode(9, 8, 1, 4),
    "FULLY_CONNECTED_KEEPING_RANK": OpCode(9, 8, 5, 5),  # with `keep_num_dims`
    "GATHER": OpCode(36, 23, 1, 2),
    "GELU": OpCode(150, 116, 1, 2),
    "HARD_SWISH": OpCode(117, 91, 1, 1),
    "LEAKY_RELU": OpCode(98, 75, 1, 2),
    "LOGISTIC": OpCode(14, 0, 1, 2),
    "MAX_POOL_2D": OpCode(17, 5, 1, 2),
    "MEAN": OpCode(40, 27, 1, 2),
    "MUL": OpCode(18, 21, 1, 2),
    "QUANTIZE": OpCode(114, 89, 2, 2),
    "RESHAPE": OpCode(22, 17, 1, 1),
    "RESIZE_BILINEAR": OpCode(23, 15, 3, 3),
    "RESIZE_NEAREST_NEIGHBOR": OpCode(97, 74, 3, 3),
    "RSQRT": OpCode(76, 0, 1, 2),
    "SLICE": OpCode(65, 48, 1, 2),
    "SOFTMAX": OpCode(25, 9, 1, 2),
    "SPACE_TO_DEPTH": OpCode(26, 19, 1, 2),
    "SQUARED_DIFFERENCE": OpCode(99, 76, 1, 2),
    "STRIDED_SLICE": OpCode(45, 32, 1, 2),
    "SUB": OpCode(41, 28, 1, 2),
    "TRANSPOSE": OpCode(39, 26, 1, 2),
    "TRANSPOSE_RANK_5": OpCode(39, 26, 4, 4),
}
_LARGEST_BYTE = 127  # value of the deprecated one-byte operator number for all later operators


@dataclass(frozen=True, slots=True, eq=False)
class Quantisation:
    """One scale and zero point, or one per channel along `axis`."""

    scales: NDArray[np.float32]
    zero_points: NDArray[np.int64]
    axis: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class TfTensor:
    """A tensor; a constant if it has data."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    data: NDArray[np.generic] | None = None
    quantisation: Quantisation | None = None


@dataclass(frozen=True, slots=True)
class TfOp:
    """An operator; `options` are the fields of its options table by number. A tuple of numbers is a vector."""

    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[int, Scalar | tuple[int, ...]]


def serialise(
    name: str, tensors: Sequence[TfTensor], ops: Sequence[TfOp], inputs: Sequence[int], outputs: Sequence[int]
) -> bytes:
    """Return the bytes of the file."""
    from flatbuffers import Builder

    data = [tensor.data for tensor in tensors if tensor.data is not None]
    builder = Builder(sum(array.nbytes for array in data) + 4096 * (len(tensors) + len(ops) + 1))
    codes = sorted({op.code for op in ops})
    int8 = any(tensor.dtype == np.int8 for tensor in tensors)
    buffers = _buffers(builder, data)
    subgraph = _subgraph(builder, name, tensors, ops, codes=codes, ends=(inputs, outputs))
    code_tables = [_op_code(builder, OP_CODES[code], int8) for code in codes]
    description = builder.CreateString("made by opscope zoo")
    fields = {
        1: _offsets(builder, code_tables),
        2: _offsets(builder, [subgraph]),
        3: description,
        4: _offsets(builder, buffers),
    }
    builder.Finish(_table(builder, 5, {0: ("Uint32", SCHEMA_VERSION)}, fields), IDENTIFIER)
    return bytes(builder.Output())


def _subgraph(
    builder: Builder,
    name: str,
    tensors: Sequence[TfTensor],
    ops: Sequence[TfOp],
    *,
    codes: Sequence[str],
    ends: tuple[Sequence[int], Sequence[int]],
) -> int:
    """Write the only subgraph; return its offset."""
    buffer = 0  # number 0 is the empty buffer of every tensor without data
    rows = []
    for tensor in tensors:
        buffer += tensor.data is not None
        rows.append(_tensor(builder, tensor, buffer if tensor.data is not None else 0))
    operators = [_operator(builder, op, codes.index(op.code)) for op in ops]
    text = builder.CreateString(name)
    fields = {
        0: _offsets(builder, rows),
        1: _vector(builder, np.int32, ends[0]),
        2: _vector(builder, np.int32, ends[1]),
        3: _offsets(builder, operators),
        4: text,
    }
    return _table(builder, 5, {}, fields)


def _tensor(builder: Builder, tensor: TfTensor, buffer: int) -> int:
    fields = {0: _vector(builder, np.int32, tensor.shape), 3: builder.CreateString(tensor.name)}
    if tensor.quantisation is not None:
        fields[4] = _quantisation(builder, tensor.quantisation)
    return _table(builder, 5, {1: ("Int8", TENSOR_TYPES[tensor.dtype.name]), 2: ("Uint32", buffer)}, fields)


def _quantisation(builder: Builder, quantisation: Quantisation) -> int:
    fields = {
        2: _vector(builder, np.float32, quantisation.scales),
        3: _vector(builder, np.int64, quantisation.zero_points),
    }
    return _table(builder, 7, {6: ("Int32", quantisation.axis)}, fields)


def _operator(builder: Builder, op: TfOp, code_index: int) -> int:
    scalars: dict[int, Scalar] = {}
    vectors: dict[int, int] = {}
    for number, option in op.options.items():
        if isinstance(option[0], str):
            scalars[number] = (option[0], option[1])
        else:
            vectors[number] = _vector(builder, np.int32, [int(item) for item in option])
    kind = OP_CODES[op.code].options
    options = {4: _table(builder, 1 + max(op.options, default=-1), scalars, vectors)} if kind else {}
    fields = {1: _vector(builder, np.int32, op.inputs), 2: _vector(builder, np.int32, op.outputs), **options}
    return _table(builder, 5, {0: ("Uint32", code_index), 3: ("Uint8", kind)}, fields)


def _op_code(builder: Builder, code: OpCode, int8: bool) -> int:
    version = code.int8_version if int8 else code.version
    # The deprecated field 0 holds the number too while it fits in a byte; version 1 is the schema's default.
    scalars: dict[int, Scalar] = {0: ("Int8", min(code.builtin, _LARGEST_BYTE)), 3: ("Int32", code.builtin)}
    if version != 1:
        scalars[2] = ("Int32", version)
    return _table(builder, 4, scalars, {})


def _buffers(builder: Builder, data: Sequence[NDArray[np.generic]]) -> list[int]:
    empty = _table(builder, 1, {}, {})
    return [empty, *(_table(builder, 1, {}, {0: _data(builder, array)}) for array in data)]


def _data(builder: Builder, array: NDArray[np.generic]) -> int:
    """Write a byte vector at the alignment that kernels rely on; return its offset."""
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    builder.StartVector(1, raw.size, DATA_ALIGNMENT)
    builder.head = builder.head - raw.size
    builder.Bytes[builder.head : builder.head + raw.size] = raw.data
    return int(builder.EndVector())


def _vector(builder: Builder, dtype: type[np.generic], items: Sequence[int] | NDArray[np.generic]) -> int:
    return int(builder.CreateNumpyVector(np.asarray(items, dtype)))


def _offsets(builder: Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _table(builder: Builder, slots: int, scalars: Mapping[int, Scalar], offsets: Mapping[int, int]) -> int:
    """Write a table with its scalar and offset fields by number; return its offset."""
    builder.StartObject(slots)
    for number, offset in offsets.items():
        builder.PrependUOffsetTRelativeSlot(number, offset, 0)
    for number, (kind, value) in scalars.items():
        getattr(builder, f"Prepend{kind}Slot")(number, value, 0)
    return int(builder.EndObject())
