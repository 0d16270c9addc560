"""Translates TensorFlow Lite operators into op kinds of `graph.KINDS`: canonical input order and attributes.

A translation is one small function from an operator to its attributes; `ATTRIBUTES` is the table of them. Attributes
that depend on unknown shapes or constants are left out. Impossible values (a stride of 0, an axis past the rank) are a
`ValueError`, to which the reader adds the place. Numbers of options are the field numbers of the operator's options
table in `schema.fbs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from ...graph.graph import ABSENT, Attribute
from .flatbuffer import INT8, INT32, INT64, Table
from .model import OperatorCode
from .schema import ACTIVATIONS

Shape = tuple[int, ...]
Attributes = dict[str, Attribute]


class Operator(NamedTuple):
    """One operator with access to the shapes and constants of its operands."""

    code: OperatorCode
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None
    shapes: Sequence[Shape | None]  # by tensor number; extents are 1 or more
    constant: Callable[[int], tuple[int, ...] | None]  # small integers a constant tensor holds

    def shape(self, operand: int) -> Shape | None:
        """Return the shape of an input; None if it is unknown or the input is absent."""
        if operand >= len(self.inputs) or self.inputs[operand] == ABSENT:
            return None
        return self.shapes[self.inputs[operand]]

    def output_shape(self) -> Shape | None:
        return self.shapes[self.outputs[0]] if self.outputs and self.outputs[0] != ABSENT else None

    def integers(self, operand: int) -> tuple[int, ...] | None:
        """Return the elements of a constant input; None if it is computed, absent or too long."""
        if operand >= len(self.inputs) or self.inputs[operand] == ABSENT:
            return None
        return self.constant(self.inputs[operand])

    def option(self, field: int, default: int = 0) -> int:
        return default if self.options is None else self.options.number(field, INT32, default)

    def flag(self, field: int, default: bool = False) -> bool:
        return default if self.options is None else self.options.flag(field, default)

    def long_option(self, field: int) -> int:
        return 0 if self.options is None else self.options.number(field, INT64)

    def long_options(self, field: int) -> tuple[int, ...]:
        return () if self.options is None else self.options.int64s(field)


Translation = Callable[[Operator], Attributes]


def canonical_inputs(operator: Operator) -> tuple[int, ...]:
    """Return the inputs in the canonical order of the kind; inputs without a role follow."""
    order = _lstm_order(operator) if operator.code.type == "LSTM" else ORDER.get(operator.code.type)
    inputs = operator.inputs
    if order is None or not inputs:
        return inputs
    ordered = [inputs[position] if position < len(inputs) else ABSENT for position in order]
    ordered += [tensor for position, tensor in enumerate(inputs) if position not in order]
    while ordered and ordered[-1] == ABSENT:
        ordered.pop()
    return tuple(ordered)


def attributes(operator: Operator) -> Attributes:
    """Return the operator's attributes, including its fused activation."""
    translate = ATTRIBUTES.get(operator.code.type)
    found = translate(operator) if translate is not None else {}
    field = ACTIVATION_FIELDS.get(operator.code.type)
    if field is not None and operator.options is not None:
        code = operator.options.number(field, INT8)
        if not 0 <= code < len(ACTIVATIONS):
            raise ValueError(f"fused activation {code}; the schema knows 0 to {len(ACTIVATIONS) - 1}")
        if code:
            found["activation"] = ACTIVATIONS[code]
    return found


def _check_positive(values: tuple[int, ...], what: str) -> tuple[int, ...]:
    """Return the values; any below 1 is an error."""
    if min(values, default=1) < 1:
        raise ValueError(f"{what} {list(values)}; expected 1 or more")
    return values


def _axis(axis: int, shape: Shape | None) -> int | None:
    """Return the axis counted from the front; None for a negative axis of an unknown shape."""
    if shape is None:
        return axis if axis >= 0 else None
    rank = max(len(shape), 1)  # a scalar counts as one element along axis 0
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} of a tensor of shape {list(shape)}")
    return axis % rank


def _one_axis(axis: int, shape: Shape | None) -> Attributes:
    found = _axis(axis, shape)
    return {} if found is None else {"axis": found}


def _axes(axes: tuple[int, ...] | None, shape: Shape | None) -> Attributes:
    found = [_axis(axis, shape) for axis in axes] if axes is not None else [None]
    known = [axis for axis in found if axis is not None]
    return {"axes": tuple(sorted(set(known)))} if len(known) == len(found) else {}


def _check_rank(shape: Shape | None, rank: int, what: str) -> Shape | None:
    """Return the shape; a known shape of another rank is an error."""
    if shape is not None and len(shape) != rank:
        raise ValueError(f"{what} of shape {list(shape)}; expected rank {rank}")
    return shape


# Convolutions


@dataclass(frozen=True, slots=True)
class Filter:
    """Where an operator stores its kernel extents, strides and dilations, outermost axis first."""

    kernel: tuple[int, ...]  # axes of the weights
    strides: tuple[int, ...]  # fields of the options
    dilations: tuple[int, ...] = ()
    input_axis: int = 3  # axis of the weights that holds the input channels

    @property
    def rank(self) -> int:
        return len(self.kernel) + 2


CONV_2D = Filter(kernel=(1, 2), strides=(2, 1), dilations=(5, 4))  # weights: out, height, width, in / groups
DEPTHWISE = Filter(kernel=(1, 2), strides=(2, 1), dilations=(6, 5))  # weights: 1, height, width, out
TRANSPOSE_CONV = Filter(kernel=(1, 2), strides=(2, 1))  # weights: out, height, width, in
CONV_3D = Filter(kernel=(0, 1, 2), strides=(1, 3, 2), dilations=(5, 7, 6))  # weights: depth, height, width, in, out
CONV_3D_TRANSPOSE = Filter(CONV_3D.kernel, CONV_3D.strides, CONV_3D.dilations, input_axis=4)


def _window(operator: Operator, layout: Filter, weights: Shape | None) -> Attributes:
    found: Attributes = {"channel_axis": layout.rank - 1}
    if weights is not None:
        found["kernel"] = tuple([weights[axis] for axis in layout.kernel])
    found["strides"] = _check_positive(tuple([operator.option(field) for field in layout.strides]), "strides")
    dilations = tuple([operator.option(field, 1) for field in layout.dilations]) or (1,) * len(layout.kernel)
    found["dilations"] = _check_positive(dilations, "dilations")
    return found


def _conv(layout: Filter) -> Translation:
    def translate(operator: Operator) -> Attributes:
        data = _check_rank(operator.shape(0), layout.rank, "data")
        weights = _check_rank(operator.shape(1), layout.rank, "weights")
        found = _window(operator, layout, weights)
        if data is not None and weights is not None:
            channels, channels_per_group = data[-1], weights[layout.input_axis]
            if channels % channels_per_group:
                raise ValueError(f"{channels} channels cannot be grouped by weights that take {channels_per_group}")
            found["groups"] = channels // channels_per_group
        return found

    return translate


def _depthwise(operator: Operator) -> Attributes:
    data = _check_rank(operator.shape(0), DEPTHWISE.rank, "data")
    weights = _check_rank(operator.shape(1), DEPTHWISE.rank, "weights")
    found = _window(operator, DEPTHWISE, weights)
    if data is not None:
        found["groups"] = data[-1]
    return found


def _conv_transpose(layout: Filter) -> Translation:
    def translate(operator: Operator) -> Attributes:
        weights = _check_rank(operator.shape(1), layout.rank, "weights")
        return _window(operator, layout, weights) | {"groups": 1}

    return translate


def _stablehlo_convolution(operator: Operator) -> Attributes:
    weights = operator.shape(1)
    spatial = operator.long_options(10)
    found: Attributes = {"groups": max(operator.long_option(14), 1)}
    if (channel_axis := _axis(operator.long_option(6), operator.shape(0))) is not None:
        found["channel_axis"] = channel_axis
    if weights is not None:
        kernel_axes = [_axis(axis, weights) for axis in spatial]
        found["kernel"] = tuple(weights[axis] for axis in kernel_axes if axis is not None)
    found["strides"] = _check_positive(operator.long_options(0) or (1,) * len(spatial), "strides")
    found["dilations"] = _check_positive(operator.long_options(3) or (1,) * len(spatial), "dilations")
    return found


# Products of matrices


def _fully_connected(operator: Operator) -> Attributes:
    weights = operator.shape(1)
    return {} if not weights else {"k": weights[-1], "n": prod(weights[:-1])}


def _batch_matmul(operator: Operator) -> Attributes:
    a, b = operator.shape(0), operator.shape(1)
    if a is None or b is None:
        return {}
    if len(a) < 2 or len(b) < 2:
        raise ValueError(f"operands of shape {list(a)} and {list(b)}; expected rank 2 or more")
    transposed_a, transposed_b = operator.flag(0), operator.flag(1)
    return {"k": a[-2] if transposed_a else a[-1], "n": b[-2] if transposed_b else b[-1]}


def _dot_general(operator: Operator) -> Attributes:
    """k is the product of the contracted extents, n of the right operand's free ones."""
    a, b = operator.shape(0), operator.shape(1)
    if a is None or b is None:
        return {}
    contracted_axes = [_axis(axis, a) or 0 for axis in operator.long_options(2)]
    batch_and_contracted = {_axis(axis, b) for axis in operator.long_options(1) + operator.long_options(3)}
    free_extents = [extent for axis, extent in enumerate(b) if axis not in batch_and_contracted]
    return {"k": prod(a[axis] for axis in contracted_axes) if a else 1, "n": prod(free_extents)}


def _svdf(operator: Operator) -> Attributes:
    """Two products in one: features [filters, input], then time [filters, memory], summed over the rank."""
    feature, time = operator.shape(1), operator.shape(2)
    if feature is None or time is None:
        return {}
    _check_rank(feature, 2, "feature weights")
    _check_rank(time, 2, "time weights")
    rank = operator.option(0)
    if rank < 1 or feature[0] % rank:
        raise ValueError(f"rank {rank} does not divide {feature[0]} filters")
    # Work per batch entry is filters × (input + memory) = n × k with n = filters / rank and k = rank × (input +
    # memory).
    return {"k": rank * (feature[1] + time[1]), "n": feature[0] // rank}


# Recurrent cells


def _cell(weights: Shape | None, gates: int, *, steps: int, batch: int, directions: int) -> Attributes:
    """Return the attributes of a recurrent cell whose weights are (gates × hidden, input)."""
    found: Attributes = {"steps": steps, "batch": batch, "directions": directions}
    if weights is not None:
        _check_rank(weights, 2, "weights")
        found |= {"input_size": weights[1], "hidden_size": weights[0] // gates}
    return found


def _steps_and_batch(operator: Operator, time_major: bool | None) -> tuple[int, int] | None:
    """Return (steps, batch); `time_major` None means a single step with data [batch, input]."""
    data = operator.shape(0)
    if time_major is None:
        return (1, prod(data[:-1])) if data else None
    if data is None:
        return None
    _check_rank(data, 3, "data")
    return (data[0], data[1]) if time_major else (data[1], data[0])


def _rnn(time_major_field: int | None, directions: int) -> Translation:
    def translate(operator: Operator) -> Attributes:
        time_major = None if time_major_field is None else operator.flag(time_major_field)
        extents = _steps_and_batch(operator, time_major)
        if extents is None:
            return {}
        steps, batch = extents
        return _cell(operator.shape(1), 1, steps=steps, batch=batch, directions=directions)

    return translate


def _lstm(time_major_field: int | None, directions: int, *, time_major_default: bool = False) -> Translation:
    """Translation of an LSTM over a sequence; reads variants from absent or present weights."""

    def translate(operator: Operator) -> Attributes:
        time_major = None if time_major_field is None else operator.flag(time_major_field, time_major_default)
        extents = _steps_and_batch(operator, time_major)
        if extents is None:
            return {}
        steps, batch = extents
        found = _cell(operator.shape(4), 1, steps=steps, batch=batch, directions=directions)
        # Two variants: no input-gate weights means coupled input and forget gates; input 16 projects the output.
        if operator.inputs[1:2] == (ABSENT,):
            found["gates"] = 3
        projection = operator.shape(16)
        if projection:
            found["projection_size"] = projection[0]
        return found

    return translate


def _lstm_step(operator: Operator) -> Attributes:
    """One LSTM step: the full kernel, or the basic one with all weights in one matrix."""
    if not _is_basic_lstm(operator):
        return _lstm(None, 1)(operator)
    extents = _steps_and_batch(operator, None)
    weights, data = operator.shape(2), operator.shape(0)  # weights: 4 gates × hidden, input + hidden
    if extents is None or weights is None or not data:
        return {}
    found = _cell(weights, 4, steps=extents[0], batch=extents[1], directions=1)
    return found | {"input_size": data[-1]}


def _is_basic_lstm(operator: Operator) -> bool:
    return operator.options is not None and operator.options.number(3, INT8) == 1


def _lstm_order(operator: Operator) -> tuple[int, ...] | None:
    # The basic kernel has data, previous output, weights, bias, previous state; recurrent weights are in the weights.
    return (0, 2, 3, 1, 4) if _is_basic_lstm(operator) else None


# Pools, normalisations, reductions, moves


def _pool(operator: Operator) -> Attributes:
    _check_rank(operator.shape(0), 4, "data")
    kernel = _check_positive((operator.option(4), operator.option(3)), "kernel")
    strides = _check_positive((operator.option(2), operator.option(1)), "strides")
    return {"kernel": kernel, "strides": strides, "channel_axis": 3}


def _window_reduction(
    kernel: tuple[int, ...] | None, strides: tuple[int, ...] | None, data: Shape | None
) -> Attributes:
    """A reduction by a window over every axis, channels included."""
    found: Attributes = {} if data is None else {"channel_axis": max(len(data) - 1, 0)}
    if kernel is not None:
        found["kernel"] = _check_positive(kernel, "window")
        found["strides"] = _check_positive(strides or (1,) * len(kernel), "strides")
    return found


def _last_axis(operator: Operator) -> Attributes:
    shape = operator.shape(0)
    return {} if shape is None else _axes((-1,), shape)


def _constant_axes(operator: Operator) -> Attributes:
    return _axes(operator.integers(1), operator.shape(0))


def _transformed(operator: Operator) -> Attributes:
    """The last two axes of RFFT2D, without those whose transforms have one element."""
    shape, lengths = operator.shape(0), operator.integers(1)
    if shape is None or len(shape) < 2 or lengths is None or len(lengths) != 2:
        return {}
    found = {len(shape) - 2 + place: length for place, length in enumerate(lengths) if length > 1}
    return {"axes": tuple(found), "lengths": tuple(found.values())}


def _constant_axis(axis_input: int, data_input: int) -> Translation:
    def translate(operator: Operator) -> Attributes:
        axis = operator.integers(axis_input)
        return _one_axis(axis[0], operator.shape(data_input)) if axis else {}

    return translate


def _input_axis(field: int) -> Translation:
    return lambda operator: _one_axis(operator.option(field), operator.shape(0))


def _output_axis(field: int) -> Translation:
    return lambda operator: _one_axis(operator.option(field), operator.output_shape())


def _permutation(axes: tuple[int, ...] | None, shape: Shape | None) -> Attributes:
    if not axes:
        return {}
    rank = len(axes) if shape is None else len(shape)
    found = tuple(axis + rank if axis < 0 else axis for axis in axes)
    if sorted(found) != list(range(rank)):
        raise ValueError(f"permutation {list(axes)} does not name each of {rank} axes once")
    return {"permutation": found}


ORDER: Mapping[str, tuple[int, ...]] = {
    "TRANSPOSE_CONV": (2, 1, 3),  # output shape, weights, data, bias
    "CONV_3D_TRANSPOSE": (2, 1, 3),
    "SVDF": (0, 1, 3),  # data, feature weights, time weights, bias, state
    "SPLIT": (1,),  # axis, data
    "EMBEDDING_LOOKUP": (1,),  # indices, table
    "STABLEHLO_CLAMP": (1,),  # low, data, high
}

# Which field of the options names the fused activation. Recurrent cells are left out: theirs is part of the cell.
ACTIVATION_FIELDS: Mapping[str, int] = {
    "ADD": 0,
    "SUB": 0,
    "MUL": 0,
    "DIV": 0,
    "FULLY_CONNECTED": 0,
    "L2_NORMALIZATION": 0,
    "CONCATENATION": 1,
    "SVDF": 1,
    "CONV_2D": 3,
    "TRANSPOSE_CONV": 3,
    "DEPTHWISE_CONV_2D": 4,
    "CONV_3D": 4,
    "CONV_3D_TRANSPOSE": 4,
    "AVERAGE_POOL_2D": 5,
    "MAX_POOL_2D": 5,
    "L2_POOL_2D": 5,
}

_REDUCTIONS = "MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN REDUCE_ANY REDUCE_ALL ARG_MAX ARG_MIN CUMSUM REVERSE_V2"
_SEGMENTS = "SEGMENT_SUM UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_MIN UNIQUE"
_LAST = "SOFTMAX LOG_SOFTMAX L2_NORMALIZATION LOCAL_RESPONSE_NORMALIZATION TOPK_V2"
_POOLS = "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D"

ATTRIBUTES: Mapping[str, Translation] = {
    **dict.fromkeys(_REDUCTIONS.split(), _constant_axes),
    **dict.fromkeys(_SEGMENTS.split(), lambda operator: {"axes": (0,)}),
    **dict.fromkeys(_LAST.split(), _last_axis),
    **dict.fromkeys(_POOLS.split(), _pool),
    "CONV_2D": _conv(CONV_2D),
    "CONV_3D": _conv(CONV_3D),
    "DEPTHWISE_CONV_2D": _depthwise,
    "TRANSPOSE_CONV": _conv_transpose(TRANSPOSE_CONV),
    "CONV_3D_TRANSPOSE": _conv_transpose(CONV_3D_TRANSPOSE),
    "STABLEHLO_CONVOLUTION": _stablehlo_convolution,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "STABLEHLO_DOT_GENERAL": _dot_general,
    "SVDF": _svdf,
    "RFFT2D": _transformed,
    "RNN": _rnn(None, 1),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _rnn(0, 1),
    "BIDIRECTIONAL_SEQUENCE_RNN": _rnn(0, 2),
    "LSTM": _lstm_step,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm(3, 1),
    "BIDIRECTIONAL_SEQUENCE_LSTM": _lstm(4, 2, time_major_default=True),
    "CONCATENATION": _input_axis(0),
    "PACK": _output_axis(1),
    "UNPACK": _input_axis(1),
    "GATHER": _input_axis(0),
    "EMBEDDING_LOOKUP": lambda operator: {"axis": 0},
    "ONE_HOT": _output_axis(0),
    "SPLIT": _constant_axis(0, 1),
    "SPLIT_V": _constant_axis(2, 0),
    "REVERSE_SEQUENCE": lambda operator: _axes((operator.option(0),), operator.shape(0)),
    "TRANSPOSE": lambda operator: _permutation(operator.integers(1), operator.shape(0)),
    "STABLEHLO_TRANSPOSE": lambda operator: _permutation(operator.long_options(0), operator.shape(0)),
    "STABLEHLO_CONCATENATE": lambda operator: _one_axis(operator.long_option(0), operator.shape(0)),
    "STABLEHLO_REDUCE": lambda operator: _axes(operator.long_options(0), operator.shape(0)),
    "STABLEHLO_SORT": lambda operator: _axes((operator.long_option(0),), operator.shape(0)),
    "STABLEHLO_REDUCE_WINDOW": lambda operator: _window_reduction(
        operator.long_options(0), operator.long_options(1), operator.shape(0)
    ),
    "REDUCE_WINDOW": lambda operator: _window_reduction(operator.integers(2), operator.integers(3), operator.shape(0)),
}
