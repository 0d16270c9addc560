"""An operator of a TensorFlow Lite file as a kernel sees it while it prepares: operands, options, quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ...graph.graph import ABSENT, DType
from ...readers.tflite.flatbuffer import INT8, INT32, Table
from ...readers.tflite.model import StoredModel, StoredTensor, Subgraph
from ...readers.tflite.schema import OperatorField, QuantizationField, SubgraphField, TensorField

INT = 4  # bytes of a C int, and of an int32 and a float
_LONGEST_OPTIONS = 1 << 16


class ModelFile:
    """A file and what kernels ask of it beyond the tables that every reader needs; each vector is read once."""

    def __init__(self, model: StoredModel) -> None:
        self.model = model
        self._positions: dict[tuple[int, int], list[int]] = {}
        self._scales: dict[tuple[int, int], int] = {}

    @property
    def subgraphs(self) -> list[Subgraph]:
        return [self.model.subgraph(index) for index in range(len(self.model.subgraph_tables))]

    def nodes(self, subgraph: Subgraph) -> list[Node]:
        return [Node(self, subgraph, number) for number in range(len(subgraph.operators))]

    def table(self, subgraph: int, field: int, number: int) -> Table:
        """The table of a tensor or an operator."""
        key = (subgraph, field)
        if key not in self._positions:
            self._positions[key] = self.model.subgraph_tables[subgraph].table_positions(field)
        return self.model.file.table(self._positions[key][number])

    def scales(self, subgraph: int, tensor: int) -> int:
        """How many scales of a tensor the runtime keeps: none unless there are zero points too."""
        key = (subgraph, tensor)
        if key not in self._scales:
            found = self.table(subgraph, SubgraphField.TENSORS, tensor).table(TensorField.QUANTIZATION)
            has_both = found is not None and bool(found.int64s(QuantizationField.ZERO_POINT))
            self._scales[key] = len(found.int32s(QuantizationField.SCALE)) if found is not None and has_both else 0
        return self._scales[key]


class Node:
    """One operator of one subgraph."""

    __slots__ = ("file", "number", "stored", "subgraph", "type")

    def __init__(self, file: ModelFile, subgraph: Subgraph, number: int) -> None:
        self.file, self.subgraph, self.number = file, subgraph, number
        self.stored = subgraph.operators[number]
        self.type = self.stored.code.type

    def input(self, place: int) -> StoredTensor | None:
        return self._tensor(self.stored.inputs, place)

    def output(self, place: int = 0) -> StoredTensor | None:
        return self._tensor(self.stored.outputs, place)

    def _tensor(self, numbers: tuple[int, ...], place: int) -> StoredTensor | None:
        number = numbers[place] if place < len(numbers) else ABSENT
        return None if number == ABSENT else self.subgraph.tensors[number]

    def option(self, field: int, default: int = 0) -> int:
        """A number of 32 bits among its options."""
        return default if self.stored.options is None else self.stored.options.number(field, INT32, default)

    def choice(self, field: int) -> int:
        """An enumeration or a flag among its options."""
        return 0 if self.stored.options is None else self.stored.options.number(field, INT8)

    def scales(self, place: int) -> int:
        """How many scales an input has: none where it is not quantised, one, or one per channel."""
        number = self.stored.inputs[place] if place < len(self.stored.inputs) else ABSENT
        return 0 if number == ABSENT else self.file.scales(self.subgraph.index, number)

    def custom_options(self) -> Mapping[str, int]:
        """Whole numbers and flags in the options of a custom operator, a FlexBuffer; those that cannot be read miss."""
        from flatbuffers import flexbuffers

        table = self.file.table(self.subgraph.index, SubgraphField.OPERATORS, self.number)
        start, size = table.span(OperatorField.CUSTOM_OPTIONS)
        if not 0 < size <= _LONGEST_OPTIONS:
            return {}
        try:
            found = flexbuffers.Loads(bytes(table.file.bytes[start : start + size]))
        except Exception:  # the library names no errors: it raises what its arithmetic on foreign bytes happens to
            return {}
        pairs = found.items() if isinstance(found, dict) else ()
        return {key: int(value) for key, value in pairs if isinstance(value, int)}


def extents(tensor: StoredTensor | None) -> tuple[int, ...]:
    """The shape as the runtime has it; nothing for an operand that is left out."""
    return () if tensor is None or tensor.shape is None else tensor.shape


def extent(tensor: StoredTensor | None, axis: int) -> int:
    """One extent, 1 where the tensor has no such axis."""
    shape = extents(tensor)
    return shape[axis] if -len(shape) <= axis < len(shape) else 1


def elements(tensor: StoredTensor | None) -> int:
    return prod(extents(tensor))


def dtype(tensor: StoredTensor | None) -> DType:
    return DType.UNKNOWN if tensor is None else tensor.dtype


def tensor_bytes(tensor: StoredTensor | None) -> int:
    """As the runtime counts them: it takes the stored shape, and a missing one for a scalar."""
    return (elements(tensor) * dtype(tensor).bits + 7) // 8
