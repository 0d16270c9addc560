"""Parts of a decoder that are more than attention and a feed-forward block, as ops of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..workflows.retained_state import SUFFIX
from .architecture import Attention, Block, FeedForward, LatentAttention, LinearAttention, Matrix, Mixture
from .decoder import At, Step, write_feed_forward

if TYPE_CHECKING:
    from .decoder_graph import GraphHands

_CHUNK = 64  # tokens that the chunked form of the delta rule takes at once, in the published kernels


# ---- latent attention -----------------------------------------------------------------------------------------------


def latent_attention(hands: GraphHands, at: At, x: int, part: LatentAttention) -> int:
    """Attention over cached latent vectors, in whichever of its two forms multiplies less.

    Keys and values of all heads are made from the cache, which a prompt does once for many queries; or queries are
    brought into the space of the latent vectors and results out of it, as for the one query of a decode step.
    """
    batch, tokens, _ = hands.shape(x)
    matrices = part.matrices(hands.model.hidden)
    if part.query_rank is None:
        query = hands.linear(at / "q_proj", x, matrices["q_proj"])
    else:
        low = hands.norm(at / "q_a_layernorm", hands.linear(at / "q_a_proj", x, matrices["q_a_proj"]))
        query = hands.linear(at / "q_b_proj", low, matrices["q_b_proj"])
    query = hands.rotate(at, hands.heads(at, query, part.heads), part.rotary_size)
    both = hands.linear(at / "kv_a_proj", x, matrices["kv_a_proj"])
    latent = hands.op("slice", at, (both,), (batch, tokens, part.kv_rank))
    key = hands.op("slice", at, (both,), (batch, tokens, part.rotary_size))
    latent = hands.reshape(at, hands.norm(at / "kv_a_layernorm", latent), (batch, 1, tokens, part.kv_rank))
    key = hands.rotate(at, hands.reshape(at, key, (batch, 1, tokens, part.rotary_size)), part.rotary_size)
    latent = hands.cached(at.of(Block.CACHE), "latent", latent, None)
    key = hands.cached(at.of(Block.CACHE), "key", key, None)
    attend = _attend_latent if absorbs(part, hands.step) else _attend_expanded
    return hands.linear(at / "o_proj", attend(hands, at, (query, latent, key), part), matrices["o_proj"])


def absorbs(part: LatentAttention, step: Step) -> bool:
    """Whether queries are brought to the latent vectors, not keys and values made of them."""
    products = part.kv_rank * (part.plain_size + part.value_size)
    absorbed = step.tokens * (products + step.length * (2 * part.kv_rank + part.rotary_size))
    expanded = step.length * products + step.tokens * step.length * (part.head_size + part.value_size)
    return absorbed < expanded


def _attend_latent(hands: GraphHands, at: At, values: tuple[int, int, int], part: LatentAttention) -> int:
    query, latent, key = values
    batch, heads, tokens, _ = hands.shape(query)
    plain = hands.op("slice", at, (query,), (batch, heads, tokens, part.plain_size))
    turned = hands.op("slice", at, (query,), (batch, heads, tokens, part.rotary_size))
    inside = _each_head(hands, at / "k_b_proj", plain, Matrix(part.plain_size, part.kv_rank))
    wide = hands.op("concat", at, (inside, turned), (batch, heads, tokens, part.kv_rank + part.rotary_size), axis=3)
    length = hands.shape(latent)[2]
    keys = hands.op("concat", at, (latent, key), (batch, 1, length, part.kv_rank + part.rotary_size), axis=3)
    size = part.kv_rank + part.rotary_size
    rows = hands.reshape(at, wide, (batch, 1, heads * tokens, size))
    as_one = Attention(heads, 1, size, part.kv_rank)
    mixed = hands.softmax_product(at, rows, keys, latent, attention=as_one, rows=tokens)
    mixed = hands.reshape(at, mixed, (batch, heads, tokens, part.kv_rank))
    outside = _each_head(hands, at / "v_b_proj", mixed, Matrix(part.kv_rank, part.value_size))
    return hands.joined(at, outside)


def _each_head(hands: GraphHands, at: At, x: int, matrix: Matrix) -> int:
    """Multiply each head by a matrix of its own."""
    batch, heads, tokens, _ = hands.shape(x)
    weights = hands.weights(at, matrix, (heads, matrix.rows, matrix.columns), heads)
    inputs = (hands.operand(at, x), weights)
    return hands.op("matmul", at, inputs, (batch, heads, tokens, matrix.columns), k=matrix.rows, n=matrix.columns)


def _attend_expanded(hands: GraphHands, at: At, values: tuple[int, int, int], part: LatentAttention) -> int:
    query, latent, key = values
    batch, heads, tokens, _ = hands.shape(query)
    length, size = hands.shape(latent)[2], part.plain_size + part.value_size
    flat = hands.reshape(at, latent, (batch, length, part.kv_rank))
    both = hands.linear(at / "kv_b_proj", flat, Matrix(part.kv_rank, heads * size))
    both = hands.heads(at, both, heads)
    plain = hands.op("slice", at, (both,), (batch, heads, length, part.plain_size))
    value = hands.op("slice", at, (both,), (batch, heads, length, part.value_size))
    turned = hands.op("expand", at, (key,), (batch, heads, length, part.rotary_size))
    keys = hands.op("concat", at, (plain, turned), (batch, heads, length, part.head_size), axis=3)
    as_many = Attention(heads, heads, part.head_size, part.value_size)
    return hands.joined(at, hands.softmax_product(at, query, keys, value, attention=as_many, rows=tokens))


# ---- linear attention -----------------------------------------------------------------------------------------------


def linear_attention(hands: GraphHands, at: At, x: int, part: LinearAttention) -> int:
    """The gated delta rule: one update of the state for a token, or chunks of a prompt that are products."""
    batch, tokens, _ = hands.shape(x)
    matrices = part.matrices(hands.model.hidden)
    mixed = hands.linear(at / "in_proj_qkv", x, matrices["in_proj_qkv"])
    gate = hands.linear(at / "in_proj_z", x, matrices["in_proj_z"])
    decay = hands.linear(at / "in_proj_ba", x, matrices["in_proj_ba"])
    per_head = (hands.gains(at, part.value_heads, "A_log"), hands.gains(at, part.value_heads, "dt_bias"))
    decay = hands.op("softplus", at, (decay, *per_head), hands.shape(decay))
    mixed = _short_convolution(hands, at, mixed, part)
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


def _short_convolution(hands: GraphHands, at: At, x: int, part: LinearAttention) -> int:
    """A depthwise convolution over this step's tokens and the last few before them, which are kept."""
    batch, tokens, features = hands.shape(x)
    kept = (batch, features, part.kernel - 1)
    state = hands.input(f"conv_state.{at.layer}", kept)
    apart = hands.reshape(at, x, (batch, features, tokens))
    if tokens > 1:
        apart = hands.op("transpose", at, (x,), (batch, features, tokens), permutation=(0, 2, 1))
    whole = hands.op("concat", at, (state, apart), (batch, features, part.kernel - 1 + tokens), axis=2)
    hands.outputs.append(hands.op("slice", at.of(Block.CACHE), (whole,), kept, result=f"conv_state.{at.layer}{SUFFIX}"))
    weights = hands.gains(at, features * part.kernel, "conv1d.weight")
    mixed = hands.op(
        "conv",
        at,
        (whole, weights),
        (batch, features, tokens),
        kernel=(part.kernel,),
        strides=(1,),
        dilations=(1,),
        groups=features,
        channel_axis=1,
    )
    mixed = hands.activate(at, "silu", mixed)
    if tokens > 1:
        return hands.op("transpose", at, (mixed,), (batch, tokens, features), permutation=(0, 2, 1))
    return hands.reshape(at, mixed, (batch, tokens, features))


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
    count = -(-tokens // chunk)
    groups, width = heads * count, part.value_size
    if count * chunk > tokens:
        query, key, value = (
            hands.op("pad", at, (each,), (batch, heads, count * chunk, hands.shape(each)[-1]))
            for each in (query, key, value)
        )
    query, key, value = (
        hands.reshape(at, each, (batch, groups, chunk, hands.shape(each)[-1])) for each in (query, key, value)
    )
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
    name = f"recurrent_state.{at.layer}{SUFFIX}"
    shape = (batch, heads, size, width)
    hands.outputs.append(hands.op("slice", at.of(Block.CACHE), (update,), shape, result=name))
    result = hands.add(at, inside, before)
    result = hands.reshape(at, result, (batch, heads, count * chunk, width))
    return result if count * chunk == tokens else hands.op("slice", at, (result,), (batch, heads, tokens, width))


# ---- mixture of experts ---------------------------------------------------------------------------------------------


def touched_experts(part: Mixture, tokens: int) -> int:
    """Experts that so many tokens use between them, where every expert is as likely as any other.

    A token leaves one out with probability 1 - active / experts; of many, few are left out by all.
    """
    share = (1 - part.active / part.experts) ** tokens
    return max(part.active, min(part.experts, round(part.experts * (1 - share))))


def mixture(hands: GraphHands, at: At, x: int, part: Mixture) -> int:
    """Route tokens, multiply each by its experts, and add their results up; with the part that all go through."""
    batch, tokens, hidden = hands.shape(x)
    matrices, rows = part.matrices(hidden), batch * tokens
    scores = hands.linear(at / "gate", x, matrices["router"])
    scores = hands.op("softmax", at, (scores,), hands.shape(scores), axes=(2,))
    chosen = hands.op("topk", at, (scores,), (batch, tokens, part.active))
    used = rows * part.active
    sorted_rows = hands.op("gather", at, (x, chosen), (used, hidden), axis=0) if used > 1 else x
    results = _experts(hands, at / "experts", sorted_rows, part, rows)
    weighted = hands.op("mul", at, (results, chosen), (used, hidden))
    apart = hands.reshape(at, weighted, (batch, tokens, part.active, hidden))
    result = hands.op("reduce", at, (apart,), (batch, tokens, hidden), axes=(2,))
    if not part.shared:
        return result
    shared = FeedForward(part.shared, part.gated, part.activation, part.bias)
    also = write_feed_forward(hands, at / "shared_expert", x, shared, hidden)
    if part.shared_gate:
        gate = hands.linear(at / "shared_expert_gate", x, matrices["shared_expert_gate"])
        also = hands.op("mul", at, (also, hands.activate(at, "sigmoid", gate)), hands.shape(also))
    return hands.add(at, result, also)


def _experts(hands: GraphHands, at: At, x: int, part: Mixture, tokens: int) -> int:
    """The products of all experts that are used. Rows are shared out evenly: some experts have one more than others."""
    touched = touched_experts(part, tokens)
    used = tokens * part.active
    fewest, more = divmod(used, touched)
    hidden = hands.shape(x)[-1]
    results = []
    for count, rows in ((more, fewest + 1), (touched - more, fewest)):
        if not count * rows:
            continue
        own = x if count * rows == used else hands.op("slice", at, (x,), (count * rows, hidden))
        own = hands.reshape(at, own, (count, rows, hidden))
        result = _expert_products(hands, at, own, part)
        results.append(hands.reshape(at, result, (count * rows, hidden)))
    if len(results) == 1:
        return results[0]
    return hands.op("concat", at, tuple(results), (used, hidden), axis=0)


def _expert_products(hands: GraphHands, at: At, x: int, part: Mixture) -> int:
    count, rows, hidden = hands.shape(x)
    alone = FeedForward(part.intermediate, part.gated, part.activation, part.bias).matrices(hidden)

    def product(name: str, value: int) -> int:
        matrix, here = alone[name], at / name
        weights = hands.weights(here, matrix, (count, matrix.rows, matrix.columns), count)
        bias = (hands.gains(here, count * matrix.columns, "bias"),) if matrix.bias else ()
        inputs = (hands.operand(here, value), weights, *bias)
        return hands.op("matmul", here, inputs, (count, rows, matrix.columns), k=matrix.rows, n=matrix.columns)

    inner = hands.activate(at / "act_fn", part.activation, product("gate_proj" if part.gated else "up_proj", x))
    if part.gated:
        inner = hands.multiply(at, inner, product("up_proj", x))
    return product("down_proj", inner)
