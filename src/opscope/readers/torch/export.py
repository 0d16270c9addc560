"""Module → ExportedProgram → ONNX, by torch's own exporters; what they refuse is one line with the user's code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ModelError, first_line, printable
from ..onnx.model import RANDOM, WEIGHTS_KEY
from .model import TorchModel

if TYPE_CHECKING:
    from types import TracebackType

    from torch.export import ExportedProgram
    from torch.nn import Module
    from torch.onnx import ONNXProgram

_INLINE_BYTES = 1024  # of constants that may decide shapes; larger ones are weights
_EXTERNAL = "weights"  # the file that a structure names and nobody writes
_WHOLE_FILE_BYTES = 1 << 30  # up to it weights are in the ONNX file itself; protocol buffers end at 2 GiB
_OPERATOR = re.compile(r"op='([\w.:]+)'")
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_DOCS = "docs/pytorch.md"


def export(model: TorchModel) -> ExportedProgram:
    """What torch.export makes of a model, for inference; one that is exported already is returned as it is."""
    if model.is_exported:
        return model.module
    import torch

    given = (model.inputs or (), dict(model.keywords))
    with quiet(), for_inference(model.module), torch.no_grad():
        try:
            return torch.export.export(model.module, *given, dynamic_shapes=model.dynamic_shapes, strict=False)
        except Exception as error:  # of the exporter, or of the user's own code
            place, problem = _line(error.__traceback__), first_line(error, 200)
            advice = f"expected a forward that can be exported, branches on data by torch.cond ({_DOCS})"
            raise ModelError(model.source, place, f"torch.export refuses it: {problem}; {advice}") from error


def structure(model: TorchModel) -> bytes:
    """The model as ONNX whose weights are not in it; only their shapes are looked at."""
    import onnx_ir

    program = _to_onnx(model).model
    offset = 0
    for graph in program.graphs():
        for value in graph.initializers.values():
            tensor = value.const_value
            if tensor is not None and (tensor.nbytes > _INLINE_BYTES or _is_meta(tensor)):
                place = {"name": value.name, "shape": tensor.shape, "base_dir": ""}
                value.const_value = onnx_ir.ExternalTensor(_EXTERNAL, offset, tensor.nbytes, tensor.dtype, **place)
                offset += tensor.nbytes
    content: bytes = onnx_ir.to_proto(program).SerializeToString(deterministic=True)
    return content


def write_onnx(model: TorchModel, folder: Path) -> Path:
    """An ONNX file with the weights, for runtimes and compilers; a model that has none is refused."""
    onnx_program = _to_onnx(model)
    tensors = [value.const_value for graph in onnx_program.model.graphs() for value in graph.initializers.values()]
    if any(tensor is not None and _is_meta(tensor) for tensor in tensors):
        problem = (
            "is on meta, and a runtime needs weights; expected a module that has some, or --backend sim or estimate"
        )
        raise ModelError(model.source, "", problem)
    file = folder / f"{model.name}.onnx"
    if model.has_random_weights:
        onnx_program.model.metadata_props[WEIGHTS_KEY] = RANDOM
    with quiet():
        onnx_program.optimize()
        size = sum(tensor.nbytes for tensor in tensors if tensor is not None)
        onnx_program.save(file, external_data=size > _WHOLE_FILE_BYTES)
    return file


def _to_onnx(model: TorchModel) -> ONNXProgram:
    from .sources import needed

    needed("onnxscript", model.source)
    import torch

    program = export(model)
    with quiet():
        try:
            return torch.onnx.export(
                program, dynamo=True, verbose=False, optimize=False, dynamic_shapes=model.dynamic_shapes
            )
        except Exception as error:
            place, problem = _refused_node(error, program)
            raise ModelError(
                model.source, place, f"{problem}; expected operators that torch.onnx.export knows ({_DOCS})"
            ) from error


def _is_meta(tensor: object) -> bool:
    return bool(getattr(getattr(tensor, "raw", None), "is_meta", False))


@contextmanager
def for_inference(module: Module) -> Iterator[None]:
    """Without dropout and the like; how the user's module was set comes back."""
    training = [each for each in module.modules() if each.training]
    module.eval()
    try:
        yield
    finally:
        for each in training:
            each.training = True


@contextmanager
def quiet() -> Iterator[None]:
    """What torch prints, warns and logs about on its way is nothing that a user can mend."""
    import logging
    import warnings

    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _line(traceback: TracebackType | None) -> str:
    """The innermost line of the user's code on the way to an error; empty: there is none."""
    frames = []
    while traceback is not None:
        frames.append((traceback.tb_frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    return _shown(frames)


def _shown(frames: list[tuple[str, int]]) -> str:
    import torch

    own, ours = str(Path(torch.__file__).parent), str(Path(__file__).parent)
    places = [(Path(file), line) for file, line in frames if not file.startswith((own, ours, "<frozen"))]
    return next((printable(f"{file.name}:{line}") for file, line in reversed(places)), "")


def _refused_node(error: BaseException, program: ExportedProgram) -> tuple[str, str]:
    """Line of the user's code and words on the operator that ONNX has no form of."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    operator = next((found.group(1) for cause in reversed(causes) if (found := _OPERATOR.search(str(cause)))), "")
    if not operator:
        return "", f"torch.onnx.export refuses it: {first_line(causes[-1], 200)}"
    traces = (node.meta.get("stack_trace") or "" for node in program.graph.nodes if operator in str(node.target))
    frames = [(file, int(line)) for file, line in _FRAME.findall(next(traces, ""))]
    return _shown(frames), f"operator {operator} has no ONNX form"
