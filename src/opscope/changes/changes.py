"""What-if changes of a simulated Run, and what they come to.

Two kinds. A change of speed (bandwidth, clock, the time of an op) keeps the commands: their cycles, bytes or rates are
scaled and the program is simulated again. A change of size or form (cores, devices, batch, data type) needs another
program: the model is compiled again. Either way the answer is simulated, so it contains what merely scaling the time
of an op would miss: what the op overlaps with, and what becomes the bottleneck next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import UsageError, printable
from ..program.clock import at_clock
from ..program.program import NO_ROUTE, Program
from ..recording.build import to_run
from ..recording.finding import WHAT_IF, Finding, Findings, Prediction
from ..simulation import simulate

if TYPE_CHECKING:
    from ..machine.target import Target
    from ..options import ProfileOptions
    from ..recording.recording import Recording
    from ..recording.run import Run, RunInfo
    from ..workflows.model_compiler import ModelCompiler

MOST_TRIED = 3  # findings, costliest first, whose gain is simulated
_SIMULATED = ("slow-op", "memory-transfers")  # rules whose cause can be halved in a simulation
LARGEST_FACTOR = 1_000_000
MOST_COMMANDS = 2_000_000  # above it a simulation takes seconds, and the upper bound has to do

_NUMBERS, _WORDS = ("cores", "devices", "batch"), ("precision", "kv-cache")  # options that compile again
_NUMBER = r"(?P<factor>\d+\.?\d*|\.\d+)"
_FORMS = (  # of a change, as regular expressions
    re.compile(rf"(?P<what>bandwidth)(?::(?P<name>[^*]+))?\*{_NUMBER}"),
    re.compile(rf"(?P<what>clock)\*{_NUMBER}"),
    re.compile(rf"(?P<what>op):(?P<name>.+)(?:\*{_NUMBER}|=0)"),
    re.compile(r"(?P<what>cores|devices|batch)=(?P<value>[1-9]\d{0,8})"),
    re.compile(r"(?P<what>precision)=(?P<value>\w+)"),
    re.compile(r"(?P<what>kv-cache)=(?P<value>[\w-]+)"),
)
EXPECTED = (
    "bandwidth*2, bandwidth:ROUTE*2, clock*1.5, op:NAME=0, op:NAME*0.5, cores=8, devices=2, batch=4, precision=i8 "
    "or kv-cache=mxint8"
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A program that ran: what changes of it are measured against."""

    program: Program
    cycles: float  # of the device alone, simulated at the nominal clock and without variation
    device_ns: int  # that it took; its clock may differ from the nominal one

    @classmethod
    def of(cls, program: Program, device_ns: int) -> Baseline:
        return cls(program, simulate(program).total_cycles, device_ns)

    @property
    def seconds(self) -> float:
        return self.cycles / self.program.clock_hz


@dataclass(frozen=True, slots=True)
class Change:
    """One change: times of `what` called `name` (empty: all) by a factor, or `what` set to a value."""

    what: str
    name: str
    factor: float
    value: str

    @property
    def recompiles(self) -> bool:
        """Whether the model has to be compiled again; otherwise the commands stay and are timed again."""
        return self.what in (*_NUMBERS, *_WORDS)


def parse_change(text: str) -> Change:
    """The change that a text such as `bandwidth*2` describes; the error for any other text lists the forms."""
    found = next((match for form in _FORMS if (match := form.fullmatch(text.strip()))), None)
    if found is None:
        raise UsageError(f"--what-if {printable(text)!r}: not understood; expected such as {EXPECTED}")
    parts = found.groupdict()
    change = Change(parts["what"], parts.get("name") or "", float(parts.get("factor") or 0), parts.get("value") or "")
    if change.what in ("bandwidth", "clock") and not change.factor:
        raise UsageError(f"--what-if {printable(text)!r}: nothing would ever end; expected a factor above 0")
    if change.factor > LARGEST_FACTOR:
        raise UsageError(f"--what-if {printable(text, 60)!r}: too much; expected a factor up to {LARGEST_FACTOR:,}")
    return change


def parse_changes(texts: Sequence[str]) -> list[Change]:
    """The changes of several texts; a size is set at most once."""
    found = [parse_change(text) for text in texts]
    for what in dict.fromkeys(change.what for change in found if change.recompiles):
        values = [change.value for change in found if change.what == what]
        if len(values) > 1:
            raise UsageError(f"--what-if {what}: is set to {' and to '.join(values)}; expected one value")
    return found


def retime_program(program: Program, change: Change) -> Program:
    """The same commands with other times, for a change that needs no compilation."""
    factor = change.factor
    if change.what == "bandwidth":
        return _scale_bandwidth(program, change.name, factor)
    if change.what == "clock":
        return at_clock(program, factor)
    numbers = _ops_named(program, (change.name,))
    if not numbers:
        raise UsageError(f"--what-if op:{printable(change.name)}: no such op; expected a name from `opscope analyze`")
    return scale_ops(program, numbers, factor)


def _ops_named(program: Program, names: Sequence[str]) -> list[int]:
    """Positions of the ops that have one of these names; several may share one."""
    wanted = frozenset(names)
    return [number for number, op in enumerate(program.ops) if op.name in wanted]


def _scale_bandwidth(program: Program, name: str, factor: float) -> Program:
    """The program with the rate of a route, and of the memory it serves, multiplied; of all where `name` is empty."""
    if name and name not in {route.name for route in program.routes}:
        known = ", ".join(route.name for route in program.routes)
        raise UsageError(f"--what-if bandwidth:{printable(name)}: no such route; expected one of {known}")
    routes = tuple(
        replace(
            route,
            bytes_per_cycle=route.bytes_per_cycle * factor,
            core_bytes_per_cycle=route.core_bytes_per_cycle * factor,
        )
        if name in ("", route.name)
        else route
        for route in program.routes
    )
    served = {route.memory for route in program.routes if name in ("", route.name)}
    memories = tuple(
        replace(memory, bytes_per_cycle=memory.bytes_per_cycle * factor)
        if number in served and memory.bytes_per_cycle is not None
        else memory
        for number, memory in enumerate(program.memories)
    )
    return replace(program, routes=routes, memories=memories)


def scale_ops(program: Program, ops: Sequence[int], factor: float) -> Program:
    """The program with cycles and bytes of these ops multiplied; dependencies stay."""
    commands = program.commands.copy()
    own = np.isin(commands["op"], np.asarray(ops))
    commands["cycles"][own] = np.rint(commands["cycles"][own] * factor)
    moved = own & (commands["route"] != NO_ROUTE)
    commands["moved_bytes"][moved] = np.rint(commands["moved_bytes"][moved] * factor)
    return replace(program, commands=commands)


def apply_changes(
    program: Program,
    changes: Sequence[Change],
    compiler: ModelCompiler,
    target: Target,
    options: ProfileOptions,
    *,
    timed_only: bool = False,
) -> tuple[Program, ProfileOptions]:
    """The program with the changes applied, and the options that it then corresponds to.

    Compiled once for all changes that need it; then those of speed are applied in turn.

    Args:
        timed_only: it is simulated and not kept.
    """
    from ..workflows.simulated_run import compile_options

    built = [change for change in changes if change.recompiles]
    if built:
        named = {
            change.what.replace("-", "_"): change.value if change.what in _WORDS else int(change.value)
            for change in built
        }
        options = replace(options, **named)  # type: ignore[arg-type]
        program, _ = compiler.compile(target, compile_options(options), timed_only=timed_only)
    for change in changes:
        program = program if change.recompiles else retime_program(program, change)
    return program, options


def what_if_run(folder: Path, changes: Sequence[str]) -> tuple[Run, Run]:
    """The run in a folder simulated again, as it was and with the changes applied."""
    from ..program.file_names import PROGRAM_FILE
    from ..recording.folder_reader import read_run
    from ..workflows.execution import load_program
    from ..workflows.model_compiler import ModelCompiler
    from ..workflows.simulated_run import options_of_run, run_program, target_of

    run = read_run(folder)
    if not (folder / PROGRAM_FILE).exists():
        raise UsageError(f"{folder}: has no program, so it cannot be timed again; expected a run of `--backend sim`")
    loaded, parsed = load_program(folder / PROGRAM_FILE), parse_changes(changes)
    model = _model_of(folder, loaded.model) if any(change.recompiles for change in parsed) else loaded.model
    compiler, made_with = ModelCompiler(model), options_of_run(run.info)
    program, options = apply_changes(loaded.program, parsed, compiler, target_of(run.info), made_with)
    quiet = replace(options, num_iter=1, num_samples=1)
    runs = [_rebuild_run(run.info, run_program(each, quiet, step=lambda _: None)) for each in (loaded.program, program)]
    return runs[0], runs[1]


def _rebuild_run(info: RunInfo, recording: Recording) -> Run:
    """A run of a new recording with the model, command and date of the run that it is compared with."""
    named = replace(recording, model=info.model, network=info.network, options=info.options)
    return to_run(named, command=info.command, created=info.created, sha256=info.sha256)


def _model_of(folder: Path, model: Path) -> Path:
    if not model.is_file():
        raise UsageError(f"{folder}: its model {model} is not there any more; expected it where it was compiled from")
    return model


def with_predictions(findings: Findings, base: Baseline) -> Findings:
    """The findings, the costliest of them with a simulated gain instead of an upper bound.

    Half the cause is taken away: slow ops run twice as fast, as with a better kernel, or outer memory does, where
    transfers are the cause. Cycles are converted by the ratio of the baseline's to what it took.
    """

    def with_prediction(finding: Finding) -> Finding:
        better, words = _halve_cause(finding, base.program)
        if better is None or not findings.wall_ns:
            return finding
        gain = round(base.device_ns * (base.cycles - simulate(better).total_cycles) / base.cycles)
        return replace(finding, predicted=Prediction(gain, findings.wall_ns - gain, WHAT_IF, f"simulated with {words}"))

    places = [place for place, finding in enumerate(findings.findings) if finding.id in _SIMULATED][:MOST_TRIED]
    return replace(
        findings,
        findings=tuple(
            with_prediction(finding) if place in places else finding for place, finding in enumerate(findings.findings)
        ),
    )


def _halve_cause(finding: Finding, program: Program) -> tuple[Program | None, str]:
    """The program with half the cause of a finding, and that in words; None: it has no such cause."""
    if finding.id == "memory-transfers":
        outer = [route.name for route in program.routes if route.carries.is_outer]
        better = program
        for name in outer:
            better = _scale_bandwidth(better, name, 2.0)
        return (better, f"twice the bandwidth of {' and '.join(outer)}") if outer else (None, "")
    ops = _ops_named(program, finding.ops)
    words = "this op twice as fast" if len(ops) == 1 else f"these {len(ops)} ops twice as fast"
    return (scale_ops(program, ops, 0.5), words) if ops else (None, "")
