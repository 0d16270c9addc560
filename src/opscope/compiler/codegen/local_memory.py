"""Allocator for the local memory of one core; a freed block remembers which commands must finish before its reuse.

Memory is allocated while commands are emitted, long before they run. A block that is free for the allocator may still
be in use on the device: the new owner gets the block's guards, the commands that used it last, and its first writer
waits for them (a write-after-read dependency). Example: tensor A at 0x0 is last read by command 7 and freed. B gets
0x0 with guards (7,), so the command that writes B depends on 7, and nothing else has to wait.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import NamedTuple

ALIGNMENT = 128  # bytes: one vector register


class _Gap(NamedTuple):
    """A block of memory that is free. The least of several gaps is taken first."""

    last_guard: int  # of its guards the one that was emitted last; -1: nobody worked here
    size: int
    address: int
    guards: tuple[int, ...]  # commands that worked here last

    @property
    def end(self) -> int:
        return self.address + self.size


_ADDRESS = attrgetter("address")


def _gap(address: int, size: int, guards: tuple[int, ...]) -> _Gap:
    return _Gap(max(guards, default=-1), size, address, guards)


class LocalMemory:
    """Blocks of one core's memory. `latest` reduces a set of commands to those after which all of them are done.

    Blocks in use are found by their address and gaps in order of it: there may be thousands of blocks, and few gaps.
    Gaps that touch keep guards of their own until no gap is large enough: in a queue that runs in order, everything
    behind a transfer waits for what it waits for in vain.
    """

    def __init__(self, capacity: int, latest: Callable[[Iterable[int]], list[int]]) -> None:
        self.capacity = capacity
        self._latest = latest
        self.peak = 0
        self.used = 0
        self._sizes: dict[int, int] = {}  # of blocks in use, by address
        self._gaps = [_gap(0, capacity, guards=())]

    def allocate(self, size: float) -> tuple[int, tuple[int, ...]] | None:
        """Address and guards of a block, or None when no free one is large enough.

        Least recently used, not best fit: the block whose guards were emitted longest ago is probably idle on the
        device already, so its new owner hardly waits. The smallest of those breaks ties, then the lowest address.
        """
        wanted = -(-max(1, int(size)) // ALIGNMENT) * ALIGNMENT
        fitting = self._fitting(wanted)
        if not fitting:
            for position in reversed(range(len(self._gaps))):
                self._merge(position)
            fitting = self._fitting(wanted)
        if not fitting:
            return None
        gap = min(fitting)
        position = bisect_left(self._gaps, gap.address, key=_ADDRESS)
        rest = _Gap(gap.last_guard, gap.size - wanted, gap.address + wanted, gap.guards)
        self._gaps[position : position + 1] = [rest] if rest.size else []
        self._sizes[gap.address] = wanted
        self.used += wanted
        self.peak = max(self.peak, self.used)
        return gap.address, gap.guards

    def _fitting(self, wanted: int) -> list[_Gap]:
        return [gap for gap in self._gaps if gap.size >= wanted]

    def release(self, address: int, guards: tuple[int, ...]) -> None:
        """Free the block at an address; `guards` are the commands that used it last."""
        size = self._sizes.pop(address, None)
        if size is None:
            raise ValueError(f"nothing is allocated at {address:#x}")
        self.used -= size
        position = bisect_left(self._gaps, address, key=_ADDRESS)
        self._gaps.insert(position, _gap(address, size, guards))

    def _merge(self, position: int) -> None:
        """Merge a gap with those that it touches; whoever gets it waits for the guards of both."""
        gaps = self._gaps
        for left in (position, position - 1):
            if 0 <= left < len(gaps) - 1 and gaps[left].end == gaps[left + 1].address:
                a, b = gaps[left], gaps[left + 1]
                gaps[left : left + 2] = [_gap(a.address, a.size + b.size, tuple(self._latest(a.guards + b.guards)))]
