"""Model → recorded Run on the simulated device: compiled, run, decoded and analysed, with changes tried."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.errors import ModelError, ProfilerError
from ..core.files import sha256_of
from ..core.random_arrays import RANDOM_INPUTS
from ..graph.graph import Graph
from ..options import ProfileOptions
from ..program.program import Program
from ..program.program_file import encode_program, program_id
from ..recording.finding import Findings
from ..recording.recording_file import RECORDING_FILE, decode_recording
from ..recording.run import RunInfo, graph_edges
from ..workflows.execution import Execution, Loaded
from ..workflows.model_compiler import ModelCompiler
from ..workflows.record import Recorded, analysis_of, recorded
from ..workflows.retained_state import with_state
from ..workflows.simulated_run import (
    Keys,
    Tell,
    compile_options,
    execution_of,
    range_ns,
    record_run,
    with_options,
    with_range,
)
from .changes import MOST_COMMANDS, Baseline, with_predictions
from .profile_model import COMPILING, Request
from .trials import MOST_COMPILED, run_trials

if TYPE_CHECKING:
    from ..analysis.run_analysis import RunAnalysis


def simulate_model(request: Request, *, step: Tell) -> Recorded:
    """Compile, run, decode, analyse and record; what an earlier run in the folder has in common is taken from it."""
    step("reading")
    in_memory = isinstance(request.model, Graph)  # then nothing tells whether it is the same as before
    fingerprint = None if in_memory else _fingerprint(request.path)
    keys = Keys.of(f"{fingerprint or ''}{_inputs_fingerprint(request.options)}", request.target, request.options)
    earlier = None if in_memory or request.fresh or request.folder is None else _earlier_info(request.folder)
    if earlier is not None and request.folder is not None and earlier.options.get("run_key") == keys.run:
        return _reuse_run(request.folder)
    same_program = earlier is not None and earlier.options.get("program_key") == keys.program
    compiler = ModelCompiler(request.model)
    program, graph = _program(compiler, request, step, same=same_program)
    raw = encode_program(program)
    step("running")
    execution = execution_of(Loaded(program, program_id(raw), request.path), request.options)
    recording = with_options(
        record_run(execution, step=step),
        request.path,
        request.options,
        keys,
        target_file=request.target_file,
    )
    recording = replace(recording, graph=graph)
    if len(program.commands) > MOST_COMPILED:
        recording = replace(recording, notes=(*recording.notes, _no_range(len(program.commands))))
    elif recording.totals is not None:
        step("finding the range")
        span = range_ns(compiler, request.target, request.options, typical=execution)
        recording = replace(recording, totals=with_range(recording.totals, *span))
    analysis = analysis_of(recording, command=request.command, created=request.created, sha256=fingerprint)
    findings = _findings(analysis, execution, compiler, request, step)
    findings = replace(findings, notes=(*findings.notes, *recording.notes))
    step("writing")
    return recorded(
        analysis,
        findings,
        recording,
        request.folder,
        program=None if in_memory else raw,
        reused="program" if same_program else "",
    )


def _no_range(commands: int) -> str:
    """Why a latency stands alone."""
    return f"no range: a program of {commands:,} commands is not run at its ends; at most {MOST_COMPILED:,} are"


def _fingerprint(model: Path) -> str:
    from ..readers import model_format

    try:
        return sha256_of(model)
    except OSError as error:
        model_format(model)  # which says what a folder is
        raise ModelError(str(model), "", f"cannot be read ({error.strerror}); expected a model file") from error


def _inputs_fingerprint(options: ProfileOptions) -> str:
    """Of the file that shapes from a run depend on, if there is one; a file that is not there is for the reader."""
    choice = options.shapes_from_run
    if choice is None or choice == RANDOM_INPUTS or not Path(choice).is_file():
        return ""
    return sha256_of(Path(choice))


def _program(
    compiler: ModelCompiler, request: Request, step: Tell, *, same: bool
) -> tuple[Program, npt.NDArray[np.void] | None]:
    """The program and the edges of its graph: read from the earlier run where it is the same, else compiled.

    It names its model relative to the folder of the run, so that it can be compiled again.
    """
    place = ""
    if request.folder is not None and not isinstance(request.model, Graph):
        place = os.path.relpath(request.path.resolve(), request.folder.resolve())
    if same and request.folder is not None:
        from ..program.file_names import PROGRAM_FILE
        from ..recording.folder_reader import read_graph
        from ..workflows.execution import load_program

        program = replace(load_program(request.folder / PROGRAM_FILE).program, model=place)
        return program, read_graph(request.folder, len(program.ops))
    step(COMPILING)
    options = compile_options(request.options)
    program, plan = compiler.compile(request.target, options)
    program = replace(with_state(compiler.graph(options), program, options), model=place)
    return program, graph_edges(plan.graph)


def _findings(
    analysis: RunAnalysis, execution: Execution, compiler: ModelCompiler, request: Request, step: Tell
) -> Findings:
    """The findings of a run, with the simulated gain of smaller causes and of changes that could be made."""
    from ..analysis.analyse import analyse

    step("analysing")
    findings = analyse(analysis)
    device_ns = analysis.run.summary.latency.value_ns
    if device_ns is None or not request.trials:  # with a cost that is not known, no change can be said to be faster
        return findings
    if len(execution.loaded.program.commands) > MOST_COMMANDS:
        return findings
    base = _baseline(execution, device_ns)
    findings = with_predictions(findings, base)
    step("trying changes")
    tried, failed = run_trials(base, compiler, request.target, request.options)
    return replace(findings, trials=tried, notes=(*findings.notes, *failed))


def _baseline(execution: Execution, device_ns: int) -> Baseline:
    """What changes are measured against: the run's own cycles, where it was alone and drew nothing at random."""
    program = execution.loaded.program
    if execution.at_once == 1 and execution.options.seed == 0:
        return Baseline(program, execution.pace.cycles, device_ns)
    return Baseline.of(program, device_ns)


def _earlier_info(folder: Path) -> RunInfo | None:
    """The info of the run that is in the folder already; None where there is none, or it cannot be read."""
    from ..recording.head_file import read_info
    from ..recording.schema import HEAD_FILE

    try:
        return read_info(folder) if (folder / HEAD_FILE).exists() else None
    except ProfilerError:
        return None


def _reuse_run(folder: Path) -> Recorded:
    """The run in the folder as it is: nothing that it depends on has changed."""
    from ..analysis.run_totals import with_known_breakdown
    from ..recording.folder_reader import read_run
    from ..workflows.analysing import current_findings

    run = with_known_breakdown(read_run(folder)).run
    shown = [name for name in ("report.html", "trace.json", "trace.pftrace") if (folder / name).exists()]
    raw = (folder / RECORDING_FILE).read_bytes()
    recording = decode_recording(raw, run, source=str(folder / RECORDING_FILE))
    return Recorded(run, current_findings(folder, run), recording, folder, tuple(shown), "run")
