"""PyTorch's own operations, as torch-mlir writes them (`torch.aten.X`), as op kinds of graph.py.

Sizes, axes and strides are operands: constants, or lists made of constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from .rules import Rule, matmul_extents, rules
from .site import Attributes, Describe, Shape, Site, attribute_value

if TYPE_CHECKING:
    from iree.compiler import ir

PREFIX = "torch.aten."

_KINDS: Mapping[str, str] = {
    "add": "add.Tensor add.Scalar",
    "sub": "sub.Tensor sub.Scalar rsub.Scalar",
    "mul": "mul.Tensor mul.Scalar square",
    "div": "div.Tensor div.Scalar div.Tensor_mode floor_divide remainder.Scalar remainder.Tensor fmod.Tensor",
    "pow": "pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar",
    "minimum": "minimum",
    "maximum": "maximum",
    "compare": (
        "eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar gt.Tensor gt.Scalar "
        "ge.Tensor ge.Scalar isnan isinf"
    ),
    "logical": (
        "logical_and logical_or logical_xor logical_not bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor "
        "bitwise_not"
    ),
    "select": (
        "where.self where.ScalarSelf where.ScalarOther where.Scalar masked_fill.Scalar masked_fill.Tensor tril triu"
    ),
    "prelu": "prelu _prelu_kernel",
    "relu": "relu threshold",
    "clip": "clamp clamp.Tensor clamp_min clamp_max hardtanh relu6",
    "leaky_relu": "leaky_relu",
    "elu": "elu selu celu",
    "gelu": "gelu",
    "erf": "erf",
    "exp": "exp exp2 expm1",
    "log": "log log2 log10 log1p",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "tanh": "tanh",
    "sigmoid": "sigmoid log_sigmoid",
    "silu": "silu",
    "hard_swish": "hardswish",
    "hard_sigmoid": "hardsigmoid",
    "softplus": "softplus",
    "negate": "neg",
    "abs": "abs",
    "round": "round floor ceil trunc",
    "sign": "sign sgn",
    "trigonometric": "sin cos tan asin acos atan sinh cosh asinh acosh atanh atan2",
    "reciprocal": "reciprocal",
    "mish": "mish",
    "random": "rand randn rand_like randn_like uniform bernoulli dropout",
    "cast": "to.dtype to.dtype_layout _to_copy type_as to.other",
    "quantize": "quantize_per_tensor quantize_per_channel",
    "dequantize": "dequantize.self dequantize.tensor",
    "reshape": (
        "view reshape flatten.using_ints squeeze squeeze.dim unsqueeze unflatten.int _unsafe_view view_as "
        "_reshape_alias"
    ),
    "identity": "clone contiguous detach alias lift_fresh_copy copy view.dtype _make_per_tensor_quantized_tensor",
    "expand": "expand broadcast_to expand_as",
    "tile": "repeat tile repeat_interleave.self_int",
    "slice": "slice.Tensor select.int narrow",
    "gather": "gather embedding index_select index.Tensor",
    "scatter": "scatter.src scatter.value scatter_add index_put index_put_ scatter_reduce.two",
    "pad": "constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad2d",
    "reverse": "flip",
    "fill": "zeros ones full empty.memory_format zeros_like ones_like full_like fill.Scalar",
    "range": "arange arange.start arange.start_step",
    "resize": "upsample_bilinear2d upsample_bilinear2d.vec",
    "resize_nearest": "upsample_nearest2d upsample_nearest2d.vec",
    "depth_to_space": "pixel_shuffle",
    "space_to_depth": "pixel_unshuffle",
    "topk": "topk sort",
}


def listed(values: Iterable[ir.Value]) -> Iterator[ir.Value]:
    """Yield operands, and in the place of a list its elements: `cat` takes its tensors as one."""
    for value in values:
        made = value.owner
        if str(getattr(made, "name", "")) == "torch.prim.ListConstruct":
            yield from listed(made.operands)
        else:
            yield value


def _integers(site: Site, place: int) -> tuple[int, ...] | None:
    """Return the number or the list of numbers that an operand is; None if they are not constants."""
    return _constant(site.op.operands[place]) if place < len(site.op.operands) else None


def _constant(value: ir.Value) -> tuple[int, ...] | None:
    made = value.owner
    name = str(getattr(made, "name", ""))
    if name == "torch.prim.ListConstruct":
        parts = [_constant(operand) for operand in made.operands]
        return None if None in parts else tuple(number for part in parts if part is not None for number in part)
    found = attribute_value(made, "value") if name in ("torch.constant.int", "torch.constant.bool") else None
    return (found,) if isinstance(found, int) else None


# -- products


def _matmul(site: Site) -> Attributes:
    """Vectors are rows on the left and columns on the right."""
    right = site.input(1)
    return {"k": right[0], "n": 1} if right is not None and len(right) == 1 else matmul_extents(site, transposed=False)


def _added(site: Site) -> Attributes:
    """`addmm(bias, a, b)`."""
    right = site.input(2)
    return {"k": right[-2], "n": right[-1]} if right is not None and len(right) >= 2 else {}


def _convolution(stride: int, dilation: int, groups: int, kind: str = "conv") -> Rule:
    """Data are N, C, …, weights O, C / groups, …; the other figures are operands at these places."""

    def describe(site: Site) -> Attributes:
        kernel = (site.input(1) or ())[2:]
        return {
            "kernel": kernel,
            "strides": _spread(_integers(site, stride), kernel),
            "dilations": _spread(_integers(site, dilation), kernel),
            "groups": (_integers(site, groups) or (1,))[0],
            "channel_axis": 1,
        }

    return Rule(kind, describe, 3)


def _attention(site: Site) -> Attributes:
    query, key, value = (site.input(place) for place in range(3))
    if query is None or key is None or value is None or len(query) < 3:
        return {}
    return {
        "batch": prod(query[:-3]),
        "heads": query[-3],
        "query_length": query[-2],
        "key_length": key[-2],
        "head_size": query[-1],
        "value_size": value[-1],
    }


def _spread(found: tuple[int, ...] | None, kernel: Shape) -> tuple[int, ...]:
    """One number stands for every axis."""
    if not found:
        return (1,) * len(kernel)
    return found * len(kernel) if len(found) == 1 else found


# -- windows and axes


def _pool(kind: str) -> Rule:
    def describe(site: Site) -> Attributes:
        shape = site.input(0) or ()
        kernel = _integers(site, 1) or ()
        kernel = _spread(kernel, shape[2:]) if kernel else ()
        return {"kernel": kernel, "strides": _integers(site, 2) or kernel, "channel_axis": 1} if kernel else {}

    return Rule(kind, describe, 1)


def _adaptive(site: Site) -> Attributes:
    """The window is what the extents of input and output leave."""
    data, out = site.input(0), site.output()
    if data is None or out is None or len(data) != len(out):
        return {}
    window = tuple(-(-own // made) for own, made in zip(data[2:], out[2:], strict=True))
    return {"kernel": window, "strides": window, "channel_axis": 1}


def _axes(place: int) -> Describe:
    def describe(site: Site) -> Attributes:
        shape = site.input(0)
        if not shape:
            return {}
        given = _integers(site, place)
        return {"axes": tuple(range(len(shape))) if given is None else tuple(axis % len(shape) for axis in given)}

    return describe


def _last_axes(site: Site) -> Attributes:
    """`layer_norm(data, normalized_shape, …)`: as many axes as the shape has."""
    shape, normalised = site.input(0) or (), _integers(site, 1) or (0,)
    return {"axes": tuple(range(len(shape)))[-len(normalised) :]}


def _permutation(site: Site) -> Attributes:
    rank = len(site.input(0) or ())
    given = _integers(site, 1)
    return {"permutation": tuple(axis % rank for axis in given)} if rank and given and len(given) == rank else {}


def _exchange(site: Site) -> Attributes:
    """`transpose.int(data, a, b)`, or the two axes of a matrix."""
    rank = len(site.input(0) or ())
    first, second = (_integers(site, place) for place in (1, 2))
    order = list(range(rank))
    if rank >= 2:
        one, other = (first or (0,))[0] % rank, (second or (1,))[0] % rank
        order[one], order[other] = order[other], order[one]
    return {"permutation": tuple(order)}


def _joined(site: Site) -> Attributes:
    rank = len(site.output() or ()) or 1
    return {"axis": (_integers(site, 1) or (0,))[0] % rank}


_CONVOLUTION = _convolution(3, 5, 8)  # stride, padding, dilation, transposed, output padding, groups
_TRANSPOSED = _convolution(3, 5, 8, "conv_transpose")
_CONVOLUTIONS = ("convolution", "_convolution", "convolution_overrideable")

RULES: Mapping[str, Rule] = (
    rules(_KINDS)
    | dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot"), Rule("matmul", _matmul))
    | dict.fromkeys(("addmm", "baddbmm"), Rule("matmul", _added, order=(1, 2, 0)))
    | dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution(3, 5, 6))
    | dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"),
        _convolution(3, 7, 6, "conv_transpose"),
    )
    | {f"max_pool{rank}d{suffix}": _pool("max_pool") for rank in (1, 2, 3) for suffix in ("", "_with_indices")}
    | {f"avg_pool{rank}d": _pool("average_pool") for rank in (1, 2, 3)}
    | {f"adaptive_avg_pool{rank}d": Rule("average_pool", _adaptive, 1) for rank in (1, 2, 3)}
    | {f"_adaptive_avg_pool{rank}d": Rule("average_pool", _adaptive, 1) for rank in (2, 3)}
    | {f"adaptive_max_pool{rank}d": Rule("max_pool", _adaptive, 1) for rank in (1, 2, 3)}
    | dict.fromkeys(("softmax.int", "_softmax"), Rule("softmax", _axes(1), 1))
    | dict.fromkeys(("log_softmax.int", "_log_softmax"), Rule("log_softmax", _axes(1), 1))
    | dict.fromkeys(("layer_norm", "native_layer_norm"), Rule("layer_norm", _last_axes))
    | dict.fromkeys(("batch_norm", "native_batch_norm"), Rule("batch_norm", lambda _site: {"axes": (1,)}))
    | dict.fromkeys(("group_norm", "native_group_norm"), Rule("group_norm", lambda _site: {"axes": (1,)}))
    | dict.fromkeys(
        (
            *("mean", "mean.dim", "sum", "sum.dim_IntList", "amax", "amin", "max", "min", "max.dim", "min.dim", "prod"),
            *("prod.dim_int", "any", "any.dim", "all", "all.dim", "var", "var.dim", "std", "std.dim", "logsumexp"),
            *("linalg_vector_norm", "norm.ScalarOpt_dim", "var.correction", "std.correction"),
        ),
        Rule("reduce", _axes(1), 1),
    )
    | dict.fromkeys(("argmax", "argmin"), Rule("argmax", _axes(1), 1))
    | dict.fromkeys(("transpose.int", "t", "numpy_T"), Rule("transpose", _exchange, 1))
    | dict.fromkeys(("cat", "stack"), Rule("concat", _joined))
    | {
        "linear": Rule("matmul", lambda site: matmul_extents(site, transposed=True)),
        "scaled_dot_product_attention": Rule("attention", _attention),
        "cumsum": Rule("cumsum", _axes(1), 1),
        "permute": Rule("transpose", _permutation, 1),
    }
)


def rule_of(op: ir.Operation) -> Rule | None:
    """Return the rule of an operation; None if there is none."""
    name = str(op.name).removeprefix(PREFIX)
    if name in _CONVOLUTIONS:
        return _TRANSPOSED if _constant(op.operands[6]) == (1,) else _CONVOLUTION
    return RULES.get(name)
