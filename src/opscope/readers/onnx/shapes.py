"""Shape inference by the `onnx` package on a skeleton of the model without weights.

`onnx` is imported only when it is needed: loading it takes longer than reading most models.
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

_INFERENCE_ROUNDS = 3  # each round propagates shapes out of one more level of nested loops


def resolve_shapes(model: Model, wire: Wire) -> tuple[Model, tuple[Note, ...]]:
    """Return the model with every shape that can be inferred, and a note if inference failed."""
    # The built-in table answers for plain convolutional models; everything else needs `onnx`.
    quick = None if _is_complete(model.body) else quick_shapes(model.body)
    if quick is not None:
        return replace(model, body=quick), ()
    for _ in range(_INFERENCE_ROUNDS):
        if _is_complete(model.body):
            break
        inferred, problem = _infer(model, wire)
        if inferred is None:
            return model, (Note("shape-inference", f"some shapes could not be inferred: {problem}"),)
        filled, has_new = _propagate_loop_shapes(_merge_inferred(model.body, inferred.body))
        model = replace(model, body=filled)
        if not has_new:
            break
    return model, ()


def _is_complete(body: Body) -> bool:
    """Whether every tensor that is read has a shape and an element type."""
    used = set(used_names(body))
    return all(_has_known_outputs(body, node, used) for node in body.nodes)


def _has_known_outputs(body: Body, node: Node, used: set[str]) -> bool:
    for name in node.outputs:
        if name in used:
            value = body.values.get(name)
            if value is None or not value.is_complete:
                return False
    return all(_is_complete(inner) for _, inner in node.bodies())


def used_names(body: Body) -> Iterator[str]:
    """Yield the names that the body's nodes and their subgraphs read, and those the body returns."""
    for node in body.nodes:
        yield from node.inputs
        for _, inner in node.bodies():
            yield from used_names(inner)
    for value in body.outputs:
        yield value.name


def _infer(model: Model, wire: Wire) -> tuple[Model | None, str]:
    """Run `onnx` on the skeleton; return the parsed result, or None and the reason."""
    from onnx.shape_inference import InferenceError, infer_shapes

    from .skeleton import encode_model

    skeleton = encode_model(model, wire)
    try:
        content = infer_shapes(skeleton, data_prop=True).SerializeToString()
        return parse_model(Wire(content, wire.source), 0, len(content)), ""
    except (InferenceError, RuntimeError, ValueError, TypeError, ModelError) as error:
        first_line = next(iter(str(error).splitlines()), "no reason given")
        return None, printable(first_line, 200)


def _merge_inferred(body: Body, inferred: Body) -> Body:
    """Return the body with the values of its inferred copy.

    Stand-ins change the number of nodes, but nodes with subgraphs are in the same order in both.
    """
    twins = iter([node for node in inferred.nodes if any(True for _ in node.bodies())])
    nodes = [_merge_bodies(node, twins) for node in body.nodes]
    values = dict(body.values)
    for name, value in inferred.values.items():
        if name not in values or not values[name].is_complete:
            # Its offsets point into the inferred copy, not into this file.
            values[name] = value._replace(start=0, end=0)
    return replace(body, nodes=nodes, values=values)


def _merge_bodies(node: Node, twins: Iterator[Node]) -> Node:
    bodies = dict(node.bodies())
    if not bodies:
        return node
    twin = dict(next(twins).bodies())
    adopted = {name: Argument(_merge_inferred(body, twin[name])) for name, body in bodies.items()}
    return node._replace(arguments={**node.arguments, **adopted})


def _propagate_loop_shapes(body: Body) -> tuple[Body, bool]:
    """Set the shapes of loop-carried values that the body does not change; return whether any is new.

    `onnx` leaves them open because a body may change them from one iteration to the next.
    """
    values = dict(body.values)
    nodes: list[Node] = []
    has_new = False
    for node in body.nodes:
        inner_bodies: dict[str, Argument] = {}
        for name, inner in node.bodies():
            filled, has_inner_new = _propagate_loop_shapes(inner)
            inner_bodies[name] = Argument(filled)
            has_new |= has_inner_new
            if node.op_type == "Loop":
                has_new |= _copy_carried_shapes(node, filled, values)
        nodes.append(node._replace(arguments={**node.arguments, **inner_bodies}) if inner_bodies else node)
    return replace(body, nodes=nodes, values=values), has_new


def _copy_carried_shapes(node: Node, inner: Body, values: dict[str, Value]) -> bool:
    """Give the loop's final values the shapes of the body's outputs.

    Inputs 0 and 1 of the body are counter and condition, output 0 is the condition; carried values follow.
    """
    has_new = False
    for name, before, after in zip(node.outputs, inner.inputs[2:], inner.outputs[1:], strict=False):
        value = inner.values.get(after.name, after)
        unknown = name not in values or not values[name].is_complete
        if name and unknown and value.is_complete and before.shape == value.shape:
            values[name] = value._replace(name=name)
            has_new = True
    return has_new
