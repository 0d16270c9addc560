"""Constant nodes made constants, names checked, nodes put in an order in which they can run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from struct import pack

from ...core.errors import ModelError, printable
from .model import MAX_ELEMENTS, Body, Constant, Element, Node, map_bodies


def lift_constants(body: Body, source: str) -> Body:
    """The body, and bodies within, with each Constant node turned into a constant."""
    constants = dict(body.constants)
    nodes: list[Node] = []
    for node in body.nodes:
        constant = _constant(node) if node.op_type == "Constant" and not node.domain else None
        if constant is None:
            nodes.append(map_bodies(node, lambda inner: lift_constants(inner, source)))
        elif constant.name in constants:
            raise ModelError(source, node.location, f"tensor {printable(constant.name)!r} is defined twice")
        else:
            constants[constant.name] = constant
    return replace(body, nodes=nodes, constants=constants)


def _constant(node: Node) -> Constant | None:
    """The value of a Constant node, whichever of its attributes holds it; None if it is too long to have been kept."""
    if len(node.outputs) != 1 or len(node.arguments) != 1:
        return None
    name = node.outputs[0]
    ((key, argument),) = node.arguments.items()
    value = argument.value
    if isinstance(value, Constant):
        return value._replace(name=name)
    if isinstance(value, str):
        return Constant(name, (), Element.STRING, len(value.encode()))
    items = value if isinstance(value, tuple) else (value,)
    if len(items) >= MAX_ELEMENTS:
        return None
    dims = () if key in ("value_int", "value_float") else (len(items),)
    whole = [item for item in items if isinstance(item, int)]
    if key in ("value_int", "value_ints") and len(whole) == len(items):
        return _made(name, dims, Element.INT64, pack(f"<{len(whole)}q", *whole), tuple(whole))
    real = [item for item in items if isinstance(item, int | float)]
    if key in ("value_float", "value_floats") and len(real) == len(items):
        return _made(name, dims, Element.FLOAT, pack(f"<{len(real)}f", *real), None)
    if key == "value_strings":
        return Constant(name, dims, Element.STRING, sum(len(str(item).encode()) for item in items))
    return None


def _made(
    name: str, dims: tuple[int, ...], element: Element, content: bytes, integers: tuple[int, ...] | None
) -> Constant:
    return Constant(name, dims, element, len(content), integers=integers, content=content)


def order_nodes(body: Body, source: str) -> Body:
    """The body with every node after those it reads from, also within the bodies of its nodes.

    ONNX asks for that order; a file that breaks it is mended if it can be. One that reads a tensor nobody writes,
    writes one twice, or goes round in a circle is an error.
    """
    return _Orderer(source).ordered(body)


class _Orderer:
    """Keeps the names in sight: those of the body at hand and of the bodies around it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.visible: set[str] = set()

    def ordered(self, body: Body) -> Body:
        own = {value.name for value in body.inputs} | set(body.constants)
        own -= self.visible  # removed again below: names of the outer body must stay
        self.visible |= own
        producers = self.producers(body)
        nodes: Sequence[Node] = body.nodes
        if not self.in_order(nodes):
            nodes = self.sorted(nodes, producers)
        written: list[str] = []
        out: list[Node] = []
        for node in nodes:
            out.append(map_bodies(node, self.ordered))
            written.extend(node.outputs)
            self.visible.update(node.outputs)
        self.check_outputs(body)
        self.visible.difference_update(own, written)
        return replace(body, nodes=out)

    def producers(self, body: Body) -> dict[str, int]:
        producers: dict[str, int] = {}
        for index, node in enumerate(body.nodes):
            for name in node.outputs:
                if not name:
                    continue
                if name in producers or name in self.visible:
                    raise self.error(node, f"writes tensor {printable(name)!r}, which is already defined")
                producers[name] = index
        return producers

    def in_order(self, nodes: Sequence[Node]) -> bool:
        """Whether each node reads only what stands before it; `visible` is left as it was."""
        seen: set[str] = set()
        for node in nodes:
            for name in _reads(node):
                if name not in seen and name not in self.visible:
                    return False
            seen.update(node.outputs)
        return True

    def sorted(self, nodes: Sequence[Node], producers: dict[str, int]) -> list[Node]:
        """Kahn's algorithm; of the nodes that could run next, the one that stands first in the file does."""
        waits = [0] * len(nodes)
        readers: list[list[int]] = [[] for _ in nodes]
        for index, node in enumerate(nodes):
            for name in set(_reads(node)) - self.visible:
                if name not in producers:
                    raise self.error(node, f"reads tensor {printable(name)!r}, which nothing in the model provides")
                waits[index] += 1
                readers[producers[name]].append(index)
        ready = [index for index, count in enumerate(waits) if count == 0]
        heapify(ready)
        out: list[Node] = []
        while ready:
            index = heappop(ready)
            out.append(nodes[index])
            for reader in readers[index]:
                waits[reader] -= 1
                if waits[reader] == 0:
                    heappush(ready, reader)
        if len(out) < len(nodes):
            raise self.cycle(nodes, waits, producers)
        return out

    def cycle(self, nodes: Sequence[Node], waits: list[int], producers: dict[str, int]) -> ModelError:
        index = next(index for index, count in enumerate(waits) if count)
        seen: set[int] = set()
        while index not in seen:  # walk back until a node comes round again: that one is on the circle
            seen.add(index)
            name, index = self.unmet(nodes[index], waits, producers)
        return self.error(nodes[index], f"waits for itself: tensor {printable(name)!r} is part of a cycle")

    def unmet(self, node: Node, waits: list[int], producers: dict[str, int]) -> tuple[str, int]:
        return next((name, producers[name]) for name in _reads(node) if name in producers and waits[producers[name]])

    def check_outputs(self, body: Body) -> None:
        for value in body.outputs:
            if value.name not in self.visible:
                problem = f"output {printable(value.name)!r} is written by no node"
                raise ModelError(self.source, f"graph {printable(body.name)!r}", problem)

    def error(self, node: Node, problem: str) -> ModelError:
        return ModelError(self.source, f"{node.location} ({printable(node.label)})", problem)


def _reads(node: Node) -> Iterator[str]:
    """The tensors a node reads, those its bodies take from around them included."""
    for name in node.inputs:
        if name:
            yield name
    for _, body in node.bodies():
        own = {value.name for value in body.inputs} | set(body.constants)
        own.update(name for inner in body.nodes for name in inner.outputs)
        for inner in body.nodes:
            yield from (name for name in _reads(inner) if name not in own)
        yield from (value.name for value in body.outputs if value.name not in own)
