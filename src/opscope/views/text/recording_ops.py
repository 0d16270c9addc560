"""Tables of ops: which columns there are follows from what the source tells of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...core.provenance import Provenance
from ...core.units import UNKNOWN, format_bytes, format_count, format_ns, format_percent
from ...recording.recording import OpRecord
from .columns import bar, columns

_NAMES = {0: 44, 1: 18}


def node_table(nodes: Sequence[OpRecord]) -> list[str]:
    """Lines of a table."""
    if any(node.low_ns is not None for node in nodes):
        return _samples(nodes)
    if any(node.bound for node in nodes):
        return _resources(nodes)
    if any(node.cycles is not None for node in nodes):
        return _counted(nodes)
    return _engines(nodes)


def what_is_known(nodes: Sequence[OpRecord], provenance: Provenance) -> str:
    """How the figures of the table were obtained."""
    if any(node.low_ns is not None for node in nodes):
        return f"median and 10th to 90th percentile, {provenance}"
    if any(node.bound for node in nodes):
        return f"cycles and times {provenance}, memory compiler-fact"
    return f"times {provenance if is_timed(nodes) else UNKNOWN}, bytes compiler-fact"


def is_timed(nodes: Sequence[OpRecord]) -> bool:
    return any(node.time_ns is not None for node in nodes)


def _samples(nodes: Sequence[OpRecord]) -> list[str]:
    """Measured again and again."""
    header = ("node", "type", "time", "10th", "90th", "share", "", "")
    rows = [
        (
            n.name,
            n.type or n.placed,
            format_ns(n.time_ns),
            format_ns(n.low_ns),
            format_ns(n.high_ns),
            format_percent(n.path_share),
            bar(n.path_share or 0, 10),
            _how(n),
        )
        for n in nodes
    ]
    return columns(header, rows, align="<<>>>><<", limits=_NAMES | {7: 60})


def _how(node: OpRecord) -> str:
    """What ran, and for how many others, in a few words."""
    more = f"+ {len(node.covers)} fused" if node.covers else ""
    return "; ".join(filter(None, (node.reason, more)))


def _resources(nodes: Sequence[OpRecord]) -> list[str]:
    """Cycles that each resource alone would take; the longest binds."""
    names = list(dict.fromkeys(name for node in nodes for name in node.busy_cycles))
    header = ("op", "type", "cycles", "time", "share", "", *names, "bound by", "memory")
    rows = [
        (
            n.name,
            n.type or n.placed,
            format_count(n.cycles),
            format_ns(n.time_ns),
            format_percent(n.path_share),
            bar(n.path_share or 0, 10),
            *(UNKNOWN if n.cycles is None else format_count(n.busy_cycles.get(name, 0)) for name in names),
            n.bound or UNKNOWN,
            format_bytes(n.memory_bytes),
        )
        for n in nodes
    ]
    return columns(header, rows, align="<<>>><" + ">" * len(names) + "<>", limits=_NAMES)


def _counted(nodes: Sequence[OpRecord]) -> list[str]:
    """A device's own table: cycles as it counted them."""
    total = sum(node.cycles or 0 for node in nodes)
    rows = [
        (n.name, n.type, format_count(n.cycles), format_percent((n.cycles or 0) / total if total else None))
        for n in nodes
    ]
    return columns(("node", "type", "cycles", "share"), rows, align="<<>>", limits={0: 60, 1: 18})


def _busiest(nodes: Sequence[OpRecord]) -> list[str]:
    """Engines, the one with most cycles first."""
    cycles: Counter[str] = Counter()
    for node in nodes:
        cycles.update(node.busy_cycles)
    return [name for name, _ in cycles.most_common()]


def _engines(nodes: Sequence[OpRecord]) -> list[str]:
    """Engines of an accelerator, and bytes of its outer memory."""
    names = _busiest(nodes)
    header = ("node", "type", "wall", "path", "", *(f"{name} cyc" for name in names), "outer rd", "outer wr", "engines")
    rows = [
        (
            n.name,
            n.type or n.placed,
            format_ns(n.time_ns),
            format_percent(n.path_share),
            bar(n.path_share or 0, 10),
            *(UNKNOWN if n.time_ns is None else format_count(n.busy_cycles.get(name, 0)) for name in names),
            format_bytes(n.outer_read_bytes),
            format_bytes(n.outer_write_bytes),
            ",".join(n.engines),
        )
        for n in nodes
    ]
    return columns(header, rows, align="<<>><" + ">" * len(names) + ">><", limits=_NAMES)


def imported_table(ops: Sequence[OpRecord], top: int | None) -> list[str]:
    """Ops with what the other tool's file counts of them; with an estimate beside the time where it has both."""
    whole = sum(op.time_ns or 0 for op in ops)
    ranked = sorted(ops, key=lambda op: (-(op.time_ns or 0), -(op.cycles or 0), -(op.macs or 0)))[:top]
    modelled = any(op.estimated_ns is not None for op in ops)
    more = ("estimate", "time ÷ est.") if modelled else ("cycles", "MACs")
    rows = [_imported_row(op, whole, modelled=modelled) for op in ranked]
    header = ("op", "type", "engine", "time", "share", *more)
    table = columns(header, rows, align="<<<>>>>", limits={0: 44, 1: 24, 2: 22})
    left = len(ops) - len(ranked)
    return [*table, *([f"… and {left} more"] if left > 0 else [])]


def _imported_row(op: OpRecord, whole: int, *, modelled: bool) -> tuple[str, ...]:
    share = None if op.time_ns is None or not whole else op.time_ns / whole
    ratio = UNKNOWN if op.ratio is None else f"{op.ratio:,.3g}"
    counts = (format_ns(op.estimated_ns), ratio) if modelled else (format_count(op.cycles), format_count(op.macs))
    engine = op.engines[0] if op.engines else UNKNOWN
    return (op.name, op.type or UNKNOWN, engine, format_ns(op.time_ns), format_percent(share), *counts)
