"""Suggestions, each verified by estimating the changed graph on the same target; those that do not help are dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from ..core.units import format_bytes, format_count, format_percent
from ..graph.graph import ABSENT, DType, Graph
from ..machine.target import Target
from ..recording.resources import Footprint, LayerAdvice, Suggestion
from . import graph_changes
from .block_formats import store_weights
from .canonical import canonicalise
from .estimator import Estimate, predict
from .precision import precisions
from .price import Machine, price, task_of
from .quantiser import quantise
from .report import Layer
from .traffic.stores import parameter_bytes
from .work import work_of

LISTED_LAYERS = 5
HEAVY_SHARE = 0.02  # a layer below this share of MACs or bytes is not worth rewriting
WORTHWHILE = 0.01  # smallest relative gain that is mentioned
PRUNED_TO = 0.5
INPUT_SCALE = 0.75


@dataclass(frozen=True, slots=True)
class _Idea:
    """A change to try."""

    kind: str
    text: str
    layers: tuple[int, ...]
    change: Callable[[], Graph | None]


def suggestions(base: Estimate) -> tuple[Suggestion, ...]:
    """Return every idea that helps on this target, best first."""
    before = predict(base.graph, base.machine)
    found = []
    for idea in _ideas(base):
        changed = idea.change()
        if changed is None:
            continue
        after = predict(changed, base.machine)
        if _gain(before, after) > WORTHWHILE and not _worsens(before, after):
            found.append(Suggestion(idea.kind, idea.text, idea.layers, before, after))
    return tuple(sorted(found, key=lambda suggestion: -_gain(suggestion.before, suggestion.after)))


def _ideas(base: Estimate) -> Iterator[_Idea]:
    """Yield the changes to try, for the whole graph and for its heavy layers."""
    graph, target = base.graph, base.machine.target
    if DType.I8.label in precisions(target):
        yield _Idea("quantize", "Quantise weights and activations to int8", (), lambda: quantise(graph, target))
    yield _weight_idea(graph, target)
    prune = f"Structured pruning: keep {PRUNED_TO:.0%} of the channels of every convolution"
    yield _Idea("prune", prune, (), lambda: graph_changes.prune_channels(graph, keep=PRUNED_TO))
    shrink = f"Scale the input image to {INPUT_SCALE:.0%} of its height and width"
    yield _Idea("smaller-input", shrink, (), lambda: graph_changes.shrink_input(graph, scale=INPUT_SCALE))
    fuse = "Fuse stand-alone activations and normalisations into the op before them"
    yield _Idea("fuse", fuse, (), lambda: graph_changes.fuse_more(graph, target))
    yield from _layer_ideas(base)


def _weight_idea(graph: Graph, target: Target) -> _Idea:
    """Return the change of weights alone: MXFP6 where the target has a kernel for it, else int8."""
    if DType.MXFP6.label in precisions(target):
        text = f"Store weights of products as MXFP6, compute as now (--precision {DType.MXFP6.label})"
        return _Idea("quantize-weights", text, (), lambda: store_weights(graph))
    text = "Store weights as int8, compute as now"
    return _Idea("quantize-weights", text, (), lambda: graph_changes.quantise_weights(graph))


def _layer_ideas(base: Estimate) -> Iterator[_Idea]:
    """Yield changes of chosen layers: heavy convolutions, heavy dense layers, dense layers left on the CPU."""
    graph, target = base.graph, base.machine.target
    heavy = _heavy(base.layers)
    if separable := graph_changes.separable_layers(graph, heavy):
        separate = f"Replace the heavy convolutions ({_layer_list(separable)}) by depthwise-separable ones"
        yield _Idea(
            "depthwise-separable",
            separate,
            separable,
            lambda: graph_changes.split_into_depthwise_separable(graph, separable),
        )
    if factorisable := graph_changes.factorisable_layers(graph, heavy):
        chosen = f"dense layers and 1×1 convolutions ({_layer_list(factorisable)})"
        factorise = f"Factorise the heavy {chosen} to a quarter of their rank"
        yield _Idea("low-rank", factorise, factorisable, lambda: graph_changes.factorise_low_rank(graph, factorisable))
    stranded = tuple(layer.index for layer in base.layers if not layer.accelerated and layer.kind == "matmul")
    if stranded and any(engine.accelerator and "conv" in engine.ops for engine in target.engines):
        move = f"Write dense layers ({_layer_list(stranded)}) as 1×1 convolutions, which the accelerator takes"
        yield _Idea("move-to-accelerator", move, stranded, lambda: graph_changes.dense_to_convolution(graph, stranded))


def _heavy(layers: Sequence[Layer]) -> tuple[int, ...]:
    """Return the layers with more than HEAVY_SHARE of the MACs or parameter bytes."""
    macs = sum(layer.macs for layer in layers) or 1
    constants = sum(layer.parameter_bytes for layer in layers) or 1
    return tuple(
        layer.index
        for layer in layers
        if layer.macs / macs > HEAVY_SHARE or layer.parameter_bytes / constants > HEAVY_SHARE
    )


def _layer_list(layers: Sequence[int]) -> str:
    shown = ", ".join(str(index) for index in layers[:6])
    return f"layers {shown}{', …' if len(layers) > 6 else ''}" if len(layers) > 1 else f"layer {shown}"


def _pairs(before: Footprint, after: Footprint) -> list[tuple[float, float]]:
    """Return (before, after) of each quantity that both predictions know."""
    pairs = [
        (before.latency_s, after.latency_s),
        (before.peak_bytes, after.peak_bytes),
        (before.parameter_bytes, after.parameter_bytes),
        (before.energy_j, after.energy_j),
    ]
    return [(old, new) for old, new in pairs if old and new]


def _gain(before: Footprint, after: Footprint) -> float:
    """Return the sum of the log ratios, so that halving one quantity weighs as much as halving any other."""
    return sum(log(old / new) for old, new in _pairs(before, after))


def _worsens(before: Footprint, after: Footprint) -> bool:
    """Whether the change makes any quantity noticeably larger, or the graph impossible to run."""
    if before.latency_s is not None and after.latency_s is None:  # the target cannot run the changed graph
        return True
    return any(new > old * (1 + WORTHWHILE) for old, new in _pairs(before, after))


def heavy_memory(base: Estimate) -> tuple[LayerAdvice, ...]:
    """Return the layers with most parameter bytes, each with the change that shrinks it most."""
    ranked = sorted(base.layers, key=lambda layer: (-layer.parameter_bytes, layer.index))
    chosen = [layer for layer in ranked[:LISTED_LAYERS] if layer.parameter_bytes >= 1024]
    return tuple(LayerAdvice(layer.index, _layer_advice(base, layer, _bytes_saved)) for layer in chosen)


def heavy_macs(base: Estimate) -> tuple[LayerAdvice, ...]:
    """Return the layers with most MACs, each with the change that saves most."""
    ranked = sorted(base.layers, key=lambda layer: (-layer.macs, layer.index))
    chosen = [layer for layer in ranked[:LISTED_LAYERS] if layer.macs > 0]
    return tuple(LayerAdvice(layer.index, _layer_advice(base, layer, _macs_saved)) for layer in chosen)


def _layer_advice(base: Estimate, layer: Layer, saved: Callable[[Layer, Graph, Graph], tuple[float, str]]) -> str:
    """Return the best rewriting of one layer, tried in isolation because its neighbours do not change."""
    alone = _isolate(base.graph, layer.index)
    best_gain, best_text = WORTHWHILE, ""
    for label, changed in (
        ("depthwise-separable convolution", graph_changes.split_into_depthwise_separable(alone, [0])),
        ("low-rank factorisation", graph_changes.factorise_low_rank(alone, [0])),
        ("int8 weights and activations", _quantise_alone(alone, base.machine.target)),
    ):
        if changed is None:
            continue
        gain, text = saved(layer, alone, changed)
        old, new = _cycles(alone, base.machine), _cycles(changed, base.machine)
        if gain > best_gain and (old is None or new is None or new <= old * (1 + WORTHWHILE)):
            faster = f", {format_percent(1 - new / old, 0)} fewer cycles" if old and new and new < old else ""
            best_gain, best_text = gain, f"{label}: {text}{faster}"
    return best_text or "nothing tried here makes it smaller on this target"


def _isolate(graph: Graph, index: int) -> Graph:
    """Return a graph of one op and its tensors."""
    op = graph.ops[index]
    used = [t for t in dict.fromkeys((*op.inputs, *op.outputs)) if t != ABSENT]
    number = {t: position for position, t in enumerate(used)} | {ABSENT: ABSENT}
    alone = replace(op, inputs=tuple(number[t] for t in op.inputs), outputs=tuple(number[t] for t in op.outputs))
    tensors = tuple(graph.tensors[t] for t in used)
    return Graph(graph.name, graph.source, graph.framework, (alone,), tensors, alone.inputs[:1], alone.outputs)


def _quantise_alone(graph: Graph, target: Target) -> Graph | None:
    """Return a graph of one op in int8, without conversions: its neighbours hand it int8 as well; None if it is not."""
    quantised = quantise(graph, target) if DType.I8.label in precisions(target) else graph
    if quantised is graph:
        return None
    quantised = canonicalise(quantised, target)
    return replace(quantised, ops=tuple(op for op in quantised.ops if op.kind not in ("quantize", "dequantize")))


def _cycles(graph: Graph, machine: Machine) -> float | None:
    """Return the compute cycles of a graph, without memory traffic; None if an op cannot run on the target."""
    total = 0.0
    for op in graph.ops:
        task = task_of(op, graph, machine.target)
        if task.placement.engine is None:
            return None
        total += price(task, task.placement.engine, machine).total
    return total


def _bytes_saved(_layer: Layer, old: Graph, new: Graph) -> tuple[float, str]:
    before, after = parameter_bytes(old), parameter_bytes(new)
    return (1 - after / before if before else 0.0), f"{format_bytes(before)} → {format_bytes(after)}"


def _macs_saved(_layer: Layer, old: Graph, new: Graph) -> tuple[float, str]:
    before = sum(work_of(op, old).macs for op in old.ops)
    after = sum(work_of(op, new).macs for op in new.ops)
    if after == before:
        return _bytes_saved(_layer, old, new)
    return 1 - after / before, f"{format_count(before)} → {format_count(after)} MACs"
