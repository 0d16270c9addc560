"""Graph, Target → Stores: which memory the weights of each op are read from, and how many bytes of it they take.

Memories that hold constants are filled in the order of the target file, and ops are taken in the order in which they
run: the constants of the first op that does not fit any more go to the next memory, and so do all behind it. The last
memory takes what is left. Where a share of local memory keeps weights from one inference to the next, it comes first.

Example: 2 MB of internal and 64 MB of external flash, ops with 1.5, 0.4, 0.3 and 0.1 MB. The first two are read from
internal flash, the other two from external flash. With more of the first memory no op moves to a later one, so that a
network gets no slower if earlier memories are the faster ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graph.graph import ABSENT, Graph, Op, Role
from ...graph.kinds import KINDS, Family, Touches
from ...machine.target import Target

RESIDENT = ""  # in local memory: nothing is read anew


def parameter_bytes(graph: Graph) -> int:
    """Return the bytes of all constants that ops read, each counted once."""
    return sum(_constant_sizes(graph, graph.ops))


def whole_constant_sizes(graph: Graph) -> list[int]:
    """Return the bytes of every constant that ops read whole, the largest first."""
    return sorted(_constant_sizes(graph, [op for op in graph.ops if not reads_in_part(op)]), reverse=True)


def loop_bytes(graph: Graph) -> dict[str, int]:
    """Return the bytes of constants that the body of each loop reads whole, by the name of the loop's op.

    Where local memory holds them they are read once, else in every trip.
    """
    bodies: dict[str, list[Op]] = {}
    for op in graph.ops:
        if op.scope and op.is_looped and not reads_in_part(op):
            bodies.setdefault(op.scope, []).append(op)
    return {scope: sum(_constant_sizes(graph, ops)) for scope, ops in bodies.items()}


def ratio_of(op: Op, target: Target) -> float:
    """Bytes of an op's constants for each byte that is stored and read."""
    found = target.compression
    return 1.0 if found is None or op.family not in (Family.CONTRACTION, Family.RECURRENT) else found.ratio.value


def reads_in_part(op: Op) -> bool:
    """Whether an op reads rows of a table: the table stays where it is stored."""
    return KINDS[op.kind].touches is Touches.OUTPUT


def filled(capacities: Sequence[float], size: float) -> list[float]:
    """Bytes in each of several memories that are filled one behind the other; the last takes what is left."""
    found = []
    for capacity in capacities[:-1]:
        found.append(min(capacity, size))
        size -= found[-1]
    return [*found, size]


class Stores:
    """The memory that the constants of each op are read from."""

    def __init__(self, graph: Graph, target: Target, *, resident_bytes: float = 0.0, copies: float = 1.0) -> None:
        """Place the constants of a graph.

        Args:
            resident_bytes: of all constants together, that stay in local memory once they were read.
            copies: of a memory of the target: its bytes for each time that all constants are stored.
        """
        memories = target.stores
        room = [memory.bytes.value * copies for memory in memories]
        self.used = dict.fromkeys((memory.name for memory in memories), 0.0)  # bytes
        self._tensors: dict[int, str] = {}  # constant → memory that it is read from in an inference
        level = 0
        for op, constants, size in _first_uses(graph):
            stored = size / ratio_of(op, target)
            while level < len(memories) - 1 and stored > room[level]:
                level += 1
            room[level] -= stored
            store = memories[level].name
            self.used[store] += stored
            if stored and not reads_in_part(op):
                resident_bytes = resident_bytes - stored if stored <= resident_bytes else -1.0
                store = RESIDENT if resident_bytes >= 0 else store
            self._tensors.update(dict.fromkeys(constants, store))

    def of(self, op: Op, graph: Graph) -> str:
        """Name of the memory that most of an op's constants are read from; RESIDENT: none of them is."""
        constants = [t for t in op.inputs if t in self._tensors]
        return self.store_of(max(constants, key=lambda t: graph.tensors[t].bytes or 0, default=ABSENT))

    def store_of(self, tensor: int) -> str:
        """The same of one constant; of one that no op reads, the first memory there is."""
        return self._tensors.get(tensor, next(iter(self.used)))


def _first_uses(graph: Graph) -> Iterator[tuple[Op, list[int], int]]:
    """Yield ops with the constants that no op before them reads, and their bytes."""
    seen: set[int] = set()
    for op in graph.ops:
        used = dict.fromkeys(t for t in op.inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT)
        new = [t for t in used if t not in seen]
        seen.update(new)
        if new:
            yield op, new, sum(graph.tensors[t].bytes or 0 for t in new)


def _constant_sizes(graph: Graph, ops: Sequence[Op]) -> list[int]:
    used = {t for op in ops for t in op.inputs if t != ABSENT and graph.tensors[t].role is Role.CONSTANT}
    return [graph.tensors[t].bytes or 0 for t in used]
