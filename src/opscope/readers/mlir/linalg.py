"""linalg, tensor, arith and math operations on tensors as op kinds of graph.py.

The indexing maps and the body of a structured operation define what it computes: multiply and add over a reduction loop
is a contraction, any other reduction loop a reduction, no reduction loop an element-wise op, and an empty body a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import ascii_letters
from typing import TYPE_CHECKING

from .rules import CUSTOM, Rule, contraction
from .site import Attributes, Site, no_attributes

if TYPE_CHECKING:
    from iree.compiler import ir

_SCALAR_OPS: Mapping[
    str, str
] = {  # scalar operation → kind, cheapest first: a body costs as much as its most expensive operation
    "arith.bitcast": "identity",
    "arith.index_cast": "cast",
    "arith.extf": "cast",
    "arith.extsi": "cast",
    "arith.extui": "cast",
    "arith.truncf": "cast",
    "arith.trunci": "cast",
    "arith.sitofp": "cast",
    "arith.uitofp": "cast",
    "arith.fptosi": "cast",
    "arith.fptoui": "cast",
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.subf": "sub",
    "arith.subi": "sub",
    "arith.mulf": "mul",
    "arith.muli": "mul",
    "arith.maximumf": "maximum",
    "arith.maxnumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.maxui": "maximum",
    "arith.minimumf": "minimum",
    "arith.minnumf": "minimum",
    "arith.minsi": "minimum",
    "arith.minui": "minimum",
    "arith.negf": "negate",
    "math.absf": "abs",
    "math.absi": "abs",
    "math.ceil": "round",
    "math.floor": "round",
    "math.round": "round",
    "math.roundeven": "round",
    "arith.andi": "logical",
    "arith.ori": "logical",
    "arith.xori": "logical",
    "arith.shli": "binary",
    "arith.shrsi": "binary",
    "arith.shrui": "binary",
    "arith.cmpf": "compare",
    "arith.cmpi": "compare",
    "arith.select": "select",
    "arith.divf": "div",
    "arith.divsi": "div",
    "arith.divui": "div",
    "arith.remf": "div",
    "arith.remsi": "div",
    "math.sqrt": "sqrt",
    "math.rsqrt": "rsqrt",
    "math.exp": "exp",
    "math.exp2": "exp",
    "math.log": "log",
    "math.log2": "log",
    "math.log1p": "log",
    "math.tanh": "tanh",
    "math.sin": "trigonometric",
    "math.cos": "trigonometric",
    "math.erf": "erf",
    "math.powf": "pow",
    "math.fpowi": "pow",
}
_COST_RANK = {kind: place for place, kind in enumerate(dict.fromkeys(_SCALAR_OPS.values()))}
_NAMED_OPS: Mapping[str, str] = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "div_unsigned": "div",
    "max": "maximum",
    "min": "minimum",
    "powf": "pow",
    "exp": "exp",
    "log": "log",
    "abs": "abs",
    "ceil": "round",
    "floor": "round",
    "round": "round",
    "negf": "negate",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "square": "mul",
    "tanh": "tanh",
    "erf": "erf",
    "reciprocal": "reciprocal",
    "select": "select",
    "softmax": "softmax",
}
_TENSOR_OPS: Mapping[str, str] = {
    "tensor.pad": "pad",
    "tensor.extract_slice": "slice",
    "tensor.insert_slice": "dynamic_update",
    "tensor.collapse_shape": "reshape",
    "tensor.expand_shape": "reshape",
    "tensor.reshape": "reshape",
    "tensor.cast": "reshape",
    "tensor.concat": "concat",
    "tensor.splat": "fill",
    "tensor.from_elements": "fill",
    "tensor.generate": "fill",
    "tensor.gather": "gather",
    "tensor.scatter": "scatter",
    "tensor.bitcast": "reshape",
    "iree_linalg_ext.attention": "custom",
    "linalg.copy": "tile",
    "linalg.broadcast": "expand",
}
_CONTRACTIONS: Mapping[str, tuple[str, str, str]] = {  # named operations without maps of their own: left, right, out
    "dot": ("a", "a", ""),
    "matvec": ("ab", "b", "a"),
    "vecmat": ("a", "ab", "b"),
    "batch_matvec": ("abc", "ac", "ab"),
    "batch_vecmat": ("ab", "abc", "ac"),
    "matmul": ("ac", "cb", "ab"),
    "quantized_matmul": ("ac", "cb", "ab"),
    "batch_matmul": ("abd", "adc", "abc"),
    "quantized_batch_matmul": ("abd", "adc", "abc"),
    "batch_reduce_matmul": ("abd", "adc", "bc"),
    "mmt4d": ("acdf", "bcef", "abde"),
    "batch_mmt4d": ("gacdf", "gbcef", "gabde"),
}
_CONV = re.compile(r"(depthwise_)?conv_(\d)d(?:_(\w+))?")
_POOL = re.compile(r"pooling_(\w+?)_(sum|max|min)\w*")


def rule_of(op: ir.Operation) -> Rule | None:
    """Return the rule of an operation of these dialects; None if there is none."""
    name = str(op.name)
    if name in _TENSOR_OPS:
        return Rule(_TENSOR_OPS[name])
    if name in _SCALAR_OPS:
        return Rule(_SCALAR_OPS[name])
    if not name.startswith("linalg."):
        return None
    short = name.removeprefix("linalg.")
    if short in _NAMED_OPS:
        return Rule(_NAMED_OPS[short], _dimension if short == "softmax" else no_attributes)
    if short == "transpose":
        return Rule("transpose", lambda site: {"permutation": site.integers("permutation") or ()})
    if short == "reduce":
        return Rule("reduce", lambda site: {"axes": site.integers("dimensions") or ()})
    if short in _CONTRACTIONS or short == "contract":
        return _contraction(op)
    windowed = _window_rule(short)
    if windowed is not None:
        return windowed
    if short in ("generic", "map", "elementwise"):
        return _structured_rule(op)
    return CUSTOM


def _dimension(site: Site) -> Attributes:
    return {"axes": (site.integer("dimension", 0),)}


# -- contractions


def _contraction(op: ir.Operation) -> Rule:
    """Return the rule of a contraction, from its indexing maps or its name."""
    labels = _axis_letters(op) or _CONTRACTIONS.get(str(op.name).removeprefix("linalg."))
    return CUSTOM if labels is None else contraction(labels[0], labels[1], labels[-1])


def _axis_letters(op: ir.Operation) -> list[str] | None:
    """Return one word per indexing map: the letter of the loop that each axis of the operand follows.

    None if an axis follows an expression such as `d1 + 1` instead of one loop.
    """
    if "indexing_maps" not in op.attributes:
        return None
    letters = []
    for attribute in op.attributes["indexing_maps"]:
        results = _map_results(str(attribute))
        numbers = [re.fullmatch(r"d(\d+)", result) for result in results]
        if any(number is None or int(number[1]) >= len(ascii_letters) for number in numbers):
            return None
        letters.append("".join(ascii_letters[int(number[1])] for number in numbers if number is not None))
    return letters


def _map_results(text: str) -> list[str]:
    """Parse `affine_map<(d0, d1) -> (d0, d1 + 1)>` into ["d0", "d1 + 1"]."""
    inner = text.partition("-> (")[2].rpartition(")")[0]
    return [part.strip() for part in inner.split(",") if part.strip()]


def _window_rule(short: str) -> Rule | None:
    """Return the rule of a convolution or pool, whose layout is part of the operation's name."""
    conv, pool = _CONV.fullmatch(short), _POOL.fullmatch(short)
    if conv is not None:
        layout, depthwise = conv[3] or "", bool(conv[1])
        return Rule("conv", lambda site: _conv(site, layout, depthwise=depthwise))
    if pool is not None:
        order = pool[1]
        return Rule("average_pool" if pool[2] == "sum" else "max_pool", lambda site: _pool(site, order), 1)
    return None


def _conv(site: Site, layout: str, *, depthwise: bool) -> Attributes:
    """Layout `nhwc_hwcf` is the order of the data, then of the weights; f is the output channel, suffix q quantised."""
    data, _, weights = layout.removesuffix("_q").partition("_")
    shape, stored = site.input(0) or (), site.input(1) or ()
    spatial = [axis for axis, letter in enumerate(weights) if letter in "dhw"] or list(range(len(stored)))
    if not shape or not stored or max(spatial) >= len(stored):
        return {}
    kernel = tuple(stored[axis] for axis in spatial)
    channel = data.find("c") if "c" in data else len(shape) - 1
    ones = (1,) * len(kernel)
    groups = shape[channel] if depthwise else shape[data.find("g")] if "g" in data else 1
    return {
        "kernel": kernel,
        "strides": site.integers("strides") or ones,
        "dilations": site.integers("dilations") or ones,
        "groups": groups,
        "channel_axis": channel,
    }


def _pool(site: Site, layout: str) -> Attributes:
    window = site.input(1) or ()
    channel = layout.find("c")
    return {
        "kernel": window,
        "strides": site.integers("strides") or (1,) * len(window),
        "channel_axis": channel if channel >= 0 else len(site.input(0) or ()) - 1,
    }


# -- structured operations with a body


def _structured_rule(op: ir.Operation) -> Rule:
    """Return the rule of a generic operation from its reduction loops and its body."""
    body = list(_body(op))
    reductions = _reduction_loops(op)
    if reductions:
        multiplies = any(name in ("arith.mulf", "arith.muli") for name in body)
        adds = any(name in ("arith.addf", "arith.addi") for name in body)
        if multiplies and adds and _operand_count(op) == 2:
            return _contraction(op) if _axis_letters(op) else CUSTOM
        return Rule("reduce", lambda site: {"axes": _reduced_axes(site, reductions)})
    kinds = [_SCALAR_OPS.get(name, "") for name in body]
    if not kinds:
        return _copy_rule(op)
    if "" in kinds:
        return Rule("binary" if _operand_count(op) > 1 else "unary")
    return Rule(_elementwise(kinds))


def _body(op: ir.Operation) -> Iterator[str]:
    """Yield the operations of the body that compute, not yields, constants or loop indices."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                name = str(inner.operation.name)
                if name not in ("linalg.yield", "arith.constant", "linalg.index"):
                    yield name


def _elementwise(kinds: list[str]) -> str:
    """Return the kind of an element-wise body; known patterns first, else its most expensive operation."""
    found = set(kinds)
    if {"exp", "div", "add"} <= found <= {"exp", "div", "add", "negate", "sub"}:
        return "sigmoid"
    if found in ({"compare", "select"}, {"minimum", "maximum"}):
        return "clip"
    return max(kinds, key=lambda kind: _COST_RANK[kind])


def _copy_rule(op: ir.Operation) -> Rule:
    """Return the rule of an empty body: identity, permutation, or a broadcast along new axes."""
    labels = _axis_letters(op)
    if labels and len(labels) == 2 and sorted(labels[0]) == sorted(labels[1]):
        order = tuple(labels[0].index(letter) for letter in labels[1])
        return (
            Rule("identity") if order == tuple(sorted(order)) else Rule("transpose", lambda _s: {"permutation": order})
        )
    return Rule("expand")


def _reduction_loops(op: ir.Operation) -> list[int]:
    """Return the indices of the loops that are not parallel."""
    if "iterator_types" not in op.attributes:
        return []
    return [loop for loop, kind in enumerate(op.attributes["iterator_types"]) if "parallel" not in str(kind)]


def _reduced_axes(site: Site, loops: list[int]) -> tuple[int, ...]:
    """Return the axes of the first operand that follow reduction loops."""
    labels = _axis_letters(site.op)
    if not labels:
        return ()
    letters = {ascii_letters[loop] for loop in loops if loop < len(ascii_letters)}
    return tuple(axis for axis, letter in enumerate(labels[0]) if letter in letters)


def _operand_count(op: ir.Operation) -> int:
    """Return the number of inputs of a structured operation, without destinations."""
    if "operandSegmentSizes" not in op.attributes:
        return len(op.operands) - 1
    return int(next(iter(op.attributes["operandSegmentSizes"])))


def input_count(op: ir.Operation) -> int | None:
    """Return how many operands a linalg operation reads, the others being destinations; None for other dialects."""
    name = str(op.name)
    if not name.startswith("linalg.") and not name.startswith("iree_linalg_ext."):
        return None
    if "operandSegmentSizes" in op.attributes:
        return _operand_count(op)
    return len(op.operands) - len(op.results)
