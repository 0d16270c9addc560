"""MLIR module → Graph: TOSA, linalg on tensors, and ONNX operators as torch-mlir represents them.

The parser is MLIR's own, from the Python bindings of the IREE compiler (the extra `[mlir]`). Constants stay in the
parser's memory: the reader takes their types, and the elements of small integer ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ModelError, printable
from ...graph.graph import Graph, Note
from .build import Builder
from .parse import BYTECODE_MAGIC, entry_function, parse_module
from .softmax import join_softmax

if TYPE_CHECKING:
    from iree.compiler import ir

_TEXT = re.compile(rb'\s*(?://[^\n]*\n\s*)*(?:module\b|"?builtin\.module\b|(?:func|util)\.func\b|[#!][\w.]+ *=)')
_CONTROL = frozenset(range(32)) - {9, 10, 12, 13}


def looks_like_mlir(head: bytes, suffix: str) -> bool:
    """Whether a file with this suffix that starts with `head` is MLIR, as bytecode or text."""
    if head[:4] == BYTECODE_MAGIC:
        return True
    return _TEXT.match(head) is not None or (suffix == ".mlir" and _CONTROL.isdisjoint(head))


def read_mlir(path: Path, *, shapes: Mapping[str, tuple[int, ...]] = {}, batch: int | None = None) -> Graph:
    """Read the entry function of an MLIR module: `main`, or the first public one.

    Args:
        path: the file, text or bytecode.
        shapes: shapes of inputs by name (`arg0`, …); the module's types fix them, so other shapes are refused.
        batch: the leading extent of the inputs; again, one that differs from the module's is refused.
    """
    module = parse_module(path)
    try:
        graph = _read(module, path)
    except (
        RuntimeError,
        UnicodeDecodeError,
    ) as error:  # the parser accepts names that are not UTF-8, but cannot return them
        raise ModelError(str(path), "", "holds a name that is not valid text; expected UTF-8") from error
    _check_shapes(graph, shapes, batch)
    return graph


def _read(module: ir.Module, path: Path) -> Graph:
    """Walk the entry function and assemble the Graph."""
    function, others = entry_function(module, str(path))
    builder = Builder(module, str(path))
    inputs, outputs = builder.run(function)
    return Graph(
        name=path.stem,
        source=str(path),
        framework="MLIR",
        ops=join_softmax(builder.ops, builder.tensors, outputs),
        tensors=builder.tensors,
        inputs=inputs,
        outputs=outputs,
        file_bytes=path.stat().st_size,
        quantize_ops_annotate="onnx" in builder.dialects,  # the QDQ convention is ONNX's
        notes=(*builder.notes(), *_note_other_functions(others)),
        details={"function": function.attributes["sym_name"].value, "dialects": ", ".join(sorted(builder.dialects))},
    )


def _note_other_functions(others: list[str]) -> tuple[Note, ...]:
    """Return a note that lists the public functions that are not read."""
    if not others:
        return ()
    names = ", ".join(printable(name, 40) for name in others[:5])
    return (Note("other-functions", f"{len(others)} more public function(s) are not looked at: {names}"),)


def _check_shapes(graph: Graph, shapes: Mapping[str, tuple[int, ...]], batch: int | None) -> None:
    """Refuse shapes or a batch that differ from the types of the inputs."""
    own = {graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs}
    for name, shape in shapes.items():
        if name not in own:
            listed = ", ".join(own)
            raise ModelError(graph.source, f"input {printable(name)}", f"there is none; expected one of {listed}")
        if own[name] != tuple(shape):
            found = "x".join(map(str, own[name] or ("?",)))
            raise ModelError(
                graph.source, f"input {name}", f"its type says {found}; expected a module of another shape"
            )
    batches = {shape[0] for shape in own.values() if shape}
    if batch is not None and batches != {batch}:
        found = ", ".join(map(str, sorted(batches))) or "none"
        raise ModelError(graph.source, f"batch {batch}", f"the types of the inputs say {found}; expected that one")
