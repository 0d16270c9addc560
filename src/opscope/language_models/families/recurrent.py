"""Families with layers that keep a state of fixed size: LFM 2, Granite 4 and Bamba with Mamba 2."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from ..architecture import (
    Architecture,
    DecoderLayer,
    FeedForward,
    Mixer,
    Mixture,
    QueryNorm,
    ShortConvolution,
    StateSpace,
)
from .fields import Fields
from .parts import attention, divides, experts, gated, layer_count, model


def lfm2(fields: Fields) -> Architecture:
    """Gated short convolutions with some layers of attention between them."""
    count, hidden = layer_count(fields), fields.count("hidden_size")
    full = replace(attention(fields, kv_heads=8), query_norm=QueryNorm.HEAD)
    near = ShortConvolution(hidden, fields.count("conv_L_cache", default=3, least=2), fields.flag("conv_bias"))
    types, chosen = fields.layer_types(count), fields.places("full_attn_idxs", count)
    is_full = [types[n] == "full_attention" if types else chosen is None or n in chosen for n in range(count)]
    part = FeedForward(_adjusted(fields, fields.count("block_ff_dim", "intermediate_size")))
    found = model(fields, tuple(DecoderLayer(full if each else near, part) for each in is_full), context=128000)
    return replace(found, tied=fields.flag("tie_embedding", "tie_word_embeddings", default=True))


def lfm2_moe(fields: Fields) -> Architecture:
    """The same, with experts behind some dense layers."""
    found = lfm2(replace(fields, values={**fields.values, "block_auto_adjust_ff_dim": False}))
    part = experts(fields, "num_experts")
    dense = fields.count("num_dense_layers", default=2, least=0)
    layers = tuple(replace(layer, feed_forward=part) for layer in found.layers[dense:])
    return replace(found, layers=(*found.layers[:dense], *layers))


def _adjusted(fields: Fields, inner: int) -> int:
    """Inner features as the model makes them of the number in its config: two thirds, rounded up to a multiple."""
    if not fields.flag("block_auto_adjust_ff_dim", default=True):
        return inner
    multiple = fields.count("block_multiple_of", default=256)
    factor = fields.number("block_ffn_dim_multiplier", default=1.0, most=16)
    return multiple * ceil(int(factor * int(2 * inner / 3)) / multiple)


def granite_hybrid(fields: Fields) -> Architecture:
    """Mamba 2 with some layers of attention, which rotate only where the config says so."""
    count, bias = layer_count(fields), fields.flag("attention_bias")
    full = attention(fields, bias=bias, output_bias=bias)
    if fields.word("position_embedding_type") != "rope":
        full = replace(full, rotary_size=0)
    types, state = fields.layer_types(count), _state_space(fields)
    mixers: list[Mixer] = [full if types and types[n] == "full_attention" else state for n in range(count)]
    shared = fields.count("shared_intermediate_size", default=1024)
    part: FeedForward | Mixture = FeedForward(shared, activation=gated(fields).activation)
    if fields.count("num_local_experts", default=8, least=0):
        part = replace(experts(fields, "num_local_experts", size="intermediate_size"), shared=shared)
    return model(fields, tuple(DecoderLayer(mixer, part) for mixer in mixers), context=2048)


def bamba(fields: Fields) -> Architecture:
    count, bias = layer_count(fields), fields.flag("attention_bias")
    full = attention(fields, bias=bias, output_bias=bias, kv_heads=8, rotated=0.5)
    chosen, state = fields.places("attn_layer_indices", count) or (), _state_space(fields)
    part = gated(fields, bias=fields.flag("mlp_bias"))
    layers = tuple(DecoderLayer(full if number in chosen else state, part) for number in range(count))
    return model(fields, layers, context=262144)


def _state_space(fields: Fields) -> StateSpace:
    heads = fields.count("mamba_n_heads", default=128)
    inner = fields.count("mamba_expand", default=2, most=64) * fields.count("hidden_size")
    divides(fields, "mamba_n_heads", heads, inner, "the inner size of Mamba")
    groups = fields.count("mamba_n_groups", default=1)
    divides(fields, "mamba_n_groups", groups, heads, "mamba_n_heads")
    return StateSpace(
        heads,
        inner // heads,
        groups,
        fields.count("mamba_d_state", default=256),
        fields.count("mamba_d_conv", default=4, least=2),
        fields.flag("mamba_conv_bias", default=True),
        fields.flag("mamba_proj_bias"),
    )
