"""What the configs of many families say in the same words, as parts of an Architecture.

Sizes that make a model have to be in its config. Fields that a config may leave out are as the config classes of
transformers 5.16 have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..architecture import Architecture, Attention, DecoderLayer, FeedForward, Mixture, Norm
from .fields import LARGEST_CONTEXT, LARGEST_VOCABULARY, MOST_EXPERTS, MOST_LAYERS, Fields

LAYER_NORM = Norm(mean=True, bias=True)
_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "relu2": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "quick_gelu": "gelu",
}


def activation(fields: Fields, *names: str, default: str) -> str:
    """The kind of op of an activation."""
    word = fields.word(*names, default=default)
    fields.require(word in _ACTIVATIONS, names[0], f"is {word!r}; expected one of {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[word]


def attention(
    fields: Fields,
    *,
    bias: bool = False,
    output_bias: bool = False,
    kv_heads: int | None = None,
    head_size: int | None = None,
    rotated: float = 1.0,
) -> Attention:
    """Grouped-query attention with rotary positions, in the words of Llama's config."""
    heads = fields.count("num_attention_heads")
    shared = fields.count("num_key_value_heads", default=heads if kv_heads is None else kv_heads)
    divides(fields, "num_key_value_heads", shared, heads, "attention heads")
    size = fields.optional("head_dim") or head_size or head_of(fields, "num_attention_heads", heads)
    share = fields.share("partial_rotary_factor", default=rotated)
    share = fields.inner("rope_parameters").share("partial_rotary_factor", default=share)
    return Attention(heads, shared, size, size, rotary_size=int(size * share), bias=bias, output_bias=output_bias)


def head_of(fields: Fields, name: str, heads: int, *, hidden: str = "hidden_size") -> int:
    """Elements of a head, where heads share out the hidden size."""
    size = fields.count(hidden)
    divides(fields, name, heads, size, f"the {hidden}")
    return size // heads


def divides(fields: Fields, name: str, value: int, whole: int, of_what: str) -> None:
    fields.require(whole % value == 0, name, f"is {value}; expected a divisor of {of_what}, {whole}")


def gated(fields: Fields, *, bias: bool = False, default: str = "silu") -> FeedForward:
    kind = activation(fields, "hidden_act", "hidden_activation", default=default)
    return FeedForward(fields.count("intermediate_size"), True, kind, bias)


def experts(fields: Fields, *names: str, size: str = "moe_intermediate_size", most: int = MOST_EXPERTS) -> Mixture:
    """Gated experts; `names` are those of their number."""
    count = fields.count(*names, most=most)
    active = fields.count("num_experts_per_tok", most=count)
    kind = activation(fields, "hidden_act", default="silu")
    return Mixture(count, active, fields.count(size), activation=kind)


def layer_count(fields: Fields, *names: str) -> int:
    return fields.count(*(names or ("num_hidden_layers",)), most=MOST_LAYERS)


def alike(fields: Fields, mixer: Attention, part: FeedForward | Mixture) -> tuple[DecoderLayer, ...]:
    return (DecoderLayer(mixer, part),) * layer_count(fields)


def windowed(
    fields: Fields,
    mixer: Attention,
    part: FeedForward | Mixture,
    *,
    window: int | None,
    near: Callable[[int], bool],
) -> tuple[DecoderLayer, ...]:
    """Layers with and without a window: by `layer_types`, else by the rule of the family."""
    count = layer_count(fields)
    types = fields.layer_types(count)
    full, short = DecoderLayer(mixer, part), DecoderLayer(replace(mixer, window=window), part)
    return tuple(
        short if (types[number] == "sliding_attention" if types else near(number)) else full for number in range(count)
    )


def model(
    fields: Fields, layers: tuple[DecoderLayer, ...], *, context: int, tied: bool = False, vocabulary: int | None = None
) -> Architecture:
    """A model of these layers, with RMS normalisation before each part and rotary positions."""
    return Architecture(
        name=fields.word("model_type"),
        family=fields.word("model_type"),
        hidden=fields.count("hidden_size", "n_embd", "n_embed", "d_model"),
        vocabulary=fields.count("vocab_size", "padded_vocab_size", default=vocabulary, most=LARGEST_VOCABULARY),
        layers=layers,
        longest_context=fields.count(
            *("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
            default=context,
            most=LARGEST_CONTEXT,
        ),
        tied=fields.flag("tie_word_embeddings", default=tied),
    )
