"""Rewrites of a graph whose effect a suggestion reports: the changed graph is estimated, not guessed.

Every function takes a graph and returns the changed one, or None if the change does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from math import ceil, prod

from ..core.units import Bytes
from ..graph.graph import ABSENT, Attribute, DType, Graph, Op, Role, Tensor
from ..graph.kinds import Family
from ..machine.target import Target
from .quantiser import FLOATS
from .work import number, numbers

_SPATIAL_RANK = 4
# Output channels of these do not depend on input channels.
_DEFINES_CHANNELS = (Family.CONTRACTION, Family.RECURRENT, Family.CONTROL, Family.OPAQUE)


def quantise_weights(graph: Graph) -> Graph | None:
    """Return the graph with int8 weights and unchanged activations, as is usual for large language models."""
    heavy = {
        op.inputs[1]
        for op in graph.ops
        if op.family is Family.CONTRACTION and len(op.inputs) > 1 and _is_constant(graph, op.inputs[1])
    }
    heavy = {t for t in heavy if graph.tensors[t].dtype in FLOATS}
    if not heavy:
        return None
    tensors = tuple(_as_int8(t) if i in heavy else t for i, t in enumerate(graph.tensors))
    return replace(graph, tensors=tensors)


def _as_int8(tensor: Tensor) -> Tensor:
    if tensor.dtype not in FLOATS:
        return tensor
    stored = None if tensor.stored_bytes is None else Bytes(tensor.stored_bytes * 8 // tensor.dtype.bits)
    return replace(tensor, dtype=DType.I8, stored_bytes=stored)


def fuse_more(graph: Graph, target: Target) -> Graph | None:
    """Merge stand-alone activations and normalisations into the op before them, beyond what the runtime does."""
    from .canonical import fuse

    kinds = {"relu", "clip", "batch_norm", "leaky_relu", "hard_swish"} - set(target.runtime.fuses)
    changed = fuse(graph, kinds | set(target.runtime.fuses))
    return changed if len(changed.ops) < len(fuse(graph, target.runtime.fuses).ops) else None


def prune_channels(graph: Graph, *, keep: float) -> Graph | None:
    """Structured pruning: each convolution keeps that share of its channels; network inputs and outputs stay."""
    if sum(op.kind == "conv" for op in graph.ops) < 3:
        return None
    axes = _pruned_axes(graph)
    tensors = [_scale_shape(t, {axes[i]: keep}) if i in axes else t for i, t in enumerate(graph.tensors)]
    # Rounding up gives each tensor its own share, so weights are scaled by the shares of their tensors, not by `keep`.
    remaining = {i: (tensors[i].elements or 0) / (graph.tensors[i].elements or 1) for i in axes}
    for op in graph.ops:
        if op.kind in ("conv", "matmul") and _constant(graph, op, 1) is not None:
            share = remaining.get(op.outputs[0], 1.0)
            if number(op, "groups", 1) == 1:
                share *= remaining.get(op.inputs[0], 1.0)
            weights = graph.tensors[op.inputs[1]]
            tensors[op.inputs[1]] = replace(weights, stored_bytes=Bytes(round((weights.bytes or 0) * share)))
    ops = tuple(_prune_op(op, remaining) for op in graph.ops)
    return replace(graph, ops=ops, tensors=tuple(tensors)) if axes else None


def _pruned_axes(graph: Graph) -> dict[int, int]:
    """Return, for each tensor that loses channels, the axis it loses them on.

    These are the outputs of convolutions and the tensors computed from them, up to the next op that defines its own
    channels.
    """
    unprunable = _unprunable(graph)
    axes: dict[int, int] = {}
    for op in graph.ops:
        sources = [t for t in op.inputs if t in axes]
        if op.kind == "conv" and (number(op, "groups", 1) == 1 or sources):
            found = dict.fromkeys(op.outputs, number(op, "channel_axis"))
        elif sources and op.family not in _DEFINES_CHANNELS:
            found = {
                t: axis for t in op.outputs if (axis := _channel_axis_after(op, graph, sources[0], t, axes)) is not None
            }
        else:
            continue
        axes.update((t, axis) for t, axis in found.items() if t not in unprunable)
    return axes


def _unprunable(graph: Graph) -> set[int]:
    """Return network inputs and outputs, and tensors that reach an output with unchanged channels."""
    unprunable = {*graph.inputs, *graph.outputs}
    for op in reversed(graph.ops):
        if op.family not in _DEFINES_CHANNELS and not unprunable.isdisjoint(op.outputs):
            unprunable.update(op.inputs)
    return unprunable


def _channel_axis_after(op: Op, graph: Graph, source: int, result: int, axes: dict[int, int]) -> int | None:
    """Return the axis that holds the operand's channels in the result; None if it cannot be determined."""
    before, after = graph.tensors[source].shape, graph.tensors[result].shape
    if before is None or after is None or len(after) > len(before):
        return None
    if len(after) < len(before):  # averaged over the image, or flattened
        return len(after) - 1 if after else None
    permutation = numbers(op, "permutation")
    return permutation.index(axes[source]) if axes[source] in permutation else axes[source]


def _prune_op(op: Op, remaining: dict[int, float]) -> Op:
    """Adjust the op's groups or k to the remaining channels of its input."""
    share = remaining.get(op.inputs[0], 1.0) if op.inputs else 1.0
    key = {"conv": "groups", "matmul": "k"}.get(op.kind)
    if key is None or share == 1.0 or number(op, key, 1) == 1:
        return op
    return replace(op, attributes={**op.attributes, key: max(1, round(number(op, key) * share))})


def shrink_input(graph: Graph, *, scale: float) -> Graph | None:
    """Scale height and width of every image-shaped activation; weights do not change."""
    convolutions = [op for op in graph.ops if op.kind == "conv" and len(numbers(op, "kernel")) == 2]
    if not convolutions:
        return None
    spatial = (1, 2) if number(convolutions[0], "channel_axis") == 3 else (2, 3)
    if not any(_is_image(graph.tensors[t].shape or (), spatial) for t in graph.inputs):
        return None
    if any(_flattens_an_image(op, graph) for op in graph.ops):
        return None  # the dense layer after it has weights for one input size only
    tensors = tuple(
        _scale_shape(t, dict.fromkeys(spatial, scale))
        if t.role is not Role.CONSTANT and len(t.shape or ()) == _SPATIAL_RANK
        else t
        for t in graph.tensors
    )
    return replace(graph, tensors=tensors)


def _is_image(shape: Sequence[int], spatial: tuple[int, int]) -> bool:
    """Whether an input is a picture: one of a single channel that is not square is time by frequency, as sound is."""
    if len(shape) != _SPATIAL_RANK:
        return False
    height, width = (shape[axis] for axis in spatial)
    return height == width or prod(shape[1:]) != height * width


def _flattens_an_image(op: Op, graph: Graph) -> bool:
    """Whether a reshape flattens an image that is larger than 1×1."""
    if op.kind != "reshape" or not op.inputs or op.inputs[0] == ABSENT:
        return False
    shape = graph.tensors[op.inputs[0]].shape
    return shape is not None and len(shape) == _SPATIAL_RANK and sum(extent > 1 for extent in shape) > 1


def _scale_shape(tensor: Tensor, shares: dict[int, float]) -> Tensor:
    if tensor.shape is None:
        return tensor
    shape = tuple(
        max(1, ceil(extent * shares[axis])) if axis in shares and extent > 1 else extent
        for axis, extent in enumerate(tensor.shape)
    )
    return replace(tensor, shape=shape)


def split_into_depthwise_separable(graph: Graph, layers: Collection[int]) -> Graph | None:
    """Replace each chosen convolution by a depthwise one followed by a 1×1 one."""
    return _rewrite(graph, layers, _split_depthwise)


def factorise_low_rank(graph: Graph, layers: Collection[int], *, share: float = 0.25) -> Graph | None:
    """Replace each chosen weight matrix (dense or 1×1 convolution) by a product of two with that share of its rank."""
    return _rewrite(graph, layers, lambda op, g: _split_rank(op, g, share))


def dense_to_convolution(graph: Graph, layers: Collection[int]) -> Graph | None:
    """Write dense layers as 1×1 convolutions, for accelerators that run only those."""
    return _rewrite(graph, layers, _as_convolution)


def separable_layers(graph: Graph, layers: Collection[int]) -> tuple[int, ...]:
    """Return the layers that `split_into_depthwise_separable` can rewrite."""
    return tuple(index for index in layers if _split_depthwise(graph.ops[index], graph) is not None)


def factorisable_layers(graph: Graph, layers: Collection[int], *, share: float = 0.25) -> tuple[int, ...]:
    """Return the layers that `factorise_low_rank` can rewrite."""
    return tuple(index for index in layers if _split_rank(graph.ops[index], graph, share) is not None)


Split = Callable[[Op, Graph], tuple[list[Op], list[Tensor]] | None]


def _rewrite(graph: Graph, layers: Collection[int], split: Split) -> Graph | None:
    """Replace chosen ops; a split numbers its new tensors from the end of the graph's list."""
    ops: list[Op] = []
    changed = graph
    for index, op in enumerate(graph.ops):
        parts = split(op, changed) if index in layers else None
        if parts is None:
            ops.append(op)
            continue
        ops.extend(parts[0])
        changed = replace(changed, ops=(), tensors=(*changed.tensors, *parts[1]))
    return replace(changed, ops=tuple(ops)) if len(changed.tensors) > len(graph.tensors) else None


def _split_depthwise(op: Op, graph: Graph) -> tuple[list[Op], list[Tensor]] | None:
    """Split a dense k×k convolution into depthwise k×k and pointwise 1×1; None if it does not apply.

    Multiply-accumulates per pixel fall from k² × in × out to in × (k² + out).
    """
    data, weights, out = graph.tensors[op.inputs[0]], _constant(graph, op, 1), graph.tensors[op.outputs[0]]
    kernel = numbers(op, "kernel")
    if op.kind != "conv" or number(op, "groups", 1) != 1 or max(kernel, default=1) == 1 or weights is None:
        return None
    axis = number(op, "channel_axis")
    if data.shape is None or out.shape is None or min(data.shape[axis], out.shape[axis]) < 8:
        return None
    channels, taps = data.shape[axis], prod(kernel)
    middle = tuple(channels if i == axis else extent for i, extent in enumerate(out.shape))
    first = len(graph.tensors)
    tensors = [
        Tensor(f"{op.name}/depthwise", middle, out.dtype, Role.ACTIVATION),
        Tensor(f"{op.name}/depthwise_weights", (channels, taps), weights.dtype, Role.CONSTANT),
        Tensor(f"{op.name}/pointwise_weights", (channels, out.shape[axis]), weights.dtype, Role.CONSTANT),
    ]
    depthwise = replace(
        op,
        inputs=(op.inputs[0], first + 1),
        outputs=(first,),
        attributes={**op.attributes, "groups": channels},
        name=f"{op.name}/depthwise",
    )
    pointwise = replace(
        op,
        inputs=(first, first + 2, *op.inputs[2:]),
        attributes={**op.attributes, "kernel": (1,) * len(kernel), "strides": (1,) * len(kernel)},
        name=f"{op.name}/pointwise",
    )
    return [depthwise, pointwise], tensors


def _split_rank(op: Op, graph: Graph, share: float) -> tuple[list[Op], list[Tensor]] | None:
    """Split weights k × n into k × rank and rank × n; None unless that is smaller."""
    weights, out, matrix = _constant(graph, op, 1), graph.tensors[op.outputs[0]], _weight_matrix(op, graph)
    if matrix is None or weights is None or out.shape is None:
        return None
    k, n, axis = matrix
    rank = ceil(min(k, n) * share)
    if min(k, n) < 64 or rank * (k + n) >= k * n or weights.elements != k * n:
        return None
    first = len(graph.tensors)
    thin = tuple(rank if i == axis else extent for i, extent in enumerate(out.shape))
    tensors = [
        Tensor(f"{op.name}/thin", thin, out.dtype, Role.ACTIVATION),
        Tensor(f"{op.name}/left", (k, rank), weights.dtype, Role.CONSTANT),
        Tensor(f"{op.name}/right", (rank, n), weights.dtype, Role.CONSTANT),
    ]
    bare = {key: value for key, value in op.attributes.items() if key != "activation"}
    narrow, wide = ({**bare, "n": rank}, {**op.attributes, "k": rank}) if op.kind == "matmul" else (bare, op.attributes)
    if op.kind == "conv":  # the first factor takes the stride, so that the second sees the smaller image
        wide = {**wide, "strides": (1,) * len(numbers(op, "kernel"))}
    left = replace(op, inputs=(op.inputs[0], first + 1), outputs=(first,), attributes=narrow, name=f"{op.name}/left")
    right = replace(op, inputs=(first, first + 2, *op.inputs[2:]), attributes=wide, name=f"{op.name}/right")
    return [left, right], tensors


def _weight_matrix(op: Op, graph: Graph) -> tuple[int, int, int] | None:
    """Return rows and columns of an op's weights, and the output axis that the columns produce."""
    data, out = graph.tensors[op.inputs[0]].shape, graph.tensors[op.outputs[0]].shape
    if op.kind == "matmul" and out:
        return number(op, "k"), number(op, "n"), len(out) - 1
    if (
        op.kind == "conv"
        and data
        and out
        and number(op, "groups", 1) == 1
        and max(numbers(op, "kernel"), default=1) == 1
    ):
        axis = number(op, "channel_axis")
        return data[axis], out[axis], axis
    return None


def _as_convolution(op: Op, graph: Graph) -> tuple[list[Op], list[Tensor]] | None:
    """Return reshape to an image, 1×1 convolution, and reshape back."""
    data, out = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
    if op.kind != "matmul" or _constant(graph, op, 1) is None or not data.elements or not out.elements:
        return None
    k, n = number(op, "k"), number(op, "n")
    first = len(graph.tensors)
    rows = out.elements // n
    tensors = [
        Tensor(f"{op.name}/image", (1, rows, 1, k), data.dtype, Role.ACTIVATION),
        Tensor(f"{op.name}/result", (1, rows, 1, n), out.dtype, Role.ACTIVATION),
    ]
    attributes: dict[str, Attribute] = {"kernel": (1, 1), "strides": (1, 1), "groups": 1, "channel_axis": 3}
    if "activation" in op.attributes:
        attributes["activation"] = op.attributes["activation"]
    view = Op("reshape", op.type, f"{op.name}/as_image", (op.inputs[0],), (first,), scope=op.scope, trips=op.trips)
    conv = replace(op, kind="conv", inputs=(first, *op.inputs[1:]), outputs=(first + 1,), attributes=attributes)
    back = replace(view, name=f"{op.name}/back", inputs=(first + 1,), outputs=op.outputs)
    return [view, conv, back], tensors


def _constant(graph: Graph, op: Op, position: int) -> Tensor | None:
    if len(op.inputs) <= position or not _is_constant(graph, op.inputs[position]):
        return None
    return graph.tensors[op.inputs[position]]


def _is_constant(graph: Graph, tensor: int) -> bool:
    return tensor != ABSENT and graph.tensors[tensor].role is Role.CONSTANT
