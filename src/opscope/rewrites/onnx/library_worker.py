"""The process in which a library rewrites a model: `python -m opscope.rewrites.onnx.library_worker REQUEST ANSWER`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx

from ...backends.worker import answer

LAYER_NORM_SINCE = 17  # version of ONNX
RAISED = "onnx-version"  # the library that gives a model that version


def _slim(before: Path, after: Path) -> None:
    from onnxslim.core import optimize, shape_infer

    onnx.save(optimize(shape_infer(onnx.load(before))), after)


def _raised(before: Path, after: Path) -> None:
    import onnx.version_converter

    onnx.save(onnx.version_converter.convert_version(onnx.load(before), LAYER_NORM_SINCE), after)


def _by_runtime(level: str) -> Callable[[Path, Path], None]:
    def change(before: Path, after: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.log_severity_level = 4
        options.optimized_model_filepath = str(after)
        onnxruntime.InferenceSession(before, options, providers=["CPUExecutionProvider"])

    return change


LIBRARIES: Mapping[str, Callable[[Path, Path], None]] = {
    RAISED: _raised,
    "onnxslim": _slim,
    "onnxruntime-basic": _by_runtime("ORT_ENABLE_BASIC"),
    "onnxruntime-extended": _by_runtime("ORT_ENABLE_EXTENDED"),
}


def work(request: Mapping[str, Any]) -> Mapping[str, object]:
    LIBRARIES[request["library"]](Path(request["before"]), Path(request["after"]))
    return {}


if __name__ == "__main__":
    answer(work, *sys.argv[1:3])
