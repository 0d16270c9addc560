"""Architecture, DecoderStep → Graph: one op for each thing that is computed, without weights and without a file.

Every op has its `block` (`architecture.DecoderPart`) and, inside a layer, its `layer` as attributes. The cache is an
input for each layer's keys and values that is updated in place and given out again: of it, only what is new is written.
Heads that share keys are rows of one product, so that the cache is read once and never repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..core.units import Bytes
from ..graph.graph import Attribute, DType, Graph, Op, Role, Tensor
from ..workflows.retained_state import SUFFIX
from .architecture import (
    Architecture,
    Attention,
    DecoderPart,
    LatentAttention,
    Matrix,
    Mixture,
    Positions,
    SideInput,
)
from .decoder import At, DecoderStep, OtherPart, write_decoder
from .decoder_parts import latent_attention, mixture, reusing_attention, side_input, side_vectors
from .formats import StorageFormat, cache_format, weight_format
from .recurrent_parts import recurrent

FRAMEWORK = "Hugging Face config"
_TYPES = {"matmul": "MatMul", "rms_norm": "RMSNorm", "layer_norm": "LayerNorm", "dynamic_update": "CacheUpdate"}


@dataclass(frozen=True, slots=True)
class Storage:
    """How weights of products and the cache are stored."""

    weights: StorageFormat
    cache: StorageFormat
    head: StorageFormat | None = None  # of the head, and of the table that it is tied to; None: as the other weights

    @classmethod
    def of(cls, weights: str = "f16", cache: str = "f16") -> Storage:
        return cls(weight_format(weights), cache_format(cache))

    def of_block(self, block: DecoderPart) -> StorageFormat:
        """How weights of a part of the decoder are stored."""
        return (
            self.head if self.head is not None and block in (DecoderPart.EMBEDDING, DecoderPart.HEAD) else self.weights
        )


def decoder_graph(model: Architecture, step: DecoderStep, storage: Storage | None = None) -> Graph:
    """The graph of one step: prefill or decode."""
    writer = GraphWriter(model, step, storage or Storage.of())
    write_decoder(model, writer)
    return writer.graph()


def repeated_graph(model: Architecture, step: DecoderStep, storage: Storage | None = None) -> Graph:
    """The same step with each of the different layers once: their ops run as often as there are equal layers."""
    counts = tuple(model.repeats.values())
    graph = decoder_graph(replace(model, layers=tuple(model.repeats)), step, storage)

    def repeated(op: Op) -> Op:
        layer = op.attributes.get("layer")
        return replace(op, trips=counts[layer], scope=f"layers like {layer}") if isinstance(layer, int) else op

    return replace(graph, ops=tuple(repeated(op) for op in graph.ops))


class GraphWriter:
    """Writes ops and tensors; a value is the number of a tensor."""

    def __init__(self, model: Architecture, step: DecoderStep, storage: Storage) -> None:
        self.model = model
        self.step = step
        self.storage = storage
        self.flows = storage.weights.flows
        self.ops: list[Op] = []
        self.tensors: list[Tensor] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.rotations: dict[int, tuple[int, int]] = {}  # rotated elements → cosine, sine
        self.masks: dict[tuple[int, int], int] = {}  # queries and keys → mask
        self.operands: dict[int, int] = {}  # value → as products read it
        self.taken: dict[str, int] = {}
        self.table = 0
        self.side = 0  # vectors of all layers
        self.caches: dict[tuple[int | None, str], int] = {}  # window and name → the last cache of that kind, as read

    def graph(self) -> Graph:
        step = self.step
        details = {"batch": str(step.batch), "tokens": str(step.tokens), "cached": str(step.cached)}
        name = f"{self.model.name} {'decode' if step.tokens == 1 and step.cached else 'prefill'}"
        return Graph(
            name,
            self.model.name,
            FRAMEWORK,
            tuple(self.ops),
            tuple(self.tensors),
            tuple(self.inputs),
            tuple(self.outputs),
            details=details,
        )

    # ---- tensors and ops ------------------------------------------------------------------------------------------

    def shape(self, value: int) -> tuple[int, ...]:
        return self.tensors[value].shape or ()

    def tensor(self, name: str, shape: tuple[int, ...], dtype: DType, role: Role, stored: int | None = None) -> int:
        size = None if stored is None else Bytes(stored)
        self.tensors.append(Tensor(name, shape, dtype, role, size))
        return len(self.tensors) - 1

    def input(self, name: str, shape: tuple[int, ...], dtype: DType | None = None) -> int:
        found = self.tensor(name, shape, dtype or self.flows, Role.INPUT)
        self.inputs.append(found)
        return found

    def op(
        self,
        kind: str,
        at: At,
        inputs: tuple[int, ...],
        shape: tuple[int, ...],
        *,
        dtype: DType | None = None,
        result: str = "",
        **attributes: Attribute,
    ) -> int:
        """Add an op with one result and return it."""
        type_ = _TYPES.get(kind, kind.title().replace("_", ""))
        name = f"/{at.path}/{type_}"
        count = self.taken.get(name, 0)
        self.taken[name] = count + 1
        name = f"{name}_{count}" if count else name
        output = self.tensor(result or f"{name}_output_0", shape, dtype or self.flows, Role.ACTIVATION)
        attributes["block"] = at.block.value
        if at.layer is not None:
            attributes["layer"] = at.layer
        self.ops.append(Op(kind, type_, name, inputs, (output,), attributes))
        return output

    def reshape(self, at: At, x: int, shape: tuple[int, ...]) -> int:
        return x if self.shape(x) == shape else self.op("reshape", at, (x,), shape, dtype=self.tensors[x].dtype)

    def operand(self, at: At, x: int) -> int:
        """A value in the type that products with weights read."""
        dtype = self.storage.weights.operand
        if dtype in (None, self.tensors[x].dtype):
            return x
        if x not in self.operands:
            self.operands[x] = self.op("quantize", at, (x,), self.shape(x), dtype=dtype)
        return self.operands[x]

    def weights(self, at: At, matrix: Matrix, shape: tuple[int, ...] | None = None, copies: int = 1) -> int:
        form, shape = self.storage.of_block(at.block), shape or (matrix.rows, matrix.columns)
        stored = form.size_bytes(matrix.rows, matrix.columns, copies) if form.scale_bits else None
        return self.tensor(f"{at.path.replace('/', '.')}.weight", shape, form.dtype, Role.CONSTANT, stored)

    def table_of(self, at: At, table: Matrix) -> int:
        """A table that rows are looked up in, which stays as activations are."""
        name = f"{at.path.replace('/', '.')}.weight"
        return self.tensor(name, (table.rows, table.columns), self.flows, Role.CONSTANT)

    def gains(self, at: At, size: int, leaf: str) -> int:
        return self.tensor(f"{at.path.replace('/', '.')}.{leaf}", (size,), self.flows, Role.CONSTANT)

    # ---- what a decoder does --------------------------------------------------------------------------------------

    def start(self, architecture: Architecture) -> int:
        step, table = self.step, architecture.table
        at = At("model/embed_tokens", DecoderPart.EMBEDDING)
        ids = self.input("input_ids", (step.batch, step.tokens), DType.I64)
        shape = (table.rows, table.columns)
        if architecture.tied:  # read by the head too, in the type of weights
            self.table = self.weights(at, Matrix(table.columns, table.rows), shape)
        else:
            self.table = self.table_of(at, table)
        x = self.op("gather", at, (self.table, ids), (step.batch, step.tokens, table.columns), axis=0)
        if table.columns != architecture.hidden:
            x = self.linear(
                At("model/project_in", DecoderPart.EMBEDDING), x, Matrix(table.columns, architecture.hidden)
            )
        if architecture.positions is Positions.LEARNED:
            at = At("model/embed_positions", DecoderPart.EMBEDDING)
            rows = self.table_of(at, Matrix(architecture.position_rows, architecture.hidden))
            positions = self.input("position_ids", (step.batch, step.tokens), DType.I64)
            x = self.add(at, x, self.op("gather", at, (rows, positions), self.shape(x), axis=0))
        if architecture.side_table is not None:
            self.side = side_vectors(self, x, ids, architecture.side_table)
        return self.norm(At("model/embed_norm", DecoderPart.EMBEDDING), x) if architecture.embedding_norm else x

    def norm(self, at: At, x: int) -> int:
        norm, shape = self.model.norm, self.shape(x)
        learned = [self.gains(at, shape[-1], leaf) for leaf, has in (("weight", norm.gain), ("bias", norm.bias)) if has]
        kind = "layer_norm" if norm.mean else "rms_norm"
        return self.op(kind, at, (x, *learned), shape, axes=(len(shape) - 1,))

    def add(self, at: At, a: int, b: int) -> int:
        return self.op("add", at, (a, b), self.shape(a))

    def multiply(self, at: At, a: int, b: int) -> int:
        return self.op("mul", at, (a, b), self.shape(a))

    def activate(self, at: At, kind: str, x: int) -> int:
        return self.op(kind, at, (x,), self.shape(x))

    def linear(self, at: At, x: int, matrix: Matrix) -> int:
        return self.product(at, x, self.weights(at, matrix), matrix)

    def product(self, at: At, x: int, weights: int, matrix: Matrix) -> int:
        bias = (self.gains(at, matrix.columns, "bias"),) if matrix.bias else ()
        shape = (*self.shape(x)[:-1], matrix.columns)
        inputs = (self.operand(at, x), weights, *bias)
        return self.op("matmul", at, inputs, shape, k=matrix.rows, n=matrix.columns)

    def heads(self, at: At, x: int, count: int) -> int:
        """(batch, tokens, features) → (batch, heads, tokens, size): of one token, the same bytes in the same order."""
        batch, tokens, features = self.shape(x)
        size = features // count
        if tokens == 1:
            return self.reshape(at, x, (batch, count, 1, size))
        apart = self.reshape(at, x, (batch, tokens, count, size))
        return self.op("transpose", at, (apart,), (batch, count, tokens, size), permutation=(0, 2, 1, 3))

    def rotate(self, at: At, x: int, size: int) -> int:
        if size not in self.rotations:
            shape = (self.step.batch, 1, self.step.tokens, size)
            cosine, sine = (self.input(f"position_ids_{word}_{size}", shape) for word in ("cos", "sin"))
            self.rotations[size] = cosine, sine
        return self.op("rotary", at, (x, *self.rotations[size]), self.shape(x))

    def append(self, at: At, name: str, x: int, attention: Attention) -> int:
        found = self.cached(at, name, x, attention.window)
        self.caches[attention.window, name] = found
        return found

    def cached(self, at: At, name: str, x: int, window: int | None) -> int:
        """Put new tokens (batch, heads, tokens, size) into a cache and return what the step reads of it.

        Without earlier tokens the cache is what this step makes; it is given out as it is stored, and read as it is.
        """
        form, step = self.storage.cache, self.step
        batch, heads, _, size = self.shape(x)
        dtype = self.flows if form.dtype.bits == self.flows.bits else form.dtype
        new = x if dtype is self.flows else self.op(_quantize(dtype), at, (x,), self.shape(x), dtype=dtype)
        if not step.cached:
            self.outputs.append(new)
            return x
        kept = step.keys(window)
        word = f"past_key_values.{at.layer}.{name}"
        past, present = self.input(word, (batch, heads, kept, size), dtype), f"{word}{SUFFIX}"
        cache = self.op("dynamic_update", at, (past, new), self.shape(past), dtype=dtype, result=present, axis=2)
        if form.scale_bits and dtype is not self.flows:  # each token of a head has scales of its own
            stored = Bytes(form.size_bytes(size, batch * heads * kept))
            for t in (past, cache):
                self.tensors[t] = replace(self.tensors[t], stored_bytes=stored)
        self.outputs.append(cache)
        if dtype is self.flows:
            return cache
        return self.op(_dequantize(dtype), at, (cache,), self.shape(cache))

    def attend(self, at: At, query: int, key: int, value: int, attention: Attention) -> int:
        """Softmax of queries times keys, times values; queries of heads that share keys are rows of one product."""
        blocks = self.blocks(attention.window)
        batch, heads, tokens, _ = self.shape(query)
        rows, groups = -(-tokens // blocks), attention.kv_heads * blocks
        query = self.in_blocks(at, query, attention, blocks)
        if blocks > 1:  # neighbouring blocks read many of the same keys
            keys = self.step.keys(attention.window)
            key, value = (
                self.op("gather", at, (x,), (batch, groups, keys, self.shape(x)[-1]), axis=2) for x in (key, value)
            )
        mixed = self.softmax_product(at, query, key, value, attention=attention, rows=rows)
        size = attention.value_size
        if blocks > 1:
            apart = self.reshape(
                at, mixed, (batch, attention.kv_heads, blocks, heads // attention.kv_heads, rows, size)
            )
            order = (0, 2, 4, 1, 3, 5)
            shape = (batch, blocks, rows, attention.kv_heads, heads // attention.kv_heads, size)
            mixed = self.op("transpose", at, (apart,), shape, permutation=order)
            mixed = self.reshape(at, mixed, (batch, blocks * rows, heads * size))
            whole = (batch, tokens, heads * size)
            return mixed if blocks * rows == tokens else self.op("slice", at, (mixed,), whole)
        return self.joined(at, self.reshape(at, mixed, (batch, heads, tokens, size)))

    def joined(self, at: At, x: int) -> int:
        """(batch, heads, tokens, size) → (batch, tokens, features)."""
        batch, heads, tokens, size = self.shape(x)
        if tokens > 1:
            x = self.op("transpose", at, (x,), (batch, tokens, heads, size), permutation=(0, 2, 1, 3))
        return self.reshape(at, x, (batch, tokens, heads * size))

    def blocks(self, window: int | None) -> int:
        """Blocks of queries that look back to keys of their own."""
        return 1 if window is None else -(-self.step.tokens // window)

    def in_blocks(self, at: At, query: int, attention: Attention, blocks: int) -> int:
        """(batch, heads, tokens, size) → (batch, key heads × blocks, queries that share keys, size)."""
        batch, heads, tokens, size = self.shape(query)
        rows, shared = -(-tokens // blocks), heads // attention.kv_heads
        if blocks > 1:
            if blocks * rows > tokens:
                query = self.op("pad", at, (query,), (batch, heads, blocks * rows, size))
            query = self.reshape(at, query, (batch, attention.kv_heads, shared, blocks, rows, size))
            shape = (batch, attention.kv_heads, blocks, shared, rows, size)
            query = self.op("transpose", at, (query,), shape, permutation=(0, 1, 3, 2, 4, 5))
        return self.reshape(at, query, (batch, attention.kv_heads * blocks, shared * rows, size))

    def softmax_product(self, at: At, query: int, key: int, value: int, *, attention: Attention, rows: int) -> int:
        batch, groups, queries, size = self.shape(query)
        keys = self.shape(key)[2]
        parts = batch * groups * queries // rows  # heads of sequences: rows of a product, and yet apart from each other
        whole = (batch, groups, queries, keys)
        scores = self.op("matmul", at, (query, key), whole, k=size, n=keys, slices=parts)
        if attention.softcap:
            scores = self.activate(at, "tanh", scores)
        apart = self.reshape(at, scores, (batch, groups * queries // rows, rows, keys))
        apart = self.op("add", at, (apart, self.mask(rows, keys)), self.shape(apart), slices=parts)
        sinks = (self.gains(at, attention.heads, "sinks"),) if attention.sinks else ()
        shares = self.op("softmax", at, (apart, *sinks), self.shape(apart), axes=(3,))
        shares = self.reshape(at, shares, whole)
        values = self.shape(value)[-1]
        return self.op("matmul", at, (shares, value), (*whole[:-1], values), k=keys, n=values, slices=parts)

    def mask(self, rows: int, keys: int) -> int:
        if (rows, keys) not in self.masks:
            heads = 1
            first = self.model.layers[0].mixer
            if self.model.positions is Positions.ALIBI and isinstance(first, Attention):
                heads = first.heads  # slopes are added with it
            name = "attention_mask" if not self.masks else f"attention_mask_{keys}"
            self.masks[rows, keys] = self.input(name, (self.step.batch, heads, rows, keys))
        return self.masks[rows, keys]

    def other(self, at: At, x: int, part: OtherPart) -> int:
        if isinstance(part, Attention):
            return reusing_attention(self, at, x, part)
        if isinstance(part, LatentAttention):
            return latent_attention(self, at, x, part)
        if isinstance(part, SideInput):
            return side_input(self, at, x, part)
        return mixture(self, at, x, part) if isinstance(part, Mixture) else recurrent(self, at, x, part)

    def finish(self, at: At, x: int, architecture: Architecture) -> None:
        """Logits of each sequence's last token: a prompt's others answer nothing."""
        batch, tokens, hidden = self.shape(x)
        if tokens > 1:
            x = self.op("slice", at, (x,), (batch, 1, hidden))
        head = architecture.head
        if head.rows != hidden:
            x = self.linear(At("model/project_out", DecoderPart.HEAD), x, Matrix(hidden, head.rows))
        weights = self.table if architecture.tied else self.weights(at, head)
        self.outputs.insert(0, self.product(at, x, weights, head))


def _quantize(dtype: DType) -> str:
    return f"quantize_{dtype.label}" if dtype.has_blocks else "quantize"


def _dequantize(dtype: DType) -> str:
    return f"dequantize_{dtype.label}" if dtype.has_blocks else "dequantize"
