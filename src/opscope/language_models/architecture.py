"""Architecture: a decoder-only language model as data. What is multiplied, kept and added, and how large it is.

Names of matrices are those of a Hugging Face checkpoint of the Llama family, whatever the family calls them itself:
q_proj, gate_proj, experts … A fused matrix (qkv, gate and up) is written as its parts, which have the same elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class DecoderPart(Enum):
    """Parts of a decoder that time and bytes are shared out to."""

    EMBEDDING = "embedding"
    ATTENTION = "attention"
    CACHE = "cache"  # what is appended to it and converted from it
    FEED_FORWARD = "feed-forward"
    HEAD = "head"


class Positions(Enum):
    """How a model knows the order of its tokens."""

    ROTARY = "rotary"
    LEARNED = "learned"  # a table of vectors, added to the embedding
    ALIBI = "alibi"  # a slope for each head, added to the scores
    NONE = "none"


class NormPlace(Enum):
    """Where a layer normalises, relative to its two parts."""

    BEFORE = "before"
    AFTER = "after"  # before a sum, behind a part
    AROUND = "around"  # both


class QueryNorm(Enum):
    """Normalisation of queries and keys before they are rotated."""

    NONE = "none"
    HEAD = "head"  # each head on its own, with gains that all heads share
    WHOLE = "whole"  # all heads together


@dataclass(frozen=True, slots=True)
class Norm:
    """What a normalisation learns, and whether it subtracts the mean."""

    mean: bool  # layer normalisation; False: root mean square
    gain: bool = True
    bias: bool = False

    def parameters(self, features: int) -> int:
        return features * (self.gain + self.bias)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weights of one product, or a table that rows are looked up in."""

    rows: int
    columns: int
    bias: bool = False
    copies: int = 1  # experts have one each
    active: int = 1  # of the copies, that one token uses

    @property
    def elements(self) -> int:
        """Of one copy, without its bias."""
        return self.rows * self.columns

    @property
    def parameters(self) -> int:
        return self.copies * (self.elements + self.columns * self.bias)

    @property
    def active_parameters(self) -> int:
        return self.active * (self.elements + self.columns * self.bias)


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention over a cache of keys and values: multi-head, grouped-query or multi-query."""

    heads: int
    kv_heads: int
    head_size: int
    value_size: int
    window: int | None = None  # tokens that a query looks back to, itself included; None: all
    rotary_size: int = 0  # elements of a head that are rotated
    bias: bool = False  # of queries, keys and values
    output_bias: bool = False
    query_norm: QueryNorm = QueryNorm.NONE
    softcap: bool = False  # scores pass through a scaled tanh
    sinks: bool = False  # each head has a learned score that takes part in the softmax and has no value
    gated: bool = False  # results are scaled by the sigmoid of a second projection, as wide as the queries
    reuses: bool = False  # reads keys and values of the last layer before it that is like it and makes its own
    value_is_key: bool = False  # values are the product that keys are made of

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        found = {"q_proj": Matrix(hidden, self.heads * self.head_size, self.bias)}
        if not self.reuses:
            found["k_proj"] = Matrix(hidden, self.kv_heads * self.head_size, self.bias)
        if not self.reuses and not self.value_is_key:
            found["v_proj"] = Matrix(hidden, self.kv_heads * self.value_size, self.bias)
        if self.gated:
            found["g_proj"] = Matrix(hidden, self.heads * self.value_size)
        found["o_proj"] = Matrix(self.heads * self.value_size, hidden, self.output_bias)
        return found

    def small_parameters(self, norm: Norm) -> int:
        """Gains and sinks, which no product reads."""
        sizes = {
            QueryNorm.NONE: 0,
            QueryNorm.HEAD: (1 if self.reuses else 2) * self.head_size,
            QueryNorm.WHOLE: (self.heads + self.kv_heads) * self.head_size,
        }
        return norm.parameters(sizes[self.query_norm]) + self.heads * self.sinks

    @property
    def cached_elements(self) -> tuple[int, ...]:
        """Elements of each cached tensor that one token adds: keys, values."""
        return () if self.reuses else (self.kv_heads * self.head_size, self.kv_heads * self.value_size)

    @property
    def state_elements(self) -> int:
        """Elements kept for a sequence, however long it is."""
        return 0

    def kept_tokens(self, tokens: int) -> int:
        """Of so many tokens, those that the cache holds."""
        return tokens if self.window is None else min(tokens, self.window)


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek V2): keys and values are made from one cached vector of a low rank."""

    heads: int
    query_rank: int | None  # None: queries are one product
    kv_rank: int
    plain_size: int  # elements of a query and a key that are not rotated
    rotary_size: int  # of one key that all heads share
    value_size: int
    bias: bool = False

    @property
    def head_size(self) -> int:
        return self.plain_size + self.rotary_size

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        queries = self.heads * self.head_size
        found = {"q_proj": Matrix(hidden, queries)}
        if self.query_rank is not None:
            found = {
                "q_a_proj": Matrix(hidden, self.query_rank, self.bias),
                "q_b_proj": Matrix(self.query_rank, queries),
            }
        return found | {
            "kv_a_proj": Matrix(hidden, self.kv_rank + self.rotary_size, self.bias),
            "kv_b_proj": Matrix(self.kv_rank, self.heads * (self.plain_size + self.value_size)),
            "o_proj": Matrix(self.heads * self.value_size, hidden, self.bias),
        }

    def small_parameters(self, norm: Norm) -> int:
        return norm.parameters((self.query_rank or 0) + self.kv_rank)

    @property
    def cached_elements(self) -> tuple[int, ...]:
        """The latent vector and the shared rotated key."""
        return self.kv_rank, self.rotary_size

    @property
    def state_elements(self) -> int:
        return 0

    def kept_tokens(self, tokens: int) -> int:
        return tokens


class _Stateful:
    """What mixes tokens by a state of fixed size: no cache grows with the context."""

    __slots__ = ()

    @property
    def cached_elements(self) -> tuple[int, ...]:
        return ()

    def kept_tokens(self, tokens: int) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class LinearAttention(_Stateful):
    """Gated delta rule (Qwen3-Next): a matrix for each head is the state, updated token by token; no cache grows."""

    key_heads: int
    value_heads: int
    key_size: int
    value_size: int
    kernel: int  # taps of the short convolution over queries, keys and values

    @property
    def mixed(self) -> int:
        """Features of queries, keys and values together, which the convolution runs over."""
        return 2 * self.key_heads * self.key_size + self.value_heads * self.value_size

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        values = self.value_heads * self.value_size
        return {
            "in_proj_qkv": Matrix(hidden, self.mixed),
            "in_proj_z": Matrix(hidden, values),
            "in_proj_ba": Matrix(hidden, 2 * self.value_heads),
            "o_proj": Matrix(values, hidden),
        }

    def small_parameters(self, norm: Norm) -> int:
        """The convolution, the decay and its bias of each head, and the gains of the last normalisation."""
        return self.mixed * self.kernel + 2 * self.value_heads + norm.parameters(self.value_size)

    @property
    def state_elements(self) -> int:
        return self.value_heads * self.key_size * self.value_size + self.mixed * (self.kernel - 1)


@dataclass(frozen=True, slots=True)
class StateSpace(_Stateful):
    """Mamba 2: a state for each head that decays and is added to, token by token."""

    heads: int
    head_size: int
    groups: int  # heads of a group share what reads and writes their states
    state_size: int
    kernel: int
    kernel_bias: bool = True
    bias: bool = False

    @property
    def inner(self) -> int:
        return self.heads * self.head_size

    @property
    def mixed(self) -> int:
        """Features that the short convolution runs over: values, and what writes and reads the states."""
        return self.inner + 2 * self.groups * self.state_size

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        return {
            "in_proj_xbc": Matrix(hidden, self.mixed, self.bias),
            "in_proj_z": Matrix(hidden, self.inner, self.bias),
            "in_proj_dt": Matrix(hidden, self.heads, self.bias),
            "o_proj": Matrix(self.inner, hidden, self.bias),
        }

    def small_parameters(self, norm: Norm) -> int:
        """The convolution; decay, step and skip of each head; the gains of the last normalisation."""
        return self.mixed * (self.kernel + self.kernel_bias) + 3 * self.heads + norm.parameters(self.inner)

    @property
    def state_elements(self) -> int:
        return self.inner * self.state_size + self.mixed * (self.kernel - 1)


@dataclass(frozen=True, slots=True)
class ShortConvolution(_Stateful):
    """A gated convolution over a few tokens (LFM 2)."""

    features: int
    kernel: int
    bias: bool = False

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        return {
            "in_proj": Matrix(hidden, 3 * self.features, self.bias),
            "o_proj": Matrix(self.features, hidden, self.bias),
        }

    def small_parameters(self, norm: Norm) -> int:
        return self.features * (self.kernel + self.bias)

    @property
    def state_elements(self) -> int:
        return self.features * (self.kernel - 1)


Recurrent = LinearAttention | StateSpace | ShortConvolution
Mixer = Attention | LatentAttention | Recurrent


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Two products with an activation between them, or three where one gates the other."""

    intermediate: int
    gated: bool = True
    activation: str = "silu"  # a kind of op
    bias: bool = False

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        return _feed_forward(hidden, self.intermediate, gated=self.gated, bias=self.bias)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Mixture of experts: a router gives each token to some of many feed-forward parts."""

    experts: int
    active: int  # experts of one token
    intermediate: int  # of one expert
    gated: bool = True
    activation: str = "silu"
    bias: bool = False
    shared: int = 0  # features inside the part that every token goes through; 0: there is none
    shared_gate: bool = False  # the result of that part is scaled by a learned gate
    router_bias: bool = False

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        experts = _feed_forward(hidden, self.intermediate, gated=self.gated, bias=self.bias)
        found = {"router": Matrix(hidden, self.experts, self.router_bias)}
        for name, each in experts.items():
            found[f"experts.{name}"] = Matrix(each.rows, each.columns, each.bias, self.experts, self.active)
        if self.shared:
            shared = _feed_forward(hidden, self.shared, gated=self.gated, bias=self.bias)
            found |= {f"shared_expert.{name}": each for name, each in shared.items()}
        if self.shared_gate:
            found["shared_expert_gate"] = Matrix(hidden, 1)
        return found


def _feed_forward(hidden: int, intermediate: int, *, gated: bool, bias: bool) -> dict[str, Matrix]:
    found = {"gate_proj": Matrix(hidden, intermediate, bias)} if gated else {}
    return found | {"up_proj": Matrix(hidden, intermediate, bias), "down_proj": Matrix(intermediate, hidden, bias)}


@dataclass(frozen=True, slots=True)
class SideInput:
    """A vector of each token for one layer (Gemma 3n), looked up beside the embedding and mixed in at its end."""

    size: int
    activation: str

    def matrices(self, hidden: int) -> dict[str, Matrix]:
        return {"per_layer_input_gate": Matrix(hidden, self.size), "per_layer_projection": Matrix(self.size, hidden)}


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """One layer: something that mixes tokens, and something that works on each of them."""

    mixer: Mixer
    feed_forward: FeedForward | Mixture
    side: SideInput | None = None


@dataclass(frozen=True)
class Architecture:
    """A decoder-only language model."""

    name: str
    family: str  # `model_type` of its config
    hidden: int
    vocabulary: int
    layers: tuple[DecoderLayer, ...]
    longest_context: int  # tokens
    norm: Norm = Norm(mean=False)
    norm_place: NormPlace = NormPlace.BEFORE
    parallel: bool = False  # both parts of a layer read the same input, and their results are added at once
    shared_norm: bool = False  # of a parallel layer: one normalisation for both parts
    final_norm: bool = True
    positions: Positions = Positions.ROTARY
    position_rows: int = 0  # of the table of learned positions
    tied: bool = False  # the head is the embedding's table
    head_bias: bool = False
    embedding_norm: bool = False  # one more normalisation behind the embedding
    embedding_size: int | None = None  # of a table row, where it is projected to `hidden` and back
    side_table: Matrix | None = None  # of the vectors of all layers: one row for each token
    notes: tuple[str, ...] = ()  # what the description takes for granted, or leaves out

    @property
    def table(self) -> Matrix:
        return Matrix(self.vocabulary, self.embedding_size or self.hidden)

    @property
    def head(self) -> Matrix:
        return Matrix(self.embedding_size or self.hidden, self.vocabulary, self.head_bias)

    @property
    def norms(self) -> int:
        """Normalisations of hidden size in a layer."""
        if self.parallel:
            return 1 if self.shared_norm else 2
        return 4 if self.norm_place is NormPlace.AROUND else 2

    @property
    def side_size(self) -> int:
        """Elements of a layer's own vector of a token."""
        return next((layer.side.size for layer in self.layers if layer.side is not None), 0)

    @cached_property
    def repeats(self) -> Mapping[DecoderLayer, int]:
        """The different layers, in order of appearance, and how many of each there are."""
        found: dict[DecoderLayer, int] = {}
        for layer in self.layers:
            found[layer] = found.get(layer, 0) + 1
        return found

    @cached_property
    def parameters(self) -> int:
        return sum(row.parameters for row in self.parameter_rows)

    @cached_property
    def active_parameters(self) -> int:
        """Those that a product of one token reads, with all of the small ones: of a table, one row."""
        return sum(row.active_parameters for row in self.parameter_rows)

    @cached_property
    def parameter_rows(self) -> Sequence[Parameters]:
        """Every learned tensor, by matrix; those of equal layers are one row."""
        layers = (row for layer, count in self.repeats.items() for row in self.layer_rows(layer, count))
        return (*self.embedding_rows, *layers, *self.head_rows)

    @property
    def embedding_rows(self) -> Sequence[Parameters]:
        rows = [Parameters("embed_tokens", DecoderPart.EMBEDDING, self.table, 1, used_rows=1)]
        if self.position_rows:
            table = Matrix(self.position_rows, self.hidden)
            rows.append(Parameters("embed_positions", DecoderPart.EMBEDDING, table, 1, used_rows=1))
        if self.table.columns != self.hidden:
            rows.append(Parameters("project_in", DecoderPart.EMBEDDING, Matrix(self.table.columns, self.hidden), 1))
        if self.side_table is not None:
            rows.append(Parameters("embed_tokens_per_layer", DecoderPart.EMBEDDING, self.side_table, 1, used_rows=1))
            projection = Matrix(self.hidden, self.side_table.columns)
            rows.append(Parameters("per_layer_model_projection", DecoderPart.EMBEDDING, projection, 1))
            rows.append(_gains("per_layer_norm", DecoderPart.EMBEDDING, self.norm.parameters(self.side_size), 1))
        if self.embedding_norm:
            rows.append(_gains("embedding_norm", DecoderPart.EMBEDDING, self.norm.parameters(self.hidden), 1))
        return rows

    @property
    def head_rows(self) -> Sequence[Parameters]:
        rows = [Parameters("lm_head", DecoderPart.HEAD, self.head, 1, is_copy=self.tied)]
        if self.head.rows != self.hidden:
            rows.append(Parameters("project_out", DecoderPart.HEAD, Matrix(self.hidden, self.head.rows), 1))
        if self.final_norm:
            rows.append(_gains("norm", DecoderPart.HEAD, self.norm.parameters(self.hidden), 1))
        return rows

    def layer_rows(self, layer: DecoderLayer, count: int) -> list[Parameters]:
        rows = [
            Parameters(name, DecoderPart.ATTENTION, matrix, count)
            for name, matrix in layer.mixer.matrices(self.hidden).items()
        ]
        rows.append(_gains("attention_gains", DecoderPart.ATTENTION, layer.mixer.small_parameters(self.norm), count))
        rows += [
            Parameters(name, DecoderPart.FEED_FORWARD, matrix, count)
            for name, matrix in layer.feed_forward.matrices(self.hidden).items()
        ]
        if layer.side is not None:
            sides = layer.side.matrices(self.hidden).items()
            rows += [Parameters(name, DecoderPart.FEED_FORWARD, matrix, count) for name, matrix in sides]
        norms = (self.norms + (layer.side is not None)) * self.norm.parameters(self.hidden)
        rows.append(_gains("layer_norms", DecoderPart.FEED_FORWARD, norms, count))
        return rows


@dataclass(frozen=True, slots=True)
class Parameters:
    """One learned tensor of so many layers."""

    name: str
    block: DecoderPart
    matrix: Matrix
    count: int
    used_rows: int | None = None  # of a table, that one token reads; None: all of it is multiplied
    is_small: bool = False  # gains and biases, which are never stored in few bits
    is_copy: bool = False  # the same bytes as another one

    @property
    def parameters(self) -> int:
        """Without what is counted elsewhere: a tied head adds its bias alone."""
        if self.is_copy:
            return self.count * self.matrix.columns * self.matrix.bias
        return self.count * self.matrix.parameters

    @property
    def active_parameters(self) -> int:
        if self.used_rows is not None:
            return self.count * self.used_rows * self.matrix.columns
        return self.count * self.matrix.active_parameters


def _gains(name: str, block: DecoderPart, elements: int, count: int) -> Parameters:
    return Parameters(name, block, Matrix(1, elements), count, is_small=True)
