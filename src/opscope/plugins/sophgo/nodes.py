"""Ops of the compiled network → nodes of the ONNX model that they were made from.

The compiler names what an op writes after the model: `TENSOR_OP`, of the last node that it fused, with `_f16` and the
like behind a conversion. A node without an op of its own is fused into the one behind it that has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core.errors import printable
from ...estimate.work import work_of
from ...graph.graph import ABSENT, Graph, Op
from ...graph.kinds import what_kind_does
from ...recording.recording import OpRecord, Placed
from .compiled_files import LOAD, STORE, Compiled, CompiledOp
from .meaning import does_of_op
from .ops import OpRows

_UNTIMED = {  # mode of a subnet → where its ops run, and why nobody knows how long
    "CPU": (Placed.CPU, "runs on the host's CPU, of which the compiler has no model"),
    "TPU_DYNAMIC": (Placed.ACCELERATOR, "compiled dynamically: the compiler schedules it on the chip, at run time"),
}


def node_rows(graph: Graph, compiled: Compiled) -> OpRows:
    """Every node of the model once, in order, then what the compiler added."""
    owners, writer = compiled.owners(), _writers(graph)
    node_of = {line: _node_of(op, graph, writer) for line, op in compiled.ops.items() if owners[line] == line}
    leader = _leaders(graph, {node for node in node_of.values() if node is not None})
    macs = [work_of(op, graph).macs for op in graph.ops]
    main_of = _main_nodes(graph, leader, macs)
    place = {node: main_of[leader[node]] for node in leader if leader[node] is not None}
    rows = [_row(graph, number, place, main_of, leader, macs) for number in range(len(graph.ops))]
    of_line: dict[int, int] = {}
    for line in sorted(compiled.ops):
        owner = owners[line]
        if owner not in of_line:
            node = node_of.get(owner)
            if node is None:
                rows.append(_inserted(compiled.ops[owner]))
            of_line[owner] = len(rows) - 1 if node is None else place.get(node, node)
        of_line[line] = of_line[owner]
    return OpRows(tuple(_untimed(_with_kernels(rows, compiled, of_line), compiled, of_line)), of_line)


def _with_kernels(rows: Sequence[OpRecord], compiled: Compiled, of_line: Mapping[int, int]) -> list[OpRecord]:
    """Rows of nodes with what the compiler calls the op that they became."""
    opcode: dict[int, str] = {}
    for line, op in sorted(compiled.ops.items()):
        if op.opcode not in (LOAD, STORE):
            opcode.setdefault(of_line[line], op.opcode)
    return [replace(row, kernel=row.kernel or opcode.get(place, "")) for place, row in enumerate(rows)]


def _writers(graph: Graph) -> dict[str, int]:
    """Name of a tensor → the node that writes it."""
    return {graph.tensors[t].name: n for n, op in enumerate(graph.ops) for t in op.outputs if t != ABSENT}


def _node_of(op: CompiledOp, graph: Graph, writer: Mapping[str, int]) -> int | None:
    """The node whose tensor the name of a result begins with, the longest first; None: the compiler added the op."""
    for result in op.results:
        name = result
        while name:
            if name in writer:
                found = writer[name]
                converts = op.opcode == "Cast" and graph.ops[found].kind != "cast"
                return None if converts else found
            name = name.rpartition("_")[0]
    return None


def _leaders(graph: Graph, named: set[int]) -> dict[int, int | None]:
    """Node → the node in whose op its work is done: itself, or the first behind it that has one; None: nobody's."""
    readers: dict[int, list[int]] = {}
    for number, op in enumerate(graph.ops):
        for tensor in op.inputs:
            readers.setdefault(tensor, []).append(number)
    found: dict[int, int | None] = {}
    for number in range(len(graph.ops) - 1, -1, -1):  # those behind a node come first
        behind = [
            reader for tensor in graph.ops[number].outputs for reader in readers.get(tensor, ()) if reader > number
        ]
        follows = next((found[reader] for reader in behind if found.get(reader) is not None), None)
        found[number] = number if number in named else follows
    return found


def _main_nodes(graph: Graph, leader: Mapping[int, int | None], macs: Sequence[int]) -> dict[int | None, int]:
    """Named node → the node of its group that says what the op is: the one that multiplies most, else itself."""
    groups: dict[int, list[int]] = {}
    for number in range(len(graph.ops)):
        lead = leader[number]
        if lead is not None:
            groups.setdefault(lead, []).append(number)
    return {lead: max(members, key=lambda n: (macs[n], n == lead)) for lead, members in groups.items()}


def _row(  # noqa: PLR0917 – what is known of all nodes
    graph: Graph,
    number: int,
    place: Mapping[int, int],
    main_of: Mapping[int | None, int],
    leader: Mapping[int, int | None],
    macs: Sequence[int],
) -> OpRecord:
    op = graph.ops[number]
    base = OpRecord(op.name, op.type, op.kind, op.location, does=what_kind_does(op.kind), shape=_shape(graph, op))
    lead = leader[number]
    if lead is None:
        return replace(base, placed=Placed.REMOVED, reason="no command: folded, or a view", calls=0)
    main = main_of[lead]
    if main != number:
        return replace(base, placed=Placed.FUSED, reason=f"fused into {graph.ops[main].name}", calls=0)
    others = [n for n, its in place.items() if its == number and n != number]
    whole = sum(macs[n] for n in (number, *others))
    covers = tuple(graph.ops[n].name for n in sorted(others))
    return replace(base, placed=Placed.ACCELERATOR, macs=whole, covers=covers)


def _shape(graph: Graph, op: Op) -> str:
    first = next((graph.tensors[tensor] for tensor in op.outputs if tensor != ABSENT), None)
    return "" if first is None or first.shape is None else "x".join(map(str, first.shape))


def _inserted(op: CompiledOp) -> OpRecord:
    name = op.results[0] if op.results else f"{op.opcode}_{op.line}"
    return OpRecord(
        printable(name, 500),
        op.opcode,
        location=f"final.mlir line {op.line}",
        does=does_of_op(op.opcode),
        placed=Placed.INSERTED,
        reason="added by the compiler",
        shape=op.shape,
        kernel=op.opcode,
    )


def _untimed(rows: Sequence[OpRecord], compiled: Compiled, of_line: Mapping[int, int]) -> list[OpRecord]:
    """Rows of ops that no schedule has are of unknown cost."""
    found = {of_line[line]: _UNTIMED[op.mode] for line, op in compiled.ops.items() if op.mode in _UNTIMED}
    return [
        replace(row, placed=found[place][0], reason=found[place][1], unknown=found[place][1], engines=(), macs=None)
        if place in found
        else row
        for place, row in enumerate(rows)
    ]
