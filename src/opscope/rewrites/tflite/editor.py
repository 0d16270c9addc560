"""The editor of TensorFlow Lite files: applies rules, names what they make, and keeps order and ports right."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import cast

from ...core.manifest import RewriteEntry
from ...options import Shapes
from ..catalogue import rule_of
from ..rewrite import NOTHING_GIVEN, RewriteContext, Site, Wanted, free_name
from . import file
from .file import Model
from .rule import Graph, Maker, Match, Op, Rule, Tensor, extents, is_alike, options

MOST_ROUNDS = 8  # over all operators: what a rule made can be the pattern of another site


def open_model(path: Path, shapes: Shapes | None = None) -> Model:
    """A model to change, with the shapes that are given and those that follow; the file stays as it is."""
    return file.read(path, shapes)


def save(model: Model, path: Path) -> None:
    """Write a model, whole or not at all; tensors and constants that nothing reads are left out if it was changed."""
    file.write(model, path)


def copy(model: Model) -> Model:
    """The model once more, to be changed on its own; weights are shared."""
    return file.duplicate(model)


def takes_whole(_: RewriteEntry) -> bool:
    return False


def sites(model: Model, entry: RewriteEntry, _given: RewriteContext = NOTHING_GIVEN) -> tuple[Site, ...]:
    """Where a rewrite applies; the model stays as it is."""
    rule = cast("Rule", rule_of(entry))
    return tuple(_site(match) for graph in model.graphs for match in _matches(graph, rule))


def apply(
    model: Model, entry: RewriteEntry, wanted: Wanted, _given: RewriteContext = NOTHING_GIVEN
) -> tuple[Model, tuple[Site, ...]]:
    """The model, changed wherever a rewrite fits and is wanted, and where that was."""
    rule = cast("Rule", rule_of(entry))
    done: list[Site] = []
    for graph in model.graphs:
        for _ in range(MOST_ROUNDS):
            round_ = list(_apply_round(graph, rule, entry.name, wanted))
            if not round_:
                break
            done += round_
            _sort(graph)
    model.is_changed |= bool(done)
    return model, tuple(done)


def _matches(graph: Graph, rule: Rule) -> Iterator[Match]:
    """Patterns that do not overlap, the first first."""
    taken: set[Op] = set()
    for op in list(graph.ops):
        match = None if op in taken else rule(op, graph)
        if match is not None and taken.isdisjoint(match.pattern):
            taken.update(match.pattern)
            yield match


def _apply_round(graph: Graph, rule: Rule, name: str, wanted: Wanted) -> Iterator[Site]:
    gone: set[Op] = set()
    for op in list(graph.ops):
        match = None if op in gone else rule(op, graph)
        if match is not None and wanted(_site(match)):
            yield _replace(graph, match, name, gone)


def _replace(graph: Graph, match: Match, rewrite: str, gone: set[Op]) -> Site:
    """Put what a match builds in the place of its pattern."""
    found, anchor, maker = _site(match), match.pattern[0], Maker()
    values = match.build(maker)
    _name(graph, maker, anchor.name, rewrite)
    graph.insert(anchor, maker.ops)
    for old, new in values.items():
        _take_place(graph, old, new, anchor)
    left = list(match.pattern)
    while dead := [op for op in left if not graph.is_needed(op)]:
        for op in dead:
            graph.remove(op)
        gone.update(dead)
        left = [op for op in left if op not in gone]
    kept = {id(op) for op in left}
    removed = tuple(name for op, name in zip(match.pattern, found.removed, strict=True) if id(op) not in kept)
    return Site(removed, found.group, tuple(op.name for op in maker.ops))


def _name(graph: Graph, maker: Maker, anchor: str, rewrite: str) -> None:
    """Names that say which operator and which rewrite they come from; no other has them."""
    taken = {tensor.name for op in graph.ops for tensor in (*op.outputs, *op.inputs) if tensor is not None}
    for constant in maker.constants:
        constant.name = free_name(f"{anchor}/{rewrite}/{constant.name}", taken)
    for op in maker.ops:
        for tensor in op.outputs:
            tensor.name = free_name(f"{anchor}/{rewrite}/{op.kind}", taken)


def _take_place(graph: Graph, old: Tensor, new: Tensor, anchor: Op) -> None:
    """Readers of a tensor read another; a port of the model stays the tensor that it is."""
    if not graph.is_result(old):
        graph.read_instead(old, new)
        return
    writer = graph.writer(old)
    if graph.writer(new) is None or graph.is_port(new) or not is_alike(old, new) or extents(old) != extents(new):
        maker = Maker()
        shape = maker.constant([int(extent) for extent in extents(old) or ()], name="shape")
        new = maker.op("RESHAPE", new, shape, like=old, options=options("ReshapeOptions"))
        _name(graph, maker, anchor.name, "port")
        graph.insert(anchor, maker.ops)
    if writer is not None:  # it goes, or its other results are read: what it writes here nobody reads
        lost = Tensor(f"{old.name}/before", old.table)
        writer.outputs = [lost if each is old else each for each in writer.outputs]
    graph.write_instead(new, old)


def _sort(graph: Graph) -> None:
    """Order operators so that each runs after those that it reads from, and else as they were."""
    place = {op: number for number, op in enumerate(graph.ops)}
    waits = {op: {place[w] for each in op.inputs if (w := graph.writer(each)) is not None} for op in graph.ops}
    readers: dict[int, list[Op]] = {}
    for op, before in waits.items():
        for number in before:
            readers.setdefault(number, []).append(op)
    ready = [place[op] for op in graph.ops if not waits[op]]
    heapify(ready)
    ordered: list[Op] = []
    while ready:
        number = heappop(ready)
        ordered.append(graph.ops[number])
        for op in readers.get(number, ()):
            waits[op].discard(number)
            if not waits[op]:
                heappush(ready, place[op])
    if len(ordered) == len(graph.ops):  # variables can make a circle
        graph.ops[:] = ordered


def _site(match: Match) -> Site:
    return Site(tuple(op.name for op in match.pattern), _group(match))


def _group(match: Match) -> str:
    """Types and shapes of what a match touches, or what it says itself."""
    return match.group or ";".join(
        f"{op.kind}({','.join(_shape(tensor) for tensor in op.inputs)})" for op in match.pattern
    )


def _shape(tensor: Tensor | None) -> str:
    shape = extents(tensor)
    return "" if shape is None else "x".join(map(str, shape))
