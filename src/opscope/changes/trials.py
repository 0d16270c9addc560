"""Changes that a user could make to a simulated Run, each made and simulated: the table of what would help."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.errors import ProfilerError
from ..graph.graph import DType
from ..machine.target import Engine, Target
from ..options import ProfileOptions
from ..program.program import Program
from ..recording.finding import Trial
from ..workflows.model_compiler import ModelCompiler
from .changes import MOST_COMMANDS, changed, parse_change

MOST_COMPILED = 100_000  # commands: beyond that, compiling again takes longer than all the rest of a profile


def worth_trying(program: Program, target: Target, options: ProfileOptions) -> Iterator[str]:
    """Half the cores, and more of what there is; the data type it is fastest with; memory that is twice as fast."""
    cores, devices = round(target.topology.cores.value), round(target.topology.devices.value)
    numbers = dict.fromkeys((program.cores // 2, min(2 * program.cores, cores), cores))
    yield from (f"cores={number}" for number in numbers if number not in (0, program.cores))
    if devices > program.devices:
        yield f"devices={devices}"
    fastest = fastest_type(target)
    if fastest is not None and fastest != options.precision and not _computes_in(program, fastest):
        yield f"precision={fastest}"
    yield "bandwidth*2"


def fastest_type(target: Target) -> str | None:
    """The data type that most MACs fit into a cycle with; None: they all take as long."""
    rates = {label: figure.value for label, figure in _matrix_engine(target).macs_per_cycle.items()}
    known = [dtype.label for dtype in DType if dtype.label in rates]
    slowest = min(rates.values(), default=0.0)
    return max((label for label in known if rates[label] > slowest), key=lambda label: rates[label], default=None)


def _computes_in(program: Program, label: str) -> bool:
    """Every product is of this data type already."""
    details = np.unique(program.commands["detail"][program.commands["macs"] > 0]).tolist()
    used = [{operand.dtype for operand in program.details[detail].operands} for detail in details]
    return bool(used) and all(label in dtypes for dtypes in used)


def _matrix_engine(target: Target) -> Engine:
    return max(target.engines, key=lambda engine: max((f.value for f in engine.macs_per_cycle.values()), default=0.0))


def trials(
    program: Program, compiler: ModelCompiler, target: Target, options: ProfileOptions, *, device_ns: int
) -> tuple[Trial, ...]:
    """Best first. A change that leaves the program as it is, or that cannot be compiled, is none."""
    from ..device import simulate

    base = _seconds(program, simulate(program, seed=0).total_cycles) if len(program.commands) <= MOST_COMMANDS else 0.0
    found = []
    for text in worth_trying(program, target, options) if base else ():
        change = parse_change(text)
        if change.compiles and len(program.commands) > MOST_COMPILED:
            continue
        try:
            other, _ = changed(program, [change], compiler, target, options)
        except ProfilerError:
            continue
        if change.compiles and np.array_equal(other.commands, program.commands):
            continue
        ratio = _seconds(other, simulate(other, seed=0).total_cycles) / base
        found.append(Trial(text, round(device_ns * ratio), 1 / ratio))
    return tuple(sorted(found, key=lambda trial: trial.latency_ns))


def _seconds(program: Program, cycles: float) -> float:
    return cycles / program.clock_hz
