"""The process in which LiteRT works: `python -m opscope.plugins.litert.worker REQUEST ANSWER`.

A process of its own: it stays on the CPUs that it is given, the library prints to stderr, and a crash is an answer too.
Nothing here is imported by the rest of opscope.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...backends.worker import answer, timed
from ...core.random_arrays import random_arrays
from .library import CompiledModel, Event, Library, UnavailableError

Arrays = Sequence[npt.NDArray[np.generic]]


def _work(request: Mapping[str, Any]) -> dict[str, object]:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, request["cpus"])  # threads that the library starts inherit it
    arrays = list(random_arrays(request["ports"], seed=request["seed"]))
    producer = {"ai-edge-litert": version("ai-edge-litert"), "numpy": np.__version__}
    answer: dict[str, object] = {"producer": producer, "events": [], "unavailable": request["unavailable"]}
    if not request["unavailable"]:
        try:
            events, run = _with_profiler(request, arrays)
            return answer | {"events": events, "samples_ns": _warm(run, request)}
        except UnavailableError as error:
            answer["unavailable"] = str(error)
    return answer | {"samples_ns": _warm(_interpreter(request, arrays), request)}


def _with_profiler(request: Mapping[str, Any], arrays: Arrays) -> tuple[list[list[Event]], Callable[[], None]]:
    """Events of every inference that counts, and the same model without its profiler."""
    found = find_spec("ai_edge_litert")
    if found is None or found.origin is None:
        raise UnavailableError("the package ai_edge_litert has no folder")
    library = Library(Path(found.origin).with_name("libLiteRt.so"))
    chosen = {"threads": request["threads"], "kernels": request["kernels"]}
    profiled = CompiledModel(library, Path(request["model"]), profile=True, **chosen)
    profiled.write(arrays)
    for _ in range(request["warmup"]):
        profiled.run()
    events = [profiled.profiled_run() for _ in range(request["repeats"])]
    plain = CompiledModel(library, Path(request["model"]), profile=False, **chosen)
    plain.write(arrays)
    return events, plain.run


def _interpreter(request: Mapping[str, Any], arrays: Arrays) -> Callable[[], None]:
    """The Python interface: any release has it, and it has no times of ops."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    resolver = {
        "xnnpack": OpResolverType.AUTO,
        "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        "reference": OpResolverType.BUILTIN_REF,
    }[request["kernels"]]
    interpreter = Interpreter(
        model_path=request["model"], num_threads=request["threads"], experimental_op_resolver_type=resolver
    )
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    run: Callable[[], None] = interpreter.invoke
    return run


def _warm(run: Callable[[], None], request: Mapping[str, Any]) -> list[int]:
    """Times of the inferences that count, after those that do not."""
    for _ in range(request["warmup"]):
        run()
    return timed(run, request["repeats"])


if __name__ == "__main__":
    answer(_work, *sys.argv[1:3])
