"""A TensorFlow Lite file → the arena as the runtime's allocator plans it, buffer by buffer.

The rules are those of tensorflow/lite/micro (micro_allocation_info.cc, greedy_memory_planner.cc at 90b983c2):

- Every tensor without data gets a buffer, except variables, which live among the persistent buffers. A tensor that no
  operator touches gets one too.
- Each operator is a step. A subgraph that IF, WHILE or CALL_ONCE calls takes steps of its own inside the operator that
  calls it, so that what the caller still needs stays where it is.
- Sizes are rounded up to 16 bytes. Buffers whose offset is in the file's metadata are placed there; the others largest
  first and, of equal sizes, the last one of the file first; each at the lowest offset that is free while it lives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...core.errors import ModelError
from ...graph.graph import ABSENT
from ...readers.tflite.details import placed_offsets
from ...readers.tflite.flatbuffer import INT32
from ...readers.tflite.model import StoredOperator, StoredTensor, Subgraph
from .nodes import ModelFile, Node, tensor_bytes

ALIGNMENT = 16
_NEVER = -1
_CALLED = {  # operator → fields of its options that name subgraphs
    "IF": (0, 1),
    "WHILE": (0, 1),
    "CALL_ONCE": (0,),
}
_DEEPEST_CALL = 64
_MOST_STEPS = 1_000_000


Scratch = Callable[[Node], Sequence[int]]  # bytes of each scratch buffer that a kernel asks for


class Owner(NamedTuple):
    """Whose bytes a buffer holds: a tensor of a subgraph, or the scratch of an operator."""

    subgraph: int
    tensor: int = ABSENT
    operator: int = ABSENT

    @property
    def is_scratch(self) -> bool:
        return self.operator != ABSENT


@dataclass(slots=True)
class _Lifetime:
    owner: Owner
    size: int
    placed: int | None = None
    first: int = _NEVER
    last: int = _NEVER


@dataclass(frozen=True, slots=True)
class ArenaBuffer:
    """Bytes of the arena from step `first` to step `last`, inclusive; -1: no operator touches them."""

    owner: Owner
    offset: int
    size: int  # rounded up
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Arena:
    """The planned part of the arena: its head."""

    buffers: tuple[ArenaBuffer, ...]
    operators: tuple[int, ...]  # of each step, the operator of the first subgraph that runs then

    @property
    def bytes(self) -> int:
        return max((buffer.offset + buffer.size for buffer in self.buffers), default=0)


def plan(file: ModelFile, scratch: Scratch) -> Arena:
    """Where every buffer of a file lies, with the scratch memory that its kernels ask for."""
    placed = placed_offsets(file.model)
    tensors = [
        [
            _Lifetime(Owner(index, number), aligned(tensor_bytes(tensor)), placed.get(number) if index == 0 else None)
            for number, tensor in enumerate(subgraph.tensors)
        ]
        for index, subgraph in enumerate(file.subgraphs)
    ]
    walk = _Walk(file, tensors, scratch)
    walk.mark(0, depth=0)
    planned = [
        lifetime
        for group, subgraph in zip(tensors, file.subgraphs, strict=True)
        for lifetime, tensor in zip(group, subgraph.tensors, strict=True)
        if needs_arena(tensor, lifetime.placed)
    ]
    planned += [request for key in sorted(walk.requests) for request in walk.requests[key]]
    offsets = _place(planned)
    return Arena(
        tuple(
            ArenaBuffer(lifetime.owner, offset, lifetime.size, lifetime.first, lifetime.last)
            for lifetime, offset in zip(planned, offsets, strict=True)
        ),
        tuple(walk.operators),
    )


def needs_arena(tensor: StoredTensor, placed: int | None) -> bool:
    """Whether a tensor is planned: one without data and of some size; a variable only where the file places it."""
    has_data = bool(tensor.data.size)
    return not has_data and tensor_bytes(tensor) > 0 and (not tensor.is_variable or placed is not None)


class _Walk:
    """Goes through the operators in the order of execution and notes when each buffer is needed."""

    def __init__(self, file: ModelFile, tensors: Sequence[Sequence[_Lifetime]], scratch: Scratch) -> None:
        self.file, self.tensors, self.scratch = file, tensors, scratch
        self.requests: dict[tuple[int, int], list[_Lifetime]] = {}  # (subgraph, operator) → scratch buffers
        self.step = 0
        self.operators = [0]  # at step 0 the inputs are set

    def mark(self, index: int, *, depth: int) -> None:
        """Mark the lifetimes of one call of a subgraph."""
        if depth > _DEEPEST_CALL or self.step > _MOST_STEPS:
            raise ModelError(self.file.model.file.source, f"subgraph {index}", "calls itself; expected calls that end")
        subgraph = self.file.model.subgraph(index)
        for tensor in subgraph.inputs:
            self._touch(index, tensor)
        for number, operator in enumerate(subgraph.operators):
            self.step += 1
            start = self.step
            for tensor in operator.outputs:
                self._create(index, tensor)
            for called in _called(operator, len(self.tensors)):
                self.step += 1
                self.mark(called, depth=depth + 1)
            for tensor in operator.inputs + operator.outputs:
                self._use(index, tensor)
            if depth == 0:
                self.operators += [number] * (self.step + 1 - len(self.operators))
            self._request(subgraph, number, start)
        for tensor in subgraph.outputs:
            self._touch(index, tensor)

    def _request(self, subgraph: Subgraph, number: int, start: int) -> None:
        key = (subgraph.index, number)
        if key not in self.requests:
            sizes = self.scratch(Node(self.file, subgraph, number))
            self.requests[key] = [_Lifetime(Owner(subgraph.index, operator=number), aligned(size)) for size in sizes]
        for request in self.requests[key]:
            request.first = start if request.first == _NEVER else request.first
            request.last = self.step

    def _touch(self, index: int, tensor: int) -> None:
        self._create(index, tensor)
        self._use(index, tensor)

    def _create(self, index: int, tensor: int) -> None:
        if tensor != ABSENT and self.tensors[index][tensor].first == _NEVER:
            self.tensors[index][tensor].first = self.step

    def _use(self, index: int, tensor: int) -> None:
        if tensor != ABSENT:
            self.tensors[index][tensor].last = self.step


def _called(operator: StoredOperator, subgraphs: int) -> Iterator[int]:
    """Numbers of the subgraphs that an operator runs."""
    for field in _CALLED.get(operator.code.type, ()):
        number = 0 if operator.options is None else operator.options.number(field, INT32)
        if 0 <= number < subgraphs:
            yield number


def _place(buffers: Sequence[_Lifetime]) -> list[int]:
    """The offset of each buffer: those with an offset of their own first, then the largest, then the last."""
    fixed = [number for number, buffer in enumerate(buffers) if buffer.placed is not None]
    free = [number for number in reversed(range(len(buffers))) if buffers[number].placed is None]
    order = fixed + sorted(free, key=lambda number: -buffers[number].size)
    offsets = [0] * len(buffers)
    by_offset: list[int] = []  # placed so far, by offset; of equal offsets, in the order of placing
    for number in order:
        buffer = buffers[number]
        offset = buffer.placed if buffer.placed is not None else _lowest_gap(buffer, buffers, offsets, by_offset)
        offsets[number] = offset
        position = len(by_offset)
        while position and offsets[by_offset[position - 1]] > offset:
            position -= 1
        by_offset.insert(position, number)
    return offsets


def _lowest_gap(
    wanted: _Lifetime, buffers: Sequence[_Lifetime], offsets: Sequence[int], by_offset: Sequence[int]
) -> int:
    """The first offset with enough room between buffers that live at the same time."""
    offset = 0
    for number in by_offset:
        other = buffers[number]
        if other.first > wanted.last or wanted.first > other.last:
            continue
        if offsets[number] - offset >= wanted.size:
            break
        offset = max(offset, offsets[number] + other.size)
    return offset


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
