"""The tables of a TensorFlow Lite file as stored: tensors, operators and the places of constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from struct import Struct
from typing import NamedTuple

from ...core.errors import ModelError, printable
from ...graph.graph import ABSENT, DType
from .flatbuffer import INT8, UINT8, UINT32, UINT64, Flatbuffer, Table
from .schema import (
    BUILTINS,
    COMPILED,
    CUSTOM,
    KNOWN_CUSTOM,
    OPTIONS,
    OPTIONS_2,
    TENSOR_TYPES,
    VERSION,
    BufferField,
    ExternalBufferField,
    ModelField,
    OperatorCodeField,
    OperatorField,
    SubgraphField,
    TensorField,
)

MAX_RANK = 64  # the runtime stops at 8; a longer shape is damage
MAX_TENSOR_ELEMENTS = 1 << 62

_INTEGERS = {DType.I64: ("q", 8), DType.I32: ("i", 4), DType.I16: ("h", 2), DType.I8: ("b", 1)}


# The three records below are tuples, not dataclasses: a large file has 1e5 of each, and they are made faster.


class Place(NamedTuple):
    """The byte range of a constant: in this file (0) or in a numbered external file."""

    file: int
    position: int
    size: int


NOWHERE = Place(0, 0, 0)


class StoredTensor(NamedTuple):
    """A tensor as stored. `signature` has -1 for each open extent; it is empty if none is open."""

    name: str
    shape: tuple[int, ...] | None
    dtype: DType
    signature: tuple[int, ...]
    data: Place
    is_variable: bool


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """The properties shared by all operators of one code."""

    type: str
    kind: str
    options_type: int = 0  # expected member of the options union; 0: options are not read
    options_type_field: int = OperatorField.OPTIONS_TYPE
    options_field: int = OperatorField.OPTIONS
    compiler: str = ""  # the compiler that produced it, if it is a compiled graph
    is_unknown: bool = False  # newer than the schema table


class StoredOperator(NamedTuple):
    """An operator as stored; operands are tensor numbers in its subgraph, or ABSENT."""

    code: OperatorCode
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """One subgraph as stored."""

    index: int
    tensors: tuple[StoredTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[StoredOperator, ...]


class StoredModel:
    """The tables of one file. Subgraphs and buffers are read on demand, each at most once."""

    def __init__(self, file: Flatbuffer) -> None:
        """Read the operator codes and the positions of subgraphs and buffers; check the schema version."""
        self.file = file
        self.root = file.root()
        version = self.root.number(ModelField.VERSION, UINT32)
        if version != VERSION:
            raise file.damage(self.root.position, f"schema version {version}; only version {VERSION} exists")
        self.codes = tuple(map(_operator_code, self.root.tables(ModelField.OPERATOR_CODES)))
        self.subgraph_tables = self.root.tables(ModelField.SUBGRAPHS)
        if not self.subgraph_tables:
            raise file.damage(self.root.position, "no subgraph: the file holds no model")
        self._buffer_positions = self.root.table_positions(ModelField.BUFFERS)
        self._buffers: dict[int, Place] = {0: NOWHERE}  # buffer 0 is empty by convention
        self._external = _external_buffers(self.root)
        self._subgraphs: dict[int, Subgraph] = {}
        self.unknown_types: set[int] = set()  # element types newer than the schema table

    def subgraph(self, index: int) -> Subgraph:
        known = self._subgraphs.get(index)
        if known is None:
            known = self._subgraphs[index] = self._read_subgraph(index)
        return known

    def bytes_at(self, place: Place, limit: int) -> bytes:
        """Return the first bytes of a constant; empty if it is in another file."""
        if place.file:
            return b""
        return self.file.bytes[place.position : place.position + min(place.size, limit)]

    def integers(self, tensor: StoredTensor, limit: int) -> tuple[int, ...] | None:
        """Return the elements of a constant of whole numbers; None for other tensors and for more than `limit`."""
        is_empty = tensor.shape is not None and 0 in tensor.shape
        if tensor.dtype not in _INTEGERS or tensor.data.file or not (tensor.data.size or is_empty):
            return None
        code, width = _INTEGERS[tensor.dtype]
        count = tensor.data.size // width
        if count > limit:
            return None
        return Struct(f"<{count}{code}").unpack(self.bytes_at(tensor.data, count * width))

    def buffer(self, index: int) -> Place:
        known = self._buffers.get(index)
        if known is None:
            known = self._buffers[index] = self._read_buffer(index)
        return known

    def _read_buffer(self, index: int) -> Place:
        count = len(self._buffer_positions)
        if index >= count:
            raise ModelError(self.file.source, f"buffer {index}", f"does not exist; the file has {count}")
        table = self.file.table(self._buffer_positions[index])
        offset = table.number(BufferField.OFFSET, UINT64)
        if offset > 1:  # 0 and 1 are placeholders; beyond, the data follow the flatbuffer, in files over 2 GB
            size = table.number(BufferField.SIZE, UINT64)
            if offset + size > self.file.size:
                end = f"the file ends at {self.file.size:#x}"
                raise self.file.damage(table.position, f"buffer {index}: {size} bytes at {offset:#x}; {end}")
            return Place(0, offset, size)
        position, size = table.span(BufferField.DATA)
        return Place(0, position, size) if size else NOWHERE

    def _read_subgraph(self, index: int) -> Subgraph:
        table = self.subgraph_tables[index]
        tables = table.tables(SubgraphField.TENSORS)
        stores_rank = any(tensor.flag(TensorField.HAS_RANK) for tensor in tables)
        tensors = tuple([self._read_tensor(tensor, stores_rank) for tensor in tables])
        operators = []
        for number, position in enumerate(table.table_positions(SubgraphField.OPERATORS)):
            operators.append(self._read_operator(self.file.table(position), index, number, len(tensors)))
        inputs = table.int32s(SubgraphField.INPUTS)
        outputs = table.int32s(SubgraphField.OUTPUTS)
        self._check_operands(inputs + outputs, len(tensors), f"subgraph {index}")
        return Subgraph(index, tensors, inputs, outputs, tuple(operators))

    def _read_tensor(self, table: Table, stores_rank: bool) -> StoredTensor:
        """Read one tensor; an element type that the schema table lacks becomes UNKNOWN."""
        code = table.number(TensorField.TYPE, INT8)
        if 0 <= code < len(TENSOR_TYPES):
            dtype = TENSOR_TYPES[code]
        else:
            dtype = DType.UNKNOWN
            self.unknown_types.add(code)
        data = self.buffer(table.number(TensorField.BUFFER, UINT32))
        if table.has(TensorField.EXTERNAL_BUFFER):
            data = self._external.get(table.number(TensorField.EXTERNAL_BUFFER, UINT32), data)
        shape = table.int32s(TensorField.SHAPE)
        return StoredTensor(
            table.string(TensorField.NAME),
            self._checked_shape(table, shape) if shape else _empty_shape(table, stores_rank, dtype, data),
            dtype,
            table.int32s(TensorField.SIGNATURE),
            data,
            table.flag(TensorField.IS_VARIABLE),
        )

    def _checked_shape(self, table: Table, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(shape) > MAX_RANK:
            raise self.file.damage(table.position, f"shape of rank {len(shape)}; expected at most {MAX_RANK}")
        if min(shape) < 0 or prod(shape) > MAX_TENSOR_ELEMENTS:
            name = printable(table.string(TensorField.NAME))
            expectation = f"expected extents from 0, and at most {MAX_TENSOR_ELEMENTS} elements"
            raise self.file.damage(table.position, f"tensor {name!r} has shape {list(shape)}; {expectation}")
        return shape

    def _read_operator(self, table: Table, subgraph: int, number: int, tensors: int) -> StoredOperator:
        """Read one operator; options of an unexpected type are ignored."""
        index = table.number(OperatorField.CODE, UINT32)
        if index >= len(self.codes):
            place = f"subgraph {subgraph} operator {number}"
            raise ModelError(
                self.file.source, place, f"operator code {index} does not exist; the file has {len(self.codes)}"
            )
        code = self.codes[index]
        inputs = table.int32s(OperatorField.INPUTS)
        outputs = table.int32s(OperatorField.OUTPUTS)
        if operands := inputs + outputs:
            self._check_operands(operands, tensors, f"subgraph {subgraph} operator {number}")
        options = None
        if code.options_type and table.number(code.options_type_field, UINT8) == code.options_type:
            options = table.table(code.options_field)
        return StoredOperator(code, inputs, outputs, options)

    def _check_operands(self, operands: tuple[int, ...], tensors: int, place: str) -> None:
        if operands and (max(operands) >= tensors or min(operands) < ABSENT):
            wrong = next(operand for operand in operands if not ABSENT <= operand < tensors)
            raise ModelError(self.file.source, place, f"tensor {wrong} does not exist; the subgraph has {tensors}")


def _empty_shape(table: Table, stores_rank: bool, dtype: DType, data: Place) -> tuple[int, ...] | None:
    """Return () for a scalar and None for an unknown shape, which old files store alike.

    Files without any `has_rank` mean a scalar by an empty shape, as the runtime reads it; a missing shape is unknown
    unless the data have the size of one element.
    """
    is_scalar = table.flag(TensorField.HAS_RANK) or (table.has(TensorField.SHAPE) and not stores_rank)
    return () if is_scalar or (data.size and data.size == dtype.bits // 8) else None


def _operator_code(table: Table) -> OperatorCode:
    """Return the type, kind and options union of an operator code."""
    # The one-byte field came first and is kept for old runtimes; it holds 127 where the code does not fit.
    code = max(
        table.number(OperatorCodeField.DEPRECATED_BUILTIN, INT8),
        table.int32(OperatorCodeField.BUILTIN),
    )
    if code == CUSTOM:
        return _custom_code(table.string(OperatorCodeField.CUSTOM))
    if code < 0:
        raise table.file.damage(table.position, f"operator code {code}; expected 0 or more")
    if code >= len(BUILTINS):
        return OperatorCode(f"BUILTIN_{code}", "custom", is_unknown=True)
    builtin = BUILTINS[code]
    if builtin.options in OPTIONS_2:
        member = OPTIONS_2[builtin.options]
        return OperatorCode(builtin.name, builtin.kind, member, OperatorField.OPTIONS_2_TYPE, OperatorField.OPTIONS_2)
    return OperatorCode(builtin.name, builtin.kind, OPTIONS.get(builtin.options, 0))


def _custom_code(name: str) -> OperatorCode:
    # LiteRT's dispatch delegate accepts any name that contains its own.
    compiler = COMPILED["DISPATCH_OP"] if "DISPATCH_OP" in name else COMPILED.get(name, "")
    kind = "compiled" if compiler else KNOWN_CUSTOM.get(name, "custom")
    return OperatorCode(f"CUSTOM:{printable(name)}", kind, compiler=compiler)


def _external_buffers(root: Table) -> dict[int, Place]:
    """Return the places of constants kept in other files, by buffer id. Those files are not opened."""
    places = {}
    for table in root.tables(ModelField.EXTERNAL_BUFFERS):
        group = table.number(ExternalBufferField.GROUP, UINT32)
        offset = table.number(ExternalBufferField.OFFSET, UINT64)
        length = table.number(ExternalBufferField.LENGTH, UINT64)
        if length > MAX_TENSOR_ELEMENTS:
            raise table.file.damage(table.position, f"external buffer of {length} bytes cannot be")
        places[table.number(ExternalBufferField.ID, UINT32)] = Place(group + 1, offset, length)
    return places
