"""Axis propagation: if an op's output is split along an axis, along which axis must each input be split?

`WHOLE`: every lane needs all of that input. None: the op cannot be split along the axis.

    matmul [8,16,32]·[32,64] → [8,16,64]    axis 1 → (1, WHOLE)    rows: a lane needs its rows and all weights
                                            axis 2 → (WHOLE, 1)    channels: all rows and its columns of the weights
    softmax over axis 2 of [8,16,64]        axis 2 → None          a lane would see only a part of the sum
    transpose (1,0,2)                       axis 0 → (1,)
    add [8,16,64] + [64]                    axis 1 → (1, WHOLE)    the broadcast operand has no such axis

Where windows overlap (convolutions, pools) a lane needs rows beyond its part: `halo` says how many.
"""

from __future__ import annotations

from collections.abc import Callable

from ...estimate.work import number, numbers
from ...graph.graph import ABSENT, Graph, Op
from ...graph.kinds import Family
from ..sharding import REDUCED, Cut, Sharding

WHOLE = -1  # instead of an axis: all of that input

Axes = tuple[int, ...]


def input_axes(op: Op, graph: Graph, axis: int) -> Axes | None:
    """The axis of every input that corresponds to `axis` of the first output; None: the op cannot be split along it."""
    rule = _BY_KIND.get(op.kind) or _BY_FAMILY.get(op.family)
    return None if rule is None else rule(op, graph, axis)


def needs(op: Op, graph: Graph, sharding: Sharding) -> tuple[Sharding, ...] | None:
    """Which part of every input each lane needs to do its part of an op; None: the op cannot be split so."""
    found: list[list[Cut]] = [[] for _ in op.inputs]
    for cut in sharding.cuts:
        axes = reduced_axes(op, graph) if cut.axis == REDUCED else input_axes(op, graph, cut.axis)
        if axes is None:
            return None
        for position, (t, axis) in enumerate(zip(op.inputs, axes, strict=True)):
            if axis != WHOLE and t != ABSENT:
                before, after = halo(op, graph, cut.axis, axis) if position == 0 else (0.0, 0.0)
                found[position].append(Cut(axis, cut.extent, cut.parts, cut.inner, before, after))
    return tuple(sharding.only(tuple(cuts)) for cuts in found)


def halo(op: Op, graph: Graph, axis: int, own: int) -> tuple[float, float]:
    """Share of axis `own` of the first input that a lane needs before and after its part, of windows that overlap.

    A 3 × 3 convolution of 56 rows needs one row more on either side: (1/56, 1/56).
    """
    kernel, strides = numbers(op, "kernel"), numbers(op, "strides")
    channel, source = op.attributes.get("channel_axis"), _shape(graph, op.inputs[0])
    spatial = [i for i in range(1, len(source)) if i != channel]
    if op.kind == "conv_transpose" or not kernel or len(spatial) != len(kernel) or axis not in spatial:
        return 0.0, 0.0
    place = spatial.index(axis)
    dilations = numbers(op, "dilations")
    taps = (kernel[place] - 1) * (dilations[place] if len(dilations) == len(kernel) else 1) + 1
    over = max(0, taps - (strides[place] if len(strides) == len(kernel) else 1))
    return (over // 2) / source[own], (over - over // 2) / source[own]


def reduced_axes(op: Op, graph: Graph) -> Axes | None:
    """The axis of every input that a product sums over; None: it is not cut along it."""
    left, right = _shape(graph, op.inputs[0]), _shape(graph, op.inputs[1]) if len(op.inputs) > 1 else ()
    if op.kind != "matmul" or len(left) < 2 or len(right) != 2 or len(left) > len(_shape(graph, op.outputs[0])):
        return None
    produced = 1 if right[-1] == number(op, "n") else 0
    return (len(left) - 1, 1 - produced, *(WHOLE,) * (len(op.inputs) - 2))


def _shape(graph: Graph, tensor: int) -> tuple[int, ...]:
    return () if tensor == ABSENT else graph.tensors[tensor].shape or ()


def _aligned(op: Op, graph: Graph, axis: int) -> Axes:
    """Elementwise: axes align from the right; an operand that is broadcast along the axis is needed whole."""
    rank = len(_shape(graph, op.outputs[0]))
    extent = _shape(graph, op.outputs[0])[axis]
    answer = []
    for t in op.inputs:
        shape = _shape(graph, t)
        own = axis - (rank - len(shape))
        answer.append(own if own >= 0 and shape[own] == extent else WHOLE)
    return tuple(answer)


def _matmul(op: Op, graph: Graph, axis: int) -> Axes | None:
    """The last axis is that of the weights, the others are rows or batches of the left operand."""
    out, left, right = (_shape(graph, t) for t in (op.outputs[0], op.inputs[0], op.inputs[1]))
    rest = (WHOLE,) * (len(op.inputs) - 2)
    if len(left) > len(out) or min(len(out), len(right)) < 2:  # the left operand is flattened first
        return None
    if axis == len(out) - 1:  # produced channels: every lane needs all of the left operand
        return (WHOLE, len(right) - (1 if right[-1] == number(op, "n") else 2), *rest)
    own, other = axis - (len(out) - len(left)), axis - (len(out) - len(right))
    follows = axis < len(out) - 2 and 0 <= other < len(right) - 2 and right[other] == out[axis]
    if own < 0 or left[own] != out[axis]:  # the left operand is the same for all of the batch
        return (WHOLE, other, *rest) if follows else None
    return (own, other if follows else WHOLE, *rest)


def _conv(op: Op, graph: Graph, axis: int) -> Axes | None:
    rest = (WHOLE,) * (len(op.inputs) - 1)
    channel = number(op, "channel_axis")
    if axis != channel:
        return (axis, *rest)
    return (WHOLE if number(op, "groups", 1) == 1 else channel, *rest)  # whoever cuts leaves groups whole


def _attention(op: Op, graph: Graph, axis: int) -> Axes | None:
    """By batch; or by heads, which lie side by side in the last axis of [batch, rows, heads × size]."""
    out = _shape(graph, op.outputs[0])
    if axis == 0:
        return tuple(0 if _shape(graph, t)[:1] == out[:1] else WHOLE for t in op.inputs)
    if axis != len(out) - 1 or len(out) != 3 or number(op, "projection_macs", 0):
        return None
    by_rank = {3: 2, 4: 1}  # [batch, rows, heads × size] and [batch, heads, rows, size]
    return tuple(by_rank.get(len(_shape(graph, t)), WHOLE) for t in op.inputs)


def _recurrent(op: Op, graph: Graph, axis: int) -> Axes | None:
    """By batch; or by hidden units, each with its gates: lanes then hand each other the state in every step.

    Data are [steps, batch, input] or [batch, steps, input]. The result has the axes of the data, or one of directions
    beside that of the batch; the last state alone has no steps.
    """
    out, data = _shape(graph, op.outputs[0]), _shape(graph, op.inputs[0])
    batch, steps, directions = (number(op, key, 1) for key in ("batch", "steps", "directions"))
    if axis == len(out) - 1 and not number(op, "projection_size", 0) and out[axis] == number(op, "hidden_size"):
        weights = tuple(len(_shape(graph, t)) - 2 if len(_shape(graph, t)) > 1 else WHOLE for t in op.inputs[1:3])
        return (WHOLE, *weights, *(WHOLE,) * (len(op.inputs) - 3))
    first = len(data) == 3 and data[:2] == (batch, steps) and out[:1] == (batch,)
    own = 0 if first or len(data) == 2 else out.index(batch, 1) if batch in out[1:-1] else WHOLE
    if axis != own or out[axis] != batch:
        return None
    along = 0 if first or len(data) == 2 else 1
    return (along, *(_batch_of_state(_shape(graph, t), batch, directions) for t in op.inputs[1:]))


def _batch_of_state(shape: tuple[int, ...], batch: int, directions: int) -> int:
    """The axis of images of a first state, [directions, batch, hidden] or [batch, …]; weights have none."""
    if len(shape) == 3 and shape[:2] == (directions, batch):
        return 1
    return 0 if shape[:1] == (batch,) and len(shape) < 3 else WHOLE


def _einsum(op: Op, graph: Graph, axis: int) -> Axes | None:
    """Every operand along the axis that carries the label of the output's axis."""
    terms, arrow, result = str(op.attributes.get("equation", "")).replace(" ", "").partition("->")
    words = terms.split(",")
    if not arrow or "." in terms or len(words) != len(op.inputs) or axis >= len(result):
        return None
    return tuple(word.find(result[axis]) if result[axis] in word else WHOLE for word in words)


def _normalise(op: Op, graph: Graph, axis: int) -> Axes | None:
    if "axes" not in op.attributes or axis in numbers(op, "axes"):
        return None
    return _first(op, axis)


def _masked_softmax(op: Op, graph: Graph, axis: int) -> Axes | None:
    """The mask is cut as the scores are, but for heads, which share it."""
    return None if axis in numbers(op, "axes") else _aligned(op, graph, axis)


def _group_norm(op: Op, graph: Graph, axis: int) -> Axes | None:
    return _first(op, 0) if axis == 0 else None


def _batch_norm(op: Op, graph: Graph, axis: int) -> Axes:
    """Its statistics are constants by now, so nothing is normalised over an axis."""
    return _first(op, axis)


def _rotary(op: Op, graph: Graph, axis: int) -> Axes | None:
    """It pairs elements along the last axis."""
    return None if axis == len(_shape(graph, op.outputs[0])) - 1 else _aligned(op, graph, axis)


def _first(op: Op, axis: int) -> Axes:
    """The first input is split along `axis`; the others are needed whole."""
    return (axis, *(WHOLE,) * (len(op.inputs) - 1))


def _reduce(op: Op, graph: Graph, axis: int) -> Axes | None:
    if "axes" not in op.attributes:
        return None
    source, out = _shape(graph, op.inputs[0]), _shape(graph, op.outputs[0])
    reduced = numbers(op, "axes")
    kept = [i for i in range(len(source)) if i not in reduced]
    own = axis if len(out) == len(source) else (kept[axis] if axis < len(kept) else WHOLE)
    if own == WHOLE or own in reduced or source[own] != out[axis]:
        return None
    return _first(op, own)


def _same_axis(op: Op, graph: Graph, axis: int) -> Axes | None:
    """Pads, slices, concatenations: split along any axis whose extent they do not change."""
    out = _shape(graph, op.outputs[0])
    answer = []
    for position, t in enumerate(op.inputs):
        shape = _shape(graph, t)
        if position == 0 or op.kind == "concat":
            if len(shape) != len(out) or shape[axis] != out[axis]:
                return None
            answer.append(axis)
        else:
            answer.append(WHOLE)
    return tuple(answer)


def _blocks(op: Op, graph: Graph, axis: int) -> Axes | None:
    """Space to depth and back: along any axis but that of channels, whose extent changes by the most."""
    source, out = _shape(graph, op.inputs[0]), _shape(graph, op.outputs[0])
    if len(source) != len(out) or 0 in (*source, *out):
        return None
    changes = [max(a, b) / min(a, b) for a, b in zip(source, out, strict=True)]
    return None if changes[axis] == max(changes) > 1 else _first(op, axis)


def _one_hot(op: Op, graph: Graph, axis: int) -> Axes | None:
    """Every index becomes a row along a new axis, which each lane has whole."""
    indices, out = _shape(graph, op.inputs[0]), _shape(graph, op.outputs[0])
    new = op.attributes.get("axis")
    if not isinstance(new, int) or axis == new or (*out[:new], *out[new + 1 :]) != indices:
        return None
    return _first(op, axis - (axis > new))


def _beside_axis(op: Op, graph: Graph, axis: int) -> Axes | None:
    """Scattered along one axis, so cut along any other that all operands have."""
    out, shapes = _shape(graph, op.outputs[0]), [_shape(graph, t) for t in op.inputs[:3]]
    along = op.attributes.get("axis")
    alike = all(len(shape) == len(out) and shape[axis] == out[axis] for shape in shapes)
    return (axis,) * len(op.inputs) if isinstance(along, int) and axis != along and alike else None


def _transform(op: Op, graph: Graph, axis: int) -> Axes | None:
    """Along the axes before those that are transformed; frames of a signal overlap, so each lane has all of it."""
    transformed, source = numbers(op, "axes"), _shape(graph, op.inputs[0])
    if not transformed or axis >= min(transformed):
        return None
    follows = axis < len(source) and source[axis] == _shape(graph, op.outputs[0])[axis]
    return _first(op, axis) if follows else (WHOLE,) * len(op.inputs)


def _pool(op: Op, graph: Graph, axis: int) -> Axes | None:
    shape, out = _shape(graph, op.inputs[0]), _shape(graph, op.outputs[0])
    regions = op.kind == "roi_pool" and axis != 1  # of any image, anywhere in it
    return None if len(shape) != len(out) or regions else _first(op, axis)


def _transpose(op: Op, graph: Graph, axis: int) -> Axes | None:
    permutation = numbers(op, "permutation")
    if len(permutation) != len(_shape(graph, op.outputs[0])):
        return None
    return _first(op, permutation[axis])


def _gather(op: Op, graph: Graph, axis: int) -> Axes | None:
    """Rows that the indices choose: an axis is one of the indices, or one that the data keep."""
    along, data = op.attributes.get("axis", 0), _shape(graph, op.inputs[0])
    indices = _shape(graph, op.inputs[1]) if len(op.inputs) > 1 else ()
    if not isinstance(along, int) or (*data[:along], *indices, *data[along + 1 :]) != _shape(graph, op.outputs[0]):
        return None
    rest = (WHOLE,) * (len(op.inputs) - 2)
    if along <= axis < along + len(indices):
        return (WHOLE, axis - along, *rest)
    return (axis if axis < along else axis - len(indices) + 1, *(WHOLE,) * (len(op.inputs) - 1))


def _parts(op: Op, graph: Graph, axis: int) -> Axes:
    """Joining or dividing batch tiles: every tile is split as the whole tensor."""
    return (axis,) * len(op.inputs)


def _reshape(op: Op, graph: Graph, axis: int) -> Axes | None:
    """An axis survives where the product of the extents before it is the same on both sides.

    [8,12,64] → [8,768]: axis 1 has 8 before it on both sides, so splitting the 768 splits the 12 heads. [2,6] → [3,4]:
    axis 0 is 3 here and 2 there, neither a multiple of the other, so a boundary would run through an element.
    """
    source, out = _shape(graph, op.inputs[0]), _shape(graph, op.outputs[0])
    before = 1
    for extent in out[:axis]:
        before *= extent
    own, product = 0, 1
    while own < len(source) and product < before:
        product *= source[own]
        own += 1
    while own < len(source) and source[own] == 1 and out[axis] != 1:
        own += 1
    if product != before or own >= len(source) or not out[axis]:
        return None
    larger, smaller = max(source[own], out[axis]), min(source[own], out[axis])
    return _first(op, own) if smaller and larger % smaller == 0 else None


_BY_KIND: dict[str, Callable[[Op, Graph, int], Axes | None]] = {
    "matmul": _matmul,
    "conv": _conv,
    "conv_transpose": _conv,
    "attention": _attention,
    "einsum": _einsum,
    "lstm": _recurrent,
    "gru": _recurrent,
    "rnn": _recurrent,
    "expand": _aligned,
    "transpose": _transpose,
    "gather": _gather,
    "reshape": _reshape,
    "identity": _same_axis,
    "join": _parts,
    "divide": _parts,
    "concat": _same_axis,
    "slice": _same_axis,
    "pad": _same_axis,
    "split": _same_axis,
    "tile": _same_axis,
    "space_to_depth": _blocks,
    "depth_to_space": _blocks,
    "one_hot": _one_hot,
    "scatter": _beside_axis,
    "cumsum": _normalise,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "masked_softmax": _masked_softmax,
    "rotary": _rotary,
}
_BY_FAMILY: dict[Family, Callable[[Op, Graph, int], Axes | None]] = {
    Family.ELEMENTWISE: _aligned,
    Family.CONVERT: _aligned,
    Family.NORMALISE: _normalise,
    Family.REDUCE: _reduce,
    Family.POOL: _pool,
    Family.TRANSFORM: _transform,
}
