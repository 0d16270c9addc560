"""Addresses in the local memory of one core, and who must be done before a place is used again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

ALIGNMENT = 128  # bytes: one vector register


@dataclass(slots=True)
class _Segment:
    address: int
    size: int
    free: bool
    guards: tuple[int, ...]  # commands that worked here last


class LocalMemory:
    """A freed place remembers the commands that used it; whoever gets it next must wait for them.

    `latest` picks, of many commands, those after which all of them are done.
    """

    def __init__(self, capacity: int, latest: Callable[[Iterable[int]], list[int]]) -> None:
        self.capacity = capacity
        self._latest = latest
        self.peak = 0
        self.used = 0
        self._segments = [_Segment(0, capacity, free=True, guards=())]

    def allocate(self, size: float) -> tuple[int, tuple[int, ...]] | None:
        """Address and the commands to wait for, or None when there is no place.

        Of the places that are large enough, the one that was left longest ago: whoever gets it hardly has to wait.
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
        """Free what was allocated at an address."""
        for position, segment in enumerate(self._segments):
            if segment.address == address and not segment.free:
                self.used -= segment.size
                self._segments[position] = _Segment(address, segment.size, free=True, guards=guards)
                self._merge(position)
                return
        raise ValueError(f"nothing is allocated at {address:#x}")

    def _merge(self, position: int) -> None:
        segments = self._segments
        for left in (position, position - 1):
            if 0 <= left < len(segments) - 1 and segments[left].free and segments[left + 1].free:
                a, b = segments[left], segments[left + 1]
                guards = tuple(self._latest(a.guards + b.guards))
                segments[left : left + 2] = [_Segment(a.address, a.size + b.size, free=True, guards=guards)]
