"""Bytes of weights, cache and a step's activations, and whether a target's memory holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from ..core.units import Bytes
from ..machine.target import Holds, Memory, Scope, Target
from .architecture import Architecture, Attention, DecoderLayer, DecoderPart, FeedForward, LatentAttention, Parameters
from .decoder import DecoderStep
from .decoder_graph import Storage


class Parallel(Enum):
    """How several devices share a model."""

    TENSOR = "tensor"  # each has a part of every matrix
    PIPELINE = "pipeline"  # each has some of the layers


# ---- weights --------------------------------------------------------------------------------------------------------


def weight_bytes(model: Architecture, storage: Storage) -> Bytes:
    """All weights as they are stored, with their scales."""
    return Bytes(_bytes_of(model.parameter_rows, model, storage))


def _bytes_of(rows: Sequence[Parameters], model: Architecture, storage: Storage) -> int:
    return sum(row.count * _stored(row, model, storage) for row in rows)


def _stored(row: Parameters, model: Architecture, storage: Storage) -> int:
    """Bytes of one layer's tensor, with its bias."""
    form, matrix = storage.of_block(row.block), row.matrix
    plain = form.flows.bits // 8
    biases = matrix.copies * matrix.columns * matrix.bias * plain
    if row.is_copy:
        return biases
    if row.is_small or (row.used_rows is not None and not (model.tied and row.name == "embed_tokens")):
        return matrix.copies * matrix.elements * plain + biases
    if row.used_rows is not None:  # the table that is the head too: a column of the head is a row of it
        return form.size_bytes(matrix.columns, matrix.rows)
    return form.size_bytes(matrix.rows, matrix.columns, matrix.copies) + biases


# ---- cache ----------------------------------------------------------------------------------------------------------


def cache_bytes(model: Architecture, storage: Storage, batch: int, tokens: int) -> Bytes:
    """Keys and values of so many tokens of each sequence; windows bound it, and states do not grow with it."""
    return Bytes(sum(count * _layer_cache(layer, storage, batch, tokens) for layer, count in model.repeats.items()))


def _layer_cache(layer: DecoderLayer, storage: Storage, batch: int, tokens: int) -> int:
    form, mixer = storage.cache, layer.mixer
    kept = mixer.kept_tokens(tokens)
    heads = mixer.kv_heads if isinstance(mixer, Attention) else 1
    tensors = sum(form.size_bytes(each // heads, batch * kept * heads) for each in mixer.cached_elements)
    return tensors + batch * mixer.state_elements * storage.weights.flows.bits // 8


# ---- activations ----------------------------------------------------------------------------------------------------


def activation_bytes(model: Architecture, storage: Storage, step: DecoderStep) -> Bytes:
    """The most that a step holds besides weights and cache, where attention's scores are made a tile at a time.

    Beside the residual and its normalised form: queries, keys, values and results of attention, or what a feed-forward
    part has inside; at the end, the logits.
    """
    rows, width = step.batch * step.tokens, storage.weights.flows.bits // 8
    inside = max(max(_mixer_features(layer, model.hidden), _inner_features(layer)) for layer in model.repeats)
    logits = step.batch * model.vocabulary * width
    return Bytes(max(rows * (2 * model.hidden + inside) * width, step.batch * model.hidden * width + logits))


def _mixer_features(layer: DecoderLayer, hidden: int) -> int:
    matrices = layer.mixer.matrices(hidden)
    ranks = isinstance(layer.mixer, LatentAttention)
    made = [m.columns for name, m in matrices.items() if name != "o_proj" and not (ranks and name == "q_a_proj")]
    return sum(made) + matrices["o_proj"].rows


def _inner_features(layer: DecoderLayer) -> int:
    part = layer.feed_forward
    parts = 2 if part.gated else 1
    if isinstance(part, FeedForward):
        return parts * part.intermediate
    return parts * (part.active * part.intermediate + part.shared)


# ---- does it fit ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fit:
    """What a model needs at one batch and context, and what a target has for it; per device."""

    weight_bytes: int
    cache_bytes: int
    activation_bytes: int
    capacity_bytes: int  # of the memory that has the weights
    other_bytes: int | None  # of the memory that has cache and activations, where it is another

    @property
    def needed_bytes(self) -> int:
        return self.weight_bytes + self.cache_bytes + self.activation_bytes

    @property
    def fits(self) -> bool:
        if self.other_bytes is None:
            return self.needed_bytes <= self.capacity_bytes
        apart = self.cache_bytes + self.activation_bytes
        return self.weight_bytes <= self.capacity_bytes and apart <= self.other_bytes


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model on so many devices of a target."""

    model: Architecture
    storage: Storage
    target: Target
    devices: int = 1
    parallel: Parallel = Parallel.TENSOR

    def fit(self, batch: int, context: int, *, prompt: int = 1) -> Fit:
        """What one device has to hold with `context` tokens in each sequence's cache, and while a prompt is read."""
        weights, cache = self._shares(batch, context)
        constants, activations = (self.target.home(what) for what in (Holds.CONSTANTS, Holds.ACTIVATIONS))
        step = DecoderStep(batch, prompt, max(0, context - prompt))
        return Fit(
            weights,
            cache,
            activation_bytes(self.model, self.storage, step),
            self._capacity(constants),
            None if activations is constants else self._capacity(activations),
        )

    def largest_context(self, batch: int, *, prompt: int = 1) -> int | None:
        """The most tokens of each sequence that fit, up to what the model takes; None where not one does."""
        return _largest(lambda tokens: self.fit(batch, tokens, prompt=prompt).fits, self.model.longest_context)

    def largest_batch(self, context: int, most: int = 1 << 20, *, prompt: int = 1) -> int | None:
        return _largest(lambda batch: self.fit(batch, context, prompt=prompt).fits, most)

    def _capacity(self, memory: Memory) -> int:
        """Bytes of a memory that one device has; what is the host's is shared by all."""
        if memory.scope is Scope.HOST:
            return int(memory.bytes.value) // self.devices
        cores = int(self.target.topology.cores.value) if memory.scope is Scope.CORE else 1
        return int(memory.bytes.value) * cores

    def _shares(self, batch: int, context: int) -> tuple[int, int]:
        """Weights and cache of the device that has most of them."""
        whole = weight_bytes(self.model, self.storage)
        cache = cache_bytes(self.model, self.storage, batch, context)
        if self.devices == 1:
            return whole, cache
        if self.parallel is Parallel.PIPELINE:
            return self._largest_stage(batch, context)
        return -(-whole // self.devices), self._tensor_cache(batch, context)

    def _tensor_cache(self, batch: int, context: int) -> int:
        """Heads of keys are shared out as far as there are any; a latent vector is on every device."""
        total = 0
        for layer, count in self.model.repeats.items():
            mixer = layer.mixer
            heads = mixer.kv_heads if isinstance(mixer, Attention) else 1
            if not isinstance(mixer, Attention | LatentAttention):  # a state has many features, all apart
                heads = self.devices
            whole = count * _layer_cache(layer, self.storage, batch, context)
            total += -(-whole * -(-heads // self.devices) // heads)
        return total

    def _largest_stage(self, batch: int, context: int) -> tuple[int, int]:
        """Layers are shared out in order; the first device has the embedding too, the last one the head."""
        model, storage = self.model, self.storage
        weights = {layer: _bytes_of(model.layer_rows(layer, 1), model, storage) for layer in model.repeats}
        cache = {layer: _layer_cache(layer, storage, batch, context) for layer in model.repeats}
        most = -(-len(model.layers) // self.devices)
        stages = [model.layers[start : start + most] for start in range(0, len(model.layers), most)]
        found = [(sum(weights[each] for each in stage), sum(cache[each] for each in stage)) for stage in stages]
        first, last = _bytes_of(model.embedding_rows, model, storage), _bytes_of(model.head_rows, model, storage)
        if model.tied:
            last += storage.of_block(DecoderPart.HEAD).size_bytes(model.head.rows, model.head.columns)
        found[0] = found[0][0] + first, found[0][1]
        found[-1] = found[-1][0] + last, found[-1][1]
        return max(found, key=sum)


def _largest(holds: Callable[[int], bool], most: int) -> int | None:
    """The largest whole number that a condition holds for, which holds for all below it."""
    if not holds(1):
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
