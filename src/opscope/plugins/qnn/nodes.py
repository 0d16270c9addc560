"""Compiled ops → nodes of the ONNX model, with everything that is known of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...recording.recording import OpRecord, Placed
from .compilation import Compilation, CompiledGraph
from .importers.events import plain_name
from .importers.op_trace import MappedOp
from .importers.schematic import OP_MASK, Schematic
from .importers.timeline import ENGINES, SCALAR
from .node_path import Order
from .node_times import NodeCycles, node_cycles

_ENDS = {"q::Input": "input", "q::Output": "output"}
_USES = {"uses_hvx": "HVX", "uses_hmx": "HMX", "uses_dma": "DMA", "uses_hlx": "HLX"}


@dataclass(slots=True)
class _Facts:
    """What the compiler says of one node."""

    kernels: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    engines: set[str] = field(default_factory=set)


class Naming:
    """Names of the ops of one compiled graph, in the words of the model."""

    def __init__(self, graph: CompiledGraph, mapped: Sequence[MappedOp], nodes: Mapping[str, str]) -> None:
        """Names of all compiled ops: of the model's node where one is known, else of the graph."""
        self.nodes = nodes
        self.rest = graph.name  # what belongs to no node
        self.own = {self.rest, *(f"{graph.name} {end}" for end in _ENDS.values())}  # rows that no node of the model is
        self.mapped = {op.name: op for op in mapped}
        schematic = graph.schematic
        self._names = {
            op: f"{graph.name} {_ENDS[known.operation]}"
            for op, known in schematic.before.items()
            if known.operation in _ENDS
        }
        self._names |= {op: self.main_node(name) for op, name in schematic.names.items()}
        self.rows = tuple(dict.fromkeys((*self._names.values(), self.rest)))
        self._row = {name: number for number, name in enumerate(self.rows)}
        self.op_of = {self.main_node(name): self.mapped.get(name) for name in schematic.names.values()}

    def main_node(self, op_name: str) -> str:
        """The node of the model that an op given to the compiler is: its own name, or the one it was made from."""
        name = plain_name(op_name)
        if name in self.nodes:
            return name
        op = self.mapped.get(op_name)
        for source in op.nodes if op else ():
            if source in self.nodes and self.nodes[source] not in ("QuantizeLinear", "DequantizeLinear"):
                return source
        return op_name

    def ids(self) -> Iterator[tuple[int, str]]:
        yield from self._names.items()

    def name(self, op_id: int) -> str:
        return self._names.get(op_id & OP_MASK, self.rest)

    def row(self, op_id: int) -> int:
        return self._row[self.name(op_id)]


def facts(schematic: Schematic, naming: Naming) -> dict[str, _Facts]:
    """Bytes, engines and number of kernels of every node."""
    result: dict[str, _Facts] = defaultdict(_Facts)
    for op, flags in schematic.flags.items():
        if "null_exec" not in flags and "sync" not in flags:
            found = result[naming.name(op)]
            found.kernels += 1
            found.engines.update(_USES[flag] for flag in flags if flag in _USES)
    for row in schematic.moved:
        moved = result[naming.name(row.id)].moved
        for key in ("dram_read", "dram_write", "vtcm_read", "vtcm_write"):
            moved[key] += getattr(row, key)
    operations = {step.id: step.operation for step in schematic.steps}
    for row in schematic.moved:
        operation = operations.get(row.id, "")
        if operation in ("@Spill", "@Fill"):
            result[naming.name(row.id)].moved[operation] += row.dram_write + row.dram_read
    return result


class GraphNodes:
    """The nodes of one compiled graph."""

    def __init__(self, graph: CompiledGraph, naming: Naming, *, whole_ns: float | None) -> None:
        """`whole_ns` is the time of all graphs of the model."""
        self.whole_ns = whole_ns
        self.graph, self.naming = graph, naming
        self.facts = facts(graph.schematic, naming)
        self.clock_hz = graph.timeline.clock_hz if graph.timeline else None
        self.cycles: NodeCycles | None = None
        self.path: Counter[int] = Counter()
        self.order: Order | None = None
        self._users: dict[int, list[int]] = defaultdict(list)
        for op in graph.schematic.before.values():
            for source in op.inputs:
                self._users[source].append(op.id)
        if graph.timeline is not None:
            self.row_of_span = [naming.row(op) for op in graph.timeline.work["id"].tolist()]
            self.cycles = node_cycles(graph.timeline, self.row_of_span)
            self.order = Order(graph.timeline, graph.schematic)
            self.path_parts = self.order.dominant_path()
            for part in self.path_parts:
                self.path[self.row_of_span[part.span]] += part.end - part.begin

    def totals(self) -> Iterator[OpRecord]:
        """In the order of the graph."""
        shown = {
            name: found
            for name in self.naming.rows
            if (found := self.facts.get(name, _Facts())).kernels or name not in self.naming.own
        }
        owner = {name: self._next_with_kernels(name) for name, found in shown.items() if not found.kernels}
        for number, name in enumerate(self.naming.rows):
            if name in shown:
                yield self._total(number, name, shown[name], owner)

    def _total(self, number: int, name: str, found: _Facts, owner: Mapping[str, str | None]) -> OpRecord:
        """`owner` has, of every node without kernels, the one that does its work."""
        op, model = self.naming.op_of.get(name), self.naming.nodes
        placed = Placed.ACCELERATOR if name in model else Placed.INSERTED
        reason = "" if placed == Placed.ACCELERATOR else "not in the model: the compiler's own"
        if name in owner:
            placed, reason = Placed.FUSED, _fused_reason(owner[name])
        made_from = [node for node in op.nodes if node in model and node != name] if op else []
        covers = (*made_from, *(node for node, other in owner.items() if other == name and node in model))
        moved = found.moved
        total = OpRecord(
            name=name,
            type=model.get(name) or (op.type if op else ""),
            kind=op.type if op else "",
            placed=placed,
            reason=reason,
            covers=tuple(dict.fromkeys(covers)),
            calls=found.kernels,
            outer_read_bytes=moved["dram_read"],
            outer_write_bytes=moved["dram_write"],
            local_read_bytes=moved["vtcm_read"],
            local_write_bytes=moved["vtcm_write"],
            spill_bytes=moved["@Spill"],
            fill_bytes=moved["@Fill"],
            engines=tuple(engine for engine in ENGINES if engine in found.engines),
        )
        return self._timed(total, number)

    def _next_with_kernels(self, name: str) -> str | None:
        """The compiler does not say where work went, but it goes with the data."""
        queue = [op for op, node in self.naming.ids() if node == name]
        seen: set[int] = set()
        while queue:
            op = queue.pop(0)
            for user in self._users.get(op, ()):
                node = self.naming.name(user)
                if node != name and node not in self.naming.own and self.facts.get(node, _Facts()).kernels:
                    return node
                if user not in seen:
                    seen.add(user)
                    queue.append(user)
        return None

    def _timed(self, total: OpRecord, number: int) -> OpRecord:
        """With what only a timeline can tell; a node that others do the work of has no time of its own."""
        wall = self.cycles.wall.get(number, 0) if self.cycles is not None else 0
        if self.cycles is None or (total.placed == Placed.FUSED and not wall):
            return total
        cycles, path_ns = self.cycles, self._ns(self.path[number])
        busy = cycles.busy.get(number, Counter())
        return replace(
            total,
            time_ns=self._ns(wall),
            busy_cycles={engine: n for engine, n in busy.items() if n and engine != SCALAR},
            path_ns=path_ns,
            path_share=path_ns / self.whole_ns if self.whole_ns else None,
            wait_ns=self._ns(cycles.wait[number]),
            overlap_ns=self._ns(wall - cycles.alone.get(number, 0)),
        )

    def _ns(self, cycles: int) -> int:
        return round(cycles * 1e9 / self.clock_hz) if self.clock_hz else 0


def _fused_reason(owner: str | None) -> str:
    if owner is None:
        return "no kernel of its own; its work is part of another node's"
    return f"no kernel of its own; the next node with kernels is {owner}"


def _idle(name: str, kind: str, placed: Placed, reason: str) -> OpRecord:
    """A node that has no kernel on the accelerator."""
    return OpRecord(name, kind, placed=placed, reason=reason, calls=0)


def node_totals(compilation: Compilation, graphs: Iterable[GraphNodes]) -> tuple[OpRecord, ...]:
    """Every node of the model exactly once – by itself, or covered by another –, and what the compiler added."""
    rows = [total for graph in graphs for total in graph.totals()]
    refused = {node.name: node for node in compilation.op_trace.refused}
    named = {row.name for row in rows}
    named |= {node for row in rows for node in row.covers}
    for name, kind in compilation.nodes:
        if name in named:
            continue
        if name in refused:
            rows.append(_idle(name, kind, Placed.CPU, refused[name].reason))
        else:
            rows.append(_idle(name, kind, Placed.REMOVED, "merged into another node by the runtime before compilation"))
    added = [node for name, node in refused.items() if name not in dict(compilation.nodes)]
    rows += [_idle(node.name, node.type, Placed.CPU, node.reason) for node in added]
    return tuple(rows)
