"""Changes to a graph, as graphs: what a suggestion would give is estimated, not guessed.

Every function takes a graph and returns the changed one, or None where the change does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from math import ceil, prod

from ..core.units import Bytes
from ..graph.graph import ABSENT, Attribute, DType, Graph, Op, Role, Tensor
from ..graph.kinds import Family
from ..machine.target import Target
from .work import number, numbers

_FLOATS = (DType.F64, DType.F32, DType.F16, DType.BF16)
_SPATIAL_RANK = 4
_ENDS_CHANNELS = (Family.CONTRACTION, Family.RECURRENT, Family.CONTROL, Family.OPAQUE)  # they make their own


def quantised(graph: Graph) -> Graph | None:
    """Weights and activations of every float tensor as int8; graph inputs and outputs too."""
    if not any(t.dtype in _FLOATS for t in graph.tensors):
        return None
    return replace(graph, tensors=tuple(_as_int8(t) for t in graph.tensors))


def weights_quantised(graph: Graph) -> Graph | None:
    """Weights stored as int8, activations as they are: what large language models do."""
    heavy = {
        op.inputs[1]
        for op in graph.ops
        if op.family is Family.CONTRACTION and len(op.inputs) > 1 and _is_constant(graph, op.inputs[1])
    }
    heavy = {t for t in heavy if graph.tensors[t].dtype in _FLOATS}
    if not heavy:
        return None
    tensors = tuple(_as_int8(t) if i in heavy else t for i, t in enumerate(graph.tensors))
    return replace(graph, tensors=tensors)


def _as_int8(tensor: Tensor) -> Tensor:
    if tensor.dtype not in _FLOATS:
        return tensor
    stored = None if tensor.stored_bytes is None else Bytes(tensor.stored_bytes * 8 // tensor.dtype.bits)
    return replace(tensor, dtype=DType.I8, stored_bytes=stored)


def fused(graph: Graph, target: Target) -> Graph | None:
    """Stand-alone activations and normalisations merged into the op before them."""
    from .canonical import fuse

    kinds = {"relu", "clip", "batch_norm", "leaky_relu", "hard_swish"} - set(target.runtime.fuses)
    changed = fuse(graph, kinds | set(target.runtime.fuses))
    return changed if len(changed.ops) < len(fuse(graph, target.runtime.fuses).ops) else None


def pruned(graph: Graph, *, keep: float) -> Graph | None:
    """Structured pruning: every convolution keeps that share of its channels; the network's ends stay as they are."""
    if sum(op.kind == "conv" for op in graph.ops) < 3:
        return None
    axes = _pruned_axes(graph)
    tensors = [_scaled(t, {axes[i]: keep}) if i in axes else t for i, t in enumerate(graph.tensors)]
    kept = {i: (tensors[i].elements or 0) / (graph.tensors[i].elements or 1) for i in axes}
    for op in graph.ops:
        if op.kind in ("conv", "matmul") and _constant(graph, op, 1) is not None:
            share = kept.get(op.outputs[0], 1.0)
            if number(op, "groups", 1) == 1:
                share *= kept.get(op.inputs[0], 1.0)
            weights = graph.tensors[op.inputs[1]]
            tensors[op.inputs[1]] = replace(weights, stored_bytes=Bytes(round((weights.bytes or 0) * share)))
    ops = tuple(_pruned_op(op, kept) for op in graph.ops)
    return replace(graph, ops=ops, tensors=tuple(tensors)) if axes else None


def _pruned_axes(graph: Graph) -> dict[int, int]:
    """Tensor → the axis on which it loses channels: what convolutions write, and what is computed from that alone."""
    fixed = _fixed(graph)
    axes: dict[int, int] = {}
    for op in graph.ops:
        sources = [t for t in op.inputs if t in axes]
        if op.kind == "conv" and (number(op, "groups", 1) == 1 or sources):
            found = dict.fromkeys(op.outputs, number(op, "channel_axis"))
        elif sources and op.family not in _ENDS_CHANNELS:
            found = {t: axis for t in op.outputs if (axis := _follow(op, graph, sources[0], t, axes)) is not None}
        else:
            continue
        axes.update((t, axis) for t, axis in found.items() if t not in fixed)
    return axes


def _fixed(graph: Graph) -> set[int]:
    """The network's ends, and tensors that reach an output with their channels as they are."""
    fixed = {*graph.inputs, *graph.outputs}
    for op in reversed(graph.ops):
        if op.family not in _ENDS_CHANNELS and not fixed.isdisjoint(op.outputs):
            fixed.update(op.inputs)
    return fixed


def _follow(op: Op, graph: Graph, source: int, result: int, axes: dict[int, int]) -> int | None:
    """Where the channels of an operand are in the result; None where they can no longer be told."""
    before, after = graph.tensors[source].shape, graph.tensors[result].shape
    if before is None or after is None or len(after) > len(before):
        return None
    if len(after) < len(before):  # averaged over the image, or flattened
        return len(after) - 1 if after else None
    permutation = numbers(op, "permutation")
    return permutation.index(axes[source]) if axes[source] in permutation else axes[source]


def _pruned_op(op: Op, kept: dict[int, float]) -> Op:
    share = kept.get(op.inputs[0], 1.0) if op.inputs else 1.0
    key = {"conv": "groups", "matmul": "k"}.get(op.kind)
    if key is None or share == 1.0 or number(op, key, 1) == 1:
        return op
    return replace(op, attributes={**op.attributes, key: max(1, round(number(op, key) * share))})


def smaller_input(graph: Graph, *, scale: float) -> Graph | None:
    """Every image-shaped activation with its height and width scaled; weights stay."""
    convolutions = [op for op in graph.ops if op.kind == "conv" and len(numbers(op, "kernel")) == 2]
    if not convolutions or not any(len(graph.tensors[t].shape or ()) == _SPATIAL_RANK for t in graph.inputs):
        return None
    if any(_flattens_an_image(op, graph) for op in graph.ops):
        return None  # a dense layer behind a flattened image has weights for one input size only
    spatial = (1, 2) if number(convolutions[0], "channel_axis") == 3 else (2, 3)
    tensors = tuple(
        _scaled(t, dict.fromkeys(spatial, scale))
        if t.role is not Role.CONSTANT and len(t.shape or ()) == _SPATIAL_RANK
        else t
        for t in graph.tensors
    )
    return replace(graph, tensors=tensors)


def _flattens_an_image(op: Op, graph: Graph) -> bool:
    if op.kind != "reshape" or not op.inputs or op.inputs[0] == ABSENT:
        return False
    shape = graph.tensors[op.inputs[0]].shape
    return shape is not None and len(shape) == _SPATIAL_RANK and sum(extent > 1 for extent in shape) > 1


def _scaled(tensor: Tensor, shares: dict[int, float]) -> Tensor:
    if tensor.shape is None:
        return tensor
    shape = tuple(
        max(1, ceil(extent * shares[axis])) if axis in shares and extent > 1 else extent
        for axis, extent in enumerate(tensor.shape)
    )
    return replace(tensor, shape=shape)


def depthwise_separable(graph: Graph, layers: Collection[int]) -> Graph | None:
    """Each chosen convolution as a depthwise one followed by a 1×1 one."""
    return _rewritten(graph, layers, _split_depthwise)


def low_rank(graph: Graph, layers: Collection[int], *, share: float = 0.25) -> Graph | None:
    """Each chosen weight matrix (dense, or of a 1×1 convolution) as the product of two of that share of its rank."""
    return _rewritten(graph, layers, lambda op, g: _split_rank(op, g, share))


def on_accelerator(graph: Graph, layers: Collection[int]) -> Graph | None:
    """Dense layers written as 1×1 convolutions, for accelerators that take only those."""
    return _rewritten(graph, layers, _as_convolution)


def separable(graph: Graph, layers: Collection[int]) -> tuple[int, ...]:
    """Those of the layers that `depthwise_separable` can rewrite."""
    return tuple(index for index in layers if _split_depthwise(graph.ops[index], graph) is not None)


def factorisable(graph: Graph, layers: Collection[int], *, share: float = 0.25) -> tuple[int, ...]:
    """Those of the layers that `low_rank` can rewrite."""
    return tuple(index for index in layers if _split_rank(graph.ops[index], graph, share) is not None)


Split = Callable[[Op, Graph], tuple[list[Op], list[Tensor]] | None]


def _rewritten(graph: Graph, layers: Collection[int], split: Split) -> Graph | None:
    """Replace chosen ops; a split names its new tensors by ids that follow the graph's."""
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
    """Rows and columns of an op's weights, and the axis of its output that the columns make."""
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
