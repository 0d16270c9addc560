"""Parser of ONNX's protobuf messages. Field numbers are those of onnx.proto; a tag is `number << 3 | wire type`."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from struct import unpack, unpack_from
from typing import TypeVar

from ...core.errors import printable
from .model import (
    DTYPES,
    MAX_ELEMENTS,
    Argument,
    Body,
    Constant,
    Content,
    Dims,
    Element,
    Function,
    Model,
    Node,
    Reference,
    Value,
    packed_bytes,
)
from .origin import origin_of
from .wire import Wire, signed

MAX_DEPTH = 32  # graphs within graphs; real models nest 2 or 3
MAX_ITEMS = 1_000_000  # nodes, initializers or values of one graph; a hostile file must not eat the memory
MAX_MODEL_FIELDS = 100_000
MAX_RANK = 64
MAX_SCALES = 16
MAX_ATTRIBUTES = 10_000
MAX_METADATA_BYTES = 1 << 16  # of one entry of a node's metadata; a stack trace has some kilobytes
MAX_DETAILS = 32  # metadata entries kept for the user to see
MAX_DETAIL_CHARACTERS = 200
_NO_NAMES = frozenset({"", "?", "-1", "None"})  # paddle2onnx and others write these: each such dimension is its own

_Item = TypeVar("_Item")


def parse_model(wire: Wire, start: int, end: int) -> Model:
    """Parse a ModelProto. The graph is parsed last, after the opsets and functions that follow it in the file."""
    graph: tuple[int, int] | None = None
    opsets: dict[str, int] = {}
    functions: dict[tuple[str, str, str], Function] = {}
    details: dict[str, str] = {}
    ir_version = 0
    for count, (tag, a, b) in enumerate(wire.fields(start, end)):
        if count >= MAX_MODEL_FIELDS:
            raise wire.error(end, f"more than {MAX_MODEL_FIELDS:,} functions, opsets and metadata entries")
        if tag == 0x3A:  # graph
            if graph is not None:
                raise wire.error(a, "the model has a second graph; expected one")
            graph = (a, b)
        elif tag == 0x42:  # opset_import
            opsets.update(_opset(wire, a, b))
        elif tag == 0xCA:  # functions
            function = _function(wire, a, b)
            functions[function.domain, function.name, function.overload] = function
        elif tag == 0x08:  # ir_version
            ir_version = signed(a)
        elif tag == 0x12:  # producer_name
            details["producer"] = _brief(wire, a, b)
        elif tag == 0x1A:  # producer_version
            details["producer version"] = _brief(wire, a, b)
        elif tag == 0x72 and len(details) < MAX_DETAILS:  # metadata_props
            key, value = _pair(wire, a, b)
            details[f"metadata {key}"] = value
    if graph is None:
        raise wire.error(end, "the model has no graph; expected field 7 (graph) of an ONNX ModelProto")
    body = _body(wire, *graph, prefix="", depth=0)
    return Model(body, opsets or {"": 1}, functions, ir_version, details)


def _opset(wire: Wire, start: int, end: int) -> dict[str, int]:
    domain, version = "", 0
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # domain
            domain = _domain(wire, a, b)
        elif tag == 0x10:  # version
            version = signed(a)
    return {domain: version}


def _domain(wire: Wire, start: int, end: int) -> str:
    domain = wire.text(start, end)
    return "" if domain == "ai.onnx" else domain  # two spellings of the default domain


def _pair(wire: Wire, start: int, end: int) -> tuple[str, str]:
    key = value = ""
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # key
            key = _brief(wire, a, b)
        elif tag == 0x12:  # value
            value = _brief(wire, a, b)
    return key, value


def _brief(wire: Wire, start: int, end: int) -> str:
    """Decode a string, cut to the length that is shown to the user."""
    return printable(wire.text(start, min(end, start + 4 * MAX_DETAIL_CHARACTERS)), MAX_DETAIL_CHARACTERS)


def _function(wire: Wire, start: int, end: int) -> Function:
    """Parse a FunctionProto; its nodes come last because their locations need its name."""
    name = domain = overload = ""
    inputs: list[str] = []
    outputs: list[str] = []
    defaults: dict[str, Argument] = {}
    spans: list[tuple[int, int]] = []
    opsets: dict[str, int] = {}
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # name
            name = wire.text(a, b)
        elif tag == 0x22:  # input
            inputs.append(wire.text(a, b))
        elif tag == 0x2A:  # output
            outputs.append(wire.text(a, b))
        elif tag == 0x3A:  # node
            spans.append((a, b))
            _check_count(wire, a, len(spans), "nodes")
        elif tag == 0x4A:  # opset_import
            opsets.update(_opset(wire, a, b))
        elif tag == 0x52:  # domain
            domain = _domain(wire, a, b)
        elif tag == 0x5A:  # attribute_proto
            key, argument = _argument(wire, a, b, "", 0)
            defaults[key] = argument
        elif tag == 0x6A:  # overload
            overload = wire.text(a, b)
    prefix = f"function {printable(name)} "
    # The name may stand after the nodes in the file, hence the second pass over the recorded byte ranges.
    nodes = [_node(wire, a, b, f"{prefix}node {index}", 0) for index, (a, b) in enumerate(spans)]
    return Function(name, domain, overload, tuple(inputs), tuple(outputs), defaults, nodes, opsets)


def _body(wire: Wire, start: int, end: int, *, prefix: str, depth: int) -> Body:
    """Parse a GraphProto; `prefix` is its place for locations such as `node 5 body node 2`."""
    if depth > MAX_DEPTH:
        raise wire.error(start, f"graphs are nested deeper than {MAX_DEPTH} levels")
    name = ""
    nodes: list[Node] = []
    constants: dict[str, Constant] = {}
    inputs: list[Value] = []
    outputs: list[Value] = []
    values: list[Value] = []
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # node
            _check_count(wire, a, len(nodes), "nodes")
            nodes.append(_node(wire, a, b, f"{prefix}node {len(nodes)}", depth))
        elif tag == 0x6A:  # value_info
            _add_value(wire, values, a, b)
        elif tag == 0x2A:  # initializer
            _add_initializer(wire, constants, parse_constant(wire, a, b), a)
        elif tag == 0x5A:  # input
            _add_value(wire, inputs, a, b)
        elif tag == 0x62:  # output
            _add_value(wire, outputs, a, b)
        elif tag == 0x12:  # name
            name = wire.text(a, b)
        elif tag == 0x7A:  # sparse_initializer
            _add_initializer(wire, constants, _sparse_constant(wire, a, b), a)
    # The same name may occur in several lists; a graph input's own entry wins, then value_info, then the outputs.
    by_name = {value.name: value for value in (*outputs, *values, *inputs)}
    return Body(name, nodes, constants, inputs, outputs, by_name)


def _check_count(wire: Wire, at: int, count: int, what: str) -> None:
    """Raise an error once a repeated field has MAX_ITEMS entries."""
    if count >= MAX_ITEMS:
        raise wire.error(at, f"more than {MAX_ITEMS:,} {what}")


def _add_value(wire: Wire, values: list[Value], start: int, end: int) -> None:
    _check_count(wire, start, len(values), "values")
    values.append(_value(wire, start, end))


def _add_initializer(wire: Wire, constants: dict[str, Constant], constant: Constant, at: int) -> None:
    """Add an initializer; of several with one name the last counts, as in ONNX Runtime."""
    _check_count(wire, at, len(constants), "initializers")
    if not constant.name:
        raise wire.error(at, "an initializer has no name")
    constants[constant.name] = constant


def _node(wire: Wire, start: int, end: int, location: str, depth: int) -> Node:
    """Parse a NodeProto. Called for every node, so names are decoded inline."""
    op_type = domain = name = overload = ""
    inputs: list[str] = []
    outputs: list[str] = []
    arguments: dict[str, Argument] = {}
    metadata: dict[str, str] = {}
    buffer = wire.buffer
    attributes = 0
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # input
            inputs.append(buffer[a:b].decode("utf-8", "replace"))
        elif tag == 0x12:  # output
            outputs.append(buffer[a:b].decode("utf-8", "replace"))
        elif tag == 0x2A:  # attribute
            attributes += 1
            if attributes > MAX_ATTRIBUTES:
                raise wire.error(a, f"{location} has more than {MAX_ATTRIBUTES:,} attributes")
            key, argument = _argument(wire, a, b, location, depth)
            arguments[key] = argument
        elif tag == 0x22:  # op_type
            op_type = wire.text(a, b)
        elif tag == 0x1A:  # name
            name = wire.text(a, b)
        elif tag == 0x3A:  # domain
            domain = _domain(wire, a, b)
        elif tag == 0x42:  # overload
            overload = wire.text(a, b)
        elif tag == 0x4A and b - a < MAX_METADATA_BYTES:  # metadata_props
            metadata.update([key_and_value(wire, a, b)])
    if not op_type:
        raise wire.error(start, f"{location} has no operator type (op_type)")
    origin = origin_of(metadata) if metadata else ("", "")
    return Node(op_type, domain, name, tuple(inputs), tuple(outputs), arguments, location, overload, *origin)


def _argument(wire: Wire, start: int, end: int, location: str, depth: int) -> tuple[str, Argument]:
    """Parse an AttributeProto into (name, value). The value field that is present decides, not `type`."""
    name = ""
    value: Content = None
    integers: list[int] = []
    floats: list[float] = []
    strings: list[str] = []
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # name
            name = wire.text(a, b)
        elif tag == 0x40:  # ints
            _extend(integers, (signed(a),))
        elif tag == 0x42:  # ints, packed
            _extend(integers, _packed_integers(wire, a, b))
        elif tag == 0x3D:  # floats
            _extend(floats, (_float(wire, a),))
        elif tag == 0x3A:  # floats, packed
            _extend(floats, _packed_floats(wire, a, b))
        elif tag == 0x4A:  # strings
            _extend(strings, (wire.text(a, min(b, a + MAX_ELEMENTS)),))
        elif tag == 0x32:  # g, a graph
            value = _body(wire, a, b, prefix=f"{location} {printable(name)} ", depth=depth + 1)
        else:
            value = _scalar_attribute(wire, tag, a, b, value)
    if value is None:
        value = tuple(integers) or tuple(floats) or tuple(strings) or None
    return name, Argument(value, start, end)


def _scalar_attribute(wire: Wire, tag: int, a: int, b: int, current: Content) -> Content:
    """Return the value of a non-repeated attribute field; `current` for any other field."""
    if tag == 0x18:  # i
        return signed(a)
    if tag == 0x15:  # f
        return _float(wire, a)
    if tag == 0x22:  # s
        return wire.text(a, min(b, a + MAX_ELEMENTS))
    if tag == 0x2A:  # t, a tensor
        return parse_constant(wire, a, b)
    if tag == 0xB2:  # sparse_tensor
        return _sparse_constant(wire, a, b)
    if tag == 0xAA:  # ref_attr_name
        return Reference(wire.text(a, b))
    return current


def _extend(items: list[_Item], more: tuple[_Item, ...]) -> None:
    """Extend a list up to the limit; longer lists are weights (tree ensembles) that no op kind needs."""
    if len(items) < MAX_ELEMENTS:
        items.extend(more)


def _packed_integers(wire: Wire, start: int, end: int) -> tuple[int, ...]:
    """Decode packed integers; empty if they are more than MAX_ELEMENTS (a varint has at most 10 bytes)."""
    if end - start > 10 * MAX_ELEMENTS:
        return ()
    return tuple(signed(value) for value in wire.varints(start, end))


def _packed_floats(wire: Wire, start: int, end: int) -> tuple[float, ...]:
    count = (end - start) // 4
    return unpack_from(f"<{count}f", wire.buffer, start) if count <= MAX_ELEMENTS else ()


def _float(wire: Wire, start: int) -> float:
    content = wire.buffer[start : start + 4]
    if len(content) < 4:
        raise wire.error(start, "the file ends inside a float")
    number: float = unpack("<f", content)[0]
    return number


def _value(wire: Wire, start: int, end: int) -> Value:
    """Parse a ValueInfoProto."""
    name = ""
    type_span: tuple[int, int] | None = None
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # name
            name = wire.text(a, b)
        elif tag == 0x12:  # type
            type_span = (a, b)
    if type_span is None:
        return Value(name)
    for tag, a, b in wire.fields(*type_span):
        if tag in (0x0A, 0x42):  # tensor_type, sparse_tensor_type: same fields
            return _tensor_type(wire, a, b, name)
        if tag in (0x22, 0x2A, 0x3A, 0x4A):  # sequence, map, opaque, optional
            return Value(name, 0, None, False, *type_span)
    return Value(name)


def _tensor_type(wire: Wire, start: int, end: int, name: str) -> Value:
    element = 0
    dims: Dims | None = None
    for tag, a, b in wire.fields(start, end):
        if tag == 0x08:  # elem_type
            element = a
        elif tag == 0x12:  # shape
            dims = _shape(wire, a, b)
    return Value(name, element, dims)


def _shape(wire: Wire, start: int, end: int) -> Dims:
    dims: list[int | str | None] = []
    buffer = wire.buffer
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # dim
            if len(dims) >= MAX_RANK:
                raise wire.error(a, f"a shape has more than {MAX_RANK} dimensions")
            is_small = (
                b - a == 2 and buffer[a] == 0x08 and buffer[a + 1] < 0x80
            )  # dim_value in one byte, the usual case, without a call
            dims.append(buffer[a + 1] if is_small else _dim(wire, a, b))
    return tuple(dims)


def _dim(wire: Wire, start: int, end: int) -> int | str | None:
    dim: int | str | None = None
    for tag, a, b in wire.fields(start, end):
        if tag == 0x08:  # dim_value
            extent = signed(a)
            dim = extent if extent >= 0 else None  # some exporters write -1 for "unknown"
        elif tag == 0x12:  # dim_param
            name = wire.text(a, b)
            dim = None if name in _NO_NAMES else name
    return dim


def parse_constant(wire: Wire, start: int, end: int) -> Constant:
    """Parse a TensorProto. Its elements stay in the file, unless they are a few integers."""
    name = ""
    dims: list[int] = []
    element = 0
    raw: tuple[int, int] | None = None
    typed: list[tuple[int, int, int]] = []
    external_bytes: int | None = None
    string_bytes = 0
    for tag, a, b in wire.fields(start, end):
        if tag == 0x4A:  # raw_data
            raw = (a, b)
        elif tag == 0x08:  # dims
            _add_dims(wire, dims, (a,), b)
        elif tag == 0x0A:  # dims, packed
            _add_dims(wire, dims, wire.varints(a, b), a)
        elif tag == 0x10:  # data_type
            element = a
        elif tag == 0x42:  # name
            name = wire.text(a, b)
        elif tag in (0x2A, 0x28, 0x3A, 0x38):  # int32_data, int64_data: packed or one by one
            if len(typed) <= MAX_ELEMENTS:
                typed.append((tag, a, b))
        elif tag == 0x32:  # string_data
            string_bytes += b - a
        elif tag == 0x6A:  # external_data
            external_bytes = _external_length(wire, a, b, external_bytes)
    wire.release_pages(end - start)
    stored = _stored_bytes(
        wire, start, name, dims, element, raw=raw, external_bytes=external_bytes, string_bytes=string_bytes
    )
    integers = _small_integers(wire, dims, element, raw, typed)
    return Constant(name, tuple(dims), element, stored, start, end, integers)


def _add_dims(wire: Wire, dims: list[int], extents: Iterable[int], at: int) -> None:
    for extent in extents:
        if len(dims) >= MAX_RANK:
            raise wire.error(at, f"a constant has more than {MAX_RANK} dimensions")
        dims.append(_extent(wire, extent, at))


def _extent(wire: Wire, value: int, at: int) -> int:
    if signed(value) < 0:
        raise wire.error(at, f"a constant's dimension is {signed(value)}; expected 0 or more")
    return value


def key_and_value(wire: Wire, start: int, end: int) -> tuple[str, str]:
    """Return one StringStringEntryProto, such as the location or the length of a tensor's external data."""
    key = value = ""
    for tag, a, b in wire.fields(start, end):
        if tag == 0x0A:  # key
            key = wire.text(a, b)
        elif tag == 0x12:  # value
            value = wire.text(a, b)
    return key, value


def _external_length(wire: Wire, start: int, end: int, known: int | None) -> int | None:
    """Return the `length` entry of a tensor's external data; `known` for any other entry."""
    key, value = key_and_value(wire, start, end)
    return int(value) if key == "length" and value.isascii() and value.isdigit() and len(value) < 20 else known


def _stored_bytes(
    wire: Wire,
    start: int,
    name: str,
    dims: list[int],
    element: int,
    *,
    raw: tuple[int, int] | None,
    external_bytes: int | None,
    string_bytes: int,
) -> int | None:
    """Return the size of a tensor's data in bytes, checked against its shape; None if it is unknown."""
    if element == Element.STRING:
        return string_bytes
    if external_bytes is not None:
        return external_bytes
    # An element type newer than this reader: only raw data tells the size.
    if element not in DTYPES:
        return raw[1] - raw[0] if raw else None
    expected = packed_bytes(dims, element)
    # Emptied raw_data is how models are published without their weights: the shape still tells the size.
    if raw is not None and raw[1] - raw[0] not in (0, expected):
        shape = "×".join(map(str, dims)) or "scalar"
        problem = f"tensor {printable(name)!r} holds {raw[1] - raw[0]} bytes; {shape} {DTYPES[element].label} needs"
        raise wire.error(start, f"{problem} {expected}")
    return expected


def _small_integers(
    wire: Wire, dims: list[int], element: int, raw: tuple[int, int] | None, typed: list[tuple[int, int, int]]
) -> tuple[int, ...] | None:
    """Return the elements of a small int32, int64 or bool constant; None for any other constant."""
    count = prod(dims)
    if element not in (Element.INT32, Element.INT64, Element.BOOL) or count > MAX_ELEMENTS:
        return None
    if raw is not None:
        width = {Element.INT32: "i", Element.INT64: "q", Element.BOOL: "B"}[Element(element)]
        content = wire.buffer[raw[0] : raw[1]]
        return unpack(f"<{count}{width}", content) if len(content) == packed_bytes(dims, element) else None
    # No raw_data: the elements are in int32_data or int64_data, packed into one field or repeated one by one.
    found: list[int] = []
    for tag, a, b in typed:
        found.extend((signed(a),) if tag & 7 == 0 else _packed_integers(wire, a, b))
    return tuple(found) if len(found) == count else None


def small_floats(wire: Wire, constant: Constant) -> tuple[float, ...] | None:
    """Return the elements of a small float32 constant, such as the scales of a Resize; None for any other."""
    count = prod(constant.dims)
    if constant.element != Element.FLOAT or count > MAX_SCALES:
        return None
    found: list[float] = []
    if constant.content:
        found.extend(unpack(f"<{len(constant.content) // 4}f", constant.content))
    for tag, a, b in wire.fields(constant.start, constant.end):
        if tag in (0x4A, 0x22):  # raw_data; float_data, packed
            found.extend(_packed_floats(wire, a, b))
        elif tag == 0x25:  # float_data, one by one
            found.append(_float(wire, a))
    return tuple(found) if len(found) == count else None


def _sparse_constant(wire: Wire, start: int, end: int) -> Constant:
    """Parse a SparseTensorProto: dense shape, stored values and indices."""
    dims: list[int] = []
    parts: dict[int, Constant] = {}
    for tag, a, b in wire.fields(start, end):
        if tag in (0x0A, 0x12):  # values, indices
            parts[tag] = parse_constant(wire, a, b)
        elif tag == 0x18:  # dims
            _add_dims(wire, dims, (a,), b)
        elif tag == 0x1A:  # dims, packed
            _add_dims(wire, dims, wire.varints(a, b), a)
    if 0x0A not in parts:
        raise wire.error(start, "a sparse tensor has no values")
    values = parts[0x0A]
    stored = sum(part.stored_bytes or 0 for part in parts.values())
    return Constant(values.name, tuple(dims), values.element, stored)
