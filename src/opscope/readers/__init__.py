"""Model file → Graph. Content decides the format, not the suffix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..core.errors import ModelError, UsageError, printable
from ..graph.graph import Graph

TFLITE_IDENTIFIER = b"TFL3"  # of every TensorFlow Lite flatbuffer, behind the offset of its root

MLIR_MAGIC = b"ML\xefR"  # of MLIR bytecode

_HEAD_BYTES = 4096
_STARTS_AS_TEXT = re.compile(rb"\s*[#!/\"a-z]")  # as MLIR does, and protocol buffers of a model do not


def read_model(path: Path, *, shapes: Mapping[str, tuple[int, ...]] | None = None, batch: int | None = None) -> Graph:
    """Read a model of any known format. `shapes` and `batch` fill in dimensions that the file leaves open."""
    head, size = _head(path)
    if head[4:8] == TFLITE_IDENTIFIER:
        from .tflite import read_tflite

        return read_tflite(path, shapes=shapes or {}, batch=batch)
    # Two stages, so that the MLIR modules load only for a file that may be MLIR.
    if head[:4] == MLIR_MAGIC or path.suffix == ".mlir" or _STARTS_AS_TEXT.match(head):
        from .mlir import looks_like_mlir, read_mlir

        if looks_like_mlir(head, path.suffix):
            return read_mlir(path, shapes=shapes or {}, batch=batch)
    from .onnx import looks_like_onnx, read_onnx

    if looks_like_onnx(head, size):
        return read_onnx(path, shapes=shapes or {}, batch=batch)
    looks = f"it starts with the bytes {head[:8].hex(' ')}" if head else "the file is empty"
    raise ModelError(str(path), "byte 0x0", f"not a model; {looks}; expected ONNX, TensorFlow Lite or MLIR")


def graph_of(
    model: Path | Graph, *, shapes: Mapping[str, tuple[int, ...]] | None = None, batch: int | None = None
) -> Graph:
    """The graph of a model file, or the one that is in memory already; that one has its shapes."""
    if not isinstance(model, Graph):
        return read_model(model, shapes=shapes, batch=batch)
    if shapes or batch is not None:
        raise UsageError(f"{printable(model.name)}: is read already; expected shapes and batch where it is read")
    return model


def _head(path: Path) -> tuple[bytes, int]:
    """Return the file's first bytes and its size."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        return head, path.stat().st_size
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelError(str(path), "", f"cannot be read ({reason}); expected a model file") from error
