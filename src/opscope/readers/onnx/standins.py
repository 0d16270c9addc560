"""Standard nodes with the output shapes of ONNX Runtime's own operators (domain com.microsoft).

`onnx` infers no shapes through operators it has no schema for. Teaching it those operators would change a registry that
the whole process shares; standing in for them changes nothing. Only shapes and types count here, never values: a
normalisation is an Identity, a quantised product a MatMul. Operators: https://github.com/microsoft/onnxruntime,
docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import pack

from .model import MICROSOFT, Argument, Constant, Element, Node

StandIn = tuple[list[Node], list[Constant]]
_Constants = Mapping[str, Constant]
_Rule = Callable[[Node, _Constants], StandIn]


def stand_in(node: Node, constants: _Constants) -> StandIn:
    """The nodes and constants to infer shapes with in place of `node`; itself, where it needs no stand-in."""
    if node.domain == MICROSOFT or node.op_type in _IN_DEFAULT_DOMAIN:
        rule = RULES.get(node.op_type)
        if rule is not None and node.inputs and node.outputs:
            return rule(node, constants)
    return [node], []


def _make(op_type: str, inputs: list[str], output: str, **arguments: int | str | tuple[int, ...]) -> Node:
    made = {name: Argument(value) for name, value in arguments.items()}
    return Node(op_type, "", "", tuple(inputs), (output,), made, "")


def _whole(name: str, values: tuple[int, ...], *, scalar: bool = False) -> Constant:
    dims = () if scalar else (len(values),)
    content = pack(f"<{len(values)}q", *values)
    return Constant(name, dims, Element.INT64, len(content), integers=values, content=content)


def _input(node: Node, index: int) -> str:
    return node.inputs[index] if index < len(node.inputs) else ""


def _output(node: Node, index: int) -> str:
    return node.outputs[index] if index < len(node.outputs) else ""


def _like_first(node: Node, constants: _Constants) -> StandIn:
    return [_make("Identity", [node.inputs[0]], node.outputs[0])], []


def _skip_norm(node: Node, constants: _Constants) -> StandIn:
    """Output, mean, inverse deviation, sum of input and skip; the second and third are for training."""
    outputs = [name for name in (_output(node, 0), _output(node, 3)) if name]
    return [_make("Identity", [node.inputs[0]], name) for name in outputs], []


def _embed_norm(node: Node, constants: _Constants) -> StandIn:
    """Token ids (batch, sequence) become rows of the word table; the mask index has one number per batch entry."""
    nodes = [
        _make("Gather", [_input(node, 2), node.inputs[0]], name)
        for name in (_output(node, 0), _output(node, 2))
        if name
    ]
    if _output(node, 1):
        nodes.append(_make("Einsum", [node.inputs[0]], node.outputs[1], equation="bs->b"))
    return nodes, []


def _renamed(op_type: str, *inputs: int) -> _Rule:
    """A standard operator with the same attributes on some of the inputs (all, if none are listed)."""

    def rule(node: Node, constants: _Constants) -> StandIn:
        names = tuple(_input(node, index) for index in inputs) if inputs else node.inputs
        while names and not names[-1]:
            names = names[:-1]
        return [node._replace(op_type=op_type, domain="", inputs=names, outputs=node.outputs[:1])], []

    return rule


def _to_float(rule: _Rule) -> _Rule:
    """The same shape, dequantised."""

    def wrapped(node: Node, constants: _Constants) -> StandIn:
        whole = f"{node.outputs[0]}@whole"
        nodes, made = rule(node._replace(outputs=(whole,)), constants)
        return [*nodes, _make("Cast", [whole], node.outputs[0], to=int(Element.FLOAT))], made

    return wrapped


def _fused_matmul(node: Node, constants: _Constants) -> StandIn:
    """A product of operands that may be transposed in their last two dimensions.

    An Einsum transposes them whatever the rank; Transpose would need to know it.
    """
    if node.integer("transBatchA", 0) or node.integer("transBatchB", 0):
        return [node], []
    nodes: list[Node] = []
    operands = list(node.inputs[:2])
    for index, flag in enumerate(("transA", "transB")):
        if node.integer(flag, 0) and index < len(operands):
            turned = f"{node.outputs[0]}@{flag}"
            nodes.append(_make("Einsum", [operands[index]], turned, equation="...ij->...ji"))
            operands[index] = turned
    return [*nodes, _make("MatMul", operands, node.outputs[0])], []


def _fused_gemm(node: Node, constants: _Constants) -> StandIn:
    kept = {name: node.arguments[name] for name in ("transA", "transB") if name in node.arguments}
    return [node._replace(op_type="Gemm", domain="", inputs=node.inputs[:2], arguments=kept)], []


def _quantised_gemm(node: Node, constants: _Constants) -> StandIn:
    def rule(call: Node, known: _Constants) -> StandIn:
        return _fused_gemm(call._replace(inputs=(call.inputs[0], _input(call, 3))), known)

    quantised_output = bool(_input(node, 7))  # y_scale
    return rule(node, constants) if quantised_output else _to_float(rule)(node, constants)


def _product_with(node: Node, rows: int, columns: int) -> StandIn:
    """Input 0 times weights of a known shape, whatever form the file stores them in."""
    weights = Constant(f"{node.outputs[0]}@weights", (rows, columns), Element.FLOAT, None)
    return [_make("MatMul", [node.inputs[0], weights.name], node.outputs[0])], [weights]


def _matmul_nbits(node: Node, constants: _Constants) -> StandIn:
    rows, columns = node.integer("K", 0), node.integer("N", 0)
    return _product_with(node, rows, columns) if rows > 0 and columns > 0 else ([node], [])


def _packed_attention(node: Node, constants: _Constants) -> StandIn:
    """Input times the joint weights of query, key and value; the output is as wide as the value."""
    weights = constants.get(_input(node, 1))
    if weights is None or len(weights.dims) != 2:
        return [node], []
    sizes = node.integers("qkv_hidden_sizes")
    width = sizes[2] if sizes and len(sizes) == 3 else weights.dims[1] // 3
    return _product_with(node, weights.dims[0], width)


def _multi_head(node: Node, constants: _Constants) -> StandIn:
    """Query (batch, sequence, hidden), or query, key and value packed as (batch, sequence, heads, 3, size)."""
    out = node.outputs[0]
    if not _input(node, 1):
        first, flat = _whole(f"{out}@first", (0,), scalar=True), _whole(f"{out}@flat", (0, 0, -1))
        query = _make("Gather", [node.inputs[0], first.name], f"{out}@query", axis=3)
        return [query, _make("Reshape", [f"{out}@query", flat.name], out)], [first, flat]
    nodes = [_make("Identity", [node.inputs[0]], out)]
    made: list[Constant] = []
    heads = node.integer("num_heads", 0)
    for fresh, past, present in ((1, 6, 1), (2, 7, 2)):
        if heads and _output(node, present):
            more, constant = _cache(node, _input(node, fresh), _input(node, past), node.outputs[present], heads)
            nodes += more
            made.append(constant)
    return nodes, made


def _grouped_query(node: Node, constants: _Constants) -> StandIn:
    """Query (batch, sequence, hidden), or query, key and value side by side in the last dimension."""
    out, heads, groups = node.outputs[0], node.integer("num_heads", 0), node.integer("kv_num_heads", 0)
    if not heads or not groups or heads + 2 * groups > 65536:
        return [node], []
    if _input(node, 1):
        nodes, made = [_make("Identity", [node.inputs[0]], out)], list[Constant]()
        sources = (_input(node, 1), _input(node, 2))
    else:
        nodes, made = _unpacked(node, heads, groups)
        sources = (f"{out}@key", f"{out}@value")
    for source, past, present in ((sources[0], 3, 1), (sources[1], 4, 2)):
        if _output(node, present):
            more, constant = _cache(node, source, _input(node, past), node.outputs[present], groups)
            nodes += more
            made.append(constant)
    return nodes, made


def _unpacked(node: Node, heads: int, groups: int) -> StandIn:
    out = node.outputs[0]
    split = _whole(f"{out}@split", (0, 0, heads + 2 * groups, -1))
    flat = _whole(f"{out}@flat", (0, 0, -1))
    nodes, made = [_make("Reshape", [node.inputs[0], split.name], f"{out}@heads")], [split, flat]
    for name, result, count in (
        ("query", out, heads),
        ("key", f"{out}@key", groups),
        ("value", f"{out}@value", groups),
    ):
        pick = _whole(f"{out}@pick {name}", tuple(range(count)))
        nodes.append(_make("Gather", [f"{out}@heads", pick.name], f"{out}@4d {name}", axis=2))
        nodes.append(_make("Reshape", [f"{out}@4d {name}", flat.name], result))
        made.append(pick)
    return nodes, made


def _cache(node: Node, fresh: str, past: str, present: str, heads: int) -> tuple[list[Node], Constant]:
    """(batch, sequence, heads × size) → (batch, heads, past + sequence, size)."""
    shape = _whole(f"{present}@shape", (0, 0, heads, -1))
    turned = f"{present}@turned" if past else present
    nodes = [
        _make("Reshape", [fresh, shape.name], f"{present}@split"),
        _make("Transpose", [f"{present}@split"], turned, perm=(0, 2, 1, 3)),
    ]
    if past:
        nodes.append(_make("Concat", [past, turned], present, axis=2))
    return nodes, shape


def _channels_last_conv(node: Node, constants: _Constants) -> StandIn:
    """Two spatial dimensions only, as the operator has in practice."""
    out = node.outputs[0]
    first = _make("Transpose", [node.inputs[0]], f"{out}@nchw", perm=(0, 3, 1, 2))
    conv = node._replace(op_type="Conv", domain="", inputs=(f"{out}@nchw", _input(node, 1)), outputs=(f"{out}@conv",))
    return [first, conv, _make("Transpose", [f"{out}@conv"], out, perm=(0, 2, 3, 1))], []


def _channels_first(rule: _Rule) -> _Rule:
    def wrapped(node: Node, constants: _Constants) -> StandIn:
        if node.integer("channels_last", 0):
            return [node], []
        kept = {name: argument for name, argument in node.arguments.items() if name != "channels_last"}
        return rule(node._replace(arguments=kept), constants)

    return wrapped


def _quantised_concat(node: Node, constants: _Constants) -> StandIn:
    """Output scale and zero point, then (tensor, scale, zero point) for each operand."""
    return [node._replace(op_type="Concat", domain="", inputs=node.inputs[2::3])], []


_LIKE_FIRST = (
    "Gelu BiasGelu FastGelu QuickGelu RotaryEmbedding Inverse QLinearSigmoid QLinearLeakyRelu QLinearSoftmax "
    "BiasSoftmax BiasAdd BiasDropout LayerNormalization SimplifiedLayerNormalization GroupNorm SkipGroupNorm "
    "MoE QMoE Trilu"
)
_IN_DEFAULT_DOMAIN = frozenset(
    {"SimplifiedLayerNormalization"}
)  # ONNX Runtime keeps it there, without a schema in onnx

RULES: Mapping[str, _Rule] = dict.fromkeys(_LIKE_FIRST.split(), _like_first) | {
    "SkipLayerNormalization": _skip_norm,
    "SkipSimplifiedLayerNormalization": _skip_norm,
    "EmbedLayerNormalization": _embed_norm,
    "QLinearAdd": _renamed("Add", 0, 3),
    "QLinearMul": _renamed("Mul", 0, 3),
    "QLinearConcat": _quantised_concat,
    "QLinearAveragePool": _channels_first(_renamed("AveragePool", 0)),
    "QLinearGlobalAveragePool": _channels_first(_renamed("GlobalAveragePool", 0)),
    "QLinearConv": _channels_first(_renamed("QLinearConv")),
    "QuantizeLinear": _renamed("QuantizeLinear"),
    "DequantizeLinear": _renamed("DequantizeLinear"),
    "MatMulInteger": _renamed("MatMulInteger"),
    "MatMulIntegerToFloat": _to_float(_renamed("MatMul", 0, 1)),
    "DynamicQuantizeMatMul": _renamed("MatMul", 0, 1),
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "FusedGemm": _fused_gemm,
    "GemmFastGelu": _fused_matmul,
    "QGemm": _quantised_gemm,
    "FusedConv": _renamed("Conv", 0, 1),
    "NhwcFusedConv": _channels_last_conv,
    "NhwcConv": _channels_last_conv,
    "MatMulNBits": _matmul_nbits,
    "Attention": _packed_attention,
    "PackedAttention": _packed_attention,
    "QAttention": _to_float(_packed_attention),
    "MultiHeadAttention": _multi_head,
    "GroupQueryAttention": _grouped_query,
}
