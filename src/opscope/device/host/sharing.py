"""How activations share a device: slots of cores, and the bandwidth left of routes that all cores use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...core.errors import printable
from ...program.check import fault
from ...program.program import NO_ROUTE, Program
from ...simulation import simulate

_CLOSE = 0.02  # of the time: ends of the search are no farther apart


def slots_of(program: Program) -> int:
    """Return how many activations run at the same time on a device, each with its own cores.

    One where the program does not say what its device has: activations take turns then.
    """
    have = program.device_cores
    if have is None:
        return 1
    if not 1 <= program.cores <= have:
        raise fault(program, f"compiled for {program.cores} cores a device; {printable(program.target)} has {have}")
    return have // program.cores


def beside_others(program: Program, others: float, *, seed: int) -> tuple[Program, float]:
    """Return the program with the bandwidth it gets while others like it run on the same device, and its cycles.

    The others are slowed down as this one is, and demand less of every shared route than they would alone: sought is
    the time at which what they leave makes this one take as long. It is longer than that of the program alone, and
    shorter than it would be beside others that demand as much as if each were alone. Of the two ends of the search the
    one counts where this program is no faster than it takes the others to be: together they get no more than there is.
    """
    least = simulate(program, seed=seed).total_cycles
    if not others or not least:
        return program, least
    found = _beside(program, least, others)
    cycles = most = simulate(found, seed=seed).total_cycles
    while most > (1 + _CLOSE) * least:
        middle = (least + most) / 2
        tried = _beside(program, middle, others)
        taken = simulate(tried, seed=seed).total_cycles
        if taken < middle:
            most = middle
        else:
            least, found, cycles = middle, tried, taken
    return found, cycles


def _beside(program: Program, cycles: float, others: float) -> Program:
    """Return the program with what others leave of every shared route while each of them takes so many cycles.

    They take their mean demand. This one gets the rest, but at least an equal share.
    """
    table, moved = program.commands, np.zeros(len(program.routes))
    moves = table["route"] != NO_ROUTE
    np.add.at(moved, table["route"][moves], table["moved_bytes"][moves].astype(np.float64))

    def remaining(rate: float, numbers: list[int]) -> float:
        demand = float(moved[numbers].sum()) / program.devices / cycles
        return max(rate - others * demand, rate / (others + 1))

    routes = [
        replace(route, bytes_per_cycle=remaining(route.bytes_per_cycle, [number]))
        for number, route in enumerate(program.routes)
    ]
    pools, memories = program.pool_of_routes(), list(program.memories)
    for pool in sorted(set(pools)):
        numbers = [number for number, own in enumerate(pools) if own == pool]
        if len(numbers) > 1:
            left = remaining(program.pool_rate(pool), numbers)
            memory = program.routes[pool].memory
            memories[memory] = replace(memories[memory], bytes_per_cycle=left)
    return replace(program, routes=tuple(routes), memories=tuple(memories))
