"""Outputs of a model file, ONNX or TFLite, on samples in a folder. A worker: it runs in any Python with the runtime.

Arrays of a sample are named by the place of their input. Quantised inputs and outputs are given and left as floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[Sequence[Any]], Sequence[Any]]


def work(request: Mapping[str, Any]) -> Mapping[str, object]:
    opened = _onnx if request["format"] == "onnx" else _tflite
    outputs, run = opened(str(request["model"]), request["inputs"])
    for file in sorted(Path(request["samples"]).glob("*.npz")):
        with np.load(file) as arrays:
            found = run([arrays[str(place)] for place in range(len(request["inputs"]))])
        numbers = {str(place): np.asarray(array) for place, array in enumerate(found)}
        np.savez(Path(request["outputs"]) / file.name, **numbers)  # type: ignore[arg-type]
    return {"outputs": outputs}


def _onnx(model: str, names: Sequence[str]) -> tuple[list[str], Run]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = session.run(None, dict(zip(names, arrays, strict=True)))
        return found

    return [port.name for port in session.get_outputs()], run


def _tflite(model: str, names: Sequence[str]) -> tuple[list[str], Run]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    # The runtime's own kernels: delegates refuse models that these run.
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=model, experimental_op_resolver_type=plain)
    interpreter.allocate_tensors()
    ports = {port["name"]: port for port in interpreter.get_input_details()}
    results = interpreter.get_output_details()

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        for name, array in zip(names, arrays, strict=True):
            interpreter.set_tensor(ports[name]["index"], _stored(array, ports[name]))
        interpreter.invoke()
        return [_number(interpreter.get_tensor(port["index"]), port) for port in results]

    return [port["name"] for port in results], run


def _stored(array: Any, port: Mapping[str, Any]) -> Any:
    """As the file holds it: floats by its scale where it is quantised."""
    scale, zero = port["quantization"]
    kind = np.dtype(port["dtype"])
    if scale and kind.kind in "iu" and array.dtype.kind == "f":
        limits = np.iinfo(kind)
        array = np.clip(np.round(array / scale) + zero, limits.min, limits.max)
    return array.astype(kind, copy=False)


def _number(array: Any, port: Mapping[str, Any]) -> Any:
    scale, zero = port["quantization"]
    return (array.astype(np.float32) - zero) * np.float32(scale) if scale and array.dtype.kind in "iu" else array
