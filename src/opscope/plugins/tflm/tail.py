"""The tail of the arena: what the runtime and its kernels keep from one inference to the next.

It grows from the end of the arena towards its start, in the order in which the interpreter allocates
(micro_interpreter.cc, micro_allocator.cc at 90b983c2): allocator and planner; tables of tensors and operators; options
of operators; what kernels keep at their start and when they prepare; handles of scratch buffers; variables; the
tensors that the application sees. Each piece is aligned, kernels' to 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ...graph.graph import ABSENT, DType
from ...readers.tflite.details import placed_offsets
from ...readers.tflite.model import StoredTensor
from . import cmsis, espnn, layouts
from .arena import ALIGNMENT, Arena
from .cmsis import Core
from .espnn import Chip
from .layouts import Size
from .nodes import INT, ModelFile, Node, dtype, elements, extent, extents, tensor_bytes
from .scratch import reference


class Part(StrEnum):
    """What bytes of the tail are for; the runtime's own recorder has most of these words."""

    ALLOCATOR = "allocator and planner"
    TENSORS = "TfLiteEvalTensor data"
    NODES = "NodeAndRegistration structs"
    OPTIONS = "options of operators"
    KERNELS = "persistent buffers of kernels"
    SCRATCH_HANDLES = "scratch buffer handles"
    VARIABLES = "variable tensors"
    RESOURCES = "resource variables"
    PORTS = "TfLiteTensor data of inputs and outputs"
    QUANTIZATION = "quantisation data of inputs and outputs"


@dataclass(frozen=True, slots=True)
class Build:
    """How the runtime was built: what its structures and kernels take."""

    pointer: int = 4  # bytes
    core: Core | None = None  # kernels of CMSIS-NN for it
    chip: Chip | None = None  # kernels of ESP-NN for it; neither: the reference kernels
    is_package: bool = False  # the Python package: an allocator that counts, and kernels that can unpack weights

    def options(self, node: Node) -> layouts.Options | None:
        known = layouts.OPTIONS.get(node.type)
        return layouts.PACKAGE_OPTIONS.get(node.type, known) if self.is_package else known

    def at_init(self, node: Node) -> Size | None:
        """What a kernel keeps whatever its types."""
        known = layouts.AT_INIT.get(node.type)
        if self.core is not None:
            return layouts.CMSIS_AT_INIT.get(node.type, known)
        if self.chip is not None:
            return layouts.ESP_NN_AT_INIT.get(node.type, known)
        return layouts.COMPRESSION_AT_INIT.get(node.type, known) if self.is_package else known

    def scratch(self, node: Node) -> Sequence[int]:
        if self.chip is not None:
            return espnn.scratch(node, self.chip)
        return reference(node, self.pointer) if self.core is None else cmsis.scratch(node, self.core)


PACKAGE = Build(pointer=8, is_package=True)


@dataclass(slots=True)
class _Tail:
    """The end of the arena lies at 0, which is aligned; bytes used so far, in all and by part."""

    used: int = 0
    parts: dict[Part, int] = field(default_factory=dict)

    def take(self, part: Part, size: int, alignment: int = ALIGNMENT) -> None:
        before = self.used
        self.used = -(-(self.used + size) // alignment) * alignment
        self.parts[part] = self.parts.get(part, 0) + self.used - before


def tail(file: ModelFile, arena: Arena, build: Build) -> Mapping[Part, int]:
    """Bytes of each part."""
    found = _Tail()
    pointer = build.pointer

    def structure(part: Part, size: Size, count: int = 1) -> None:
        found.take(part, size.bytes(pointer) * count, pointer)

    recorded = (layouts.RECORDING_ARENA_ALLOCATOR, layouts.PLANNER, layouts.RECORDING_ALLOCATOR)
    plain = (layouts.ARENA_ALLOCATOR, layouts.PLANNER, layouts.ALLOCATOR)
    for size in (*(recorded if build.is_package else plain), layouts.BUILTIN_ALLOCATOR):
        structure(Part.ALLOCATOR, size)
    handles = _resources(file)
    if handles:
        found.take(Part.RESOURCES, layouts.RESOURCES.bytes(pointer))
        found.take(Part.RESOURCES, layouts.RESOURCE.bytes(pointer) * len(set(handles.values())))
    record = layouts.SUBGRAPH.bytes(pointer) + layouts.COMPRESSED_TENSORS.bytes(pointer) * build.is_package
    found.take(Part.ALLOCATOR, record * len(file.subgraphs), pointer)
    for subgraph in file.subgraphs:
        structure(Part.TENSORS, layouts.EVAL_TENSOR, len(subgraph.tensors))
    for subgraph in file.subgraphs:
        structure(Part.NODES, layouts.NODE, len(subgraph.operators))
    nodes = [node for subgraph in file.subgraphs for node in file.nodes(subgraph)]
    for options in filter(None, map(build.options, nodes)):
        alignment = 1 if options.size.bytes(pointer) < INT else min(options.alignment, pointer)
        found.take(Part.OPTIONS, options.size.bytes(pointer), alignment)
    for kept in filter(None, map(build.at_init, nodes)):
        found.take(Part.KERNELS, kept.bytes(pointer))
    for node in nodes:
        for size_bytes in _at_prepare(node, build):
            found.take(Part.KERNELS, size_bytes)
    for size_bytes in _assigned(nodes, handles):
        found.take(Part.RESOURCES, size_bytes)
    requests = sum(buffer.owner.is_scratch for buffer in arena.buffers)
    if requests:
        structure(Part.SCRATCH_HANDLES, layouts.POINTER, requests)
    for size_bytes in _variables(file):
        found.take(Part.VARIABLES, size_bytes)
    _ports(file, found, pointer)
    return found.parts


def unknown_operators(file: ModelFile) -> frozenset[str]:
    """Custom operators whose kernels keep what nothing is known of."""
    types = {operator.code.type for subgraph in file.subgraphs for operator in subgraph.operators}
    return frozenset(kind for kind in types if kind.startswith("CUSTOM:") and kind not in layouts.AT_INIT)


def _resources(file: ModelFile) -> Mapping[tuple[int, int], str]:
    """(subgraph, tensor) of every handle of a resource variable → its name. The application makes room for as many."""
    found = {}
    for subgraph in file.subgraphs:
        for operator in subgraph.operators:
            if operator.code.type == "VAR_HANDLE":
                options = operator.options
                name = "" if options is None else f"{options.string(0)}/{options.string(1)}"
                found.update({(subgraph.index, tensor): name for tensor in operator.outputs})
    return found


def _assigned(nodes: Sequence[Node], handles: Mapping[tuple[int, int], str]) -> Iterator[int]:
    """A variable has the size of what is first assigned to it by a handle of the same subgraph."""
    seen: set[str] = set()
    for node in nodes:
        handle = node.stored.inputs[0] if node.stored.inputs else ABSENT
        name = handles.get((node.subgraph.index, handle))
        if node.type == "ASSIGN_VARIABLE" and name is not None and name not in seen:
            seen.add(name)
            yield tensor_bytes(node.input(1))


def _variables(file: ModelFile) -> Iterator[int]:
    placed = placed_offsets(file.model)
    for subgraph in file.subgraphs:
        for number, tensor in enumerate(subgraph.tensors):
            if tensor.is_variable and number not in placed:
                yield tensor_bytes(tensor)


def _ports(file: ModelFile, found: _Tail, pointer: int) -> None:
    """The application's view of inputs and outputs: a list of pointers, then a tensor and its quantisation each."""
    first = file.subgraphs[0]
    for ports in (first.inputs, first.outputs):
        found.take(Part.KERNELS, layouts.POINTER.bytes(pointer) * len(ports))
        for number in ports:
            found.take(Part.PORTS, layouts.TENSOR.bytes(pointer), pointer)
            scales = file.scales(0, number)
            if scales:
                found.take(Part.QUANTIZATION, layouts.AFFINE_QUANTIZATION.bytes(pointer), pointer)
                found.take(Part.QUANTIZATION, INT * (1 + scales), INT)


def _at_prepare(node: Node, build: Build) -> Iterator[int]:
    """What a kernel keeps beside its fixed structure, by types and shapes."""
    data, result, weights, pointer = node.input(0), node.output(), node.input(1), build.pointer
    if build.core is not None:
        yield from cmsis.kernel_sums(node, build.core)
    if build.core is not None and dtype(data) is DType.F32 and node.type in {"CONV_2D", "DEPTHWISE_CONV_2D"}:
        return  # CMSIS-NN keeps scales for whole numbers alone
    if node.type in _PER_CHANNEL:
        yield from (INT * extent(weights, _PER_CHANNEL[node.type]),) * 2
    elif node.type == "FULLY_CONNECTED" and node.scales(1) > 1:
        yield from (INT * node.scales(1),) * 2
    elif node.type == "SOFTMAX" and dtype(data) is DType.I16:
        yield from (layouts.LOOKUP_TABLE_BYTES,) * 2
    elif node.type in _FOR_INT8 and dtype(result) is DType.I8:
        yield _FOR_INT8[node.type].bytes(pointer)
    elif node.type == "BATCH_MATMUL":
        yield from _batch_matmul(node, pointer)
    elif node.type == "EMBEDDING_LOOKUP":
        yield _shape(result)
        yield layouts.EMBEDDING_LOOKUP.bytes(pointer)
    elif node.type in _COPIES_SHAPE or (node.type == "RESHAPE" and -1 in (extents(result) or ())):
        yield _shape(result)


def _batch_matmul(node: Node, pointer: int) -> Iterator[int]:
    """Quantisation, and room for each operand that is turned round before use: its record, shape and data."""
    adjoint_left, adjoint_right = node.choice(0), node.choice(1)
    if dtype(node.input(0)) in {DType.I8, DType.I16}:
        yield layouts.MATMUL_QUANTIZATION.bytes(pointer)
    turned = [node.input(0)] * bool(adjoint_left) + [node.input(1)] * (not adjoint_right)
    for operand in turned:
        yield from (layouts.EVAL_TENSOR.bytes(pointer), _shape(operand), elements(operand) * dtype(operand).bits // 8)
    yield _shape(node.output())


def _shape(tensor: StoredTensor | None) -> int:
    return INT * (1 + len(extents(tensor)))


_PER_CHANNEL = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "TRANSPOSE_CONV": 0}  # axis of the weights
_FOR_INT8 = {"ADD_N": layouts.ADD_N, "CUMSUM": layouts.CUMSUM, "LOG_SOFTMAX": layouts.LOG_SOFTMAX}
_COPIES_SHAPE = frozenset({"DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "GATHER", "GATHER_ND", "L2_POOL_2D"})
