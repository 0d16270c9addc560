"""Writes an ONNX file as a stream: the graph first, then one initialiser after another, chunk by chunk.

Protocol buffers allow the fields of a message in any order, so the tensors need not be in memory together: `onnx`
serialises everything except the tensors' bytes, and this module adds those with their framing. If the tensors exceed
`external_above` bytes, they are stored in `<file>.data` next to the model instead (protocol buffers end at 2 GB).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..core.errors import UsageError
from ..core.files import replacing
from ..core.protobuf import BYTES, tag, varint
from .network import Progress

if TYPE_CHECKING:
    import onnx

PRODUCER = "opscope zoo"  # written near the start of every model, before the graph
INLINE_BELOW = 1024  # bytes; shapes and scalars always stay in the graph, as `onnx.save` keeps them
ALIGNMENT = 4096  # of each tensor in the data file, so that it can be mapped

# Field numbers and wire type from onnx.proto: ModelProto.graph, GraphProto.initializer, TensorProto.raw_data.
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_HEAD = 64  # bytes that hold the producer's name


@dataclass(frozen=True, slots=True)
class Stored:
    """An initialiser: its type and shape, and a function that generates its data."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    chunks: Callable[[], Iterable[NDArray[np.generic]]]

    @property
    def size_bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


class _Meter:
    """Reports the number of weight bytes written so far."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count: int) -> None:
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


def write(
    model: onnx.ModelProto,
    tensors: Sequence[Stored],
    path: Path,
    *,
    weights: bool,
    external_above: int,
    progress: Progress | None,
) -> None:
    """Write `model`, which has no initialisers yet, with `tensors` as its initialisers."""
    external = not weights or sum(tensor.size_bytes for tensor in tensors) > external_above
    outside = [tensor for tensor in tensors if external and tensor.size_bytes > INLINE_BELOW]
    inside = [tensor for tensor in tensors if not external or tensor.size_bytes <= INLINE_BELOW]
    written = tensors if weights else inside
    meter = _Meter(sum(tensor.size_bytes for tensor in written), progress)
    data_path = path.with_name(path.name + ".data")
    is_stale = not weights and bool(outside) and _is_stale(data_path, path)
    with ExitStack() as files:
        out = files.enter_context(
            replacing(path)
        )  # entered first, so renamed last: the data file exists before the model
        model.graph.initializer.extend(_declarations(outside, data_path.name))
        _write_model(out, model, inside, meter)
        if weights and outside:
            _write_data(files.enter_context(replacing(data_path)), outside, meter)
    if is_stale:
        data_path.unlink(missing_ok=True)


def _is_stale(data_path: Path, path: Path) -> bool:
    """Whether a data file of an earlier zoo model exists at `data_path`; a foreign file there is an error.

    A model without weights at `path` would otherwise refer to it.
    """
    if not data_path.exists():
        return False
    if not _declares(path, data_path.name.encode()):
        raise UsageError(
            f"{data_path}: was not written by `opscope zoo`, and a model without weights would refer to it as its own; "
            f"expected no such file, or another output than {path.name}"
        )
    return True


def _declares(path: Path, location: bytes) -> bool:
    """Whether `path` is a model of the zoo that stores its weights in `location`."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        is_ours = content.find(PRODUCER.encode(), 0, _HEAD) >= 0
        return is_ours and content.find(varint(len(location)) + location) >= 0


def _declarations(tensors: Iterable[Stored], location: str) -> Iterator[onnx.TensorProto]:
    import onnx

    for tensor, offset in _with_offsets(tensors):
        header = _header(tensor)
        header.data_location = onnx.TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", str(offset)), ("length", str(tensor.size_bytes))):
            header.external_data.add(key=key, value=text)
        yield header


def _with_offsets(tensors: Iterable[Stored]) -> Iterator[tuple[Stored, int]]:
    """Yield each tensor with its offset in the data file."""
    offset = 0
    for tensor in tensors:
        yield tensor, offset
        offset += -(-tensor.size_bytes // ALIGNMENT) * ALIGNMENT


def _write_data(out: BinaryIO, tensors: Iterable[Stored], meter: _Meter) -> None:
    for tensor, offset in _with_offsets(tensors):
        out.write(bytes(offset - out.tell()))
        _write_chunks(out, tensor, meter)


def _write_model(out: BinaryIO, model: onnx.ModelProto, tensors: Iterable[Stored], meter: _Meter) -> None:
    """Write the model: all fields but the graph, then the graph with the initialisers appended."""
    graph = model.graph.SerializeToString(deterministic=True)
    rest = type(model)()
    rest.CopyFrom(model)
    rest.ClearField("graph")
    framed = [(tensor, _frame(tensor)) for tensor in tensors]
    # The length prefix of the graph comes before its bytes, so all sizes must be known before any data are generated.
    length = len(graph) + sum(len(frame) + tensor.size_bytes for tensor, frame in framed)
    out.write(rest.SerializeToString(deterministic=True))
    out.write(tag(_GRAPH, BYTES) + varint(length) + graph)
    for tensor, frame in framed:
        out.write(frame)
        _write_chunks(out, tensor, meter)


def _frame(tensor: Stored) -> bytes:
    """Return everything of an initialiser except its raw data, which follows."""
    header: bytes = _header(tensor).SerializeToString(deterministic=True)
    header += tag(_RAW_DATA, BYTES) + varint(tensor.size_bytes)
    return tag(_INITIALIZER, BYTES) + varint(len(header) + tensor.size_bytes) + header


def _header(tensor: Stored) -> onnx.TensorProto:
    import onnx

    kind = onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
    return onnx.TensorProto(name=tensor.name, data_type=kind, dims=tensor.shape)


def _write_chunks(out: BinaryIO, tensor: Stored, meter: _Meter) -> None:
    for chunk in tensor.chunks():
        out.write(np.ascontiguousarray(chunk, tensor.dtype).data)
        meter.add(chunk.nbytes)
