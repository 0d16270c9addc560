"""Tables of ops: which columns there are follows from what the source tells of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...core.provenance import Provenance
from ...core.units import UNKNOWN, format_bytes, format_count, format_ns, format_percent
from ...recording.recording import OpRecord
from ..table import LEFT, Column, text_table
from .columns import bar

Columns = Sequence[Column[OpRecord]]
_NODE = Column[OpRecord]("node", lambda node: node.name, LEFT, 44)
_TYPE = Column[OpRecord]("type", lambda node: node.type or node.placed, LEFT, 18)
_CYCLES = Column[OpRecord]("cycles", lambda node: format_count(node.cycles))
_TIME = Column[OpRecord]("time", lambda node: format_ns(node.time_ns))
_SHARE = Column[OpRecord]("share", lambda node: format_percent(node.path_share))
_BAR = Column[OpRecord]("", lambda node: bar(node.path_share or 0, 10), LEFT)


def node_table(nodes: Sequence[OpRecord]) -> list[str]:
    """Lines of a table."""
    return text_table(_columns(nodes), nodes)


def _columns(nodes: Sequence[OpRecord]) -> Columns:
    if any(node.low_ns is not None for node in nodes):
        return _SAMPLES
    if any(node.bound for node in nodes):
        return _of_resources(nodes)
    if any(node.cycles is not None for node in nodes):
        return _counted(nodes)
    return _of_engines(nodes)


def what_is_known(nodes: Sequence[OpRecord], provenance: Provenance) -> str:
    """How the figures of the table were obtained."""
    if any(node.low_ns is not None for node in nodes):
        return f"median and 10th to 90th percentile, {provenance}"
    if any(node.bound for node in nodes):
        return f"cycles and times {provenance}, memory compiler-fact"
    return f"times {provenance if is_timed(nodes) else UNKNOWN}, bytes compiler-fact"


def is_timed(nodes: Sequence[OpRecord]) -> bool:
    return any(node.time_ns is not None for node in nodes)


def _how(node: OpRecord) -> str:
    """What ran, and for how many others, in a few words."""
    more = f"+ {len(node.covers)} fused" if node.covers else ""
    return "; ".join(filter(None, (node.reason, more)))


_SAMPLES: Columns = (  # measured again and again
    _NODE,
    _TYPE,
    _TIME,
    Column("10th", lambda node: format_ns(node.low_ns)),
    Column("90th", lambda node: format_ns(node.high_ns)),
    _SHARE,
    _BAR,
    Column("", _how, LEFT, 60),
)


WAITS: Columns = (  # of what the foreground thread does
    _NODE,
    _TYPE,
    _TIME._replace(head="wall"),
    Column("wait", lambda node: format_ns(node.wait_ns)),
    Column("overlap", lambda node: format_ns(node.overlap_ns)),
    Column("alone", lambda node: format_ns((node.time_ns or 0) - (node.overlap_ns or 0))),
    _SHARE._replace(head="path"),
)


def _of_resources(nodes: Sequence[OpRecord]) -> Columns:
    """Cycles that each resource alone would take; the longest binds."""
    names = dict.fromkeys(name for node in nodes for name in node.busy_cycles)

    def cycles(name: str) -> Column[OpRecord]:
        return Column(name, lambda n: UNKNOWN if n.cycles is None else format_count(n.busy_cycles.get(name, 0)))

    bound = Column[OpRecord]("bound by", lambda node: node.bound or UNKNOWN, LEFT)
    memory = Column[OpRecord]("memory", lambda node: format_bytes(node.memory_bytes))
    return (_NODE._replace(head="op"), _TYPE, _CYCLES, _TIME, _SHARE, _BAR, *map(cycles, names), bound, memory)


def _counted(nodes: Sequence[OpRecord]) -> Columns:
    """A device's own table: cycles as it counted them."""
    total = sum(node.cycles or 0 for node in nodes)
    share = Column[OpRecord]("share", lambda n: format_percent((n.cycles or 0) / total if total else None))
    return _NODE._replace(limit=60), _TYPE._replace(text=lambda node: node.type), _CYCLES, share


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
        _TYPE,
        _TIME._replace(head="wall"),
        _SHARE._replace(head="path"),
        _BAR,
        *(cycles(name) for name, _ in busy.most_common()),
        Column("outer rd", lambda node: format_bytes(node.outer_read_bytes)),
        Column("outer wr", lambda node: format_bytes(node.outer_write_bytes)),
        Column("engines", lambda node: ",".join(node.engines), LEFT),
    )


def imported_table(ops: Sequence[OpRecord], top: int | None) -> list[str]:
    """Ops with what the other tool's file counts of them; with an estimate beside the time where it has both."""
    whole = sum(op.time_ns or 0 for op in ops)
    ranked = sorted(ops, key=lambda op: (-(op.time_ns or 0), -(op.cycles or 0), -(op.macs or 0)))[:top]
    modelled = any(op.estimated_ns is not None for op in ops)
    left = len(ops) - len(ranked)
    table = text_table((*_imported(whole), *(_MODELLED if modelled else _COUNTS)), ranked)
    return [*table, *([f"… and {left} more"] if left > 0 else [])]


def _imported(whole_ns: int) -> Columns:
    def share(op: OpRecord) -> str:
        return format_percent(None if op.time_ns is None or not whole_ns else op.time_ns / whole_ns)

    return (
        _NODE._replace(head="op"),
        Column("type", lambda op: op.type or UNKNOWN, LEFT, 24),
        Column("engine", lambda op: op.engines[0] if op.engines else UNKNOWN, LEFT, 22),
        _TIME,
        Column("share", share),
    )


_COUNTS: Columns = (_CYCLES, Column("MACs", lambda op: format_count(op.macs)))
_MODELLED: Columns = (
    Column("estimate", lambda op: format_ns(op.estimated_ns)),
    Column("time ÷ est.", lambda op: UNKNOWN if op.ratio is None else f"{op.ratio:,.3g}"),
)
