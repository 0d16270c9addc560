"""Allocator for the local memory of one core; freed memory remembers which commands must finish before its reuse.

Memory is allocated while commands are emitted, long before they run. What is free for the allocator may still be in
use on the device: the new owner gets the guards of what it takes, the commands that used it last, and its first writer
waits for them (a write-after-read dependency). Example: tensor A at 0x0 is last read by command 7 and freed. B gets
0x0 with guards (7,), so the command that writes B depends on 7, and nothing else has to wait.

What was freed at different times stays apart, even where it touches: a block may lie across several gaps, and has the
guards of those alone that it touches. In a queue that runs in order, whatever comes behind a transfer waits with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import NamedTuple

ALIGNMENT = 128  # bytes: one vector register


class _Gap(NamedTuple):
    """Free memory that was freed at one time."""

    address: int
    end: int
    guards: tuple[int, ...]  # commands that worked here last
    last_use: int  # the last of them; -1: none


_ADDRESS = attrgetter("address")


class _Place(NamedTuple):
    """Where a block may lie: the least of several is taken."""

    last_use: int  # of what it touches
    free: int  # bytes around it, its own among them
    address: int
    first: int  # number of the first gap that it touches
    last: int  # of the last


class LocalMemory:
    """Blocks of one core's memory. `latest` reduces a set of commands to those after which all of them are done.

    Blocks in use are found by their address and gaps in order of it: there may be thousands of blocks, and few gaps.
    """

    def __init__(self, capacity: int, latest: Callable[[Iterable[int]], list[int]]) -> None:
        self.capacity = capacity
        self._latest = latest
        self.peak = 0
        self.used = 0
        self._sizes: dict[int, int] = {}  # of blocks in use, by address
        self._gaps = [_Gap(0, capacity, (), -1)]

    def allocate(self, size: float) -> tuple[int, tuple[int, ...]] | None:
        """Address and guards of a block, or None when nothing that is free is large enough.

        Least recently used, not best fit: memory whose guards were emitted longest ago is probably idle on the device
        already, so its new owner hardly waits. The tightest free range breaks ties.
        """
        wanted = -(-max(1, int(size)) // ALIGNMENT) * ALIGNMENT
        place = self._best_place(wanted)
        if place is None:
            return None
        taken, address, end = self._gaps[place.first : place.last + 1], place.address, place.address + wanted
        left = []
        low, high = taken[0], taken[-1]
        if low.address < address:
            left.append(_Gap(low.address, address, low.guards, low.last_use))
        if end < high.end:
            left.append(_Gap(end, high.end, high.guards, high.last_use))
        self._gaps[place.first : place.last + 1] = left
        self._sizes[address] = wanted
        self.used += wanted
        self.peak = max(self.peak, self.used)
        if len(taken) == 1:
            return address, taken[0].guards
        return address, tuple(self._latest(command for gap in taken for command in gap.guards))

    def _best_place(self, wanted: int) -> _Place | None:
        """The best of both ends of every free range that is large enough: so a block leaves one range, and no two."""
        gaps, first, best = self._gaps, 0, None
        while first < len(gaps):
            start, end, _, last_use = gaps[first]
            last = first
            while last + 1 < len(gaps) and gaps[last + 1].address == end:
                last += 1
                end = gaps[last].end
            if end - start >= wanted:
                if last == first:
                    found = _Place(last_use, end - start, start, first, first)
                else:
                    found = min(self._first_in(first, wanted, end - start), self._last_in(last, wanted, end - start))
                if best is None or found < best:
                    best = found
            first = last + 1
        return best

    def _first_in(self, first: int, wanted: int, free: int) -> _Place:
        """A block at the low end of a free range, which begins with this gap."""
        gaps = self._gaps
        last, address, last_use = first, gaps[first].address, gaps[first].last_use
        while gaps[last].end < address + wanted:
            last += 1
            last_use = max(last_use, gaps[last].last_use)
        return _Place(last_use, free, address, first, last)

    def _last_in(self, last: int, wanted: int, free: int) -> _Place:
        """A block at the high end of a free range, which ends with this gap."""
        gaps = self._gaps
        first, address, last_use = last, gaps[last].end - wanted, gaps[last].last_use
        while gaps[first].address > address:
            first -= 1
            last_use = max(last_use, gaps[first].last_use)
        return _Place(last_use, free, address, first, last)

    def release(self, address: int, guards: tuple[int, ...]) -> None:
        """Free the block at an address; `guards` are the commands that used it last."""
        size = self._sizes.pop(address, None)
        if size is None:
            raise ValueError(f"nothing is allocated at {address:#x}")
        self.used -= size
        position = bisect_left(self._gaps, address, key=_ADDRESS)
        self._gaps.insert(position, _Gap(address, address + size, guards, max(guards, default=-1)))
        self._join(position)
        self._join(position - 1)

    def _join(self, position: int) -> None:
        """Make a gap and the next one that it touches one gap, if both have the same guards."""
        gaps = self._gaps
        if 0 <= position < len(gaps) - 1:
            gap, after = gaps[position : position + 2]
            if gap.end == after.address and gap.guards == after.guards:
                gaps[position : position + 2] = [_Gap(gap.address, after.end, gap.guards, gap.last_use)]
