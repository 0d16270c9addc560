"""Model file → Graph. Content decides the format, not the suffix; a packed model is unpacked first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import ModelError, UsageError, printable
from ..graph.graph import Graph
from .containers import ZIP_MAGIC, head_if_file, is_torch, is_torch_model, member_names, unpacked, unpacked_file
from .formats import Head, ModelFormat, format_of, head_of, is_text, listed

if TYPE_CHECKING:
    from .torch import TorchModel

__all__ = [
    "ModelFormat",
    "given_format",
    "graph_of",
    "is_model",
    "is_torch_model",
    "model_format",
    "read_model",
    "unpacked",
]


def read_model(
    path: Path,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    shapes_from_run: str | Path | None = None,
    folds: bool = True,
) -> Graph:
    """Read a model of any known format.

    `shapes` and `batch` fill in dimensions that the file leaves open. With `shapes_from_run`, the model runs once in
    its reference runtime on inputs that are "random" or those of an .npz file, and tells the shapes that data decide.
    Ops that constants alone decide are left out, unless `folds` is False: what a runtime may run is then all there.
    """
    head = head_if_file(path)
    if is_torch(path, head):
        from .torch import load

        return _read_module(load(path), shapes, batch, shapes_from_run, folds=folds)
    with unpacked_file(path, head) as (file, known):
        graph = _read(file, known, shapes or {}, batch, shapes_from_run, folds=folds)
    return graph if file == path else replace(graph, source=str(path))


def given_format(path: Path | TorchModel) -> ModelFormat:
    """The format of a model as readers and runtimes get it: of a packed one, of what is inside."""
    head = head_if_file(path) if isinstance(path, Path) else None
    if not isinstance(path, Path) or is_torch(path, head):
        return ModelFormat.ONNX  # without the export that makes it
    with unpacked_file(path, head) as (file, known):
        return model_format(file, known)


def is_model(path: Path) -> bool:
    """Whether this is a file, or a name that stands for a model; what it holds is not looked at."""
    return path.is_file() or is_torch_model(path)


def model_format(path: Path, known: Head | None = None) -> ModelFormat:
    """The format of a model that is not packed; any other file is an error that says what it is.

    Args:
        known: where the file begins, if that has been read.
    """
    if known is None and path.is_dir():
        raise _refused_folder(path)
    head, size = known or head_of(path)
    found = format_of(head, size, path.suffix)
    if found is None:
        raise _refused(path, head)
    return found


def graph_of(
    model: Path | Graph | TorchModel,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    shapes_from_run: str | Path | None = None,
) -> Graph:
    """The graph of a model file or a module, or the one that is in memory already; that one has its shapes."""
    if not isinstance(model, Path | Graph):
        return _read_module(model, shapes, batch, shapes_from_run)
    if not isinstance(model, Graph):
        return read_model(model, shapes=shapes, batch=batch, shapes_from_run=shapes_from_run)
    if shapes or batch is not None or shapes_from_run is not None:
        raise UsageError(f"{printable(model.name)}: is read already; expected shapes and batch where it is read")
    return model


def _read_module(
    model: TorchModel,
    shapes: Mapping[str, tuple[int, ...]] | None,
    batch: int | None,
    shapes_from_run: str | Path | None,
    *,
    folds: bool = True,
) -> Graph:
    from .torch import read_torch

    if shapes_from_run is not None:
        raise UsageError(f"--shapes-from-run: {model} is of PyTorch; expected ONNX or TensorFlow Lite")
    return read_torch(model, shapes=shapes, batch=batch, folds=folds)


def _read(
    path: Path,
    head: Head | None,
    shapes: Mapping[str, tuple[int, ...]],
    batch: int | None,
    shapes_from_run: str | Path | None,
    *,
    folds: bool,
) -> Graph:
    found = model_format(path, head)
    if found is ModelFormat.TFLITE:
        from .tflite import read_tflite

        return read_tflite(path, shapes=shapes, batch=batch, shapes_from_run=shapes_from_run)
    if found is ModelFormat.MLIR:
        from .mlir import read_mlir

        if shapes_from_run is not None:
            raise UsageError(f"--shapes-from-run: {path} is MLIR; expected ONNX or TensorFlow Lite")
        return read_mlir(path, shapes=shapes, batch=batch)
    from .onnx import read_onnx

    return read_onnx(path, shapes=shapes, batch=batch, shapes_from_run=shapes_from_run, folds=folds)


def _refused(path: Path, head: bytes) -> ModelError:
    """What a file is that is no model, and what to give instead."""
    from .unsupported import unsupported, unsupported_archive

    if head[:4] in ZIP_MAGIC:
        names = member_names(path)
        found = unsupported_archive(names)
        what = f"a zip archive without a model ({listed(names) or 'it is empty'})"
    else:
        found = unsupported(head)
        what = "a text file" if is_text(head) else f"not a model; it starts with the bytes {head[:8].hex(' ')}"
    if not head:
        what = "the file is empty"
    if found is not None:
        return ModelError(str(path), "", f"{found.what}; expected {found.expected}")
    return ModelError(str(path), "byte 0x0", f"{what}; expected ONNX, TensorFlow Lite, MLIR or PyTorch (.pt2)")


def _refused_folder(path: Path) -> ModelError:
    from itertools import islice

    from .unsupported import unsupported_folder

    try:
        found = unsupported_folder(place.name for place in islice(path.iterdir(), 1000))
    except OSError:  # not ours to look into
        found = None
    if found is not None:
        return ModelError(str(path), "", f"{found.what}; expected {found.expected}")
    return ModelError(str(path), "", "a folder; expected a model file")
