"""Attention operators of ONNX and ONNX Runtime, each reduced to one set of extents.

| attribute            | extent                                                     |
|----------------------|------------------------------------------------------------|
| query_length         | query tokens of this call                                  |
| key_length           | keys attended to: those of this call and of the KV cache   |
| head_size, value_size| per head: of query and key, of value                       |
| projection_macs      | multiply-accumulates of a projection fused into the op     |

Scores (query × key) then cost batch × heads × query_length × key_length × head_size multiply-accumulates, and the
weighted sum of the values the same with value_size. Decoding one token of Llama with 512 cached tokens is query_length
1, key_length 513.
"""

from __future__ import annotations

from math import prod

from .attributes import Attributes, Describe, Shape, Site


def _extents(batch: int, heads: int, lengths: tuple[int, int], sizes: tuple[int, int], macs: int = 0) -> Attributes:
    """Return the attributes; `lengths` are those of query and key, `sizes` those of one head and one value."""
    return {
        "batch": batch,
        "heads": heads,
        "query_length": lengths[0],
        "key_length": lengths[1],
        "head_size": sizes[0],
        "value_size": sizes[1],
        "projection_macs": macs,
    }


def _length(shape: Shape | None, axis: int) -> int:
    """Return an extent of an optional operand; 0 if the operand is absent."""
    return shape[axis] if shape is not None and axis < len(shape) else 0


def standard(site: Site) -> Attributes:
    """Attention of opset 23: (batch, heads, tokens, size), or (batch, tokens, heads × size) with a head count."""
    query, key, value, past = site.input(0), site.input(1), site.input(2), site.input(4)
    if query is None or key is None or value is None:
        return {}
    if len(query) == 4 and len(key) == 4 and len(value) == 4:
        return _extents(query[0], query[1], (query[2], key[2] + _length(past, 2)), (query[3], value[3]))
    heads, groups = site.node.integer("q_num_heads", 0), site.node.integer("kv_num_heads", 0)
    if len(query) != 3 or len(key) != 3 or len(value) != 3 or heads < 1 or groups < 1:
        return {}
    return _extents(query[0], heads, (query[1], key[1] + _length(past, 2)), (query[2] // heads, value[2] // groups))


def linear(site: Site) -> Attributes:
    """Linear attention: each token reads and updates one (head size × value size) state instead of a list of keys."""
    query, value = site.input(0), site.input(2)
    heads, groups = site.node.integer("q_num_heads", 0), site.node.integer("kv_num_heads", 0)
    if query is None or value is None or len(query) != 3 or len(value) != 3 or heads < 1 or groups < 1:
        return {}
    # Per token: the state update and the read-out cost size × value each. Softmax attention over `key_length` keys
    # costs key_length × (size + value). Equal work gives key_length = 2 × size × value / (size + value); with
    # size = value = 64 that is 64 keys.
    size, value_size = query[2] // heads, value[2] // groups
    keys = round(2 * size * value_size / (size + value_size)) if size + value_size else 0
    return _extents(query[0], heads, (query[1], keys), (size, value_size))


def projected(past_index: int) -> Describe:
    """com.microsoft Attention: (batch, tokens, width) times joint weights for query, key and value, then attention."""

    def describe(site: Site) -> Attributes:
        data, weights, past = site.input(0), site.input(1), site.input(past_index)
        heads = site.node.integer("num_heads", 0)
        if data is None or weights is None or len(data) != 3 or len(weights) != 2 or heads < 1:
            return {}
        query_width, _, value_width = _widths(site, weights[1])
        keys = data[1] + _length(past, 3)
        macs = data[0] * data[1] * prod(weights)
        return _extents(data[0], heads, (data[1], keys), (query_width // heads, value_width // heads), macs)

    return describe


def ragged(site: Site) -> Attributes:
    """com.microsoft PackedAttention: the tokens of all batch entries concatenated without padding."""
    data, weights, offsets = site.input(0), site.input(1), site.input(3)
    heads = site.node.integer("num_heads", 0)
    if data is None or weights is None or offsets is None or heads < 1:
        return {}
    if len(data) != 2 or len(weights) != 2 or len(offsets) != 2:
        return {}
    query_width, _, value_width = _widths(site, weights[1])
    # The offsets are (batch, longest sequence): attention is counted at the padded length, the projection without
    # padding.
    batch, tokens = offsets
    return _extents(
        batch, heads, (tokens, tokens), (query_width // heads, value_width // heads), data[0] * prod(weights)
    )


def _widths(site: Site, total: int) -> tuple[int, ...]:
    """Return the widths of query, key and value in the joint weights: equal, unless the node gives them."""
    given = site.node.integers("qkv_hidden_sizes")
    return given if given and len(given) == 3 else (total // 3,) * 3


def multi_head(site: Site) -> Attributes:
    """com.microsoft MultiHeadAttention: separate query, key and value, or packed by head in five dimensions."""
    query, key, value, past = site.input(0), site.input(1), site.input(2), site.input(6)
    heads = site.node.integer("num_heads", 0)
    if query is None or heads < 1:
        return {}
    if len(query) == 5:  # batch, tokens, heads, 3, size
        return _extents(query[0], heads, (query[1], query[1] + _length(past, 2)), (query[4], query[4]))
    if len(query) != 3 or key is None:
        return {}
    size = query[2] // heads
    if len(key) == 5:  # batch, tokens, heads, 2, size
        return _extents(query[0], heads, (query[1], key[1] + _length(past, 2)), (size, key[4]))
    if value is None or len(value) != len(key) or len(key) not in (3, 4):
        return {}
    if len(key) == 4:  # batch, heads, tokens, size: a cross-attention cache
        return _extents(query[0], heads, (query[1], key[2]), (size, value[3]))
    return _extents(query[0], heads, (query[1], key[1] + _length(past, 2)), (size, value[2] // heads))


def grouped(site: Site) -> Attributes:
    """com.microsoft GroupQueryAttention: separate query, or query, key and value concatenated."""
    query, past, present = site.input(0), site.input(3), site.output(1)
    heads, groups = site.node.integer("num_heads", 0), site.node.integer("kv_num_heads", 0)
    if query is None or len(query) != 3 or heads < 1 or groups < 1:
        return {}
    # Packed, the last dimension holds `heads` query heads, then `groups` key heads and `groups` value heads.
    size = query[2] // (heads if site.has_input(1) else heads + 2 * groups)
    keys = _length(present, 2) or query[1] + _length(past, 2)
    return _extents(query[0], heads, (query[1], keys), (size, size))
