"""Parts of a decoder that are more than attention and a feed-forward block, as ops of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .architecture import Attention, DecoderPart, FeedForward, LatentAttention, Matrix, Mixture, SideInput
from .decoder import At, DecoderStep, Routing, write_feed_forward, write_heads

if TYPE_CHECKING:
    from .decoder_graph import GraphWriter


# ---- attention that reuses a cache, and vectors for each layer ------------------------------------------------------


def reusing_attention(writer: GraphWriter, at: At, x: int, part: Attention) -> int:
    """Attention over the keys and values of an earlier layer."""
    matrices = part.matrices(writer.model.hidden)
    query = write_heads(writer, at / "q_norm", writer.linear(at / "q_proj", x, matrices["q_proj"]), part, part.heads)
    key, value = (writer.caches[part.window, name] for name in ("key", "value"))
    return writer.linear(at / "o_proj", writer.attend(at, query, key, value, part), matrices["o_proj"])


def side_vectors(writer: GraphWriter, x: int, ids: int, table: Matrix) -> int:
    """The vectors of all layers: rows of a table, and a product of the embedding, normalised."""
    at, size = At("model/embed_tokens_per_layer", DecoderPart.EMBEDDING), writer.model.side_size
    batch, tokens, hidden = writer.shape(x)
    rows = writer.table_of(at, table)
    found = writer.op("gather", at, (rows, ids), (batch, tokens, table.columns), axis=0)
    made = writer.linear(At("model/per_layer_model_projection", at.block), x, Matrix(hidden, table.columns))
    apart = writer.reshape(at, made, (batch, tokens, table.columns // size, size))
    normal = writer.norm(At("model/per_layer_projection_norm", at.block), apart)
    return writer.add(at, writer.reshape(at, normal, (batch, tokens, table.columns)), found)


def side_input(writer: GraphWriter, at: At, x: int, part: SideInput) -> int:
    """Scale a layer's own vector of each token by a gate, and add it to the residual."""
    matrices = part.matrices(writer.model.hidden)
    own = writer.op("slice", at, (writer.side,), (*writer.shape(x)[:2], part.size))
    gate = writer.linear(at / "per_layer_input_gate", x, matrices["per_layer_input_gate"])
    gate = writer.multiply(at, writer.activate(at, part.activation, gate), own)
    result = writer.linear(at / "per_layer_projection", gate, matrices["per_layer_projection"])
    return writer.add(at, x, writer.norm(at / "post_per_layer_input_norm", result))


# ---- latent attention -----------------------------------------------------------------------------------------------


def latent_attention(writer: GraphWriter, at: At, x: int, part: LatentAttention) -> int:
    """Attention over cached latent vectors, in whichever of its two forms multiplies less.

    Keys and values of all heads are made from the cache, which a prompt does once for many queries; or queries are
    brought into the space of the latent vectors and results out of it, as for the one query of a decode step.
    """
    batch, tokens, _ = writer.shape(x)
    matrices = part.matrices(writer.model.hidden)
    if part.query_rank is None:
        query = writer.linear(at / "q_proj", x, matrices["q_proj"])
    else:
        low = writer.norm(at / "q_a_layernorm", writer.linear(at / "q_a_proj", x, matrices["q_a_proj"]))
        query = writer.linear(at / "q_b_proj", low, matrices["q_b_proj"])
    query = writer.rotate(at, writer.heads(at, query, part.heads), part.rotary_size)
    both = writer.linear(at / "kv_a_proj", x, matrices["kv_a_proj"])
    latent = writer.op("slice", at, (both,), (batch, tokens, part.kv_rank))
    key = writer.op("slice", at, (both,), (batch, tokens, part.rotary_size))
    latent = writer.reshape(at, writer.norm(at / "kv_a_layernorm", latent), (batch, 1, tokens, part.kv_rank))
    key = writer.rotate(at, writer.reshape(at, key, (batch, 1, tokens, part.rotary_size)), part.rotary_size)
    latent = writer.cached(at.of(DecoderPart.CACHE), "latent", latent, None)
    key = writer.cached(at.of(DecoderPart.CACHE), "key", key, None)
    attend = _attend_latent if absorbs(part, writer.step) else _attend_expanded
    return writer.linear(at / "o_proj", attend(writer, at, (query, latent, key), part), matrices["o_proj"])


def absorbs(part: LatentAttention, step: DecoderStep) -> bool:
    """Whether queries are brought to the latent vectors, not keys and values made of them."""
    products = part.kv_rank * (part.plain_size + part.value_size)
    absorbed = step.tokens * (products + step.length * (2 * part.kv_rank + part.rotary_size))
    expanded = step.length * products + step.tokens * step.length * (part.head_size + part.value_size)
    return absorbed < expanded


def _attend_latent(writer: GraphWriter, at: At, values: tuple[int, int, int], part: LatentAttention) -> int:
    query, latent, key = values
    batch, heads, tokens, _ = writer.shape(query)
    plain = writer.op("slice", at, (query,), (batch, heads, tokens, part.plain_size))
    turned = writer.op("slice", at, (query,), (batch, heads, tokens, part.rotary_size))
    inside = _each_head(writer, at / "k_b_proj", plain, Matrix(part.plain_size, part.kv_rank))
    wide = writer.op("concat", at, (inside, turned), (batch, heads, tokens, part.kv_rank + part.rotary_size), axis=3)
    length = writer.shape(latent)[2]
    keys = writer.op("concat", at, (latent, key), (batch, 1, length, part.kv_rank + part.rotary_size), axis=3)
    size = part.kv_rank + part.rotary_size
    rows = writer.reshape(at, wide, (batch, 1, heads * tokens, size))
    as_one = Attention(heads, 1, size, part.kv_rank)
    mixed = writer.softmax_product(at, rows, keys, latent, attention=as_one, rows=tokens)
    mixed = writer.reshape(at, mixed, (batch, heads, tokens, part.kv_rank))
    outside = _each_head(writer, at / "v_b_proj", mixed, Matrix(part.kv_rank, part.value_size))
    return writer.joined(at, outside)


def _each_head(writer: GraphWriter, at: At, x: int, matrix: Matrix) -> int:
    """Multiply each head by a matrix of its own."""
    batch, heads, tokens, _ = writer.shape(x)
    weights = writer.weights(at, matrix, (heads, matrix.rows, matrix.columns), heads)
    inputs = (writer.operand(at, x), weights)
    return writer.op("matmul", at, inputs, (batch, heads, tokens, matrix.columns), k=matrix.rows, n=matrix.columns)


def _attend_expanded(writer: GraphWriter, at: At, values: tuple[int, int, int], part: LatentAttention) -> int:
    query, latent, key = values
    batch, heads, tokens, _ = writer.shape(query)
    length, size = writer.shape(latent)[2], part.plain_size + part.value_size
    flat = writer.reshape(at, latent, (batch, length, part.kv_rank))
    both = writer.linear(at / "kv_b_proj", flat, Matrix(part.kv_rank, heads * size))
    both = writer.heads(at, both, heads)
    plain = writer.op("slice", at, (both,), (batch, heads, length, part.plain_size))
    value = writer.op("slice", at, (both,), (batch, heads, length, part.value_size))
    turned = writer.op("expand", at, (key,), (batch, heads, length, part.rotary_size))
    keys = writer.op("concat", at, (plain, turned), (batch, heads, length, part.head_size), axis=3)
    as_many = Attention(heads, heads, part.head_size, part.value_size)
    return writer.joined(at, writer.softmax_product(at, query, keys, value, attention=as_many, rows=tokens))


# ---- mixture of experts ---------------------------------------------------------------------------------------------


def expected_experts(part: Mixture, tokens: int, routing: Routing = Routing.EVEN) -> float:
    """Experts that so many tokens use between them, on average.

    Where each is as likely as any other, a token leaves one out with probability 1 - active / experts; of many, few
    are left out by all.
    """
    if routing is Routing.APART:
        return min(part.experts, part.active * tokens)
    among = part.experts if routing is Routing.EVEN else max(part.active, part.experts / 2)
    return among * (1 - (1 - part.active / among) ** tokens)


def touched_experts(part: Mixture, tokens: int, routing: Routing = Routing.EVEN) -> int:
    """The same as a whole number, which a graph has."""
    return max(part.active, min(part.experts, round(expected_experts(part, tokens, routing))))


def mixture(writer: GraphWriter, at: At, x: int, part: Mixture) -> int:
    """Route tokens, multiply each by its experts, and add their results up; with the part that all go through."""
    batch, tokens, hidden = writer.shape(x)
    matrices, rows = part.matrices(hidden), batch * tokens
    scores = writer.linear(at / "gate", x, matrices["router"])
    scores = writer.op("softmax", at, (scores,), writer.shape(scores), axes=(2,))
    chosen = writer.op("topk", at, (scores,), (batch, tokens, part.active))
    used = rows * part.active
    sorted_rows = writer.op("gather", at, (x, chosen), (used, hidden), axis=0) if used > 1 else x
    results = _experts(writer, at / "experts", sorted_rows, part, rows)
    weighted = writer.op("mul", at, (results, chosen), (used, hidden))
    apart = writer.reshape(at, weighted, (batch, tokens, part.active, hidden))
    result = writer.op("reduce", at, (apart,), (batch, tokens, hidden), axes=(2,))
    if not part.shared:
        return result
    shared = FeedForward(part.shared, part.gated, part.activation, part.bias)
    also = write_feed_forward(writer, at / "shared_expert", x, shared, hidden)
    if part.shared_gate:
        gate = writer.linear(at / "shared_expert_gate", x, matrices["shared_expert_gate"])
        also = writer.op("mul", at, (also, writer.activate(at, "sigmoid", gate)), writer.shape(also))
    return writer.add(at, result, also)


def _experts(writer: GraphWriter, at: At, x: int, part: Mixture, tokens: int) -> int:
    """The products of all experts that are used. Rows are shared out evenly: some experts have one more than others."""
    touched = touched_experts(part, tokens, writer.step.routing)
    used = tokens * part.active
    fewest, more = divmod(used, touched)
    hidden = writer.shape(x)[-1]
    results = []
    for count, rows in ((more, fewest + 1), (touched - more, fewest)):
        if not count * rows:
            continue
        own = x if count * rows == used else writer.op("slice", at, (x,), (count * rows, hidden))
        own = writer.reshape(at, own, (count, rows, hidden))
        result = _expert_products(writer, at, own, part)
        results.append(writer.reshape(at, result, (count * rows, hidden)))
    if len(results) == 1:
        return results[0]
    return writer.op("concat", at, tuple(results), (used, hidden), axis=0)


def _expert_products(writer: GraphWriter, at: At, x: int, part: Mixture) -> int:
    count, rows, hidden = writer.shape(x)
    alone = FeedForward(part.intermediate, part.gated, part.activation, part.bias).matrices(hidden)

    def product(name: str, value: int) -> int:
        matrix, here = alone[name], at / name
        weights = writer.weights(here, matrix, (count, matrix.rows, matrix.columns), count)
        bias = (writer.gains(here, count * matrix.columns, "bias"),) if matrix.bias else ()
        inputs = (writer.operand(here, value), weights, *bias)
        return writer.op("matmul", here, inputs, (count, rows, matrix.columns), k=matrix.rows, n=matrix.columns)

    inner = writer.activate(at / "act_fn", part.activation, product("gate_proj" if part.gated else "up_proj", x))
    if part.gated:
        inner = writer.multiply(at, inner, product("up_proj", x))
    return product("down_proj", inner)
