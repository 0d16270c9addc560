"""Ops of PyTorch by name and arguments → kind, shapes and data type, in the words of our graphs.

The profiler writes down what an op was called with, and not what it returned: results are computed here. An op that is
not in the table, or whose arguments have another form, keeps its name and nothing is said of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import msgspec

from ...calibration.op_rows import op_graph
from ...estimate.work import work_of

Shape = tuple[int, ...]
_DTYPES = {
    "c10::Half": "f16",
    "c10::BFloat16": "bf16",
    "float": "f32",
    "double": "f64",
    "signed char": "i8",
    "unsigned char": "u8",
    "int": "i32",
    "long int": "i64",
    "long": "i64",
}


class Called(msgspec.Struct, frozen=True, gc=False):
    """What an op was called with; its arguments in their order."""

    dims: tuple[object, ...] = msgspec.field(name="Input Dims", default=())
    types: tuple[str, ...] = msgspec.field(name="Input type", default=())
    concrete: tuple[str, ...] = msgspec.field(name="Concrete Inputs", default=())

    def shape(self, place: int) -> Shape:
        return _shape(self.dims[place])

    def numbers(self, place: int) -> list[int]:
        """Of a list such as `[3, 3]`."""
        return [int(word) for word in re.findall(r"-?\d+", self.concrete[place])]


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of an op by its arguments."""

    kind: str
    shapes: str  # 1x3x224x224;64x3x7x7->1x64x112x112
    dtype: str
    macs: int  # of a call


def told_by(name: str, called: Called) -> Told | None:
    """What an op does; None where that cannot be told."""
    row = _OPS.get(name.removeprefix("aten::").removesuffix("_"), _OPS.get(name.removeprefix("aten::")))
    if row is None:
        return None
    kind, shapes_of = row
    try:
        inputs, result = shapes_of(called)
        dtype = next(_DTYPES[word] for word in called.types if word in _DTYPES)
        shapes = ";".join(map(_text, inputs)) + (f"->{_text(result)}" if result else "")
        graph = op_graph(kind, shapes, dtype, name)
    except (ValueError, LookupError, ArithmeticError, StopIteration):
        return None
    work = work_of(graph.ops[0], graph)
    return Told(kind, shapes, dtype, work.macs) if work.known else None


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _shape(dims: object) -> Shape:
    if not isinstance(dims, (list, tuple)) or not dims or not all(isinstance(extent, int) for extent in dims):
        raise ValueError("no shape")
    return tuple(dims)


_Shapes = tuple[list[Shape], Shape]


def _first(called: Called) -> _Shapes:
    return [called.shape(0)], ()


def _operands(called: Called) -> _Shapes:
    """Tensors that are broadcast to the largest of them; a number is none."""
    shapes = [_shape(dims) for dims in called.dims[:2] if dims]
    return shapes, max(shapes, key=prod)


def _convolution(called: Called, pad: int = 2, stride: int = 3, dilation: int = 4) -> _Shapes:
    data, weights = called.shape(0), called.shape(1)
    sizes = _window(data[2:], weights[2:], *(called.numbers(place) for place in (pad, stride, dilation)))
    return [data, weights], (data[0], weights[0], *sizes)


def _general_convolution(called: Called) -> _Shapes:
    if called.concrete[6].lower() == "true":
        raise ValueError("transposed")
    return _convolution(called, pad=4, stride=3, dilation=5)


def _plain_convolution(called: Called) -> _Shapes:
    """Weights, kernel, bias, stride and padding in this order, and no dilation."""
    data, weights = called.shape(0), called.shape(1)
    return [data, weights], (
        data[0],
        weights[0],
        *_window(data[2:], weights[2:], called.numbers(5), called.numbers(4), [1, 1]),
    )


def _pool(called: Called) -> _Shapes:
    data, kernel, stride, pad = called.shape(0), called.numbers(1), called.numbers(2), called.numbers(3)
    return [data], (*data[:-2], *_window(data[-2:], kernel, pad, stride or kernel, [1, 1]))


def _window(data: Sequence[int], kernel: Sequence[int], *settings: Sequence[int]) -> list[int]:
    pad, stride, dilation = (list(each) * (len(data) // max(1, len(each))) for each in settings)
    return [
        (extent + 2 * p - d * (k - 1) - 1) // s + 1
        for extent, k, p, s, d in zip(data, kernel, pad, stride, dilation, strict=True)
    ]


def _product(first: int) -> Callable[[Called], _Shapes]:
    """Operands from place `first` on: `addmm` and its like have what is added before them."""

    def shapes(called: Called) -> _Shapes:
        left, right = called.shape(first), called.shape(first + 1)
        return [left, right], (*left[:-1], right[-1])

    return shapes


def _attention(called: Called) -> _Shapes:
    query, key, value = (called.shape(place) for place in range(3))
    return [query, key, value], (*query[:-1], value[-1])


def _attention_rows_first(called: Called) -> _Shapes:
    """Of an op that has rows before heads."""
    query, key, value = ((s[0], s[2], s[1], s[3]) for s in (called.shape(place) for place in range(3)))
    return [query, key, value], (*query[:-1], value[-1])


def _reduced(called: Called) -> _Shapes:
    data, axes = called.shape(0), called.numbers(1)
    gone = {axis % len(data) for axis in axes} or set(range(len(data)))
    return [data], tuple(1 if place in gone else extent for place, extent in enumerate(data))


def _concatenation(called: Called) -> _Shapes:
    parts = called.dims[0]
    if not isinstance(parts, (list, tuple)):
        raise ValueError("no list of tensors")
    shapes, axis = [_shape(part) for part in parts], int(called.concrete[1])
    total = list(shapes[0])
    total[axis] = sum(shape[axis] for shape in shapes)
    return shapes, tuple(total)


def _gathered(called: Called) -> _Shapes:
    """Rows of a table, as many as the last tensor among its arguments says."""
    return [called.shape(0)], next(_shape(dims) for dims in reversed(called.dims) if dims)


_SAME_SHAPE = {  # of their first argument → kind, where it has another name
    **{
        name: name
        for name in [
            "relu",
            "gelu",
            "tanh",
            "sigmoid",
            "silu",
            "exp",
            "log",
            "sqrt",
            "rsqrt",
            "erf",
            "abs",
            "softplus",
            "elu",
            "leaky_relu",
        ]
    },
    "hardswish": "hard_swish",
    "hardsigmoid": "hard_sigmoid",
    "neg": "negate",
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "native_layer_norm": "layer_norm",
    "native_batch_norm": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "native_group_norm": "group_norm",
    "clamp": "clip",
    "clamp_min": "relu",
    "hardtanh": "clip",
    "copy": "cast",
}
_OPS: Mapping[str, tuple[str, Callable[[Called], _Shapes]]] = {
    **{name: (kind, _first) for name, kind in _SAME_SHAPE.items()},
    **{name: (name, _operands) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "pow")},
    "cudnn_convolution": ("conv", _convolution),
    "mkldnn_convolution": ("conv", lambda called: _convolution(called, pad=3, stride=4, dilation=5)),
    "convolution_overrideable": ("conv", _general_convolution),
    "_slow_conv2d_forward": ("conv", _plain_convolution),
    "max_pool2d_with_indices": ("max_pool", _pool),
    "avg_pool2d": ("average_pool", _pool),
    "addmm": ("matmul", _product(1)),
    "mm": ("matmul", _product(0)),
    "bmm": ("matmul", _product(0)),
    "baddbmm": ("matmul", _product(1)),
    "_cudnn_attention_forward": ("attention", _attention),
    "_efficient_attention_forward": ("attention", _attention_rows_first),
    "_flash_attention_forward": ("attention", _attention_rows_first),
    "_scaled_dot_product_flash_attention_for_cpu": ("attention", _attention),
    "mean": ("reduce", _reduced),
    "sum": ("reduce", _reduced),
    "cat": ("concat", _concatenation),
    "gather": ("gather", _gathered),
}
