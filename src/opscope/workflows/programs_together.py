"""Several programs at once on one device: each has cores of its own, and all share the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..core.errors import UsageError, printable
from ..device.host.pipeline import Progress
from ..options import RunOptions
from ..program.program import NO_ROUTE, Program
from ..simulation import simulate
from .execution import Loaded, RunOutcome, Share, check_run, execute, load_fitting


def run_programs(
    places: Sequence[Path], options: RunOptions, *, progress: Progress | None = None
) -> tuple[RunOutcome, ...]:
    """Run programs beside each other, every one with as many activations; files carry the number of their program."""
    chosen = [load_fitting(place, None) for place in places]
    loaded = [each for each, _ in chosen]
    for each in loaded:
        check_run(each, options)
    outcomes = []
    for (each, which), share in zip(chosen, _shares(loaded, options), strict=True):
        outcome = execute(each, options, progress=progress, share=share)
        note = (
            f"program {share.number} of {len(loaded)}: {share.slots} activations at once on {each.program.cores} cores "
            f"each, from core {share.first_core} on"
        )
        outcomes.append(replace(outcome, notes=(note, *which, *outcome.notes)))
        if outcome.interrupted:
            break
    return tuple(outcomes)


def _shares(loaded: Sequence[Loaded], options: RunOptions) -> list[Share]:
    programs = [each.program for each in loaded]
    slots = share_cores([p.cores for p in programs], options.activations, _cores_of(programs))
    demand = [_bytes_per_second(program, seed=options.seed) for program in programs]
    running = [count * own for count, own in zip(slots, demand, strict=True)]
    shares, first = [], 0
    for number, program in enumerate(programs):
        foreign = sum(running) - running[number]
        shares.append(Share(slots[number], first, number, foreign / demand[number] if demand[number] else 0.0))
        first += slots[number] * program.cores
    return shares


def share_cores(cores: Sequence[int], activations: int, have: int) -> list[int]:
    """Activations that each program has at once: one each, then one more each in turn, while cores are left."""
    if sum(cores) > have:
        raise UsageError(
            f"programs of {' and '.join(map(str, cores))} cores: the device has {have}; expected no more together"
        )
    slots, left = [1] * len(cores), have - sum(cores)
    for _ in range(activations - 1):
        for number, own in enumerate(cores):
            if own <= left:
                slots[number] += 1
                left -= own
    return slots


def _cores_of(programs: Sequence[Program]) -> int:
    """Cores of the one device that all programs are compiled for."""
    targets = list(dict.fromkeys((program.target, program.devices) for program in programs))
    if len(targets) > 1:
        words = " and ".join(f"{devices} × {printable(name)}" for name, devices in targets)
        raise UsageError(f"programs for {words}; expected programs for the same devices to run at once")
    known = [program.device_cores for program in programs if program.device_cores is not None]
    return min(known, default=sum(program.cores for program in programs))


def _bytes_per_second(program: Program, *, seed: int) -> float:
    """Mean traffic of a program that has the device to itself."""
    cycles = simulate(program, seed=seed).total_cycles
    moved = program.commands["moved_bytes"][program.commands["route"] != NO_ROUTE].astype(np.float64).sum()
    return float(moved) / cycles * program.clock_hz if cycles else 0.0
