"""Outputs of a model file, ONNX or TFLite, on samples in a folder. A worker: it runs in any Python with the runtime.

Arrays of a sample are named by the place of their input. Quantised inputs and outputs are given and left as floats.
With `plain` every op runs as it stands in the file, by the runtime's simplest kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[[Sequence[Any]], Sequence[Any]]
Port = tuple[str, str, list[Any]]  # name, type and shape, as the runtime has them; a word is an open dimension
Ports = Mapping[str, Sequence[Port]]  # `inputs` and `outputs`


def work(request: Mapping[str, Any]) -> Mapping[str, object]:
    opened = _onnx if request["format"] == "onnx" else _tflite
    ports, run = opened(str(request["model"]), request["inputs"], plain=bool(request.get("plain")))
    for file in sorted(Path(request["samples"]).glob("*.npz")):
        with np.load(file) as arrays:
            found = run([arrays[str(place)] for place in range(len(request["inputs"]))])
        numbers = {str(place): _array(output) for place, output in enumerate(found)}
        np.savez(Path(request["outputs"]) / file.name, **numbers)
    return {"outputs": [name for name, _, _ in ports["outputs"]], "ports": ports}


def _array(output: Any) -> Any:
    """An output as one array: texts as texts, a list of maps, as classifiers give, by its values in order of keys."""
    if isinstance(output, list) and output and all(isinstance(each, dict) for each in output):
        return np.asarray([[each[key] for key in sorted(each)] for each in output])
    if isinstance(output, list):
        return np.concatenate([np.ravel(each) for each in output]) if output else np.zeros(0)
    array = np.asarray(output)
    return array.astype(str) if array.dtype == object else array


def _onnx(model: str, names: Sequence[str], *, plain: bool) -> tuple[Ports, Run]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = session.run(None, dict(zip(names, arrays, strict=True)))
        return found

    sides = {"inputs": session.get_inputs(), "outputs": session.get_outputs()}
    return {side: [(port.name, port.type, port.shape) for port in ports] for side, ports in sides.items()}, run


def _tflite(model: str, names: Sequence[str], *, plain: bool) -> tuple[Ports, Run]:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    # The runtime's own kernels: delegates refuse models that these run. The plain ones are written for their clarity.
    kernels = OpResolverType.BUILTIN_REF if plain else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=model, experimental_op_resolver_type=kernels)
    ports = {port["name"]: port for port in interpreter.get_input_details()}
    results = interpreter.get_output_details()
    sizes: dict[str, tuple[int, ...]] = {}  # that memory is planned for: a file with open ones may not run as stored

    def run(arrays: Sequence[Any]) -> Sequence[Any]:
        given = {name: tuple(array.shape) for name, array in zip(names, arrays, strict=True)}
        if given != sizes:
            for name, shape in given.items():
                if shape != tuple(ports[name]["shape"]) or sizes:
                    interpreter.resize_tensor_input(ports[name]["index"], shape)
            interpreter.allocate_tensors()
            sizes.update(given)
        for name, array in zip(names, arrays, strict=True):
            interpreter.set_tensor(ports[name]["index"], _stored(array, ports[name]))
        interpreter.invoke()
        return [_number(interpreter.get_tensor(port["index"]), port) for port in results]

    sides = {"inputs": interpreter.get_input_details(), "outputs": results}
    return {side: [_told(port) for port in found] for side, found in sides.items()}, run


def _told(port: Mapping[str, Any]) -> Port:
    return port["name"], np.dtype(port["dtype"]).name, [int(extent) for extent in port["shape_signature"]]


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
