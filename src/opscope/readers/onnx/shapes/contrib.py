"""Shape rules of ONNX Runtime's own operators (domain com.microsoft) and of classic machine learning (ai.onnx.ml).

Operators: https://github.com/microsoft/onnxruntime, docs/ContribOperators.md, and onnx/docs/Operators-ml.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..model import Element
from .arithmetic import (
    cast,
    dequantize,
    gemm,
    layer_norm,
    matmul,
    matmul_shape,
    quantize,
    same,
)
from .call import Call, Open, Operand, Outputs, Shape, broadcast, checked, like
from .layout import gather, joined
from .windows import conv, global_pool, pool

Rule = Callable[[Call], Outputs]

_FLOAT = int(Element.FLOAT)


def _skip_norm(call: Call) -> Outputs:
    """Output, mean, inverse deviation, and the sum of input and skip; the second and third are for training."""
    whole = like(call)
    statistic = Operand(_FLOAT, (*call.shape(0)[:-1], 1))
    return [whole, statistic, statistic, whole]


def _embed_norm(call: Call) -> Outputs:
    """Token ids (batch, sequence) become rows of the word table; the mask index has one number per batch entry."""
    ids, table = call.shape(0), call.shape(2)
    rows = Operand(call.element(2), (*ids, table[-1]))
    return [rows, Operand(Element.INT32, ids[:1]), rows]


def _binary(call: Call) -> Outputs:
    """QLinearAdd, QLinearMul: operands at 0 and 3, between them scales and zero points."""
    return [Operand(call.element(0), broadcast(call, [call.shape(0), call.shape(3)]))]


def _quantised_concat(call: Call) -> Outputs:
    """Inputs are output scale and zero point, then (tensor, scale, zero point) for each operand."""
    return [joined(call, [call.operand(index) for index in range(2, len(call.operands), 3)])]


def _fused_matmul(call: Call) -> Outputs:
    """A product whose operands may be transposed in their last two dimensions, or with the batch moved inwards."""
    shapes = []
    for index, letter in enumerate("AB"):
        shape = call.shape(index)
        if len(shape) > 1 and call.node.integer(f"transBatch{letter}", 0):  # (rows, batch …, columns)
            shape = (*shape[1:-1], shape[0], shape[-1])
        if len(shape) > 1 and call.node.integer(f"trans{letter}", 0):
            shape = (*shape[:-2], shape[-1], shape[-2])
        shapes.append(shape)
    return [Operand(call.element(0), matmul_shape(call, shapes[0], shapes[1]))]


def _quantised_gemm(call: Call) -> Outputs:
    element = call.element(8) if call.has(8) else call.element(0) if call.has(7) else _FLOAT
    return gemm(0, 3, element=element)(call)


def _nbits(call: Call) -> Outputs:
    """The stored weights are packed; K and N say what they stand for."""
    rows, columns = call.node.integer("K", 0), call.node.integer("N", 0)
    return [Operand(call.element(0), matmul_shape(call, call.shape(0), (rows, columns)))]


def _packed_attention(past: int, element: int = 0) -> Rule:
    """Data times the joint weights of query, key and value; the output has the width of the value."""

    def rule(call: Call) -> Outputs:
        data, weights = call.shape(0), call.shape(1)
        sizes = call.node.integers("qkv_hidden_sizes")
        width = sizes[2] if sizes and len(sizes) == 3 else weights[1] // 3
        kind, heads = element or call.element(0), max(1, call.node.integer("num_heads", 1))
        out = [Operand(kind, (*data[:-1], width))]
        if len(data) == 3:  # key and value caches, stacked
            tokens = data[1] + (call.shape(past)[3] if call.has(past) else 0)
            out.append(Operand(kind, (2, data[0], heads, tokens, width // heads)))
        return out

    return rule


def _multi_head(call: Call) -> Outputs:
    """Query is (batch, sequence, hidden), or query, key and value are packed as (batch, sequence, heads, 3, size)."""
    query, heads = call.shape(0), max(1, call.node.integer("num_heads", 1))
    element = call.element(0)
    if len(query) == 5:
        batch, tokens, _, _, size = query
        packed = Operand(element, (batch, heads, tokens, size))
        return [Operand(element, (batch, tokens, heads * size)), packed, packed]
    key = call.shape(1)
    if len(key) != 3:  # packed key and value, or a cache of cross-attention (batch, heads, tokens, size)
        width = query[-1] if len(key) == 5 else key[1] * key[3]
        present = Operand(element, (key[0], heads, key[1], key[4]) if len(key) == 5 else key)
        return [Operand(element, (*query[:-1], width)), present, present]
    value = call.shape(2) if call.has(2) else key
    past = call.shape(6)[2] if call.has(6) else 0
    cache = [Operand(element, (key[0], heads, past + key[1], part[-1] // heads)) for part in (key, value)]
    width = value[-1] if len(value) == 3 else heads * value[-1]
    return [Operand(element, (*query[:-1], width)), *cache]


def _grouped_query(call: Call) -> Outputs:
    """Query is (batch, sequence, hidden), or query, key and value are concatenated in the last dimension."""
    query = call.shape(0)
    heads, groups = call.node.integer("num_heads", 0), call.node.integer("kv_num_heads", 0)
    if len(query) != 3 or heads < 1 or groups < 1:
        raise call.mismatch(f"has {heads} heads in {groups} groups for a query of {call.operand(0).text}")
    packed = not call.has(1)
    size = query[2] // (heads + 2 * groups if packed else heads)
    past = call.shape(3)[2] if call.has(3) else 0
    cache = Operand(call.element(0), (query[0], groups, past + query[1], size))
    return [Operand(call.element(0), (*query[:2], heads * size)), cache, cache]


def _dynamic_lstm(call: Call) -> Outputs:
    """DynamicQuantizeLSTM stores its weights transposed: (directions, hidden, 4 × hidden)."""
    hidden = call.node.integer("hidden_size", 0) or call.shape(2)[1]
    steps, batch, _ = call.shape(0)
    directions = call.shape(2)[0]
    state = Operand(call.element(0), (directions, batch, hidden))
    return [Operand(call.element(0), (steps, directions, batch, hidden)), state, state]


def _expand_dims(call: Call) -> Outputs:
    shape = call.shape(0)
    axis = call.front_axis(call.integer(1), len(shape) + 1)
    return [Operand(call.element(0), (*shape[:axis], 1, *shape[axis:]))]


def _bias_split_gelu(call: Call) -> Outputs:
    shape = call.shape(0)
    return [Operand(call.element(0), (*shape[:-1], shape[-1] // 2))]


def _gather_blocks(call: Call) -> Outputs:
    return [Operand(call.element(2), gather(call)[0].shape)]


_SAME = (
    "Gelu BiasGelu FastGelu QuickGelu RotaryEmbedding Inverse QLinearSigmoid QLinearLeakyRelu QLinearSoftmax "
    "BiasSoftmax BiasAdd BiasDropout GroupNorm MoE QMoE Trilu NhwcFusedAdd"
)

CONTRIB: Mapping[str, Rule] = dict.fromkeys(_SAME.split(), same) | {
    "LayerNormalization": layer_norm,
    "SimplifiedLayerNormalization": layer_norm,
    "SkipLayerNormalization": _skip_norm,
    "SkipSimplifiedLayerNormalization": _skip_norm,
    "SkipGroupNorm": _skip_norm,
    "EmbedLayerNormalization": _embed_norm,
    "QLinearAdd": _binary,
    "QLinearMul": _binary,
    "QLinearConcat": _quantised_concat,
    "QLinearAveragePool": pool,
    "QLinearGlobalAveragePool": global_pool,
    "NhwcMaxPool": pool,
    "QLinearConv": conv(0, 3, element=7),
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "MatMulInteger": matmul(element=Element.INT32),
    "MatMulInteger16": matmul(element=Element.INT32),
    "MatMulIntegerToFloat": matmul(element=_FLOAT),
    "DynamicQuantizeMatMul": matmul(),
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "FusedGemm": gemm(),
    "GemmFastGelu": matmul(),
    "QGemm": _quantised_gemm,
    "FusedConv": conv(),
    "NhwcFusedConv": conv(channels_last=True),
    "NhwcConv": conv(channels_last=True),
    "MatMulNBits": _nbits,
    "Attention": _packed_attention(4),
    "PackedAttention": _packed_attention(4),
    "QAttention": _packed_attention(8, _FLOAT),
    "MultiHeadAttention": _multi_head,
    "GroupQueryAttention": _grouped_query,
    "DynamicQuantizeLSTM": _dynamic_lstm,
    "ExpandDims": _expand_dims,
    "BiasSplitGelu": _bias_split_gelu,
    "GatherBlockQuantized": _gather_blocks,
}


# -- ai.onnx.ml


def _rows(call: Call) -> int:
    shape = call.shape(0)
    return shape[0] if len(shape) > 1 else 1


def _regressor(call: Call) -> Outputs:
    targets = call.node.integer("n_targets", 0) or call.node.integer("targets", 1)
    return [Operand(_FLOAT, (_rows(call), targets))]


def _classifier(call: Call) -> Outputs:
    """Labels, then the scores of every class."""
    node = call.node
    names = node.value("classlabels_strings")
    labels = node.integers("classlabels_int64s") or node.integers("classlabels_ints") or node.integers("class_ids")
    if isinstance(names, tuple):
        count, element = len(names), Element.STRING
    elif labels:
        count, element = len(labels), Element.INT64
    else:
        raise Open(f"{call.place} does not say how many classes there are")
    return [Operand(element, (_rows(call),)), Operand(_FLOAT, (_rows(call), count))]


def _label_encoder(call: Call) -> Outputs:
    kinds = {"values_int64s": Element.INT64, "values_floats": Element.FLOAT, "values_strings": Element.STRING}
    found = [kind for name, kind in kinds.items() if name in call.node.arguments]
    return [Operand(found[0] if found else 0, call.shape(0))]


def _one_hot_encoder(call: Call) -> Outputs:
    strings = call.node.value("cats_strings")
    count = len(strings) if isinstance(strings, tuple) else len(call.node.integers("cats_int64s") or ())
    return [Operand(_FLOAT, checked(call, (*call.shape(0), count)))]


def _feature_extractor(call: Call) -> Outputs:
    shape: Shape = call.shape(0)
    count = call.shape(1)[-1] if call.shape(1) else 1
    return [Operand(call.element(0), (*(shape[:-1] or (1,)), count))]


def _feature_vectorizer(call: Call) -> Outputs:
    width = sum(call.node.integers("inputdimensions") or ())
    return [Operand(_FLOAT, (_rows(call), width))]


ML: Mapping[str, Rule] = {
    "ArrayFeatureExtractor": _feature_extractor,
    "Binarizer": same,
    "CastMap": cast,
    "CategoryMapper": lambda call: [Operand(0, call.shape(0))],
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": same,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": lambda call: [Operand(_FLOAT, call.shape(0))],
    "OneHotEncoder": _one_hot_encoder,
    "SVMClassifier": _classifier,
    "SVMRegressor": _regressor,
    "Scaler": lambda call: [Operand(_FLOAT, call.shape(0))],
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
}
