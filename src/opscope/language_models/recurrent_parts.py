"""Parts of a decoder that keep a state of fixed size in place of a cache, as ops of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..workflows.retained_state import SUFFIX
from .architecture import Block, LinearAttention, Recurrent, ShortConvolution, StateSpace
from .decoder import At

if TYPE_CHECKING:
    from .decoder_graph import GraphHands

# Tokens that chunked forms take at once, in the published kernels: of the delta rule, and of Mamba 2.
_CHUNK, _SCAN_CHUNK = 64, 256


def recurrent(hands: GraphHands, at: At, x: int, part: Recurrent) -> int:
    if isinstance(part, LinearAttention):
        return linear_attention(hands, at, x, part)
    return state_space(hands, at, x, part) if isinstance(part, StateSpace) else short_convolution(hands, at, x, part)


def linear_attention(hands: GraphHands, at: At, x: int, part: LinearAttention) -> int:
    """The gated delta rule: one update of the state for a token, or chunks of a prompt that are products."""
    batch, tokens, _ = hands.shape(x)
    matrices = part.matrices(hands.model.hidden)
    mixed = hands.linear(at / "in_proj_qkv", x, matrices["in_proj_qkv"])
    gate = hands.linear(at / "in_proj_z", x, matrices["in_proj_z"])
    decay = hands.linear(at / "in_proj_ba", x, matrices["in_proj_ba"])
    per_head = (hands.gains(at, part.value_heads, "A_log"), hands.gains(at, part.value_heads, "dt_bias"))
    decay = hands.op("softplus", at, (decay, *per_head), hands.shape(decay))
    mixed = hands.activate(at, "silu", _short_convolution(hands, at, mixed, part.kernel))
    sizes = (part.key_heads * part.key_size,) * 2 + (part.value_heads * part.value_size,)
    query, key, value = (hands.op("slice", at, (mixed,), (batch, tokens, size)) for size in sizes)
    query, key = (_key_heads(hands, at, each, part) for each in (query, key))
    value = hands.heads(at, value, part.value_heads)
    update = _one_token if tokens == 1 else _chunks
    result = update(hands, at, (query, key, value, decay), part)
    result = hands.norm(at / "norm", result)
    result = hands.joined(at, result)
    result = hands.multiply(at, result, hands.activate(at, "silu", gate))
    return hands.linear(at / "o_proj", result, matrices["o_proj"])


def _short_convolution(hands: GraphHands, at: At, x: int, kernel: int, *, bias: bool = False) -> int:
    """A depthwise convolution over this step's tokens and the last few before them, which are kept."""
    batch, tokens, features = hands.shape(x)
    kept, name = (batch, features, kernel - 1), f"conv_state.{at.layer}"
    state, apart = hands.input(name, kept), _turned(hands, at, x)
    whole = hands.op("concat", at, (state, apart), (batch, features, kernel - 1 + tokens), axis=2)
    hands.outputs.append(hands.op("slice", at.of(Block.CACHE), (whole,), kept, result=f"{name}{SUFFIX}"))
    learned = [hands.gains(at, features * kernel, "conv1d.weight")]
    learned += [hands.gains(at, features, "conv1d.bias")] if bias else []
    mixed = hands.op(
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
    return _turned(hands, at, mixed)


def _turned(hands: GraphHands, at: At, x: int) -> int:
    """Tokens and features in the other order; of one token, the same bytes."""
    batch, rows, columns = hands.shape(x)
    if 1 in (rows, columns):
        return hands.reshape(at, x, (batch, columns, rows))
    return hands.op("transpose", at, (x,), (batch, columns, rows), permutation=(0, 2, 1))


def _key_heads(hands: GraphHands, at: At, x: int, part: LinearAttention) -> int:
    """Queries or keys of each value head, of length 1."""
    x = hands.heads(at, x, part.key_heads)
    batch, heads, tokens, size = hands.shape(x)
    x = hands.op("l2_norm", at, (x,), (batch, heads, tokens, size), axes=(3,))
    if part.value_heads == heads:
        return x
    return hands.op("expand", at, (x,), (batch, part.value_heads, tokens, size))


def _state(hands: GraphHands, at: At, part: LinearAttention) -> int:
    shape = (hands.step.batch, part.value_heads, part.key_size, part.value_size)
    return hands.input(f"recurrent_state.{at.layer}", shape)


def _one_token(hands: GraphHands, at: At, values: tuple[int, int, int, int], part: LinearAttention) -> int:
    """Decay the state, correct what it says of this key, and ask it the query."""
    query, key, value, decay = values
    cache = at.of(Block.CACHE)
    state, shape = _state(hands, at, part), (hands.step.batch, part.value_heads, 1, part.value_size)
    small = hands.op("exp", at, (decay,), hands.shape(decay))
    state = hands.op("mul", cache, (state, small), hands.shape(state))
    said = hands.op("matmul", at, (key, state), shape, k=part.key_size, n=part.value_size)
    error = hands.op("sub", at, (value, said), shape)
    outer = hands.op("matmul", at, (key, error), hands.shape(state), k=1, n=part.value_size)
    name = f"recurrent_state.{at.layer}{SUFFIX}"
    state = hands.op("add", cache, (state, outer), hands.shape(state), result=name)
    hands.outputs.append(state)
    return hands.op("matmul", at, (query, state), shape, k=part.key_size, n=part.value_size)


def _chunks(hands: GraphHands, at: At, values: tuple[int, int, int, int], part: LinearAttention) -> int:
    """The chunked form: inside a chunk products of queries, keys and values; between chunks the state is handed on."""
    query, key, value, _ = values
    batch, heads, tokens, size = hands.shape(query)
    chunk = min(tokens, _CHUNK)
    groups, width = heads * -(-tokens // chunk), part.value_size
    query, key, value = (_in_chunks(hands, at, each, chunk) for each in (query, key, value))
    square, tall = (batch, groups, chunk, chunk), (batch, groups, chunk, width)
    alike = hands.op("matmul", at, (key, key), square, k=size, n=chunk)
    # The inverse of a triangle of ones and these products, by substitution: a third of a full product.
    inverse = hands.op("matmul", at, (alike, alike), square, k=-(-chunk // 3), n=chunk)
    values_now = hands.op("matmul", at, (inverse, value), tall, k=chunk, n=width)
    keys_now = hands.op("matmul", at, (inverse, key), (batch, groups, chunk, size), k=chunk, n=size)
    state = hands.op("expand", at, (_state(hands, at, part),), (batch, groups, size, width))
    said = hands.op("matmul", at, (keys_now, state), tall, k=size, n=width)
    error = hands.op("sub", at, (values_now, said), tall)
    scores = hands.op("matmul", at, (query, key), square, k=size, n=chunk)
    inside = hands.op("matmul", at, (scores, error), tall, k=chunk, n=width)
    before = hands.op("matmul", at, (query, state), tall, k=size, n=width)
    update = hands.op("matmul", at, (key, error), (batch, groups, size, width), k=chunk, n=width)
    name, shape = f"recurrent_state.{at.layer}{SUFFIX}", (batch, heads, size, width)
    hands.outputs.append(hands.op("slice", at.of(Block.CACHE), (update,), shape, result=name))
    return _out_of_chunks(hands, at, hands.add(at, inside, before), heads, tokens)


def _in_chunks(hands: GraphHands, at: At, x: int, chunk: int) -> int:
    """(batch, heads, tokens, size) → (batch, heads × chunks, tokens of a chunk, size)."""
    batch, heads, tokens, size = hands.shape(x)
    count = -(-tokens // chunk)
    if count * chunk > tokens:
        x = hands.op("pad", at, (x,), (batch, heads, count * chunk, size))
    return hands.reshape(at, x, (batch, heads * count, chunk, size))


def _out_of_chunks(hands: GraphHands, at: At, x: int, heads: int, tokens: int) -> int:
    batch, groups, chunk, size = hands.shape(x)
    x = hands.reshape(at, x, (batch, heads, groups // heads * chunk, size))
    shape = (batch, heads, tokens, size)
    return x if hands.shape(x) == shape else hands.op("slice", at, (x,), shape)


# ---- state spaces and short convolutions ----------------------------------------------------------------------------


def state_space(hands: GraphHands, at: At, x: int, part: StateSpace) -> int:
    """Mamba 2: one update of the state for a token, or chunks of a prompt that are products."""
    batch, tokens, _ = hands.shape(x)
    matrices = part.matrices(hands.model.hidden)
    mixed = hands.linear(at / "in_proj_xbc", x, matrices["in_proj_xbc"])
    gate = hands.linear(at / "in_proj_z", x, matrices["in_proj_z"])
    decay = hands.linear(at / "in_proj_dt", x, matrices["in_proj_dt"])
    learned = tuple(hands.gains(at, part.heads, leaf) for leaf in ("A_log", "dt_bias"))
    decay = hands.op("softplus", at, (decay, *learned), hands.shape(decay))
    mixed = hands.activate(at, "silu", _short_convolution(hands, at, mixed, part.kernel, bias=part.kernel_bias))
    value = hands.heads(at, hands.op("slice", at, (mixed,), (batch, tokens, part.inner)), part.heads)
    shared = part.groups * part.state_size
    write, read = (hands.op("slice", at, (mixed,), (batch, tokens, shared)) for _ in range(2))
    write, read = (_of_heads(hands, at, hands.heads(at, each, part.groups), part.heads) for each in (write, read))
    update = _one_update if tokens == 1 else _scan
    result = update(hands, at, (value, write, read, decay), part)
    skip = hands.op("mul", at, (value, hands.gains(at, part.heads, "D")), hands.shape(value))
    result = hands.joined(at, hands.add(at, result, skip))
    result = hands.multiply(at, result, hands.activate(at, "silu", gate))
    return hands.linear(at / "o_proj", hands.norm(at / "norm", result), matrices["o_proj"])


def _of_heads(hands: GraphHands, at: At, x: int, heads: int) -> int:
    """What a group of heads shares, for each of them."""
    batch, groups, tokens, size = hands.shape(x)
    return x if groups == heads else hands.op("expand", at, (x,), (batch, heads, tokens, size))


def _one_update(hands: GraphHands, at: At, values: tuple[int, int, int, int], part: StateSpace) -> int:
    """Decay the state, add this token to it, and read it."""
    value, write, read, decay = values
    cache, word = at.of(Block.CACHE), f"recurrent_state.{at.layer}"
    shape = (hands.step.batch, part.heads, part.state_size, part.head_size)
    small = hands.op("exp", at, (decay,), hands.shape(decay))
    state = hands.op("mul", cache, (hands.input(word, shape), small), shape)
    outer = hands.op("matmul", at, (write, value), shape, k=1, n=part.head_size)
    state = hands.op("add", cache, (state, outer), shape, result=f"{word}{SUFFIX}")
    hands.outputs.append(state)
    return hands.op("matmul", at, (read, state), hands.shape(value), k=part.state_size, n=part.head_size)


def _scan(hands: GraphHands, at: At, values: tuple[int, int, int, int], part: StateSpace) -> int:
    """The chunked form: inside a chunk as attention without a softmax, between chunks by their states."""
    value, write, read, _ = values
    batch, heads, tokens, size = hands.shape(value)
    chunk = min(tokens, _SCAN_CHUNK)
    count = -(-tokens // chunk)
    value, write, read = (_in_chunks(hands, at, each, chunk) for each in (value, write, read))
    groups, kept = heads * count, part.state_size
    tall = (batch, groups, chunk, size)
    scores = hands.op("matmul", at, (read, write), (batch, groups, chunk, chunk), k=kept, n=chunk)
    scores = hands.multiply(at, scores, scores)  # by the decay between two tokens
    inside = hands.op("matmul", at, (scores, value), tall, k=chunk, n=size)
    made = hands.op("matmul", at, (write, value), (batch, groups, kept, size), k=chunk, n=size)
    word, shape = f"recurrent_state.{at.layer}", (batch, heads, kept, size)
    before = hands.op("cumsum", at, (made, hands.input(word, shape)), hands.shape(made), axes=(1,))
    hands.outputs.append(hands.op("slice", at.of(Block.CACHE), (before,), shape, result=f"{word}{SUFFIX}"))
    outside = hands.op("matmul", at, (read, before), tall, k=kept, n=size)
    return _out_of_chunks(hands, at, hands.add(at, inside, outside), heads, tokens)


def short_convolution(hands: GraphHands, at: At, x: int, part: ShortConvolution) -> int:
    """A convolution between two gates."""
    matrices, shape = part.matrices(hands.model.hidden), (*hands.shape(x)[:2], part.features)
    whole = hands.linear(at / "in_proj", x, matrices["in_proj"])
    first, last, value = (hands.op("slice", at, (whole,), shape) for _ in range(3))
    mixed = _short_convolution(hands, at, hands.multiply(at, first, value), part.kernel, bias=part.bias)
    return hands.linear(at / "o_proj", hands.multiply(at, last, mixed), matrices["o_proj"])
