"""What the first ops that read an input say about its dimensions.

Seen through ops that keep an input's axes (Cast, Transpose, Pad, …), a convolution knows which axes are spatial, a
table lookup which are tokens, and weights the number of channels.

Example: x [n, t] ─Pad─▶ [n, t] ─Unsqueeze─▶ [n, 1, t] ─Conv with weights [258, 1, 256]: n is the batch, t are samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ..usual_sizes import Purpose
from .model import Body, Constant, Node, Value
from .purposes import Evidence, Weight, input_evidence, is_state, symbol_evidence

_Told = Purpose | int  # what an axis counts, or the size that weights demand
_Axes = tuple[int | None, ...]  # of a tensor inside the graph: the axis of the input that each of its axes comes from


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MOST_TENSORS = 256  # followed from one input; this and the limits below bound the work on hostile graphs
_MOST_READERS = 64  # of one tensor
_MOST_OPERANDS = 8  # of one op
_MOST_AXES = 64
_MONO_OR_STEREO = 2
_SPATIAL = ((Purpose.SAMPLES,), (Purpose.HEIGHT, Purpose.WIDTH), (Purpose.VOXELS,) * 3)  # by their number
_LINES = {Purpose.HEIGHT: Purpose.LINE_HEIGHT, Purpose.WIDTH: Purpose.LINE_WIDTH}

# Which input holds the weights.
_CONVOLUTIONS = {"Conv": 1, "ConvInteger": 1, "FusedConv": 1, "ConvTranspose": 1, "QLinearConv": 3}
_PRODUCTS = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "FusedMatMul", "DynamicQuantizeMatMul", "Gemm"), 1),
    "QLinearMatMul": 3,
}
_RECURRENT = _split("LSTM GRU RNN DynamicQuantizeLSTM")
_POOLS = _split("MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool Resize Upsample DepthToSpace SpaceToDepth")
_PAST_AXES = {"GroupQueryAttention": {3: 2, 4: 2}, "MultiHeadAttention": {6: 2, 7: 2}, "Attention": {4: 3}}

_ELEMENTWISE = _split(
    "Add Sub Mul Div Pow Min Max Equal Greater Less GreaterOrEqual LessOrEqual And Or Xor Mod PRelu Where"
)
_KEEP_AXES = _split(
    "Identity Cast CastLike Pad Slice Split Clip Dropout Not Abs Neg Sqrt Exp Log Relu LeakyRelu Sigmoid Tanh Erf Sign "
    "Floor Round Reciprocal Softmax Gelu QuantizeLinear DequantizeLinear DynamicQuantizeLinear BatchNormalization "
    "LayerNormalization InstanceNormalization GroupNormalization MaxPool AveragePool"
)


class FirstReaders:
    """What the ops of a graph say about its inputs."""

    def __init__(self, body: Body, inputs: Sequence[Value]) -> None:
        self._readers: dict[str, list[tuple[Node, int]]] = {}
        self._constants: dict[str, Constant] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._copies: dict[str, str] = {}  # of weights that are stored in another type
        self._reads_lines = False
        self._has_state = any(is_state(value.name) for value in inputs)
        self._add(body)
        self._ranks = {value.name: self._rank(value) for value in inputs}
        self._told = {value.name: self._follow(value.name) for value in inputs}

    def rank(self, name: str) -> int:
        """Return the input's rank: that of its first reader, where the file has none."""
        return self._ranks[name]

    def evidence(self, value: Value, axis: int, symbol: str = "") -> Iterator[Evidence]:
        """Yield everything that is known of one open dimension, whose name is `symbol`."""
        told = self._told[value.name].get(axis)
        if isinstance(told, int):
            yield Evidence(Weight.OP, Purpose.UNKNOWN, told)
        elif told is not None:
            purpose = self._in_this_graph(told)
            yield Evidence(Weight.OP_BATCH if told is Purpose.BATCH else Weight.OP, purpose, purpose.size)
        yield from symbol_evidence(symbol)
        yield from input_evidence(value, axis, self._ranks[value.name])

    def _in_this_graph(self, purpose: Purpose) -> Purpose:
        if self._has_state and purpose is Purpose.SAMPLES:
            return Purpose.CHUNK
        return _LINES.get(purpose, purpose) if self._reads_lines else purpose

    def _add(self, body: Body) -> None:
        """Index the body and its subgraphs; a name that both have means a wrong suggestion at worst."""
        self._constants.update(body.constants)
        self._shapes.update((value.name, value.shape) for value in body.values.values() if value.shape is not None)
        for node in body.nodes:
            for slot, name in enumerate(node.inputs):
                if name:
                    self._readers.setdefault(name, []).append((node, slot))
            if node.op_type in ("DequantizeLinear", "Cast", "Identity") and node.inputs and node.outputs:
                self._copies[node.outputs[0]] = node.inputs[0]
            # Recognisers of text shrink the height more than the width: what is left is a row of characters.
            strides = node.integers("strides") or ()
            self._reads_lines |= len(strides) == 2 and strides[0] > strides[1]
            for _, inner in node.bodies():
                self._add(inner)

    def _rank(self, value: Value) -> int:
        if value.dims is not None:
            return len(value.dims)
        for node, slot in self._readers.get(value.name, ()):
            if slot == 0 and node.op_type in _CONVOLUTIONS:
                return len(self._weights(node, _CONVOLUTIONS[node.op_type])) or 4
            if slot == 0 and node.op_type in _RECURRENT:
                return 3
        return 2

    def _follow(self, name: str) -> dict[int, _Told]:
        """Walk from an input to the ops that tell something of its axes; the nearest one is believed."""
        found: dict[int, _Told] = {}
        waiting: deque[tuple[str, _Axes]] = deque([(name, tuple(range(self._ranks[name])))])
        seen = {name}
        while waiting and len(seen) < _MOST_TENSORS:
            tensor, axes = waiting.popleft()
            for node, slot in self._readers.get(tensor, ())[:_MOST_READERS]:
                for axis, told in self._tell(node, slot, len(axes)):
                    origin = axes[axis] if axis < len(axes) else None
                    if origin is not None:
                        found.setdefault(origin, told)
                onward = self._onward(node, slot, axes)[:_MOST_AXES] if axes else ()
                for output in node.outputs if onward else ():
                    if output not in seen:
                        seen.add(output)
                        waiting.append((output, onward))
        return found

    def _tell(self, node: Node, slot: int, rank: int) -> Iterator[tuple[int, _Told]]:
        """Yield what one op says of the axes of a tensor that it reads."""
        kind = node.op_type
        if kind in _CONVOLUTIONS or kind in _POOLS:
            return self._window(node, rank) if slot == 0 and rank > 2 else iter(())
        if kind in _RECURRENT:
            return self._recurrent(node, slot) if rank == 3 else iter(())
        if kind in _PRODUCTS:
            return self._product(node, rank) if slot == 0 else iter(())
        if kind in _PAST_AXES:
            return _attention(kind, slot, rank)
        if kind in ("Gather", "EmbedLayerNormalization"):
            return self._lookup(node, slot, rank)
        if kind == "Concat":
            return self._append(node, slot, rank)
        if kind == "BatchNormalization":
            return iter([(1, extent) for extent in self._weights(node, 1)[:1]] if slot == 0 else ())
        return self._operand(node, slot, rank) if kind in _ELEMENTWISE or kind == "LayerNormalization" else iter(())

    def _window(self, node: Node, rank: int) -> Iterator[tuple[int, _Told]]:
        """Tell of data [batch, channels, spatial …]."""
        yield 0, Purpose.BATCH
        channels = 0
        weights = self._weights(node, _CONVOLUTIONS.get(node.op_type, len(node.inputs)))
        if len(weights) == rank:
            is_transposed = node.op_type == "ConvTranspose"
            channels = weights[0] if is_transposed else weights[1] * max(node.integer("group", 1), 1)
            yield 1, channels
        for axis, purpose in enumerate(_SPATIAL[min(rank, 5) - 3], 2):
            is_features = purpose is Purpose.SAMPLES and channels > _MONO_OR_STEREO
            yield axis, Purpose.STEPS if is_features else purpose

    def _recurrent(self, node: Node, slot: int) -> Iterator[tuple[int, _Told]]:
        """Tell of data [steps, batch, features], or [batch, steps, features] with `layout` 1, and of states."""
        batch_axis = 0 if node.integer("layout", 0) else 1
        if slot == 0:
            yield batch_axis, Purpose.BATCH
            yield 1 - batch_axis, Purpose.STEPS
            weights = self._weights(node, 1)
            if len(weights) == 3 and node.op_type != "DynamicQuantizeLSTM":  # whose weights are transposed
                yield 2, weights[2]
        elif slot >= 5:
            self._has_state = True
            yield batch_axis, Purpose.BATCH

    def _product(self, node: Node, rank: int) -> Iterator[tuple[int, _Told]]:
        weights = self._weights(node, _PRODUCTS[node.op_type])
        if len(weights) == 2 and rank and not node.integer("transA", 0):
            yield rank - 1, weights[1] if node.integer("transB", 0) else weights[0]
        if rank > 1:
            yield 0, Purpose.BATCH
        if rank == 3:
            yield 1, Purpose.TOKENS

    def _lookup(self, node: Node, slot: int, rank: int) -> Iterator[tuple[int, _Told]]:
        """Tell of indices [batch, tokens] into a table of rows."""
        is_table = node.op_type != "Gather" or len(self._weights(node, 0)) == 2
        if is_table and rank > 1 and slot == (1 if node.op_type == "Gather" else min(slot, 1)):
            yield 0, Purpose.BATCH
            yield rank - 1, Purpose.TOKENS

    def _append(self, node: Node, slot: int, rank: int) -> Iterator[tuple[int, _Told]]:
        """Tell of a cache [batch, heads, tokens, size] to which this call's keys or values are appended."""
        axis = node.integer("axis", 0) % max(rank, 1)
        if slot == 0 and (rank, axis) == (4, 2) and len(node.inputs) == 2 and node.inputs[1] not in self._constants:
            yield 0, Purpose.BATCH
            yield axis, Purpose.PAST

    def _operand(self, node: Node, slot: int, rank: int) -> Iterator[tuple[int, _Told]]:
        """Tell of the extents of other operands: they are the input's own, unless they are 1."""
        for other in range(len(node.inputs[:_MOST_OPERANDS])):
            shape = self._weights(node, other) if other != slot else ()
            for back, extent in enumerate(reversed(shape[-rank:] if rank else ()), 1):
                if extent > 1:
                    yield rank - back, extent

    def _weights(self, node: Node, slot: int) -> tuple[int, ...]:
        """Return the shape of an operand if the file fixes it, else ()."""
        name = node.inputs[slot] if slot < len(node.inputs) else ""
        for _ in range(4):
            constant = self._constants.get(name)
            shape = constant.dims if constant is not None else self._shapes.get(name)
            if shape is not None:
                return shape
            name = self._copies.get(name, "")
        return ()

    def _onward(self, node: Node, slot: int, axes: _Axes) -> _Axes:
        """Return the axes of the op's outputs in terms of the input's; () where they are mixed."""
        kind = node.op_type
        if kind in _ELEMENTWISE:
            rank = max(len(self._weights(node, other)) for other in range(len(node.inputs[:_MOST_OPERANDS])))
            return (None,) * (rank - len(axes)) + axes  # a longer operand adds axes in front
        if kind == "Concat" or (slot == 0 and kind in _KEEP_AXES):
            return axes
        if slot:
            return ()
        if kind == "Transpose":
            order = node.integers("perm") or tuple(reversed(range(len(axes))))
            return tuple(axes[axis] for axis in order) if sorted(order) == list(range(len(axes))) else ()
        if kind in ("Squeeze", "Unsqueeze"):
            return _resized(kind, self._chosen_axes(node), axes)
        if kind == "Gather":  # one row of it, or several
            index = self._constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
            is_row = index is not None and not index.dims
            return _resized("Squeeze", (node.integer("axis", 0),), axes) if is_row else axes
        if kind == "Flatten" and axes and node.integer("axis", 1) == 1:
            return axes if len(axes) == 2 else (axes[0], None)
        return ()

    def _chosen_axes(self, node: Node) -> tuple[int, ...]:
        stored = self._constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        return node.integers("axes") or (stored.integers if stored is not None else None) or ()


def _attention(kind: str, slot: int, rank: int) -> Iterator[tuple[int, _Told]]:
    if slot == 0 and rank == 3:
        yield 0, Purpose.BATCH
        yield 1, Purpose.TOKENS
    axis = _PAST_AXES[kind].get(slot)
    if axis is not None:
        yield axis, Purpose.PAST


def _resized(kind: str, chosen: tuple[int, ...], axes: _Axes) -> _Axes:
    """Return the axes without, or with, those that a Squeeze or an Unsqueeze names."""
    if not chosen:
        return ()
    if kind == "Squeeze":
        gone = {axis % len(axes) for axis in chosen}
        return tuple(origin for axis, origin in enumerate(axes) if axis not in gone)
    rank = len(axes) + len(chosen)
    new = {axis % rank for axis in chosen}
    kept = iter(axes)
    return tuple(None if axis in new else next(kept, None) for axis in range(rank))
