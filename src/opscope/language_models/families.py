"""Families of decoder-only models: the config of each → an Architecture.

A family reads the fields of its own config class; what a config leaves out is as that class has it (transformers 4.57).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from .architecture import Architecture, Attention, FeedForward, Layer, Mixture, Norm, NormPlace, Positions, QueryNorm
from .config_fields import LARGEST_CONTEXT, LARGEST_VOCABULARY, MOST_EXPERTS, MOST_LAYERS, Fields

Family = Callable[[Fields], Architecture]

RMS = Norm(mean=False)
LAYER_NORM = Norm(mean=True, bias=True)
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "swiglu": "silu",
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_python": "gelu",
    "quick_gelu": "gelu",
    "relu2": "relu",
}


def activation(fields: Fields, *names: str, default: str) -> str:
    """The kind of op of an activation."""
    word = fields.word(*names, default=default)
    fields.require(word in _ACTIVATIONS, names[0], f"is {word!r}; expected one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[word]


def attention(fields: Fields, *, heads: int = 32, kv_heads: int | None = None, bias: bool = False) -> Attention:
    """Grouped-query attention with rotary positions, as Llama's fields say it."""
    hidden = fields.count("hidden_size")
    heads = fields.count("num_attention_heads", default=heads)
    kv_heads = fields.count("num_key_value_heads", default=kv_heads or heads)
    fields.require(
        heads % kv_heads == 0, "num_key_value_heads", f"is {kv_heads}; expected a divisor of {heads} attention heads"
    )
    size = fields.optional("head_dim")
    if size is None:
        fields.require(hidden % heads == 0, "num_attention_heads", f"is {heads}; expected a divisor of {hidden}")
        size = hidden // heads
    rotated = int(size * fields.share("partial_rotary_factor", "rotary_pct", default=1.0))
    return Attention(heads, kv_heads, size, size, rotary_size=rotated, bias=bias)


def architecture(fields: Fields, layers: tuple[Layer, ...], *, context: int = 2048, tied: bool = False) -> Architecture:
    """What every config says in the same words."""
    return Architecture(
        name=fields.word("_name_or_path") or fields.word("model_type"),
        family=fields.word("model_type"),
        hidden=fields.count("hidden_size"),
        vocabulary=fields.count("vocab_size", most=LARGEST_VOCABULARY),
        layers=layers,
        longest_context=fields.count("max_position_embeddings", default=context, most=LARGEST_CONTEXT),
        tied=fields.flag("tie_word_embeddings", default=tied),
    )


def layer_count(fields: Fields, *names: str, default: int | None = None) -> int:
    return fields.count(*(names or ("num_hidden_layers",)), default=default, most=MOST_LAYERS)


def gated(fields: Fields, *, bias: bool = False, act: str = "silu", intermediate: int | None = None) -> FeedForward:
    kind = activation(fields, "hidden_act", "hidden_activation", default=act)
    return FeedForward(fields.count("intermediate_size", default=intermediate), True, kind, bias)


def llama(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    mixer = replace(attention(fields, bias=bias), output_bias=bias)
    layer = Layer(mixer, gated(fields, bias=fields.flag("mlp_bias")))
    return architecture(fields, (layer,) * layer_count(fields, default=32))


def mistral(fields: Fields) -> Architecture:
    mixer = replace(attention(fields, kv_heads=8), window=fields.optional("sliding_window", most=LARGEST_CONTEXT))
    layer = Layer(mixer, gated(fields, intermediate=14336))
    return architecture(fields, (layer,) * layer_count(fields, default=32), context=4096 * 32)


def mixtral(fields: Fields) -> Architecture:
    experts = fields.count("num_local_experts", default=8, most=MOST_EXPERTS)
    active = fields.count("num_experts_per_tok", default=2, most=experts)
    dense = gated(fields, intermediate=14336)
    part = Mixture(experts, active, dense.intermediate, activation=dense.activation)
    mixer = replace(attention(fields, kv_heads=8), window=fields.optional("sliding_window", most=LARGEST_CONTEXT))
    return architecture(fields, (Layer(mixer, part),) * layer_count(fields, default=32), context=4096 * 32)


def qwen2(fields: Fields) -> Architecture:
    """Biases of queries, keys and values; windows only where the config says so, from some layer on."""
    mixer = attention(fields, kv_heads=32, bias=True)
    layers = windowed(fields, mixer, gated(fields, intermediate=22016), layer_count(fields, default=32))
    return architecture(fields, layers, context=32768)


def qwen3(fields: Fields) -> Architecture:
    bias = fields.flag("attention_bias")
    head = attention(_with(fields, "head_dim", 128), kv_heads=32, bias=bias)
    mixer = replace(head, output_bias=bias, query_norm=QueryNorm.HEAD)
    layers = windowed(fields, mixer, gated(fields, intermediate=22016), layer_count(fields, default=32))
    return architecture(fields, layers, context=32768)


def windowed(fields: Fields, mixer: Attention, part: FeedForward | Mixture, count: int) -> tuple[Layer, ...]:
    """Layers by `layer_types`, else full ones up to `max_window_layers` and windows behind, if windows are used."""
    window = fields.optional("sliding_window", most=LARGEST_CONTEXT) if fields.flag("use_sliding_window") else None
    first = fields.count("max_window_layers", default=28, least=0)
    full, near = Layer(mixer, part), Layer(replace(mixer, window=window), part)
    return tuple(near if window is not None and number >= first else full for number in range(count))


def opt(fields: Fields) -> Architecture:
    hidden, heads = fields.count("hidden_size", default=768), fields.count("num_attention_heads", default=12)
    fields.require(hidden % heads == 0, "num_attention_heads", f"is {heads}; expected a divisor of {hidden}")
    bias = fields.flag("enable_bias", default=True)
    mixer = Attention(heads, heads, hidden // heads, hidden // heads, bias=bias, output_bias=bias)
    part = FeedForward(
        fields.count("ffn_dim", default=3072), False, activation(fields, "activation_function", default="relu"), bias
    )
    count = layer_count(fields, default=12)
    before = fields.flag("do_layer_norm_before", default=True)
    width = fields.optional("word_embed_proj_dim")
    context = fields.count("max_position_embeddings", default=2048, most=LARGEST_CONTEXT)
    return replace(
        architecture(fields, (Layer(mixer, part),) * count, context=2048, tied=True),
        norm=LAYER_NORM,
        norm_place=NormPlace.BEFORE if before else NormPlace.AFTER,
        final_norm=before and not fields.flag("_remove_final_layer_norm"),
        positions=Positions.LEARNED,
        position_rows=context + 2,  # the first two are kept for padding
        embedding_size=None if width in (None, hidden) else width,
    )


def gptj(fields: Fields) -> Architecture:
    hidden, heads = fields.count("n_embd", "hidden_size", default=4096), fields.count("n_head", default=16)
    fields.require(hidden % heads == 0, "n_head", f"is {heads}; expected a divisor of {hidden}")
    size = hidden // heads
    rotated = fields.count("rotary_dim", default=64, most=size)
    kind = activation(fields, "activation_function", default="gelu_new")
    part = FeedForward(fields.count("n_inner", default=4 * hidden), False, kind, True)
    layer = Layer(Attention(heads, heads, size, size, rotary_size=rotated), part)
    return Architecture(
        fields.word("_name_or_path") or "gptj",
        "gptj",
        hidden,
        fields.count("vocab_size", default=50400, most=LARGEST_VOCABULARY),
        (layer,) * layer_count(fields, "n_layer", default=28),
        fields.count("n_positions", default=2048, most=LARGEST_CONTEXT),
        norm=LAYER_NORM,
        parallel=True,
        shared_norm=True,
        head_bias=True,
        tied=fields.flag("tie_word_embeddings"),
    )


def _with(fields: Fields, name: str, value: int) -> Fields:
    """The fields with a default of this family where the config has none."""
    return fields if fields.has(name) else replace(fields, values={**fields.values, name: value})


FAMILIES: Mapping[str, Family] = {
    "llama": llama,
    "mistral": mistral,
    "mixtral": mixtral,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "opt": opt,
    "gptj": gptj,
}
