"""ONNX models in a few lines, rewritten, and both run in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from opscope.rewrites import catalogue
from opscope.rewrites.onnx import editor
from opscope.rewrites.rewrite import Site, everywhere


def rewritten(text: str, rewrite: str, folder: Path, **weights: np.ndarray) -> tuple[Path, Path, tuple[Site, ...]]:
    """A model in ONNX's own text form, written; the model that a rewrite makes of it, written; where it applied."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, before)
    return before, after, rewrite_file(before, rewrite, after)


def rewrite_file(before: Path, rewrite: str, after: Path) -> tuple[Site, ...]:
    model, sites = editor.apply(editor.open_model(before), catalogue.named(rewrite, "onnx"), everywhere)
    editor.save(model, after)
    return sites


def assert_same(before: Path, after: Path, *, draws: int = 2, tolerance: float = 1e-5, batch: int = 4) -> None:
    """Both models have the same inputs and outputs, and give the same: up to a part of the largest output.

    Args:
        batch: of all extents that inputs leave open.
    """
    sessions = [_session(path) for path in (before, after)]
    for ports in ("get_inputs", "get_outputs"):
        told = [
            [(port.name, port.type, _fixed(port.shape, None)) for port in getattr(each, ports)()] for each in sessions
        ]
        assert told[0] == told[1]
    for seed in range(draws):
        feed = _feed(sessions[0], seed, batch)
        wanted, found = (each.run(None, feed) for each in sessions)
        for one, other in zip(wanted, found, strict=True):
            reach = float(np.abs(one.astype(np.float64)).max(initial=1e-6))
            np.testing.assert_allclose(other.astype(np.float64), one.astype(np.float64), atol=tolerance * reach, rtol=0)


def operators(path: Path) -> list[str]:
    """Types of the nodes of a file, in order."""
    return [node.op_type for node in onnx.load(path, load_external_data=False).graph.node]


def _session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _feed(session: onnxruntime.InferenceSession, seed: int, batch: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}
    return {
        port.name: (random.standard_normal(_fixed(port.shape, batch)) * (1 if "float" in port.type else 2)).astype(
            types[port.type]
        )
        for port in session.get_inputs()
    }


def _fixed(shape: list[int | str | None], otherwise: int | None) -> list[int | None]:
    """A shape with the same at every extent that is not fixed, whatever its name."""
    return [extent if isinstance(extent, int) else otherwise for extent in shape]
