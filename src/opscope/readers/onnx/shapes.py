"""The shapes that a model does not state, inferred by the `onnx` package on a skeleton without weights.

`onnx` is imported only if it is needed: it takes longer to load than most models take to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...core.errors import ModelError, printable
from ...graph.graph import Note
from .model import Argument, Body, Model, Node, Value
from .parse import parse_model
from .quick import quick_shapes
from .wire import Wire

_ROUNDS = 3  # each carries shapes out of one more level of loops


def resolve_shapes(model: Model, wire: Wire) -> tuple[Model, tuple[Note, ...]]:
    """The model with every shape that can be known, and a note if inference failed."""
    quick = None if _is_settled(model.body) else quick_shapes(model.body)
    if quick is not None:
        return replace(model, body=quick), ()
    for _ in range(_ROUNDS):
        if _is_settled(model.body):
            break
        inferred, problem = _infer(model, wire)
        if inferred is None:
            return model, (Note("shape-inference", f"some shapes could not be inferred: {problem}"),)
        filled, gained = _fill_loops(_adopt(model.body, inferred.body))
        model = replace(model, body=filled)
        if not gained:
            break
    return model, ()


def _is_settled(body: Body) -> bool:
    """Whether each tensor that something reads has a shape and a type."""
    used = set(used_names(body))
    return all(_is_known(body, node, used) for node in body.nodes)


def _is_known(body: Body, node: Node, used: set[str]) -> bool:
    for name in node.outputs:
        if name in used:
            value = body.values.get(name)
            if value is None or not value.is_settled:
                return False
    return all(_is_settled(inner) for _, inner in node.bodies())


def used_names(body: Body) -> Iterator[str]:
    """What the body's nodes read, bodies within included, and what it returns."""
    for node in body.nodes:
        yield from node.inputs
        for _, inner in node.bodies():
            yield from used_names(inner)
    for value in body.outputs:
        yield value.name


def _infer(model: Model, wire: Wire) -> tuple[Model | None, str]:
    from onnx.shape_inference import InferenceError, infer_shapes

    from .skeleton import encode_model

    skeleton = encode_model(model, wire)
    try:
        content = infer_shapes(skeleton, data_prop=True).SerializeToString()
        return parse_model(Wire(content, wire.source), 0, len(content)), ""
    except (InferenceError, RuntimeError, ValueError, TypeError, ModelError) as error:
        first_line = next(iter(str(error).splitlines()), "no reason given")
        return None, printable(first_line, 200)


def _adopt(body: Body, inferred: Body) -> Body:
    """The body with the values of its inferred twin. Nodes with bodies stand in both in the same order."""
    twins = iter([node for node in inferred.nodes if any(True for _ in node.bodies())])
    nodes = [_adopt_bodies(node, twins) for node in body.nodes]
    values = dict(body.values)
    for name, value in inferred.values.items():
        if name not in values or not values[name].is_settled:
            # The twin's offsets are not this file's.
            values[name] = value._replace(start=0, end=0)
    return replace(body, nodes=nodes, values=values)


def _adopt_bodies(node: Node, twins: Iterator[Node]) -> Node:
    bodies = dict(node.bodies())
    if not bodies:
        return node
    twin = dict(next(twins).bodies())
    adopted = {name: Argument(_adopt(body, twin[name])) for name, body in bodies.items()}
    return node._replace(arguments={**node.arguments, **adopted})


def _fill_loops(body: Body) -> tuple[Body, bool]:
    """Shapes that a Loop hands round unchanged, and whether there were any new ones.

    `onnx` leaves them open, since a body could change them; here the body says that it does not.
    """
    values = dict(body.values)
    nodes: list[Node] = []
    gained = False
    for node in body.nodes:
        inner_bodies: dict[str, Argument] = {}
        for name, inner in node.bodies():
            filled, learned = _fill_loops(inner)
            inner_bodies[name] = Argument(filled)
            gained |= learned
            if node.op_type == "Loop":
                gained |= _carry_out(node, filled, values)
        nodes.append(node._replace(arguments={**node.arguments, **inner_bodies}) if inner_bodies else node)
    return replace(body, nodes=nodes, values=values), gained


def _carry_out(node: Node, inner: Body, values: dict[str, Value]) -> bool:
    """Give the loop's final values the shapes of the body's; inputs 0 and 1, output 0 are counter and condition."""
    gained = False
    for name, before, after in zip(node.outputs, inner.inputs[2:], inner.outputs[1:], strict=False):
        value = inner.values.get(after.name, after)
        unknown = name not in values or not values[name].is_settled
        if name and unknown and value.is_settled and before.shape == value.shape:
            values[name] = value._replace(name=name)
            gained = True
    return gained
