"""BERT, as in a Hugging Face export of `BertModel`: separate query, key and value, a mask, and a pooler."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ..blueprint import Blueprint, Value, ValueKind
from ..image_layers import dense
from ..network import Network, Option, Settings
from ..tensor_layers import (
    add,
    attend,
    binary,
    cast,
    embedding,
    gelu,
    layer_norm,
    linear,
    matmul,
    reshape,
    select,
    softmax,
    transpose,
    unary,
    unsqueeze,
)

_EPSILON = 1e-12
_MASKED = -10_000.0  # far below every score, and representable in f16
_TOKEN_TYPES = 2


def build(plan: Blueprint, settings: Settings) -> None:
    """Add the inputs, embeddings, encoder layers and pooler."""
    hidden, heads = settings.number("hidden"), settings.number("heads")
    sequence = settings.sequence or 128
    positions = settings.number("positions")
    settings.require(sequence <= positions, f"sequence is {sequence}", f"at most positions, {positions}")
    settings.require(hidden % heads == 0, f"hidden {hidden} over {heads} heads", "a multiple of heads")
    ids = {
        name: plan.input(name, (settings.batch, sequence), kind=ValueKind.I64)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    x = _embeddings(plan, ids, settings)
    mask = (_packed_mask if settings.word("inputs") == "packed" else _mask)(plan, ids["attention_mask"])
    for layer in range(settings.number("layers")):
        x = _layer(plan, f"encoder/layer.{layer}", x, mask, heads=heads, intermediate=settings.number("intermediate"))
    plan.output("last_hidden_state", x)
    first = select(plan, "pooler", x, 0, axis=1)
    plan.output("pooler_output", unary(plan, "Tanh", "pooler/activation", dense(plan, "pooler/dense", first, hidden)))


def _embeddings(plan: Blueprint, ids: dict[str, Value], settings: Settings) -> Value:
    at, hidden = "embeddings", settings.number("hidden")
    rows = plan.literal(at, np.arange(ids["input_ids"].shape[1])[None])
    words = embedding(plan, f"{at}/word_embeddings", (settings.number("vocabulary"), hidden), ids["input_ids"])
    types = embedding(plan, f"{at}/token_type_embeddings", (_TOKEN_TYPES, hidden), ids["token_type_ids"])
    places = embedding(plan, f"{at}/position_embeddings", (settings.number("positions"), hidden), rows)
    total = add(plan, at, add(plan, at, words, types), places)
    return layer_norm(plan, f"{at}/LayerNorm", total, epsilon=_EPSILON)


def _mask(plan: Blueprint, attention_mask: Value) -> Value:
    """Return 0 for tokens that may be attended to and a large negative number elsewhere, as (batch, 1, 1, sequence)."""
    wide = unsqueeze(plan, "", unsqueeze(plan, "", attention_mask, 1), 2)
    inverse = binary(plan, "Sub", "", plan.literal("", 1.0, ValueKind.FLOAT), cast(plan, "", wide, ValueKind.FLOAT))
    return binary(plan, "Mul", "", inverse, plan.literal("", _MASKED, ValueKind.FLOAT))


def _packed_mask(plan: Blueprint, texts: Value) -> Value:
    """Return 0 for tokens of one text and a large negative number elsewhere, as (batch, 1, sequence, sequence).

    Several texts share an input; the mask says which one a token belongs to.
    """
    batch, sequence = texts.shape
    queries, keys = (unsqueeze(plan, "", unsqueeze(plan, "", texts, 1), axis) for axis in (3, 2))
    same = plan.step("Equal", "", (queries, keys), (batch, 1, sequence, sequence), kind=ValueKind.BOOL)
    inverse = binary(plan, "Sub", "", plan.literal("", 1.0, ValueKind.FLOAT), cast(plan, "", same, ValueKind.FLOAT))
    return binary(plan, "Mul", "", inverse, plan.literal("", _MASKED, ValueKind.FLOAT))


def _layer(plan: Blueprint, at: str, x: Value, mask: Value, *, heads: int, intermediate: int) -> Value:
    mixed = _attention(plan, f"{at}/attention/self", x, mask, heads)
    mixed = linear(plan, f"{at}/attention/output/dense", mixed, x.shape[-1])
    x = add(plan, f"{at}/attention/output", mixed, x)
    x = layer_norm(plan, f"{at}/attention/output/LayerNorm", x, epsilon=_EPSILON)
    wide = linear(plan, f"{at}/intermediate/dense", x, intermediate)
    wide = gelu(plan, f"{at}/intermediate/intermediate_act_fn", wide)
    narrow = linear(plan, f"{at}/output/dense", wide, x.shape[-1])
    return layer_norm(plan, f"{at}/output/LayerNorm", add(plan, f"{at}/output", narrow, x), epsilon=_EPSILON)


def _attention(plan: Blueprint, at: str, x: Value, mask: Value, heads: int) -> Value:
    batch, sequence, hidden = x.shape
    size = hidden // heads
    split = (batch, sequence, heads, size)
    query, key, value = (linear(plan, f"{at}/{name}", x, hidden) for name in ("query", "key", "value"))
    query = transpose(plan, at, reshape(plan, at, query, split), (0, 2, 1, 3))
    key = transpose(plan, at, reshape(plan, at, key, split), (0, 2, 3, 1))
    value = transpose(plan, at, reshape(plan, at, value, split), (0, 2, 1, 3))
    scores = matmul(plan, at, query, key, rms=sqrt(size))
    scores = binary(plan, "Div", at, scores, plan.literal(at, sqrt(size), ValueKind.FLOAT))
    shares = softmax(plan, at, binary(plan, "Add", at, scores, mask), keys=sequence)
    mixed = attend(plan, at, shares, value)
    return reshape(plan, at, transpose(plan, at, mixed, (0, 2, 1, 3)), (batch, sequence, hidden))


NETWORK = Network(
    "bert-base",
    "BERT base cased, text encoder, 108.3 M parameters",
    build,
    (
        Option("layers", 12, "encoder layers", largest=1000),
        Option("hidden", 768, "features of a token"),
        Option("heads", 12, "attention heads"),
        Option("intermediate", 3072, "features inside the feed-forward part"),
        Option("vocabulary", 28996, "rows of the word table (30522 for uncased)", largest=1 << 24),
        Option("positions", 512, "rows of the position table, the longest sequence"),
        Option("inputs", "single", "single: one text in an input; packed: several", choices=("single", "packed")),
    ),
    takes_sequence=True,
    task="text",
)
