"""Bottlenecks of one profile: what holds it back, what that costs, and what to try."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...core.units import format_bytes, format_percent, format_seconds
from ...recording.finding import Finding
from ...recording.recording import Placed, Recording
from .details import parts_of

SLOW_SHARE = 0.10  # of the dominant path: a node above it is worth a line
LOW_USE = 0.30  # of an engine: below it there is a gap
WAIT_SHARE = 0.15  # of the time, that the foreground thread stands before one node
CONVERSIONS = ("Transpose", "QuantizeLinear", "DequantizeLinear", "Quantize", "Dequantize", "Cast", "Convert")


def causes_of(recording: Recording) -> tuple[Finding, ...]:
    """Costliest first; those whose cost is unknown come last."""
    found = [cause for rule in RULES for cause in rule(recording)]
    return tuple(sorted(found, key=lambda cause: -(cause.cost_ns or 0)))


def count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")


def cpu_nodes(recording: Recording) -> Iterator[Finding]:
    """Nodes that the accelerator does not take."""
    nodes = recording.placed(Placed.CPU)
    if nodes:
        reasons = "; ".join(dict.fromkeys(node.reason for node in nodes[:5]))
        yield Finding(
            "cpu-fallback",
            f"{count(len(nodes), 'node')} on the CPU",
            f"{reasons}; the model is cut into {len(parts_of(recording))} graphs, and the time of the CPU is unknown",
            tuple(node.name for node in nodes),
            action="replace these nodes with ones that the accelerator takes",
        )


def slow_nodes(recording: Recording) -> Iterator[Finding]:
    """Nodes that take much of the dominant path."""
    for node in recording.ops:
        if node.path_share is not None and node.path_share >= SLOW_SHARE and node.path_ns is not None:
            engines = ", ".join(node.engines) or "no engine"
            yield Finding(
                "slow-op",
                f"{node.name} takes {format_percent(node.path_share)} of the dominant path",
                f"{node.type or node.placed}: {format_seconds(node.path_ns / 1e9)} on {engines}",
                (node.name,),
                node.path_ns,
                node.path_share,
            )


def conversions(recording: Recording) -> Iterator[Finding]:
    """Work that changes the form of data only."""
    nodes = [node for node in recording.ops if node.type in CONVERSIONS and node.path_ns]
    cost = sum(node.path_ns or 0 for node in nodes)
    share = sum(node.path_share or 0.0 for node in nodes)
    if share >= SLOW_SHARE:
        quantises = any("uant" in node.type for node in nodes)
        yield Finding(
            "layout",
            f"changes of layout and type take {format_percent(share)} of the dominant path",
            "bringing inputs and outputs into the accelerator's form is work on the accelerator too",
            tuple(node.name for node in nodes),
            cost,
            share,
            "feed quantised inputs in the accelerator's layout, or leave the change to the CPU (--io-quant off)"
            if quantises
            else "feed inputs in the accelerator's layout: channels last",
        )


def spills(recording: Recording) -> Iterator[Finding]:
    """Intermediate results that did not fit VTCM."""
    nodes = sorted(
        (node for node in recording.ops if node.spill_bytes or node.fill_bytes),
        key=lambda node: -(node.spill_bytes + node.fill_bytes),
    )
    if nodes:
        spilled, filled = sum(node.spill_bytes for node in nodes), sum(node.fill_bytes for node in nodes)
        yield Finding(
            "spill",
            f"{format_bytes(spilled)} spilled to DDR and {format_bytes(filled)} read back",
            f"VTCM is full: intermediate results of {len(nodes)} nodes go through DDR",
            tuple(node.name for node in nodes),
            action="give the compiler more VTCM, or use a smaller precision",
        )


def foreground_waits(recording: Recording) -> Iterator[Finding]:
    """Nodes before which the foreground thread stands."""
    if recording.latency is None or not recording.latency.known_ns:
        return
    for node in recording.ops:
        share = (node.wait_ns or 0) / recording.latency.known_ns
        if share >= WAIT_SHARE and (node.path_share or 0.0) < SLOW_SHARE:  # a slow node is named already
            yield Finding(
                "wait",
                f"the foreground thread waits {format_percent(share)} of the time at {node.name}",
                f"it stands until {', '.join(node.engines) or 'another thread'} is done with it",
                (node.name,),
                node.wait_ns,
                share,
            )


def idle_engines(recording: Recording) -> Iterator[Finding]:
    """Engines with little to do."""
    for engine in ("hvx", "hmx"):
        use = recording.value(f"{engine}_utilization")
        if use is not None and use < LOW_USE:
            yield Finding(
                "low-utilization",
                f"{engine.upper()} works {format_percent(use)} of the time",
                "its threads have nothing to do in the rest: the work is elsewhere, or not split among threads",
            )


RULES: tuple[Callable[[Recording], Iterator[Finding]], ...] = (
    cpu_nodes,
    slow_nodes,
    conversions,
    spills,
    foreground_waits,
    idle_engines,
)
