"""Transposes and reshapes merged, and moved through ops that do not mind, to where they meet another and both go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import onnx_ir as ir

from .grids import grid_of
from .layouts import reshape
from .reshapes import RESHAPES
from .rule import (
    Array,
    Maker,
    Match,
    Shape,
    array_of,
    attribute,
    extents_of,
    is_op,
    numbers_of,
    only_reader,
    opset_of,
    producer,
    set_extents,
)

MOST_STEPS = 12  # from an op that moves elements up to another
ON_FIRST = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Neg",
    "Abs",
    "Sqrt",
    "Erf",
    "Gelu",
    "HardSwish",
    "HardSigmoid",
    "LeakyRelu",
    "Elu",
    "Clip",
    "Cast",
    "Softplus",
    "Mish",
    "Identity",
    "Reciprocal",
    "Log",
    "Floor",
    "Not",
)
ON_ALL = ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Where", "Equal", "Greater", "Less", "And", "Or")
QUANTISED = ("QuantizeLinear", "DequantizeLinear")
ALONG = ("Softmax", "LogSoftmax")


class Move(ABC):
    """A way to move the elements of values of one shape, and of all that are broadcast to it."""

    before: Shape
    after: Shape

    @abstractmethod
    def constant(self, array: Array) -> Array | None:
        """A constant, moved; None where it would not be broadcast the same way."""

    @abstractmethod
    def axis(self, axis: int) -> int | None:
        """Where an axis goes; None where it does not stay one."""

    @abstractmethod
    def make(self, make: Maker, value: ir.Value) -> ir.Value | None:
        """A value, moved by an op; None where it would not be broadcast the same way."""

    @abstractmethod
    def undone(self, node: ir.Node) -> bool:
        """Whether the move takes back what a node does."""

    def through(self, node: ir.Node) -> bool:
        """Whether the move can be done before a node instead of after it."""
        if extents_of(node.outputs[0]) != self.before or len(node.outputs) != 1:
            return False
        if is_op(node, *ON_FIRST, *ON_ALL):
            return True
        if is_op(node, *QUANTISED):
            return grid_of(node) is not None
        axis = attribute(node, "axis", -1)
        return is_op(node, *ALONG) and opset_of(node) >= 13 and self.axis(axis % len(self.before)) is not None


class Transposed(Move):
    def __init__(self, before: Shape, order: Sequence[int]) -> None:
        self.before, self.order = before, list(order)
        self.after = tuple(before[axis] for axis in order)

    def constant(self, array: Array) -> Array | None:
        if array.size == 1 or array.ndim > len(self.order):
            return array if array.size == 1 else None
        return array.reshape((*(1,) * (len(self.order) - array.ndim), *array.shape)).transpose(self.order)

    def axis(self, axis: int) -> int | None:
        return self.order.index(axis)

    def make(self, make: Maker, value: ir.Value) -> ir.Value | None:
        shape = extents_of(value)
        if shape is None or len(shape) != len(self.order):
            return None
        return make.op("Transpose", value, perm=self.order, shape=tuple(shape[axis] for axis in self.order))

    def undone(self, node: ir.Node) -> bool:
        given = attribute(node, "perm", None) if is_op(node, "Transpose") else None
        return given is not None and [given[axis] for axis in self.order] == sorted(self.order)

    def through(self, node: ir.Node) -> bool:
        return super().through(node) or (is_op(node, "Concat") and extents_of(node.outputs[0]) == self.before)


class Reshaped(Move):
    def __init__(self, before: Shape, after: Shape) -> None:
        self.before, self.after = before, after
        self.groups = _groups(before, after)

    def _shape(self, shape: Shape) -> Shape | None:
        """The shape after the move of a value that is broadcast to the one before it."""
        shape = (*(1,) * (len(self.before) - len(shape)), *shape)
        if len(shape) > len(self.before):
            return None
        found: list[int] = []
        for first, second in self.groups:
            part, whole = shape[slice(*first)], self.before[slice(*first)]
            if part != whole and set(part) - {1}:
                return None
            found += self.after[slice(*second)] if part == whole else [1] * (second[1] - second[0])
        return tuple(found)

    def constant(self, array: Array) -> Array | None:
        shape = array.shape if array.size == 1 and array.ndim <= len(self.after) else self._shape(array.shape)
        return None if shape is None else array.reshape(shape)

    def axis(self, axis: int) -> int | None:
        for first, second in self.groups:
            if first[0] <= axis < first[1]:
                return second[0] if first[1] - first[0] == second[1] - second[0] == 1 else None
        return None

    def make(self, make: Maker, value: ir.Value) -> ir.Value | None:
        shape = extents_of(value)
        wanted = None if shape is None else self._shape(shape)
        return None if shape is None or wanted is None else reshape(make, value, shape, wanted)

    def undone(self, node: ir.Node) -> bool:
        return is_op(node, *RESHAPES) and (extents_of(node.inputs[0]), extents_of(node.outputs[0])) == (
            self.after,
            self.before,
        )


def _groups(before: Shape, after: Shape) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Ranges of axes of two shapes that hold the same elements, as short as they can be."""
    firsts = {size: place for place, size in reversed(list(enumerate(accumulate(before, int.__mul__), 1)))}
    found, last = [], (0, 0)
    for place, size in enumerate(accumulate(after, int.__mul__), 1):
        if size in firsts and firsts[size] > last[0]:
            found.append(((last[0], firsts[size]), (last[1], place)))
            last = firsts[size], place
    if not found:
        return [((0, len(before)), (0, len(after)))]
    (first, second) = found[-1]  # axes of 1 at the end belong to the last
    return [*found[:-1], ((first[0], len(before)), (second[0], len(after)))]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a value comes to be there moved: what it takes, and what goes."""

    build: Callable[[Maker], ir.Value | None]
    added: int = 0
    removed: int = 0
    nodes: tuple[ir.Node, ...] = ()


def _plan(value: ir.Value, move: Move, steps: int = MOST_STEPS) -> _Plan | None:
    array = array_of(value)
    if array is not None:
        moved = move.constant(array)
        return None if moved is None else _Plan(lambda make: make.constant(moved, "moved"))
    node = value.producer()
    is_own = only_reader(value) is not None
    if node is not None and move.undone(node) and node.inputs[0] is not None:
        source = node.inputs[0]
        return _Plan(lambda _: source, removed=int(is_own), nodes=(node,) if is_own else ())
    if node is not None and is_own and steps and move.through(node):
        inner = _through(node, move, steps)
        if inner is not None:
            return inner
    if move.make(Maker(), value) is None:
        return None
    return _Plan(lambda make: move.make(make, value), added=1)


def _through(node: ir.Node, move: Move, steps: int) -> _Plan | None:
    """The node, on moved inputs."""
    moved = node.inputs if is_op(node, *ON_ALL, "Concat") else node.inputs[:1]
    plans: dict[ir.Value, _Plan] = {}  # one for a value that is read twice
    for value in moved:
        plan = None if value is None else plans.get(value) or _plan(value, move, steps - 1)
        if value is None or plan is None:
            return None
        plans[value] = plan
    attributes = dict(node.attributes)
    if is_op(node, *ALONG, "Concat"):
        place = move.axis(attribute(node, "axis", -1) % len(move.before))
        attributes["axis"] = ir.AttrInt64("axis", place if place is not None else -1)

    def build(make: Maker) -> ir.Value | None:
        values = {value: plan.build(make) for value, plan in plans.items()}
        inputs = [None if value is None else values[value] for value in moved]
        made = make.tape.op(node.op_type, [*inputs, *node.inputs[len(moved) :]], attributes, domain=node.domain)
        made.type = node.outputs[0].type
        set_extents(made, move.after)
        return made

    kept = plans.values()
    nodes = (node, *(each for plan in kept for each in plan.nodes))
    return _Plan(build, sum(plan.added for plan in kept), sum(plan.removed for plan in kept), nodes)


def _cancelled(node: ir.Node, move: Move) -> Match | None:
    """The move of a node done above it, where fewer are left."""
    value = node.inputs[0]
    above = None if value is None else value.producer()
    if value is None or above is None or not move.through(above):
        return None
    plan = _plan(value, move)
    if plan is None or plan.added >= plan.removed + 1 or not plan.removed:
        return None
    (found, result) = (plan, node.outputs[0])

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = found.build(make)
        if made is None:
            raise ValueError("a plan is made of what can be built")
        return {result: made}

    return Match((node, *dict.fromkeys(found.nodes)), build)


def merge_transposes(node: ir.Node) -> Match | None:
    """Two transposes, one after the other, are one; where they undo each other, none."""
    first = producer(node.inputs[0], "Transpose") if is_op(node, "Transpose") else None
    outer = attribute(node, "perm")
    inner = None if first is None else attribute(first, "perm")
    if first is None or outer is None or inner is None:
        return None
    source, order = first.inputs[0], [inner[axis] for axis in outer]

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        if source is not None and order == sorted(order):
            return {node.outputs[0]: source}
        return {node.outputs[0]: make.op("Transpose", source, perm=order)}

    return Match((node, first), build)


def cancel_transposes(node: ir.Node) -> Match | None:
    """A transpose that another takes back, with ops between them that do not mind: both go."""
    shape = extents_of(node.inputs[0]) if is_op(node, "Transpose") else None
    order = attribute(node, "perm", range(len(shape or ()))[::-1])
    if shape is None or sorted(order) != list(range(len(shape))):
        return None
    return _cancelled(node, Transposed(shape, order))


def cancel_reshapes(node: ir.Node) -> Match | None:
    """A reshape that another takes back, with ops between them that do not mind: both go."""
    before = extents_of(node.inputs[0]) if is_op(node, *RESHAPES) else None
    after = extents_of(node.outputs[0])
    if before is None or after is None or 0 in before:
        return None
    return _cancelled(node, Reshaped(before, after))


def join_transposes(node: ir.Node) -> Match | None:
    """An op whose inputs are all transposed alike: one transpose, after it."""
    values = [value for value in node.inputs if value is not None and array_of(value) is None]
    shape = extents_of(node.outputs[0]) if is_op(node, *ON_ALL, "Concat") else None
    makers = [producer(value, "Transpose") for value in dict.fromkeys(values)]
    if shape is None or len(makers) < 2 or any(maker is None for maker in makers):
        return None
    orders = {tuple(attribute(maker, "perm", ())) for maker in makers if maker is not None}
    order = orders.pop()
    if orders or len(order) != len(shape) or any(only_reader(value) is None for value in dict.fromkeys(values)):
        return None
    back = [order.index(axis) for axis in range(len(order))]
    plan = _through(node, Transposed(shape, back), MOST_STEPS)
    if plan is None or plan.added:
        return None
    found = plan

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        made = found.build(make)
        return {node.outputs[0]: make.op("Transpose", made, perm=list(order), shape=shape)}

    return Match(tuple(dict.fromkeys(found.nodes)), build)


def transpose_before_split(node: ir.Node) -> Match | None:
    """Parts that are all transposed alike: one transpose, before they are cut."""
    value, shape = (node.inputs[0], extents_of(node.inputs[0])) if is_op(node, "Split") else (None, None)
    readers = [only_reader(output, "Transpose") for output in node.outputs] if shape is not None else []
    orders = {tuple(attribute(reader, "perm", ())) for reader in readers if reader is not None}
    if value is None or shape is None or len(readers) < 2 or None in readers or len(orders) != 1:
        return None
    order = list(orders.pop())
    if len(order) != len(shape) or (len(node.inputs) > 1 and numbers_of(node.inputs[1]) is None):
        return None
    found = [reader for reader in readers if reader is not None]
    if not all(extents_of(reader.outputs[0]) for reader in found):
        return None

    def build(make: Maker) -> Mapping[ir.Value, ir.Value]:
        turned = make.op("Transpose", value, perm=order, shape=tuple(shape[axis] for axis in order))
        attributes = {name: each.value for name, each in node.attributes.items()}
        attributes["axis"] = order.index(attribute(node, "axis", 0) % len(shape))
        shapes = [extents_of(reader.outputs[0]) or () for reader in found]
        parts = make.ops("Split", turned, *node.inputs[1:], shapes=shapes, **attributes)
        return {reader.outputs[0]: part for reader, part in zip(found, parts, strict=True)}

    return Match((node, *found), build)
