"""Real outputs: the original model run on a reference runtime, in its own precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from ...core.errors import ModelError, UsageError, first_line, printable
from .inputs import Array
from .outputs import Output


class Reference(Protocol):
    """A model ready to run; `run` may be called from several threads."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]: ...


def open_reference(model: Path, *, inputs: Sequence[str], outputs: Sequence[str]) -> Reference:
    """Open the model on the runtime of its format; `inputs` and `outputs` are the program's names, in order."""
    if not model.is_file():
        raise UsageError(
            f"{model}: the model is not there, and outputs are computed from it; expected the file that was compiled"
        )
    with model.open("rb") as file:
        is_tflite = file.read(8)[4:] == b"TFL3"
    if is_tflite:
        return _LiteRt(model, inputs, outputs)
    if model.suffix.startswith(".mlir"):
        from .iree_reference import IreeReference

        return IreeReference(model, outputs)
    return _OnnxRuntime(model)


class _OnnxRuntime:
    def __init__(self, model: Path) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise UsageError("onnxruntime is not installed; expected `pip install onnxruntime` for outputs") from error

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised as exceptions
        self.model = model
        try:
            self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its exceptions share no base class
            raise ModelError(str(model), "", f"ONNX Runtime cannot load it: {first_line(error)}") from error

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        names = [output.name for output in self.session.get_outputs()]
        parts = _slices(inputs, {port.name: port.shape for port in self.session.get_inputs()})
        try:
            results = [self.session.run(names, part) for part in parts]
        except Exception as error:
            raise ModelError(str(self.model), "", f"ONNX Runtime cannot run it: {first_line(error)}") from error
        if len(results) == 1:
            return dict(zip(names, results[0], strict=True))
        return {name: self._joined(name, [result[i] for result in results]) for i, name in enumerate(names)}

    def _joined(self, name: str, parts: Sequence[Output]) -> Output:
        """The output of all slices of a batch."""
        if all(isinstance(part, np.ndarray) and part.ndim for part in parts):
            return np.concatenate([np.asarray(part) for part in parts])
        if all(isinstance(part, list) for part in parts):
            return [item for part in parts if isinstance(part, list) for item in part]
        problem = "is no batch, so those of several runs cannot be joined; expected inputs of the model's own batch"
        raise ModelError(str(self.model), f"output {printable(name)}", problem)


def _slices(inputs: Mapping[str, Array], shapes: Mapping[str, Sequence[object]]) -> list[dict[str, Array]]:
    """Split the inputs into batches that a model of fixed batch can run."""
    batches = {shape[0] for name, shape in shapes.items() if name in inputs and shape}
    fixed = batches.pop() if len(batches) == 1 else None
    batch_sizes = {value.shape[0] for value in inputs.values() if value.ndim}
    if not isinstance(fixed, int) or len(batch_sizes) != 1:
        return [dict(inputs)]
    given_batch = batch_sizes.pop()
    if fixed < 1 or given_batch == fixed or given_batch % fixed:
        return [dict(inputs)]
    return [{name: value[at : at + fixed] for name, value in inputs.items()} for at in range(0, given_batch, fixed)]


class _LiteRt:
    """Runs a TensorFlow Lite model; its inputs and outputs are matched by order, the same as in the program."""

    def __init__(self, model: Path, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Load the model; a missing package or a model that cannot be loaded is an error."""
        from threading import Lock

        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise UsageError(
                f"{model}: ai-edge-litert is not installed; expected `pip install ai-edge-litert` for outputs"
            ) from error
        self.model, self.inputs, self.outputs = model, inputs, outputs
        self.lock = Lock()  # an interpreter is not thread-safe
        try:
            self.interpreter = Interpreter(model_path=str(model))
        except (ValueError, RuntimeError) as error:
            raise ModelError(str(model), "", f"LiteRT cannot load it: {first_line(error)}") from error

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        with self.lock:
            try:
                return self._run(inputs)
            except (ValueError, RuntimeError) as error:
                raise ModelError(str(self.model), "", f"LiteRT cannot run it: {first_line(error)}") from error

    def _run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        interpreter = self.interpreter
        for name, detail in zip(self.inputs, interpreter.get_input_details(), strict=True):
            if tuple(detail["shape"]) != inputs[name].shape:
                interpreter.resize_tensor_input(detail["index"], inputs[name].shape)
        interpreter.allocate_tensors()
        for name, detail in zip(self.inputs, interpreter.get_input_details(), strict=True):
            interpreter.set_tensor(detail["index"], inputs[name])
        interpreter.invoke()
        details = interpreter.get_output_details()
        return {
            name: interpreter.get_tensor(detail["index"]) for name, detail in zip(self.outputs, details, strict=True)
        }
