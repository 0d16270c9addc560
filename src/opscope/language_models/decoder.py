"""One step of a decoder, in the order in which it is computed: the one description that graphs and model files share.

What is done is said here; how it is written down is up to a `DecoderWriter`: as ops of a Graph (`decoder_graph.py`), or
as the operators that an exporter writes into a file (the zoo's `llm-decoder`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol, TypeVar

from .architecture import (
    Architecture,
    Attention,
    DecoderLayer,
    DecoderPart,
    FeedForward,
    LatentAttention,
    Matrix,
    Mixture,
    NormPlace,
    QueryNorm,
    Recurrent,
    SideInput,
)

V = TypeVar("V")
OtherPart = Attention | LatentAttention | Recurrent | Mixture | SideInput  # of attention: that reuses a cache


class Routing(Enum):
    """How the tokens of a step agree on the experts of a mixture."""

    EVEN = "even"  # every expert is as likely as any other
    ALIKE = "alike"  # tokens choose among half of the experts, as those of one subject may
    APART = "apart"  # no two tokens share an expert before all are in use


@dataclass(frozen=True, slots=True)
class DecoderStep:
    """What one run of a decoder is given."""

    batch: int
    tokens: int  # of each sequence, new in this step
    cached: int  # of each sequence, from earlier steps
    routing: Routing = Routing.EVEN

    def __post_init__(self) -> None:
        if min(self.batch, self.tokens) < 1 or self.cached < 0:
            raise ValueError(f"{self}: expected a batch and tokens of 1 or more, and no fewer than 0 cached")

    @property
    def length(self) -> int:
        """Tokens of a sequence after the step."""
        return self.cached + self.tokens

    def keys(self, window: int | None) -> int:
        """Keys that a block of queries reads.

        Where a window is shorter than the sequence, queries are taken in blocks of at most a window's length: each
        reads the window before it and its own keys.
        """
        return self.length if window is None else min(self.length, window + min(self.tokens, window) - 1)


def decode(batch: int, context: int) -> DecoderStep:
    """One new token for each sequence, with `context` tokens in the cache."""
    return DecoderStep(batch, 1, context)


def prefill(batch: int, prompt: int, cached: int = 0) -> DecoderStep:
    """All tokens of a prompt, or a part of it behind `cached` earlier ones."""
    return DecoderStep(batch, prompt, cached)


@dataclass(frozen=True, slots=True)
class At:
    """Where in a decoder something is: the module as exporters name it, its part, and its layer."""

    path: str
    block: DecoderPart
    layer: int | None = None

    def __truediv__(self, module: str) -> At:
        return replace(self, path=f"{self.path}/{module}")

    def of(self, block: DecoderPart) -> At:
        return replace(self, block=block)


class DecoderWriter(Protocol[V]):
    """Writes down what a decoder does; `V` is a value."""

    def start(self, architecture: Architecture) -> V:
        """The embedded tokens, with what every layer needs: positions and masks."""
        ...

    def norm(self, at: At, x: V) -> V: ...

    def add(self, at: At, a: V, b: V) -> V: ...

    def multiply(self, at: At, a: V, b: V) -> V: ...

    def activate(self, at: At, kind: str, x: V) -> V: ...

    def linear(self, at: At, x: V, matrix: Matrix) -> V: ...

    def heads(self, at: At, x: V, count: int) -> V:
        """The features of a token as so many heads, which are computed apart from each other."""
        ...

    def rotate(self, at: At, x: V, size: int) -> V:
        """Turn the first `size` elements of each head by an angle that its position gives."""
        ...

    def append(self, at: At, name: str, x: V, attention: Attention) -> V:
        """The cache of that name with the new tokens, as attention reads it."""
        ...

    def attend(self, at: At, query: V, key: V, value: V, attention: Attention) -> V: ...

    def other(self, at: At, x: V, part: OtherPart) -> V:
        """A part that is not made of the above alone."""
        ...

    def finish(self, at: At, x: V, architecture: Architecture) -> None:
        """Multiply the tokens that an answer is wanted of by the head."""
        ...


def write_decoder(model: Architecture, writer: DecoderWriter[V]) -> None:
    """Write one step of a model."""
    x = writer.start(model)
    for number, layer in enumerate(model.layers):
        x = _layer(model, writer, number, layer, x)
        if layer.side is not None:
            x = writer.other(At(f"model/layers.{number}", DecoderPart.FEED_FORWARD, number), x, layer.side)
    if model.final_norm:
        x = writer.norm(At("model/norm", DecoderPart.HEAD), x)
    writer.finish(At("lm_head", DecoderPart.HEAD), x, model)


def _layer(model: Architecture, writer: DecoderWriter[V], number: int, layer: DecoderLayer, x: V) -> V:
    """Write one layer: its two parts behind each other or beside each other, with sums around them."""
    at = At(f"model/layers.{number}", DecoderPart.ATTENTION, number)
    after = at.of(DecoderPart.FEED_FORWARD)
    before = model.norm_place is not NormPlace.AFTER
    behind = model.norm_place is not NormPlace.BEFORE
    normal = writer.norm(at / "input_layernorm", x) if before else x
    mixed = _mix(writer, at, normal, layer, model.hidden)
    if model.parallel:
        if not model.shared_norm:
            normal = writer.norm(after / "post_attention_layernorm", x)
        return writer.add(after, x, writer.add(after, mixed, _feed_forward(writer, after, normal, layer, model.hidden)))
    if behind:
        mixed = writer.norm(at / "post_attention_layernorm", mixed)
    x = writer.add(at, x, mixed)
    name = "pre_feedforward_layernorm" if behind else "post_attention_layernorm"
    normal = writer.norm(after / name, x) if before else x
    result = _feed_forward(writer, after, normal, layer, model.hidden)
    if behind:
        result = writer.norm(after / "post_feedforward_layernorm", result)
    return writer.add(after, x, result)


def _mix(writer: DecoderWriter[V], at: At, x: V, layer: DecoderLayer, hidden: int) -> V:
    """Add what mixes tokens; attention rotates, appends to the cache, attends."""
    mixer, at = layer.mixer, at / "self_attn"
    if not isinstance(mixer, Attention) or mixer.reuses:
        return writer.other(at, x, mixer)
    matrices = mixer.matrices(hidden)
    query = write_heads(writer, at / "q_norm", writer.linear(at / "q_proj", x, matrices["q_proj"]), mixer, mixer.heads)
    made = writer.linear(at / "k_proj", x, matrices["k_proj"])
    key = write_heads(writer, at / "k_norm", made, mixer, mixer.kv_heads)
    if not mixer.value_is_key:
        made = writer.linear(at / "v_proj", x, matrices["v_proj"])
    value = writer.heads(at, made, mixer.kv_heads)
    key = writer.append(at.of(DecoderPart.CACHE), "key", key, mixer)
    value = writer.append(at.of(DecoderPart.CACHE), "value", value, mixer)
    mixed = writer.attend(at, query, key, value, mixer)
    if mixer.gated:
        gate = writer.linear(at / "g_proj", x, matrices["g_proj"])
        mixed = writer.multiply(at, mixed, writer.activate(at, "sigmoid", gate))
    return writer.linear(at / "o_proj", mixed, matrices["o_proj"])


def write_heads(writer: DecoderWriter[V], at: At, flat: V, attention: Attention, count: int) -> V:
    """Add heads of queries or keys, normalised and rotated as the model does; `at` is their normalisation."""
    module = replace(at, path=at.path.rpartition("/")[0])
    if attention.query_norm is QueryNorm.WHOLE:
        flat = writer.norm(at, flat)
    apart = writer.heads(module, flat, count)
    if attention.query_norm is QueryNorm.HEAD:
        apart = writer.norm(at, apart)
    return writer.rotate(module, apart, attention.rotary_size) if attention.rotary_size else apart


def _feed_forward(writer: DecoderWriter[V], at: At, x: V, layer: DecoderLayer, hidden: int) -> V:
    part, at = layer.feed_forward, at / "mlp"
    if isinstance(part, Mixture):
        return writer.other(at, x, part)
    return write_feed_forward(writer, at, x, part, hidden)


def write_feed_forward(writer: DecoderWriter[V], at: At, x: V, part: FeedForward, hidden: int) -> V:
    """Add the products of a feed-forward part, with the activation between them."""
    matrices = part.matrices(hidden)
    first = "gate_proj" if part.gated else "up_proj"
    inner = writer.activate(at / "act_fn", part.activation, writer.linear(at / first, x, matrices[first]))
    if part.gated:
        inner = writer.multiply(at, inner, writer.linear(at / "up_proj", x, matrices["up_proj"]))
    return writer.linear(at / "down_proj", inner, matrices["down_proj"])
