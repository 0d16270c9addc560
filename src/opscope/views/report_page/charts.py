"""A Report's charts: which of its numbers each one draws. Sums here are of what is drawn, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...core.units import format_bytes, format_percent, format_seconds
from ...estimate.cost import LAUNCH
from ...estimate.report import Layer, Report
from ...machine.target import ANY, Engine, Holds, Memory
from ..page.html_text import clean, short_name
from .svg_charts import Area, Bar, Caption, Level, Segment, area_chart, bar_chart, buckets, stacked_bar
from .svg_roofline import MOST_POINTS, Ceiling, Point, Slope, roofline_chart, scaled

LEVEL_WITHIN = 4  # what is available is drawn up to so many times the peak; beyond that it would flatten the curve
NO_COLOUR = "s7"
_ENGINE_COLOURS = ("s0", "s1", "s2")
_MEMORY_COLOURS = ("s3", "s4", "s5")
_LAUNCH_COLOUR = "s6"
_TIP_NAME_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart, or the reason why there is none."""

    svg: str = ""
    skipped: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Legend:
    """A resource, its colour and what it binds."""

    resource: str
    css: str
    seconds: float
    share: float | None
    layers: int


def colours(report: Report) -> dict[str, str]:
    """Resource → CSS class: the same resource has the same colour in every chart of a target."""
    chosen = {LAUNCH: _LAUNCH_COLOUR}
    for names, classes in (
        ((engine.name for engine in report.target.engines), _ENGINE_COLOURS),
        ((memory.name for memory in report.target.memories), _MEMORY_COLOURS),
    ):
        for position, name in enumerate(names):
            chosen.setdefault(name, classes[position] if position < len(classes) else NO_COLOUR)
    return chosen


def legend(report: Report) -> tuple[Legend, ...]:
    """Time by binding resource, longest first."""
    css = colours(report)
    seconds: dict[str, float] = {}
    layers: dict[str, int] = {}
    for layer in report.layers:
        if layer.latency_s:
            seconds[layer.bound] = seconds.get(layer.bound, 0.0) + layer.latency_s
            layers[layer.bound] = layers.get(layer.bound, 0) + 1
    total = sum(seconds.values())
    ranked = sorted(seconds, key=lambda name: (-seconds[name], name))
    return tuple(
        Legend(name, css.get(name, NO_COLOUR), seconds[name], seconds[name] / total, layers[name]) for name in ranked
    )


def bound_chart(report: Report) -> Drawing:
    """Time by binding resource, as one stacked bar."""
    items = legend(report)
    if not items:
        return Drawing(skipped="no layer has a known time above zero")
    words = [f"{short_name(item.resource)} {format_percent(item.share)}" for item in items]
    caption = Caption("by-bound", "Time by binding resource", "Share of the estimated time: " + ", ".join(words) + ".")
    segments = [
        Segment(f"{label} · {format_seconds(item.seconds)} · {_layers(item.layers)}", item.seconds, item.css)
        for label, item in zip(words, items, strict=True)
    ]
    return Drawing(stacked_bar(caption, segments), note=_unknown_note(report))


def timeline_chart(report: Report) -> Drawing:
    """Time per layer in execution order."""
    if not any(layer.latency_s for layer in report.layers):
        return Drawing(skipped="no layer has a known time above zero")
    groups = buckets(len(report.layers))
    css = colours(report)
    bars = [_bar(report.layers[group.start : group.stop], css) for group in groups]
    slowest = max(report.layers, key=lambda layer: layer.latency_s or 0.0)
    caption = Caption(
        "by-layer",
        "Time per layer in execution order",
        f"{_layers(len(report.layers))}; the longest is {_titled(slowest)} with {format_seconds(slowest.latency_s)}.",
    )
    starts = [group.start for group in groups]
    chart = bar_chart(caption, bars, starts, label=format_seconds, axis=_index_axis(groups))
    return Drawing(chart, note=_unknown_note(report))


def _bar(layers: Sequence[Layer], css: Mapping[str, str]) -> Bar:
    parts: dict[str, float] = {}
    for layer in layers:
        if layer.latency_s:
            colour = css.get(layer.bound, NO_COLOUR)
            parts[colour] = parts.get(colour, 0.0) + layer.latency_s
    total = format_seconds(sum(parts.values()))
    if len(layers) == 1:
        layer = layers[0]
        known = f"{total}, bound by {short_name(layer.bound)}" if layer.bound else format_seconds(layer.latency_s)
        return Bar(f"{_titled(layer)}\n{known}", tuple(parts.items()))
    longest = max(layers, key=lambda layer: layer.latency_s or 0.0)
    tip = f"layers {layers[0].index}–{layers[-1].index}: {total}\nlongest: {_titled(longest)}"
    return Bar(tip, tuple(sorted(parts.items())))


def memory_chart(report: Report) -> Drawing:
    """Live bytes over the layers, with the peak and, where it is near, what is available."""
    layers, memory = report.layers, report.memory
    if not layers or memory.peak_layer is None:
        return Drawing(skipped="no layer runs")
    groups = buckets(len(layers))
    highest = [max((layers[i] for i in group), key=lambda layer: layer.live_bytes) for group in groups]
    steps = [Area(f"{_titled(layer)}\n{format_bytes(layer.live_bytes)} alive", layer.live_bytes) for layer in highest]
    peak = layers[memory.peak_layer]
    position = next(i for i, group in enumerate(groups) if peak.index in group)
    caption = Caption(
        "live-bytes",
        "Live activation bytes over the layers",
        f"The most bytes alive at once are {format_bytes(memory.bound_bytes)}, at {_titled(peak)}.",
    )
    chart = area_chart(
        caption,
        steps,
        [group.start for group in groups],
        levels=tuple(_memory_levels(report)),
        peak=(position, f"{format_bytes(memory.bound_bytes)} at layer {peak.index}"),
        label=_bytes_tick,
        axis=_index_axis(groups),
    )
    return Drawing(chart)


def _memory_levels(report: Report) -> Iterator[Level]:
    memory = report.memory
    use = memory.uses[0]
    if memory.peak_bytes > memory.bound_bytes * 1.02:
        yield Level(f"planned peak {format_bytes(memory.peak_bytes)}", memory.peak_bytes, "planned")
    if use.holds == Holds.ACTIVATIONS.value and use.available_bytes <= LEVEL_WITHIN * memory.peak_bytes:
        yield Level(f"{short_name(use.name)} {format_bytes(use.available_bytes)}", use.available_bytes, "available")


def roofline(report: Report) -> Drawing:
    """Every layer with MACs under the roofs of its engine and of the outer memories."""
    working = [layer for layer in report.layers if layer.macs and layer.latency_s and layer.engine and layer.work_known]
    outer = [memory for memory in _outer_memories(report) if _bytes_per_second(report, memory)]
    if not working:
        return Drawing(skipped="no layer with MACs has a known time")
    if not outer:
        names = ", ".join(short_name(memory.name) for memory in _outer_memories(report))
        return Drawing(skipped=f"the target file gives no bandwidth for {names}")
    ceilings = tuple(_ceilings(report, working))
    if not ceilings:
        return Drawing(skipped="the target file gives no peak MAC rate for the engines in use")
    points = _merged(_points(report, working, outer))
    caption = Caption(
        "roofline",
        "Roofline",
        f"MACs per second over MACs per byte for {_layers(len(working))}, "
        f"under {len(ceilings)} engine and {len(outer)} memory roofs.",
    )
    axis = f"MACs per byte through {' or '.join(short_name(memory.name) for memory in outer)}"
    chart = roofline_chart(caption, points[:MOST_POINTS], ceilings, tuple(_slopes(report, outer)), axis=axis)
    left_out = len(points) - MOST_POINTS
    return Drawing(chart, note=f"{left_out} points with the least time are not drawn" if left_out > 0 else "")


def _outer_memories(report: Report) -> tuple[Memory, ...]:
    homes = (report.target.home(Holds.ACTIVATIONS), report.target.home(Holds.CONSTANTS))
    return tuple(dict.fromkeys(homes)) if homes[0] != homes[1] else homes[:1]


def _bytes_per_second(report: Report, memory: Memory) -> float:
    """Published peak of all instances in use; 0 where none is published."""
    instances = report.target.instances(memory, devices=report.devices, cores=report.cores)
    if memory.bytes_per_second is not None:
        return memory.bytes_per_second.value * instances
    if memory.bytes_per_cycle is not None:
        return memory.bytes_per_cycle.value * report.target.clocks.core_hz.value * instances
    return 0.0


def _slopes(report: Report, outer: Sequence[Memory]) -> Iterator[Slope]:
    """Memories of equal speed share a line."""
    names: dict[tuple[float, float], list[str]] = {}
    for memory in outer:
        efficiency = memory.reached
        names.setdefault((_bytes_per_second(report, memory), efficiency), []).append(short_name(memory.name))
    for (rate, efficiency), sharing in names.items():
        yield Slope(f"{', '.join(sharing)} {scaled(rate)}B/s", rate)
        if efficiency < 1:
            yield Slope("", rate * efficiency, reached=True)


def _ceilings(report: Report, layers: Iterable[Layer]) -> Iterator[Ceiling]:
    engines = {engine.name: engine for engine in report.target.engines}
    for name, dtype in dict.fromkeys((layer.engine or "", layer.dtype) for layer in layers):
        engine = engines[name]
        rate = engine.macs_per_cycle.get(dtype, engine.macs_per_cycle.get(ANY))
        if rate is None:
            continue
        peak = rate.value * report.target.clocks.core_hz.value * report.devices * report.cores * engine.units
        label = f"{short_name(name)} {dtype}"
        yield Ceiling(f"{label} {scaled(peak)}MAC/s", peak)
        yield from _reached(engine, label, peak)


def _reached(engine: Engine, label: str, peak: float) -> Iterator[Ceiling]:
    if engine.efficiency is not None and engine.efficiency.value < 1:
        share = engine.efficiency.value
        yield Ceiling(f"{label} at {format_percent(share, 0)}", peak * share, reached=True)


def _points(report: Report, layers: Iterable[Layer], outer: Sequence[Memory]) -> Iterator[Point]:
    css = colours(report)
    total = sum(layer.latency_s or 0.0 for layer in report.layers)
    for layer in layers:
        if not layer.latency_s:
            continue
        intensity = _macs_per_byte(report, layer, outer)
        reached = layer.macs / layer.latency_s
        where = "no outer traffic" if intensity is None else f"{intensity:,.3g} MACs/byte"
        share = layer.latency_s / total
        tip = f"{_titled(layer)}\n{where}, {scaled(reached)}MAC/s, {format_percent(share)} of the time"
        tip += f"\nbound by {short_name(layer.bound)}"
        yield Point(tip, intensity, reached, share, css.get(layer.bound, NO_COLOUR))


def _macs_per_byte(report: Report, layer: Layer, outer: Sequence[Memory]) -> float | None:
    """Against the outer memory that this layer keeps busy longest."""
    moved = [(layer.traffic.get(memory.name, 0), _bytes_per_second(report, memory)) for memory in outer]
    size, _ = max(moved, key=lambda item: item[0] / item[1])
    return layer.macs / size if size else None


def _merged(points: Iterable[Point]) -> list[Point]:
    """Layers of equal shape fall on one spot: one point for all of them, longest time first."""
    spots: dict[tuple[str, str, str], Point] = {}
    for point in points:
        x = "" if point.macs_per_byte is None else f"{point.macs_per_byte:.2e}"
        key = (x, f"{point.macs_per_second:.2e}", point.css)
        held = spots.get(key)
        if held is None:
            spots[key] = point
        else:
            spots[key] = replace(held, share=held.share + point.share, layers=held.layers + 1)
    merged = [_with_count(point) if point.layers > 1 else point for point in spots.values()]
    return sorted(merged, key=lambda point: -point.share)


def _with_count(point: Point) -> Point:
    together = f"{point.layers} such layers, {format_percent(point.share)} of the time together"
    return replace(point, tip=f"{point.tip}\n{together}")


def _titled(layer: Layer) -> str:
    return f"layer {layer.index} {short_name(layer.operator, 24)} {short_name(layer.name, _TIP_NAME_LENGTH)}".rstrip()


def _index_axis(groups: Sequence[range]) -> str:
    return "layer" if len(groups[0]) == 1 else f"layer (each column is {len(groups[0])} layers)"


def _unknown_note(report: Report) -> str:
    missing = len(report.totals.unknown_layers)
    return f"Not in this chart, cost unknown: {_layers(missing)}" if missing else ""


def _layers(count: int) -> str:
    return "1 layer" if count == 1 else f"{count:,} layers"


def _bytes_tick(size: float) -> str:
    return clean(format_bytes(size)).replace(".00 ", " ")
