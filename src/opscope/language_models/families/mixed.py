"""Families with mixtures of experts, latent attention or layers without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..architecture import (
    Architecture,
    Attention,
    DecoderLayer,
    FeedForward,
    LatentAttention,
    LinearAttention,
    Mixer,
    Mixture,
    QueryNorm,
)
from .fields import LARGEST_CONTEXT, Fields
from .parts import LAYER_NORM, alike, attention, experts, gated, head_of, layer_count, model, windowed


def mixtral(fields: Fields) -> Architecture:
    mixer = replace(attention(fields), window=fields.window())
    part = experts(fields, "num_local_experts", "num_experts", size="intermediate_size")
    return model(fields, alike(fields, mixer, part), context=131072)


def phimoe(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    mixer = replace(attention(fields, bias=bias, output_bias=bias), window=fields.window())
    part = experts(fields, "num_local_experts", size="intermediate_size")
    found = model(fields, alike(fields, mixer, part), context=131072)
    return replace(found, norm=LAYER_NORM, head_bias=fields.flag("lm_head_bias"))


def olmoe(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    mixer = replace(attention(fields, bias=bias, output_bias=bias), query_norm=QueryNorm.WHOLE)
    part = experts(fields, "num_experts", size="intermediate_size")
    return model(fields, alike(fields, mixer, part), context=4096)


def granite_moe(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    part = experts(fields, "num_local_experts", size="intermediate_size")
    part = replace(part, shared=fields.count("shared_intermediate_size", default=0, least=0))
    return model(fields, alike(fields, attention(fields, bias=bias, output_bias=bias), part), context=2048)


def qwen2_moe(fields: Fields) -> Architecture:
    mixer = attention(fields, bias=fields.flag("qkv_bias", default=True))
    shared = fields.count("shared_expert_intermediate_size", default=5632, least=0)
    part = replace(experts(fields, "num_experts"), shared=shared, shared_gate=shared > 0)
    return model(fields, _sparse(fields, [mixer] * layer_count(fields), part), context=32768)


def qwen3_moe(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    mixer = replace(attention(fields, bias=bias, output_bias=bias), query_norm=QueryNorm.HEAD)
    if fields.flag("use_sliding_window"):
        mixer = replace(mixer, window=fields.window(4096))
    part = experts(fields, "num_experts", "num_local_experts")
    return model(fields, _sparse(fields, [mixer] * layer_count(fields), part), context=32768)


def qwen3_next(fields: Fields) -> Architecture:
    """Three layers of linear attention, then one of gated attention."""
    shared = fields.count("shared_expert_intermediate_size", default=512, least=0)
    part = replace(experts(fields, "num_experts"), shared=shared, shared_gate=shared > 0)
    return model(fields, _sparse(fields, _hybrid(fields), part), context=32768)


def qwen3_5(fields: Fields) -> Architecture:
    part = gated(fields)
    return model(fields, tuple(DecoderLayer(mixer, part) for mixer in _hybrid(fields)), context=32768)


def qwen3_5_moe(fields: Fields) -> Architecture:
    return qwen3_next(fields)


def _hybrid(fields: Fields) -> Sequence[Mixer]:
    count = layer_count(fields)
    bias = fields.flag("attention_bias")
    full = replace(
        attention(fields, bias=bias, output_bias=bias, head_size=256, rotated=0.25),
        query_norm=QueryNorm.HEAD,
        gated=fields.flag("attn_output_gate", default=True),
    )
    linear = LinearAttention(
        fields.count("linear_num_key_heads", default=16),
        fields.count("linear_num_value_heads", default=32),
        fields.count("linear_key_head_dim", default=128),
        fields.count("linear_value_head_dim", default=128),
        fields.count("linear_conv_kernel_dim", default=4, least=2),
    )
    keys, values = linear.key_heads, linear.value_heads
    fields.require(values % keys == 0, "linear_num_key_heads", f"is {keys}; expected a divisor of {values} value heads")
    types, every = fields.layer_types(count), fields.count("full_attention_interval", default=4)
    return [
        linear if (types[n] == "linear_attention" if types else (n + 1) % every != 0) else full for n in range(count)
    ]


def _sparse(fields: Fields, mixers: Sequence[Mixer], part: Mixture) -> tuple[DecoderLayer, ...]:
    """Layers with experts, but for those that the config names or skips, which are dense."""
    step = fields.count("decoder_sparse_step", default=1)
    named = fields.list("mlp_only_layers")
    has_dense = bool(named) or step > 1
    dense = gated(fields) if has_dense else None
    return tuple(
        DecoderLayer(mixer, dense if dense is not None and (number in named or (number + 1) % step) else part)
        for number, mixer in enumerate(mixers)
    )


def deepseek(fields: Fields) -> Architecture:
    """DeepSeek: the first layers are dense, the others have experts and a part that every token uses."""
    latent = fields.flag("use_mla", default=fields.word("model_type") != "deepseek")
    mixer = _latent(fields) if latent else attention(fields)
    count = layer_count(fields)
    default = {"deepseek_v3": 3, "glm4_moe_lite": 1}.get(fields.word("model_type"), 0)
    dense_first = fields.count("first_k_dense_replace", default=default, least=0)
    every = fields.count("moe_layer_freq", default=1)
    sparse = fields.sparse_layers(count, dense_first=dense_first)
    part: FeedForward | Mixture = gated(fields)
    if fields.has("n_routed_experts"):
        found = experts(fields, "n_routed_experts")
        part = replace(found, shared=fields.count("n_shared_experts", default=0, least=0, most=64) * found.intermediate)
    layers = tuple(
        DecoderLayer(mixer, part if sparse[number] and number % every == 0 else gated(fields))
        for number in range(count)
    )
    return model(fields, layers, context=4096)


def _latent(fields: Fields, *, value_size: int = 128) -> LatentAttention:
    return LatentAttention(
        heads=fields.count("num_attention_heads"),
        query_rank=fields.optional("q_lora_rank"),
        kv_rank=fields.count("kv_lora_rank"),
        plain_size=fields.count("qk_nope_head_dim"),
        rotary_size=fields.count("qk_rope_head_dim"),
        value_size=fields.count("v_head_dim", default=value_size),
        bias=fields.flag("attention_bias"),
    )


def minicpm3(fields: Fields) -> Architecture:
    """Latent attention and dense feed-forward parts."""
    size = head_of(fields, "num_attention_heads", fields.count("num_attention_heads"))
    layer = DecoderLayer(_latent(fields, value_size=size), gated(fields))
    return model(fields, (layer,) * layer_count(fields), context=32768, tied=True)


def gpt_oss(fields: Fields) -> Architecture:
    """Every other layer has a window of 128 tokens; heads have sinks; experts have biases."""
    bias = fields.flag("attention_bias", default=True)
    mixer = replace(attention(fields, bias=bias, output_bias=bias, head_size=64), sinks=True)
    part = replace(
        experts(fields, "num_local_experts", "num_experts", size="intermediate_size"), bias=True, router_bias=True
    )
    layers = windowed(fields, mixer, part, window=fields.window(128), near=lambda n: (n + 1) % 2 != 0)
    return model(fields, layers, context=131072)


def llama4(fields: Fields) -> Architecture:
    """Three layers that look back inside a chunk, then one that looks back to all and rotates nothing."""
    count = layer_count(fields)
    bias = fields.flag("attention_bias")
    near = attention(fields, bias=bias, output_bias=bias, head_size=128)
    chunk = fields.optional("attention_chunk_size", most=LARGEST_CONTEXT)
    every = fields.count("no_rope_layer_interval", default=4)
    turns = fields.list("no_rope_layers") or [int((n + 1) % every != 0) for n in range(count)]
    step = fields.count("interleave_moe_layer_step", default=1)
    found = experts(fields, "num_local_experts", size="intermediate_size")
    part = replace(found, shared=found.intermediate)
    dense = FeedForward(fields.count("intermediate_size_mlp", default=16384), activation=found.activation)
    chosen = fields.list("moe_layers") or [n for n in range(count) if (n + 1) % step == 0]
    fields.require(len(turns) == count, "no_rope_layers", f"has {len(turns)} numbers; expected {count}")
    mixers: list[Attention] = [replace(near, window=chunk) if turn else replace(near, rotary_size=0) for turn in turns]
    layers = tuple(DecoderLayer(mixer, part if n in chosen else dense) for n, mixer in enumerate(mixers))
    return model(fields, layers, context=131072)
