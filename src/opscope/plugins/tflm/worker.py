"""The process in which the interpreter works: `python -m opscope.plugins.tflm.worker REQUEST ANSWER`.

A process of its own: the library prints to stderr, and a crash is an answer too. Nothing here is imported by the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.worker import answer
from ...core.random_arrays import random_arrays

Arrays = Sequence[npt.NDArray[np.generic]]


def _work(request: Mapping[str, Any]) -> dict[str, object]:
    from tflite_micro.python.tflite_micro import runtime

    arrays = list(random_arrays(request["ports"], seed=request["seed"]))
    content = Path(request["model"]).read_bytes()
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=request["arena_bytes"])
    interpreter.print_allocations()
    for number, array in enumerate(arrays):
        interpreter.set_input(array, number)
    interpreter.invoke()
    outputs = [np.array(interpreter.get_output(number)) for number in range(request["outputs"])]
    found: dict[str, object] = {"producer": {"tflite-micro": version("tflite-micro")}, "differences": None}
    if find_spec("ai_edge_litert") is not None:
        found["differences"] = _differences(outputs, _reference(request["model"], arrays))
    return found


def _reference(model: str, arrays: Arrays) -> Arrays:
    """The same inputs in LiteRT, with its reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_path=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _differences(found: Arrays, expected: Arrays) -> list[float]:
    """The largest difference of each output."""
    pairs = zip(found, expected, strict=True)
    return [float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0)) for a, b in pairs]


if __name__ == "__main__":
    answer(_work, *sys.argv[1:3])
