"""Float TFLite file → integers by ai-edge-quantizer. A worker of its environment.

Weights have a scale per channel, but in products of two activations: their kernels know one scale per tensor, and what
is quantised otherwise is another function. An op type on which the tool fails stays float.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

_MOST_FAILED = 4  # op types that may stay float for that reason


def work(request: Mapping[str, Any]) -> Mapping[str, object]:
    warnings.simplefilter("ignore")
    failed: list[tuple[str, str]] = []
    while True:
        try:
            content = _quantised(request, [kind for kind, _ in failed])
            break
        except Exception as error:  # the tool's errors share no base
            kind = _blamed(error)
            if kind is None or kind in dict(failed) or len(failed) == _MOST_FAILED:
                raise
            failed.append((kind, f"{type(error).__name__}: {error}"[:120]))
    Path(request["output"]).write_bytes(content)
    return {"version": version("ai-edge-quantizer"), "failed": failed}


def _quantised(request: Mapping[str, Any], floats: Sequence[str]) -> bytes:
    from ai_edge_quantizer import algorithm_manager, qtyping, quantizer, recipe_manager

    kinds = qtyping.TFLOperationName
    bits = {"activation_num_bits": request["activation_bits"], "weight_num_bits": request["weight_bits"]}
    recipe = recipe_manager.RecipeManager()
    recipe.add_static_config(regex=".*", operation_name=kinds.ALL_SUPPORTED, **bits)
    whole = qtyping.QuantGranularity.TENSORWISE
    recipe.add_static_config(regex=".*", operation_name=kinds.BATCH_MATMUL, weight_granularity=whole, **bits)
    for kind in floats:
        none = algorithm_manager.AlgorithmName.NO_QUANTIZE
        recipe.add_quantization_config(".*", kinds(kind), algorithm_key=none)
    tool = quantizer.Quantizer(request["model"], recipe.get_quantization_recipe())
    signature, names = _signature(request["model"], request["inputs"])
    found = tool.calibrate({signature: list(_samples(request, names))})
    return bytes(tool.quantize(found).quantized_model)


def _signature(model: str, inputs: Sequence[str]) -> tuple[str, list[str]]:
    """The first signature, and its names of the inputs; a file without one has the names of its tensors."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=model)
    known = interpreter.get_signature_list()
    if not known:
        return "serving_default", list(inputs)
    key = next(iter(known))
    details = interpreter.get_signature_runner(key).get_input_details()
    tensors = {port["name"]: name for name, port in details.items()}
    return key, [tensors.get(name, name) for name in inputs]


def _samples(request: Mapping[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for file in sorted(Path(request["samples"]).glob("*.npz")):
        with np.load(file) as arrays:
            yield {name: arrays[str(place)] for place, name in enumerate(names)}


def _blamed(error: BaseException) -> str | None:
    """The op type that the tool was at, by the function that failed: `materialize_padv2` is for PADV2."""
    from ai_edge_quantizer import qtyping

    known = {kind.value.lower(): kind.value for kind in qtyping.TFLOperationName}
    trace, found = error.__traceback__, None
    while trace is not None:
        local = trace.tb_frame.f_locals
        if isinstance(key := local.get("op_key"), qtyping.TFLOperationName):
            found = key.value
        name = trace.tb_frame.f_code.co_name.removeprefix("materialize_")
        found = known.get(name, found)
        trace = trace.tb_next
    return found
