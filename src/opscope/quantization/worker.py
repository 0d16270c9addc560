"""The process in which ONNX Runtime quantises: `python -m opscope.quantization.worker REQUEST ANSWER`.

A process of its own: its tools are slow to import, write to the log and may end the process; how far it is stands in
a file of its folder.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..backends.registry import load_recipe
from ..backends.worker import RefusedError, answer
from ..core.errors import UsageError
from .copies import Recipe, load_fixed, make_copy
from .errors import MOST_LAYERS, layer_differences, output_differences
from .precisions import precision_of
from .samples import samples_of

PROGRESS = "progress.txt"


def _work(request: Mapping[str, Any]) -> dict[str, object]:
    try:
        return _quantise(request)
    except UsageError as error:
        raise RefusedError(str(error)) from error


def _quantise(request: Mapping[str, Any]) -> dict[str, object]:
    precision = precision_of(request["precision"])
    recipe: Recipe | None = load_recipe(request["backend"]) if request["backend"] else None  # type: ignore[assignment]
    samples = samples_of(request) if request["data"] or request["random"] else None
    shapes = request["shapes"] if request["is_fixed"] or (recipe is not None and recipe.fixes_shapes) else {}
    _step("reading")
    proto = load_fixed(Path(request["model"]), {name: tuple(shape) for name, shape in shapes.items()})
    original = proto.SerializeToString()  # with the weights of files beside it
    _step(f"calibrating with {samples.count} samples" if samples else "converting")
    copy = make_copy(proto, Path.cwd(), precision, samples, recipe)
    found: dict[str, object] = {"file": str(copy.file), "float_ops": copy.float_ops, "quantized_ops": copy.integer_ops}
    found["model_bytes"] = len(original)
    if samples is not None:
        outputs, worst = output_differences(original, copy.file, samples, step=_step)
        feeds = [feed for number, feed in enumerate(samples.feeds()) if number in worst]
        layers = layer_differences(copy, feeds, step=_step)
        found |= {"outputs": [asdict(each) for each in outputs], "layer_samples": len(feeds)}
        found |= {"layers": [asdict(layer) for layer in layers[:MOST_LAYERS]], "layers_compared": len(layers)}
    return found | {"notes": copy.notes, "producer": _versions()}


def _step(words: str) -> None:
    Path(PROGRESS).write_text(words, encoding="utf-8")


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("onnxruntime", "onnx")}


if __name__ == "__main__":
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser's tools tell their own users what to do
    answer(_work, *sys.argv[1:3])
