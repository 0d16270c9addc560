"""Kernels that LiteRT ran ↔ ops of the model.

Its own kernels say which op they are. Those of its default delegate, XNNPACK, have a name, an order and a length, and
no op. The delegate runs one part of the model after another, each in the model's order: a kernel is given the first op
that such a kernel can do, that nothing else ran, and that stands behind the one before it in its part.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...graph.graph import Graph

NO_OP = -1
_CONTRACTIONS = ("conv", "matmul")  # a 1×1 convolution runs as a fully connected kernel
_KERNELS: tuple[tuple[str, tuple[str, ...]], ...] = (  # start of a kernel's name → kinds of ops; the longest first
    ("reciprocal square root", ("rsqrt",)),
    ("squared difference", ("binary",)),
    ("square root", ("sqrt",)),
    ("batch matrix multiply", _CONTRACTIONS),
    ("fully connected", _CONTRACTIONS),
    ("convolution", _CONTRACTIONS),
    ("deconvolution", ("conv_transpose",)),
    ("dynamic fully connected", _CONTRACTIONS),
    ("global average pooling", ("average_pool", "reduce")),
    ("average pooling", ("average_pool",)),
    ("global sum pooling", ("reduce",)),
    ("max pooling", ("max_pool",)),
    ("argmax pooling", ("max_pool",)),
    ("mean", ("reduce", "average_pool")),
    ("sum", ("reduce",)),
    ("reduce", ("reduce",)),
    ("maximum", ("maximum",)),
    ("minimum", ("minimum",)),
    ("add", ("add",)),
    ("subtract", ("sub",)),
    ("multiply", ("mul",)),
    ("divide", ("div",)),
    ("power", ("pow",)),
    ("static reshape", ("reshape",)),
    ("reshape", ("reshape",)),
    ("expand dims", ("reshape",)),
    ("transpose", ("transpose",)),
    ("static transpose", ("transpose",)),
    ("softmax", ("softmax",)),
    ("copy", ("concat", "split", "slice", "identity", "reshape")),
    ("concatenate", ("concat",)),
    ("even split", ("split",)),
    ("static slice", ("slice",)),
    ("slice", ("slice",)),
    ("constant pad", ("pad",)),
    ("static constant pad", ("pad",)),
    ("resize", ("resize",)),
    ("static resize", ("resize",)),
    ("depth to space", ("depth_to_space",)),
    ("space to depth", ("space_to_depth",)),
    ("convert", ("quantize", "dequantize", "cast")),
    ("clamp", ("relu", "clip")),
    ("sigmoid", ("sigmoid",)),
    ("tanh", ("tanh",)),
    ("hardswish", ("hard_swish",)),
    ("hard swish", ("hard_swish",)),
    ("gelu", ("gelu",)),
    ("approxgelu", ("gelu",)),
    ("leaky relu", ("leaky_relu",)),
    ("prelu", ("prelu",)),
    ("elu", ("elu",)),
    ("exp", ("exp",)),
    ("log", ("log",)),
    ("erf", ("erf",)),
    ("abs", ("abs",)),
    ("negate", ("negate",)),
    ("square", ("unary", "mul")),
    ("floor", ("round",)),
    ("ceiling", ("round",)),
    ("bankers rounding", ("round",)),
    ("sine", ("trigonometric",)),
    ("cosine", ("trigonometric",)),
    ("rope", ("rotary",)),
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of one inference, in the order in which they ran."""

    name: str
    op: int  # position among the ops of the model; NO_OP: it did not say
    starts_part: bool = False  # the first one of a part that the delegate runs


class _Waiting:
    """Ops of one kind that nothing has run yet, in order."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self._free: list[int] = []  # where the next op that waits is, from here on

    def add(self, place: int) -> None:
        self._free.append(len(self.places))
        self.places.append(place)

    def after(self, place: int) -> int | None:
        """Index of the first one behind a place."""
        index = bisect_right(self.places, place)
        path = []
        while index < len(self.places) and self._free[index] != index:
            path.append(index)
            index = self._free[index]
        for passed in path:
            self._free[passed] = index
        return index if index < len(self.places) else None

    def take(self, index: int) -> int:
        self._free[index] = index + 1
        return self.places[index]


def kinds_of(kernel: str) -> tuple[str, ...]:
    """Kinds of ops that a kernel of the delegate can do."""
    words = kernel.lower()
    return next((kinds for start, kinds in _KERNELS if words.startswith(start)), ())


def map_kernels(graph: Graph, kernels: Sequence[Kernel]) -> list[int]:
    """The op of every kernel; NO_OP: of none. An op gets at most one kernel that did not say, and its activation."""
    told = {kernel.op for kernel in kernels}
    waiting: dict[str, _Waiting] = {}
    for place, op in enumerate(graph.ops):
        if place not in told and not op.scope:
            waiting.setdefault(op.kind, _Waiting()).add(place)
    found: list[int] = []
    last = NO_OP
    for kernel in kernels:
        last = NO_OP if kernel.starts_part else last
        given = kernel.op if kernel.op != NO_OP else _first(waiting, kinds_of(kernel.name), after=last)
        if given == NO_OP and found and _is_activation(graph, kernel.name, found[-1]):
            given = found[-1]
        last = max(last, given) if kernel.op == NO_OP else last
        found.append(given)
    return found


def _is_activation(graph: Graph, kernel: str, before: int) -> bool:
    """A clamp behind an op that has an activation in it."""
    return before != NO_OP and kernel.lower().startswith("clamp") and "activation" in graph.ops[before].attributes


def _first(waiting: Mapping[str, _Waiting], kinds: Sequence[str], *, after: int) -> int:
    """The first op of any of the kinds behind a place; where none is, the first of all."""
    for start in dict.fromkeys((after, NO_OP)):
        heads = [
            (queue.places[index], queue, index)
            for kind in kinds
            if (queue := waiting.get(kind)) is not None and (index := queue.after(start)) is not None
        ]
        if heads:
            _, queue, index = min(heads, key=lambda head: head[0])
            return queue.take(index)
    return NO_OP


def neighbour(
    graph: Graph, place: int, ran: Sequence[bool], writer: Mapping[int, int], reader: Mapping[int, int]
) -> int:
    """Of an op with no kernel: the op before it that has one, else the one after it; NO_OP: neither has."""
    op = graph.ops[place]
    before = next((writer[t] for t in op.inputs if t in writer and ran[writer[t]]), NO_OP)
    return before if before != NO_OP else next((reader[t] for t in op.outputs if t in reader and ran[reader[t]]), NO_OP)
