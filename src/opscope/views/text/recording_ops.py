"""Tables of ops with what the table of every profile has no column for: which follows from what the source tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...core.provenance import Provenance
from ...core.units import UNKNOWN, format_bytes, format_count, format_ns, format_percent
from ...recording.recording import OpRecord
from ..table import LEFT, Column, text_table

Columns = Sequence[Column[OpRecord]]
_NODE = Column[OpRecord]("node", lambda node: node.name, LEFT, 44)
_TYPE = Column[OpRecord]("type", lambda node: node.type or node.placed, LEFT, 18)
_CYCLES = Column[OpRecord]("cycles", lambda node: format_count(node.cycles))
_PATH = Column[OpRecord]("path", lambda node: format_percent(node.path_share))


def node_table(nodes: Sequence[OpRecord]) -> list[str]:
    """Lines of a table."""
    return text_table(_columns(nodes), nodes)


def _columns(nodes: Sequence[OpRecord]) -> Columns:
    if any(node.bound for node in nodes):
        return _of_resources(nodes)
    if any(node.cycles is not None for node in nodes):
        return _counted(nodes)
    return _of_engines(nodes)


def what_is_known(nodes: Sequence[OpRecord], provenance: Provenance) -> str:
    """How the figures of the table were obtained."""
    if any(node.bound for node in nodes):
        return f"cycles {provenance}, memory compiler-fact"
    return f"cycles {provenance if is_timed(nodes) else UNKNOWN}, bytes compiler-fact"


def is_timed(nodes: Sequence[OpRecord]) -> bool:
    return any(node.time_ns is not None for node in nodes)


WAITS: Columns = (  # of what the foreground thread does
    _NODE,
    _TYPE,
    Column("wall", lambda node: format_ns(node.time_ns)),
    Column("wait", lambda node: format_ns(node.wait_ns)),
    Column("overlap", lambda node: format_ns(node.overlap_ns)),
    Column("alone", lambda node: format_ns((node.time_ns or 0) - (node.overlap_ns or 0))),
    _PATH,
)


def _of_resources(nodes: Sequence[OpRecord]) -> Columns:
    """Cycles that each resource alone would take; the longest binds."""
    names = dict.fromkeys(name for node in nodes for name in node.busy_cycles)

    def cycles(name: str) -> Column[OpRecord]:
        return Column(name, lambda n: UNKNOWN if n.cycles is None else format_count(n.busy_cycles.get(name, 0)))

    bound = Column[OpRecord]("bound by", lambda node: node.bound or UNKNOWN, LEFT)
    memory = Column[OpRecord]("memory", lambda node: format_bytes(node.memory_bytes))
    return (_NODE._replace(head="op"), _CYCLES, *map(cycles, names), bound, memory)


def _counted(nodes: Sequence[OpRecord]) -> Columns:
    """A device's own table: cycles as it counted them."""
    total = sum(node.cycles or 0 for node in nodes)
    share = Column[OpRecord]("share", lambda n: format_percent((n.cycles or 0) / total if total else None))
    return _NODE._replace(limit=60), _CYCLES, share


def _of_engines(nodes: Sequence[OpRecord]) -> Columns:
    """Engines of an accelerator, the one with most cycles first, and bytes of its outer memory."""
    busy: Counter[str] = Counter()
    for node in nodes:
        busy.update(node.busy_cycles)

    def cycles(name: str) -> Column[OpRecord]:
        return Column(
            f"{name} cyc", lambda n: UNKNOWN if n.time_ns is None else format_count(n.busy_cycles.get(name, 0))
        )

    return (
        _NODE,
        _PATH,
        *(cycles(name) for name, _ in busy.most_common()),
        Column("outer rd", lambda node: format_bytes(node.outer_read_bytes)),
        Column("outer wr", lambda node: format_bytes(node.outer_write_bytes)),
        Column("engines", lambda node: ",".join(node.engines), LEFT),
    )


def imported_table(ops: Sequence[OpRecord], top: int | None) -> list[str]:
    """What the other tool's file counts of its ops; the estimate of their time, where it has both."""
    ranked = sorted(ops, key=lambda op: (-(op.time_ns or 0), -(op.cycles or 0), -(op.macs or 0)))[:top]
    modelled = any(op.estimated_ns is not None for op in ops)
    left = len(ops) - len(ranked)
    table = text_table((_NODE._replace(head="op"), *(_MODELLED if modelled else _COUNTS)), ranked)
    return [*table, *([f"… and {left} more"] if left > 0 else [])]


_COUNTS: Columns = (_CYCLES, Column("MACs", lambda op: format_count(op.macs)))
_MODELLED: Columns = (
    Column("estimate", lambda op: format_ns(op.estimated_ns)),
    Column("time ÷ est.", lambda op: UNKNOWN if op.ratio is None else f"{op.ratio:,.3g}"),
)
