"""How activations share a device: slots of cores, and the bandwidth left of routes that all cores use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...core.errors import printable
from ...program.check import fault
from ...program.program import Channel, Program


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
    table, routes = program.commands, []
    for number, route in enumerate(program.routes):
        moved = table["moved_bytes"][table["route"] == number].astype(np.float64)
        demand = float(moved.sum()) / program.devices / cycles
        remaining = max(route.bytes_per_cycle - others * demand, route.bytes_per_cycle / (others + 1))
        routes.append(replace(route, bytes_per_cycle=remaining))
    return replace(program, routes=tuple(routes))


def load_ns(program: Program) -> int:
    """Return the time to load the resident weights once."""
    rate = sum(_read_rate(route) for route in program.routes)
    return round(program.metrics.first_read / rate / program.clock_hz * 1e9) if rate > 0 else 0


def _read_rate(route: Channel) -> float:
    return route.bytes_per_cycle if route.carries == "read" else 0.0
