"""PyTorch module → Graph, through torch.export and torch's own ONNX exporter.

    module, example inputs ─torch.export─▶ ExportedProgram ─torch.onnx─▶ ONNX without weights ─▶ Graph

Weights are never looked at, so that a module on `meta` is read like any other; where a runtime needs a file,
`write_onnx` writes one with them. torch itself is imported in this folder alone, and when a model of it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ...graph.graph import Graph
from .export import for_inference, quiet, structure, write_onnx
from .model import TorchModel, call_key, is_exporting, is_torch, torch_model
from .sources import load, name_of

__all__ = [
    "TorchModel",
    "call_key",
    "for_inference",
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
