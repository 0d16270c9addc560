"""How fast is the simulated device? Commands per second of the compiled loop, and ratios to loops in Python.

Ratios come from one run on one machine, over the same program; absolute figures are for orientation.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from measure import Row, best_seconds, main

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from opscope.device import Inference, collect
from opscope.program.capture import encode_capture
from opscope.program.program import COMMAND, NO_ROUTE, Program, StatsOptions
from opscope.simulation import event_loop, simulate
from opscope.simulation.tables import checked_tables
from support.device.build import DMA, HMX, HVX, KINDS, READ, program_of
from support.device.reference import Reference

TITLE = "The simulated device: commands per second, and ratios to loops in Python"
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


def run_in_python(program: Program) -> None:
    built = checked_tables(program)
    columns = [getattr(built, name) for name in built.__slots__]
    count = len(program.commands)
    event_loop.run(*columns, *(np.empty(count) for _ in range(5)), np.empty(count, np.int64))


def rates() -> Iterator[Row]:
    """Commands simulated, checked and written per second, of one large program."""
    large = tiled_program(1_000_000)
    count = len(large.commands)
    compiled = best_seconds(lambda: simulate(large))
    rate = count / compiled
    yield Row(f"simulate {count:,} commands", {"commands/s": rate}, "≥ 1,000,000/s", rate >= 1_000_000)
    yield Row("of which checking the program", {"share": best_seconds(lambda: checked_tables(large)) / compiled})
    timeline = simulate(large)
    first = Inference(program_id=0, activation=0, number=0, start_tick=0)
    writing = best_seconds(lambda: collect(large, timeline, first, device=0), 1)
    written = len(encode_capture(collect(large, timeline, first, device=0)))
    yield Row("collect at level 70", {"commands/s": count / writing, "MB": written / 1e6})


def against_python() -> Iterator[Row]:
    """The compiled loop against the same loop in Python, and against the plainest one the tests have."""
    middle, small = tiled_program(100_000), tiled_program(3_000)
    python = best_seconds(lambda: run_in_python(middle)) / best_seconds(lambda: simulate(middle))
    yield Row(f"the same loop in Python, {len(middle.commands):,} commands", {"times faster": python})
    obvious = best_seconds(lambda: Reference(small).run(), 1) / best_seconds(lambda: simulate(small))
    yield Row(f"the reference of the tests, {len(small.commands):,} commands", {"times faster": obvious})


def measure(_: Namespace) -> Iterator[Row]:
    yield from rates()
    yield from against_python()


if __name__ == "__main__":
    main(TITLE, measure)
