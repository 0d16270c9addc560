"""Families of grouped-query attention whose mixtures begin behind some dense layers and share a part."""

from __future__ import annotations

from dataclasses import replace

from ..architecture import Architecture, Attention, DecoderLayer, Mixture, QueryNorm
from .fields import MOST_EXPERTS, Fields
from .parts import activation, alike, attention, experts, gated, layer_count, model, windowed

_MOST_SHARED = 64  # experts that every token goes through


def _with_shared(fields: Fields, part: Mixture, *names: str, default: int) -> Mixture:
    """A mixture whose shared part is as wide as so many experts."""
    return replace(part, shared=fields.count(*names, default=default, least=0, most=_MOST_SHARED) * part.intermediate)


def _behind_dense(fields: Fields, mixer: Attention, part: Mixture, *, dense_first: int) -> tuple[DecoderLayer, ...]:
    sparse = fields.sparse_layers(layer_count(fields), dense_first=dense_first)
    dense = part if all(sparse) else gated(fields)  # a config without dense layers may leave out their size
    return tuple(DecoderLayer(mixer, part if each else dense) for each in sparse)


def glm4_moe(fields: Fields) -> Architecture:
    """GLM 4.5 and Solar Open."""
    is_glm = fields.word("model_type") == "glm4_moe"
    mixer = attention(fields, bias=fields.flag("attention_bias"), rotated=0.5 if is_glm else 1.0)
    has_norm = fields.flag("use_qk_norm")
    mixer = replace(mixer, query_norm=QueryNorm.HEAD if has_norm else QueryNorm.NONE)
    part = _with_shared(fields, experts(fields, "n_routed_experts"), "n_shared_experts", default=1)
    dense_first = fields.count("first_k_dense_replace", default=1 if is_glm else 0, least=0)
    return model(fields, _behind_dense(fields, mixer, part, dense_first=dense_first), context=131072)


def dots1(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    mixer = replace(attention(fields, bias=bias, output_bias=bias), query_norm=QueryNorm.HEAD)
    part = _with_shared(fields, experts(fields, "n_routed_experts"), "n_shared_experts", default=0)
    dense_first = fields.count("first_k_dense_replace", default=0, least=0)
    return model(fields, _behind_dense(fields, mixer, part, dense_first=dense_first), context=2048)


def ernie_moe(fields: Fields) -> Architecture:
    """Experts between two layers, in each so-manieth; others are dense."""
    bias = fields.flag("use_bias")
    mixer = attention(fields, bias=bias, output_bias=bias)
    count = fields.count("moe_num_experts", most=MOST_EXPERTS)
    kind = activation(fields, "hidden_act", default="silu")
    size, active = fields.count("moe_intermediate_size"), fields.count("moe_k", most=count)
    part = Mixture(count, active, size, activation=kind)
    part = _with_shared(fields, part, "moe_num_shared_experts", default=2)
    layers = layer_count(fields)
    first = fields.count("moe_layer_start_index", default=1, least=0)
    last = layers - 1 if fields.values.get("moe_layer_end_index") == -1 else None
    last = fields.count("moe_layer_end_index", default=layers - 1, least=0) if last is None else last
    every = fields.count("moe_layer_interval", default=1)
    sparse = [first <= number <= last and (number + 1) % every == 0 for number in range(layers)]
    dense = gated(fields, bias=bias)
    return model(
        fields, tuple(DecoderLayer(mixer, part if each else dense) for each in sparse), context=131072, tied=True
    )


def exaone_moe(fields: Fields) -> Architecture:
    mixer = replace(attention(fields), query_norm=QueryNorm.HEAD)
    part = _with_shared(fields, experts(fields, "num_experts"), "num_shared_experts", default=1)
    near = fields.near_layers("sliding_window_pattern", default=4)
    mixers = [layer.mixer for layer in windowed(fields, mixer, part, window=fields.window(4096), near=near)]
    dense_first = fields.count("first_k_dense_replace", default=1, least=0)
    parts = [layer.feed_forward for layer in _behind_dense(fields, mixer, part, dense_first=dense_first)]
    layers = tuple(DecoderLayer(each, behind) for each, behind in zip(mixers, parts, strict=True))
    return model(fields, layers, context=2048)


def minimax_m2(fields: Fields) -> Architecture:
    """All queries and all keys are normalised together."""
    mixer = replace(attention(fields), query_norm=QueryNorm.WHOLE)
    part = experts(fields, "num_local_experts", size="intermediate_size")
    return model(fields, alike(fields, mixer, part), context=196608)
