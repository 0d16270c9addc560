"""The Gemma family: windows in most layers, and from the fourth generation on much that is shared between layers."""

from __future__ import annotations

from dataclasses import replace

from ..architecture import (
    Architecture,
    Attention,
    DecoderLayer,
    FeedForward,
    Matrix,
    Mixture,
    NormPlace,
    QueryNorm,
    SideInput,
)
from .fields import LARGEST_VOCABULARY, Fields
from .parts import alike, attention, divides, experts, gated, layer_count, model, windowed


def _attention(fields: Fields) -> Attention:
    bias = fields.flag("attention_bias")
    return attention(fields, head_size=256, bias=bias, output_bias=bias)


def gemma(fields: Fields) -> Architecture:
    mixer = _attention(fields)
    return model(fields, alike(fields, mixer, gated(fields, default="gelu")), context=8192, tied=True)


def gemma2(fields: Fields) -> Architecture:
    """Every other layer has a window; normalisation on both sides of each part; scores are capped."""
    mixer = _attention(fields)
    mixer = replace(mixer, softcap=fields.values.get("attn_logit_softcapping", 50.0) is not None)
    layers = windowed(
        fields, mixer, gated(fields, default="gelu"), window=fields.window(4096), near=lambda n: (n + 1) % 2 != 0
    )
    return replace(model(fields, layers, context=8192, tied=True), norm_place=NormPlace.AROUND)


def gemma3(fields: Fields) -> Architecture:
    """Five layers with a window, then one without. Published configs leave out what the config class says."""
    fields = fields.with_defaults(num_attention_heads=8, num_key_value_heads=4, vocab_size=262208)
    mixer = replace(_attention(fields), query_norm=QueryNorm.HEAD)
    near = fields.near_layers("sliding_window_pattern", "_sliding_window_pattern", default=6)
    layers = windowed(fields, mixer, gated(fields, default="gelu"), window=fields.window(4096), near=near)
    return replace(model(fields, layers, context=131072, tied=True), norm_place=NormPlace.AROUND)


def gemma4(fields: Fields) -> Architecture:
    """Full layers have larger heads; the last layers may reuse a cache; tokens may have a vector for each layer."""
    fields = fields.with_defaults(num_attention_heads=8, num_key_value_heads=4, vocab_size=262144)
    count, width = layer_count(fields), fields.count("hidden_size_per_layer_input", default=256, least=0)
    near, full = _two_attentions(fields)
    part = _gemma4_part(fields)
    pattern = fields.count("sliding_window_pattern", default=6)
    types = fields.layer_types(count)
    is_near = [types[n] == "sliding_attention" if types else (n + 1) % pattern != 0 for n in range(count)]
    is_near[-1] = False  # the class sees to it
    shared = fields.count("num_kv_shared_layers", default=0, least=0, most=count - 1)
    own, reusing = is_near[: count - shared], is_near[count - shared :]
    problem = f"is {shared}; expected layers of the same kind before those that reuse their cache"
    fields.require(set(reusing) <= set(own), "num_kv_shared_layers", problem)
    widest = replace(part, intermediate=2 * part.intermediate) if fields.flag("use_double_wide_mlp") else part
    side = SideInput(width, part.activation) if width else None
    layers = [DecoderLayer(near if each else full, part, side) for each in own]
    layers += [DecoderLayer(replace(near if each else full, reuses=True), widest, side) for each in reusing]
    rows = fields.count("vocab_size_per_layer_input", default=262144, most=LARGEST_VOCABULARY)
    table = Matrix(rows, count * width) if width else None
    found = model(fields, tuple(layers), context=131072, tied=True)
    return replace(found, norm_place=NormPlace.AROUND, side_table=table)


def _two_attentions(fields: Fields) -> tuple[Attention, Attention]:
    """With a window and without; a quarter of the larger heads is rotated."""
    near = replace(_attention(fields), query_norm=QueryNorm.HEAD, window=fields.window(512))
    near = replace(near, rotary_size=near.head_size)
    said = _said_of_full_layers(fields)
    size = said.count("head_dim", default=fields.count("global_head_dim", default=512))
    full = replace(near, window=None, head_size=size, value_size=size, rotary_size=size // 4)
    if not fields.flag("attention_k_eq_v"):
        return near, full
    told = fields.count("num_global_key_value_heads", default=near.kv_heads)
    shared = said.count("num_key_value_heads", default=told)
    divides(fields, "num_global_key_value_heads", shared, near.heads, "attention heads")
    return near, replace(full, kv_heads=shared, value_is_key=True)


def _said_of_full_layers(fields: Fields) -> Fields:
    """What `per_layer_config` says of layers without a window: newer files have it there, once for each of them."""
    layers = fields.inner("per_layer_config")
    return layers.inner(next(iter(layers.values))) if layers.values else layers


def _gemma4_part(fields: Fields) -> FeedForward | Mixture:
    """Dense, or with experts beside it."""
    dense = gated(fields, default="gelu")
    if not fields.flag("enable_moe_block"):
        return dense
    routed = replace(fields, values={**fields.values, "num_experts_per_tok": fields.count("top_k_experts")})
    return replace(experts(routed, "num_experts"), activation=dense.activation, shared=dense.intermediate)
