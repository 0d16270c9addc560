"""ONNX model file → Graph.

    bytes ─parse─▶ Model ─inline, lift, order─▶ Model ─extents, shapes─▶ Model ─build─▶ Graph

The file is memory-mapped and the weights are never touched, so memory use depends on the graph's structure only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import MappingProxyType

from ...core.errors import ModelError, printable
from ...core.units import Bytes
from ...graph.graph import Graph, Note, Role
from ..observed import Observed, RunInputs
from .build import Builder, Scope
from .extents import graph_inputs, with_extents
from .functions import inline_functions
from .model import RANDOM, WEIGHTS_KEY, Body, Model, dtype_of
from .order import lift_constants, order_nodes
from .origin import Lines
from .parse import parse_model
from .shapes import resolve_shapes
from .shapes.interpret import used_names
from .wire import Wire

_NO_SHAPES: Mapping[str, tuple[int, ...]] = MappingProxyType({})

_VARINT_FIELDS = {1, 5}  # ModelProto: ir_version, model_version
_LENGTH_FIELDS = {2, 3, 4, 6, 7, 8, 14, 20, 25, 26}


def looks_like_onnx(head: bytes, size: int) -> bool:
    """Whether a file of `size` bytes that starts with `head` could be an ONNX model.

    Protobuf has no magic number, so the test is that every field found in `head` is a field of ModelProto.
    """
    # The zeros let a varint at the end of `head` be read without running past the buffer.
    wire = Wire(head + bytes(10), "")
    position, seen = 0, 0
    try:
        while position < min(len(head), size):
            tag, position = wire.varint(position, len(head))
            value, position = wire.varint(position, len(head))
            number, wire_type = tag >> 3, tag & 7
            if number not in (_VARINT_FIELDS if wire_type == 0 else _LENGTH_FIELDS if wire_type == 2 else ()):
                return False
            position += value if wire_type == 2 else 0
            if position > size:
                return seen > 1  # cut short: say so when it is read, not that it is no model
            seen += 1
    except ModelError:
        return seen > 0  # the head ends inside a field's tag or length
    return seen > 0


def read_onnx(
    path: Path,
    *,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    batch: int | None = None,
    shapes_from_run: str | Path | None = None,
    folds: bool = True,
) -> Graph:
    """Read an ONNX model.

    Args:
        path: the model file; external data beside it is not opened.
        shapes: shapes of graph inputs, by name, in place of what the model says; or the size of a dimension that the
            model names, as in {"height": (320,)}.
        batch: first extent of every graph input whose first extent is not a number, and of every input whose first
            extent is the same number as the first input's. Inputs in `shapes` are left as given there. A batch that
            stays open is 1.
        shapes_from_run: run the model once in ONNX Runtime, on inputs that are "random" or those of an .npz file, and
            take the shapes that its tensors had, the branches that were taken and the trips of loops.
        folds: leave out ops that constants and shapes alone decide, as runtimes do before the first inference.

    Raises:
        ModelError: the file breaks the format, or says too little about its inputs' shapes.
    """
    source = str(path)
    try:
        if path.exists() and not path.is_file():
            raise ModelError(source, "", "is not a file; expected an ONNX model")
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size == 0:
                raise ModelError(source, "", "is empty; expected an ONNX model")
            with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
                inputs = RunInputs.of(shapes_from_run)
                return _Reader(path, Wire(content, source), size, folds).read(shapes, batch, inputs)
    except OSError as error:
        raise ModelError(source, "", f"cannot be read: {error.strerror or error}") from error


def read_onnx_content(
    content: bytes,
    path: Path,
    *,
    shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES,
    batch: int | None = None,
    folds: bool = True,
) -> Graph:
    """Read an ONNX model that is in memory, as `read_onnx` does; `path` is what messages and the graph call it."""
    return _Reader(path, Wire(content, str(path)), len(content), folds).read(shapes, batch, None)


class _Reader:
    """Runs the stages of the reader over one mapped file, or its bytes."""

    def __init__(self, path: Path, wire: Wire, size: int, folds: bool) -> None:
        self.path = path
        self.wire = wire
        self.size = size
        self.folds = folds

    def read(self, shapes: Mapping[str, tuple[int, ...]], batch: int | None, run: RunInputs | None) -> Graph:
        source = self.wire.source
        if run is not None:
            shapes = {**run.shapes, **shapes}
        model = inline_functions(parse_model(self.wire, 0, self.size), source)
        body = order_nodes(lift_constants(model.body), source)
        body, notes = with_extents(body, source, shapes, batch, lambda tried: self.runs(replace(model, body=tried)))
        observed: Observed = {}
        if run is not None:
            observed = self.observe(body, run)
            notes = (*notes, run.note("shapes, branches and trips of loops", "ONNX Runtime"))
        are_given = bool(shapes or notes) or batch is not None
        model = resolve_shapes(
            replace(model, body=body), self.wire, are_given=are_given, observed=observed, folds=self.folds
        )
        return self.graph(model, notes)

    def runs(self, model: Model) -> bool:
        """Whether no operator refuses the shapes that follow from those of the inputs."""
        try:
            resolve_shapes(model, self.wire, are_given=True, folds=False)
        except ModelError:
            return False
        return True

    def observe(self, body: Body, run: RunInputs) -> Observed:
        from .observe import observe

        ports = [(value.name, dtype_of(value.element).label, value.shape or ()) for value in graph_inputs(body)]
        return observe(self.path, run.arrays(ports, self.wire.source))

    def graph(self, model: Model, notes: tuple[Note, ...]) -> Graph:
        builder, scope = Builder(model.opsets, Lines.of_nodes(model.body.nodes)), Scope({})
        builder.add_body(model.body, scope, Role.INPUT)
        return Graph(
            name=self.path.stem,
            source=self.wire.source,
            framework="ONNX",
            ops=builder.ops,
            tensors=builder.tensors,
            inputs=tuple(scope.ids[value.name] for value in graph_inputs(model.body)),
            outputs=tuple(scope.ids[value.name] for value in model.body.outputs),
            file_bytes=Bytes(self.size),
            notes=(*notes, *builder.notes(), *_unknown_shapes(model, builder), *_calibration(model)),
            quantize_ops_annotate=True,  # the QDQ convention: a pair marks its neighbours as quantised
            details=_details(model),
        )


def _unknown_shapes(model: Model, builder: Builder) -> Iterator[Note]:
    """Yield one note that counts the used tensors without a static shape, if there are any."""
    used = set(used_names(model.body))
    tensors = builder.tensors
    unknown = [
        (tensors[number], op.name)
        for op in builder.ops
        for number in op.outputs
        if tensors[number].bytes is None and tensors[number].name in used
    ]
    if unknown:
        tensor, op_name = unknown[0]
        first = f"{len(unknown)} tensor(s), first {printable(tensor.name)!r} ({tensor.unknown_because})"
        text = f"no fixed shape is known for {first}; their size is unknown"
        yield Note("unknown-shape", text, op_name)


def _calibration(model: Model) -> Iterator[Note]:
    """Yield notes on a quantised copy whose ranges are those of random data, and on weights that are random."""
    if model.details.get(f"metadata {WEIGHTS_KEY}") == RANDOM:
        yield Note(
            "random-weights", "weights are random: outputs mean nothing, and a compiler may pack real ones better"
        )
    if model.details.get("metadata opscope.calibration") == "random":
        precision = printable(model.details.get("metadata opscope.precision", "quantised"))
        yield Note("random-calibration", f"a copy in {precision} that was calibrated with random data: speed alone")


def _details(model: Model) -> dict[str, str]:
    opsets = ", ".join(f"{printable(domain) or 'ai.onnx'} {version}" for domain, version in model.opsets.items())
    return {"opset": opsets, "ir_version": str(model.ir_version), **model.details}
