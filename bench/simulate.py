"""How fast is the simulated device? Commands per second of the compiled loop, and ratios to loops in Python.

Ratios come from one run on one machine, over the same program; absolute figures are for orientation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit" / "device"))
from device_build import DMA, HMX, HVX, KINDS, READ, program_of
from device_reference import Reference

from opscope.capture import encode_capture
from opscope.device import collect, event_loop, simulate
from opscope.device.tables import tables
from opscope.program import COMMAND, NO_ROUTE, Program, StatsOptions

CORES = 64


def tiled_program(commands: int) -> Program:
    """Per core and tile: a copy, a dequantisation, a product; three buffers, and neighbours that exchange results."""
    tiles = commands // (3 * CORES)
    core, group, tile = (grid.reshape(-1) for grid in np.mgrid[0:CORES, 0:3, 0:tiles])
    rng = np.random.default_rng(0)
    table = np.zeros(len(core), COMMAND)
    table["core"], table["group"], table["ordinal"] = core, group, tile
    table["route"] = np.where(group == DMA, READ, NO_ROUTE)
    table["cycles"] = np.select([group == DMA, group == HVX], [235, rng.integers(3000, 9000, len(core))], 6000)
    table["moved_bytes"] = np.where(group == DMA, rng.integers(50_000, 150_000, len(core)), 0)
    here = np.arange(len(core))
    to_group = {HVX: here + (DMA - HVX) * tiles, HMX: here + (HVX - HMX) * tiles, DMA: here + (HMX - DMA) * tiles - 3}
    neighbour = (here + 3 * tiles) % len(here) - 1  # what the next core multiplied one tile ago
    first = np.select([group == HVX, group == HMX], [to_group[HVX], to_group[HMX]], to_group[DMA])
    present = np.stack([(group != DMA) | (tile >= 3), (group == HMX) & (tile >= 1)], axis=1)
    sources = np.stack([first, neighbour], axis=1)[present]
    offsets = np.concatenate(([0], np.cumsum(present.sum(axis=1))))
    routes = tuple(replace(route, bytes_per_cycle=110.0, core_bytes_per_cycle=20.0) for route in program_of([]).routes)
    return replace(
        program_of([], routes=routes, stats=StatsOptions(level=70), simulation={"thread_spread": 0.035}),
        cores=CORES,
        kinds=KINDS,
        commands=table,
        dependency_offsets=offsets.astype(np.uint32),
        dependency_sources=sources.astype(np.uint32),
        dependency_kinds=np.ones(len(sources), np.uint8),
    )


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The best of some runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeat):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


def run_in_python(program: Program) -> None:
    built = tables(program)
    columns = [getattr(built, name) for name in built.__slots__]
    count = len(program.commands)
    event_loop.run(*columns, *(np.empty(count) for _ in range(5)), np.empty(count, np.int64))


def main() -> None:
    large, middle, small = tiled_program(1_000_000), tiled_program(100_000), tiled_program(3_000)
    count = len(large.commands)
    compiled = seconds(lambda: simulate(large))
    timeline = simulate(large)
    capture = collect(large, timeline, program_id=0, device=0, activation=0, inference=0, start_tick=0)
    writing = seconds(
        lambda: collect(large, timeline, program_id=0, device=0, activation=0, inference=0, start_tick=0), 1
    )
    print(f"{count} commands, {len(large.dependency_sources)} dependencies, {CORES} cores")
    checking = seconds(lambda: tables(large)) / compiled
    print(f"simulate: {count / compiled:,.0f} commands/s, of which checking {checking:.0%}")
    print(f"collect at level 70: {count / writing:,.0f} commands/s, {len(encode_capture(capture)) / 1e6:.0f} MB")
    python = seconds(lambda: run_in_python(middle)) / seconds(lambda: simulate(middle))
    print(f"ratio to the same loop in Python ({len(middle.commands)} commands): {python:.0f}x")
    obvious = seconds(lambda: Reference(small).run(), 1) / seconds(lambda: simulate(small))
    print(f"ratio to the reference of the tests ({len(small.commands)} commands): {obvious:.0f}x")


if __name__ == "__main__":
    main()
