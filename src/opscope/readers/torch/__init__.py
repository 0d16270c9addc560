"""PyTorch module → Graph, through torch.export and torch's own ONNX exporter.

    module, example inputs ─torch.export─▶ ExportedProgram ─torch.onnx─▶ ONNX without weights ─▶ Graph

Weights are never looked at, so that a module on `meta` is read like any other; where a runtime needs a file,
`write_onnx` writes one with them. torch itself is imported in this folder alone, and when a model of it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ...graph.graph import Graph
from .export import for_inference, quiet, structure, write_onnx
from .model import TorchModel, call_key, is_exporting, is_torch, torch_model
from .sources import load, name_of

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.nn import Module

__all__ = [
    "TorchModel",
    "call_key",
    "for_inference",
    "given_model",
    "is_exporting",
    "is_torch",
    "load",
    "name_of",
    "quiet",
    "read_torch",
    "torch_model",
    "write_onnx",
]

FRAMEWORK = "PyTorch"


def given_model(
    model: str | Path | Graph | Module | ExportedProgram, example_inputs: object, dynamic_shapes: object
) -> Path | Graph | TorchModel:
    """A module with what torch.export is called with; a file or a graph as it is, and without these."""
    if is_torch(model):
        return torch_model(model, example_inputs, dynamic_shapes=dynamic_shapes)
    if example_inputs is not None or dynamic_shapes is not None:
        raise UsageError(f"{model}: example inputs are for a module of PyTorch; expected them with one, or none")
    return Path(model) if isinstance(model, str) else model


def read_torch(
    model: TorchModel,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    folds: bool = True,
) -> Graph:
    """Read a module or an exported program.

    `shapes` and `batch` make other example inputs of those that the model has, and fill in dimensions that are dynamic.
    """
    from ..onnx import read_onnx_content

    given = model.with_shapes(shapes or {}, batch)
    content = structure(given)
    graph = read_onnx_content(content, Path(given.source), shapes=shapes or {}, batch=batch, folds=folds)
    return replace(
        graph, name=given.name, framework=FRAMEWORK, file_bytes=given.file_bytes, notes=(*given.notes, *graph.notes)
    )
