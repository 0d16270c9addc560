"""The process in which ONNX Runtime works: `python -m opscope.plugins.ort.worker REQUEST ANSWER`.

A process of its own: threads are pinned, profile and optimised model go into its folder, and a crash is an answer too.
Nothing here is imported by the rest of opscope.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...backends.worker import answer, timed
from ...core.random_arrays import random_arrays

OPTIMISED = "optimised.onnx"
_LARGEST_PROTO = 2**31 - 1
_MOST_EVENTS, _EVENTS_BESIDE = 900_000, 8


def _work(request: Mapping[str, Any]) -> dict[str, object]:
    """One session: first profiled, after a warm-up, then timed as an application sees it."""
    import numpy
    import onnxruntime

    cpus: Sequence[int] = request["cpus"]
    options = _session_options(request, cpus)
    model = _named_model(Path(request["model"]), request["names"], options)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpus[0]})  # the thread that calls is one of the threads that work
    arrays = random_arrays(request["ports"], seed=request["seed"])
    feeds = {name: array for (name, _, _), array in zip(request["ports"], arrays, strict=True)}
    for _ in range(request["warmup"] + _profiled(request)):
        session.run(None, feeds)
    profile = session.end_profiling()
    # the same session without its profiler, which costs time of its own
    samples = timed(lambda: session.run(None, feeds), request["repeats"])
    producer = {"onnxruntime": onnxruntime.__version__, "numpy": numpy.__version__}
    return {"profile": profile, "samples_ns": samples, "producer": producer, **_optimised()}


def _profiled(request: Mapping[str, Any]) -> int:
    """Inferences to profile: the runtime drops what comes after its millionth event, one per node."""
    room = _MOST_EVENTS // (int(request["nodes"]) + _EVENTS_BESIDE) - int(request["warmup"])
    return min(int(request["repeats"]), max(room, 1))


def _session_options(request: Mapping[str, Any], cpus: Sequence[int]) -> Any:
    """One inference at a time on these CPUs; profile and optimised model are written to the working folder."""
    import onnxruntime

    level = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what matters comes as an exception
    options.graph_optimization_level = {
        "none": level.ORT_DISABLE_ALL,
        "basic": level.ORT_ENABLE_BASIC,
        "extended": level.ORT_ENABLE_EXTENDED,
        "all": level.ORT_ENABLE_ALL,
    }[request["level"]]
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads, options.inter_op_num_threads = len(cpus), 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if len(cpus) > 1:  # processors are numbered from 1; the calling thread is not in the list
        options.add_session_config_entry("session.intra_op_thread_affinities", ";".join(str(c + 1) for c in cpus[1:]))
    options.enable_profiling, options.profile_file_prefix = True, str(Path.cwd() / "profile")
    options.optimized_model_filepath = str(Path.cwd() / OPTIMISED)
    return options


def _named_model(path: Path, names: Mapping[str, str], options: Any) -> str | bytes:
    """The file, or a copy in which every node has a name of its own: what runs is known by name alone."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    seen: set[str] = set()
    changed = False
    for node in model.graph.node:
        wanted = next((names[tensor] for tensor in node.output if tensor in names), None)
        if wanted is not None and (not node.name or node.name in seen):
            node.name, changed = wanted, True
        seen.add(node.name)
    if not changed or model.ByteSize() > _LARGEST_PROTO:
        return str(path)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    data: bytes = model.SerializeToString()
    return data


def _optimised() -> dict[str, object]:
    """Nodes and constants of the graph that ran."""
    import onnx

    graph = onnx.load(OPTIMISED, load_external_data=False).graph
    nodes = [(node.name, node.op_type, node.domain, list(node.input), list(node.output)) for node in graph.node]
    return {"nodes": nodes, "constants": [tensor.name for tensor in graph.initializer]}


if __name__ == "__main__":
    answer(_work, *sys.argv[1:3])
