"""The editor of ONNX files: applies rules, names what they make, and keeps order, shapes and weights right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import onnx_ir as ir
from onnx_ir.passes import common

from ...core.errors import ModelError, ProfilerError, printable
from ...core.manifest import RewriteEntry
from ...options import Shapes
from ...readers import read_model
from ..catalogue import rule_of
from ..rewrite import NOTHING_GIVEN, WHOLE, RewriteContext, Site, Wanted, free_name
from .files import save
from .rule import OPEN, Maker, Match, Rule, WholeRule, is_open, set_extents

__all__ = ("apply", "copy", "open_model", "save", "sites", "takes_whole")  # as `rewrite.Editor` asks
MOST_ROUNDS = 8  # over all nodes: what a rule made can be the pattern of another site
_INFER = common.ShapeInferencePass(check_type=False, strict_mode=False)


def open_model(path: Path, shapes: Shapes | None = None) -> ir.Model:
    """A model to change, with shapes as far as they are fixed, there or here; the file stays as it is."""
    try:
        model = ir.load(path)
    except Exception as error:  # the package raises whatever its parser meets
        problem = f"cannot be changed ({_cause(error)}); expected a model of tensors and ops"
        raise ModelError(str(path), "", problem) from error
    for number, node in enumerate(model.graph):
        node.name = node.name or f"{node.op_type}_{number}"  # as our reader calls it, and profiles do
    common.NameFixPass()(model)
    if shapes:
        _fix_shapes(model, shapes)
    _INFER(model)
    if all(value.shape is not None and value.shape.is_static() for value in model.graph.inputs):
        _take_shapes(model, path, shapes)
    elif not shapes:
        with suppress(ProfilerError):  # more than the batch is open
            _take_extents(model, path)
    return model


def _cause(error: BaseException) -> str:
    """What the first of a chain of errors says; those after it say where. Requests to the package's users are left."""
    while error.__cause__ is not None:
        error = error.__cause__
    words = str(error).partition(". Please ")[0]
    return printable(words if isinstance(error, NotImplementedError) else f"{type(error).__name__}: {words}", 300)


def _fix_shapes(model: ir.Model, shapes: Shapes) -> None:
    """Set those of inputs; what the file says of other values was for open ones, and is inferred anew."""
    for value in model.graph.inputs:
        if (value.name or "") in shapes:
            value.shape = ir.Shape(shapes[value.name or ""])
    for node in model.graph.all_nodes():
        for value in node.outputs:
            value.shape = None


def _take_shapes(model: ir.Model, path: Path, shapes: Shapes | None) -> None:
    """Shapes that our own reader finds where the package's inference stops, as at operators of other domains."""
    known = {tensor.name: tensor.shape for tensor in read_model(path, shapes=shapes, folds=False).tensors}
    for node in model.graph:
        for value in node.outputs:
            shape = known.get(value.name or "")
            if shape is not None:
                value.shape = ir.Shape(shape)


def _take_extents(model: ir.Model, path: Path) -> None:
    """Shapes of a model whose batch is open, in which what grows with it is a multiple of OPEN.

    Read at other batches too, 1 among them: one that some ops take for another case has no such shapes.
    """
    batches = OPEN, 1, 2
    found = [read_model(path, batch=batch, folds=False).tensors for batch in batches]
    first, *others = ({tensor.name: tensor.shape for tensor in tensors} for tensors in found)
    for value in (*model.graph.inputs, *(each for node in model.graph for each in node.outputs)):
        name = value.name or ""
        shape = first.get(name)
        if shape is None or sum(map(is_open, shape)) > 1:
            continue
        grown = [tuple(extent // OPEN * batch if is_open(extent) else extent for extent in shape) for batch in batches]
        if grown[1:] == [other.get(name) for other in others]:
            names = value.shape if value.shape is not None and len(value.shape) == len(shape) else None
            set_extents(value, shape)
            if names is not None and value.shape is not None:
                for axis in (axis for axis, extent in enumerate(shape) if is_open(extent)):
                    value.shape[axis] = names[axis]


def copy(model: ir.Model) -> ir.Model:
    """The model once more, to be changed on its own; weights are shared."""
    return model.clone()


def takes_whole(entry: RewriteEntry) -> bool:
    """Whether a rewrite takes a model as a whole: to ask where it fits is to make it."""
    return _is_whole(rule_of(entry))


def sites(model: ir.Model, entry: RewriteEntry, context: RewriteContext = NOTHING_GIVEN) -> tuple[Site, ...]:
    """Where a rewrite applies; the model stays as it is."""
    rule = rule_of(entry)
    if _is_whole(rule):
        site = _apply_whole(copy(model), cast("WholeRule", rule), context)[1]
        return () if site is None else (site,)
    return tuple(_site(match) for match in _matches(model.graph, cast("Rule", rule)))


def apply(
    model: ir.Model, entry: RewriteEntry, wanted: Wanted, context: RewriteContext = NOTHING_GIVEN
) -> tuple[ir.Model, tuple[Site, ...]]:
    """The model, changed wherever a rewrite fits and is wanted, and where that was."""
    rule = rule_of(entry)
    if _is_whole(rule):
        changed, site = _apply_whole(model, cast("WholeRule", rule), context)
        return (model, ()) if site is None or not wanted(site) else (changed, (site,))
    done: list[Site] = []
    for _ in range(MOST_ROUNDS):
        round_ = list(_apply_round(model, cast("Rule", rule), entry.name, wanted))
        if not round_:
            break
        done += round_
        model.graph.sort()
    if done:
        common.RemoveUnusedNodesPass()(model)
        _INFER(model)
    return model, tuple(done)


def _is_whole(rule: object) -> bool:
    return getattr(rule, "is_whole", False)


def _apply_whole(model: ir.Model, rule: WholeRule, context: RewriteContext) -> tuple[ir.Model, Site | None]:
    before = _counted(model)
    changed = rule(model, context)
    common.NameFixPass()(changed)
    after = _counted(changed)
    removed, added = before - after, after - before
    if not removed and not added:
        return changed, None
    names = tuple(sorted(name for name, _ in removed)), tuple(sorted(name for name, _ in added))
    return changed, Site(names[0], WHOLE, names[1])


def _counted(model: ir.Model) -> Counter[tuple[str, str]]:
    """Nodes by name and operator: one that stays under its name with other inputs is taken for the same."""
    return Counter((node.name or "", node.op_type) for node in model.graph)


def _matches(graph: ir.Graph, rule: Rule) -> Iterator[Match]:
    """Patterns that do not overlap, the first first."""
    taken: set[ir.Node] = set()
    for node in list(graph):
        match = None if node in taken else rule(node)
        if match is not None and taken.isdisjoint(match.pattern):
            taken.update(match.pattern)
            yield match


def _apply_round(model: ir.Model, rule: Rule, name: str, wanted: Wanted) -> Iterator[Site]:
    for node in list(model.graph):
        match = None if node.graph is None else rule(node)  # one that is gone has no graph
        if match is not None and wanted(_site(match)):
            yield _replace(model.graph, match, name)


def _replace(graph: ir.Graph, match: Match, rewrite: str) -> Site:
    """Put what a match builds in the place of its pattern."""
    found = _site(match)
    anchor, maker = match.pattern[0], Maker()
    values = match.build(maker)
    _name(graph, maker, anchor, rewrite)
    graph.insert_before(anchor, maker.tape.nodes)
    for old, new in values.items():
        _take_place(graph, old, new)
    added = tuple(node.name or "" for node in maker.tape.nodes)
    left = list(match.pattern)
    while gone := [node for node in left if not any(out.uses() or out.is_graph_output() for out in node.outputs)]:
        graph.remove(gone, safe=True)
        left = [node for node in left if node not in gone]
    kept = {node.name for node in left}
    return Site(tuple(name for name in found.removed if name not in kept), found.group, added)


def _name(graph: ir.Graph, maker: Maker, anchor: ir.Node, rewrite: str) -> None:
    """Names that say which op and which rewrite they come from; no other has them."""
    taken = {each.name or "" for each in (*graph, *graph.inputs)} | set(graph.initializers)
    for value in maker.tape.initializers:
        value.name = free_name(f"{anchor.name}/{rewrite}/{value.name}", taken)
        graph.register_initializer(value)
    for node in maker.tape.nodes:
        node.name = free_name(node.name or f"{anchor.name}/{rewrite}/{node.op_type}", taken)
        for number, output in enumerate(node.outputs):
            output.name = f"{node.name}_output_{number}"
        if node.domain and node.domain not in graph.opset_imports:
            graph.opset_imports[node.domain] = node.version or 1


def _take_place(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Readers of a value read another; an output of the model keeps its name."""
    if old.is_graph_output():
        if new.is_graph_input() or new.is_graph_output() or new.is_initializer():
            taken = {node.name or "" for node in graph}
            same = ir.node("Identity", [new], name=free_name(f"{old.name}/Identity", taken))
            graph.append(same)
            new = same.outputs[0]
        name = old.name
        old.name = f"{name}/before"
        new.name, new.type, new.shape = name, old.type or new.type, old.shape or new.shape
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def _site(match: Match) -> Site:
    return Site(tuple(node.name or "" for node in match.pattern), _group(match))


def _group(match: Match) -> str:
    """Types and shapes of what a match touches, or what it says itself."""
    return match.group or ";".join(
        f"{node.op_type}({','.join(_shape(value) for value in node.inputs)})" for node in match.pattern
    )


def _shape(value: ir.Value | None) -> str:
    return "" if value is None or value.shape is None else "x".join(str(extent) for extent in value.shape)
