"""The networks whose compilations are recorded in samples/sophgo, and schedules typed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from opscope.importers.reading import read_text

SAMPLES = Path(__file__).parents[2] / "samples" / "sophgo"
SCHEDULES = sorted(SAMPLES.glob("*.txt.gz"))


def small_model(path: Path, last: str = "Gemm") -> Path:
    """A convolution with its activation, a residual connection, and a head; or a head that no compiler has."""
    values = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((values.standard_normal(shape) * 0.2).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="stem", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"], name="act"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="mix"),
        helper.make_node("Add", ["b", "c"], ["d"], name="skip"),
    ]
    constants = [weights("w1", 8, 3, 3, 3), weights("b1", 8), weights("w2", 8, 8, 1, 1)]
    shape = [1, 8]
    if last == "Gemm":
        nodes += [
            helper.make_node("GlobalAveragePool", ["d"], ["e"], name="pool"),
            helper.make_node("Flatten", ["e"], ["f"], name="flat"),
            helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="head"),
        ]
        constants += [weights("w3", 8, 4), weights("b3", 4)]
        shape = [1, 4]
    else:
        nodes.append(helper.make_node(last, ["d"], ["y"], name="head"))
    return _saved(path, nodes, constants, [("y", TensorProto.FLOAT, shape)])


def cut_model(path: Path) -> Path:
    """A network that TopK cuts in two."""
    values = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="stem", pads=[1] * 4),
        helper.make_node("TopK", ["a", "k"], ["v", "i"], name="top", axis=-1),
        helper.make_node("Relu", ["v"], ["y"], name="act"),
    ]
    kernel = (values.standard_normal((8, 3, 3, 3)) * 0.2).astype(np.float32)
    constants = [numpy_helper.from_array(kernel, "w1"), numpy_helper.from_array(np.array([5], np.int64), "k")]
    outputs = [("y", TensorProto.FLOAT, [1, 8, 16, 5]), ("i", TensorProto.INT64, [1, 8, 16, 5])]
    return _saved(path, nodes, constants, outputs)


def _saved(
    path: Path,
    nodes: list[onnx.NodeProto],
    constants: list[onnx.TensorProto],
    outputs: list[tuple[str, int, list[int]]],
) -> Path:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])]
    ports = [helper.make_tensor_value_info(*port) for port in outputs]
    graph = helper.make_graph(nodes, "network", inputs, ports, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, str(path))
    return path


def schedule_text(*rows: tuple[str, str], tail: str = "") -> str:
    """A schedule of two engines; a cell is what stands in the file."""
    width = max((len(cell) for row in rows for cell in row), default=0) + 12
    rule = "-" * 38
    legend = "s: start time, b: bd_id, g: gdma_id, e: end time, t: cmd cost time, dr: direction, sz: memsize"
    lines = [rule, legend, rule, "ENGINE_BD".ljust(width) + "ENGINE_GDMA"]
    lines += [one.ljust(width) + other for one, other in rows]
    return "\n".join([*lines, rule, tail or "TCYC : 20\nflops: 8, runtime: 0.000020ms"]) + "\n"


def recorded_text(name: str) -> str:
    return read_text(SAMPLES / name)
