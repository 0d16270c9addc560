"""One step of a Llama-like decoder with a key-value cache: `decode` reads one token, `prefill` a sequence.

What is computed is written in `language_models/decoder.py`; here is how an exporter writes it down. Shapes and tensor
names follow a Hugging Face export. The defaults are Llama 2 7B.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from ...language_models.architecture import (
    Architecture,
    Attention,
    DecoderLayer,
    FeedForward,
    Matrix,
)
from ...language_models.decoder import At, DecoderStep, OtherPart, write_decoder
from ..blueprint import Blueprint, Value, ValueKind
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


def build(plan: Blueprint, settings: Settings) -> None:
    step = _step(settings)
    write_decoder(_architecture(settings, step), _Export(plan, step))


def _step(settings: Settings) -> DecoderStep:
    decode = settings.word("step") == "decode"
    sequence = settings.sequence or (1 if decode else _PREFILL_SEQUENCE)
    settings.require(not decode or sequence == 1, f"sequence is {sequence} in a decode step", "1, or step=prefill")
    return DecoderStep(settings.batch, sequence, settings.number("kv_length", _DECODE_CACHE if decode else 0))


def _architecture(settings: Settings, step: DecoderStep) -> Architecture:
    hidden, heads = settings.number("hidden"), settings.number("heads")
    kv_heads = settings.number("kv_heads", heads)
    settings.require(hidden % (2 * heads) == 0, f"hidden {hidden} over {heads} heads", "an even size for each head")
    settings.require(heads % kv_heads == 0, f"{heads} heads over {kv_heads} kv_heads", "heads a multiple of kv_heads")
    size = hidden // heads
    mixer = Attention(heads, kv_heads, size, size, rotary_size=size)
    layers = (DecoderLayer(mixer, FeedForward(settings.number("intermediate"))),) * settings.number("layers")
    return Architecture(settings.name, "llama", hidden, settings.number("vocabulary"), layers, step.length)


@dataclass(slots=True)
class _Export:
    """Writes a decoder as an exporter does: plain operators, and a cache that grows by concatenation."""

    plan: Blueprint
    step: DecoderStep
    rotations: tuple[Value, Value] = field(init=False)
    mask: Value = field(init=False)

    def start(self, architecture: Architecture) -> Value:
        plan, step = self.plan, self.step
        ids = plan.input("input_ids", (step.batch, step.tokens), kind=ValueKind.I64)
        mask = plan.input("attention_mask", (step.batch, step.length), kind=ValueKind.I64)
        positions = plan.input("position_ids", (step.batch, step.tokens), kind=ValueKind.I64)
        size = max(layer.mixer.rotary_size for layer in architecture.layers if isinstance(layer.mixer, Attention))
        self.rotations = _rotations(plan, "model/rotary_emb", positions, size)
        self.mask = _mask(plan, "model", mask, positions)
        table = architecture.table
        return embedding(plan, "model/embed_tokens", (table.rows, table.columns), ids)

    def norm(self, at: At, x: Value) -> Value:
        return rms_norm(self.plan, at.path, x, epsilon=_EPSILON)

    def add(self, at: At, a: Value, b: Value) -> Value:
        return add(self.plan, at.path, a, b)

    def multiply(self, at: At, a: Value, b: Value) -> Value:
        # The product of two values has long tails: a range of four root mean squares would clip one value in seventy.
        return self.plan.step("Mul", at.path, (a, b), a.shape, rms=0.6, span=(-6.0, 6.0), precise=True)

    def activate(self, at: At, kind: str, x: Value) -> Value:
        return {"silu": silu}[kind](self.plan, at.path, x)

    def linear(self, at: At, x: Value, matrix: Matrix) -> Value:
        return linear(self.plan, at.path, x, matrix.columns, bias=matrix.bias)

    def heads(self, at: At, x: Value, count: int) -> Value:
        """Return the features of tokens as (batch, heads, sequence, head size)."""
        apart = reshape(self.plan, at.path, x, (*x.shape[:2], count, x.shape[-1] // count))
        return transpose(self.plan, at.path, apart, (0, 2, 1, 3))

    def rotate(self, at: At, x: Value, size: int) -> Value:
        """Apply rotary position embedding: x · cos + (second half negated, first half) · sin."""
        plan, path, half, (cosine, sine) = self.plan, at.path, size // 2, self.rotations
        first, second = last_slice(plan, path, x, 0, half), last_slice(plan, path, x, half, 2 * half)
        rotated = concat(plan, path, [unary(plan, "Neg", path, second), first], axis=3, precise=True)
        straight = binary(plan, "Mul", path, x, cosine)
        return binary(plan, "Add", path, straight, binary(plan, "Mul", path, rotated, sine))

    def append(self, at: At, name: str, x: Value, attention: Attention) -> Value:
        """Append this step's tokens to the cache, which is also a graph output; repeat each key-value head once per
        query head that uses it."""
        batch, heads, _, size = x.shape
        if self.step.cached:
            kept = (batch, heads, self.step.cached, size)
            past = self.plan.input(f"past_key_values.{at.layer}.{name}", kept)
            x = concat(self.plan, at.path, [past, x], axis=2)
        self.plan.output(f"present.{at.layer}.{name}", x)
        group = attention.heads // heads
        if group == 1:
            return x
        wide = (batch, heads, group, self.step.length, size)
        repeated = expand(self.plan, at.path, unsqueeze(self.plan, at.path, x, 2), wide)
        return reshape(self.plan, at.path, repeated, (batch, attention.heads, self.step.length, size))

    def attend(self, at: At, query: Value, key: Value, value: Value, attention: Attention) -> Value:
        plan, path, size = self.plan, at.path, attention.head_size
        scores = matmul(plan, path, query, transpose(plan, path, key, (0, 1, 3, 2)), rms=sqrt(size))
        scores = binary(plan, "Div", path, scores, plan.literal(path, sqrt(size), ValueKind.FLOAT))
        keys = self.step.cached + 1  # keys that the first query attends to
        shares = softmax(plan, path, binary(plan, "Add", path, scores, self.mask), keys=keys)
        mixed = transpose(plan, path, attend(plan, path, shares, value), (0, 2, 1, 3))
        return reshape(plan, path, mixed, (*mixed.shape[:2], attention.heads * attention.value_size))

    def other(self, at: At, x: Value, part: OtherPart) -> Value:
        raise NotImplementedError(f"{at.path}: the options of this network make no {type(part).__name__}")

    def finish(self, at: At, x: Value, architecture: Architecture) -> None:
        self.plan.output("logits", self.linear(at, x, architecture.head))
        self.plan.outputs.insert(0, self.plan.outputs.pop())  # logits first, then the cache


def _rotations(plan: Blueprint, at: str, positions: Value, size: int) -> tuple[Value, Value]:
    """Return cosine and sine of every position's angles, as (batch, 1, sequence, head size), computed in f32."""
    rates = _ROTARY_BASE ** -(np.arange(0, size, 2) / size)
    batch, sequence = positions.shape
    column = plan.literal(at, rates[None, :, None], ValueKind.F32)
    row = cast(plan, at, unsqueeze(plan, at, positions, 1), ValueKind.F32)
    angles = plan.step("MatMul", at, (column, row), (batch, size // 2, sequence), kind=ValueKind.F32, precise=True)
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
    earlier = plan.step("LessOrEqual", at, (keys, queries), shape, kind=ValueKind.BOOL)
    real = unsqueeze(plan, at, unsqueeze(plan, at, cast(plan, at, attention_mask, ValueKind.BOOL), 1), 2)
    visible = plan.step("And", at, (earlier, real), shape, kind=ValueKind.BOOL)
    levels = [plan.literal(at, level, ValueKind.FLOAT) for level in (0.0, _MASKED)]
    return plan.step("Where", at, (visible, *levels), shape, precise=True)


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
