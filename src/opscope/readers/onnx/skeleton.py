"""Serialises a model without its weights, so that the `onnx` package can process a model of any size.

Shapes, types, structure and small constants are kept. Operators that `onnx` has no schema for are replaced by stand-ins
of the same output shape (`standins`). Field numbers are those of onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator

from .model import MAX_ELEMENTS, Argument, Body, Constant, Element, Model, Node, Value
from .standins import stand_in
from .wire import Wire, encode_field, encode_number, encode_text

_IR_VERSION = 8  # new enough that initializers need not be listed as inputs (since 4)
_EXTERNAL = 1
_INTS = 7  # AttributeProto.type
_INT = 2
_STRING = 3
_GRAPH = 5
_TENSOR = 4
_STAND_IN_OPSET = 17  # knows every operator that stand-ins use
_MAX_ARGUMENT_BYTES = 65536  # longer attributes are weights (tree ensembles)
_MAX_CONSTANT_BYTES = 10 * MAX_ELEMENTS + 1024  # elements as varints, and the rest of the message


def encode_model(model: Model, wire: Wire) -> bytes:
    """Return the skeleton as a serialised ModelProto."""
    # `onnx` infers nothing at all if one node's domain is not imported; sloppy exporters forget to.
    opsets = dict.fromkeys(_domains(model.body), 1) | {"": _STAND_IN_OPSET} | dict(model.opsets)
    parts = [encode_number(1, max(_IR_VERSION, model.ir_version))]
    for domain, version in opsets.items():
        parts.append(encode_field(8, encode_text(1, domain) + encode_number(2, version)))
    parts.append(encode_field(7, _Encoder(wire).body(model.body)))
    return b"".join(parts)


def _domains(body: Body) -> Iterator[str]:
    for node in body.nodes:
        yield node.domain
        for _, inner in node.bodies():
            yield from _domains(inner)


class _Encoder:
    """Encodes messages; attributes and small constants are copied byte for byte from the file."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def body(self, body: Body) -> bytes:
        """Encode a GraphProto, with stand-ins for nodes that need them."""
        constants = [self.constant(constant) for constant in body.constants.values()]
        nodes: list[bytes] = []
        for node in body.nodes:
            replaced, made = stand_in(node, body.constants)
            nodes.extend(self.node(item) for item in replaced)
            constants.extend(self.constant(constant) for constant in made)
        ends = {value.name for value in (*body.inputs, *body.outputs)}
        values = (value for name, value in body.values.items() if name not in ends)
        return b"".join(
            (
                encode_text(2, body.name or "graph"),
                *(encode_field(1, node) for node in nodes),
                *(encode_field(5, constant) for constant in constants),
                *(encode_field(11, self.value(value)) for value in body.inputs),
                *(encode_field(12, self.value(value)) for value in body.outputs),
                *(encode_field(13, self.value(value)) for value in values),
            )
        )

    def node(self, node: Node) -> bytes:
        return b"".join(
            (
                *(encode_text(1, name) for name in node.inputs),
                *(encode_text(2, name) for name in node.outputs),
                encode_text(3, node.name),
                encode_text(4, node.op_type),
                encode_text(7, node.domain),
                *(encode_field(5, part) for part in self.arguments(node)),
            )
        )

    def arguments(self, node: Node) -> Iterator[bytes]:
        for name, argument in node.arguments.items():
            content = self.argument(argument)
            if content is not None:
                yield content + encode_text(
                    1, name
                )  # the last name wins: inside a function the copied bytes may hold another one

    def argument(self, argument: Argument) -> bytes | None:
        """Encode an AttributeProto without its name; None drops one that is too large to matter for shapes."""
        value = argument.value
        if isinstance(value, Body):
            return encode_number(20, _GRAPH) + encode_field(6, self.body(value))
        if isinstance(value, Constant):
            return encode_number(20, _TENSOR) + encode_field(5, self.constant(value))
        if argument.end > argument.start:
            small = argument.end - argument.start <= _MAX_ARGUMENT_BYTES
            return self.wire.buffer[argument.start : argument.end] if small else None
        if isinstance(value, int):
            return encode_number(20, _INT) + encode_number(3, value)
        if isinstance(value, str):
            return encode_number(20, _STRING) + encode_text(4, value)
        if isinstance(value, tuple):
            numbers = b"".join(encode_number(8, item) for item in value if isinstance(item, int))
            return encode_number(20, _INTS) + numbers
        return None

    def constant(self, constant: Constant) -> bytes:
        """Encode a TensorProto; weights become external data without content."""
        head = b"".join(encode_number(1, dim) for dim in constant.dims)
        head += encode_number(2, constant.element) + encode_text(8, constant.name)
        if constant.content:
            return head + encode_field(9, constant.content)
        size = constant.end - constant.start
        is_integer = constant.element in (Element.INT32, Element.INT64) and size <= _MAX_CONSTANT_BYTES
        if size and (is_integer or size <= MAX_ELEMENTS):
            return self.wire.buffer[constant.start : constant.end] + encode_text(8, constant.name)
        return head + encode_number(14, _EXTERNAL)

    def value(self, value: Value) -> bytes:
        name = encode_text(1, value.name)
        if value.end > value.start:
            return name + encode_field(2, self.wire.buffer[value.start : value.end])
        if value.element == 0:
            return name
        tensor = encode_number(1, value.element)
        if value.dims is not None:
            tensor += encode_field(2, b"".join(encode_field(1, _dim(dim)) for dim in value.dims))
        return name + encode_field(2, encode_field(1, tensor))


def _dim(dim: int | str | None) -> bytes:
    if isinstance(dim, int):
        return encode_number(1, dim)
    return b"" if dim is None else encode_text(2, dim)
