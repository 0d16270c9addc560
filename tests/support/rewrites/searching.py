"""A search over small models: a judge who counts ops, and rules that help, open another, fail or are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx
import onnx_ir as ir

from opscope.core.manifest import RewriteEntry
from opscope.core.provenance import Provenance
from opscope.rewrites.judge import Judged, OpCost
from opscope.rewrites.onnx.rule import Maker, Match, is_op, only_reader

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3,4,5] x, float[2,3,4,5] z) => (float[2,3,4,5] y, float[2,3,4,5] w) {
    [to] a = Transpose <perm = [0,2,3,1]> (x)
    [back] b = Transpose <perm = [0,3,1,2]> (a)
    [one] c = Relu (b)
    [two] d = Relu (z)
    [last] y = Sigmoid (c)
    [other] w = Softplus (d)
}"""


def write_model(path: Path, text: str = TEXT) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


@dataclass
class Counting:
    """A judge to whom an op costs what its type says; files that hold some type are refused."""

    costs: Mapping[str, int]
    refused: str = ""
    asked: list[str] = field(default_factory=list)
    key: str = "counting"

    def ask(self, model: Path, *, longest_s: float) -> Judged:
        assert longest_s > 0
        nodes = onnx.load(model).graph.node
        kinds = [node.op_type for node in nodes]
        self.asked.append(" ".join(kinds))
        if self.refused in kinds:
            return Judged(problem=f"{self.refused} is not for me")
        total = sum(self.costs.get(kind, 100) for kind in kinds)
        ops = {node.name: OpCost(cost := self.costs.get(node.op_type, 100), cost) for node in nodes}
        return Judged(total, total, total, Provenance.ESTIMATED, "estimated", total, ops=ops)


def entry(name: str, needs: str = "") -> RewriteEntry:
    return RewriteEntry(name, "one for another", f"nowhere:{name}", needs=needs)


def swap(node: ir.Node, old: str, *new: str) -> Match | None:
    """An op for others of one input, one after the other."""
    if not is_op(node, old):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        value = node.inputs[0]
        for kind in new:
            value = make.op(kind, value)
        return {node.outputs[0]: value}

    return Match((node,), build)


def relu_to_leaky(node: ir.Node) -> Match | None:
    """Wrong."""
    return swap(node, "Relu", "LeakyRelu")


def relu_twice(node: ir.Node) -> Match | None:
    """Exact, and slower: what is not below zero stays so. It opens `two_relus`."""
    readers = only_reader(node.outputs[0])
    source = node.inputs[0].producer() if node.inputs else None
    if not is_op(node, "Relu") or is_op(readers, "Relu") or is_op(source, "Relu"):
        return None
    return swap(node, "Relu", "Relu", "Relu")


def two_relus(node: ir.Node) -> Match | None:
    """Two of them as one op with a limit below."""
    first = node.inputs[0].producer() if is_op(node, "Relu") else None
    if first is None or not is_op(first, "Relu"):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {node.outputs[0]: make.op("ThresholdedRelu", first.inputs[0], alpha=0.0)}

    return Match((node, first), build)


def relu_to_limit(node: ir.Node) -> Match | None:
    """Exact."""
    if not is_op(node, "Relu"):
        return None
    return Match((node,), lambda make: {node.outputs[0]: make.op("ThresholdedRelu", node.inputs[0], alpha=0.0)})


def softplus_to_sigmoid(node: ir.Node) -> Match | None:
    """Off by much."""
    return swap(node, "Softplus", "Sigmoid")


def sigmoid_to_hard(node: ir.Node) -> Match | None:
    """Off by little."""
    if not is_op(node, "Sigmoid"):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        return {node.outputs[0]: make.op("HardSigmoid", node.inputs[0], alpha=0.2, beta=0.5)}

    return Match((node,), build)


def raises(node: ir.Node) -> Match | None:
    raise IndexError(f"no input of {node.name}")


RULES = {
    "relu-to-leaky": relu_to_leaky,
    "relu-twice": relu_twice,
    "two-relus": two_relus,
    "relu-to-limit": relu_to_limit,
    "softplus-to-sigmoid": softplus_to_sigmoid,
    "sigmoid-to-hard": sigmoid_to_hard,
    "raises": raises,
}
