"""TensorFlow Lite models, rewritten, and both run in LiteRT's reference kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from opscope.readers import read_model
from opscope.rewrites import catalogue
from opscope.rewrites.rewrite import Site, everywhere
from opscope.rewrites.tflite import editor
from support.models.tflite_build import ModelBuilder, SubgraphBuilder, Type


def rewritten(model: ModelBuilder, rewrite: str, folder: Path) -> tuple[Path, Path, tuple[Site, ...]]:
    """A model, written; the model that a rewrite makes of it, written; where it applied."""
    before = folder / "before.tflite"
    before.write_bytes(model.build())
    return before, *rewrite_file(before, rewrite, folder / "after.tflite")


def rewrite_file(before: Path, rewrite: str, after: Path) -> tuple[Path, tuple[Site, ...]]:
    model, sites = editor.apply(editor.open_model(before), catalogue.named(rewrite, "tflite"), everywhere)
    editor.save(model, after)
    return after, sites


def quantised(main: SubgraphBuilder, number: int, scales: float | np.ndarray, zero: int = 0, axis: int = 0) -> int:
    """Give a tensor scales; return it."""
    table = schema.QuantizationParametersT()
    table.scale = np.atleast_1d(np.asarray(scales, np.float32))
    table.zeroPoint, table.quantizedDimension = np.full(table.scale.shape, zero, np.int64), axis
    main.tensors[number].quantization = table
    return number


def constant(main: SubgraphBuilder, values: np.ndarray, name: str = "constant") -> int:
    types = {"float32": Type.FLOAT32, "float16": Type.FLOAT16, "int8": Type.INT8, "int32": Type.INT32}
    return main.tensor(name, values.shape, types[values.dtype.name], data=np.ascontiguousarray(values).tobytes())


def operators(path: Path) -> list[str]:
    """Types of the operators of a file, in order."""
    return [op.type for op in read_model(path, folds=False).ops]


def assert_same(before: Path, after: Path, *, draws: int = 2, tolerance: float = 1e-6) -> None:
    """Both have the same ports and give the same: integers to the bit, floats up to a part of the largest output."""
    runs = [_interpreter(path) for path in (before, after)]
    for ports in ("get_input_details", "get_output_details"):
        told = [
            [(d["name"], d["shape"].tolist(), d["dtype"], d["quantization"]) for d in getattr(r, ports)()] for r in runs
        ]
        assert told[0] == told[1]
    for seed in range(draws):
        wanted, found = (_outputs(run, seed) for run in runs)
        for one, other in zip(wanted, found, strict=True):
            if one.dtype.kind == "f":
                reach = float(np.abs(one).max(initial=1e-6))
                np.testing.assert_allclose(other, one, atol=tolerance * reach, rtol=0)
            else:
                np.testing.assert_array_equal(other, one)


def _interpreter(path: Path) -> Interpreter:
    made = Interpreter(model_path=str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    made.allocate_tensors()
    return made


def _outputs(run: Interpreter, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    for port in run.get_input_details():
        shape, dtype = port["shape"], np.dtype(port["dtype"])
        whole = random.integers(-128, 128, shape) if dtype == np.int8 else random.integers(0, 8, shape)
        run.set_tensor(port["index"], (random.standard_normal(shape) if dtype.kind == "f" else whole).astype(dtype))
    run.invoke()
    return [run.get_tensor(port["index"]) for port in run.get_output_details()]
