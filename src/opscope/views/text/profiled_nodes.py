"""Tables of nodes: which columns there are follows from what is known of them."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.units import UNKNOWN, format_bytes, format_count, format_percent, format_seconds
from ...recording.profiled import NodeTotal
from .columns import bar, columns

_ENGINES = ("HVX", "HMX", "DMA")
_NAMES = {0: 44, 1: 18}


def node_table(nodes: Sequence[NodeTotal]) -> list[str]:
    """Lines of a table."""
    if any(node.low_ns is not None for node in nodes):
        return _samples(nodes)
    if any(node.bound for node in nodes):
        return _resources(nodes)
    if any(node.cycles is not None for node in nodes):
        return _counted(nodes)
    return _engines(nodes)


def what_is_known(nodes: Sequence[NodeTotal], provenance: str) -> str:
    """How the figures of the table were obtained."""
    if any(node.low_ns is not None for node in nodes):
        return f"median and 10th to 90th percentile, {provenance}"
    if any(node.bound for node in nodes):
        return f"cycles and times {provenance}, memory compiler-fact"
    return f"times {provenance if is_timed(nodes) else UNKNOWN}, bytes compiler-fact"


def is_timed(nodes: Sequence[NodeTotal]) -> bool:
    return any(node.wall_ns is not None for node in nodes)


def format_ns(value: int | None) -> str:
    return format_seconds(None if value is None else value / 1e9)


def _samples(nodes: Sequence[NodeTotal]) -> list[str]:
    """Measured again and again."""
    header = ("node", "type", "time", "10th", "90th", "share", "", "")
    rows = [
        (
            n.name,
            n.type or n.placed,
            format_ns(n.wall_ns),
            format_ns(n.low_ns),
            format_ns(n.high_ns),
            format_percent(n.path_share),
            bar(n.path_share or 0, 10),
            _how(n),
        )
        for n in nodes
    ]
    return columns(header, rows, align="<<>>>><<", limits=_NAMES | {7: 60})


def _how(node: NodeTotal) -> str:
    """What ran, and for how many others, in a few words."""
    more = f"+ {len(node.covers)} fused" if node.covers else ""
    return "; ".join(filter(None, (node.reason, more)))


def _resources(nodes: Sequence[NodeTotal]) -> list[str]:
    """Cycles that each resource alone would take; the longest binds."""
    names = list(dict.fromkeys(name for node in nodes for name in node.busy_cycles))
    header = ("op", "type", "cycles", "time", "share", "", *names, "bound by", "memory")
    rows = [
        (
            n.name,
            n.type or n.placed,
            format_count(n.cycles),
            format_ns(n.wall_ns),
            format_percent(n.path_share),
            bar(n.path_share or 0, 10),
            *(UNKNOWN if n.cycles is None else format_count(n.busy_cycles.get(name, 0)) for name in names),
            n.bound or UNKNOWN,
            format_bytes(n.memory_bytes),
        )
        for n in nodes
    ]
    return columns(header, rows, align="<<>>><" + ">" * len(names) + "<>", limits=_NAMES)


def _counted(nodes: Sequence[NodeTotal]) -> list[str]:
    """A device's own table: cycles as it counted them."""
    total = sum(node.cycles or 0 for node in nodes)
    rows = [
        (n.name, n.type, format_count(n.cycles), format_percent((n.cycles or 0) / total if total else None))
        for n in nodes
    ]
    return columns(("node", "type", "cycles", "share"), rows, align="<<>>", limits={0: 60, 1: 18})


def _engines(nodes: Sequence[NodeTotal]) -> list[str]:
    """Engines of an accelerator, and bytes of its outer memory."""
    header = ("node", "type", "wall", "path", "", *(f"{name} cyc" for name in _ENGINES), "DDR rd", "DDR wr", "engines")
    rows = [
        (
            n.name,
            n.type or n.placed,
            format_ns(n.wall_ns),
            format_percent(n.path_share),
            bar(n.path_share or 0, 10),
            *(UNKNOWN if n.wall_ns is None else format_count(n.busy_cycles.get(name, 0)) for name in _ENGINES),
            format_bytes(n.dram_read_bytes),
            format_bytes(n.dram_write_bytes),
            ",".join(n.engines),
        )
        for n in nodes
    ]
    return columns(header, rows, align="<<>><>>>>><", limits=_NAMES)
