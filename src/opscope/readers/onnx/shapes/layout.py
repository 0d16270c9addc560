"""Shape rules of operators that move, cut, repeat or make data; most need the value of an operand."""

from __future__ import annotations

from math import ceil, prod

from ..model import Constant, Element
from .call import Call, Open, Operand, Outputs, Shape, broadcast, checked


def shape_of(call: Call) -> Outputs:
    rank = len(call.shape(0))
    start, end, _ = slice(call.node.integer("start", 0), call.node.integer("end", rank)).indices(rank)
    return [Operand(Element.INT64, (max(0, end - start),))]


def size(call: Call) -> Outputs:
    return [Operand(Element.INT64, ())]


def reshape(call: Call) -> Outputs:
    """0 keeps an extent, one -1 takes the elements that remain. Before opset 5 the target is an attribute."""
    data = call.shape(0)
    target = call.node.integers("shape") if call.opset < 5 and not call.has(1) else call.integers(1)
    target = target or ()
    keeps = not call.node.integer("allowzero", 0)
    if keeps and any(extent == 0 and place >= len(data) for place, extent in enumerate(target)):
        raise call.mismatch(f"keeps an extent that {call.operand(0).text} does not have")
    out = [data[place] if extent == 0 and keeps else extent for place, extent in enumerate(target)]
    total, rest = prod(data), prod(extent for extent in out if extent != -1)
    if out.count(-1) == 1 and rest:
        out[out.index(-1)] = total // rest
    if min(out, default=0) < 0 or prod(out) != total:
        shown = "×".join(map(str, target)) or "scalar"
        raise call.mismatch(f"turns {total} elements into {shown}")
    return [Operand(call.element(0), tuple(out))]


def flatten(call: Call) -> Outputs:
    shape = call.shape(0)
    axis = call.axis(len(shape), 1, end=1)
    return [Operand(call.element(0), (prod(shape[:axis]), prod(shape[axis:])))]


def squeeze(call: Call) -> Outputs:
    shape, axes = call.shape(0), call.axes()
    if axes is None:
        return [Operand(call.element(0), tuple(extent for extent in shape if extent != 1))]
    gone = {call.front_axis(axis, len(shape)) for axis in axes}
    if any(shape[axis] != 1 for axis in gone):
        raise call.mismatch(f"removes axes {sorted(gone)} of {call.operand(0).text}")
    return [Operand(call.element(0), tuple(extent for axis, extent in enumerate(shape) if axis not in gone))]


def unsqueeze(call: Call) -> Outputs:
    shape, axes = call.shape(0), call.axes() or ()
    rank = len(shape) + len(axes)
    new = {call.front_axis(axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise call.mismatch(f"adds an axis twice: {list(axes)}")
    kept = iter(shape)
    return [Operand(call.element(0), tuple(1 if axis in new else next(kept) for axis in range(rank)))]


def transpose(call: Call) -> Outputs:
    shape = call.shape(0)
    order = call.node.integers("perm")
    if order is None:
        order = tuple(reversed(range(len(shape))))
    if sorted(order) != list(range(len(shape))):
        raise call.mismatch(f"permutes {call.operand(0).text} by {list(order)}")
    return [Operand(call.element(0), tuple(shape[axis] for axis in order))]


def concat(call: Call) -> Outputs:
    return [joined(call, [call.operand(index) for index in range(len(call.operands))])]


def joined(call: Call, operands: list[Operand]) -> Operand:
    """One tensor after the other along an axis; with `new_axis` (of sequences) along an axis of their own."""
    shapes = []
    for operand in operands:
        if operand.shape is None:
            raise Open(operand.because)
        shapes.append(operand.shape)
    if not shapes:
        raise call.mismatch("joins nothing")
    if call.node.integer("new_axis", 0):
        axis = call.axis(len(shapes[0]) + 1)
        return Operand(operands[0].element, (*shapes[0][:axis], len(shapes), *shapes[0][axis:]))
    first = shapes[0]
    axis = call.axis(len(first), 1 if call.opset < 4 else 0)
    if any(len(s) != len(first) or (*s[:axis], *s[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) for s in shapes):
        raise call.mismatch(f"joins {', '.join(operand.text for operand in operands)} along axis {axis}")
    return Operand(operands[0].element, (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :]))


def split(call: Call) -> Outputs:
    return [Operand(call.element(0), part) for part in split_shapes(call, len(call.node.outputs))]


def split_shapes(call: Call, count: int) -> list[Shape]:
    """The parts of input 0: of given lengths, or `count` equal ones of which the last may be shorter."""
    shape = call.shape(0)
    axis = call.axis(len(shape))
    lengths = call.node.integers("split") or (call.integers(1) if call.has(1) else None)
    if lengths is None:
        step = ceil(shape[axis] / count) if count else 0
        lengths = tuple(max(0, min(step, shape[axis] - step * part)) for part in range(count))
    if sum(lengths) != shape[axis]:
        raise call.mismatch(f"splits {shape[axis]} into {list(lengths)}")
    return [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]


def cut(call: Call) -> Outputs:
    """Slice: starts, ends, axes and steps are attributes before opset 10, inputs from then on."""
    shape = call.shape(0)
    out = list(shape)
    for axis, part in slices(call, shape):
        out[axis] = len(range(*part.indices(shape[axis])))
    return [Operand(call.element(0), tuple(out))]


def slices(call: Call, shape: Shape) -> list[tuple[int, slice]]:
    """Return (axis, Python slice) for every axis that a Slice cuts."""
    if call.opset < 10:
        starts, ends, axes = (call.node.integers(name) for name in ("starts", "ends", "axes"))
        steps = None
    else:
        starts, ends = call.integers(1), call.integers(2)
        axes = call.integers(3) if call.has(3) else None
        steps = call.integers(4) if call.has(4) else None
    starts, ends = starts or (), ends or ()
    axes = axes if axes is not None else tuple(range(len(starts)))
    steps = steps if steps is not None else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise call.mismatch(f"has starts {starts}, ends {ends}, axes {axes}, steps {steps}")
    found = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = call.front_axis(axis, len(shape))
        found.append((place, _clamped(start, end, step, shape[place])))
    return found


def _clamped(start: int, end: int, step: int, extent: int) -> slice:
    """ONNX's slice as Python's: an end before the first element, when stepping back, is None there and not -1."""
    start = start + extent if start < 0 else start
    end = end + extent if end < 0 else end
    if step < 0:
        start, end = min(max(start, 0), extent - 1), min(max(end, -1), extent - 1)
        return slice(start, None if end < 0 else end, step) if extent else slice(0, 0)
    return slice(min(max(start, 0), extent), min(max(end, 0), extent), step)


def gather(call: Call) -> Outputs:
    data, indices = call.shape(0), call.shape(1)
    axis = call.axis(len(data))
    return [Operand(call.element(0), (*data[:axis], *indices, *data[axis + 1 :]))]


def gather_elements(call: Call) -> Outputs:
    return [Operand(call.element(0), call.shape(1))]


def gather_nd(call: Call) -> Outputs:
    data, indices = call.shape(0), call.shape(1)
    batch = call.node.integer("batch_dims", 0)
    if not indices or batch + indices[-1] > len(data):
        raise call.mismatch(f"takes places {call.operand(1).text} out of {call.operand(0).text}")
    return [Operand(call.element(0), (*indices[:-1], *data[batch + indices[-1] :]))]


def compress(call: Call) -> Outputs:
    shape = call.shape(0)
    kept = sum(item != 0 for item in call.integers(1))
    if "axis" not in call.node.arguments:
        return [Operand(call.element(0), (kept,))]
    axis = call.axis(len(shape))
    return [Operand(call.element(0), (*shape[:axis], kept, *shape[axis + 1 :]))]


def pad(call: Call) -> Outputs:
    """From opset 18 on, pads may be given for some axes only."""
    shape, pads = call.shape(0), pads_of(call)
    axes = call.integers(3) if call.has(3) else tuple(range(len(shape)))
    if len(pads) != 2 * len(axes):
        raise call.mismatch(f"has {len(pads)} pads for {len(axes)} axes")
    out = list(shape)
    for place, axis in enumerate(axes):
        out[call.front_axis(axis, len(shape))] += pads[place] + pads[place + len(axes)]
    return [Operand(call.element(0), checked(call, out))]


def pads_of(call: Call) -> tuple[int, ...]:
    """Return what is added before each axis, then behind each: an attribute before opset 11, then an input."""
    given = call.node.integers("pads") or call.node.integers("paddings")
    return given if given is not None and call.opset < 11 else call.integers(1)


def tile(call: Call) -> Outputs:
    shape = call.shape(0)
    if call.opset < 6:  # tiles and axis as two scalars
        axis, count = call.front_axis(call.integer(2), len(shape)), call.integer(1)
        return [Operand(call.element(0), checked(call, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])))]
    repeats = call.integers(1)
    if len(repeats) != len(shape):
        raise call.mismatch(f"repeats {call.operand(0).text} {list(repeats)} times")
    return [Operand(call.element(0), checked(call, [a * b for a, b in zip(shape, repeats, strict=True)]))]


def expand(call: Call) -> Outputs:
    return [Operand(call.element(0), checked(call, broadcast(call, [call.shape(0), call.integers(1)])))]


def constant_of_shape(call: Call) -> Outputs:
    value = call.node.value("value")
    element = value.element if isinstance(value, Constant) else Element.FLOAT
    return [Operand(element, checked(call, call.integers(0)))]


def like_input(call: Call) -> Outputs:
    return [Operand(call.node.integer("dtype", call.element(0)), call.shape(0))]


def value_range(call: Call) -> Outputs:
    start, limit, delta = (call.floats(index)[0] for index in range(3))
    if not delta:
        raise call.mismatch("has steps of 0")
    count = (limit - start) / delta
    if abs(count) > 1e18:
        raise call.mismatch(f"counts {count:g} numbers")
    return [Operand(call.element(0), (max(0, ceil(count)),))]


def one_hot(call: Call) -> Outputs:
    indices, depth = call.shape(0), call.integer(1)
    axis = call.axis(len(indices) + 1, -1)
    return [Operand(call.element(2), checked(call, (*indices[:axis], depth, *indices[axis:])))]


def non_zero(call: Call) -> Outputs:
    """How many elements are not zero is known only from their values."""
    array = call.array(0)
    return [Operand(Element.INT64, (len(call.shape(0)), int((array != 0).sum())))]


def unique(call: Call) -> Outputs:
    import numpy as np

    array, axis = call.array(0), call.node.value("axis")
    count = int(
        np.unique(array, axis=axis if isinstance(axis, int) else None).shape[axis if isinstance(axis, int) else 0]
    )
    shape = call.shape(0)
    place = call.axis(len(shape)) if isinstance(axis, int) else None
    values = (count,) if place is None else (*shape[:place], count, *shape[place + 1 :])
    inverse = prod(shape) if place is None else shape[place]
    others = [Operand(Element.INT64, (extent,)) for extent in (count, inverse, count)]
    return [Operand(call.element(0), values), *others]


def decided_at_run_time(call: Call) -> Outputs:
    """NonMaxSuppression, Multinomial of a computed size …: the data decide how much comes out."""
    raise Open(f"decided at run time by {call.place}")


def multinomial(call: Call) -> Outputs:
    out = (call.shape(0)[0], call.node.integer("sample_size", 1))
    return [Operand(call.node.integer("dtype", Element.INT32), out)]


def random(call: Call) -> Outputs:
    shape = call.node.integers("shape") or ()
    return [Operand(call.node.integer("dtype", Element.FLOAT), checked(call, shape))]
