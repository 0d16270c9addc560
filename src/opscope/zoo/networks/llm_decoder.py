"""One step of a Llama-like decoder with a key-value cache: `decode` reads one token, `prefill` a sequence.

Shapes and tensor names follow a Hugging Face export. The defaults are Llama 2 7B.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..blueprint import Blueprint, Kind, Value
from ..network import Network, Option, Settings
from ..tensor_layers import (
    add,
    attend,
    binary,
    cast,
    concat,
    embedding,
    expand,
    last_slice,
    linear,
    matmul,
    narrow,
    reshape,
    rms_norm,
    silu,
    softmax,
    transpose,
    unary,
    unsqueeze,
)

_EPSILON = 1e-5
_MASKED = -10_000.0  # far below every score, and representable in f16
_ROTARY_BASE = 10_000.0
_PREFILL_SEQUENCE, _DECODE_CACHE = 128, 1024  # defaults


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes that every layer needs."""

    batch: int
    sequence: int
    cached: int  # tokens in the cache before this step
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


@dataclass(frozen=True, slots=True)
class _Shared:
    """Values that every layer reads."""

    cosine: Value
    sine: Value
    mask: Value


def build(plan: Blueprint, settings: Settings) -> None:
    shape = _shape(settings)
    ids = plan.input("input_ids", (shape.batch, shape.sequence), kind=Kind.I64)
    mask = plan.input("attention_mask", (shape.batch, shape.cached + shape.sequence), kind=Kind.I64)
    positions = plan.input("position_ids", (shape.batch, shape.sequence), kind=Kind.I64)
    cosine, sine = _rotations(plan, "model/rotary_emb", positions, shape.head_size)
    shared = _Shared(cosine, sine, _mask(plan, "model", mask, positions))
    vocabulary = settings.number("vocabulary")
    x = embedding(plan, "model/embed_tokens", (vocabulary, shape.hidden), ids)
    for layer in range(settings.number("layers")):
        x = _layer(plan, layer, x, shape, shared)
    x = rms_norm(plan, "model/norm", x, epsilon=_EPSILON)
    plan.output("logits", linear(plan, "lm_head", x, vocabulary, bias=False))
    plan.outputs.insert(0, plan.outputs.pop())  # logits first, then the cache


def _shape(settings: Settings) -> _Shape:
    decode = settings.word("step") == "decode"
    sequence = settings.sequence or (1 if decode else _PREFILL_SEQUENCE)
    settings.require(not decode or sequence == 1, f"sequence is {sequence} in a decode step", "1, or step=prefill")
    hidden, heads = settings.number("hidden"), settings.number("heads")
    kv_heads = settings.number("kv_heads", heads)
    settings.require(hidden % (2 * heads) == 0, f"hidden {hidden} over {heads} heads", "an even size for each head")
    settings.require(heads % kv_heads == 0, f"{heads} heads over {kv_heads} kv_heads", "heads a multiple of kv_heads")
    cached = settings.number("kv_length", _DECODE_CACHE if decode else 0)
    return _Shape(settings.batch, sequence, cached, hidden, heads, kv_heads, settings.number("intermediate"))


def _rotations(plan: Blueprint, at: str, positions: Value, size: int) -> tuple[Value, Value]:
    """Return cosine and sine of every position's angles, as (batch, 1, sequence, head size), computed in f32."""
    rates = _ROTARY_BASE ** -(np.arange(0, size, 2) / size)
    batch, sequence = positions.shape
    column = plan.literal(at, rates[None, :, None], Kind.F32)
    row = cast(plan, at, unsqueeze(plan, at, positions, 1), Kind.F32)
    angles = plan.step("MatMul", at, (column, row), (batch, size // 2, sequence), kind=Kind.F32, precise=True)
    angles = transpose(plan, at, angles, (0, 2, 1))
    angles = unsqueeze(plan, at, concat(plan, at, [angles, angles], axis=2), 1)
    cosine, sine = (narrow(plan, at, unary(plan, op, at, angles)) for op in ("Cos", "Sin"))
    return cosine, sine


def _mask(plan: Blueprint, at: str, attention_mask: Value, positions: Value) -> Value:
    """Return 0 for keys that exist and are not after the query, as (batch, 1, sequence, cache and sequence)."""
    batch, sequence, length = *positions.shape, attention_mask.shape[1]
    keys = plan.literal(at, np.arange(length)[None, None, None])
    queries = unsqueeze(plan, at, unsqueeze(plan, at, positions, 1), 3)
    shape = (batch, 1, sequence, length)
    earlier = plan.step("LessOrEqual", at, (keys, queries), shape, kind=Kind.BOOL)
    real = unsqueeze(plan, at, unsqueeze(plan, at, cast(plan, at, attention_mask, Kind.BOOL), 1), 2)
    visible = plan.step("And", at, (earlier, real), shape, kind=Kind.BOOL)
    levels = [plan.literal(at, level, Kind.FLOAT) for level in (0.0, _MASKED)]
    return plan.step("Where", at, (visible, *levels), shape, precise=True)


def _layer(plan: Blueprint, number: int, x: Value, shape: _Shape, shared: _Shared) -> Value:
    at = f"model/layers.{number}"
    normal = rms_norm(plan, f"{at}/input_layernorm", x, epsilon=_EPSILON)
    x = add(plan, at, x, _attention(plan, number, normal, shape, shared))
    normal = rms_norm(plan, f"{at}/post_attention_layernorm", x, epsilon=_EPSILON)
    return add(plan, at, x, _mlp(plan, f"{at}/mlp", normal, shape.intermediate))


def _mlp(plan: Blueprint, at: str, x: Value, intermediate: int) -> Value:
    """Add a SwiGLU feed-forward block."""
    gate = silu(plan, f"{at}/act_fn", linear(plan, f"{at}/gate_proj", x, intermediate, bias=False))
    raised = linear(plan, f"{at}/up_proj", x, intermediate, bias=False)
    # The product of two values has long tails: a range of four root mean squares would clip one value in seventy.
    product = plan.step("Mul", at, (gate, raised), gate.shape, rms=0.6, span=(-6.0, 6.0), precise=True)
    return linear(plan, f"{at}/down_proj", product, x.shape[-1], bias=False)


def _attention(plan: Blueprint, number: int, x: Value, shape: _Shape, shared: _Shared) -> Value:
    """Add grouped-query attention: rotate, append to the cache, repeat key-value heads, attend."""
    at, size = f"model/layers.{number}/self_attn", shape.head_size
    query = _rotate(plan, at, _heads(plan, at, "q_proj", x, heads=shape.heads, size=size), shared)
    key = _rotate(plan, at, _heads(plan, at, "k_proj", x, heads=shape.kv_heads, size=size), shared)
    value = _heads(plan, at, "v_proj", x, heads=shape.kv_heads, size=size)
    key = _repeat(plan, at, _append_to_cache(plan, at, f"{number}.key", key, shape), shape)
    value = _repeat(plan, at, _append_to_cache(plan, at, f"{number}.value", value, shape), shape)
    scores = matmul(plan, at, query, transpose(plan, at, key, (0, 1, 3, 2)), rms=sqrt(size))
    scores = binary(plan, "Div", at, scores, plan.literal(at, sqrt(size), Kind.FLOAT))
    keys = shape.cached + 1  # keys that the first query attends to
    shares = softmax(plan, at, binary(plan, "Add", at, scores, shared.mask), keys=keys)
    mixed = attend(plan, at, shares, value)
    mixed = transpose(plan, at, mixed, (0, 2, 1, 3))
    mixed = reshape(plan, at, mixed, (shape.batch, shape.sequence, shape.hidden))
    return linear(plan, f"{at}/o_proj", mixed, shape.hidden, bias=False)


def _heads(plan: Blueprint, at: str, name: str, x: Value, *, heads: int, size: int) -> Value:
    """Return a projection of `x` as (batch, heads, sequence, head size)."""
    flat = linear(plan, f"{at}/{name}", x, heads * size, bias=False)
    return transpose(plan, at, reshape(plan, at, flat, (*x.shape[:2], heads, size)), (0, 2, 1, 3))


def _rotate(plan: Blueprint, at: str, x: Value, shared: _Shared) -> Value:
    """Apply rotary position embedding: x · cos + (second half negated, first half) · sin."""
    half = x.shape[-1] // 2
    first, second = last_slice(plan, at, x, 0, half), last_slice(plan, at, x, half, 2 * half)
    rotated = concat(plan, at, [unary(plan, "Neg", at, second), first], axis=3, precise=True)
    straight = binary(plan, "Mul", at, x, shared.cosine)
    return binary(plan, "Add", at, straight, binary(plan, "Mul", at, rotated, shared.sine))


def _append_to_cache(plan: Blueprint, at: str, name: str, new: Value, shape: _Shape) -> Value:
    """Return the cache with this step's tokens appended, which is also a graph output."""
    if shape.cached:
        kept = (shape.batch, shape.kv_heads, shape.cached, shape.head_size)
        new = concat(plan, at, [plan.input(f"past_key_values.{name}", kept), new], axis=2)
    plan.output(f"present.{name}", new)
    return new


def _repeat(plan: Blueprint, at: str, x: Value, shape: _Shape) -> Value:
    """Repeat each key-value head once per query head that uses it."""
    group = shape.heads // shape.kv_heads
    if group == 1:
        return x
    batch, heads, length, size = x.shape
    wide = expand(plan, at, unsqueeze(plan, at, x, 2), (batch, heads, group, length, size))
    return reshape(plan, at, wide, (batch, shape.heads, length, size))


NETWORK = Network(
    "llm-decoder",
    "Llama-like decoder with key-value cache, one decode or prefill step; 6.74 G parameters by default",
    build,
    (
        Option("layers", 32, "decoder layers", largest=1000),
        Option("hidden", 4096, "features of a token"),
        Option("heads", 32, "query heads"),
        Option("kv_heads", None, "key and value heads; as many as heads by default"),
        Option("intermediate", 11008, "features inside the feed-forward part"),
        Option("vocabulary", 32000, "rows of the word table", largest=1 << 24),
        Option("kv_length", None, "tokens already cached; 1024 for decode, 0 for prefill by default", smallest=0),
        Option("step", "decode", "decode: one token; prefill: a sequence", choices=("decode", "prefill")),
    ),
    takes_sequence=True,
    task="text",
)
