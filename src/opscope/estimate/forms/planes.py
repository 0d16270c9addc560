"""What a machine of planes does to a graph: images as one plane per channel, strides taken apart, scales beside biases.

Such a machine computes convolutions on planes, and everything else in the order of the file, channels last. Where a
tensor passes from one to the other it is transposed:

    image ─▶ transpose ─▶ conv ─▶ conv ─▶ add ─▶ transpose ─▶ average pool ─▶ dense

A window with strides reads pixels that are not neighbours. They are put beside each other first, by a pass of its own,
unless the convolution before it, which nobody else reads, can write them in that order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from math import prod

from ...core.units import Bytes
from ...graph.graph import ABSENT, Attribute, Graph, Op, Role, Tensor
from ...graph.kinds import Family
from ...machine.target import Runtime
from ..work import numbers

_KNOWN_STRIDE, _KNOWN_KERNEL = 2, 7  # of windows that planes are cut for as they are
_EITHER = {
    "concat",
    "identity",
    "pad",
    "resize",
    "resize_nearest",
    "slice",
}  # beside elementwise ops: as their inputs come


def by_need(graph: Graph) -> Graph:
    """Order ops as their readers need them, longest branch first: files of one network order branches differently."""
    if any(op.scope for op in graph.ops):  # what a loop or a branch runs stays together
        return graph
    makers = {t: place for place, op in enumerate(graph.ops) for t in op.outputs}
    depth: list[int] = []  # ops of the longest way to each
    for op in graph.ops:
        depth.append(1 + max((depth[makers[t]] for t in op.inputs if t in makers), default=0))
    order: dict[int, None] = {}
    waiting = [makers[t] for t in reversed(graph.outputs) if t in makers]
    while waiting:
        place = waiting[-1]
        missing = [makers[t] for t in graph.ops[place].inputs if t in makers and makers[t] not in order]
        if place in order or not missing:
            order.setdefault(waiting.pop())
        else:
            waiting.extend(sorted(missing, key=depth.__getitem__))
    rest = (place for place in range(len(graph.ops)) if place not in order)
    return replace(graph, ops=tuple(graph.ops[place] for place in (*order, *rest)))


def dense_convolutions(graph: Graph) -> Graph:
    """Turn convolutions of 1 × 1 images with 1 × 1 kernels into products: they are fully connected layers."""
    return replace(graph, ops=tuple(_dense(op, graph) for op in graph.ops))


def _dense(op: Op, graph: Graph) -> Op:
    if op.kind != "conv" or op.attributes.get("groups") != 1 or prod(numbers(op, "kernel")) != 1:
        return op
    data, weights = (graph.tensors[t].shape or () for t in op.inputs[:2])
    axis = op.attributes.get("channel_axis")
    if not isinstance(axis, int) or axis >= len(data) or prod(data) != data[0] * data[axis]:
        return op
    extents = {"k": data[axis], "n": prod(weights) // data[axis]}
    kept = {key: value for key, value in op.attributes.items() if key == "activation"}
    return replace(op, kind="matmul", attributes={**kept, **extents})


def with_scales(graph: Graph, scale_bytes: float) -> Graph:
    """Let products of integers read so many bytes of scale and shift for every channel, beside its bias.

    One model file has them as operands, in another they are parameters of tensors: here they are bytes of the bias.
    """
    tensors = list(graph.tensors)
    ops = []
    for op in graph.ops:
        inputs = op.inputs
        bias = inputs[2] if op.family is Family.CONTRACTION and len(inputs) > 2 else ABSENT
        attributes = op.attributes
        known = bias != ABSENT and "scaled" not in attributes
        if known and graph.tensors[bias].role is Role.CONSTANT and not graph.tensors[bias].dtype.is_float:
            found = graph.tensors[bias]
            size = (found.bytes or 0) + round(scale_bytes * (found.elements or 0))
            tensors.append(replace(found, stored_bytes=Bytes(size)))
            inputs, attributes = (*inputs[:2], len(tensors) - 1), {**attributes, "scaled": 1}
        ops.append(replace(op, inputs=inputs, attributes=attributes))
    return replace(graph, ops=tuple(ops), tensors=tuple(tensors))


def on_planes(graph: Graph, runtime: Runtime) -> Graph:
    """The graph as a machine of planes runs it; one that it runs already stays."""
    if not graph.ops or any("own" in op.attributes for op in graph.ops):
        return graph
    graph = in_planes(by_need(dense_convolutions(graph)), runtime.planes)
    if runtime.pieces_outside:
        graph = pieces_outside(graph, runtime.planes)
    return strides_apart(graph, runtime.planes) if runtime.strides_apart else graph


def in_planes(graph: Graph, kinds: Collection[str]) -> Graph:
    """Transpose what passes between ops of the listed kinds and the others."""
    return _Planes(graph, kinds).run()


class _Planes:
    """One pass over the ops; a tensor that is needed in the other order is transposed once for all its readers."""

    def __init__(self, graph: Graph, kinds: Collection[str]) -> None:
        self.graph, self.kinds = graph, kinds
        self.tensors: list[Tensor] = list(graph.tensors)
        self.ops: list[Op] = []
        self.planes: set[int] = set()
        self.other: dict[int, int] = {}  # tensor → the same in the other order

    def run(self) -> Graph:
        for op in self.graph.ops:
            wanted = self._wanted(op)
            inputs = tuple(self._ordered(t, op, planes=wanted) for t in op.inputs)
            self.ops.append(replace(op, inputs=inputs))
            if wanted:
                self.planes.update(op.outputs)
        outputs = tuple(self._ordered(t, self.ops[-1], planes=False) for t in self.graph.outputs)
        return replace(self.graph, ops=tuple(self.ops), tensors=tuple(self.tensors), outputs=outputs)

    def _wanted(self, op: Op) -> bool:
        if op.family in (Family.ELEMENTWISE, Family.CONVERT) or op.kind in _EITHER:
            return any(t in self.planes for t in op.inputs)
        shape = self.tensors[op.inputs[0]].shape or () if op.inputs and op.inputs[0] != ABSENT else ()
        # A file of channels first has planes as they are: nothing is transposed in it.
        return op.kind in self.kinds and op.attributes.get("channel_axis") == len(shape) - 1

    def _ordered(self, tensor: int, near: Op, *, planes: bool) -> int:
        """A tensor in the wanted order; only images of several pixels have two."""
        if tensor == ABSENT or self.tensors[tensor].role is Role.CONSTANT or (tensor in self.planes) == planes:
            return tensor
        shape = self.tensors[tensor].shape or ()
        if len(shape) < 3 or prod(shape[1:-1]) < 2:  # channels are the last axis in a file of channels last
            return tensor
        if tensor not in self.other:
            self.tensors.append(_another(self.tensors[tensor], "planes" if planes else "pixels"))
            made = self.other[tensor] = len(self.tensors) - 1
            order: dict[str, Attribute] = {
                "permutation": tuple(range(len(shape))),
                "innermost": shape[-1] if planes else shape[-2],
            }
            self.ops.append(_pass("transpose", tensor, made, near, order))
            if planes:
                self.planes.add(made)
        return self.other[tensor]


def strides_apart(graph: Graph, kinds: Collection[str]) -> Graph:
    """Put the pixels that a window with strides reads beside each other, before every op of the listed kinds."""
    uses = Counter(t for op in graph.ops for t in op.inputs)
    uses.update(graph.outputs)
    makers = {t: op for op in graph.ops for t in op.outputs}
    tensors, ops = list(graph.tensors), []
    for op in graph.ops:
        inputs = op.inputs
        if op.kind in kinds and max(numbers(op, "strides"), default=1) > 1:
            maker = makers.get(inputs[0])
            if maker is None or maker.kind != "conv" or uses[inputs[0]] > 1:
                tensors.append(_another(tensors[inputs[0]], "space_to_depth"))
                ops.append(_pass("space_to_depth", inputs[0], len(tensors) - 1, op, {}))
                inputs = (len(tensors) - 1, *inputs[1:])
        ops.append(replace(op, inputs=inputs))
    return replace(graph, ops=tuple(ops), tensors=tuple(tensors))


def pieces_outside(graph: Graph, kinds: Collection[str]) -> Graph:
    """Let images be joined and cut in outer memory, where transfers write and read parts of them.

    A concatenation writes its operands side by side. A window that jumps over pixels reads a cut image; one without
    padding, or whose kernel or strides the planes do not know, is computed for all of its input and cut afterwards.
    What is not made by an op lies in outer memory as it is.
    """
    made = {t for op in graph.ops if op.family is not Family.VIEW for t in op.outputs}
    cuts: set[int] = set()
    tensors, ops = list(graph.tensors), []
    for op in graph.ops:
        if op.kind == "concat" and len(set(op.inputs)) == len(op.inputs) and set(op.inputs) <= made:
            ops.append(replace(op, kind="join", attributes={"outside": 1, "own": 1}))
            continue
        if op.kind == "slice" and op.inputs[0] in made:
            ops.append(replace(op, kind="divide", inputs=op.inputs[:1], attributes={"own": 1}))
            cuts.update(op.outputs)
            continue
        cut = _cut_before(op) and op.inputs[0] in made - cuts, _cut_behind(op, graph)
        if op.kind not in kinds or not any(cut):
            ops.append(op)
        elif cut[0]:
            tensors.append(_another(tensors[op.inputs[0]], "divide"))
            ops.append(_pass("divide", op.inputs[0], len(tensors) - 1, op, {}))
            ops.append(replace(op, inputs=(len(tensors) - 1, *op.inputs[1:])))
        else:
            tensors.append(_another(tensors[op.outputs[0]], "whole"))
            ops.append(replace(op, outputs=(len(tensors) - 1,)))
            ops.append(_pass("divide", len(tensors) - 1, op.outputs[0], op, {}))
    return replace(graph, ops=tuple(ops), tensors=tuple(tensors))


def _cut_before(op: Op) -> bool:
    return any(k < s for k, s in zip(numbers(op, "kernel"), numbers(op, "strides"), strict=False))


def _cut_behind(op: Op, graph: Graph) -> bool:
    """Whether a window is computed for more pixels than its result has."""
    kernel, strides = numbers(op, "kernel"), numbers(op, "strides")
    if not kernel or not strides:
        return False
    whole, made = (graph.tensors[t].shape or () for t in (op.inputs[0], op.outputs[0]))
    valid = (
        len(whole) == len(made) == 4
        and max(kernel) > 1
        and any(-(-extent // strides[0]) > out for extent, out in zip(whole[1:3], made[1:3], strict=True))
    )
    return valid or max(strides) > _KNOWN_STRIDE or max(kernel) > _KNOWN_KERNEL


def _another(tensor: Tensor, form: str) -> Tensor:
    """A tensor of the machine's own that holds what another does."""
    return replace(tensor, name=f"{tensor.name}/{form}", role=Role.ACTIVATION)


def _pass(kind: str, source: int, made: int, near: Op, attributes: dict[str, Attribute]) -> Op:
    """An op of the machine's own, which belongs to an op of the network."""
    own = near.beside(kind, (source,), (made,))
    sources = near.sources or (near.name,)
    return replace(own, attributes={**attributes, "own": 1}, trips=near.trips, sources=sources)
