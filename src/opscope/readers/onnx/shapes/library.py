"""Shapes of operators without a rule here, by the `onnx` package, one node at a time.

`onnx` is imported only when such an operator occurs: loading it takes longer than reading most models.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ....core.errors import printable
from ..model import Argument
from ..wire import Wire
from .call import Call, Open, Operand

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto, TypeProto

_MAX_INPUT_ELEMENTS = 64  # of operands whose values are handed to `onnx`: shapes, axes, sizes
_MAX_ATTRIBUTE_BYTES = 65536  # longer ones are weights (tree ensembles)


def infer(call: Call, wire: Wire) -> list[Operand]:
    """Return the outputs of a node of a standard operator; raise `Open` if `onnx` does not know it, or them."""
    from onnx.defs import SchemaError, get_schema
    from onnx.helper import make_opsetid, make_tensor_type_proto
    from onnx.shape_inference import infer_node_outputs

    node = call.node
    try:
        schema = get_schema(node.op_type, call.opset, node.domain)
    except SchemaError:
        raise Open(
            f"operator {printable(node.domain or 'ai.onnx')}:{printable(node.op_type)} has no shape rule"
        ) from None
    types: dict[str, TypeProto] = {}
    for name, operand in zip(node.inputs, call.operands, strict=True):
        if operand is not None:
            if operand.shape is None:
                raise Open(operand.because)
            types[name] = make_tensor_type_proto(operand.element, operand.shape)
    opsets = [make_opsetid(node.domain, call.opset)]
    if node.domain:
        opsets.append(make_opsetid("", 17))
    try:
        found = infer_node_outputs(schema, _proto(call, wire), types, _small_inputs(call), opset_imports=opsets)
    except Exception as error:  # of the package, which checks nodes as it goes: its classes share no base
        first = next(iter(str(error).splitlines()), "no reason given")
        raise call.mismatch(f"has no output shape: {printable(first, 200)}") from error
    return [_operand(call, found[name]) if name in found else Operand() for name in node.outputs]


def _operand(call: Call, found: TypeProto) -> Operand:
    tensor = found.tensor_type
    dims = tensor.shape.dim
    if not tensor.HasField("shape") or not all(dim.HasField("dim_value") for dim in dims):
        return Operand(tensor.elem_type, None, f"decided at run time by {call.place}")
    return Operand(tensor.elem_type, tuple(dim.dim_value for dim in dims))


def _small_inputs(call: Call) -> dict[str, object]:
    """The values of small operands, as far as they are known."""
    from onnx.numpy_helper import from_array

    found: dict[str, object] = {}
    for name, operand in zip(call.node.inputs, call.operands, strict=True):
        if operand is not None and operand.shape is not None and prod(operand.shape) <= _MAX_INPUT_ELEMENTS:
            try:
                found[name] = from_array(call.values.array(name), name)
            except Open:
                continue
    return found


def _proto(call: Call, wire: Wire) -> NodeProto:
    from onnx import NodeProto

    node = call.node
    made = NodeProto(op_type=node.op_type, domain=node.domain, input=node.inputs, output=node.outputs)
    for name, argument in node.arguments.items():
        attribute = _attribute(name, argument, wire)
        if attribute is not None:
            made.attribute.append(attribute)
    return made


def _attribute(name: str, argument: Argument, wire: Wire) -> AttributeProto | None:
    from onnx import AttributeProto
    from onnx.helper import make_attribute

    if 0 < argument.end - argument.start <= _MAX_ATTRIBUTE_BYTES:
        found = AttributeProto()
        found.ParseFromString(wire.buffer[argument.start : argument.end])
        found.name = name  # a function's argument may stand under another name than the one it is read by
        return found
    value = argument.value
    if isinstance(value, int | float | str) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        return make_attribute(name, value)
    return None
