"""TensorFlow Lite files as graphs of objects, and back: nothing of the file is lost that still has a meaning."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from ...core.errors import ModelError
from ...core.files import replacing
from ...options import Shapes
from ...readers.tflite import HEAD_BYTES, looks_like_tflite
from ...readers.tflite.details import signature_inputs
from ...readers.tflite.flatbuffer import Flatbuffer
from ...readers.tflite.model import StoredModel
from ...readers.tflite.shapes import infer_shapes, input_shapes
from .rule import Array, Graph, Op, Tensor

Item = TypeVar("Item")
_ALIGNMENT = 16  # of constants, as the schema asks for
_NAMES = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
# Metadata that speak of tensors and operators by their numbers, which change with the graph.
_BY_NUMBER = (b"OfflineMemoryAllocation", b"model_control_dependencies")


@dataclass(slots=True)
class Model:
    """A file: its graphs, and the rest of its tables as they are."""

    graphs: list[Graph]
    table: schema.ModelT
    signatures: list[tuple[schema.SignatureDefT, list[Tensor], list[Tensor]]]
    metadata: list[tuple[schema.MetadataT, Array | None]]
    attached: bytes  # an archive behind the model: labels, vocabularies
    is_changed: bool = False


class _Buffer(schema.BufferT):  # type: ignore[misc]
    """A buffer that is written where kernels can read it."""

    def Pack(self, builder: flatbuffers.Builder) -> int:  # noqa: N802
        if self.data is not None:
            builder.StartVector(1, self.data.size, _ALIGNMENT)
            builder.head = builder.head - self.data.size
            builder.Bytes[builder.head : builder.head + self.data.size] = self.data.data
            data = builder.EndVector()
        schema.BufferStart(builder)
        if self.data is not None:
            schema.BufferAddData(builder, data)
        return int(schema.BufferEnd(builder))


def read(path: Path, shapes: Shapes | None = None) -> Model:
    """The graphs of a file, and all else that is in it; with shapes of inputs, what follows from them is set."""
    content, stored = _checked(path)
    try:
        table = schema.ModelT.InitFromPackedBuf(content)
        buffers = [_bytes(buffer) for buffer in table.buffers or []]
        graphs = [_graph(subgraph, table, buffers) for subgraph in table.subgraphs]
        signatures = [_signature(entry, graphs) for entry in table.signatureDefs or []]
        metadata = [(entry, buffers[entry.buffer]) for entry in table.metadata or []]
    except Exception as error:  # the classes raise whatever a broken table leads to
        problem = f"cannot be changed ({type(error).__name__}: {error}); expected a TensorFlow Lite model"
        raise ModelError(str(path), "", problem) from error
    if any(buffer.offset > 1 for buffer in table.buffers or []) or table.externalBuffers:
        raise ModelError(str(path), "", "constants lie outside its tables; expected a file of less than 2 GB")
    if shapes:
        _set_shapes(graphs[0], stored, shapes)
    for number, graph in enumerate(graphs):
        named = (each for entry, *ends in signatures if entry.subgraphIndex == number for end in ends for each in end)
        graph.kept = frozenset(named)
    return Model(graphs, table, signatures, metadata, _attached(content))


def _checked(path: Path) -> tuple[bytes, StoredModel]:
    """The bytes of a file, and its tables by our own reader: the schema's classes trust every number."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(str(path), "", f"cannot be read: {error.strerror or error}") from error
    if not looks_like_tflite(content[:HEAD_BYTES]):
        raise ModelError(str(path), "byte 0x4", "not a TensorFlow Lite file; expected one to change")
    stored = StoredModel(Flatbuffer(content, str(path)))
    for number in range(len(stored.subgraph_tables)):
        stored.subgraph(number)
    return content, stored


def _set_shapes(graph: Graph, stored: StoredModel, shapes: Shapes) -> None:
    """Fix the shapes of a graph, as they follow from those of its inputs."""
    names = signature_inputs(stored)
    given = input_shapes(stored.subgraph(0), shapes, None, aliases=names, source=stored.file.source)
    frame, _ = infer_shapes(stored, given, {})
    for tensor, shape in zip(graph.tensors, () if frame is None else frame.shapes, strict=False):
        if shape is not None:
            tensor.table.shape, tensor.table.shapeSignature = np.asarray(shape, np.int32), None


def _bytes(buffer: schema.BufferT) -> Array | None:
    return np.asarray(buffer.data, np.uint8) if buffer.data is not None and len(buffer.data) else None


def _graph(subgraph: schema.SubGraphT, model: schema.ModelT, buffers: Sequence[Array | None]) -> Graph:
    tensors = [Tensor(_text(table.name), table, buffers[table.buffer]) for table in _all(subgraph.tensors)]

    def named(numbers: Sequence[int] | None) -> list[Tensor | None]:
        return [tensors[number] if number >= 0 else None for number in _all(numbers)]

    ops = []
    for table in _all(subgraph.operators):
        code = model.operatorCodes[table.opcodeIndex]
        number = max(code.builtinCode, code.deprecatedBuiltinCode)
        kind = _text(code.customCode) if code.customCode else _NAMES.get(number, str(number))
        outputs = [each for each in named(table.outputs) if each is not None]
        ops.append(Op(kind, named(table.inputs), outputs, table, code, named(table.intermediates)))
    return Graph(named(subgraph.inputs), named(subgraph.outputs), ops, tensors, subgraph)


def _signature(
    entry: schema.SignatureDefT, graphs: Sequence[Graph]
) -> tuple[schema.SignatureDefT, list[Tensor], list[Tensor]]:
    tensors = graphs[entry.subgraphIndex].tensors
    inputs, outputs = ([tensors[pair.tensorIndex] for pair in _all(ends)] for ends in (entry.inputs, entry.outputs))
    return entry, inputs, outputs


def _attached(content: bytes) -> bytes:
    """The archive that packs of metadata append to a file."""
    if not zipfile.is_zipfile(BytesIO(content)):
        return b""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            return content[min((entry.header_offset for entry in archive.infolist()), default=len(content)) :]
    except zipfile.BadZipFile:  # weights that look like one
        return b""


def duplicate(model: Model) -> Model:
    """The model once more; constants and tables of options are shared."""
    new = {tensor: copy(tensor) for graph in model.graphs for tensor in _tensors_of(graph)}

    def moved(tensors: Sequence[Tensor | None]) -> list[Tensor | None]:
        return [None if each is None else new[each] for each in tensors]

    graphs = []
    for graph in model.graphs:
        ops = [
            Op(
                op.kind,
                moved(op.inputs),
                [new[each] for each in op.outputs],
                op.table,
                op.code,
                moved(op.intermediates),
            )
            for op in graph.ops
        ]
        tensors, kept = [new[each] for each in graph.tensors], frozenset(new[each] for each in graph.kept)
        graphs.append(Graph(moved(graph.inputs), moved(graph.outputs), ops, tensors, graph.table, kept))
    signatures = [(entry, [new[each] for each in i], [new[each] for each in o]) for entry, i, o in model.signatures]
    return Model(graphs, model.table, signatures, model.metadata, model.attached, model.is_changed)


def _tensors_of(graph: Graph) -> list[Tensor]:
    """The tensors that are in use: those of the file in its order, then those that are new."""
    used = dict.fromkeys([*graph.inputs, *graph.outputs, *graph.kept])
    for op in graph.ops:
        used.update(dict.fromkeys([*op.inputs, *op.outputs, *op.intermediates]))
    known = set(graph.tensors)
    return [*graph.tensors, *(each for each in used if each is not None and each not in known)]


def used_tensors(graph: Graph) -> list[Tensor]:
    used: set[Tensor | None] = {*graph.inputs, *graph.outputs, *graph.kept}
    for op in graph.ops:
        used.update((*op.inputs, *op.outputs, *op.intermediates))
    return [tensor for tensor in _tensors_of(graph) if tensor in used]


def write(model: Model, path: Path) -> None:
    """Write a model, whole or not at all; a model that was not changed keeps tensors that nothing reads."""
    content = _packed(model)
    with replacing(path) as out:
        out.write(content)
        if model.attached:
            out.write(model.attached)


def _packed(model: Model) -> bytes:
    table = copy(model.table)
    buffers: dict[int, int] = {}  # of what lies in memory → number in the file
    table.buffers, table.operatorCodes, table.subgraphs = [_Buffer()], [], []
    codes: dict[tuple[int, bytes | None, int], int] = {}

    def buffer(data: Array | None) -> int:
        if data is None:
            return 0
        if id(data) not in buffers:
            buffers[id(data)] = len(table.buffers)
            table.buffers.append(_Buffer(data))
        return buffers[id(data)]

    def code(op: Op) -> int:
        key = (max(op.code.builtinCode, op.code.deprecatedBuiltinCode), op.code.customCode, op.code.version)
        if key not in codes:
            codes[key] = len(table.operatorCodes)
            table.operatorCodes.append(op.code)
        return codes[key]

    places: dict[Tensor, int] = {}
    for graph in model.graphs:
        tensors = used_tensors(graph) if model.is_changed else _tensors_of(graph)
        places |= {tensor: number for number, tensor in enumerate(tensors)}
        subgraph = copy(graph.table)
        subgraph.tensors = [_tensor_table(tensor, buffer(tensor.data)) for tensor in tensors]
        subgraph.operators = [_op_table(op, code(op), places) for op in graph.ops]
        subgraph.inputs, subgraph.outputs = (_numbers(ends, places) for ends in (graph.inputs, graph.outputs))
        table.subgraphs.append(subgraph)
    table.signatureDefs = [_signature_table(*entry, places) for entry in model.signatures] or None
    kept = [pair for pair in model.metadata if not (model.is_changed and pair[0].name in _BY_NUMBER)]
    table.metadata = [_metadata_table(entry, buffer(data)) for entry, data in kept] or None
    size = sum(each.data.size + 64 for each in table.buffers[1:])
    builder = flatbuffers.Builder(size + 1024)
    builder.Finish(table.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _tensor_table(tensor: Tensor, buffer: int) -> schema.TensorT:
    table = copy(tensor.table)
    table.name, table.buffer = tensor.name.encode(errors="surrogateescape"), buffer
    return table


def _op_table(op: Op, code: int, places: Mapping[Tensor, int]) -> schema.OperatorT:
    table = copy(op.table)
    table.opcodeIndex = code
    table.inputs, table.outputs = _numbers(op.inputs, places), _numbers(op.outputs, places)
    table.intermediates = _numbers(op.intermediates, places) if op.intermediates else None
    return table


def _signature_table(
    entry: schema.SignatureDefT, inputs: Sequence[Tensor], outputs: Sequence[Tensor], places: Mapping[Tensor, int]
) -> schema.SignatureDefT:
    table = copy(entry)
    table.inputs = [_pair(pair, places[each]) for pair, each in zip(_all(entry.inputs), inputs, strict=True)]
    table.outputs = [_pair(pair, places[each]) for pair, each in zip(_all(entry.outputs), outputs, strict=True)]
    return table


def _pair(pair: schema.TensorMapT, number: int) -> schema.TensorMapT:
    table = copy(pair)
    table.tensorIndex = number
    return table


def _metadata_table(entry: schema.MetadataT, buffer: int) -> schema.MetadataT:
    table = copy(entry)
    table.buffer = buffer
    return table


def _numbers(tensors: Sequence[Tensor | None], places: Mapping[Tensor, int]) -> Array:
    return np.asarray([-1 if each is None else places[each] for each in tensors], np.int32)


def _all(items: Sequence[Item] | None) -> Sequence[Item]:
    return () if items is None else items


def _text(name: bytes | str | None) -> str:
    return name.decode(errors="surrogateescape") if isinstance(name, bytes) else name or ""
