"""Rules that derive the attributes of each op kind (table in graph.py) from a node and its operands' shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from ...graph.graph import Attribute
from .model import Node

Shape = tuple[int, ...]
Attributes = dict[str, Attribute]


@dataclass(frozen=True, slots=True)
class Site:
    """One node with the shapes and constants of its operands."""

    node: Node
    inputs: Sequence[Shape | None]
    outputs: Sequence[Shape | None]
    constants: Sequence[tuple[int, ...] | None]  # elements of inputs that are small whole constants
    opset: int  # version of the node's domain

    def input(self, index: int) -> Shape | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int) -> Shape | None:
        return self.outputs[index] if index < len(self.outputs) else None

    def constant(self, index: int) -> tuple[int, ...] | None:
        return self.constants[index] if index < len(self.constants) else None

    def has_input(self, index: int) -> bool:
        return index < len(self.node.inputs) and self.node.inputs[index] != ""


Describe = Callable[[Site], Attributes]


def no_attributes(site: Site) -> Attributes:
    return {}


# -- convolution and pooling


def conv(data: int = 0, weights: int = 1, *, channels_last: bool = False) -> Describe:
    """Rule for a convolution whose data and weights are at these input positions."""

    def describe(site: Site) -> Attributes:
        shape, stored = site.input(data), site.input(weights)
        kernel = site.node.integers("kernel_shape") or (stored[2:] if stored else None)
        rank = len(shape) if shape else len(kernel) + 2 if kernel is not None else None
        return _window(site, kernel) | {
            "groups": max(1, site.node.integer("group", 1)),
            "channel_axis": rank - 1 if channels_last and rank else 1,
            **_fused_activation(site),
        }

    return describe


def causal_conv(site: Site) -> Attributes:
    """Depthwise convolution along the last dimension."""
    stored = site.input(1)
    groups = {"groups": stored[0]} if stored else {}
    return _window(site, stored[2:] if stored else None) | {"channel_axis": 1, **groups, **_fused_activation(site)}


def pool(site: Site) -> Attributes:
    window = _window(site, site.node.integers("kernel_shape"))
    window.pop("dilations", None)
    shape = site.input(0)
    last = site.node.integer("channels_last", 0) and shape
    return window | {"channel_axis": len(shape) - 1 if last and shape else 1}


def global_pool(site: Site) -> Attributes:
    shape = site.input(0)
    if shape is None or len(shape) < 2:
        return {"channel_axis": 1}
    last = site.node.integer("channels_last", 0)
    kernel = shape[1:-1] if last else shape[2:]
    return {"kernel": kernel, "strides": (1,) * len(kernel), "channel_axis": len(shape) - 1 if last else 1}


def roi_pool(site: Site) -> Attributes:
    node = site.node
    size = node.integers("pooled_shape") or (node.integer("output_height", 1), node.integer("output_width", 1))
    return {"kernel": size, "channel_axis": 1}


def _window(site: Site, kernel: Shape | None) -> Attributes:
    if kernel is None:
        return {}
    ones = (1,) * len(kernel)
    strides, dilations = site.node.integers("strides") or ones, site.node.integers("dilations") or ones
    if min((*kernel, *strides, *dilations), default=1) < 1:
        return {}  # damaged attributes: report unknown, do not divide by zero later
    return {"kernel": kernel, "strides": strides, "dilations": dilations}


_ACTIVATIONS = {
    "relu": "relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "leakyrelu": "leaky_relu",
    "clip": "clip",
    "hardsigmoid": "hard_sigmoid",
    "hardswish": "hard_swish",
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
}


def _fused_activation(site: Site) -> Attributes:
    name = site.node.text("activation", "").lower()
    return {"activation": _ACTIVATIONS[name]} if name in _ACTIVATIONS else {}


# -- matrix products


def matmul(a: int = 0, b: int = 1) -> Describe:
    """Rule for a matrix product: NumPy's rules for one-dimensional operands, optional transposes."""

    def describe(site: Site) -> Attributes:
        transpose_a, transpose_b = site.node.integer("transA", 0), site.node.integer("transB", 0)
        left, right, out = site.input(a), site.input(b), site.output(0)
        found: Attributes = dict(_fused_activation(site))
        if right:
            found["k"] = right[0] if len(right) == 1 else right[-1 if transpose_b else -2]
            found["n"] = 1 if len(right) == 1 else right[-2 if transpose_b else -1]
        elif left:
            found["k"] = left[0] if len(left) == 1 else left[-2 if transpose_a else -1]
            if out:
                found["n"] = out[-1]
        return found

    return describe


def matmul_nbits(site: Site) -> Attributes:
    """Product with block-quantised weights: their stored shape is packed, so k and n come from attributes."""
    extents = {"k": site.node.integer("K", 0), "n": site.node.integer("N", 0)}
    return {name: extent for name, extent in extents.items() if extent > 0}


def gemm_fast_gelu(site: Site) -> Attributes:
    return matmul()(site) | {"activation": "gelu"}


def einsum(site: Site) -> Attributes:
    """The equation; of one that only puts axes into another order, that order."""
    equation, shape = site.node.text("equation", ""), site.input(0)
    order = None if shape is None else _order_of_axes(equation.replace(" ", ""), len(shape))
    return {"equation": equation} if order is None else {"permutation": order}


def _order_of_axes(equation: str, rank: int) -> tuple[int, ...] | None:
    """`bij->bji` → (0, 2, 1); None: it multiplies, sums, or takes a diagonal."""
    given, arrow, made = equation.partition("->")
    labels = _labels(given, rank)
    result = _labels(made, rank) if arrow else sorted(labels)
    known = dict.fromkeys(labels)
    is_order = len(known) == len(labels) == len(result) == rank and known.keys() == set(result) and "," not in labels
    return tuple(labels.index(label) for label in result) if is_order else None


def _labels(word: str, rank: int) -> list[str]:
    """One per axis; those that an ellipsis stands for are numbered."""
    before, dots, after = word.partition("...")
    hidden = rank - len(before) - len(after) if dots else 0
    return [*before, *(str(axis) for axis in range(hidden)), *after]


# -- recurrent


def recurrent(site: Site) -> Attributes:
    """Data is (steps, batch, input size), or (batch, steps, input size) for layout 1; weights (directions, …)."""
    data, weights, recurrent_weights = site.input(0), site.input(1), site.input(2)
    found: Attributes = {}
    if data is not None and len(data) == 3:
        steps, batch = (data[1], data[0]) if site.node.integer("layout", 0) else data[:2]
        found |= {"steps": steps, "batch": batch, "input_size": data[2]}
    hidden = site.node.integer("hidden_size", 0) or (recurrent_weights[-1] if recurrent_weights else 0)
    if hidden:
        found["hidden_size"] = hidden
    is_bidirectional = site.node.text("direction", "forward") == "bidirectional"
    return found | {"directions": weights[0] if weights else 1 + is_bidirectional}


# -- axes


def axes(default: int = 0) -> Describe:
    """Rule for one `axis` attribute of an operator whose kind has `axes`."""

    def describe(site: Site) -> Attributes:
        shape = site.input(0)
        return {"axes": (_normalise_axis(site.node.integer("axis", default), shape),)} if shape else {}

    return describe


def softmax(site: Site) -> Attributes:
    """Before opset 13 the input is flattened to two dimensions, so all axes from `axis` on are normalised together."""
    shape = site.input(0)
    if not shape:
        return {}
    if site.opset >= 13 or site.node.domain:
        return {"axes": (_normalise_axis(site.node.integer("axis", -1), shape),)}
    return {"axes": tuple(range(_normalise_axis(site.node.integer("axis", 1), shape), len(shape)))}


def quantised_softmax(site: Site) -> Attributes:
    """Like softmax; the node's `opset` attribute says which of the two definitions holds."""
    shape = site.input(0)
    axis = _normalise_axis(site.node.integer("axis", -1), shape or ())
    if not shape:
        return {}
    return {"axes": (axis,) if site.node.integer("opset", 13) >= 13 else tuple(range(axis, len(shape)))}


def layer_norm(site: Site) -> Attributes:
    shape = site.input(0)
    return {"axes": tuple(range(_normalise_axis(site.node.integer("axis", -1), shape), len(shape)))} if shape else {}


def last_axis(site: Site) -> Attributes:
    shape = site.output(0) or site.input(0)
    return {"axes": (len(shape) - 1,)} if shape else {}


def spatial_axes(site: Site) -> Attributes:
    shape = site.input(0)
    return {"axes": tuple(range(2, len(shape)))} if shape else {}


def group_axes(site: Site) -> Attributes:
    return spatial_axes(site) | {"groups": site.node.integer("num_groups", 0) or site.node.integer("groups", 1)}


def batch_axes(site: Site) -> Attributes:
    """The axes that the statistics are taken over: all but the channel axis."""
    shape = site.input(0)
    return {"axes": tuple(axis for axis in range(len(shape)) if axis != 1)} if shape else {}


def channel_axes(site: Site) -> Attributes:
    return {"axes": (1,), "size": site.node.integer("size", 1)}


def mean_variance_axes(site: Site) -> Attributes:
    return {"axes": _normalise_axes(site.node.integers("axes") or (0, 2, 3), site.input(0))}


def reduce(site: Site) -> Attributes:
    """Axes are an attribute or, in later opsets, input 1; without either all axes are reduced."""
    shape = site.input(0)
    if shape is None:
        return {}
    given = site.node.integers("axes") or site.constant(1)
    if given:
        return {"axes": _normalise_axes(given, shape)}
    if site.has_input(1) and site.constant(1) is None:
        kept = site.output(0)  # axes are computed at run time; the reduced extents of the output show which
        if kept is None or len(kept) != len(shape):
            return {}
        return {"axes": tuple(axis for axis, extent in enumerate(shape) if kept[axis] != extent)}
    if site.node.integer("noop_with_empty_axes", 0):
        return {"axes": ()}
    return {"axes": tuple(range(len(shape)))}


def fourier(site: Site) -> Attributes:
    """The axis that DFT transforms is an attribute, from opset 20 on an input; its length is cut or padded if given."""
    shape, axis, length = site.input(0), site.constant(2) or (-2,), site.constant(1)
    is_input = site.opset >= 20
    if not shape or (is_input and site.has_input(2) and not site.constant(2)) or (site.has_input(1) and not length):
        return {}
    number = _normalise_axis(axis[0] if is_input else site.node.integer("axis", 1), shape)
    return {"axes": (number,), "lengths": length or (shape[number],)}


def short_time_fourier(site: Site) -> Attributes:
    """Frames of a signal, [batch, frames, bins, 2]: as long as said, or as the window."""
    window, length = site.input(2), site.constant(3)
    found = length or (window if window and not site.has_input(3) else None)
    return {"axes": (2,), "lengths": found} if found and len(found) == 1 else {}


def cumulative(site: Site) -> Attributes:
    given, shape = site.constant(1), site.input(0)
    return {"axes": _normalise_axes(given, shape)} if given and shape else {}


def axis(default: int = 0, data: int = 0) -> Describe:
    """Rule for one `axis` attribute, made non-negative by the rank of input `data`."""

    def describe(site: Site) -> Attributes:
        shape = site.input(data) or site.output(0)
        number = site.node.integer("axis", default)
        return {"axis": _normalise_axis(number, shape or ())} if shape or number >= 0 else {}

    return describe


def quantised_axis(site: Site) -> Attributes:
    """The axis along which per-channel scales run; empty for a single scale."""
    scale = site.input(1)
    return axis(1)(site) if scale and prod(scale) > 1 else {}


def permutation(site: Site) -> Attributes:
    shape = site.input(0)
    given = site.node.integers("perm")
    if given is None:
        return {"permutation": tuple(reversed(range(len(shape))))} if shape is not None else {}
    return {"permutation": given} if sorted(given) == list(range(len(given))) else {}


def block(site: Site) -> Attributes:
    return {"block": site.node.integer("blocksize", 1)}


def mode(default: str) -> Describe:
    return lambda site: {"mode": site.node.text("mode", default)}


def _normalise_axis(number: int, shape: Shape) -> int:
    """Count an axis from the front and clamp it to the rank."""
    rank = len(shape)
    return min(max(number + rank if number < 0 else number, 0), max(rank - 1, 0)) if rank else max(number, 0)


def _normalise_axes(numbers: Sequence[int], shape: Shape | None) -> tuple[int, ...]:
    return tuple(sorted({_normalise_axis(number, shape or ()) for number in numbers}))
