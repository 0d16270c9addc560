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
        """Address and guards of a block, or None when nothing that is free is large enough."""
        wanted = -(-max(1, int(size)) // ALIGNMENT) * ALIGNMENT
        found = self._longest_unused(wanted)
        if found is None:
            return None
        first, behind = found
        taken = self._gaps[first:behind]
        address, last = taken[0].address, taken[-1]
        end = address + wanted
        self._gaps[first:behind] = [_Gap(end, last.end, last.guards, last.last_use)] if end < last.end else []
        self._sizes[address] = wanted
        self.used += wanted
        self.peak = max(self.peak, self.used)
        if len(taken) == 1:
            return address, last.guards
        return address, tuple(self._latest(command for gap in taken for command in gap.guards))

    def _longest_unused(self, wanted: int) -> tuple[int, int] | None:
        """The gaps, first and behind the last, that a block is put at the beginning of.

        Not best fit: memory whose guards were emitted long ago is probably idle on the device already, so its new owner
        hardly waits. What was left 40 or 50 commands ago is as good; of such places (alike in the length of their age
        as a binary number) the one with the lowest address is taken, so that what is free stays together. A block that
        lies across several gaps begins where free memory begins, and leaves no hole before it.
        """
        gaps, found, before = self._gaps, None, -1
        now = max((gap.last_use for gap in gaps), default=-1)
        oldest = -1
        for first, gap in enumerate(gaps):
            last_use, end, behind = gap.last_use, gap.end, first + 1
            if gap.address != before:
                while end - gap.address < wanted and behind < len(gaps) and gaps[behind].address == end:
                    last_use, end, behind = max(last_use, gaps[behind].last_use), gaps[behind].end, behind + 1
            age = (now - last_use).bit_length()
            if end - gap.address >= wanted and age > oldest:
                oldest, found = age, (first, behind)
            before = gap.end
        return found

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
