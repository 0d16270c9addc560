"""StableHLO and CHLO operations as op kinds of graph.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_letters
from typing import TYPE_CHECKING

from .rules import CUSTOM, Rule, contraction, rules
from .site import Attributes, Site, attribute_of

if TYPE_CHECKING:
    from iree.compiler import ir

DIALECTS = ("stablehlo.", "chlo.", "mhlo.")

_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.broadcast")
_LEAVES = {"func.return", "util.return", "stablehlo.return", "func.call", "util.call"}
_KINDS: Mapping[str, str] = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply square",
    "div": "divide remainder",
    "pow": "power",
    "minimum": "minimum",
    "maximum": "maximum",
    "compare": "compare is_finite is_inf is_pos_inf is_neg_inf",
    "logical": "and or xor not",
    "select": "select",
    "binary": "shift_left shift_right_arithmetic shift_right_logical next_after",
    "clip": "clamp",
    "exp": "exponential exponential_minus_one",
    "log": "log log_plus_one",
    "sqrt": "sqrt cbrt",
    "rsqrt": "rsqrt",
    "tanh": "tanh",
    "sigmoid": "logistic",
    "erf": "erf erfc erf_inv",
    "abs": "abs",
    "negate": "negate",
    "round": "ceil floor round_nearest_afz round_nearest_even",
    "sign": "sign",
    "trigonometric": "sine cosine tan atan2 sinh cosh acos acosh asin asinh atan atanh",
    "unary": "popcnt count_leading_zeros real imag complex conj reduce_precision",
    "random": "rng rng_bit_generator",
    "cast": "convert",
    "quantize": "uniform_quantize",
    "dequantize": "uniform_dequantize",
    "fill": "iota dynamic_iota constant_like",
    "if": "if case",
    "loop": "while",
}
_OF_THE_FIRST: Mapping[str, str] = {  # the operands behind it are shapes, positions or fill values
    "reshape": "reshape dynamic_reshape",
    "identity": "bitcast_convert optimization_barrier",
    "expand": "broadcast_in_dim broadcast dynamic_broadcast_in_dim",
    "slice": "slice dynamic_slice real_dynamic_slice",
    "pad": "pad dynamic_pad",
    "reverse": "reverse",
    "topk": "sort top_k",
    "shape": "get_dimension_size shape_of",
}
_CONV = re.compile(r"\[([^]]*)\]x\[([^]]*)\]->")
_PAIRS = re.compile(r"(lhs|rhs)_(batching|contracting)_dimensions = \[([\d, ]*)\]")


def rule_of(op: ir.Operation) -> Rule | None:
    """Return the rule of an operation of these dialects; None if there is none."""
    name = str(op.name).partition(".")[2]
    if name in ("dot", "dot_general"):
        return _dot(op, name)
    if name == "reduce_window":
        return _window(op)
    return RULES.get(name) or RULES.get(name.removeprefix("broadcast_"))  # CHLO: an operation that broadcasts


def renamed(op: ir.Operation) -> ir.Value | None:
    """Return the value that an operation's result is another name of; None if it is none.

    An element of a tuple is one. So is a scalar constant that is spread over a shape, as every operation that reads it
    would do so by itself; what the function returns has its shape.
    """
    name = str(op.name)
    if name == "stablehlo.get_tuple_element" and _maker(op) == "stablehlo.tuple":
        value: ir.Value = op.operands[0].owner.operands[op.attributes["index"].value]
        return value
    if name in _BROADCASTS and _rank(op.operands[0]) == 0 and _maker(op) == "stablehlo.constant":
        readers = {str(use.owner.name) for use in op.results[0].uses}
        return None if readers & _LEAVES else op.operands[0]
    return None


def _maker(op: ir.Operation) -> str:
    """Return the name of the operation that made the first operand; empty for an argument."""
    return str(getattr(op.operands[0].owner, "name", ""))


# -- products


def _dot(op: ir.Operation, name: str) -> Rule:
    """Return the rule of a product: a letter per axis, in the output batch axes first, then those of left and right."""
    ranks = [_rank(value) for value in op.operands]
    if None in ranks or len(ranks) != 2 or sum(rank or 0 for rank in ranks) > len(ascii_letters):
        return CUSTOM
    left_rank, right_rank = (rank or 0 for rank in ranks)
    if name == "dot":
        pairs = {("lhs", "contracting"): [left_rank - 1], ("rhs", "contracting"): [0]}
    else:
        numbers = _PAIRS.findall(str(attribute_of(op, "dot_dimension_numbers")))
        pairs = {(side, role): _integers(axes) for side, role, axes in numbers}
    left, right = list(ascii_letters[:left_rank]), list(ascii_letters[left_rank : left_rank + right_rank])
    batch = pairs.get(("lhs", "batching"), [])
    summed = pairs.get(("lhs", "contracting"), [])
    shared = zip(
        [*batch, *summed], [*pairs.get(("rhs", "batching"), []), *pairs.get(("rhs", "contracting"), [])], strict=False
    )
    for own, other in shared:
        right[other] = left[own]
    kept = [left[axis] for axis in range(left_rank) if axis not in (*batch, *summed)]
    added = [letter for letter in right if letter not in left]
    return contraction("".join(left), "".join(right), "".join([*(left[axis] for axis in batch), *kept, *added]))


def _rank(value: ir.Value) -> int | None:
    from iree.compiler import ir

    return value.type.rank if isinstance(value.type, ir.RankedTensorType) else None


def _integers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word.strip()]


def _convolution(site: Site) -> Attributes:
    """Layouts are written `[b, 0, 1, f]x[0, 1, i, o]`: digits are spatial axes, f the channels of the data."""
    found = _CONV.search(str(attribute_of(site.op, "dimension_numbers")))
    weights = site.input(1)
    if found is None or weights is None:
        return {}
    data, stored = ([word.strip() for word in found[side].split(",")] for side in (1, 2))
    kernel = tuple(
        weights[axis] for _, axis in sorted((word, axis) for axis, word in enumerate(stored) if word.isdecimal())
    )
    ones = (1,) * len(kernel)
    return {
        "kernel": kernel,
        "strides": site.integers("window_strides") or ones,
        "dilations": site.integers("rhs_dilation") or ones,
        "groups": site.integer("feature_group_count", 1),
        "channel_axis": data.index("f"),
    }


# -- windows and axes


def _window(op: ir.Operation) -> Rule:
    """Return the rule of a reduction over windows: a pool if they lie in neither the batch nor the channels."""
    site = Site(op, (), (), ())
    window = site.integers("window_dimensions") or ()
    body = {
        str(inner.operation.name).partition(".")[2] for region in op.regions for inner in region.blocks[0].operations
    }
    kind = "max_pool" if body & {"maximum", "minimum"} else "average_pool" if "add" in body else ""
    if len(window) < 3 or window[0] != 1 or not kind or 1 not in (window[1], window[-1]):
        return CUSTOM
    channel = len(window) - 1 if window[-1] == 1 else 1
    spatial = [axis for axis in range(1, len(window)) if axis != channel]
    strides = site.integers("window_strides") or (1,) * len(window)
    attributes: Attributes = {
        "kernel": tuple(window[axis] for axis in spatial),
        "strides": tuple(strides[axis] for axis in spatial),
        "channel_axis": channel,
    }
    return Rule(kind, lambda _site: attributes, 1)


def _reduced(site: Site) -> Attributes:
    return {"axes": site.integers("dimensions") or ()}


def _transformed(site: Site) -> Attributes:
    """The last axes, as many as there are lengths."""
    shape, lengths = site.input(0), site.integers("fft_length")
    if shape is None or not lengths or len(lengths) > len(shape):
        return {}
    return {"axes": tuple(range(len(shape) - len(lengths), len(shape))), "lengths": lengths}


def _normalised(site: Site) -> Attributes:
    return {"axes": (site.integer("feature_index", 1),)}


RULES: Mapping[str, Rule] = (
    rules(_KINDS)
    | rules(_OF_THE_FIRST, 1)
    | {
        "convolution": Rule("conv", _convolution, 2),
        "reduce": Rule("reduce", _reduced, 1),
        "fft": Rule("fft", _transformed, 1),
        "transpose": Rule("transpose", lambda site: {"permutation": site.integers("permutation") or ()}, 1),
        "concatenate": Rule("concat", lambda site: {"axis": site.integer("dimension", 0)}),
        "gather": Rule("gather", lambda _site: {"axis": 0}, 2),
        "torch_index_select": Rule("gather", lambda site: {"axis": site.integer("dim", 0)}, 2),
        "scatter": Rule("scatter", operands=3),
        "dynamic_update_slice": Rule("dynamic_update", operands=2),
        "batch_norm_inference": Rule("batch_norm", _normalised),
    }
)
