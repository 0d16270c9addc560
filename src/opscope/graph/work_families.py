"""Families of work: ops that an engine runs at a rate of their own, told apart by what they do and by their shapes.

A chip's data sheet has one peak; what is reached of it differs most between these families. Products are rated in MACs
per cycle, everything else in bytes read and written per cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import prod

from .graph import ABSENT, Graph, Op, Role
from .kinds import Family


class WorkFamily(Enum):
    """A word of `rates` in a target file."""

    DENSE_CONVOLUTION = "dense_convolution"
    POINTWISE_CONVOLUTION = "pointwise_convolution"  # 1 x 1
    GROUPED_CONVOLUTION = "grouped_convolution"
    DEPTHWISE_CONVOLUTION = "depthwise_convolution"  # one input channel for each group
    WEIGHTS_PRODUCT = "weights_product"
    ACTIVATIONS_PRODUCT = "activations_product"
    RECURRENT = "recurrent"
    ELEMENTWISE = "elementwise"
    TRANSCENDENTAL = "transcendental"  # elementwise, by a polynomial or a table
    ERROR_FUNCTION = "error_function"  # of them, GELU and what else needs erf: by far the longest polynomial
    SOFTMAX = "softmax"
    NORMALISATION = "normalisation"
    POOLING = "pooling"  # and reductions
    TRANSPOSITION = "transposition"  # moves elements to other places: no run of bytes stays together
    ROW_TRANSPOSITION = "row_transposition"  # of them, those that keep the last axis: rows of it stay together
    COPY = "copy"
    CONVERSION = "conversion"

    @property
    def multiplies(self) -> bool:
        return self in _PRODUCTS

    @property
    def general(self) -> WorkFamily:
        """The family that it is a special case of, whose rate it has where a target tells them not apart."""
        return _GENERAL.get(self, self)


_PRODUCTS = frozenset(
    {
        WorkFamily.DENSE_CONVOLUTION,
        WorkFamily.POINTWISE_CONVOLUTION,
        WorkFamily.GROUPED_CONVOLUTION,
        WorkFamily.DEPTHWISE_CONVOLUTION,
        WorkFamily.WEIGHTS_PRODUCT,
        WorkFamily.ACTIVATIONS_PRODUCT,
        WorkFamily.RECURRENT,
    }
)
_GENERAL = {
    WorkFamily.ERROR_FUNCTION: WorkFamily.TRANSCENDENTAL,
    WorkFamily.ROW_TRANSPOSITION: WorkFamily.TRANSPOSITION,
}
_ERROR_FUNCTION_KINDS = frozenset(("erf", "gelu"))
TRANSCENDENTAL_KINDS = frozenset(
    {"pow", "elu", "gelu", "erf", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "hard_swish"}
    | {"hard_sigmoid", "softplus", "trigonometric", "reciprocal", "div", "mish", "softsign"}
)
_TRANSPOSING_KINDS = frozenset(("transpose", "space_to_depth", "depth_to_space", "reverse"))
_BY_FAMILY: Mapping[Family, WorkFamily] = {
    Family.RECURRENT: WorkFamily.RECURRENT,
    Family.TRANSFORM: WorkFamily.TRANSCENDENTAL,
    Family.POOL: WorkFamily.POOLING,
    Family.REDUCE: WorkFamily.POOLING,
    Family.NORMALISE: WorkFamily.NORMALISATION,
    Family.ELEMENTWISE: WorkFamily.ELEMENTWISE,
    Family.CONVERT: WorkFamily.CONVERSION,
    Family.MOVE: WorkFamily.COPY,
}


def work_family(op: Op, graph: Graph) -> WorkFamily | None:
    """The family of an op; None for those that do no work, or that nobody knows the work of."""
    if op.kind in ("conv", "conv_transpose"):
        return _convolution(op, graph)
    if op.family is Family.CONTRACTION:
        second = op.inputs[1] if len(op.inputs) > 1 else ABSENT
        weights = second != ABSENT and graph.tensors[second].role is Role.CONSTANT
        return WorkFamily.WEIGHTS_PRODUCT if weights else WorkFamily.ACTIVATIONS_PRODUCT
    if op.kind in ("softmax", "masked_softmax", "log_softmax"):
        return WorkFamily.SOFTMAX
    if op.kind == "batch_norm":  # one factor and one sum for each channel
        return WorkFamily.ELEMENTWISE
    if op.kind in _TRANSPOSING_KINDS:
        order = op.attributes.get("permutation")
        rows = isinstance(order, tuple) and bool(order) and order[-1] == len(order) - 1
        return WorkFamily.ROW_TRANSPOSITION if rows else WorkFamily.TRANSPOSITION
    if op.family is Family.ELEMENTWISE and not TRANSCENDENTAL_KINDS.isdisjoint(kinds_of(op)):
        hard = not _ERROR_FUNCTION_KINDS.isdisjoint(kinds_of(op))
        return WorkFamily.ERROR_FUNCTION if hard else WorkFamily.TRANSCENDENTAL
    return _BY_FAMILY.get(op.family)


def kinds_of(op: Op) -> tuple[str, ...]:
    """Kinds of the elementwise ops that one op stands for: itself, or a chain that runs as one."""
    chain = op.attributes.get("chain")
    return tuple(chain.split()) if isinstance(chain, str) else (op.kind,)


def _convolution(op: Op, graph: Graph) -> WorkFamily:
    groups, kernel = op.attributes.get("groups", 1), op.attributes.get("kernel", ())
    axis = op.attributes["channel_axis"]
    if isinstance(groups, int) and groups > 1:
        shape = graph.tensors[op.inputs[0]].shape or ()
        channels = shape[axis] if isinstance(axis, int) and axis < len(shape) else 0
        depthwise = channels == groups and op.kind == "conv"
        return WorkFamily.DEPTHWISE_CONVOLUTION if depthwise else WorkFamily.GROUPED_CONVOLUTION
    taps = prod(extent for extent in kernel if isinstance(extent, int)) if isinstance(kernel, tuple) else 1
    return WorkFamily.POINTWISE_CONVOLUTION if taps == 1 else WorkFamily.DENSE_CONVOLUTION
