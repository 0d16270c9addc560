"""Parts of a decoder that keep a state of fixed size in place of a cache, as ops of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..workflows.retained_state import SUFFIX
from .architecture import DecoderPart, LinearAttention, Recurrent, ShortConvolution, StateSpace
from .decoder import At

if TYPE_CHECKING:
    from .decoder_graph import GraphWriter

# Tokens that chunked forms take at once, in the published kernels: of the delta rule, and of Mamba 2.
_CHUNK, _SCAN_CHUNK = 64, 256


def recurrent(writer: GraphWriter, at: At, x: int, part: Recurrent) -> int:
    if isinstance(part, LinearAttention):
        return linear_attention(writer, at, x, part)
    return state_space(writer, at, x, part) if isinstance(part, StateSpace) else short_convolution(writer, at, x, part)


def linear_attention(writer: GraphWriter, at: At, x: int, part: LinearAttention) -> int:
    """The gated delta rule: one update of the state for a token, or chunks of a prompt that are products."""
    batch, tokens, _ = writer.shape(x)
    matrices = part.matrices(writer.model.hidden)
    mixed = writer.linear(at / "in_proj_qkv", x, matrices["in_proj_qkv"])
    gate = writer.linear(at / "in_proj_z", x, matrices["in_proj_z"])
    decay = writer.linear(at / "in_proj_ba", x, matrices["in_proj_ba"])
    per_head = (writer.gains(at, part.value_heads, "A_log"), writer.gains(at, part.value_heads, "dt_bias"))
    decay = writer.op("softplus", at, (decay, *per_head), writer.shape(decay))
    mixed = writer.activate(at, "silu", _short_convolution(writer, at, mixed, part.kernel))
    sizes = (part.key_heads * part.key_size,) * 2 + (part.value_heads * part.value_size,)
    query, key, value = (writer.op("slice", at, (mixed,), (batch, tokens, size)) for size in sizes)
    query, key = (_key_heads(writer, at, each, part) for each in (query, key))
    value = writer.heads(at, value, part.value_heads)
    update = _one_token if tokens == 1 else _chunks
    result = update(writer, at, (query, key, value, decay), part)
    result = writer.norm(at / "norm", result)
    result = writer.joined(at, result)
    result = writer.multiply(at, result, writer.activate(at, "silu", gate))
    return writer.linear(at / "o_proj", result, matrices["o_proj"])


def _short_convolution(writer: GraphWriter, at: At, x: int, kernel: int, *, bias: bool = False) -> int:
    """A depthwise convolution over this step's tokens and the last few before them, which are kept."""
    batch, tokens, features = writer.shape(x)
    kept, name = (batch, features, kernel - 1), f"conv_state.{at.layer}"
    state, apart = writer.input(name, kept), _turned(writer, at, x)
    whole = writer.op("concat", at, (state, apart), (batch, features, kernel - 1 + tokens), axis=2)
    writer.outputs.append(writer.op("slice", at.of(DecoderPart.CACHE), (whole,), kept, result=f"{name}{SUFFIX}"))
    learned = [writer.gains(at, features * kernel, "conv1d.weight")]
    learned += [writer.gains(at, features, "conv1d.bias")] if bias else []
    mixed = writer.op(
        "conv",
        at,
        (whole, *learned),
        (batch, features, tokens),
        kernel=(kernel,),
        strides=(1,),
        dilations=(1,),
        groups=features,
        channel_axis=1,
    )
    return _turned(writer, at, mixed)


def _turned(writer: GraphWriter, at: At, x: int) -> int:
    """Tokens and features in the other order; of one token, the same bytes."""
    batch, rows, columns = writer.shape(x)
    if 1 in (rows, columns):
        return writer.reshape(at, x, (batch, columns, rows))
    return writer.op("transpose", at, (x,), (batch, columns, rows), permutation=(0, 2, 1))


def _key_heads(writer: GraphWriter, at: At, x: int, part: LinearAttention) -> int:
    """Queries or keys of each value head, of length 1."""
    x = writer.heads(at, x, part.key_heads)
    batch, heads, tokens, size = writer.shape(x)
    x = writer.op("l2_norm", at, (x,), (batch, heads, tokens, size), axes=(3,))
    if part.value_heads == heads:
        return x
    return writer.op("expand", at, (x,), (batch, part.value_heads, tokens, size))


def _state(writer: GraphWriter, at: At, part: LinearAttention) -> int:
    shape = (writer.step.batch, part.value_heads, part.key_size, part.value_size)
    return writer.input(f"recurrent_state.{at.layer}", shape)


def _one_token(writer: GraphWriter, at: At, values: tuple[int, int, int, int], part: LinearAttention) -> int:
    """Decay the state, correct what it says of this key, and ask it the query."""
    query, key, value, decay = values
    cache = at.of(DecoderPart.CACHE)
    state, shape = _state(writer, at, part), (writer.step.batch, part.value_heads, 1, part.value_size)
    small = writer.op("exp", at, (decay,), writer.shape(decay))
    state = writer.op("mul", cache, (state, small), writer.shape(state))
    said = writer.op("matmul", at, (key, state), shape, k=part.key_size, n=part.value_size)
    error = writer.op("sub", at, (value, said), shape)
    outer = writer.op("matmul", at, (key, error), writer.shape(state), k=1, n=part.value_size)
    name = f"recurrent_state.{at.layer}{SUFFIX}"
    state = writer.op("add", cache, (state, outer), writer.shape(state), result=name)
    writer.outputs.append(state)
    return writer.op("matmul", at, (query, state), shape, k=part.key_size, n=part.value_size)


def _chunks(writer: GraphWriter, at: At, values: tuple[int, int, int, int], part: LinearAttention) -> int:
    """The chunked form: inside a chunk products of queries, keys and values; between chunks the state is handed on."""
    query, key, value, _ = values
    batch, heads, tokens, size = writer.shape(query)
    chunk = min(tokens, _CHUNK)
    groups, width = heads * -(-tokens // chunk), part.value_size
    query, key, value = (_in_chunks(writer, at, each, chunk) for each in (query, key, value))
    square, tall = (batch, groups, chunk, chunk), (batch, groups, chunk, width)
    alike = writer.op("matmul", at, (key, key), square, k=size, n=chunk)
    # The inverse of a triangle of ones and these products, by substitution: a third of a full product.
    inverse = writer.op("matmul", at, (alike, alike), square, k=-(-chunk // 3), n=chunk)
    values_now = writer.op("matmul", at, (inverse, value), tall, k=chunk, n=width)
    keys_now = writer.op("matmul", at, (inverse, key), (batch, groups, chunk, size), k=chunk, n=size)
    state = writer.op("expand", at, (_state(writer, at, part),), (batch, groups, size, width))
    said = writer.op("matmul", at, (keys_now, state), tall, k=size, n=width)
    error = writer.op("sub", at, (values_now, said), tall)
    scores = writer.op("matmul", at, (query, key), square, k=size, n=chunk)
    inside = writer.op("matmul", at, (scores, error), tall, k=chunk, n=width)
    before = writer.op("matmul", at, (query, state), tall, k=size, n=width)
    update = writer.op("matmul", at, (key, error), (batch, groups, size, width), k=chunk, n=width)
    name, shape = f"recurrent_state.{at.layer}{SUFFIX}", (batch, heads, size, width)
    writer.outputs.append(writer.op("slice", at.of(DecoderPart.CACHE), (update,), shape, result=name))
    return _out_of_chunks(writer, at, writer.add(at, inside, before), heads, tokens)


def _in_chunks(writer: GraphWriter, at: At, x: int, chunk: int) -> int:
    """(batch, heads, tokens, size) → (batch, heads × chunks, tokens of a chunk, size)."""
    batch, heads, tokens, size = writer.shape(x)
    count = -(-tokens // chunk)
    if count * chunk > tokens:
        x = writer.op("pad", at, (x,), (batch, heads, count * chunk, size))
    return writer.reshape(at, x, (batch, heads * count, chunk, size))


def _out_of_chunks(writer: GraphWriter, at: At, x: int, heads: int, tokens: int) -> int:
    batch, groups, chunk, size = writer.shape(x)
    x = writer.reshape(at, x, (batch, heads, groups // heads * chunk, size))
    shape = (batch, heads, tokens, size)
    return x if writer.shape(x) == shape else writer.op("slice", at, (x,), shape)


# ---- state spaces and short convolutions ----------------------------------------------------------------------------


def state_space(writer: GraphWriter, at: At, x: int, part: StateSpace) -> int:
    """Mamba 2: one update of the state for a token, or chunks of a prompt that are products."""
    batch, tokens, _ = writer.shape(x)
    matrices = part.matrices(writer.model.hidden)
    mixed = writer.linear(at / "in_proj_xbc", x, matrices["in_proj_xbc"])
    gate = writer.linear(at / "in_proj_z", x, matrices["in_proj_z"])
    decay = writer.linear(at / "in_proj_dt", x, matrices["in_proj_dt"])
    learned = tuple(writer.gains(at, part.heads, leaf) for leaf in ("A_log", "dt_bias"))
    decay = writer.op("softplus", at, (decay, *learned), writer.shape(decay))
    mixed = writer.activate(at, "silu", _short_convolution(writer, at, mixed, part.kernel, bias=part.kernel_bias))
    value = writer.heads(at, writer.op("slice", at, (mixed,), (batch, tokens, part.inner)), part.heads)
    shared = part.groups * part.state_size
    write, read = (writer.op("slice", at, (mixed,), (batch, tokens, shared)) for _ in range(2))
    write, read = (_of_heads(writer, at, writer.heads(at, each, part.groups), part.heads) for each in (write, read))
    update = _one_update if tokens == 1 else _scan
    result = update(writer, at, (value, write, read, decay), part)
    skip = writer.op("mul", at, (value, writer.gains(at, part.heads, "D")), writer.shape(value))
    result = writer.joined(at, writer.add(at, result, skip))
    result = writer.multiply(at, result, writer.activate(at, "silu", gate))
    return writer.linear(at / "o_proj", writer.norm(at / "norm", result), matrices["o_proj"])


def _of_heads(writer: GraphWriter, at: At, x: int, heads: int) -> int:
    """What a group of heads shares, for each of them."""
    batch, groups, tokens, size = writer.shape(x)
    return x if groups == heads else writer.op("expand", at, (x,), (batch, heads, tokens, size))


def _one_update(writer: GraphWriter, at: At, values: tuple[int, int, int, int], part: StateSpace) -> int:
    """Decay the state, add this token to it, and read it."""
    value, write, read, decay = values
    cache, word = at.of(DecoderPart.CACHE), f"recurrent_state.{at.layer}"
    shape = (writer.step.batch, part.heads, part.state_size, part.head_size)
    small = writer.op("exp", at, (decay,), writer.shape(decay))
    state = writer.op("mul", cache, (writer.input(word, shape), small), shape)
    outer = writer.op("matmul", at, (write, value), shape, k=1, n=part.head_size)
    state = writer.op("add", cache, (state, outer), shape, result=f"{word}{SUFFIX}")
    writer.outputs.append(state)
    return writer.op("matmul", at, (read, state), writer.shape(value), k=part.state_size, n=part.head_size)


def _scan(writer: GraphWriter, at: At, values: tuple[int, int, int, int], part: StateSpace) -> int:
    """The chunked form: inside a chunk as attention without a softmax, between chunks by their states."""
    value, write, read, _ = values
    batch, heads, tokens, size = writer.shape(value)
    chunk = min(tokens, _SCAN_CHUNK)
    count = -(-tokens // chunk)
    value, write, read = (_in_chunks(writer, at, each, chunk) for each in (value, write, read))
    groups, kept = heads * count, part.state_size
    tall = (batch, groups, chunk, size)
    scores = writer.op("matmul", at, (read, write), (batch, groups, chunk, chunk), k=kept, n=chunk)
    scores = writer.multiply(at, scores, scores)  # by the decay between two tokens
    inside = writer.op("matmul", at, (scores, value), tall, k=chunk, n=size)
    made = writer.op("matmul", at, (write, value), (batch, groups, kept, size), k=chunk, n=size)
    word, shape = f"recurrent_state.{at.layer}", (batch, heads, kept, size)
    before = writer.op("cumsum", at, (made, writer.input(word, shape)), writer.shape(made), axes=(1,))
    writer.outputs.append(writer.op("slice", at.of(DecoderPart.CACHE), (before,), shape, result=f"{word}{SUFFIX}"))
    outside = writer.op("matmul", at, (read, before), tall, k=kept, n=size)
    return _out_of_chunks(writer, at, writer.add(at, inside, outside), heads, tokens)


def short_convolution(writer: GraphWriter, at: At, x: int, part: ShortConvolution) -> int:
    """A convolution between two gates."""
    matrices, shape = part.matrices(writer.model.hidden), (*writer.shape(x)[:2], part.features)
    whole = writer.linear(at / "in_proj", x, matrices["in_proj"])
    first, last, value = (writer.op("slice", at, (whole,), shape) for _ in range(3))
    mixed = _short_convolution(writer, at, writer.multiply(at, first, value), part.kernel, bias=part.bias)
    return writer.linear(at / "o_proj", writer.multiply(at, last, mixed), matrices["o_proj"])
