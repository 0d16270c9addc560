"""TOSA's operators (images NHWC, weights OHWI, depthwise HWCM) as op kinds of graph.py."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from .rules import CUSTOM, Rule, matmul_extents, rules
from .site import Attributes, Describe, Site, attribute_of

if TYPE_CHECKING:
    from iree.compiler import ir


def _window(site: Site, kernel: tuple[int, ...]) -> Attributes:
    ones = (1,) * len(kernel)
    strides, dilations = site.integers("stride") or ones, site.integers("dilation") or ones
    if min((*kernel, *strides, *dilations), default=1) < 1:
        return {}
    return {"kernel": kernel, "strides": strides, "dilations": dilations}


def _conv(rank: int) -> Describe:
    def describe(site: Site) -> Attributes:
        weights = site.input(1) or ()
        return _window(site, weights[1:-1]) | {"groups": 1, "channel_axis": rank - 1}

    return describe


def _conv2d(site: Site) -> Attributes:
    return _conv(4)(site)


def is_dense(site: Site) -> bool:
    """Whether a convolution is a fully connected layer: TOSA writes one as a 1 × 1 kernel on a 1 × 1 image."""
    data, weights = site.input(0), site.input(1)
    return bool(data and weights and len(data) == 4 and data[1:3] == (1, 1) and weights[1:3] == (1, 1))


def is_nearest(op: ir.Operation) -> bool:
    """Whether a resize picks values, and interpolates none."""
    return "NEAREST" in str(attribute_of(op, "mode"))


def _depthwise(site: Site) -> Attributes:
    data, weights = site.input(0), site.input(1) or ()
    return _window(site, weights[:2]) | {"groups": data[-1] if data else 1, "channel_axis": 3}


DENSE = Rule("matmul", lambda site: {"k": (site.input(1) or (0,))[-1], "n": (site.input(1) or (0,))[0]}, 3)


def _fully_connected(site: Site) -> Attributes:
    weights = site.input(1)
    return {"k": weights[-1], "n": weights[0]} if weights else {}


def _pool(site: Site) -> Attributes:
    window = _window(site, site.integers("kernel") or ())
    window.pop("dilations", None)
    return window | {"channel_axis": 3}


def _axis(site: Site) -> Attributes:
    return {"axis": site.integer("axis", 0)}


def _transformed(site: Site) -> Attributes:
    """Rows and columns of [images, rows, columns]."""
    shape = site.input(0)
    return {"axes": (1, 2), "lengths": shape[1:]} if shape is not None and len(shape) == 3 else {}


def _axes(site: Site) -> Attributes:
    return {"axes": (site.integer("axis", 0),)}


def _permutation(site: Site) -> Attributes:
    given = site.integers("perms") or (site.constants[1] if len(site.constants) > 1 else None)
    return {"permutation": given} if given and sorted(given) == list(range(len(given))) else {}


def rescale_operands(site: Site) -> int:
    """Return how many operands of a rescale count: per-channel multipliers are data, a single one is not."""
    return 2 if prod(site.input(1) or ()) > 1 else 1


_FIRST, _PAIR, _CONV = 1, 2, 3
_REDUCTIONS = ("all", "any", "max", "min", "prod", "product", "sum")

RULES: Mapping[str, Rule] = (
    rules(
        {
            "add": "add",
            "sub": "sub",
            "mul": "mul",
            "div": "intdiv",
            "pow": "pow",
            "minimum": "minimum",
            "maximum": "maximum",
            "compare": "equal greater greater_equal",
            "logical": "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor",
            "binary": "arithmetic_right_shift logical_left_shift logical_right_shift",
        },
        _PAIR,
    )
    | rules(
        {
            "clip": "clamp",
            "sigmoid": "sigmoid",
            "tanh": "tanh",
            "erf": "erf",
            "exp": "exp",
            "log": "log",
            "abs": "abs",
            "round": "ceil floor",
            "negate": "negate",
            "reciprocal": "reciprocal",
            "rsqrt": "rsqrt",
            "trigonometric": "sin cos",
            "unary": "clz table",
            "logical": "bitwise_not logical_not",
            "cast": "cast cast_from_block_scaled cast_to_block_scaled",
            "reshape": "reshape",
            "identity": "identity",
            "slice": "slice",
            "tile": "tile",
            "reverse": "reverse",
            "resize": "resize",
            "pad": "pad",
        },
        _FIRST,
    )
    | {f"reduce_{name}": Rule("reduce", _axes, _FIRST) for name in _REDUCTIONS}
    | {
        "conv2d": Rule("conv", _conv2d, _CONV),
        "conv3d": Rule("conv", _conv(5), _CONV),
        "depthwise_conv2d": Rule("conv", _depthwise, _CONV),
        "transpose_conv2d": Rule("conv_transpose", _conv(4), _CONV),
        "matmul": Rule("matmul", lambda site: matmul_extents(site, transposed=False), _PAIR),
        "fully_connected": Rule("matmul", _fully_connected, _CONV),
        "avg_pool2d": Rule("average_pool", _pool, _FIRST),
        "max_pool2d": Rule("max_pool", _pool, _FIRST),
        "rescale": Rule("quantize"),
        "select": Rule("select"),
        "argmax": Rule("argmax", _axes, _FIRST),
        "concat": Rule("concat", _axis),
        "transpose": Rule("transpose", _permutation, _FIRST),
        "gather": Rule("gather", lambda _site: {"axis": 1}),
        "scatter": Rule("scatter"),
        "fft2d": Rule("fft", _transformed),
        "rfft2d": Rule("fft", _transformed),
        "cond_if": Rule("if"),
        "while_loop": Rule("loop"),
        "custom": CUSTOM,
        "matmul_t_block_scaled": CUSTOM,
    }
)
