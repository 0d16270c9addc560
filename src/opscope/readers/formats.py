"""Which format a model file has: content decides, not the suffix."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ..core.errors import ModelError, os_reason, printable

HEAD_BYTES = 4096  # of a file, that decide
TFLITE_IDENTIFIER = b"TFL3"  # of every TensorFlow Lite flatbuffer, behind the offset of its root
MLIR_MAGIC = b"ML\xefR"  # of MLIR bytecode

_STARTS_AS_TEXT = re.compile(rb"\s*[#!/\"a-z]")  # as MLIR does, and protocol buffers of a model do not
# ONNX has the producer's name in field 2; other models that are protocol buffers have a message there, whose first
# field is one of length and bytes.
_MESSAGE_IN_FIELD_2 = re.compile(rb"\x08[\s\S]\x12[\x80-\xff]*[\x00-\x7f]\n")
_CONTROL = bytes(sorted(set(range(32)) - set(b"\t\n\f\r")))


class ModelFormat(Enum):
    """A format that a Graph is read from; the value is its usual suffix."""

    ONNX = ".onnx"
    TFLITE = ".tflite"
    MLIR = ".mlir"


def format_of(head: bytes, size: int, suffix: str) -> ModelFormat | None:
    """The format of a file of `size` bytes that starts with `head`; None: it is no model that can be read."""
    if head[4:8] == TFLITE_IDENTIFIER:
        return ModelFormat.TFLITE
    # Two stages, so that the MLIR modules load only for a file that may be MLIR.
    if head[:4] == MLIR_MAGIC or suffix == ".mlir" or _STARTS_AS_TEXT.match(head):
        from .mlir import looks_like_mlir
        from .unsupported import unsupported

        if looks_like_mlir(head, suffix if unsupported(head) is None else ""):
            return ModelFormat.MLIR
    from .onnx import looks_like_onnx

    return ModelFormat.ONNX if looks_like_onnx(head, size) and not _MESSAGE_IN_FIELD_2.match(head) else None


def is_text(head: bytes) -> bool:
    """Whether a file that starts with `head` is text, as far as that shows."""
    return bool(head) and head.translate(None, _CONTROL) == head


class Head(NamedTuple):
    """What a file begins with."""

    start: bytes
    size: int  # of the whole file


def head_of(path: Path) -> Head:
    """Read where a file begins."""
    try:
        with path.open("rb") as file:
            return Head(file.read(HEAD_BYTES), path.stat().st_size)
    except OSError as error:
        raise ModelError(str(path), "", f"cannot be read ({os_reason(error)}); expected a model file") from error


def listed(names: list[str], most: int = 5) -> str:
    """Names for a message: the first few."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(printable(name, 60) for name in names[:most]) + more
