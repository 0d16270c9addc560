"""Files of ONNX models: written whole, with weights beside them where one file cannot hold them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx_ir as ir

from ...core.errors import UsageError, os_reason
from ...core.files import sha256_of
from ..rewrite import RewriteContext, RewriteError

LARGEST_FILE = 1_900_000_000  # bytes of weights in one file; the format ends at 2 GB


def weight_bytes(model: ir.Model) -> int:
    return sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value)


def save(model: ir.Model, path: Path) -> None:
    """Write a model, whole or not at all; with a data file beside it where one file cannot hold the weights."""
    data = f"{path.name}.data" if weight_bytes(model) > LARGEST_FILE else None
    try:
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:100]}.") as folder:
            made = Path(folder) / path.name
            whole = ir.external_data.load_to_model(model) if data is None else model
            ir.save(whole, made, external_data=data)
            if data is not None:
                (Path(folder) / data).replace(path.with_name(data))
            made.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({os_reason(error)}); expected a writable place") from error


def changed_file(model: ir.Model, name: str, context: RewriteContext, make: Callable[[Path, Path], object]) -> ir.Model:
    """What a program that reads one file and writes another makes of a model.

    Args:
        name: of what is made; the same of the same model is made once, where the context keeps it.
        make: writes the second file from the first, or raises why it cannot.
    """
    if weight_bytes(model) > LARGEST_FILE:
        raise RewriteError(f"takes models of up to {LARGEST_FILE / 1e9:.1f} GB, which are one file")
    with TemporaryDirectory(prefix="opscope-rewrite-") as scratch:
        before = Path(scratch) / "before.onnx"
        save(model.clone(), before)
        after = (context.folder or Path(scratch)) / f"{name}-{sha256_of(before)}.onnx"
        if not after.is_file():
            after.parent.mkdir(parents=True, exist_ok=True)
            make(before, Path(scratch) / "after.onnx")
            (Path(scratch) / "after.onnx").replace(after)
        return ir.external_data.load_to_model(ir.load(after))
