"""How activations share a device: slots of cores, and the bandwidth left of routes that all cores use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...core.errors import printable
from ...program.check import fault
from ...program.program import NO_ROUTE, Channel, Program


def slots_of(program: Program, cores: int) -> int:
    """Return how many activations run at the same time on a device, each with its own cores."""
    if not 1 <= program.cores <= cores:
        raise fault(program, f"compiled for {program.cores} cores a device; {printable(program.target)} has {cores}")
    return cores // program.cores


def beside_others(program: Program, cycles: float, others: float) -> Program:
    """Return the program with the bandwidth it gets while others like it run on the same device.

    The others take their mean demand of every shared route. This one gets the rest, but at least an equal share.
    """
    if not others or not cycles:
        return program
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


def load_ns(program: Program) -> int:
    """Return the time to load the resident weights once."""
    rate = sum(_read_rate(route) for route in program.routes)
    return round(program.metrics.first_read / rate / program.clock_hz * 1e9) if rate > 0 else 0


def _read_rate(route: Channel) -> float:
    return route.bytes_per_cycle if route.carries == "read" else 0.0
