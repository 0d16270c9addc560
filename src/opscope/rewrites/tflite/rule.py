"""The form of a rule for TensorFlow Lite models, the graph that rules look at, and what they are written with.

A rule looks at one operator of a graph and says what of the graph it would replace, and by what:

    def rule(op: Op, graph: Graph) -> Match | None

It changes nothing itself. Tables of options are shared between copies of a model: a rule makes new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert import schema_py_generated as schema

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
TYPES: Mapping[int, np.dtype[Any]] = {  # of tensors whose elements rules look at
    schema.TensorType.FLOAT32: np.dtype("<f4"),
    schema.TensorType.FLOAT16: np.dtype("<f2"),
    schema.TensorType.INT32: np.dtype("<i4"),
    schema.TensorType.INT64: np.dtype("<i8"),
    schema.TensorType.INT16: np.dtype("<i2"),
    schema.TensorType.INT8: np.dtype("i1"),
    schema.TensorType.UINT8: np.dtype("u1"),
    schema.TensorType.BOOL: np.dtype("?"),
}
FLOAT, INT8 = schema.TensorType.FLOAT32, schema.TensorType.INT8
NO_ACTIVATION, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
SAME, VALID = 0, 1
# Versions of operators that rules make, in float and in integers: those that converters write.
_VERSIONS = {"CONV_2D": (2, 3), "DEPTHWISE_CONV_2D": (2, 3), "FULLY_CONNECTED": (5, 5), "TRANSPOSE": (1, 2)}
_VERSIONS |= dict.fromkeys(
    ("STRIDED_SLICE", "SPLIT", "SPACE_TO_DEPTH", "MEAN", "AVERAGE_POOL_2D", "SLICE", "CONCATENATION"), (1, 2)
)


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor of a graph; `table` is the schema's, less what stands here."""

    name: str
    table: schema.TensorT
    data: Array | None = None  # bytes of a constant

    @property
    def dtype(self) -> int:
        return int(self.table.type)


@dataclass(eq=False, slots=True)
class Op:
    """An operator; `table` is the schema's, less what stands here."""

    kind: str  # name in the schema, or of a custom operator
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    table: schema.OperatorT
    code: schema.OperatorCodeT
    intermediates: list[Tensor | None] = field(default_factory=list)

    @property
    def options(self) -> Any:
        return self.table.builtinOptions

    @property
    def name(self) -> str:
        return self.outputs[0].name if self.outputs and self.outputs[0].name else self.kind


@dataclass(eq=False, slots=True)
class Graph:
    """A subgraph: operators in the order in which they run, and who writes and reads each tensor."""

    inputs: list[Tensor | None]
    outputs: list[Tensor | None]
    ops: list[Op]
    tensors: list[Tensor]  # of the file, in its order
    table: schema.SubGraphT
    kept: frozenset[Tensor] = frozenset()  # tensors that a signature names
    _writers: dict[Tensor, Op] = field(default_factory=dict)
    _readers: dict[Tensor, list[Op]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for op in self.ops:
            self._enter(op)

    def _enter(self, op: Op) -> None:
        for tensor in op.outputs:
            self._writers[tensor] = op
        for each in op.inputs:
            if each is not None:
                self._readers.setdefault(each, []).append(op)

    def insert(self, before: Op, made: Sequence[Op]) -> None:
        place = self.ops.index(before)
        self.ops[place:place] = made
        for op in made:
            self._enter(op)

    def remove(self, op: Op) -> None:
        self.ops.remove(op)
        for tensor in op.outputs:
            if self._writers.get(tensor) is op:
                del self._writers[tensor]
        for each in op.inputs:
            if each is not None:
                self._readers[each].remove(op)

    def read_instead(self, old: Tensor, new: Tensor) -> None:
        """Let operators read another tensor."""
        for op in dict.fromkeys(self._readers.pop(old, [])):
            op.inputs = [new if each is old else each for each in op.inputs]
            self._readers.setdefault(new, []).extend(op for each in op.inputs if each is new)

    def write_instead(self, old: Tensor, new: Tensor) -> None:
        """Let the operator that writes a tensor write another one, and readers read that."""
        writer = self._writers.pop(old)
        writer.outputs = [new if each is old else each for each in writer.outputs]
        self._writers[new] = writer
        self.read_instead(old, new)

    def writer(self, tensor: Tensor | None, *kinds: str) -> Op | None:
        """The operator that writes a tensor, if it is one of these; with no kinds, whatever it is."""
        op = None if tensor is None else self._writers.get(tensor)
        return op if op is not None and (not kinds or op.kind in kinds) else None

    def readers(self, tensor: Tensor) -> Sequence[Op]:
        return self._readers.get(tensor, ())

    def is_port(self, tensor: Tensor) -> bool:
        """Whether a tensor is an input or output of the graph, or named by a signature."""
        return tensor in self.inputs or self.is_result(tensor)

    def is_result(self, tensor: Tensor) -> bool:
        return tensor in self.outputs or tensor in self.kept

    def only_reader(self, tensor: Tensor, *kinds: str) -> Op | None:
        """The one operator that reads a tensor, if there is no other and it is one of these."""
        readers = self.readers(tensor)
        if len(readers) != 1 or self.is_result(tensor):
            return None
        return readers[0] if not kinds or readers[0].kind in kinds else None

    def is_needed(self, op: Op) -> bool:
        """Whether something reads what an operator writes, or it does more than write."""
        return not op.outputs or any(self.readers(each) or self.is_result(each) for each in op.outputs)


@dataclass(slots=True)
class Maker:
    """Makes the operators and constants of a replacement."""

    ops: list[Op] = field(default_factory=list)
    constants: list[Tensor] = field(default_factory=list)

    def op(
        self,
        kind: str,
        *inputs: Tensor | None,
        like: Tensor,
        shape: Sequence[int] | None = None,
        options: object = None,
    ) -> Tensor:
        """Add an operator with one result, of type and quantisation `like` a tensor's, and of its shape if not given.

        An extent of -1 is open in the file, and 1 until somebody says otherwise.
        """
        result = shaped(like, shape)
        self.ops.append(_operator(kind, inputs, [result], options))
        return result

    def parts(
        self, kind: str, *inputs: Tensor | None, like: Tensor, shapes: Sequence[Shape], options: object = None
    ) -> list[Tensor]:
        """Add an operator with a result for each of the shapes."""
        results = [shaped(like, shape) for shape in shapes]
        self.ops.append(_operator(kind, inputs, results, options))
        return results

    def constant(self, values: Array | Sequence[int], like: Tensor | None = None, name: str = "constant") -> Tensor:
        """Add a constant, quantised `like` a tensor where one is given; a list becomes int32."""
        array = np.asarray(values, np.int32) if not isinstance(values, np.ndarray) else values
        table = schema.TensorT() if like is None else copy(like.table)
        table.type = next(number for number, dtype in TYPES.items() if dtype == array.dtype)
        table.shape, table.shapeSignature, table.hasRank = np.asarray(array.shape, np.int32), None, True
        tensor = Tensor(name, table, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        self.constants.append(tensor)
        return tensor


def shaped(like: Tensor, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor like another, of another shape where one is given; it has no name yet."""
    table = copy(like.table)
    if shape is not None:
        table.shape = np.asarray([max(extent, 1) if extent < 0 else extent for extent in shape], np.int32)
        table.shapeSignature = np.asarray(shape, np.int32) if min(shape, default=0) < 0 else None
        table.hasRank = True
    return Tensor("", table)


def _operator(kind: str, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor], options: object) -> Op:
    table, code = schema.OperatorT(), schema.OperatorCodeT()
    if options is not None:
        table.builtinOptions = options
        table.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
    code.builtinCode = getattr(schema.BuiltinOperator, kind)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)  # the largest that one byte holds stands for all after it
    code.version = _VERSIONS.get(kind, (1, 1))[outputs[0].dtype != FLOAT]
    return Op(kind, list(inputs), list(outputs), table, code)


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern that was found, and what to put in its place."""

    pattern: Sequence[Op]  # operators that go, the anchor first; one whose result is still read by others stays
    build: Callable[[Maker], Mapping[Tensor, Tensor]]  # tensor of the pattern → what is read instead
    group: str = ""  # what sites that look alike have in common; empty: types and shapes of the pattern


Rule = Callable[[Op, Graph], Match | None]


def options(name: str, **values: object) -> object:
    """A table of options of the schema: `options("Pool2DOptions", strideW=2)`."""
    table = getattr(schema, f"{name}T")()
    for key, value in values.items():
        setattr(table, key, value)
    return table


def with_options(op: Op, **values: object) -> object:
    """The options of an operator, with some changed."""
    table = copy(op.options)
    for key, value in values.items():
        setattr(table, key, value)
    return table


def extents(tensor: Tensor | None) -> Shape | None:
    """The shape of a tensor, -1 where it is open; None where the file does not give it."""
    if tensor is None or (tensor.table.shape is None and not tensor.table.hasRank):
        return None
    signature = tensor.table.shapeSignature
    given = tensor.table.shape if signature is None or not len(signature) else signature
    return () if given is None else tuple(int(extent) for extent in given)


def shape_of(tensor: Tensor | None) -> Shape | None:
    """The shape of a tensor where all of it is fixed."""
    shape = extents(tensor)
    return None if shape is None or min(shape, default=0) < 0 else shape


def array_of(tensor: Tensor | None) -> Array | None:
    """The elements of a constant, where they are stored plainly."""
    if tensor is None or tensor.data is None or tensor.table.isVariable or tensor.table.sparsity is not None:
        return None
    dtype, shape = TYPES.get(tensor.dtype), shape_of(tensor)
    if dtype is None or shape is None or tensor.data.size != dtype.itemsize * int(np.prod(shape)):
        return None
    return np.frombuffer(tensor.data, dtype).reshape(shape)


def numbers_of(tensor: Tensor | None) -> list[int] | None:
    """A constant list of whole numbers: axes, a shape, where to cut."""
    array = array_of(tensor)
    return None if array is None or array.dtype.kind not in "iu" else [int(each) for each in array.ravel()]


@dataclass(frozen=True, slots=True)
class Scale:
    """How integers stand for numbers."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int


def scale_of(tensor: Tensor) -> Scale | None:
    """The quantisation of a tensor; None where it has none."""
    table = tensor.table.quantization
    if table is None or table.scale is None or not len(table.scale):
        return None
    zeros = () if table.zeroPoint is None else tuple(int(zero) for zero in table.zeroPoint)
    return Scale(
        tuple(float(scale) for scale in table.scale), zeros or (0,) * len(table.scale), table.quantizedDimension
    )


def is_alike(one: Tensor, other: Tensor) -> bool:
    """Whether the same bytes mean the same in two tensors, whatever their shapes: one scale at the most."""
    scales = scale_of(one), scale_of(other)
    return one.dtype == other.dtype and scales[0] == scales[1] and (scales[0] is None or len(scales[0].scales) == 1)


def is_float(*tensors: Tensor | None) -> bool:
    return all(tensor is None or tensor.dtype == FLOAT for tensor in tensors)


def activation(op: Op) -> int:
    """The activation within an operator."""
    return int(getattr(op.options, "fusedActivationFunction", NO_ACTIVATION))
