"""Samples put together: ops that stand there once for each sample, as one of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from ..rule import Maker, Match, array_of, attribute, is_op, producer, shape_of
from .axes import Apart, kept_apart, remade

Values = tuple[ir.Value | None, ...]  # the same value of each sample
Nodes = tuple[ir.Node, ...]  # the same op of each sample


@dataclass(frozen=True, slots=True)
class _Held:
    """A value of all samples that is there, or that a Concat makes."""

    whole: ir.Value | None  # None: samples are to be joined
    axis: int | None  # along which samples lie in it; None: it is the same for each


def join_batch(node: ir.Node) -> Match | None:
    """Results of the same ops on each of some samples, joined, as those ops on the samples joined."""
    values = tuple(node.inputs) if is_op(node, "Concat") else ()
    shape = shape_of(node.outputs[0])
    if len(values) < 2 or not shape or _same_ops(values) is None:
        return None
    samples = _Samples(values)
    if samples.axes.get(values) != attribute(node, "axis") % len(shape):
        return None
    pattern = {node: None, **{each: None for nodes in samples.needed for each in nodes}}
    inner = [value for nodes in samples.needed for each in nodes for value in each.outputs]
    if any(value.is_graph_output() or not pattern.keys() >= set(value.consumers()) for value in inner):
        return None  # something reads a sample alone
    given = "x".join(map(str, shape_of(values[0]) or ()))
    group = f"samples({len(values)} of {given})"
    return Match(tuple(pattern), lambda make: {node.outputs[0]: samples.made(make)}, group)


@dataclass(slots=True)
class _Samples:
    """Ops that are the same for each sample, from the last values that are joined up to where they differ."""

    last: Values
    held: dict[Values, _Held] = field(default_factory=dict)
    apart: dict[Nodes, Apart] = field(default_factory=dict)
    axes: dict[Values, int] = field(default_factory=dict)  # of what ops give
    needed: list[Nodes] = field(default_factory=list)  # in the order in which they run

    def __post_init__(self) -> None:
        for nodes in self._ops():
            found = self._kept_apart(nodes)
            if found is not None:
                self.apart[nodes] = found
                self.axes.update(zip(_results(nodes), found.outputs, strict=True))
        todo, needed = [self.last], set[Nodes]()
        while todo:
            same = _same_ops(todo.pop())
            if same is not None and same in self.apart and same not in needed:
                needed.add(same)
                todo += [operands for operands in _operands(same) if operands in self.axes]
        self.needed = [nodes for nodes in self.apart if nodes in needed]

    def _ops(self) -> list[Nodes]:
        """All that may be the same for each sample, in the order in which they run."""
        found: dict[Nodes, None] = {}
        todo, seen = [self.last], set[Values]()
        while todo:
            values = todo.pop()
            nodes = None if values in seen or self._hold(values) else _same_ops(values)
            seen.add(values)
            if nodes is not None:
                found[nodes] = None
                todo += _operands(nodes)
        graph = next(iter(found))[0].graph if found else ()
        place = {node: number for number, node in enumerate(graph or ())}
        return sorted(found, key=lambda nodes: place[nodes[0]])

    def _hold(self, values: Values) -> bool:
        """Whether a value of all samples is there already."""
        first, split = values[0], producer(values[0], "Split")
        arrays = [array_of(value) for value in values]
        if all(value is first for value in values) or (
            arrays[0] is not None and all(each is not None and np.array_equal(each, arrays[0]) for each in arrays)
        ):
            self.held[values] = _Held(first, None)
        elif split is not None and tuple(split.outputs) == values and len({shape_of(value) for value in values}) == 1:
            axis = int(attribute(split, "axis", 0)) % max(len(shape_of(first) or ()), 1)
            self.held[values] = _Held(split.inputs[0], axis)
        return values in self.held

    def _kept_apart(self, nodes: Nodes) -> Apart | None:
        given: list[int | None] = []
        for operands in _operands(nodes):
            if operands not in self.held and operands not in self.axes:
                if not _can_join(operands):
                    return None
                self.held[operands] = _Held(None, 0)
            given.append(self.axes[operands] if operands in self.axes else self.held[operands].axis)
        found = kept_apart(nodes[0], given, 1)
        for value, before, after in zip(nodes[0].inputs, given, found.inputs if found else (), strict=False):
            if before is None and after is not None and array_of(value) is None:
                return None  # what all samples read would have to be there once for each
        return found

    def made(self, make: Maker) -> ir.Value:
        """The value that was joined last, from a batch."""
        count = len(self.last)
        made: dict[Values, ir.Value] = {}
        for nodes in self.needed:
            inputs = []
            for operands, axis in zip(_operands(nodes), self.apart[nodes].inputs, strict=True):
                value = made.get(operands) or self._whole(make, operands, axis)
                if operands in self.held and self.held[operands].whole is None:
                    made[operands] = value  # type: ignore[assignment]
                inputs.append(value)
            results = remade(make, nodes[0], inputs, self.apart[nodes], lambda extent: extent * count)
            made.update(zip(_results(nodes), results, strict=True))
        return made[self.last]

    def _whole(self, make: Maker, operands: Values, axis: int | None) -> ir.Value | None:
        held = self.held[operands]
        if held.whole is None and operands[0] is not None:
            shape = list(shape_of(operands[0]) or ())
            shape[0] *= len(operands)
            return make.op("Concat", *operands, axis=0, shape=tuple(shape))
        array = array_of(held.whole) if held.axis is None and axis is not None else None
        return held.whole if array is None else make.constant(np.concatenate([array] * len(operands), axis), "samples")


def _operands(nodes: Nodes) -> list[Values]:
    return list(zip(*(node.inputs for node in nodes), strict=True))


def _results(nodes: Nodes) -> Iterator[Values]:
    return zip(*(node.outputs for node in nodes), strict=True)


def _same_ops(values: Values) -> Nodes | None:
    """The ops that make values, one each, where they are of one kind."""
    nodes = tuple(node for value in values if value is not None and (node := value.producer()) is not None)
    if len(set(nodes)) < len(values) or len({_key(node) for node in nodes}) > 1:
        return None
    return nodes if len({value.index() for value in values if value is not None}) == 1 else None


def _key(node: ir.Node) -> tuple[object, ...]:
    attributes = sorted((name, str(each.value)) for name, each in node.attributes.items())
    return node.domain, node.op_type, len(node.inputs), len(node.outputs), id(node.graph), tuple(attributes)


def _can_join(values: Values) -> bool:
    """Whether values of samples can be joined along their first axis."""
    shapes = {shape_of(value) for value in values}
    return bool(len(shapes) == 1 and all(shapes) and all(array_of(value) is None for value in values))
