"""Who runs where on a card: every activation at once has cores of its own, on the devices that its program is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...core.errors import UsageError, printable
from ...program.check import fault
from ...program.program import Program


class Slot(NamedTuple):
    """Cores that one activation at a time has to itself."""

    device: int  # the first of those of its program
    core: int  # the first, on each of them


def share_card(programs: Sequence[Program], activations: int) -> list[tuple[Slot, ...]]:
    """The slots of every program: of one, all that the card has; of several, as many as their activations need.

    Each gets one, then one more in turn while cores are left, where most of them are. Where no program says what its
    device has, each has one slot beside the others, and activations take turns.
    """
    have, groups = _cores_of(programs), _groups_of(programs)
    free, turns = [have] * groups, [list[int]() for _ in programs]  # of each program, the group of every slot
    for turn in range(activations if len(programs) > 1 else have * groups):
        given = [_give(program, free, own) for program, own in zip(programs, turns, strict=True)]
        if turn == 0 and not all(given):
            wanted = " and ".join(str(program.cores) for program in programs)
            raise UsageError(f"programs of {wanted} cores: the device has {have}; expected no more together")
        if not any(given):
            break
    next_core = [0] * groups
    return [_side_by_side(program, own, next_core) for program, own in zip(programs, turns, strict=True)]


def _give(program: Program, free: list[int], turns: list[int]) -> bool:
    """Give a program one more slot where most cores are left; False: there is no room."""
    group = free.index(max(free))
    if free[group] < program.cores:
        return False
    turns.append(group)
    free[group] -= program.cores
    return True


def _side_by_side(program: Program, turns: Sequence[int], next_core: list[int]) -> tuple[Slot, ...]:
    """The slots of a program on each group of devices one behind the other, behind those of programs before it."""
    found = []
    for group in turns:
        found.append(Slot(group * program.devices, next_core[group]))
        next_core[group] += program.cores
    return tuple(found)


def _cores_of(programs: Sequence[Program]) -> int:
    """Cores of each of the devices that all programs are compiled for."""
    targets = list(dict.fromkeys((program.target, program.devices) for program in programs))
    if len(targets) > 1:
        words = " and ".join(f"{devices} × {printable(name)}" for name, devices in targets)
        raise UsageError(f"programs for {words}; expected programs for the same devices to run at once")
    for program in programs:
        have = program.device_cores
        if have is not None and not 1 <= program.cores <= have:
            raise fault(program, f"compiled for {program.cores} cores a device; {printable(program.target)} has {have}")
    known = [program.device_cores for program in programs if program.device_cores is not None]
    return min(known, default=sum(program.cores for program in programs))


def _groups_of(programs: Sequence[Program]) -> int:
    """How often the devices of a program are on the card; once where no program says how many there are."""
    known = [program.card_devices for program in programs if program.card_devices is not None]
    return max(1, min(known, default=1) // programs[0].devices)
