"""Families from before gated feed-forward parts: GPT, OPT, Bloom, MPT, Falcon, Phi 1 and 2."""

from __future__ import annotations

from dataclasses import replace

from ..architecture import Architecture, Attention, DecoderLayer, FeedForward, Norm, NormPlace, Positions, QueryNorm
from .fields import LARGEST_CONTEXT, Fields
from .parts import LAYER_NORM, activation, alike, attention, divides, head_of, layer_count, model


def _heads(fields: Fields, *names: str, hidden: str) -> tuple[int, int]:
    """Heads and their size, where they share out the hidden size."""
    heads = fields.count(*names)
    return heads, head_of(fields, names[0], heads, hidden=hidden)


def _own_names(fields: Fields) -> Fields:
    """GPT's names of sizes, where a config has those of later families, which its class takes as well."""
    return fields.renamed(n_embd="hidden_size", n_head="num_attention_heads", n_layer="num_hidden_layers")


def _plain(fields: Fields, *, inner: int, act: str, bias: bool = True) -> FeedForward:
    kind = activation(fields, "activation_function", "hidden_act", "activation", default=act)
    return FeedForward(inner, False, kind, bias)


def _learned(found: Architecture, extra: int = 0) -> Architecture:
    return replace(found, norm=LAYER_NORM, positions=Positions.LEARNED, position_rows=found.longest_context + extra)


def gpt2(fields: Fields) -> Architecture:
    return _gpt2(fields, act="gelu_new")


def gpt_bigcode(fields: Fields) -> Architecture:
    """GPT-2 with one key head for all queries."""
    return _gpt2(fields, act="gelu_pytorch_tanh", shares_keys=fields.flag("multi_query", default=True))


def _gpt2(fields: Fields, *, act: str, shares_keys: bool = False) -> Architecture:
    fields = _own_names(fields)
    heads, size = _heads(fields, "n_head", hidden="n_embd")
    mixer = Attention(heads, 1 if shares_keys else heads, size, size, bias=True, output_bias=True)
    part = _plain(fields, inner=fields.count("n_inner", default=4 * heads * size), act=act)
    return _learned(
        model(fields, (DecoderLayer(mixer, part),) * layer_count(fields, "n_layer"), context=1024, tied=True)
    )


def gpt_neo(fields: Fields) -> Architecture:
    """Layers with and without a window in turn."""
    heads, size = _heads(fields, "num_heads", "num_attention_heads", hidden="hidden_size")
    window = fields.count("window_size", default=256, most=LARGEST_CONTEXT)
    part = _plain(fields, inner=fields.count("intermediate_size", default=4 * heads * size), act="gelu_new")
    mixer = Attention(heads, heads, size, size, output_bias=True)
    full, near = DecoderLayer(mixer, part), DecoderLayer(replace(mixer, window=window), part)
    count = layer_count(fields, "num_layers", "num_hidden_layers")
    types = fields.list("attention_layers")
    if types and (len(types) != count or not set(types) <= {"global", "local"}):
        raise fields.error("attention_layers", f"is not {count} words; expected global or local for each layer")
    local = [types[n] == "local" if types else n % 2 == 1 for n in range(count)]
    return _learned(model(fields, tuple(near if each else full for each in local), context=2048, tied=True))


def gptj(fields: Fields) -> Architecture:
    """Both parts of a layer read one normalisation; the head has a bias."""
    fields = _own_names(fields)
    heads, size = _heads(fields, "n_head", hidden="n_embd")
    mixer = Attention(heads, heads, size, size, rotary_size=fields.count("rotary_dim", default=64, most=size))
    part = _plain(fields, inner=fields.count("n_inner", default=4 * heads * size), act="gelu_new")
    found = model(fields, (DecoderLayer(mixer, part),) * layer_count(fields, "n_layer"), context=2048)
    return replace(found, norm=LAYER_NORM, parallel=True, shared_norm=True, head_bias=True)


def codegen(fields: Fields) -> Architecture:
    return gptj(fields)


def gpt_neox(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias", default=True)
    share = fields.share("rotary_pct", default=0.25)
    mixer = attention(fields, bias=bias, output_bias=bias, rotated=share)
    part = _plain(fields, inner=fields.count("intermediate_size"), act="gelu")
    found = model(fields, alike(fields, mixer, part), context=2048)
    return replace(found, norm=LAYER_NORM, parallel=fields.flag("use_parallel_residual", default=True))


def opt(fields: Fields) -> Architecture:
    heads, size = _heads(fields, "num_attention_heads", hidden="hidden_size")
    bias = fields.flag("enable_bias", default=True)
    mixer = Attention(heads, heads, size, size, bias=bias, output_bias=bias)
    layers = alike(fields, mixer, _plain(fields, inner=fields.count("ffn_dim"), act="relu", bias=bias))
    before = fields.flag("do_layer_norm_before", default=True)
    width = fields.optional("word_embed_proj_dim")
    found = _learned(model(fields, layers, context=2048, tied=True), extra=2)  # two rows are kept for padding
    return replace(
        found,
        norm_place=NormPlace.BEFORE if before else NormPlace.AFTER,
        final_norm=before and not fields.flag("_remove_final_layer_norm"),
        embedding_size=None if width == found.hidden else width,
    )


def bloom(fields: Fields) -> Architecture:
    hidden = "hidden_size" if fields.has("hidden_size") else "n_embed"
    heads, size = _heads(fields, "n_head", "num_attention_heads", hidden=hidden)
    mixer = Attention(heads, heads, size, size, bias=True, output_bias=True)
    part = FeedForward(4 * heads * size, False, "gelu", True)
    layers = (DecoderLayer(mixer, part),) * layer_count(fields, "n_layer", "num_hidden_layers")
    found = model(fields, layers, context=2048, tied=True)
    return replace(found, norm=LAYER_NORM, positions=Positions.ALIBI, embedding_norm=True)


def mpt(fields: Fields) -> Architecture:
    fields = fields.renamed(d_model="hidden_size", n_heads="num_attention_heads", n_layers="num_hidden_layers")
    heads, size = _heads(fields, "n_heads", hidden="d_model")
    bias = not fields.flag("no_bias", default=True)
    mixer = Attention(heads, heads, size, size, bias=bias, output_bias=bias)
    part = FeedForward(fields.count("expansion_ratio", default=4) * heads * size, False, "gelu", bias)
    found = model(fields, (DecoderLayer(mixer, part),) * layer_count(fields, "n_layers"), context=2048, tied=True)
    return replace(found, norm=Norm(mean=True, bias=bias), positions=Positions.ALIBI)


def falcon(fields: Fields) -> Architecture:
    """Three generations: one key head and one normalisation, groups and two, or a plain decoder with ALiBi."""
    hidden = "hidden_size" if fields.has("hidden_size") else "n_embed"
    heads, size = _heads(fields, "num_attention_heads", "n_head", hidden=hidden)
    newer = fields.flag("new_decoder_architecture") or fields.word("model_type") == "RefinedWeb"
    groups = fields.count("num_kv_heads", "n_head_kv", default=heads)
    shared = groups if newer else 1 if fields.flag("multi_query", default=True) else heads
    divides(fields, "num_kv_heads", shared, heads, "attention heads")
    bias, alibi = fields.flag("bias"), fields.flag("alibi")
    rotated = 0 if alibi else size
    mixer = Attention(heads, shared, size, size, rotary_size=rotated, bias=bias, output_bias=bias)
    inner = fields.count("ffn_hidden_size", default=4 * heads * size)
    layers = (DecoderLayer(mixer, FeedForward(inner, False, "gelu", bias)),) * layer_count(
        fields, "num_hidden_layers", "n_layer"
    )
    norms = fields.count("num_ln_in_parallel_attn", default=2 if newer else 1, most=2)
    parallel = newer or fields.flag("parallel_attn", default=True)
    return replace(
        model(fields, layers, context=2048, tied=True),
        norm=LAYER_NORM,
        parallel=parallel,
        shared_norm=parallel and norms == 1,
        positions=Positions.ALIBI if alibi else Positions.ROTARY,
    )


def phi(fields: Fields) -> Architecture:
    mixer = attention(fields, bias=True, output_bias=True, rotated=0.5)
    has_norm = fields.flag("qk_layernorm")
    mixer = replace(mixer, query_norm=QueryNorm.HEAD if has_norm else QueryNorm.NONE)
    part = _plain(fields, inner=fields.count("intermediate_size"), act="gelu_new")
    found = model(fields, alike(fields, mixer, part), context=2048)
    return replace(found, norm=LAYER_NORM, parallel=True, shared_norm=True, head_bias=True)
