"""Compiled ops → nodes of the ONNX model, with everything that is known of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ...core.meaning import Does
from ...graph.kinds import what_kind_does
from ...recording.recording import OpRecord, Placed
from .attribution import Attribution
from .compilation import Compilation, CompiledGraph, NodeWork
from .importers.schematic import FILL, OP_MASK, SPILL, CompiledOp, Schematic, Traffic
from .importers.timeline import ENGINES, SCALAR
from .kernel_words import does_of
from .node_path import Order
from .node_times import NodeCycles, node_cycles

_BITS = {  # of the compiler's data types
    "Float32": 32,
    "Float16": 16,
    "Int32": 32,
    "QInt32": 32,
    "QUInt16": 16,
    "QInt16": 16,
    "Int16": 16,
    "QUInt8": 8,
    "QInt8": 8,
    "UInt8": 8,
    "Int8": 8,
    "Bool8": 8,
}
_USES = {"uses_hvx": "HVX", "uses_hmx": "HMX", "uses_dma": "DMA", "uses_hlx": "HLX"}


@dataclass(slots=True)
class _Facts:
    """What the compiler says of one node."""

    kernels: Counter[str] = field(default_factory=Counter)  # by name
    moved: Counter[str] = field(default_factory=Counter)
    engines: set[str] = field(default_factory=set)
    reads_direct: bool = False  # a kernel reads a tensor in DDR, nobody says how much of it
    element_bits: int = 0  # of what its kernels write


def facts(schematic: Schematic, naming: Attribution) -> dict[str, _Facts]:
    """Bytes, engines and kernels of every node."""
    result: dict[str, _Facts] = defaultdict(_Facts)
    for op, flags in schematic.flags.items():
        if "null_exec" not in flags and "sync" not in flags:
            found = result[naming.name(op)]
            found.kernels[schematic.operation_of(op)] += 1
            found.engines.update(_USES[flag] for flag in flags if flag in _USES)
            if op in schematic.ops:
                found.element_bits = max(found.element_bits, _BITS.get(schematic.ops[op].dtype, 0))
    for row in schematic.moved:
        found = result[naming.name(row.id)]
        direct = row.dram_read and schematic.traffic_of(row) is Traffic.DIRECT
        found.reads_direct |= bool(direct)
        found.moved["dram_read"] += 0 if direct else row.dram_read
        found.moved["dram_write"] += row.dram_write
        found.moved["vtcm_read"] += row.vtcm_read
        found.moved["vtcm_write"] += row.vtcm_write
        if (operation := schematic.operation_of(row.id)) in (SPILL, FILL):
            found.moved[operation] += row.dram_write + row.dram_read
    return result


class GraphNodes:
    """The nodes of one compiled graph."""

    def __init__(
        self,
        graph: CompiledGraph,
        naming: Attribution,
        *,
        whole_ns: float | None,
        work: Mapping[str, NodeWork] | None = None,
    ) -> None:
        """`whole_ns` is the time of all graphs of the model, `work` what the model says of its nodes."""
        self.whole_ns = whole_ns
        self.graph, self.naming, self._work = graph, naming, work or {}
        self.facts = facts(graph.schematic, naming)
        self._before = {op.id & OP_MASK: op for op in graph.schematic.before.values()}
        self.clock_hz = graph.timeline.clock_hz if graph.timeline else None
        self.cycles: NodeCycles | None = None
        self.path: Counter[int] = Counter()
        self.order: Order | None = None
        if graph.timeline is not None:
            self.row_of_span = [naming.row(op) for op in graph.timeline.work["id"].tolist()]
            self.cycles = node_cycles(graph.timeline, self.row_of_span)
            self.order = Order(graph.timeline, graph.schematic)
            self.path_parts = self.order.dominant_path()
            for part in self.path_parts:
                self.path[self.row_of_span[part.span]] += part.end - part.begin

    def totals(self) -> Iterator[OpRecord]:
        """In the order of the graph."""
        for number, name in enumerate(self.naming.rows):
            found = self.facts.get(name, _Facts())
            if found.kernels or name not in self.naming.own:
                yield self._total(number, name, found)

    def _total(self, number: int, name: str, found: _Facts) -> OpRecord:
        op, model, done_by = self.naming.op_of.get(name), self.naming.nodes, self.naming.done_by
        placed = Placed.ACCELERATOR if name in model else Placed.INSERTED
        reason = "" if placed == Placed.ACCELERATOR else "not in the model: the compiler's own"
        if name in done_by:
            placed, reason = Placed.FUSED, _fused_reason(done_by[name])
        made_from = [node for node in op.nodes if node in model and node != name] if op else []
        covers = (*made_from, *(node for node, other in done_by.items() if other == name and node in model))
        moved, known = found.moved, self._work.get(name)
        total = OpRecord(
            name=name,
            type=self.naming.type_of(name),
            kind=known.kind if known else "",
            placed=placed,
            reason=reason,
            covers=tuple(dict.fromkeys(covers)),
            kernel=self._kernel(number, found),
            shape=self._shapes(name),
            macs=None if placed == Placed.FUSED else self.naming.macs(name),
            vector_bytes=_vector_bytes(known, found),
            calls=found.kernels.total(),
            outer_read_bytes=None if found.reads_direct else moved["dram_read"],
            outer_write_bytes=moved["dram_write"],
            local_read_bytes=moved["vtcm_read"],
            local_write_bytes=moved["vtcm_write"],
            spill_bytes=moved[SPILL],
            fill_bytes=moved[FILL],
            engines=tuple(engine for engine in ENGINES if engine in found.engines),
        )
        return self._timed(total, number)

    def _kernel(self, number: int, found: _Facts) -> str:
        """The kernel that takes most of its time; without times, of those that do not only move bytes the commonest."""
        spent = self.cycles.kernels.get(number) if self.cycles is not None else None
        if spent:
            return max(spent, key=lambda name: spent[name])
        own = {name: calls for name, calls in found.kernels.items() if does_of(name, "") is not Does.MOVE}
        return max(own or found.kernels, key=lambda name: found.kernels[name], default="")

    def _shapes(self, name: str) -> str:
        """What the compiler was given: the shape of its largest input, and of what it makes."""
        before = self._before
        ops = [before[op] for op in self.naming.ids(name) if op in before]
        if not ops:
            return ""
        inside = {op.id & OP_MASK for op in ops}
        sources = (source & OP_MASK for op in ops for source in op.inputs)
        inputs = [before[source] for source in sources if source in before and source not in inside]
        shapes = [_largest([op for op in inputs if op.operation[:1] != "$"]), ops[-1].dims]
        return " → ".join("x".join(map(str, dims)) for dims in shapes if dims)

    def _timed(self, total: OpRecord, number: int) -> OpRecord:
        """With what only a timeline can tell; a node that others do the work of has no time of its own."""
        wall = self.cycles.wall.get(number, 0) if self.cycles is not None else 0
        if self.cycles is None or (total.placed == Placed.FUSED and not wall):
            return total
        cycles, path_ns = self.cycles, self._ns(self.path[number])
        busy = Counter({e: n for e, n in cycles.busy.get(number, Counter()).items() if n and e != SCALAR})
        engines = tuple(dict.fromkeys((*(engine for engine, _ in busy.most_common()), *total.engines)))
        return replace(
            total,
            engines=engines,
            threads=cycles.threads[number].get(engines[0]) if engines else None,
            engine_threads=cycles.engine_threads.get(engines[0]) if engines else None,
            time_ns=self._ns(wall),
            busy_cycles=dict(busy),
            path_ns=path_ns,
            path_share=path_ns / self.whole_ns if self.whole_ns else None,
            wait_ns=self._ns(cycles.wait[number]),
            overlap_ns=self._ns(wall - cycles.alone.get(number, 0)),
        )

    def _ns(self, cycles: int) -> int:
        return round(cycles * 1e9 / self.clock_hz) if self.clock_hz else 0


def _vector_bytes(known: NodeWork | None, found: _Facts) -> int | None:
    """Operands, results and element operations of a node without products, at the width that it is computed in.

    What only moves data reads as much as it writes, whatever it is given.
    """
    moved = 2 * (found.moved["vtcm_write"] + found.moved["dram_write"])
    if known is None or what_kind_does(known.kind) is Does.LAYOUT:
        return moved or None
    if not found.element_bits or not known.element_bits or known.work.macs:
        return None
    work, share = known.work, found.element_bits / known.element_bits
    return round(max(work.bytes * share, work.element_ops * found.element_bits / 8)) or None


def _largest(ops: Sequence[CompiledOp]) -> tuple[int, ...]:
    return max((op.dims for op in ops), key=prod, default=())


def _fused_reason(owner: str | None) -> str:
    if owner is None:
        return "no kernel of its own; its work is part of another node's"
    return f"no kernel of its own; its work is part of {owner}"


def _idle(name: str, type_: str, placed: Placed, reason: str, known: NodeWork | None = None) -> OpRecord:
    """A node that has no kernel on the accelerator."""
    return OpRecord(name, type_, known.kind if known else "", placed=placed, reason=reason, calls=0)


def node_totals(compilation: Compilation, graphs: Iterable[GraphNodes]) -> tuple[OpRecord, ...]:
    """Every node of the model exactly once – by itself, or covered by another –, and what the compiler added."""
    rows = [total for graph in graphs for total in graph.totals()]
    refused = {node.name: node for node in compilation.op_trace.refused}
    named = {row.name for row in rows}
    named |= {node for row in rows for node in row.covers}
    for name, kind in compilation.nodes:
        if name in named:
            continue
        placed, reason = Placed.REMOVED, "merged into another node by the runtime before compilation"
        if name in refused:
            placed, reason = Placed.CPU, refused[name].reason
        rows.append(_idle(name, kind, placed, reason, compilation.work.get(name)))
    added = [node for name, node in refused.items() if name not in dict(compilation.nodes)]
    rows += [_idle(node.name, node.type, Placed.CPU, node.reason) for node in added]
    return tuple(rows)
