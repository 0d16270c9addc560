"""Builds the Graph from a model whose nodes are sorted and whose shapes are inferred."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...core.errors import printable
from ...core.units import Bytes
from ...graph.graph import ABSENT, Attribute, DType, Note, Op, Role, Tensor
from .attributes import Site, no_attributes
from .model import Body, Constant, Node, Value, dtype_of
from .ops import CUSTOM, rule_of
from .origin import Lines


@dataclass(slots=True)
class Scope:
    """Tensor ids by name in one body, with a link to the enclosing body."""

    ids: dict[str, int]
    parent: Scope | None = None
    owner: str = ""  # name of the op whose body this is
    trips: int | None = 1

    def find(self, name: str) -> int:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.ids:
                return scope.ids[name]
            scope = scope.parent
        return ABSENT  # only for the empty name: `order_nodes` has checked all others


@dataclass(slots=True)
class Builder:
    """Collects ops, tensors and notes, body by body."""

    opsets: Mapping[str, int]
    lines: Lines
    ops: list[Op] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    integers: dict[int, tuple[int, ...]] = field(default_factory=dict)  # by tensor id
    counts: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # (code, text) → op names

    def add_body(self, body: Body, scope: Scope, input_role: Role) -> None:
        """Add the tensors and ops of one body, in order."""
        for value in body.inputs:
            if value.name not in body.constants and value.name not in scope.ids:
                scope.ids[value.name] = self._add(_tensor(body.values.get(value.name, value), input_role))
        for constant in body.constants.values():
            scope.ids[constant.name] = self._add_constant(constant)
        for node in body.nodes:
            self._add_op(node, body, scope)

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _add_constant(self, constant: Constant) -> int:
        stored = None if constant.stored_bytes is None else Bytes(constant.stored_bytes)
        tensor = Tensor(constant.name, constant.dims, dtype_of(constant.element), Role.CONSTANT, stored)
        number = self._add(tensor)
        if constant.integers is not None:
            self.integers[number] = constant.integers
        return number

    def _add_op(self, node: Node, body: Body, scope: Scope) -> None:
        """Add the op of one node, then the ops of its subgraphs."""
        inputs = tuple([scope.find(name) for name in node.inputs])
        outputs = tuple([self._output(name, body, scope) for name in node.outputs])
        name = node.name or f"{node.op_type}_{node.location.rsplit(' ', 1)[-1]}"
        op_type = f"{node.domain}:{node.op_type}" if node.domain else node.op_type
        rule = rule_of(node)
        if rule is None or rule is CUSTOM:
            rule = CUSTOM
            self._note("unknown-op", f"operator {printable(op_type)} has no known cost", name)
        elif rule.note:
            self._note("op", f"{op_type}: {rule.note}", name)
        attributes: Mapping[str, Attribute] = {}
        if rule.describe is not no_attributes:
            attributes = rule.describe(self._site(node, inputs, outputs))
        self.ops.append(
            Op(
                rule.kind_with(attributes),
                op_type,
                name,
                rule.canonical_inputs(inputs),
                tuple([number for number in outputs if number != ABSENT]),
                attributes,
                node.location,
                scope.owner,
                scope.trips,
                module=node.module,
                line=self.lines.shown(node.frame),
            )
        )
        bodies = dict(node.bodies())
        if node.op_type == "If" and len(bodies) > 1:
            self._note("both-branches", "both branches of If are counted, so its cost is an upper bound", name)
        for inner in bodies.values():
            trips = self._trips(node, inner, name)
            product = None if trips is None or scope.trips is None else trips * scope.trips
            kept = {own: scope.find(outer) for own, outer in _handed_on(node, inner) if outer}
            self.add_body(inner, Scope(kept, scope, name, product), Role.ACTIVATION)

    def _output(self, name: str, body: Body, scope: Scope) -> int:
        if not name:
            return ABSENT
        value = body.values.get(name)
        number = scope.ids[name] = self._add(_tensor(value or Value(name), Role.ACTIVATION))
        return number

    def _site(self, node: Node, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Site:
        tensors, integers = self.tensors, self.integers
        return Site(
            node,
            [None if number == ABSENT else tensors[number].shape for number in inputs],
            [None if number == ABSENT else tensors[number].shape for number in outputs],
            [integers.get(number) for number in inputs],
            self.opsets.get(node.domain, 1),
        )

    def _trips(self, node: Node, inner: Body, name: str) -> int | None:
        """Return how often a subgraph runs per run of its node; None, with a note, if it is unknown."""
        if inner.trips is None:
            text = f"how often {node.op_type} runs its body is not known; it is counted once"
            self._note("unknown-trips", text, name)
        return inner.trips

    # -- notes

    def _note(self, code: str, text: str, op: str) -> None:
        self.counts.setdefault((code, text), []).append(op)

    def notes(self) -> Iterator[Note]:
        """Yield one note per distinct text, with the number of ops it applies to."""
        for (code, text), ops in self.counts.items():
            times = f" ({len(ops)} ops)" if len(ops) > 1 else ""
            yield Note(code, f"{text}{times}", ops[0])


def _handed_on(node: Node, body: Body) -> Iterator[tuple[str, str]]:
    """Yield inputs of a loop's body that every trip hands on as they are, each with what the loop is given for it.

    Converters carry all that a body reads, weights too: `body(h, w) → (next h, Identity(w))`. Such a `w` is the
    loop's own operand, and a constant where that is one.
    """
    same = {each.outputs[0]: each.inputs[0] for each in body.nodes if each.op_type == "Identity" and each.outputs}
    if node.op_type == "Loop":
        carried = zip(node.inputs[2:], body.inputs[2:], body.outputs[1:], strict=False)
    elif node.op_type == "Scan" and len(node.inputs) == len(body.inputs):  # before opset 9 it also has lengths
        states = len(node.inputs) - node.integer("num_scan_inputs", 0)
        carried = zip(node.inputs[:states], body.inputs, body.outputs, strict=False)
    else:
        return
    for outer, own, out in carried:
        name = out.name
        while name in same and name != own.name:
            name = same[name]
        if name == own.name:
            yield own.name, outer


def _tensor(value: Value, role: Role) -> Tensor:
    size = None if value.stored_bytes is None else Bytes(value.stored_bytes)
    dtype = dtype_of(value.element)
    because = "strings have no fixed size" if dtype is DType.STRING and not value.because else value.because
    return Tensor(value.name, value.shape, dtype, role, size, because)
