"""Report → Resources: the facts of a report that a Run keeps, and every figure of the target with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from ..machine.target import ANY, Figure, Target
from ..recording.recording import ResourceCycles
from ..recording.resources import CostPart, LayerResources, Resources, TargetFigure
from .cost import Cost, labels
from .report import Layer, Report

_NAMED = {
    "kernels": "cycles per KB of output",
    "bytes": "size in bytes",
    "core_hz": "core clock in hertz",
    "stats_hz": "statistics timer in hertz",
}


def resources_of(report: Report) -> Resources:
    return Resources(
        target_title=report.target.title,
        model=report.model,
        memory=report.memory,
        totals=report.totals,
        layers=tuple(_layer(layer, report.target) for layer in report.layers),
        suggestions=report.suggestions,
        heavy_memory=report.heavy_memory,
        heavy_macs=report.heavy_macs,
        notes=report.notes,
        definition=report.definition,
        figures=tuple(target_figures(report.target)),
    )


def _layer(layer: Layer, target: Target) -> LayerResources:
    """What a Run keeps of a layer beside its time: figures and their parts.

    What binds a layer of unknown cost is unknown too, and it has no parts.
    """
    return LayerResources(
        op=layer.index,
        dtype=layer.dtype,
        sources=layer.sources,
        trips=layer.trips,
        engine=layer.engine,
        accelerated=layer.accelerated,
        reason=layer.reason,
        cycles=layer.cycles,
        latency_s=layer.latency_s,
        energy_j=layer.energy_j,
        power_w=layer.power_w,
        bound=layer.bound if layer.cost is not None else "",
        costs=() if layer.cost is None else tuple(_parts(layer.cost, target)),
        macs=layer.macs,
        element_ops=layer.element_ops,
        work_known=layer.work_known,
        parameter_bytes=layer.parameter_bytes,
        shared_bytes=layer.shared_bytes,
        live_bytes=layer.live_bytes,
        out_bytes=layer.write_bytes,
        moved_bytes=outer_bytes(layer, target),
        constant_shapes=layer.kernel_shapes,
    )


def _parts(cost: Cost, target: Target) -> Iterator[CostPart]:
    binding, names = {part.resource for part in cost.binding()}, labels(target)
    for resource, cycles in cost.by_resource().items():
        yield CostPart(names[resource], cycles, resource in binding)


def outer_bytes(layer: Layer, target: Target) -> int:
    """Bytes that a layer moves through memories beyond the cores: what the bandwidth of those limits."""
    return sum(layer.traffic.get(memory.name, 0) for memory in target.memories if memory.is_outer)


def resource_cycles(layer: Layer, target: Target) -> tuple[ResourceCycles, ...]:
    """What the layer would take if one engine or memory alone bound it."""
    found, names = {} if layer.cost is None else layer.cost.by_resource(), labels(target)
    return tuple(
        ResourceCycles(names[resource], resource.is_outer, round(cycles * (layer.trips or 1)))
        for resource, cycles in found.items()
        if resource.is_part
    )


def target_figures(target: Target) -> Iterator[TargetFigure]:
    """Every figure that the target file gives, in the order of the file."""
    for part, name, figure in _figures(target, target.name, ""):
        ranged = figure.low is not None or figure.high is not None
        low, high = (figure.smallest, figure.largest) if ranged else (None, None)
        yield TargetFigure(part, name, figure.value, low, high, target.sources.get(figure.source, figure.source))


def _figures(value: object, part: str, label: str) -> Iterator[tuple[str, str, Figure]]:
    """Whatever a target holds, however deep: a part of it with a name of its own gives its name to what is inside."""
    if isinstance(value, Figure):
        yield part, label, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _figures(inner, part, label if key == ANY else f"{label}, {key}")
    elif isinstance(value, tuple):
        for inner in value:
            yield from _figures(inner, part, label)
    elif is_dataclass(value):
        own = str(getattr(value, "name", "") or part)
        for field in fields(value):
            inner = getattr(value, field.name)
            within = field.name if is_dataclass(inner) and not isinstance(inner, Figure) else own
            yield from _figures(inner, within, _label(field.name))


def _label(name: str) -> str:
    return _NAMED.get(name, name.replace("_", " "))
