"""Walks a model's nodes in order and finds the type and shape of every tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, TypeGuard

from ....core.errors import ModelError, printable
from ....graph.kinds import KINDS, Family
from ...observed import Observed
from ..model import MAX_ELEMENTS, RUNTIME_TYPES, Body, Constant, Element, Model, Node, Value, dtype_of, packed_bytes
from ..ops import rule_of
from ..wire import Wire
from . import library
from .call import Call, Contradiction, Open, Operand, Shape
from .control import run_control
from .frame import Frame, Limits
from .rules import OF_SHAPES, shape_rule
from .sequences import run_sequence

if TYPE_CHECKING:
    from .call import Array

_MAX_FOLDED_BYTES = 16 << 20  # of a result that is larger than what it is computed from
# Their result differs from run to run, or (a pair of quantisation ops) marks its neighbours.
_NEVER_FOLDED = frozenset(
    {
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Bernoulli",
        "Multinomial",
        "QuantizeLinear",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
    }
)
# Runtimes fold products of constants too, but not all of them do: every multiply-accumulate of the model is counted.
_EXECUTED = frozenset({Family.CONTRACTION, Family.RECURRENT, Family.OPAQUE})


def resolve_shapes(
    model: Model, wire: Wire, *, are_given: bool = False, observed: Observed | None = None, folds: bool = True
) -> Model:
    """Return the model with the shape of every tensor, or why it is unknown; what is constant is folded.

    Raises:
        ModelError: `are_given`, shapes of inputs come from the user, and an operator does not take what follows.
    """
    interpreter = Interpreter(model.opsets, wire, are_given=are_given, observed=observed or {}, folds=folds)
    frame = Frame(wire, interpreter.limits, model.body.constants)
    return replace(model, body=interpreter.run_body(model.body, frame))


class Interpreter:
    """Resolves bodies; `control` calls it again for the bodies of nodes."""

    def __init__(
        self,
        opsets: Mapping[str, int],
        wire: Wire,
        *,
        are_given: bool = False,
        observed: Observed,
        folds: bool = True,
    ) -> None:
        self.opsets = opsets
        self.wire = wire
        self.are_given = are_given
        self.observed = observed
        self.folds = folds
        self.limits = Limits()
        self.trip: int | None = None  # of the loop that is followed as it was observed

    def run_body(self, body: Body, frame: Frame) -> Body:
        """Return the body with all its values; `frame` holds the inputs of a body of a node already."""
        for value in body.inputs:
            if value.name not in body.constants and value.name not in frame.operands:
                frame.operands[value.name] = _stated(body.values.get(value.name, value))
        for constant in body.constants.values():
            frame.operands[constant.name] = Operand(constant.element, constant.dims, is_constant=True)
        nodes = []
        for node in body.nodes:
            if frame.parent is not None:  # loops repeat bodies; the model's own nodes are looked at once
                self.limits.take_step(node.location)
            nodes.append(self.run_node(node, body, frame))
        return _with_values(replace(body, nodes=nodes), body, frame, folds=self.folds)

    def run_node(self, node: Node, body: Body, frame: Frame) -> Node:
        """Define the outputs of one node; return it with its bodies resolved."""
        call = Call(node, [frame.operand(name) if name else None for name in node.inputs], self._opset(node), frame)
        found: list[Operand] = []
        reason = ""
        try:
            if any(True for _ in node.bodies()):
                node, found = run_control(self, call, frame)
            else:
                found = self.outputs(call, body.values)
        except Open as why:
            reason = str(why)
            if isinstance(why, Contradiction) and not _are_complete(node, body.values):
                self.contradict(why, frame)
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            reason = f"{call.place} has attributes or operands that do not fit: {printable(str(error), 200)}"
        is_constant = _is_constant(call)
        seen = self._seen(node)
        for index, name in enumerate(node.outputs):
            if name:
                operand = found[index] if index < len(found) else Operand(because=reason)
                operand = self._best(operand, body.values.get(name), is_constant)
                if name in seen:
                    element, shape = seen[name]
                    operand = operand._replace(element=operand.element or element, shape=shape, because="")
                frame.operands[name] = operand
                frame.calls[name] = (call, index)
        return node

    def _seen(self, node: Node) -> dict[str, tuple[int, Shape]]:
        """The types and shapes that the outputs of a node had in a run; they count more than what was inferred."""
        runs = self.observed.get(node.location)
        if runs is None:
            return {}
        shapes = runs.same
        if shapes is None and self.trip is not None and self.trip < runs.count:
            shapes = runs.shapes[self.trip]
        names = [name for name in node.outputs if name]
        if shapes is None or len(shapes) != len(names):
            return {}
        elements = [RUNTIME_TYPES.get(word, 0) for word in runs.types]
        return dict(zip(names, zip(elements, shapes, strict=True), strict=True))

    def contradict(self, why: Contradiction, frame: Frame) -> None:
        """Note that a frame cannot run; if it is sure to run, and the user gave the shapes, that is an error."""
        uncertain: Frame | None = frame
        while uncertain is not None and uncertain.is_certain:
            uncertain = uncertain.parent
        if uncertain is not None:
            uncertain.contradiction = uncertain.contradiction or why
        elif self.are_given:
            place = f"{why.node.location} ({printable(why.node.label)})"
            problem = f"{why.problem}: the model cannot run with the shapes given"
            raise ModelError(self.wire.source, place, problem)

    def _opset(self, node: Node) -> int:
        return self.opsets.get(node.domain, 1)

    def outputs(self, call: Call, stated: Mapping[str, Value]) -> list[Operand]:
        """Return the outputs of a node by its rule; none if the file states them and there is no rule."""
        sequence = run_sequence(call)
        if sequence is not None:
            return sequence
        rule = shape_rule(call.node)
        if rule is not None:
            return list(rule(call))
        if _are_complete(call.node, stated):
            return []
        return library.infer(call, self.wire)

    def _best(self, found: Operand, stated: Value | None, is_constant: bool) -> Operand:
        """What was found; where that is nothing, what the file states."""
        element = found.element or (stated.element if stated is not None else 0)
        if found.items is not None or found.shape is not None:
            return found._replace(element=element, is_constant=is_constant or found.is_constant)
        if stated is not None and stated.is_tensor and stated.shape is not None:
            return Operand(element, stated.shape)
        return Operand(element, None, found.because or "the file does not give it")


def _are_complete(node: Node, values: Mapping[str, Value]) -> bool:
    """Whether the file states the types and shapes of all outputs of a node."""
    return all(name in values and values[name].is_complete for name in node.outputs if name)


def _stated(value: Value) -> Operand:
    return Operand(value.element, value.shape, "" if value.shape is not None else "the file does not give it")


def _is_constant(call: Call) -> bool:
    """Whether a node's outputs follow from constants and shapes alone."""
    node = call.node
    if node.domain or node.op_type in _NEVER_FOLDED or any(True for _ in node.bodies()):
        return False  # a branch reads more than the node's operands
    if node.op_type in OF_SHAPES:
        return True
    return all(operand is None or operand.is_constant for operand in call.operands)


def used_names(body: Body) -> Iterator[str]:
    """Yield the names that the body's nodes and their subgraphs read, and those the body returns."""
    for node in body.nodes:
        yield from node.inputs
        for _, inner in node.bodies():
            yield from used_names(inner)
    for value in body.outputs:
        yield value.name


def _with_values(body: Body, original: Body, frame: Frame, *, folds: bool) -> Body:
    """Set the values of all tensors; where asked for, turn what is constant into constants.

    Constants that only folded nodes read go too: the transpose of a weight is stored instead of the weight.
    """
    returned = {value.name for value in body.outputs}
    folded = [node for node in body.nodes if folds and _can_fold(node, returned, frame)]
    gone = {name for node in folded for name in node.outputs}
    kept = [node for node in body.nodes if not (node.outputs and node.outputs[0] in gone)] if gone else list(body.nodes)
    constants = dict(body.constants)
    if folded:
        used = set(used_names(replace(body, nodes=kept)))
        for name in {name for node in folded for name in node.inputs} - used:
            constants.pop(name, None)
        for name in (name for node in folded for name in node.outputs if name in used):
            constants[name] = _constant(name, frame)
    values = dict(body.values)
    for name, operand in frame.operands.items():
        if name not in constants and name not in original.constants:
            stated = values.get(name)
            start, end = (stated.start, stated.end) if stated is not None else (0, 0)
            is_tensor = operand.items is None and (stated is None or stated.is_tensor or operand.shape is not None)
            size = _sequence_bytes(operand)
            values[name] = Value(name, operand.element, operand.shape, is_tensor, start, end, operand.because, size)
    return replace(body, nodes=kept, constants=constants, values=values)


def _sequence_bytes(operand: Operand) -> int | None:
    """The size of all elements of a sequence; None for a tensor, or if one of them is unknown."""
    if operand.items is None or any(item.shape is None for item in operand.items):
        return None
    return sum(packed_bytes(item.shape or (), item.element) for item in operand.items)


def _can_fold(node: Node, returned: set[str], frame: Frame) -> bool:
    names = [name for name in node.outputs if name]
    if not names or any(True for _ in node.bodies()) or not returned.isdisjoint(names):
        return False
    rule = rule_of(node)
    if rule is None or KINDS[rule.kind].family in _EXECUTED:
        return False
    operands = [frame.operands[name] for name in names]
    if any(not operand.is_constant or operand.shape is None for operand in operands):
        return False
    if node.op_type in OF_SHAPES:
        return True
    made = sum(packed_bytes(operand.shape or (), operand.element) for operand in operands)
    read = [frame.operand(name) for name in node.inputs if name]
    stored = sum(packed_bytes(operand.shape or (), operand.element) for operand in read if operand.shape is not None)
    return made <= max(stored, _MAX_FOLDED_BYTES)


def _constant(name: str, frame: Frame) -> Constant:
    """A folded tensor; its elements are kept only if they were needed and are few integers."""
    operand, array = frame.operands[name], frame.arrays.get(name)
    dims = operand.shape or ()
    integers = None
    if _is_small_integer(array, operand):
        integers = tuple(int(item) for item in array.ravel().tolist())
    size = packed_bytes(dims, operand.element) if dtype_of(operand.element).bits else None
    return Constant(name, dims, operand.element, size, integers=integers)


def _is_small_integer(array: Array | Open | None, operand: Operand) -> TypeGuard[Array]:
    is_integer = operand.element in (Element.INT32, Element.INT64, Element.BOOL)
    return is_integer and array is not None and not isinstance(array, Open) and prod(array.shape) <= MAX_ELEMENTS
