"""Constant nodes turned into constants, names checked, and nodes sorted topologically."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from struct import pack

from ...core.errors import ModelError, printable
from .model import MAX_ELEMENTS, Body, Constant, Element, Node, map_bodies


def lift_constants(body: Body) -> Body:
    """Return the body, and its subgraphs, with each Constant node turned into a constant."""
    constants = dict(body.constants)
    nodes: list[Node] = []
    for node in body.nodes:
        constant = _constant(node) if node.op_type == "Constant" and not node.domain else None
        if constant is None:
            nodes.append(map_bodies(node, lift_constants))
        else:
            constants[constant.name] = constant  # of several with one name the last counts, as in ONNX Runtime
    return replace(body, nodes=nodes, constants=constants)


def _constant(node: Node) -> Constant | None:
    """Return the value of a Constant node from whichever attribute holds it; None if it was too long to keep."""
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
    integers = [item for item in items if isinstance(item, int)]
    if key in ("value_int", "value_ints") and len(integers) == len(items):
        return _new_constant(name, dims, Element.INT64, pack(f"<{len(integers)}q", *integers), tuple(integers))
    floats = [item for item in items if isinstance(item, int | float)]
    if key in ("value_float", "value_floats") and len(floats) == len(items):
        return _new_constant(name, dims, Element.FLOAT, pack(f"<{len(floats)}f", *floats), None)
    if key == "value_strings":
        return Constant(name, dims, Element.STRING, sum(len(str(item).encode()) for item in items))
    return None


def _new_constant(
    name: str, dims: tuple[int, ...], element: Element, content: bytes, integers: tuple[int, ...] | None
) -> Constant:
    return Constant(name, dims, element, len(content), integers=integers, content=content)


def order_nodes(body: Body, source: str) -> Body:
    """Return the body, and its subgraphs, with every node after the nodes whose outputs it reads.

    ONNX demands this order; a file that breaks it is sorted. A tensor that is read but never written, one that is
    written twice, and a cycle are errors.
    """
    return _Orderer(source).order_body(body)


class _Orderer:
    """Tracks the visible names: those of the current body and of the bodies around it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.visible: set[str] = set()

    def order_body(self, body: Body) -> Body:
        """Sort one body, then its subgraphs, while the names they can see are in `visible`."""
        own = {value.name for value in body.inputs} | set(body.constants)
        own -= self.visible  # removed again below: names of the outer body must stay
        self.visible |= own
        # Subgraphs may read names of the bodies around them, so a name is checked against all visible ones.
        producers = self.find_producers(body)
        nodes: Sequence[Node] = body.nodes
        if not self.in_order(nodes):
            nodes = self.topological_order(nodes, producers)
        written: list[str] = []
        out: list[Node] = []
        for node in nodes:
            out.append(map_bodies(node, self.order_body))
            written.extend(node.outputs)
            self.visible.update(node.outputs)
        self.check_outputs(body)
        self.visible.difference_update(own, written)
        return replace(body, nodes=out)

    def find_producers(self, body: Body) -> dict[str, int]:
        """Return the index of the node that writes each tensor; a second writer is an error."""
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
        """Whether each node reads only tensors written before it; `visible` is not changed."""
        seen: set[str] = set()
        for node in nodes:
            for name in _reads(node):
                if name not in seen and name not in self.visible:
                    return False
            seen.update(node.outputs)
        return True

    def topological_order(self, nodes: Sequence[Node], producers: dict[str, int]) -> list[Node]:
        """Kahn's algorithm; among the nodes that are ready, the first one in the file goes first.

        Nodes [C reads b; B writes b, reads a; A writes a] wait for 1, 1 and 0 inputs: A is ready, then B, then C.
        """
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
            raise self.cycle_error(nodes, waits, producers)
        return out

    def cycle_error(self, nodes: Sequence[Node], waits: list[int], producers: dict[str, int]) -> ModelError:
        """Return an error that names a node and a tensor on a cycle."""
        index = next(index for index, count in enumerate(waits) if count)
        seen: set[int] = set()
        while index not in seen:  # follow unmet inputs backwards; the first node met twice is on a cycle
            seen.add(index)
            name, index = self.unmet_input(nodes[index], waits, producers)
        return self.error(nodes[index], f"waits for itself: tensor {printable(name)!r} is part of a cycle")

    def unmet_input(self, node: Node, waits: list[int], producers: dict[str, int]) -> tuple[str, int]:
        """Return one input of the node that is still waited for, and the node that writes it."""
        return next((name, producers[name]) for name in _reads(node) if name in producers and waits[producers[name]])

    def check_outputs(self, body: Body) -> None:
        for value in body.outputs:
            if value.name not in self.visible:
                problem = f"output {printable(value.name)!r} is written by no node"
                raise ModelError(self.source, f"graph {printable(body.name)!r}", problem)

    def error(self, node: Node, problem: str) -> ModelError:
        return ModelError(self.source, f"{node.location} ({printable(node.label)})", problem)


def _reads(node: Node) -> Iterator[str]:
    """Yield the tensors a node reads, including those its subgraphs capture from outside."""
    for name in node.inputs:
        if name:
            yield name
    for _, body in node.bodies():
        own = {value.name for value in body.inputs} | set(body.constants)
        own.update(name for inner in body.nodes for name in inner.outputs)
        for inner in body.nodes:
            yield from (name for name in _reads(inner) if name not in own)
        yield from (value.name for value in body.outputs if value.name not in own)
