"""Rules that compute the elements of small tensors with NumPy: the arithmetic that models do on shapes.

Convolutions, products and everything else that works on data decides no shape and has no rule. The size of every
result is known from the shape rules before it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from ..elements import NUMPY_TYPES
from ..model import Constant
from .arithmetic import reduced
from .call import Call, Open
from .layout import pads_of, slices, split_shapes

Array = npt.NDArray[np.generic]
ValueRule = Callable[[Call], list[Array]]


def _arrays(call: Call) -> list[Array]:
    return [call.array(index) for index in range(len(call.operands)) if call.has(index)]


def _unary(function: Callable[[Array], Array]) -> ValueRule:
    return lambda call: [function(call.array(0)).astype(call.array(0).dtype)]


def _binary(function: Callable[[Array, Array], Array]) -> ValueRule:
    def rule(call: Call) -> list[Array]:
        arrays = _arrays(call)
        out = arrays[0]
        for other in arrays[1:]:
            out = function(out, other)
        return [out.astype(arrays[0].dtype)]

    return rule


def _test(function: Callable[..., Array]) -> ValueRule:
    return lambda call: [np.asarray(function(*_arrays(call)), np.bool_)]


def _divide(a: Array, b: Array) -> Array:
    """Integers are divided towards zero, as in C: -7 / 2 is -3."""
    if not np.issubdtype(a.dtype, np.integer):
        return np.asarray(np.divide(a, b))
    divisor = np.where(b == 0, 1, b)  # no shape that could be used follows from a division by zero
    quotient, rest = np.divmod(a, divisor)
    return np.asarray(quotient + ((rest != 0) & (np.signbit(a) != np.signbit(divisor))))


def _modulo(call: Call) -> list[Array]:
    a, b = _arrays(call)
    safe = np.where(b == 0, 1, b) if np.issubdtype(a.dtype, np.integer) else b
    return [np.asarray(np.fmod(a, safe) if call.node.integer("fmod", 0) else np.mod(a, safe)).astype(a.dtype)]


def _cast_to(array: Array, element: int) -> Array:
    dtype = NUMPY_TYPES.get(element)
    if dtype is None:
        raise Open(f"values of element type {element} are not evaluated")
    return array.astype(dtype)


def _clip(call: Call) -> list[Array]:
    array = call.array(0)
    bounds: list[Array | float | None] = [None, None]
    for place, name in enumerate(("min", "max")):
        given = call.node.value(name)
        if isinstance(given, int | float):
            bounds[place] = given
        elif call.has(place + 1):
            bounds[place] = call.array(place + 1)
    return [np.clip(array, bounds[0], bounds[1]).astype(array.dtype) if bounds != [None, None] else array]


def _shape(call: Call) -> list[Array]:
    shape = call.shape(0)
    start, end, _ = slice(call.node.integer("start", 0), call.node.integer("end", len(shape))).indices(len(shape))
    return [np.array(shape[start:end], np.int64)]


def _transpose(call: Call) -> list[Array]:
    return [np.transpose(call.array(0), call.node.integers("perm"))]


def _concat(call: Call) -> list[Array]:
    arrays = _arrays(call)
    return [np.concatenate(arrays, call.axis(arrays[0].ndim))]


def _split(call: Call) -> list[Array]:
    array = call.array(0)
    axis = call.axis(array.ndim)
    lengths = [part[axis] for part in split_shapes(call, len(call.node.outputs))]
    return list(np.split(array, np.cumsum(lengths)[:-1].tolist(), axis))


def _slice(call: Call) -> list[Array]:
    array = call.array(0)
    cuts = [slice(None)] * array.ndim
    for axis, part in slices(call, array.shape):
        cuts[axis] = part
    return [array[tuple(cuts)]]


def _gather(call: Call) -> list[Array]:
    array, places = call.array(0), call.array(1).astype(np.int64)
    axis = call.axis(array.ndim)
    return [np.take(array, _wrapped(call, places, array.shape[axis]), axis)]


def _wrapped(call: Call, places: Array, extent: int) -> npt.NDArray[np.int64]:
    """Negative indices count from the end; any other that does not exist is an error of the model."""
    whole: npt.NDArray[np.int64] = places.astype(np.int64)
    if whole.size and (int(whole.min()) < -extent or int(whole.max()) >= extent):
        raise call.mismatch(f"reads element {int(whole.max())} of {extent}")
    return np.where(whole < 0, whole + extent, whole)


def _gather_elements(call: Call) -> list[Array]:
    array = call.array(0)
    axis = call.axis(array.ndim)
    return [np.take_along_axis(array, _wrapped(call, call.array(1), array.shape[axis]), axis)]


def _gather_nd(call: Call) -> list[Array]:
    array, places = call.array(0), call.array(1).astype(np.int64)
    if call.node.integer("batch_dims", 0):
        raise call.undecided("with batch dimensions is not evaluated")
    for axis in range(places.shape[-1]):
        _wrapped(call, places[..., axis], array.shape[axis])
    return [np.asarray(array[tuple(np.moveaxis(places, -1, 0))])]


def _scatter_nd(call: Call) -> list[Array]:
    out, places, updates = call.array(0).copy(), call.array(1).astype(np.int64), call.array(2)
    if call.node.text("reduction", "none") != "none":
        raise call.undecided("with a reduction is not evaluated")
    for axis in range(places.shape[-1]):
        _wrapped(call, places[..., axis], out.shape[axis])
    out[tuple(np.moveaxis(places, -1, 0))] = updates
    return [out]


def _scatter_elements(call: Call) -> list[Array]:
    out, updates = call.array(0).copy(), call.array(2)
    if call.node.text("reduction", "none") != "none":
        raise call.undecided("with a reduction is not evaluated")
    axis = call.axis(out.ndim)
    np.put_along_axis(out, _wrapped(call, call.array(1), out.shape[axis]), updates, axis)
    return [out]


def _constant_of_shape(call: Call) -> list[Array]:
    value = call.node.value("value")
    if not isinstance(value, Constant):
        return [np.zeros(call.integers(0), np.float32)]
    return [np.full(call.integers(0), call.values.constant(value).reshape(-1)[0])]


def _range(call: Call) -> list[Array]:
    start, limit, delta = (call.array(index).reshape(-1)[0] for index in range(3))
    return [np.arange(start, limit, delta, dtype=call.array(0).dtype)]


def _reduce(function: Callable[..., Array]) -> ValueRule:
    def rule(call: Call) -> list[Array]:
        array, axes = call.array(0), call.axes()
        if not axes and call.node.integer("noop_with_empty_axes", 0):
            return [array]
        keeps = bool(call.node.integer("keepdims", 1))
        out = function(array, axis=tuple(axes) if axes else None, keepdims=keeps)
        return [np.asarray(out).astype(array.dtype)]

    return rule


def _arg_reduce(function: Callable[..., Array]) -> ValueRule:
    def rule(call: Call) -> list[Array]:
        array, axis = call.array(0), call.node.integer("axis", 0)
        if call.node.integer("select_last_index", 0):
            raise call.undecided("by the last index is not evaluated")
        out = np.asarray(function(array, axis=axis), np.int64)
        return [out.reshape(reduced(call, array.shape, (axis,)))]

    return rule


def _cumulative(call: Call) -> list[Array]:
    array, axis = call.array(0), call.integer(1)
    if call.node.integer("exclusive", 0) or call.node.integer("reverse", 0):
        raise call.undecided("backwards or exclusive is not evaluated")
    return [np.cumsum(array, axis).astype(array.dtype)]


def _top_k(call: Call) -> list[Array]:
    array = call.array(0)
    axis = call.axis(array.ndim, -1)
    count = call.node.integer("k", 0) if call.opset < 10 else call.integer(1)
    keys = array if not call.node.integer("largest", 1) else -array.astype(np.float64)
    order = np.take(np.argsort(keys, axis, kind="stable"), np.arange(count), axis)
    return [np.take_along_axis(array, order, axis), order.astype(np.int64)]


def _pad(call: Call) -> list[Array]:
    array, pads = call.array(0), pads_of(call)
    if call.node.text("mode", "constant") != "constant" or min(pads, default=0) < 0 or call.has(3):
        raise call.undecided("of this form is not evaluated")
    fill = call.array(2).reshape(-1)[0] if call.has(2) else 0
    widths = [(pads[axis], pads[axis + array.ndim]) for axis in range(array.ndim)]
    return [np.pad(array, widths, constant_values=fill)]


def _one_hot(call: Call) -> list[Array]:
    places, depth = call.array(0).astype(np.int64), call.integer(1)
    off, on = call.array(2)
    hot = np.arange(depth) == np.mod(places, depth)[..., None]
    return [np.moveaxis(np.where(hot, on, off), -1, call.axis(places.ndim + 1, -1)).astype(call.array(2).dtype)]


def _triangle(call: Call) -> list[Array]:
    offset = call.integer(1) if call.has(1) else 0
    return [np.triu(call.array(0), offset) if call.node.integer("upper", 1) else np.tril(call.array(0), offset)]


def _eye(call: Call) -> list[Array]:
    rows, columns = call.shape(0)
    return [_cast_to(np.eye(rows, columns, call.node.integer("k", 0)), call.node.integer("dtype", call.element(0)))]


def _compress(call: Call) -> list[Array]:
    axis = call.node.value("axis")
    keep = call.array(1).astype(np.bool_)
    return [np.compress(keep, call.array(0), axis if isinstance(axis, int) else None)]


def _non_zero(call: Call) -> list[Array]:
    found = np.atleast_1d(call.array(0)).nonzero()
    return [np.array(found, np.int64).reshape(len(call.shape(0)), -1)]


_UNARY: Mapping[str, Callable[[Array], Array]] = {
    "Identity": np.asarray,
    "Neg": np.negative,
    "Abs": np.abs,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sqrt": np.sqrt,
    "Exp": np.exp,
    "Log": np.log,
    "Sin": np.sin,
    "Cos": np.cos,
    "Sign": np.sign,
    "Reciprocal": np.reciprocal,
    "Relu": lambda array: np.maximum(array, 0),
    "BitwiseNot": np.invert,
}
_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sum": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divide,
    "Pow": np.power,
    "Min": np.minimum,
    "Max": np.maximum,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}
_TESTS: Mapping[str, Callable[..., Array]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Not": np.logical_not,
    "IsNaN": np.isnan,
}
_REDUCE: Mapping[str, Callable[..., Array]] = {
    "ReduceSum": np.sum,
    "ReduceProd": np.prod,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceMean": np.mean,
}

VALUE_RULES: Mapping[str, ValueRule] = (
    {name: _unary(function) for name, function in _UNARY.items()}
    | {name: _binary(function) for name, function in _BINARY.items()}
    | {name: _test(function) for name, function in _TESTS.items()}
    | {name: _reduce(function) for name, function in _REDUCE.items()}
    | {
        "ArgMax": _arg_reduce(np.argmax),
        "ArgMin": _arg_reduce(np.argmin),
        "Cast": lambda call: [_cast_to(call.array(0), call.node.integer("to", 0))],
        "CastLike": lambda call: [_cast_to(call.array(0), call.element(1))],
        "Clip": _clip,
        "Compress": _compress,
        "Concat": _concat,
        "ConstantOfShape": _constant_of_shape,
        "CumSum": _cumulative,
        "EyeLike": _eye,
        "Gather": _gather,
        "GatherElements": _gather_elements,
        "GatherND": _gather_nd,
        "Mod": _modulo,
        "NonZero": _non_zero,
        "OneHot": _one_hot,
        "Pad": _pad,
        "Range": _range,
        "ScatterElements": _scatter_elements,
        "ScatterND": _scatter_nd,
        "Shape": _shape,
        "Size": lambda call: [np.array(int(np.prod(call.shape(0), dtype=np.int64)), np.int64)],
        "Slice": _slice,
        "Split": _split,
        "Tile": lambda call: [np.tile(call.array(0), call.integers(1))],
        "TopK": _top_k,
        "Transpose": _transpose,
        "Trilu": _triangle,
        "Where": lambda call: [np.where(call.array(0), call.array(1), call.array(2))],
    }
)
