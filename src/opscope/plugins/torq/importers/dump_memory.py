"""Types and allocations of a dump → memories, and how much of each is in use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..annotate.annotated import MemoryUse

_MEMORY = re.compile(r'mem_space\s*=\s*"?(\w+)"?|,\s*"(\w+)"\s*>$')
_SHAPE = re.compile(r"memref<((?:\d+x)*)(?:[a-z]+?)(\d+)\b")


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
