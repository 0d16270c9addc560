"""Every rule is asked about ops of every kind, with operands of every kind: it answers, whatever it is given."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from opscope.core.manifest import RewriteEntry
from opscope.rewrites import catalogue
from opscope.rewrites.onnx.rule import Match

KNOWN = catalogue.known("onnx")
RULES = [entry for entry in KNOWN if not getattr(catalogue.rule_of(entry), "is_whole", False)]
KINDS = (
    *("Add", "Mul", "Div", "Sub", "AveragePool", "MaxPool", "GlobalMaxPool", "BatchNormalization", "Cast", "Concat"),
    *("Conv", "ConvTranspose", "DepthToSpace", "SpaceToDepth", "DequantizeLinear", "QuantizeLinear", "Expand"),
    *("Gather", "Gemm", "MatMul", "MatMulInteger", "Pad", "ReduceMax", "ReduceMean", "Relu", "Reshape", "Resize"),
    *("Slice", "Split", "Squeeze", "Unsqueeze", "Tile", "Transpose"),
)
LEAST = {kind: max(1, onnx.defs.get_schema(kind, 17, "").min_input) for kind in KINDS}
Draw = random.Random


def _numbers(least: int, most: int, longest: int) -> Callable[[Draw], list[int]]:
    return lambda draw: [draw.randint(least, most) for _ in range(draw.randint(1, longest))]


ATTRIBUTES: dict[str, Callable[[Draw], object]] = {
    "axis": lambda draw: draw.randint(-5, 5),
    "axes": _numbers(-5, 5, 4),
    "perm": lambda draw: draw.sample(range(6), draw.choice([4, 5, 6])),
    "pads": _numbers(-1, 3, 6),
    "strides": _numbers(1, 3, 3),
    "dilations": _numbers(1, 3, 3),
    "kernel_shape": _numbers(1, 9, 3),
    "group": lambda draw: draw.randint(0, 4),
    "blocksize": lambda draw: draw.randint(0, 3),
    "auto_pad": lambda draw: draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "?"]),
    "mode": lambda draw: draw.choice(["nearest", "linear", "constant", "CRD"]),
    "keepdims": lambda draw: draw.randint(0, 1),
    "output_padding": _numbers(0, 2, 3),
}


def _shape(draw: Draw) -> ir.Shape | None:
    extents = [draw.choice([None, *range(7)]) for _ in range(draw.randint(0, 6))]
    return draw.choice([None, ir.Shape(extents), ir.Shape([draw.choice([2, 4, 8]) for _ in range(4)])])


def _array(draw: Draw) -> np.ndarray:
    if draw.random() < 0.4:
        return np.array([draw.randint(-7, 7) for _ in range(draw.randint(0, 8))], np.int64)
    return np.ones([draw.randint(0, 4) for _ in range(draw.randint(0, 5))], draw.choice([np.float32, np.int8]))


def _graph(seed: int) -> list[ir.Node]:
    """Some nodes, of which each may read what others gave, constants, and values of any shape or none."""
    draw = random.Random(seed)  # noqa: S311  the same graphs every time
    values: list[ir.Value | None] = [None]
    values += [
        ir.Value(name=f"x{number}", shape=_shape(draw), type=ir.TensorType(ir.DataType.FLOAT)) for number in range(2)
    ]
    held = []
    for number in range(4):
        tensor = ir.tensor(_array(draw))
        kind = ir.TensorType(tensor.dtype)
        held.append(ir.Value(name=f"c{number}", shape=ir.Shape(tensor.shape), type=kind, const_value=tensor))
    nodes: list[ir.Node] = []
    for kind in draw.choices(KINDS, k=4):
        inputs = [draw.choice([*values[-3:], *values, *held]) for _ in range(draw.randint(LEAST[kind], 5))]
        attributes = {name: ATTRIBUTES[name](draw) for name in draw.sample(sorted(ATTRIBUTES), 3)}
        node = ir.node(kind, inputs, attributes)
        node.outputs[0].shape, node.outputs[0].type = _shape(draw), ir.TensorType(ir.DataType.FLOAT)
        nodes.append(node)
        values.append(node.outputs[0])
    imports = {"": draw.choice([9, 11, 13, 17, 18, 21])}
    ir.Graph([], [nodes[-1].outputs[0]], nodes=nodes, initializers=held, opset_imports=imports, name="g")
    return nodes


def test_a_rule_answers_whatever_it_is_asked() -> None:
    rules = [(entry.name, catalogue.rule_of(entry)) for entry in RULES]
    for seed in range(200):
        nodes = _graph(seed)
        for name, rule in rules:
            assert callable(rule)
            assert all(isinstance(rule(node), Match | None) for node in nodes), name


@pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in KNOWN])
def test_a_rewrite_has_a_line_that_says_what_it_does(entry: RewriteEntry) -> None:
    assert callable(catalogue.rule_of(entry))
    assert entry.help
    assert "\n" not in entry.help
    assert not entry.help.endswith(".")
    assert entry.needs in {"", "approximate", "quantize"}
    page = Path(__file__).parents[4] / "docs" / "optimize-onnx.md"
    how = f"`--allow {entry.needs}`" if entry.needs else "exact"
    assert f"| `{entry.name}` | {entry.help} | {how} |\n" in page.read_text(encoding="utf-8")
