"""Families of decoder-only models: the config of each → an Architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..architecture import Architecture, DecoderLayer, FeedForward, Norm, NormPlace, Positions, QueryNorm
from .early import bloom, codegen, falcon, gpt2, gpt_bigcode, gpt_neo, gpt_neox, gptj, mpt, opt, phi
from .experts import dots1, ernie_moe, exaone_moe, glm4_moe, minimax_m2
from .fields import MOST_EXPERTS, Fields
from .gemma import gemma, gemma2, gemma3, gemma4
from .mixed import (
    deepseek,
    gpt_oss,
    granite_moe,
    llama4,
    minicpm3,
    mixtral,
    olmoe,
    phimoe,
    qwen2_moe,
    qwen3_5,
    qwen3_5_moe,
    qwen3_moe,
    qwen3_next,
)
from .parts import (
    LAYER_NORM,
    activation,
    alike,
    attention,
    experts,
    gated,
    head_of,
    layer_count,
    model,
    windowed,
)
from .recurrent import bamba, granite_hybrid, lfm2, lfm2_moe

Family = Callable[[Fields], Architecture]
_BAICHUAN_ALIBI = 5120  # hidden size of the model with ALiBi; the other one has 4096


def llama(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias", "qkv_bias", "bias")
    mixer = attention(fields, bias=bias, output_bias=fields.flag("bias", default=bias))
    return model(fields, alike(fields, mixer, gated(fields, bias=fields.flag("mlp_bias"))), context=2048)


def seed_oss(fields: Fields) -> Architecture:
    bias, output_bias = fields.flag("attention_bias", default=True), fields.flag("attention_out_bias")
    mixer = attention(fields, bias=bias, output_bias=output_bias, head_size=128)
    return model(fields, alike(fields, mixer, gated(fields, bias=fields.flag("mlp_bias"))), context=524288)


def tied_llama(fields: Fields) -> Architecture:
    """Families that are Llama's, with a head that is the embedding's table unless the config says otherwise."""
    return replace(llama(fields), tied=fields.flag("tie_word_embeddings", default=True))


def minicpm(fields: Fields) -> Architecture:
    """Dense, or with experts of the size of a dense part."""
    found = tied_llama(fields)
    if fields.count("num_experts", default=0, least=0, most=MOST_EXPERTS) == 0:
        return found
    part = experts(fields, "num_experts", size="intermediate_size")
    return replace(found, layers=tuple(replace(layer, feed_forward=part) for layer in found.layers))


def ernie(fields: Fields) -> Architecture:
    bias = fields.flag("use_bias")
    mixer = attention(fields, bias=bias, output_bias=bias, head_size=128)
    return model(fields, alike(fields, mixer, gated(fields, bias=bias)), context=131072, tied=True)


def mistral(fields: Fields) -> Architecture:
    mixer = replace(attention(fields, kv_heads=_grouped(fields)), window=fields.window(4096))
    return model(fields, alike(fields, mixer, gated(fields)), context=131072)


def ministral(fields: Fields) -> Architecture:
    window = fields.window(4096 if fields.word("model_type") == "ministral" else None)
    mixer = attention(fields, kv_heads=_grouped(fields))
    layers = windowed(fields, mixer, gated(fields), window=window, near=lambda _: window is not None)
    return model(fields, layers, context=131072)


def _grouped(fields: Fields) -> int | None:
    """Mistral's 8 key heads, where as many share out the heads."""
    heads = fields.count("num_attention_heads")
    return 8 if heads % 8 == 0 else None


def qwen2(fields: Fields) -> Architecture:
    """Biases of queries, keys and values; windows only where the config asks for them, from some layer on."""
    return model(fields, _late_windows(fields, query_norm=QueryNorm.NONE), context=32768)


def qwen3(fields: Fields) -> Architecture:
    return model(fields, _late_windows(fields, query_norm=QueryNorm.HEAD), context=32768)


def _late_windows(fields: Fields, *, query_norm: QueryNorm) -> tuple[DecoderLayer, ...]:
    has_norm = query_norm is QueryNorm.HEAD
    bias = fields.flag("attention_bias") if has_norm else True
    mixer = attention(fields, bias=bias, output_bias=bias and has_norm, head_size=128 if has_norm else None)
    window = fields.window(4096) if fields.flag("use_sliding_window") else None
    first = fields.count("max_window_layers", default=28, least=0)
    mixer = replace(mixer, query_norm=query_norm)
    return windowed(fields, mixer, gated(fields), window=window, near=lambda number: number >= first)


def phi3(fields: Fields) -> Architecture:
    mixer = replace(attention(fields), window=fields.window())
    return model(fields, alike(fields, mixer, gated(fields)), context=4096)


def glm(fields: Fields) -> Architecture:
    mixer = attention(fields, bias=fields.flag("attention_bias", default=True), head_size=128, kv_heads=2, rotated=0.5)
    return model(fields, alike(fields, mixer, gated(fields)), context=131072)


def glm4(fields: Fields) -> Architecture:
    return replace(glm(fields), norm_place=NormPlace.AROUND)


def chatglm(fields: Fields) -> Architecture:
    """ChatGLM 2 and 3, and GLM-4 in its first form."""
    heads = fields.count("num_attention_heads")
    groups = fields.count("multi_query_group_num", default=2) if fields.flag("multi_query_attention") else heads
    size = fields.optional("kv_channels") or head_of(fields, "num_attention_heads", heads)
    bias = fields.flag("add_bias_linear")
    said = {"num_key_value_heads": groups, "head_dim": size, "intermediate_size": fields.count("ffn_hidden_size")}
    whole = replace(fields, values={**fields.values, **said})
    mixer = attention(whole, bias=bias or fields.flag("add_qkv_bias"), output_bias=bias, rotated=0.5)
    layer = DecoderLayer(mixer, FeedForward(whole.count("intermediate_size"), bias=bias))
    count = layer_count(fields, "num_layers", "num_hidden_layers")
    return model(fields, (layer,) * count, context=2048)


def telechat(fields: Fields) -> Architecture:
    """Llama's parts under other names."""
    said = {
        "num_attention_heads": fields.count("n_head", "num_attention_heads"),
        "num_hidden_layers": layer_count(fields, "n_layer", "num_hidden_layers"),
        "intermediate_size": fields.count("ffn_hidden_size", "intermediate_size"),
    }
    whole = replace(fields, values={**fields.values, **said})
    return model(whole, alike(whole, attention(whole), gated(whole)), context=8192)


def baichuan(fields: Fields) -> Architecture:
    """Llama's parts; the larger model has ALiBi in place of rotations, which its config says by its size alone."""
    found = llama(fields)
    if found.hidden < _BAICHUAN_ALIBI:
        return found
    layers = tuple(replace(layer, mixer=replace(attention(fields), rotary_size=0)) for layer in found.layers)
    return replace(found, layers=layers, positions=Positions.ALIBI)


def qwen(fields: Fields) -> Architecture:
    """The first Qwen: biases of queries, keys and values; its config counts both halves of the inner features."""
    part = FeedForward(fields.count("intermediate_size", least=2) // 2)
    return model(fields, alike(fields, attention(fields, bias=True), part), context=8192)


def olmo(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    mixer = attention(fields, bias=bias, output_bias=bias)
    plain = Norm(mean=True, gain=False)
    return replace(model(fields, alike(fields, mixer, gated(fields)), context=2048), norm=plain)


def olmo2(fields: Fields) -> Architecture:
    """Normalisation behind each part, and of all queries and all keys."""
    bias = fields.flag("attention_bias")
    mixer = replace(attention(fields, bias=bias, output_bias=bias), query_norm=QueryNorm.WHOLE)
    window = fields.window(4096) if fields.word("model_type") == "olmo3" else None
    layers = windowed(fields, mixer, gated(fields), window=window, near=lambda n: (n + 1) % 4 != 0)
    return replace(model(fields, layers, context=2048), norm_place=NormPlace.AFTER)


def exaone4(fields: Fields) -> Architecture:
    mixer = replace(attention(fields), query_norm=QueryNorm.HEAD)
    window = fields.window(4096)
    near = fields.near_layers("sliding_window_pattern", default=4)
    layers = windowed(fields, mixer, gated(fields), window=window, near=near)
    return replace(model(fields, layers, context=2048), norm_place=NormPlace.AFTER)


def exaone(fields: Fields) -> Architecture:
    """EXAONE 3: Llama's parts, two of them under other names."""
    return llama(fields.renamed(num_hidden_layers="num_layers", hidden_act="activation_function"))


def cwm(fields: Fields) -> Architecture:
    """Llama with a window in three layers of four."""
    part = gated(fields, bias=fields.flag("mlp_bias"))
    layers = windowed(fields, attention(fields), part, window=fields.window(8192), near=lambda number: number % 4 != 0)
    return model(fields, layers, context=131072)


def hunyuan(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    mixer = replace(attention(fields, bias=bias, output_bias=bias), query_norm=QueryNorm.HEAD)
    return model(fields, alike(fields, mixer, gated(fields)), context=2048)


def stablelm(fields: Fields) -> Architecture:
    mixer = attention(fields, bias=fields.flag("use_qkv_bias"), rotated=0.25)
    if fields.flag("qk_layernorm"):  # each head has gains of its own
        mixer = replace(mixer, query_norm=QueryNorm.WHOLE)
    parallel = fields.flag("use_parallel_residual")
    found = model(fields, alike(fields, mixer, gated(fields)), context=4096)
    return replace(found, norm=LAYER_NORM, parallel=parallel, shared_norm=parallel)


def cohere(fields: Fields) -> Architecture:
    """Both parts of a layer read one normalisation; Cohere 2 has three layers with a window, then one without."""
    bias = fields.flag("attention_bias")
    mixer = attention(fields, bias=bias, output_bias=bias)
    has_norm = fields.flag("use_qk_norm")
    mixer = replace(mixer, query_norm=QueryNorm.WHOLE if has_norm else QueryNorm.NONE)
    window = fields.window(4096) if fields.word("model_type") == "cohere2" else None
    near = fields.near_layers("sliding_window_pattern", default=4)
    layers = windowed(fields, mixer, gated(fields), window=window, near=near)
    found = model(fields, layers, context=8192, tied=True)
    return replace(found, norm=Norm(mean=True), parallel=True, shared_norm=True)


def starcoder2(fields: Fields) -> Architecture:
    bias = fields.flag("use_bias", default=True)
    mixer = replace(attention(fields, bias=bias, output_bias=bias, kv_heads=2), window=fields.window())
    kind = activation(fields, "hidden_act", default="gelu_pytorch_tanh")
    part = FeedForward(fields.count("intermediate_size"), False, kind, bias)
    return replace(model(fields, alike(fields, mixer, part), context=4096, tied=True), norm=LAYER_NORM)


def nemotron(fields: Fields) -> Architecture:
    """Nemotron and Arcee: two products with a squared rectifier between them."""
    bias = fields.flag("attention_bias")
    is_nemotron = fields.word("model_type") == "nemotron"
    mixer = attention(fields, bias=bias, output_bias=bias, rotated=0.5 if is_nemotron else 1.0)
    kind = activation(fields, "hidden_act", default="relu2")
    part = FeedForward(fields.count("intermediate_size"), False, kind, fields.flag("mlp_bias"))
    found = model(fields, alike(fields, mixer, part), context=4096)
    return replace(found, norm=LAYER_NORM) if is_nemotron else found


FAMILIES: Mapping[str, Family] = {
    "llama": llama,
    "internlm": llama,
    "internlm2": llama,
    "internlm3": llama,
    "aquila": llama,
    "baichuan": baichuan,
    "qwen": qwen,
    "granite": llama,
    "seed_oss": seed_oss,
    "smollm3": tied_llama,
    "minicpm": minicpm,
    "ernie4_5": ernie,
    "mistral": mistral,
    "ministral": ministral,
    "ministral3": ministral,
    "qwen2": qwen2,
    "qwen2_vl": qwen2,
    "qwen2_vl_text": qwen2,
    "qwen2_5_vl": qwen2,
    "qwen2_5_vl_text": qwen2,
    "qwen3": qwen3,
    "qwen3_vl_text": qwen3,
    "gemma": gemma,
    "gemma2": gemma2,
    "gemma3_text": gemma3,
    "gemma4_text": gemma4,
    "phi3": phi3,
    "phi3_v": phi3,
    "phi4_multimodal": phi3,
    "glm": glm,
    "glm4": glm4,
    "chatglm": chatglm,
    "telechat": telechat,
    "telechat2": telechat,
    "olmo": olmo,
    "olmo2": olmo2,
    "olmo3": olmo2,
    "exaone": exaone,
    "exaone4": exaone4,
    "cwm": cwm,
    "mimo": qwen2,
    "hunyuan_v1_dense": hunyuan,
    "stablelm": stablelm,
    "cohere": cohere,
    "cohere2": cohere,
    "starcoder2": starcoder2,
    "nemotron": nemotron,
    "arcee": nemotron,
    # before gated feed-forward parts
    "gpt2": gpt2,
    "gpt_bigcode": gpt_bigcode,
    "gpt_neo": gpt_neo,
    "gptj": gptj,
    "codegen": codegen,
    "gpt_neox": gpt_neox,
    "opt": opt,
    "bloom": bloom,
    "mpt": mpt,
    "falcon": falcon,
    "RefinedWeb": falcon,
    "RefinedWebModel": falcon,
    "phi": phi,
    # mixtures of experts, latent attention, linear attention
    "mixtral": mixtral,
    "phimoe": phimoe,
    "qwen2_moe": qwen2_moe,
    "qwen3_moe": qwen3_moe,
    "qwen3_vl_moe_text": qwen3_moe,
    "qwen3_next": qwen3_next,
    "qwen3_5_text": qwen3_5,
    "qwen3_5_moe_text": qwen3_5_moe,
    "deepseek": deepseek,
    "deepseek_v2": deepseek,
    "deepseek_v3": deepseek,
    "kimi_k2": deepseek,
    "minicpm3": minicpm3,
    "glm4_moe": glm4_moe,
    "glm4_moe_lite": deepseek,
    "dots1": dots1,
    "solar_open": glm4_moe,
    "ernie4_5_moe": ernie_moe,
    "exaone_moe": exaone_moe,
    "minimax_m2": minimax_m2,
    "gpt_oss": gpt_oss,
    "granitemoe": granite_moe,
    "granitemoeshared": granite_moe,
    "olmoe": olmoe,
    "llama4_text": llama4,
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "granitemoehybrid": granite_hybrid,
    "bamba": bamba,
}
# Families of several kinds of input whose decoder is nested in the config without a name of its own.
NESTED: Mapping[str, str] = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "llava": "llama",
    "llava_next": "llama",
    "mistral3": "mistral",
    "qwen2_vl": "qwen2_vl_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "llama4": "llama4_text",
    "deepseek_vl_v2": "deepseek_v2",
}
