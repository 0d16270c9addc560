"""Stand-ins for ONNX Runtime's own operators (domain com.microsoft): standard nodes with the same output shapes.

`onnx` infers no shapes through operators it has no schema for. Registering schemas would change a registry shared by
the whole process; replacing the nodes in the skeleton changes nothing outside. Only shapes and types matter here, never
values: a normalisation becomes an Identity, a quantised product a MatMul. Operators:
https://github.com/microsoft/onnxruntime, docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import pack

from .model import MICROSOFT, Argument, Constant, Element, Node

StandIn = tuple[list[Node], list[Constant]]
_Constants = Mapping[str, Constant]
_Rule = Callable[[Node, _Constants], StandIn]


def stand_in(node: Node, constants: _Constants) -> StandIn:
    """Return the nodes and constants that replace `node` for shape inference; the node itself if none are needed."""
    if node.domain == MICROSOFT or node.op_type in _IN_DEFAULT_DOMAIN:
        rule = RULES.get(node.op_type)
        if rule is not None and node.inputs and node.outputs:
            return rule(node, constants)
    return [node], []


def _new_node(op_type: str, inputs: list[str], output: str, **arguments: int | str | tuple[int, ...]) -> Node:
    made = {name: Argument(value) for name, value in arguments.items()}
    return Node(op_type, "", "", tuple(inputs), (output,), made, "")


def _integer_constant(name: str, values: tuple[int, ...], *, scalar: bool = False) -> Constant:
    dims = () if scalar else (len(values),)
    content = pack(f"<{len(values)}q", *values)
    return Constant(name, dims, Element.INT64, len(content), integers=values, content=content)


def _input(node: Node, index: int) -> str:
    return node.inputs[index] if index < len(node.inputs) else ""


def _output(node: Node, index: int) -> str:
    return node.outputs[index] if index < len(node.outputs) else ""


def _same_shape(node: Node, constants: _Constants) -> StandIn:
    return [_new_node("Identity", [node.inputs[0]], node.outputs[0])], []


def _skip_norm(node: Node, constants: _Constants) -> StandIn:
    """Output, mean, inverse deviation, sum of input and skip; the second and third are for training."""
    outputs = [name for name in (_output(node, 0), _output(node, 3)) if name]
    return [_new_node("Identity", [node.inputs[0]], name) for name in outputs], []


def _embed_norm(node: Node, constants: _Constants) -> StandIn:
    """Token ids (batch, sequence) become rows of the word table; the mask index has one number per batch entry."""
    nodes = [
        _new_node("Gather", [_input(node, 2), node.inputs[0]], name)
        for name in (_output(node, 0), _output(node, 2))
        if name
    ]
    if _output(node, 1):
        nodes.append(_new_node("Einsum", [node.inputs[0]], node.outputs[1], equation="bs->b"))
    return nodes, []


def _as_standard(op_type: str, *inputs: int) -> _Rule:
    """Rule for a standard operator with the same attributes on the listed inputs (on all, if none are listed)."""

    def rule(node: Node, constants: _Constants) -> StandIn:
        names = tuple(_input(node, index) for index in inputs) if inputs else node.inputs
        while names and not names[-1]:
            names = names[:-1]
        return [node._replace(op_type=op_type, domain="", inputs=names, outputs=node.outputs[:1])], []

    return rule


def _to_float(rule: _Rule) -> _Rule:
    """Wrap a rule so that its output is float: same shape, dequantised."""

    def wrapped(node: Node, constants: _Constants) -> StandIn:
        quantised = f"{node.outputs[0]}@whole"
        nodes, made = rule(node._replace(outputs=(quantised,)), constants)
        return [*nodes, _new_node("Cast", [quantised], node.outputs[0], to=int(Element.FLOAT))], made

    return wrapped


def _fused_matmul(node: Node, constants: _Constants) -> StandIn:
    """A product whose operands may be transposed in their last two dimensions.

    Einsum transposes operands of any rank; Transpose would need to know the rank.
    """
    if node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        return [node], []
    nodes: list[Node] = []
    operands = list(node.inputs[:2])
    for index, flag in enumerate(("transA", "transB")):
        if node.integer(flag, 0) and index < len(operands):
            transposed = f"{node.outputs[0]}@{flag}"
            nodes.append(_new_node("Einsum", [operands[index]], transposed, equation="...ij->...ji"))
            operands[index] = transposed
    return [*nodes, _new_node("MatMul", operands, node.outputs[0])], []


def _fused_gemm(node: Node, constants: _Constants) -> StandIn:
    kept = {name: node.arguments[name] for name in ("transA", "transB") if name in node.arguments}
    return [node._replace(op_type="Gemm", domain="", inputs=node.inputs[:2], arguments=kept)], []


def _quantised_gemm(node: Node, constants: _Constants) -> StandIn:
    def rule(call: Node, known: _Constants) -> StandIn:
        return _fused_gemm(call._replace(inputs=(call.inputs[0], _input(call, 3))), known)

    quantised_output = bool(_input(node, 7))  # y_scale
    return rule(node, constants) if quantised_output else _to_float(rule)(node, constants)


def _product_with(node: Node, rows: int, columns: int) -> StandIn:
    """Input 0 times weights of the given logical shape, however the file stores them."""
    weights = Constant(f"{node.outputs[0]}@weights", (rows, columns), Element.FLOAT, None)
    return [_new_node("MatMul", [node.inputs[0], weights.name], node.outputs[0])], [weights]


def _matmul_nbits(node: Node, constants: _Constants) -> StandIn:
    rows, columns = node.integer("K", 0), node.integer("N", 0)
    return _product_with(node, rows, columns) if rows > 0 and columns > 0 else ([node], [])


def _packed_attention(node: Node, constants: _Constants) -> StandIn:
    """Data times the joint weights of query, key and value; the output has the width of the value."""
    weights = constants.get(_input(node, 1))
    if weights is None or len(weights.dims) != 2:
        return [node], []
    sizes = node.integers("qkv_hidden_sizes")
    width = sizes[2] if sizes and len(sizes) == 3 else weights.dims[1] // 3
    return _product_with(node, weights.dims[0], width)


def _multi_head(node: Node, constants: _Constants) -> StandIn:
    """Query is (batch, sequence, hidden), or query, key and value are packed as (batch, sequence, heads, 3, size)."""
    out = node.outputs[0]
    if not _input(node, 1):
        first, flat = _integer_constant(f"{out}@first", (0,), scalar=True), _integer_constant(f"{out}@flat", (0, 0, -1))
        query = _new_node("Gather", [node.inputs[0], first.name], f"{out}@query", axis=3)
        return [query, _new_node("Reshape", [f"{out}@query", flat.name], out)], [first, flat]
    nodes = [_new_node("Identity", [node.inputs[0]], out)]
    made: list[Constant] = []
    heads = node.integer("num_heads", 0)
    for new_input, past_input, present_output in ((1, 6, 1), (2, 7, 2)):
        if heads and _output(node, present_output):
            more, constant = _append_to_cache(
                node, _input(node, new_input), _input(node, past_input), node.outputs[present_output], heads
            )
            nodes += more
            made.append(constant)
    return nodes, made


def _grouped_query(node: Node, constants: _Constants) -> StandIn:
    """Query is (batch, sequence, hidden), or query, key and value are concatenated in the last dimension."""
    out, heads, groups = node.outputs[0], node.integer("num_heads", 0), node.integer("kv_num_heads", 0)
    if not heads or not groups or heads + 2 * groups > 65536:
        return [node], []
    if _input(node, 1):
        nodes, made = [_new_node("Identity", [node.inputs[0]], out)], list[Constant]()
        sources = (_input(node, 1), _input(node, 2))
    else:
        nodes, made = _unpack_query_key_value(node, heads, groups)
        sources = (f"{out}@key", f"{out}@value")
    for source, past_input, present_output in ((sources[0], 3, 1), (sources[1], 4, 2)):
        if _output(node, present_output):
            more, constant = _append_to_cache(
                node, source, _input(node, past_input), node.outputs[present_output], groups
            )
            nodes += more
            made.append(constant)
    return nodes, made


def _unpack_query_key_value(node: Node, heads: int, groups: int) -> StandIn:
    """Split a packed projection (batch, sequence, (heads + 2 × groups) × size) into query, key and value."""
    out = node.outputs[0]
    split = _integer_constant(f"{out}@split", (0, 0, heads + 2 * groups, -1))
    flat = _integer_constant(f"{out}@flat", (0, 0, -1))
    nodes, made = [_new_node("Reshape", [node.inputs[0], split.name], f"{out}@heads")], [split, flat]
    for name, result, count in (
        ("query", out, heads),
        ("key", f"{out}@key", groups),
        ("value", f"{out}@value", groups),
    ):
        pick = _integer_constant(f"{out}@pick {name}", tuple(range(count)))
        nodes.append(_new_node("Gather", [f"{out}@heads", pick.name], f"{out}@4d {name}", axis=2))
        nodes.append(_new_node("Reshape", [f"{out}@4d {name}", flat.name], result))
        made.append(pick)
    return nodes, made


def _append_to_cache(node: Node, new: str, past: str, present: str, heads: int) -> tuple[list[Node], Constant]:
    """Reshape new keys or values (batch, sequence, heads × size) and append them to the cache.

    The result is (batch, heads, past + sequence, size).
    """
    shape = _integer_constant(f"{present}@shape", (0, 0, heads, -1))
    transposed = f"{present}@turned" if past else present
    nodes = [
        _new_node("Reshape", [new, shape.name], f"{present}@split"),
        _new_node("Transpose", [f"{present}@split"], transposed, perm=(0, 2, 1, 3)),
    ]
    if past:
        nodes.append(_new_node("Concat", [past, transposed], present, axis=2))
    return nodes, shape


def _channels_last_conv(node: Node, constants: _Constants) -> StandIn:
    """Convolution in NHWC, as Conv between two transposes; the operator has two spatial dimensions in practice."""
    out = node.outputs[0]
    first = _new_node("Transpose", [node.inputs[0]], f"{out}@nchw", perm=(0, 3, 1, 2))
    conv = node._replace(op_type="Conv", domain="", inputs=(f"{out}@nchw", _input(node, 1)), outputs=(f"{out}@conv",))
    return [first, conv, _new_node("Transpose", [f"{out}@conv"], out, perm=(0, 2, 3, 1))], []


def _channels_first(rule: _Rule) -> _Rule:
    """Wrap a rule so that it applies to channels-first nodes only; the standard operators have no other layout."""

    def wrapped(node: Node, constants: _Constants) -> StandIn:
        if node.integer("channels_last", 0):
            return [node], []
        kept = {name: argument for name, argument in node.arguments.items() if name != "channels_last"}
        return rule(node._replace(arguments=kept), constants)

    return wrapped


def _quantised_concat(node: Node, constants: _Constants) -> StandIn:
    """Inputs are output scale and zero point, then (tensor, scale, zero point) for each operand."""
    return [node._replace(op_type="Concat", domain="", inputs=node.inputs[2::3])], []


_SAME_SHAPE = (
    "Gelu BiasGelu FastGelu QuickGelu RotaryEmbedding Inverse QLinearSigmoid QLinearLeakyRelu QLinearSoftmax "
    "BiasSoftmax BiasAdd BiasDropout LayerNormalization SimplifiedLayerNormalization GroupNorm SkipGroupNorm "
    "MoE QMoE Trilu"
)
_IN_DEFAULT_DOMAIN = frozenset(
    {"SimplifiedLayerNormalization"}
)  # ONNX Runtime keeps it there, without a schema in onnx

RULES: Mapping[str, _Rule] = dict.fromkeys(_SAME_SHAPE.split(), _same_shape) | {
    "SkipLayerNormalization": _skip_norm,
    "SkipSimplifiedLayerNormalization": _skip_norm,
    "EmbedLayerNormalization": _embed_norm,
    "QLinearAdd": _as_standard("Add", 0, 3),
    "QLinearMul": _as_standard("Mul", 0, 3),
    "QLinearConcat": _quantised_concat,
    "QLinearAveragePool": _channels_first(_as_standard("AveragePool", 0)),
    "QLinearGlobalAveragePool": _channels_first(_as_standard("GlobalAveragePool", 0)),
    "QLinearConv": _channels_first(_as_standard("QLinearConv")),
    "QuantizeLinear": _as_standard("QuantizeLinear"),
    "DequantizeLinear": _as_standard("DequantizeLinear"),
    "MatMulInteger": _as_standard("MatMulInteger"),
    "MatMulIntegerToFloat": _to_float(_as_standard("MatMul", 0, 1)),
    "DynamicQuantizeMatMul": _as_standard("MatMul", 0, 1),
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "FusedGemm": _fused_gemm,
    "GemmFastGelu": _fused_matmul,
    "QGemm": _quantised_gemm,
    "FusedConv": _as_standard("Conv", 0, 1),
    "NhwcFusedConv": _channels_last_conv,
    "NhwcConv": _channels_last_conv,
    "MatMulNBits": _matmul_nbits,
    "Attention": _packed_attention,
    "PackedAttention": _packed_attention,
    "QAttention": _to_float(_packed_attention),
    "MultiHeadAttention": _multi_head,
    "GroupQueryAttention": _grouped_query,
}
