"""Values of operators that shape arithmetic is made of, as the runtime computes them. Loaded when a value is needed.

A rule takes the operator and the shapes of its outputs, which are known, and returns the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..flatbuffer import INT8
from ..ops import ACTIVATION_FIELDS, Shape
from .layout import slice_index, split_sizes
from .rules import reduced_axes
from .site import Site, UndecidedError, axis_of

if TYPE_CHECKING:
    from .evaluate import Array

Value = Callable[[Site, Sequence[Shape]], "list[Array]"]
_Function = Callable[..., Any]


def evaluate(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    """Return the outputs of an operator that has a rule. Numbers wrap and overflow as they do in the runtime."""
    with np.errstate(all="ignore"):
        return VALUES[site.type](site, shapes)


def _elementwise(function: _Function) -> Value:
    """Rule of a function of all inputs, element by element."""

    def rule(site: Site, shapes: Sequence[Shape]) -> list[Array]:
        _refuse_activation(site)
        return [np.asarray(function(*(site.value(operand) for operand in range(site.input_count))))]

    return rule


def _refuse_activation(site: Site) -> None:
    field = ACTIVATION_FIELDS.get(site.type)
    if field is not None and site.stored.options is not None and site.stored.options.number(field, INT8):
        raise UndecidedError(f"{site.type} with a fused activation")


def _division(function: _Function) -> Value:
    whole = _elementwise(function)

    def rule(site: Site, shapes: Sequence[Shape]) -> list[Array]:
        divisor = site.value(1)
        if divisor.dtype.kind in "iu" and not divisor.all():
            raise ValueError("divides by zero")
        return whole(site, shapes)

    return rule


def _truncated(a: Array, b: Array) -> Array:
    """DIV of whole numbers drops the fraction; of others it is exact."""
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b, dtype=a.dtype))
    quotient = np.abs(a) // np.abs(b)
    return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient))


def _power(a: Array, b: Array) -> Array:
    if b.dtype.kind in "iu" and (b < 0).any():
        raise ValueError("a whole number to a negative power")
    return np.asarray(np.power(a, b))


def _reduction(function: _Function) -> Value:
    def rule(site: Site, shapes: Sequence[Shape]) -> list[Array]:
        data = site.value(0)
        if not data.size and function in (np.max, np.min):
            raise UndecidedError(f"{site.type} of no elements")
        found = function(data, axis=tuple(sorted(reduced_axes(site))))
        return [np.asarray(found, data.dtype).reshape(shapes[0])]

    return rule


def _arg_extreme(function: _Function) -> Value:
    def rule(site: Site, shapes: Sequence[Shape]) -> list[Array]:
        data = site.value(0)
        if not data.size:
            raise UndecidedError(f"{site.type} of no elements")
        return [np.asarray(function(data, axis=axis_of(site.integer(1), data.ndim)))]

    return rule


def _as_shaped(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    return [site.value(0).reshape(shapes[0])]


def _shape(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    return [np.array(site.shape(0), np.int64)]


def _range(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    start, step = site.value(0), site.value(2)
    return [start.reshape(()) + np.arange(shapes[0][0], dtype=start.dtype) * step.reshape(())]


def _gather(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    data, indices = site.value(0), site.value(1)
    if site.option(1):
        raise UndecidedError("GATHER with shared axes")
    axis = axis_of(site.option(0), data.ndim)
    _check_indices(indices, data.shape[axis])
    return [np.take(data, indices, axis=axis)]


def _gather_nd(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    data, indices = site.value(0), site.value(1)
    for axis in range(indices.shape[-1]):
        _check_indices(indices[..., axis], data.shape[axis])
    return [np.asarray(data[tuple(np.moveaxis(indices, -1, 0))])]


def _check_indices(indices: Array, extent: int) -> None:
    if indices.size and not 0 <= indices.min() <= indices.max() < extent:
        raise ValueError(f"an index is out of the {extent} elements there are")


def _concatenation(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    _refuse_activation(site)
    return [np.concatenate([site.value(operand) for operand in range(site.input_count)], axis=site.option(0))]


def _pack(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    return [np.stack([site.value(operand) for operand in range(site.input_count)], axis=site.option(1))]


def _unpack(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    return [np.asarray(part) for part in np.moveaxis(site.value(0), site.option(1), 0)]


def _split(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    return np.split(site.value(1), site.output_count, axis=site.integer(0))


def _split_v(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    axis, sizes = split_sizes(site)
    return np.split(site.value(0), np.cumsum(sizes)[:-1].tolist(), axis=axis)


def _one_hot(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    indices, depth = site.value(0), site.integer(1)
    axis = axis_of(site.option(0) if site.option(0) != -1 else indices.ndim, indices.ndim + 1)
    levels = np.arange(depth).reshape((-1,) + (1,) * (indices.ndim - axis))
    return [np.where(np.expand_dims(indices, axis) == levels, site.value(2), site.value(3))]


def _cumulative_sum(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    data = site.value(0)
    axis = axis_of(site.integer(1), data.ndim)
    exclusive, backwards = site.flag(0), site.flag(1)
    ordered = np.flip(data, axis) if backwards else data
    found = np.cumsum(ordered, axis=axis, dtype=data.dtype)
    if exclusive:
        found = found - ordered
    return [np.flip(found, axis) if backwards else found]


def _top(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    data, count = site.value(0), site.integer(1)
    order = np.argsort(-data.astype(np.float64), axis=-1, kind="stable")[..., :count]
    return [np.take_along_axis(data, order, axis=-1), order]


def _unique(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    """Elements in the order they first appear, and the place of each among them."""
    places: dict[object, int] = {}
    flat = site.value(0).reshape(-1).tolist()
    order = [places.setdefault(element, len(places)) for element in flat]
    return [np.array(list(places)), np.array(order).reshape(shapes[1])]


def _pad(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    fill = site.value(2).item() if site.has(2) else 0
    pads = site.integers(1)
    if min(pads, default=0) < 0:
        raise UndecidedError(f"{site.type} by less than nothing")
    return [np.pad(site.value(0), list(zip(pads[::2], pads[1::2], strict=True)), constant_values=fill)]


def _dynamic_update(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    data, update = site.value(0).copy(), site.value(1)
    if update.ndim != data.ndim or any(u > d for u, d in zip(update.shape, data.shape, strict=True)):
        raise ValueError(f"an update of shape {list(update.shape)} in data of shape {list(data.shape)}")
    starts = [min(max(start, 0), d - u) for start, d, u in zip(site.integers(2), data.shape, update.shape, strict=True)]
    data[tuple(slice(start, start + u) for start, u in zip(starts, update.shape, strict=True))] = update
    return [data]


def _scatter_nd(site: Site, shapes: Sequence[Shape]) -> list[Array]:
    indices, updates = site.value(0), site.value(1)
    found = np.zeros(shapes[0], updates.dtype)
    for axis in range(indices.shape[-1]):
        _check_indices(indices[..., axis], shapes[0][axis])
    np.add.at(found, tuple(np.moveaxis(indices, -1, 0)), updates)
    return [found]


def _binary(name: str) -> Value:
    return _elementwise(getattr(np, name))


_REDUCTIONS: Mapping[str, _Function] = {
    "SUM": np.sum,
    "REDUCE_PROD": np.prod,
    "REDUCE_MAX": np.max,
    "REDUCE_MIN": np.min,
    "REDUCE_ALL": np.all,
    "REDUCE_ANY": np.any,
}
_FUNCTIONS = {
    "ADD": "add",
    "SUB": "subtract",
    "MUL": "multiply",
    "MAXIMUM": "maximum",
    "MINIMUM": "minimum",
    "EQUAL": "equal",
    "NOT_EQUAL": "not_equal",
    "LESS": "less",
    "LESS_EQUAL": "less_equal",
    "GREATER": "greater",
    "GREATER_EQUAL": "greater_equal",
    "LOGICAL_AND": "logical_and",
    "LOGICAL_OR": "logical_or",
    "LOGICAL_NOT": "logical_not",
    "SELECT_V2": "where",
    "SELECT": "where",
    "ABS": "abs",
    "NEG": "negative",
    "SIGN": "sign",
    "SQUARE": "square",
    "SQRT": "sqrt",
    "LOG": "log",
    "EXP": "exp",
    "CEIL": "ceil",
    "FLOOR": "floor",
    "ROUND": "rint",
}

VALUES: Mapping[str, Value] = {
    **{name: _binary(function) for name, function in _FUNCTIONS.items()},
    **{name: _reduction(function) for name, function in _REDUCTIONS.items()},
    **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _as_shaped),
    **dict.fromkeys(("SLICE", "STRIDED_SLICE"), lambda site, shapes: [np.asarray(site.value(0)[slice_index(site)])]),
    **dict.fromkeys(("PAD", "PADV2"), _pad),
    "DIV": _division(_truncated),
    "FLOOR_DIV": _division(np.floor_divide),
    "FLOOR_MOD": _division(np.mod),
    "POW": _elementwise(_power),
    "CAST": lambda site, shapes: [site.value(0)],  # the caller casts
    "SQUARED_DIFFERENCE": _elementwise(lambda a, b: np.square(a - b)),
    "ARG_MAX": _arg_extreme(np.argmax),
    "ARG_MIN": _arg_extreme(np.argmin),
    "SHAPE": _shape,
    "RANK": lambda site, shapes: [np.array(len(site.shape(0)))],
    "RANGE": _range,
    "FILL": lambda site, shapes: [np.broadcast_to(site.value(1).reshape(()), shapes[0])],
    "BROADCAST_TO": lambda site, shapes: [np.broadcast_to(site.value(0), shapes[0])],
    "BROADCAST_ARGS": lambda site, shapes: [np.array(np.broadcast_shapes(site.integers(0), site.integers(1)))],
    "ZEROS_LIKE": lambda site, shapes: [np.zeros(shapes[0])],
    "TILE": lambda site, shapes: [np.tile(site.value(0), site.integers(1))],
    "TRANSPOSE": lambda site, shapes: [np.transpose(site.value(0), site.integers(1))],
    "REVERSE_V2": lambda site, shapes: [np.flip(site.value(0), site.integers(1))],
    "WHERE": lambda site, shapes: [np.argwhere(site.value(0)).reshape(shapes[0])],
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "CONCATENATION": _concatenation,
    "PACK": _pack,
    "UNPACK": _unpack,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "ONE_HOT": _one_hot,
    "CUMSUM": _cumulative_sum,
    "TOPK_V2": _top,
    "UNIQUE": _unique,
    "DYNAMIC_UPDATE_SLICE": _dynamic_update,
    "SCATTER_ND": _scatter_nd,
}
