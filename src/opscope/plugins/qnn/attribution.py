"""Compiled ops → the nodes of the model that they do the work of.

The compiler names a kernel after the last node that was fused into it: the convolution of Conv + Sigmoid + Mul is
"Mul". Nodes without kernels of their own and the node whose kernels do their work are a group. A kernel of a group
belongs to the node of its own type (Softmax to Softmax), else to the node that has most of the multiply-accumulates,
else to the node that the compiler names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from .compilation import CompiledGraph
from .importers.events import QUANTISERS, made_of, plain_name
from .importers.op_trace import MappedOp
from .importers.schematic import OP_MASK, Schematic

_ENDS = {"q::Input": "input", "q::Output": "output"}
_NO_NODES = ("", *QUANTISERS)  # types that work is not booked on
_NO_KERNEL = ("null_exec", "sync")
_STEM = re.compile(r"[a-z]+")
_PRODUCT = ("convlayer", "depthwiseconv")  # stems of kernels that multiply and accumulate, whatever the node is called
_STEMS = {  # of kernels, where the node of the model has another word for it
    "slicepad": ("slice", "gather", "split", "squeeze", "pad"),
    "stridedslice": ("slice", "gather", "split"),
    "alignedslice": ("slice", "gather", "split"),
    "slice": ("slice", "gather", "split"),
    "reluminmax": ("relu", "clip"),
    "recip": ("reciprocal", "div"),
    "avgpool": ("averagepool", "globalaveragepool"),
    "maxpool": ("maxpool", "globalmaxpool"),
}
_SHORTEST = 3  # characters of a stem that tells a type: "fp16_log" has none


class Attribution:
    """Names of the compiled ops of one graph, in the words of the model. A name is a row."""

    def __init__(
        self,
        graph: CompiledGraph,
        mapped: Sequence[MappedOp],
        nodes: Mapping[str, str],
        macs: Mapping[str, int] | None = None,
    ) -> None:
        """`nodes` has the type of every node of the model, `macs` the multiply-accumulates of those that have any."""
        self.nodes, self._macs = nodes, macs or {}
        self.rest = graph.name  # what belongs to no node
        self.own = {self.rest, *(f"{graph.name} {end}" for end in _ENDS.values())}  # rows that no node of the model is
        self._mapped = {op.name: op for op in mapped}
        self._schematic = schematic = graph.schematic
        self._given = {
            op: f"{graph.name} {_ENDS[known.operation]}"
            for op, known in schematic.before.items()
            if known.operation in _ENDS
        }
        self._given |= {op: self._main_node(name) for op, name in schematic.names.items()}
        self.rows = tuple(dict.fromkeys((*self._given.values(), self.rest)))
        self._row = {name: number for number, name in enumerate(self.rows)}
        self.op_of = {self._main_node(name): self._mapped.get(name) for name in schematic.names.values()}
        self._groups = self._grouped(schematic)
        self._names: dict[int, str] = {}
        kept = {self.name(op) for op in _with_kernels(schematic)}
        owner = {node: last for last, group in self._groups.items() for node in (last, *group)}
        self.done_by = {  # node without kernels → the one that does its work; None: nobody knows
            node: self._head(owner[node]) if node in owner else None
            for node in self.rows
            if node not in kept and node not in self.own
        }

    def name(self, op_id: int) -> str:
        """The row that a compiled op belongs to."""
        found = self._names.get(op_id)
        if found is None:
            found = self._names[op_id] = self._choose(op_id)
        return found

    def row(self, op_id: int) -> int:
        return self._row[self.name(op_id)]

    def given(self, op_id: int) -> MappedOp | None:
        """The op given to the compiler that a compiled one was made of."""
        return self._mapped.get(self._schematic.names.get(op_id & OP_MASK, ""))

    def ids(self, name: str) -> Iterator[int]:
        """Of a row: the ops that the compiler was given for it."""
        return (op for op, given in self._given.items() if given == name)

    def type_of(self, name: str) -> str:
        """As the model has it; of what the compiler added, in the compiler's words."""
        op = self.op_of.get(name)
        return self.nodes.get(name) or (op.type if op else "")

    def macs(self, name: str) -> int | None:
        """Of a row, with those of the nodes that it does the work of; None where the model was not read."""
        if not self._macs:
            return None
        return self._macs.get(name, 0) + sum(self._macs.get(n, 0) for n, other in self.done_by.items() if other == name)

    def _main_node(self, op_name: str) -> str:
        """The node of the model that an op given to the compiler is: its own name, or the one it was made from."""
        own = made_of(plain_name(op_name), self.nodes)
        if own:
            return own
        op = self._mapped.get(op_name)
        made_from = [source for source in (op.nodes if op else ()) if self.nodes.get(source, "") not in _NO_NODES]
        return max(made_from, key=lambda source: self._macs.get(source, 0), default=op_name)

    def _grouped(self, schematic: Schematic) -> dict[str, tuple[str, ...]]:
        """Node with kernels → the nodes that it does the work of: work goes with the data.

        Those are nodes without kernels, and nodes whose products are computed by the next, as where only the padding
        of a convolution has a kernel that bears its name.
        """
        users: dict[int, list[int]] = defaultdict(list)
        for op in schematic.before.values():
            for source in op.inputs:
                users[source & OP_MASK].append(op.id & OP_MASK)
        ids: dict[str, list[int]] = defaultdict(list)
        for number, node in self._given.items():
            ids[node].append(number)
        busy, multiply = set(), set()
        for kernel in _with_kernels(schematic):
            node = self._given.get(kernel & OP_MASK, self.rest)
            busy.add(node)
            if "uses_hmx" in schematic.flags[kernel] or self._stem(kernel).startswith(_PRODUCT):
                multiply.add(node)
        groups: dict[str, list[str]] = defaultdict(list)
        for node in self.rows:
            if node in self.own or (node in busy and (node in multiply or not self._macs.get(node))):
                continue
            last = self._next_of(node, ids[node], users, busy)
            if last is not None and (node not in busy or (last in multiply and not self._macs.get(last))):
                groups[last].append(node)
        return {last: tuple(group) for last, group in groups.items()}

    def _next_of(self, node: str, ops: Sequence[int], users: Mapping[int, Sequence[int]], busy: set[str]) -> str | None:
        """The first node behind one that has kernels."""
        queue, seen = list(ops), set(ops)
        for op in queue:
            for user in users.get(op, ()):
                other = self._given.get(user, self.rest)
                if other != node and other not in self.own and other in busy:
                    return other
                if user not in seen:
                    seen.add(user)
                    queue.append(user)
        return None

    def _head(self, last: str) -> str:
        """Of a group: the node with most multiply-accumulates; where none has any, the one that the compiler names."""
        return max((last, *self._groups.get(last, ())), key=lambda node: self._macs.get(node, 0))

    def _stem(self, op_id: int) -> str:
        return next(iter(_STEM.findall(self._schematic.operation_of(op_id).lower())), "")

    def _choose(self, op_id: int) -> str:
        last = self._given.get(op_id & OP_MASK, self.rest)
        if last not in self._groups:
            return last
        stem = self._stem(op_id)
        if not stem.startswith(_PRODUCT) and len(stem) >= _SHORTEST:
            for node in (last, *self._groups[last]):
                if _tells(stem, self.type_of(node).lower()):
                    return node
        return self._head(last)


def _with_kernels(schematic: Schematic) -> Iterator[int]:
    """Compiled ops that do something."""
    return (op for op, flags in schematic.flags.items() if not any(word in flags for word in _NO_KERNEL))


def _tells(stem: str, kind: str) -> bool:
    return kind in _STEMS.get(stem, ()) or kind.startswith(stem)
