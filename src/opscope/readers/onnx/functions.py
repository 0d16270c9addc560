"""Calls of the model's own functions replaced by the functions' nodes, so that every op is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core.errors import ModelError, printable
from .model import Argument, Body, Function, Model, Node, Reference, map_bodies
from .parse import MAX_DEPTH

_MAX_MADE = 200_000


def inline_functions(model: Model, source: str) -> Model:
    """The model without functions: their nodes stand where they were called."""
    if not model.functions:
        return model
    inliner = _Inliner(model.functions, source)
    opsets = {domain: version for function in model.functions.values() for domain, version in function.opsets.items()}
    body = inliner.body(model.body, 0)
    return replace(model, body=body, functions={}, opsets=opsets | dict(model.opsets))


class _Inliner:
    """Expands calls depth first; counts what it makes, because n small functions can call for 2**n nodes."""

    def __init__(self, functions: Mapping[tuple[str, str, str], Function], source: str) -> None:
        self.functions = functions
        self.source = source
        self.made = 0

    def body(self, body: Body, depth: int) -> Body:
        return replace(body, nodes=self.nodes(body.nodes, depth))

    def nodes(self, nodes: Sequence[Node], depth: int) -> list[Node]:
        self.made += len(nodes) if depth else 0
        if self.made > _MAX_MADE:
            raise ModelError(self.source, nodes[0].location, f"functions expand to more than {_MAX_MADE:,} nodes")
        out: list[Node] = []
        for node in nodes:
            function = self.functions.get((node.domain, node.op_type, node.overload))
            if function is not None:
                out.extend(self.call(node, function, depth))
            else:
                out.append(map_bodies(node, lambda inner: self.body(inner, depth)))
        return out

    def call(self, call: Node, function: Function, depth: int) -> list[Node]:
        if depth >= MAX_DEPTH:
            problem = (
                f"function {printable(function.name)!r} is nested deeper than {MAX_DEPTH} calls; does it call itself?"
            )
            raise ModelError(self.source, call.location, problem)
        instance = _Instance(call, function)
        return self.nodes([instance.node(node) for node in function.nodes], depth + 1)


class _Instance:
    """One call of one function: its names and attributes made those of the caller."""

    def __init__(self, call: Node, function: Function) -> None:
        self.call = call
        self.defaults = function.defaults
        made = {name: f"{name}@{call.location}" for node in function.nodes for name in node.outputs if name}
        given = dict.fromkeys(function.inputs, "") | dict(zip(function.inputs, call.inputs, strict=False))
        taken = {inner: outer for inner, outer in zip(function.outputs, call.outputs, strict=False) if outer}
        self.names = made | taken | given

    def node(self, node: Node) -> Node:
        index = node.location.rsplit(" ", 1)[-1]
        return self.renamed(node, self.names)._replace(
            name=f"{self.call.name or self.call.op_type}/{node.name or f'{node.op_type}_{index}'}",
            location=f"{self.call.location} {node.location}",
        )

    def renamed(self, node: Node, names: Mapping[str, str]) -> Node:
        return node._replace(
            inputs=tuple(names.get(name, name) for name in node.inputs),
            outputs=tuple(names.get(name, name) for name in node.outputs),
            arguments=self.arguments(node, names),
        )

    def arguments(self, node: Node, names: Mapping[str, str]) -> dict[str, Argument]:
        out: dict[str, Argument] = {}
        for key, argument in node.arguments.items():
            value = argument.value
            if isinstance(value, Reference):
                # Neither given nor defaulted: the attribute is absent, and the operator's own default holds.
                found = self.call.arguments.get(value.name) or self.defaults.get(value.name)
                if found is not None:
                    out[key] = found
            elif isinstance(value, Body):
                out[key] = argument._replace(value=self.body(value, names))
            else:
                out[key] = argument
        return out

    def body(self, body: Body, names: Mapping[str, str]) -> Body:
        own = {value.name for value in body.inputs} | set(body.constants)
        own.update(name for node in body.nodes for name in node.outputs)
        seen = {inner: outer for inner, outer in names.items() if inner not in own}
        outputs = [value._replace(name=seen.get(value.name, value.name)) for value in body.outputs]
        return replace(body, nodes=[self.renamed(node, seen) for node in body.nodes], outputs=outputs)
