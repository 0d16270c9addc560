"""ONNX models in a line or two with drawn weights, a rewrite applied to them, and what it came to."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

from support.rewrites.rewriting import assert_same, operators, rewrite_file

TYPES = {"float": np.float32, "float16": np.float16}


def drawn(*shape: int, seed: int = 1) -> np.ndarray:
    """Weights of both signs, smaller where there are more of them."""
    elements = np.random.default_rng(seed).standard_normal(shape)
    return elements / max(1.0, math.sqrt(elements.size) / 8)


def model(
    inputs: str,
    outputs: str,
    body: str,
    /,
    *,
    opset: int = 17,
    dtype: str = "float",
    **constants: np.ndarray | list[int],
) -> onnx.ModelProto:
    """A model; `T` stands for the type of its elements, floats of constants have it too, a list is of int64."""
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}'
    made = onnx.parser.parse_model(text.replace("T[", f"{dtype}["))
    for name, elements in constants.items():
        array = np.asarray(elements)
        array = array.astype(TYPES[dtype]) if array.dtype == np.float64 else array
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


def rewrite_to(made: onnx.ModelProto, rewrite: str, *, tolerance: float = 1e-5) -> list[str]:
    """The operators that a rewrite leaves of a model; it gives the same, and a second time there is nothing to do."""
    with TemporaryDirectory() as folder:
        before, after, again = (Path(folder) / f"{name}.onnx" for name in ("before", "after", "again"))
        onnx.save(made, before)
        sites = rewrite_file(before, rewrite, after)
        assert_same(before, after, draws=1, tolerance=tolerance)
        left = operators(after)
        assert sites or left == operators(before)
        assert not rewrite_file(after, rewrite, again), f"{rewrite} finds itself in {left}"
        return left
