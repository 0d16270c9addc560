"""Types, allocations and named memory of a dump → memories, how much of each is in use, and what transfers carry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ..annotate.annotated import MemoryUse, Payload, Task

_MEMORY = re.compile(r'mem_space\s*=\s*"?(\w+)"?|,\s*"(\w+)"\s*>$')
_SHAPE = re.compile(r"memref<((?:\d+x)*)(?:[a-z]+?)(\d+)\b")


_VIEWS = ("subview", "collapse_shape", "expand_shape", "reinterpret_cast", "cast", "view", "transpose")
_DEEPEST = 64


class Buffer(NamedTuple):
    """Named memory: a global of the dump."""

    memory: str
    bytes: int
    is_constant: bool


def buffers_of(module: Any) -> dict[str, Buffer]:
    """Globals by name, wherever they are nested."""
    found: dict[str, Buffer] = {}
    for op in _nested(module):
        if op.name.endswith("memref.global") and "sym_name" in op.attributes and "type" in op.attributes:
            kind = str(op.attributes["type"])
            size = _size(kind)
            if size is not None:
                memory = memory_of(kind) or "XRAM"  # where everything lies that no attribute places elsewhere
                found[op.attributes["sym_name"].value] = Buffer(memory, size, "constant" in op.attributes)
    return found


def _nested(op: Any) -> Iterator[Any]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                if not child.operation.name.startswith("torq_"):
                    yield from _nested(child.operation)


def origin_of(value: Any, bound: Mapping[Any, Any]) -> Any:
    """What made the memory that a value is a view of: an op, or the block that it is an argument of."""
    for _ in range(_DEEPEST):
        owner = bound.get(value, value.owner)
        name = getattr(owner, "name", "")
        if not (name.rpartition(".")[2] in _VIEWS and len(owner.operands)):
            break
        value = owner.operands[0]
    return owner


def buffer_of(origin: Any) -> str:
    """The name of memory; empty: it has none."""
    if not getattr(origin, "name", "").endswith("memref.get_global") or "name" not in origin.attributes:
        return ""
    return str(origin.attributes["name"]).removeprefix("@")


def payload_of(origin: Any, buffers: Mapping[str, Buffer]) -> Payload:
    """What lies in memory, by what made it."""
    name = getattr(origin, "name", "")
    if name == "torq_hl.get_block":
        return Payload.PROGRAM
    if name == "torq_hl.map_binding":
        return Payload.BINDING
    found = buffers.get(buffer_of(origin))
    if found is None:
        return Payload.UNKNOWN
    return Payload.CONSTANT if found.is_constant else Payload.INTERMEDIATE


def named_memories(buffers: Mapping[str, Buffer], tasks: Sequence[Task]) -> Iterator[MemoryUse]:
    """Of every memory: what is held at once. A constant is held throughout, the rest from first use to last."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, task in enumerate(tasks):
        for name in (name for step in task.steps for name in step.buffers if name in buffers):
            first.setdefault(name, number)
            last[name] = number
    for memory in sorted({buffer.memory for buffer in buffers.values()}):
        own = {name: buffer for name, buffer in buffers.items() if buffer.memory == memory}
        changes = [0] * (len(tasks) + 1)
        for name in (name for name, buffer in own.items() if not buffer.is_constant and name in first):
            changes[first[name]] += own[name].bytes
            changes[last[name] + 1] -= own[name].bytes
        constants = sum(buffer.bytes for buffer in own.values() if buffer.is_constant)
        total = sum(buffer.bytes for buffer in own.values())
        yield MemoryUse(memory, constants + max(accumulate(changes)), total)


def memory_of(kind: str) -> str | None:
    """Memory that a memref lies in; None: its type does not say."""
    found = _MEMORY.search(kind)
    return (found[1] or found[2]).upper() if found else None


def memories_of(body: list[Any]) -> Iterator[MemoryUse]:
    """Of every memory: what is live at once, following allocations and releases in order of execution."""
    live: dict[str, int] = {}
    peak: dict[str, int] = {}
    total: dict[str, int] = {}
    held: dict[Any, tuple[str, int]] = {}
    for op in body:
        if op.name.endswith(".alloc") and len(op.results):
            kind = str(op.results[0].type)
            memory, size = memory_of(kind) or "default", _size(kind)
            if size is not None:
                held[op.results[0]] = (memory, size)
                live[memory] = live.get(memory, 0) + size
                total[memory] = total.get(memory, 0) + size
                peak[memory] = max(peak.get(memory, 0), live[memory])
        elif op.name.endswith(".dealloc") and len(op.operands) and op.operands[0] in held:
            memory, size = held.pop(op.operands[0])
            live[memory] -= size
    for memory in sorted(peak):
        yield MemoryUse(memory, peak[memory], total[memory])


def _size(kind: str) -> int | None:
    """Bytes of a memref; None: its shape is not known."""
    found = _SHAPE.match(kind)
    if found is None:
        return None
    count = 1
    for extent in found[1].split("x")[:-1]:
        count *= int(extent)
    return count * max(int(found[2]) // 8, 1)
