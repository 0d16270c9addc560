"""Profiled and WhatIf as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from ...core.errors import printable
from ...core.units import UNKNOWN, format_bytes, format_count, format_percent, format_seconds
from ...recording.profiled import (
    FUSED,
    INSERTED,
    ON_ACCELERATOR,
    ON_CPU,
    REMOVED,
    Metric,
    NodeTotal,
    Profiled,
    WhatIf,
    WhatIfPoint,
)
from .columns import bar, columns, pairs
from .profiled_nodes import format_ns, is_timed, node_table, what_is_known

_LEVEL_PARTS = {  # profiling level → parts of the report
    "client": ("totals", "stages", "notes"),
    "basic": ("totals", "notes"),
    "backend": ("totals", "lanes", "stages", "notes"),
    "detailed": ("totals", "lanes", "nodes", "placement", "causes", "notes"),
    "linting": ("totals", "lanes", "waits", "placement", "causes", "notes"),
    "optrace": ("totals", "lanes", "nodes", "kernels", "placement", "causes", "stages", "notes"),
}


class ProfiledText:
    """As much as the profiling level asks for."""

    suffix = ".txt"

    def __init__(self, *, level: str = "detailed", top: int | None = 15) -> None:
        self.parts = _LEVEL_PARTS[level]
        self.top = top

    def render(self, profiled: Profiled, out: TextIO) -> None:
        sections = {
            "totals": _totals,
            "lanes": _lanes,
            "stages": _stages,
            "nodes": self._nodes,
            "waits": self._waits,
            "kernels": self._kernels,
            "placement": _placement,
            "causes": _causes,
            "notes": _notes,
        }
        blocks = [list(sections[part](profiled)) for part in self.parts]
        out.write("\n\n".join("\n".join(block) for block in blocks if block) + "\n")

    def _chosen(self, nodes: Sequence[NodeTotal]) -> tuple[list[NodeTotal], str]:
        """The largest first where times or bytes are known; all in order when everything is shown."""
        placed = (ON_ACCELERATOR, INSERTED) if any(node.placed == ON_ACCELERATOR for node in nodes) else ()
        shown = [node for node in nodes if node.placed in placed or _has_figures(node)]
        if self.top is None:
            return shown, "in order"
        ranked = sorted(shown, key=lambda n: (-(n.path_ns or 0), -(n.cycles or 0), -_dram(n)))
        return ranked[: self.top], f"{min(self.top, len(shown))} of {len(shown)}; --all shows every one"

    def _nodes(self, profiled: Profiled) -> Iterator[str]:
        nodes, which = self._chosen(profiled.nodes)
        if nodes:
            yield f"nodes ({which}) – {what_is_known(nodes, profiled.provenance)}"
            yield from node_table(nodes)

    def _waits(self, profiled: Profiled) -> Iterator[str]:
        """The linting level: whom the foreground thread waits for, and what runs beside what."""
        nodes, which = self._chosen(profiled.nodes)
        if not is_timed(nodes):
            return
        yield f"waits and overlap ({which}) – {profiled.provenance}"
        header = ("node", "type", "wall", "wait", "overlap", "alone", "path")
        rows = [
            (
                n.name,
                n.type or n.placed,
                format_ns(n.wall_ns),
                format_ns(n.wait_ns),
                format_ns(n.overlap_ns),
                format_ns((n.wall_ns or 0) - (n.overlap_ns or 0)),
                format_percent(n.path_share),
            )
            for n in nodes
        ]
        yield from columns(header, rows, align="<<>>>>>", limits={0: 44, 1: 18})
        yield "wait: the foreground thread stood before it; overlap: another node was at work too"

    def _kernels(self, profiled: Profiled) -> Iterator[str]:
        kernels = profiled.kernels[: self.top]
        if any(k.wall_ns is not None for k in kernels):
            yield f"kernels ({len(kernels)} of {len(profiled.kernels)}) – {profiled.provenance}"
            timed = [(k.name, k.engine, format_count(k.count), format_ns(k.wall_ns)) for k in kernels]
            yield from columns(("kernel", "engine", "count", "time"), timed, align="<<>>", limits={0: 60})
        elif kernels:
            yield f"kernels ({len(kernels)} of {len(profiled.kernels)}) – cycles {profiled.provenance}"
            rows = [
                (
                    k.name,
                    k.engine,
                    format_count(k.count),
                    format_count(k.busy_cycles),
                    format_bytes(k.dram_bytes),
                    format_bytes(k.vtcm_bytes),
                )
                for k in kernels
            ]
            header = ("kernel", "engine", "count", "cycles", "DDR", "VTCM")
            yield from columns(header, rows, align="<<>>>>", limits={0: 44})


def _has_figures(node: NodeTotal) -> bool:
    return node.cycles is not None or node.wall_ns is not None


def _dram(node: NodeTotal) -> int:
    return (node.dram_read_bytes or 0) + (node.dram_write_bytes or 0)


def metric_text(metric: Metric) -> str:
    """Value, range, provenance and note on one line."""
    value = metric.value
    if value is None:
        return f"{UNKNOWN}  ({metric.note})" if metric.note else UNKNOWN
    text = _value(value, metric.unit)
    if metric.low is not None and metric.high is not None:
        text += f" ({_value(metric.low, metric.unit)} – {_value(metric.high, metric.unit)})"
    note = f"; {metric.note}" if metric.note else ""
    return f"{text}  [{metric.provenance}{note}]"


def _value(value: float, unit: str) -> str:
    if unit == "us":
        return format_seconds(value / 1e6)
    if unit == "bytes":
        return format_bytes(value)
    if unit == "share":
        return format_percent(value)
    return format_count(value) if unit in ("count", "cycles") else f"{value:,.1f} {unit}"


def _totals(profiled: Profiled) -> Iterator[str]:
    options = ", ".join(f"{key} {value}" for key, value in profiled.options.items() if value is not None)
    made_by = ", ".join(f"{name} {version}" for name, version in profiled.producer.items())
    rows = [("model", printable(profiled.model, 200)), ("target", str(profiled.target.get("title", UNKNOWN)))]
    rows += [("options", options)] if options else []
    rows += [("made by", made_by)] if made_by else []
    yield from pairs(rows, indent="")
    yield ""
    yield from pairs([(metric.name.replace("_", " "), metric_text(metric)) for metric in profiled.metrics])


def _lanes(profiled: Profiled) -> Iterator[str]:
    if profiled.path_shares:
        parts = ", ".join(f"{part.cause} {format_percent(part.share)}" for part in profiled.path_shares)
        yield f"{profiled.path_shares_of} – {profiled.provenance}: {parts}"
    if profiled.path_shares and profiled.lanes:
        yield ""
    if profiled.lanes:
        yield f"threads and engines – {profiled.provenance}"
        rows = [
            (
                lane.name,
                format_percent(lane.utilization),
                bar(lane.utilization, 20),
                format_ns(lane.busy_ns),
                format_ns(lane.wait_ns),
                format_ns(lane.idle_ns),
            )
            for lane in profiled.lanes
        ]
        yield from columns(("", "busy", "", "busy", "wait", "idle"), rows, align="<><>>>", limits={})


def _stages(profiled: Profiled) -> Iterator[str]:
    if profiled.stages:
        yield "stages of the compiler on this machine – measured"
        yield from pairs([(stage.name, format_seconds(stage.microseconds / 1e6)) for stage in profiled.stages])


def _placement(profiled: Profiled) -> Iterator[str]:
    on_cpu = profiled.of(ON_CPU)
    if on_cpu and profiled.of(ON_ACCELERATOR):
        yield f"on the CPU: {len(on_cpu)}"
        yield from (f"  {printable(node.name)} ({node.type}): {printable(node.reason, 300)}" for node in on_cpu[:20])
    for placed, words in ((FUSED, "fused into others"), (REMOVED, "taken out before it runs")):
        nodes = profiled.of(placed)
        if nodes:
            names = ", ".join(printable(node.name, 60) for node in nodes[:8])
            yield f"{words}: {len(nodes)}: {names}{', …' if len(nodes) > 8 else ''}"


def _causes(profiled: Profiled) -> Iterator[str]:
    if profiled.causes:
        yield "bottlenecks"
    for cause in profiled.causes:
        yield f"  {printable(cause.title, 200)}"
        yield f"      {printable(cause.detail, 300)}"
        if cause.action:
            yield f"      try: {printable(cause.action, 300)}"
        if cause.predicted is not None:
            yield f"      shown by: {cause.predicted.basis} {printable(cause.predicted.text, 300)}"


def _notes(profiled: Profiled) -> Iterator[str]:
    yield from (f"note: {printable(note, 400)}" for note in profiled.notes)


class WhatIfText:
    """One row per point, best first; the Pareto front is marked."""

    suffix = ".txt"

    def render(self, result: WhatIf, out: TextIO) -> None:
        header = ("", "point", "time", "range", "DDR", "VTCM peak", "spilled", "on CPU")
        rows = [_point(point) for point in result.points if point.profiled is not None]
        lines = columns(header, rows, align="<<>>>>>>", limits={1: 60})
        lines.append("* on the Pareto front of time, DDR bytes and VTCM; times vendor-model, bytes compiler-fact")
        lines += [f"failed: {point.label}: {printable(point.problem, 300)}" for point in result.points if point.problem]
        lines += ["", *result.advice]
        lines += [f"note: {note}" for note in result.notes]
        out.write("\n".join(lines) + "\n")


def _point(point: WhatIfPoint) -> tuple[str, ...]:
    profiled = point.profiled
    if profiled is None:
        raise ValueError(f"{point.label} has no profile")
    metric = profiled.metric("htp_execution_time")
    spilled = sum(node.spill_bytes for node in profiled.nodes)
    both = metric is not None and metric.low is not None and metric.high is not None
    span = f"{metric.low:,.0f}–{metric.high:,.0f} us" if both and metric else UNKNOWN
    return (
        "*" if point.on_front else "",
        point.label,
        UNKNOWN if point.time_us is None else f"{point.time_us:,.1f} us",
        span,
        format_bytes(point.ddr_bytes),
        format_bytes(point.local_bytes),
        format_bytes(spilled),
        str(len(profiled.of(ON_CPU))),
    )
