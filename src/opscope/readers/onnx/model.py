"""Dataclasses for ONNX's messages: the output of `parse`, refined by the later stages.

Weights stay in the file. A `Constant` keeps its shape, its size and its byte range, and its elements only if they are
few integers (a Reshape target, axes, a trip count).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import NamedTuple

from ...graph.graph import DType

Dims = tuple[int | str | None, ...]  # an extent, a symbol's name, or neither

MICROSOFT = "com.microsoft"
WEIGHTS_KEY, RANDOM = "opscope.weights", "random"  # metadata of a file whose weights are nobody's
MAX_ELEMENTS = 1024  # constants and lists beyond this are weights, not structure


class Element(IntEnum):
    """TensorProto.DataType."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10


DTYPES: Mapping[int, DType] = {
    1: DType.F32,
    2: DType.U8,
    3: DType.I8,
    4: DType.U16,
    5: DType.I16,
    6: DType.I32,
    7: DType.I64,
    8: DType.STRING,
    9: DType.BOOL,
    10: DType.F16,
    11: DType.F64,
    12: DType.U32,
    13: DType.U64,
    14: DType.C64,
    15: DType.C128,
    16: DType.BF16,
    17: DType.F8E4M3,
    18: DType.F8E4M3,  # FNUZ: same width, other special values
    19: DType.F8E5M2,
    20: DType.F8E5M2,
    21: DType.U4,
    22: DType.I4,
    23: DType.F4E2M1,
    24: DType.F8E8M0,
    25: DType.U2,
    26: DType.I2,
}


# Type names of ONNX Runtime → TensorProto.DataType.
RUNTIME_TYPES: Mapping[str, int] = {
    "float": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "string": 8,
    "bool": 9,
    "float16": 10,
    "double": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
}


def dtype_of(element: int) -> DType:
    """Return the DType of a TensorProto.DataType number, UNKNOWN if it is new."""
    return DTYPES.get(element, DType.UNKNOWN)


def packed_bytes(dims: Sequence[int], element: int) -> int:
    """Return the bytes of a dense tensor; sub-byte types are packed without padding between elements."""
    return (prod(dims) * dtype_of(element).bits + 7) // 8


class Constant(NamedTuple):
    """A TensorProto: an initializer, or the value of a Constant node."""

    name: str
    dims: tuple[int, ...]
    element: int
    stored_bytes: int | None
    start: int = 0  # its bytes in the file; start == end: made by the reader
    end: int = 0
    integers: tuple[int, ...] | None = None
    content: bytes = b""  # raw_data of one made by the reader


class Value(NamedTuple):
    """A ValueInfoProto. `dims` is None where the rank is unknown or the value is no tensor."""

    name: str
    element: int = 0
    dims: Dims | None = None
    is_tensor: bool = True
    start: int = 0  # its TypeProto in the file
    end: int = 0
    because: str = ""  # why its shape is unknown
    stored_bytes: int | None = None  # of a sequence: all its elements

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The dims if all of them are numbers, else None."""
        if self.dims is None:
            return None
        numbers = tuple(dim for dim in self.dims if isinstance(dim, int))
        return numbers if len(numbers) == len(self.dims) else None

    @property
    def is_complete(self) -> bool:
        """Whether type and shape are known, so that shape inference has nothing to add."""
        return not self.is_tensor or (self.element != 0 and self.shape is not None)


class Reference(NamedTuple):
    """A value inside a function body that refers to an attribute of the calling node."""

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """A GraphProto: the model's graph, or the body of a control-flow node."""

    name: str = ""
    nodes: Sequence[Node] = ()
    constants: Mapping[str, Constant] = field(default_factory=dict)
    inputs: Sequence[Value] = ()
    outputs: Sequence[Value] = ()
    values: Mapping[str, Value] = field(default_factory=dict)  # value_info, inputs and outputs, by name
    trips: int | None = None  # how often it runs per run of its node, once that is worked out


Content = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Constant | Body | Reference | None


class Argument(NamedTuple):
    """An AttributeProto: its value, and its bytes in the file (start == end: made by the reader)."""

    value: Content
    start: int = 0
    end: int = 0


class Node(NamedTuple):
    """A NodeProto."""

    op_type: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    arguments: Mapping[str, Argument]
    location: str
    overload: str = ""
    module: str = ""  # that the node was exported from, where the exporter says so
    frame: str = ""  # of the Python code that called for it, as `file:line`

    @property
    def label(self) -> str:
        return self.name or f"{self.op_type} at {self.location}"

    def bodies(self) -> Iterator[tuple[str, Body]]:
        for name, argument in self.arguments.items():
            if isinstance(argument.value, Body):
                yield name, argument.value

    def integer(self, name: str, default: int) -> int:
        value = self.value(name)
        return value if isinstance(value, int) else default

    def text(self, name: str, default: str) -> str:
        value = self.value(name)
        return value if isinstance(value, str) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        value = self.value(name)
        if not isinstance(value, tuple) or isinstance(value, Constant | Reference):
            return None
        return tuple(item for item in value if isinstance(item, int))

    def value(self, name: str) -> Content:
        argument = self.arguments.get(name)
        return None if argument is None else argument.value


def map_bodies(node: Node, change: Callable[[Body], Body]) -> Node:
    """Return the node with `change` applied to each of its subgraphs."""
    if not node.arguments:
        return node
    bodies = {name: Argument(change(body)) for name, body in node.bodies()}
    return node._replace(arguments={**node.arguments, **bodies}) if bodies else node


@dataclass(frozen=True, slots=True)
class Function:
    """A FunctionProto: an operator defined by the model itself."""

    name: str
    domain: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    defaults: Mapping[str, Argument]
    nodes: Sequence[Node]
    opsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Model:
    """A ModelProto."""

    body: Body
    opsets: Mapping[str, int]  # domain → version; the default domain is ""
    functions: Mapping[tuple[str, str, str], Function]  # by domain, name, overload
    ir_version: int
    details: Mapping[str, str]
