"""Inlining of functions that the model defines, so that every op inside them is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core.errors import ModelError, printable
from .model import Argument, Body, Function, Model, Node, Reference, map_bodies
from .parse import MAX_DEPTH

_MAX_INLINED_NODES = 200_000


def inline_functions(model: Model, source: str) -> Model:
    """Return the model with every call of a function replaced by the function's nodes."""
    if not model.functions:
        return model
    inliner = _Inliner(model.functions, source)
    opsets = {domain: version for function in model.functions.values() for domain, version in function.opsets.items()}
    body = inliner.inline_body(model.body, 0)
    return replace(model, body=body, functions={}, opsets=opsets | dict(model.opsets))


class _Inliner:
    """Expands calls depth first and counts the nodes: n functions that each call the next one twice make 2**n."""

    def __init__(self, functions: Mapping[tuple[str, str, str], Function], source: str) -> None:
        self.functions = functions
        self.source = source
        self.inlined_count = 0

    def inline_body(self, body: Body, depth: int) -> Body:
        return replace(body, nodes=self.inline_nodes(body.nodes, depth))

    def inline_nodes(self, nodes: Sequence[Node], depth: int) -> list[Node]:
        self.inlined_count += len(nodes) if depth else 0  # depth 0 is the model's own graph
        if self.inlined_count > _MAX_INLINED_NODES:
            raise ModelError(
                self.source, nodes[0].location, f"functions expand to more than {_MAX_INLINED_NODES:,} nodes"
            )
        out: list[Node] = []
        for node in nodes:
            function = self.functions.get((node.domain, node.op_type, node.overload))
            if function is not None:
                out.extend(self.inline_call(node, function, depth))
            else:
                out.append(map_bodies(node, lambda inner: self.inline_body(inner, depth)))
        return out

    def inline_call(self, call: Node, function: Function, depth: int) -> list[Node]:
        if depth >= MAX_DEPTH:
            problem = (
                f"function {printable(function.name)!r} is nested deeper than {MAX_DEPTH} calls; does it call itself?"
            )
            raise ModelError(self.source, call.location, problem)
        instance = _Instance(call, function)
        return self.inline_nodes([instance.instantiate(node) for node in function.nodes], depth + 1)


class _Instance:
    """One call of one function; rewrites the function's tensor names and attributes for the caller.

    Function `F(x) → y: t = Relu(x); y = Exp(t)`, called as `b = F(a)` by node 7, becomes
    `t@node 7 = Relu(a); b = Exp(t@node 7)`.
    """

    def __init__(self, call: Node, function: Function) -> None:
        self.call = call
        self.defaults = function.defaults
        # Later entries win: a parameter keeps the caller's tensor, a result the caller's name, the rest is made unique.
        local = {name: f"{name}@{call.location}" for node in function.nodes for name in node.outputs if name}
        results = {inner: outer for inner, outer in zip(function.outputs, call.outputs, strict=False) if outer}
        # A trailing input may be left out of the call; its parameter becomes the empty name, ONNX's "absent".
        parameters = dict.fromkeys(function.inputs, "") | dict(zip(function.inputs, call.inputs, strict=False))
        self.names = local | results | parameters

    def instantiate(self, node: Node) -> Node:
        index = node.location.rsplit(" ", 1)[-1]
        return self.rename(node, self.names)._replace(
            name=f"{self.call.name or self.call.op_type}/{node.name or f'{node.op_type}_{index}'}",
            location=f"{self.call.location} {node.location}",
            module=self.call.module or node.module,
            frame=self.call.frame or node.frame,
        )

    def rename(self, node: Node, names: Mapping[str, str]) -> Node:
        return node._replace(
            inputs=tuple(names.get(name, name) for name in node.inputs),
            outputs=tuple(names.get(name, name) for name in node.outputs),
            arguments=self.resolve_arguments(node, names),
        )

    def resolve_arguments(self, node: Node, names: Mapping[str, str]) -> dict[str, Argument]:
        """Replace references to attributes of the call by their values."""
        out: dict[str, Argument] = {}
        for key, argument in node.arguments.items():
            value = argument.value
            if isinstance(value, Reference):
                # Neither the call nor the function gives a value: leave it out, and the operator's own default applies.
                found = self.call.arguments.get(value.name) or self.defaults.get(value.name)
                if found is not None:
                    out[key] = found
            elif isinstance(value, Body):
                out[key] = argument._replace(value=self.rename_body(value, names))
            else:
                out[key] = argument
        return out

    def rename_body(self, body: Body, names: Mapping[str, str]) -> Body:
        """Rename in a subgraph the tensors it captures from outside; a name it defines itself hides the outer one."""
        own = {value.name for value in body.inputs} | set(body.constants)
        own.update(name for node in body.nodes for name in node.outputs)
        captured = {inner: outer for inner, outer in names.items() if inner not in own}
        outputs = [value._replace(name=captured.get(value.name, value.name)) for value in body.outputs]
        return replace(body, nodes=[self.rename(node, captured) for node in body.nodes], outputs=outputs)
