"""Nodes of the model ↔ nodes that ONNX Runtime ran: what became of each, through fusion.

The runtime saves the graph that it runs. A node of it belongs to a node of the model by name (the runtime decorates
names: `fused X`, `X_token_3`, `X/MatMulAddFusion`, and `TENSOR_nchwc` after the tensor that was written), because it
writes the same tensor, or because a known node reads it where the model's does. What is left of the model was folded
into a constant, removed, or fused: an op whose result is never stored did its work in the node that stores the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

NOWHERE = -1
_DECORATION = re.compile(r"_token_\d+$|/\w*Fusion\w*/?$|^fused |_nchwc$|_nhwc$|_quant$|_quantized$|/duplicated$")
_CAST_TENSOR = re.compile(r"^(?:InsertedPrecisionFreeCast_|InsertedCast_|FusedBack_)+")
_VARIANT = re.compile(r"^(?:Fused|QLinear|Nhwc|Q(?=Gemm|Attention)|DynamicQuantize|Skip|Bias|Fast|Simplified)+")
REORDERS = frozenset({"ReorderInput", "ReorderOutput"})  # to and from blocks of channels; of no domain but its own
_MOVES = REORDERS | {
    "Transpose",
    "Reshape",
    "Cast",
    "Identity",
    "Squeeze",
    "Unsqueeze",
    "QuantizeLinear",
    "DequantizeLinear",
    "MemcpyFromHost",
    "MemcpyToHost",
}
_NOTHING = frozenset({"Identity", "Dropout"})


@dataclass(frozen=True, slots=True)
class Node:
    """A node of either graph; tensors go by name."""

    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a node of the model."""

    ran: int  # position of the executed node that does its work; NOWHERE: none does
    reason: str = ""  # where none does: why


@dataclass(frozen=True, slots=True)
class Mapped:
    """Both directions."""

    fates: tuple[Fate, ...]  # per node of the model
    leaders: tuple[int, ...]  # per executed node: the node of the model that it is shown as; NOWHERE: inserted
    reasons: tuple[str, ...]  # per executed node: why it was inserted; empty: it was not
    parts: tuple[int, ...]  # per executed node: the one that it is a part of, where the runtime took a node apart

    def covered(self) -> Mapping[int, list[int]]:
        """Executed node → the nodes of the model whose work it does."""
        return _covered(self.fates)

    def groups(self) -> list[list[int]]:
        """Every executed node with those that are a part of it, in order; a part has an empty group."""
        groups: list[list[int]] = [[] for _ in self.leaders]
        for ran, whole in enumerate(self.parts):
            groups[ran if whole == NOWHERE else whole].append(ran)
        return groups


def map_nodes(model: Sequence[Node], executed: Sequence[Node], constants: AbstractSet[str]) -> Mapped:
    """Every node of the model gets one fate; nodes stand in an order in which they can run.

    Args:
        constants: tensors that the executed graph holds as constants.
    """
    search = _Search(model, executed, constants)
    fates = tuple(search.fates())
    leaders = tuple(search.leaders(fates))
    parts = tuple(search.parts(leaders))
    reasons = tuple(
        "" if leader != NOWHERE or parts[place] != NOWHERE else search.insertion(place)
        for place, leader in enumerate(leaders)
    )
    return Mapped(fates, leaders, reasons, parts)


def _covered(fates: Sequence[Fate]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for place, fate in enumerate(fates):
        if fate.ran != NOWHERE:
            found.setdefault(fate.ran, []).append(place)
    return found


class _Search:
    def __init__(self, model: Sequence[Node], executed: Sequence[Node], constants: AbstractSet[str]) -> None:
        self.model, self.executed = model, executed
        self.constants = {*constants, *(_CAST_TENSOR.sub("", tensor) for tensor in constants)}
        self.by_name = {node.name: place for place, node in enumerate(model)}
        self.writer = {tensor: place for place, node in enumerate(model) for tensor in node.outputs if tensor}
        self.ran_writer = {tensor: place for place, node in enumerate(executed) for tensor in node.outputs if tensor}
        self.claims: dict[int, int] = {}  # node of the model → executed node
        self.named: dict[int, int] = {}  # executed node → node of the model that its name tells
        self._claim_by_name()
        self._claim_by_tensor()
        self._claim_by_reader()

    @cached_property
    def readers(self) -> Mapping[int, list[int]]:
        """Node of the model → those that read what it writes."""
        found: dict[int, list[int]] = {}
        for place, node in enumerate(self.model):
            for tensor in dict.fromkeys(node.inputs):
                if tensor in self.writer:
                    found.setdefault(self.writer[tensor], []).append(place)
        return found

    def _claim_by_name(self) -> None:
        """Exact names before decorated ones: `X_token_3` is X only where X itself did not run."""
        for exact in (True, False):
            for place, node in enumerate(self.executed):
                found = self.by_name.get(node.name, NOWHERE) if exact else self._undecorated(node.name)
                if found != NOWHERE and place not in self.named and found not in self.claims:
                    self.claims[found], self.named[place] = place, found

    def _undecorated(self, name: str) -> int:
        while True:
            shorter = _DECORATION.sub("", name, count=1)
            if shorter == name:
                return NOWHERE
            name = shorter
            found = self.by_name.get(name, self.writer.get(name, NOWHERE))
            if found != NOWHERE:
                return found

    def _claim_by_tensor(self) -> None:
        """A node that writes a tensor of the model does what wrote it; a move behind a node writes in its name."""
        workers: list[int] = []  # of every executed node: itself, or the one in front of moves that stand behind it
        for place, node in enumerate(self.executed):
            is_move = node.type in _MOVES and place not in self.named
            source = self.ran_writer.get(node.inputs[0], NOWHERE) if node.inputs else NOWHERE
            workers.append(place if not is_move else workers[source] if NOWHERE < source < place else NOWHERE)
            for tensor in node.outputs:
                wrote = self._written(tensor)
                if wrote != NOWHERE and wrote not in self.claims:
                    worker = place if self.model[wrote].type == node.type else workers[place]
                    if worker != NOWHERE:
                        self.claims[wrote] = worker

    def _written(self, tensor: str) -> int:
        """The node of the model that writes a tensor; the runtime renames those that it keeps in another precision."""
        return self.writer.get(tensor, self.writer.get(_CAST_TENSOR.sub("", tensor), NOWHERE))

    def _claim_by_reader(self) -> None:
        """A node that changed both names is known by who reads it: the same type, at the same input of a known node."""
        owners: dict[int, list[int]] = {}
        for place, ran in self.claims.items():
            owners.setdefault(ran, []).append(place)
        reads = [
            (self.ran_writer[tensor], reader, at)
            for reader, node in enumerate(self.executed)
            for at, tensor in enumerate(node.inputs)
            if tensor in self.ran_writer
        ]
        for ran, reader, at in reversed(reads):
            if ran in owners or self.executed[ran].type in _MOVES:
                continue
            for owner in owners.get(reader, ()):
                inputs = self.model[owner].inputs
                found = self.writer.get(inputs[at], NOWHERE) if at < len(inputs) else NOWHERE
                if found != NOWHERE and found not in self.claims and self.model[found].type == self.executed[ran].type:
                    self.claims[found] = ran
                    owners[ran] = [found]
                    break

    def fates(self) -> Iterator[Fate]:
        """From the end: what is not claimed goes where what reads it went."""
        found: list[Fate | None] = [None] * len(self.model)
        twins = {
            (node.type, node.inputs): place
            for place, node in reversed(list(enumerate(self.model)))
            if place in self.claims
        }
        for place in reversed(range(len(self.model))):
            found[place] = self._fate(place, found, twins)
        return (fate for fate in found if fate is not None)

    def _fate(self, place: int, found: Sequence[Fate | None], twins: Mapping[tuple[str, tuple[str, ...]], int]) -> Fate:
        node = self.model[place]
        if place in self.claims:
            return Fate(self.claims[place])
        if any(tensor in self.constants for tensor in node.outputs):
            return Fate(NOWHERE, "computed once, before the first inference: its result is a constant")
        if node.type in _NOTHING:
            return Fate(NOWHERE, "does nothing at run time")
        twin = twins.get((node.type, node.inputs), NOWHERE)
        if twin != NOWHERE:
            return Fate(NOWHERE, f"the same as {self.model[twin].name}, which runs once for both")
        if node.type == "QuantizeLinear" and self.in_front[place] != NOWHERE:
            return Fate(self.in_front[place])  # it belongs to what computes the values
        return self._behind(place, found)

    @cached_property
    def in_front(self) -> Sequence[int]:
        """Executed node that a node's first input comes from, through nodes that did not run by themselves."""
        found: list[int] = []
        for place, node in enumerate(self.model):
            source = self.writer.get(node.inputs[0], NOWHERE) if node.inputs else NOWHERE
            before = found[source] if NOWHERE < source < place else NOWHERE
            found.append(self.claims.get(place, before))
        return found

    def _behind(self, place: int, found: Sequence[Fate | None]) -> Fate:
        after = [fate for reader in self.readers.get(place, ()) if (fate := found[reader]) is not None]
        worked = next((fate for fate in after if fate.ran != NOWHERE), None)
        if worked is not None:
            return Fate(worked.ran)
        if after:
            return Fate(NOWHERE, after[0].reason)
        return Fate(NOWHERE, "its result is not used")

    def leaders(self, fates: Sequence[Fate]) -> Iterator[int]:
        """Of the nodes that one executed node does: the one of its type, of its name, or the last."""
        covered = _covered(fates)
        for place, node in enumerate(self.executed):
            nodes, kind = covered.get(place, []), _VARIANT.sub("", node.type)
            same = [one for one in nodes if self.model[one].type == kind]
            named = [self.named[place]] if place in self.named else []
            yield next(iter((*same, *named, *nodes[-1:])), NOWHERE)

    def parts(self, leaders: Sequence[int]) -> Iterator[int]:
        """A node that the runtime took apart leaves nodes without a name: they are part of the one that reads them."""
        readers: dict[int, set[int]] = {}
        for place, node in enumerate(self.executed):
            for tensor in node.inputs:
                if tensor in self.ran_writer:
                    readers.setdefault(self.ran_writer[tensor], set()).add(place)
        found = [NOWHERE] * len(self.executed)
        for place in reversed(range(len(self.executed))):
            if not self.executed[place].name and leaders[place] == NOWHERE:
                ends = {found[reader] if found[reader] != NOWHERE else reader for reader in readers.get(place, ())}
                end = ends.pop() if len(ends) == 1 else NOWHERE
                found[place] = end if end != NOWHERE and leaders[end] != NOWHERE else NOWHERE
        return iter(found)

    def insertion(self, place: int) -> str:
        """Why a node that is not in the model is there."""
        node = self.executed[place]
        original = self._undecorated(node.name)
        if original != NOWHERE and self.model[original].type == node.type:
            return f"a copy of {self.model[original].name}: the runtime's own"
        for tensor in (*node.outputs, *node.inputs):
            if tensor in self.writer:
                return f"not in the model: the runtime's own, at {self.model[self.writer[tensor]].name}"
        return "not in the model: the runtime's own"
