"""ONNX operators inside MLIR (`torch.operator "onnx.X"` with `torch.onnx.*` attributes), by the ONNX reader's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..onnx.attributes import Site as OnnxSite
from ..onnx.model import Argument, Node
from ..onnx.ops import Rule as OnnxRule
from ..onnx.ops import rule_of
from .site import Attributes, Site, attribute_value

if TYPE_CHECKING:
    from iree.compiler import ir

_PREFIX = "torch.onnx."
_DEFAULT_OPSET = 17


def operator_name(op: ir.Operation) -> str:
    """Return `onnx.Conv` for such a torch.operator; empty for other operations."""
    return str(op.attributes["name"].value) if str(op.name) == "torch.operator" and "name" in op.attributes else ""


def onnx_rule(op: ir.Operation, site: Site, opset: int) -> tuple[OnnxRule | None, Attributes]:
    """Return the ONNX rule of an operator and its attributes; (None, {}) if the ONNX reader has no rule."""
    node = _node(op, len(site.inputs), len(site.outputs))
    rule = rule_of(node)
    if rule is None:
        return None, {}
    found = rule.describe(OnnxSite(node, site.inputs, site.outputs, site.constants, opset))
    return rule, dict(found)


def opset_of(function: ir.Operation) -> int:
    """Return the opset that torch-mlir recorded on the function."""
    value = attribute_value(function, "torch.onnx_meta.opset_version")
    return value if isinstance(value, int) else _DEFAULT_OPSET


def _node(op: ir.Operation, inputs: int, outputs: int) -> Node:
    """Convert the operation to an ONNX node with invented tensor names, which the rules do not read."""
    full_name = operator_name(op).removeprefix("onnx.")
    domain, _, op_type = full_name.rpartition(".")
    arguments = {}
    for name in op.attributes:
        if name.startswith(_PREFIX):
            arguments[name.removeprefix(_PREFIX)] = Argument(attribute_value(op, name))
    return Node(
        op_type,
        domain,
        "",
        tuple(f"i{n}" for n in range(inputs)),
        tuple(f"o{n}" for n in range(outputs)),
        arguments,
        str(op.location),
    )
