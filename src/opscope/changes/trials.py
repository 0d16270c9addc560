"""Trials: changes that a user could make to a simulated Run, each simulated: the table of what would help."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.errors import ProfilerError
from ..estimate.precision import matrix_engine, precisions
from ..machine.target import Target
from ..options import ProfileOptions
from ..program.program import Program
from ..recording.finding import Trial
from ..simulation import simulate
from ..workflows.model_compiler import ModelCompiler
from .changes import Baseline, apply_changes, parse_change

MOST_COMPILED = 100_000  # commands: beyond that, compiling again takes longer than all the rest of a profile


def candidate_changes(program: Program, target: Target, options: ProfileOptions) -> Iterator[str]:
    """Yield what to try: half and more of the cores, all devices, the fastest data type, twice the bandwidth.

    With 4 of 14 cores on one device: cores=2, cores=8, cores=14, and so on.
    """
    cores, devices = round(target.topology.cores.value), round(target.topology.devices.value)
    numbers = dict.fromkeys((program.cores // 2, min(2 * program.cores, cores), cores))
    yield from (f"cores={number}" for number in numbers if number not in (0, program.cores))
    if devices > program.devices:
        yield f"devices={devices}"
    fastest = fastest_dtype(target)
    if fastest is not None and fastest != options.precision and not _computes_in(program, fastest):
        yield f"precision={fastest}"
    yield "bandwidth*2"


def fastest_dtype(target: Target) -> str | None:
    """The data type with most MACs per cycle on the matrix engine, of those that it takes; None: all have the same."""
    rates = {label: figure.value for label, figure in matrix_engine(target).macs_per_cycle.items()}
    known = [label for label in precisions(target) if label in rates]
    slowest = min(rates.values(), default=0.0)
    return max((label for label in known if rates[label] > slowest), key=lambda label: rates[label], default=None)


def _computes_in(program: Program, label: str) -> bool:
    """Whether every product uses this data type already."""
    details = np.unique(program.commands["detail"][program.commands["macs"] > 0]).tolist()
    used = [{operand.dtype for operand in program.details[detail].operands} for detail in details]
    return bool(used) and all(label in dtypes for dtypes in used)


def run_trials(
    base: Baseline, compiler: ModelCompiler, target: Target, options: ProfileOptions
) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """Simulate every candidate, the best first, and say which cannot be compiled; what changes nothing is left out."""
    program, found, failed = base.program, [], []
    for text in candidate_changes(program, target, options) if base.cycles else ():
        change = parse_change(text)
        if change.recompiles and len(program.commands) > MOST_COMPILED:
            continue
        try:
            other, _ = apply_changes(program, [change], compiler, target, options, timed_only=True)
        except ProfilerError as error:
            failed.append(f"not tried: {text} fails: {error}")
            continue
        if change.recompiles and np.array_equal(other.commands, program.commands):
            continue
        ratio = simulate(other).total_cycles / other.clock_hz / base.seconds
        found.append(Trial(text, round(base.device_ns * ratio), 1 / ratio))
    return tuple(sorted(found, key=lambda trial: trial.latency_ns)), tuple(failed)
