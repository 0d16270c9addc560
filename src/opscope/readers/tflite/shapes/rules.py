"""The shape rule of every builtin operator: a small function from an operator to the shapes of its outputs.

The rules are those of the runtime's kernels when they prepare. An operator without a rule here, such as a custom one,
keeps the shapes that the file stores as long as its inputs do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, prod

from ..ops import Shape
from . import contractions, layout, windows
from .site import Site, axis_of, broadcast

Rule = Callable[[Site], list[Shape]]


def _same_as(operand: int) -> Rule:
    return lambda site: [site.shape(operand)]


def _broadcast(site: Site) -> list[Shape]:
    return [broadcast(*site.shapes())]


def reduced_axes(site: Site) -> set[int]:
    """Return the axes that a reduction reduces; a scalar has none."""
    rank = len(site.shape(0))
    return {axis_of(axis, rank) for axis in site.integers(1)} if rank else set()


def _reduction(site: Site) -> list[Shape]:
    return [_without(site.shape(0), reduced_axes(site), keep=site.flag(0))]


def _without(data: Shape, axes: set[int], *, keep: bool = False) -> Shape:
    if keep:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(data))
    return tuple(extent for axis, extent in enumerate(data) if axis not in axes)


def _arg_extreme(site: Site) -> list[Shape]:
    data = site.shape(0)
    return [_without(data, {axis_of(site.integer(1), len(data))})]


def _top(site: Site) -> list[Shape]:
    data, count = site.shape(0), site.integer(1)
    if not data or count > data[-1]:
        raise ValueError(f"{count} of the elements of shape {list(data)}")
    return [(*data[:-1], count)] * site.output_count


def _one_hot(site: Site) -> list[Shape]:
    indices = site.shape(0)
    axis = site.option(0) if site.option(0) != -1 else len(indices)
    axis = axis_of(axis, len(indices) + 1)
    return [(*indices[:axis], site.integer(1), *indices[axis:])]


def _resize(site: Site) -> list[Shape]:
    data, size = site.ranked(0, 4), site.integers(1)
    if len(size) != 2:
        raise ValueError(f"size {list(size)}; expected height and width")
    return [(data[0], *size, data[3])]


def _range(site: Site) -> list[Shape]:
    start, limit, step = (site.value(operand).item() for operand in range(3))
    if step == 0 or (limit - start) * step < 0:
        raise ValueError(f"a range from {start} to {limit} by {step} has no end")
    if isinstance(step, int):
        return [(-(-abs(limit - start) // abs(step)),)]
    steps = (limit - start) / step
    if not abs(steps) < float(1 << 62):
        raise ValueError(f"a range from {start} to {limit} by {step} has no end")
    return [(ceil(abs(steps)),)]


def _rfft(site: Site) -> list[Shape]:
    data, length = site.shape(0), site.integers(1)
    if len(data) < 2 or len(length) != 2:
        raise ValueError(f"lengths {list(length)} of a tensor of shape {list(data)}; expected the last two axes")
    return [(*data[:-2], length[0], length[1] // 2 + 1)]


def _where(site: Site) -> list[Shape]:
    return [(int((site.value(0) != 0).sum()), max(len(site.shape(0)), 1))]


def _unique(site: Site) -> list[Shape]:
    return [(len(set(site.value(0).reshape(-1).tolist())),), site.shape(0)]


def _non_max_suppression(site: Site) -> list[Shape]:
    most = (site.integer(2),)
    return [most, ()] if site.type.endswith("V4") else [most, most, ()]


def _segment_sum(site: Site) -> list[Shape]:
    numbers = site.integers(1)
    return [(numbers[-1] + 1 if numbers else 0, *site.shape(0)[1:])]


def _unsorted_segment(site: Site) -> list[Shape]:
    return [(site.integer(2), *site.shape(0)[len(site.shape(1)) :])]


def _broadcast_args(site: Site) -> list[Shape]:
    return [(max(prod(site.ranked(0, 1)), prod(site.ranked(1, 1))),)]


def _each_input(site: Site) -> list[Shape]:
    return site.shapes()[: site.output_count]


def _stablehlo_reduce(site: Site) -> list[Shape]:
    data = site.shape(0)
    axes = {axis_of(axis, len(data)) for axis in site.long_numbers(0)}
    return [_without(data, axes)] * site.output_count


def _table(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_ELEMENTWISE = """
ABS CAST CEIL COMPLEX_ABS COS CUMSUM DENSIFY DEQUANTIZE DYNAMIC_UPDATE_SLICE ELU EXP FAKE_QUANT FLOOR GELU HARD_SWISH
IMAG L2_NORMALIZATION LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_NOT LOGISTIC LOG_SOFTMAX MATRIX_SET_DIAG NEG
QUANTIZE REAL RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 REVERSE_SEQUENCE REVERSE_V2 ROUND RSQRT SIGN SIN SOFTMAX SQRT SQUARE
TANH ZEROS_LIKE BUCKETIZE ADD_N
STABLEHLO_ABS STABLEHLO_ADD STABLEHLO_AND STABLEHLO_CBRT STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_COSINE
STABLEHLO_DIVIDE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_LOGISTIC
STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER
STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SCATTER STABLEHLO_SHIFT_LEFT STABLEHLO_SUBTRACT STABLEHLO_TANH
"""
_BROADCAST = """
ADD ATAN2 BITWISE_XOR DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR
MAXIMUM MINIMUM MUL NOT_EQUAL POW PRELU RIGHT_SHIFT SELECT_V2 SQUARED_DIFFERENCE SUB
"""

RULES: Mapping[str, Rule] = {
    **_table(_same_as(0), _ELEMENTWISE),
    **_table(_broadcast, _BROADCAST),
    **_table(_same_as(1), "SELECT HASHTABLE_FIND STABLEHLO_CLAMP STABLEHLO_SELECT"),
    **_table(_reduction, "MEAN SUM REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD"),
    **_table(_arg_extreme, "ARG_MAX ARG_MIN"),
    **_table(_resize, "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR"),
    **_table(_non_max_suppression, "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5"),
    **_table(
        _unsorted_segment,
        "UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM",
    ),
    **_table(lambda site: [(1,)], "HASHTABLE HASHTABLE_SIZE"),
    **windows.RULES,
    **contractions.RULES,
    **layout.RULES,
    "SHAPE": lambda site: [(len(site.shape(0)),)],
    "RANK": lambda site: [()],
    "RANGE": _range,
    "TOPK_V2": _top,
    "ONE_HOT": _one_hot,
    "RFFT2D": _rfft,
    "WHERE": _where,
    "UNIQUE": _unique,
    "SEGMENT_SUM": _segment_sum,
    "MULTINOMIAL": lambda site: [(site.shape(0)[0], site.integer(1))],
    "MATRIX_DIAG": lambda site: [(*site.shape(0), site.shape(0)[-1])],
    "BROADCAST_ARGS": _broadcast_args,
    "STABLEHLO_REDUCE": _stablehlo_reduce,
    "STABLEHLO_SORT": _each_input,
}
