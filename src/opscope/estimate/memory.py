"""Plans activation memory: tensor lifetimes, the lower bound, an arena placement, and kernel scratch.

The lower bound is the most bytes alive at any step; no placement can need less. The arena is planned by the
greedy-by-size rule of TensorFlow Lite Micro: largest tensor first (of equals, the one that dies last), each at the
lowest offset that is free during its whole lifetime. Sizes are rounded up to what the runtime aligns to.

Example: `a` (4 KB, steps 0–1), `b` (2 KB, 1–2), `c` (4 KB, 2–3). First `c` at 0, then `a` at 0 too, since they never
live at the same time; `b` overlaps both and goes to 4 KB. Arena 6 KB; the bound, at steps 1 and 2, is 6 KB as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from random import Random

from ..core.units import Bytes
from ..graph.graph import ABSENT, DType, Graph, Op, Role
from ..graph.kinds import Family
from ..machine.target import Runtime
from .work import channels_per_group, number, numbers

PLANNER = "greedy by size"
_TRIALS = 300
_MOST_WORK = 20_000_000  # buffers × buffers × trials


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes needed from step `first` to step `last`, inclusive. Tensors computed in place share one."""

    size_bytes: Bytes
    first: int
    last: int
    tensors: tuple[int, ...]  # empty for the scratch of one op


class BlockKind(StrEnum):
    """What bytes of the arena hold."""

    TENSOR = "tensor"
    SCRATCH = "scratch"
    KEPT = "kept"  # from one inference to the next, by the runtime


@dataclass(frozen=True, slots=True)
class ArenaBlock:
    """Bytes at one place of the arena, from step `first` to step `last`, inclusive."""

    name: str
    kind: BlockKind
    address: int
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The offset of every buffer, and the live bytes at each step."""

    buffers: tuple[Buffer, ...]  # of tensors, then scratch
    offsets: tuple[int, ...]  # of each buffer, in an arena that includes scratch
    live_bytes: tuple[int, ...]  # at each step, without scratch
    arena_bytes: Bytes  # without scratch
    scratch_bytes: Bytes  # arena growth caused by kernel scratch
    unknown_tensors: int  # tensors of unknown size, which make the plan a lower bound

    @property
    def bound_bytes(self) -> Bytes:
        return Bytes(max(self.live_bytes, default=0))

    @property
    def peak_step(self) -> int:
        return max(range(len(self.live_bytes)), key=self.live_bytes.__getitem__, default=0)

    def alive_at(self, step: int) -> list[Buffer]:
        """Return the tensor buffers alive at a step, largest first."""
        alive = [buffer for buffer in self.buffers if buffer.first <= step <= buffer.last and buffer.tensors]
        return sorted(alive, key=lambda buffer: -buffer.size_bytes)


def plan_memory(graph: Graph, runtime: Runtime) -> MemoryPlan:
    """Return lifetimes, lower bound and placement for the activations of a canonical graph."""
    buffers, unknown = lifetimes(graph, runtime.in_place)
    buffers = [replace(buffer, size_bytes=_aligned(buffer.size_bytes, runtime)) for buffer in buffers]
    scratch = [b for step, op in enumerate(graph.ops) if (b := _scratch(step, op, graph, runtime)) is not None]
    all_buffers = [*buffers, *scratch]
    offsets = place(all_buffers, runtime)
    total = _arena_size(all_buffers, offsets)
    arena = (
        min(total, _arena_size(buffers, place(buffers, runtime))) if scratch else total
    )  # first-fit is not monotonic: fewer buffers may need more
    return MemoryPlan(
        buffers=tuple(all_buffers),
        offsets=tuple(offsets),
        live_bytes=live_bytes(buffers, len(graph.ops)),
        arena_bytes=Bytes(arena),
        scratch_bytes=Bytes(total - arena),
        unknown_tensors=unknown,
    )


def lifetimes(graph: Graph, in_place: Sequence[str]) -> tuple[list[Buffer], int]:
    """Return a buffer per tensor that needs RAM, from producer to last reader, and the count of unknown sizes."""
    end, outputs = len(graph.ops) - 1, set(graph.outputs)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for t in graph.inputs:
        if graph.tensors[t].role is not Role.CONSTANT:
            first[t] = last[t] = 0
    for step, op in enumerate(graph.ops):
        for t in op.outputs:
            if t != ABSENT:
                first.setdefault(t, step)
                last[t] = step
        for t in op.inputs:
            if t != ABSENT and graph.tensors[t].role is Role.VARIABLE:  # state that is only read still needs bytes
                first.setdefault(t, 0)
            if t != ABSENT and graph.tensors[t].role is Role.SCRATCH:
                first.setdefault(t, step)
            if t in first:
                last[t] = step
    # Outputs must survive to the end; state must survive from one inference to the next.
    for t in first:
        if t in outputs or graph.tensors[t].role is Role.VARIABLE:
            last[t] = max(end, 0)
        if graph.tensors[t].role is Role.VARIABLE:
            first[t] = 0
    owner = _in_place_owners(graph, first, last, set(in_place))
    return _buffers(graph, first, last, owner)


def _in_place_owners(graph: Graph, first: dict[int, int], last: dict[int, int], in_place: set[str]) -> dict[int, int]:
    """Return, for each tensor computed in place, the tensor whose bytes it reuses.

    The input must die at this op and have the same size. Chains collapse: relu(relu(x)) is all owned by x. What a
    compiler has placed within a scratch tensor is owned by that.
    """
    owner = {t: scratch for t, scratch in graph.placed_in.items() if t in first and scratch in first}
    outputs = set(graph.outputs)
    for step, op in enumerate(graph.ops):
        if op.kind not in in_place or not op.inputs or len(op.outputs) != 1:
            continue
        source, result = op.inputs[0], op.outputs[0]
        same_size = source != ABSENT and graph.tensors[source].bytes == graph.tensors[result].bytes
        is_output = source in outputs and op.family is not Family.VIEW  # a graph output must not be overwritten
        is_free = result in first and result not in owner
        if source in first and last[source] == step and same_size and is_free and not is_output:
            owner[result] = owner.get(source, source)
    return owner


def _buffers(
    graph: Graph, first: dict[int, int], last: dict[int, int], owner: dict[int, int]
) -> tuple[list[Buffer], int]:
    """Merge tensors with the same owner into one buffer that spans all their lifetimes."""
    groups: dict[int, list[int]] = {}
    unknown = 0
    for t in first:
        if graph.tensors[t].bytes is None:
            unknown += 1
        else:
            groups.setdefault(owner.get(t, t), []).append(t)
    buffers = [
        Buffer(
            Bytes(max(graph.tensors[t].bytes or 0 for t in members)),
            min(first[t] for t in members),
            max(last[t] for t in members),
            tuple(sorted(members, key=root.__ne__)),  # the one that owns the bytes first
        )
        for root, members in groups.items()
    ]
    return buffers, unknown


def live_bytes(buffers: Sequence[Buffer], steps: int) -> tuple[int, ...]:
    """Return the bytes alive at each step."""
    # Difference array: add at the first step, subtract after the last, then take the running sum.
    change = [0] * (steps + 1)
    for buffer in buffers:
        change[buffer.first] += buffer.size_bytes
        change[min(buffer.last + 1, steps)] -= buffer.size_bytes
    alive, total = [], 0
    for step in range(steps):
        total += change[step]
        alive.append(total)
    return tuple(alive)


def place(buffers: Sequence[Buffer], runtime: Runtime) -> list[int]:
    """Return the offset of each buffer: largest first, at the lowest offset free during its whole lifetime.

    Of equal ones the one that dies last is first; where an interpreter plans, the last one of the file.
    """
    last = [-i if runtime.interpreter else -buffer.last for i, buffer in enumerate(buffers)]
    order = sorted(range(len(buffers)), key=lambda i: (-buffers[i].size_bytes, last[i], i))
    offsets = [0] * len(buffers)
    placed_at: dict[int, list[int]] = {}  # step → placed buffers that are alive at it
    for i in order:
        buffer = buffers[i]
        overlapping: set[int] = set()
        for step in range(buffer.first, buffer.last + 1):
            overlapping.update(placed_at.get(step, ()))
        offsets[i] = _lowest_gap(
            buffer.size_bytes, sorted((offsets[other], buffers[other].size_bytes) for other in overlapping)
        )
        for step in range(buffer.first, buffer.last + 1):
            placed_at.setdefault(step, []).append(i)
    return offsets


def _lowest_gap(size: int, occupied: Sequence[tuple[int, int]]) -> int:
    """Return the first offset with `size` free bytes; `taken` is sorted (offset, length)."""
    offset = 0
    for start, length in occupied:
        if start - offset >= size:
            break
        offset = max(offset, start + length)
    return offset


def _arena_size(buffers: Sequence[Buffer], offsets: Sequence[int]) -> int:
    return max((offset + b.size_bytes for b, offset in zip(buffers, offsets, strict=True)), default=0)


def _scratch(step: int, op: Op, graph: Graph, runtime: Runtime) -> Buffer | None:
    """Return the im2col buffer of an int8 convolution; a 1×1 kernel needs none, nor does a depthwise one mostly."""
    columns, width = runtime.im2col_columns, runtime.im2col_element_bytes
    if columns is None or width is None or op.kind != "conv" or max(numbers(op, "kernel"), default=1) == 1:
        return None
    data = graph.tensors[op.inputs[0]]
    is_depthwise = channels_per_group(op, data) == 1 and number(op, "groups", 1) > 1
    if data.dtype is not DType.I8 or (runtime.interpreter and is_depthwise):
        return None
    size = columns.value * width.value * prod(numbers(op, "kernel")) * channels_per_group(op, data)
    return Buffer(_aligned(round(size), runtime), step, step, ())


def _aligned(size: int, runtime: Runtime) -> Bytes:
    return Bytes(-(-size // runtime.alignment) * runtime.alignment)


def pack(buffers: Sequence[Buffer], *, at_most: int) -> int:
    """Bytes of the smallest arena that a bounded search finds; `at_most` is known to do.

    Buffers are placed as in `place` in other orders: by size, by bytes times steps, by length of life, by first and by
    last step; then the best one with two buffers swapped, at random from a fixed seed. It ends at the lower bound.
    """
    sized = [buffer for buffer in buffers if buffer.size_bytes]
    if not sized:
        return 0
    bound, best, best_order = _bound(sized), at_most, list(range(len(sized)))
    for key in _KEYS:
        order = sorted(range(len(sized)), key=lambda which: key(sized[which]))
        found = _arena(sized, order)
        if found <= best:
            best, best_order = found, order
    draw = Random(0)  # noqa: S311  not for secrets
    for _ in range(min(_TRIALS, _MOST_WORK // len(sized) ** 2)):
        if best <= bound:
            break
        order = best_order.copy()
        one, other = draw.randrange(len(order)), draw.randrange(len(order))
        order[one], order[other] = order[other], order[one]
        found = _arena(sized, order)
        if found <= best:
            best, best_order = found, order
    return best


def _arena(buffers: Sequence[Buffer], order: Sequence[int]) -> int:
    placed: list[tuple[int, int, int, int]] = []  # offset, bytes, first, last
    for which in order:
        buffer = buffers[which]
        beside = ((at, size) for at, size, first, last in placed if first <= buffer.last and buffer.first <= last)
        offset = _lowest_gap(buffer.size_bytes, sorted(beside))
        placed.append((offset, buffer.size_bytes, buffer.first, buffer.last))
    return max(offset + size for offset, size, _, _ in placed)


def _bound(buffers: Sequence[Buffer]) -> int:
    """Most bytes alive at once: it is reached where some buffer begins."""
    changes = sorted(
        [(buffer.first, buffer.size_bytes) for buffer in buffers]
        + [(buffer.last + 1, -buffer.size_bytes) for buffer in buffers]
    )
    most = alive = 0
    for _, change in changes:
        alive += change
        most = max(most, alive)
    return most


def _length(buffer: Buffer) -> int:
    return buffer.last - buffer.first + 1


_KEYS: tuple[Callable[[Buffer], tuple[int, int]], ...] = (
    lambda buffer: (-buffer.size_bytes, -_length(buffer)),
    lambda buffer: (-buffer.size_bytes * _length(buffer), 0),
    lambda buffer: (-_length(buffer), -buffer.size_bytes),
    lambda buffer: (buffer.first, -buffer.size_bytes),
    lambda buffer: (-buffer.last, -buffer.size_bytes),
)
