"""Allocator for the local memory of one core; a freed block remembers which commands must finish before its reuse.

Memory is allocated while commands are emitted, long before they run. A block that is free for the allocator may still
be in use on the device: the new owner gets the block's guards, the commands that used it last, and its first writer
waits for them (a write-after-read dependency). Example: tensor A at 0x0 is last read by command 7 and freed. B gets
0x0 with guards (7,), so the command that writes B depends on 7, and nothing else has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

ALIGNMENT = 128  # bytes: one vector register


@dataclass(slots=True)
class _Segment:
    """A block of memory, in use or free. Segments cover all of memory, in order of address."""

    address: int
    size: int
    free: bool
    guards: tuple[int, ...]  # commands that worked here last


class LocalMemory:
    """Blocks of one core's memory. `latest` reduces a set of commands to those after which all of them are done."""

    def __init__(self, capacity: int, latest: Callable[[Iterable[int]], list[int]]) -> None:
        self.capacity = capacity
        self._latest = latest
        self.peak = 0
        self.used = 0
        self._segments = [_Segment(0, capacity, free=True, guards=())]

    def allocate(self, size: float) -> tuple[int, tuple[int, ...]] | None:
        """Address and guards of a block, or None when no free one is large enough.

        Least recently used, not best fit: the block whose guards were emitted longest ago is probably idle on the
        device already, so its new owner hardly waits. The smallest of those breaks ties.
        """
        wanted = -(-max(1, int(size)) // ALIGNMENT) * ALIGNMENT
        fitting = [i for i, segment in enumerate(self._segments) if segment.free and segment.size >= wanted]
        if not fitting:
            return None
        position = min(fitting, key=lambda i: (max(self._segments[i].guards, default=-1), self._segments[i].size))
        segment = self._segments[position]
        self._segments[position] = _Segment(segment.address, wanted, free=False, guards=())
        if segment.size > wanted:
            rest = _Segment(segment.address + wanted, segment.size - wanted, free=True, guards=segment.guards)
            self._segments.insert(position + 1, rest)
        self.used += wanted
        self.peak = max(self.peak, self.used)
        return segment.address, segment.guards

    def release(self, address: int, guards: tuple[int, ...]) -> None:
        """Free the block at an address; `guards` are the commands that used it last."""
        for position, segment in enumerate(self._segments):
            if segment.address == address and not segment.free:
                self.used -= segment.size
                self._segments[position] = _Segment(address, segment.size, free=True, guards=guards)
                self._merge(position)
                return
        raise ValueError(f"nothing is allocated at {address:#x}")

    def _merge(self, position: int) -> None:
        """Merge a free segment with free neighbours; whoever gets it waits for the guards of both."""
        segments = self._segments
        for left in (position, position - 1):
            if 0 <= left < len(segments) - 1 and segments[left].free and segments[left + 1].free:
                a, b = segments[left], segments[left + 1]
                guards = tuple(self._latest(a.guards + b.guards))
                segments[left : left + 2] = [_Segment(a.address, a.size + b.size, free=True, guards=guards)]
