"""`opscope profile` behind `api.profile`: model → recorded Run, by whichever backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..changes.trials import MOST_COMPILED, trials
from ..core.errors import ModelError, ProfilerError
from ..estimate.recorded import estimated, suggested
from ..machine.target import Target
from ..program.program import Program
from ..recording.build import to_run
from ..recording.finding import Findings
from ..recording.recording_file import RECORDING_FILE, decode_recording
from ..recording.run import Run, RunInfo, graph_edges
from .choices import Choices
from .record import Recorded, recorded
from .simulating import Keys, Step, compiled_for, range_ns, run_program, with_choices, with_range


@dataclass(frozen=True, slots=True)
class Request:
    """What to profile, and where to leave it."""

    model: Path
    target: Target
    choices: Choices
    folder: Path | None
    command: tuple[str, ...]
    created: str
    target_file: str = ""  # where the target came from; empty: the catalogue
    fresh: bool = False  # re-use nothing


def simulate_model(request: Request, *, step: Step) -> Recorded:
    """Compile, run, decode, analyse and record; what an earlier run in the folder has in common is taken from it."""
    step("reading")
    fingerprint = _fingerprint(request.model)
    keys = Keys.of(fingerprint, request.target, request.choices)
    earlier = None if request.fresh or request.folder is None else _earlier(request.folder)
    if earlier is not None and request.folder is not None and earlier.options.get("run_key") == keys.run:
        return _again(request.folder)
    same_program = earlier is not None and earlier.options.get("program_key") == keys.program
    program, graph = _program(request, step, same=same_program)
    recording = with_choices(
        run_program(program, request.choices, step=step),
        request.model,
        request.choices,
        keys,
        target_file=request.target_file,
    )
    recording = replace(recording, graph=graph)
    if recording.totals is not None and len(program.commands) <= MOST_COMPILED:
        step("finding the range")
        span = range_ns(request.model, request.target, request.choices)
        recording = replace(recording, totals=with_range(recording.totals, *span))
    run = to_run(recording, command=request.command, created=request.created, sha256=fingerprint)
    findings = _findings(run, program, request, step)
    step("writing")
    return recorded(
        run,
        findings,
        recording,
        request.folder,
        program=program,
        model=request.model,
        reused="program" if same_program else "",
    )


def _fingerprint(model: Path) -> str:
    from ..core.files import sha256_of

    try:
        return sha256_of(model)
    except OSError as error:
        raise ModelError(str(model), "", f"cannot be read ({error.strerror}); expected a model file") from error


def _program(request: Request, step: Step, *, same: bool) -> tuple[Program, npt.NDArray[np.void] | None]:
    """The program, and the data that flows between its ops; of the earlier run where that has the same."""
    from ..core.files import PROGRAM_FILE
    from ..recording.folder_reader import read_graph
    from .execution import load_program

    if same and request.folder is not None:
        program = load_program(request.folder / PROGRAM_FILE).program
        return program, read_graph(request.folder, len(program.ops))
    step("compiling")
    compiled = compiled_for(request.model, request.target, request.choices)
    return compiled.program, graph_edges(compiled.graph)


def estimate_model(request: Request, *, step: Step) -> Recorded:
    """The resource report as a Run; what it suggests are the changes tried."""
    from ..analysis.analyse import analyse
    from ..api import report

    chosen = request.choices
    step("estimating")
    found = report(
        request.model,
        request.target,
        shapes=chosen.shapes,
        batch=chosen.batch,
        cores=chosen.cores,
        devices=chosen.devices,
    )
    recording = estimated(found)
    run = to_run(recording, command=request.command, created=request.created, sha256=found.model.sha256)
    step("analysing")
    findings = replace(analyse(run), trials=suggested(found))
    step("writing")
    return recorded(run, findings, recording, request.folder)


def _findings(run: Run, program: Program, request: Request, step: Step) -> Findings:
    """With what smaller causes would gain, and what changes would, by simulating them."""
    from ..analysis.analyse import analyse
    from ..changes.changes import with_predictions

    step("analysing")
    device_ns = run.summary.latency.known_ns
    findings = with_predictions(analyse(run), program, device_ns=device_ns)
    step("trying changes")
    tried = trials(program, request.model, request.target, request.choices, device_ns=device_ns)
    return replace(findings, trials=tried)


def _earlier(folder: Path) -> RunInfo | None:
    """The head of the run that is there already; one that cannot be read is none."""
    from ..recording.folder_reader import read_info

    try:
        return read_info(folder) if (folder / "run.json").exists() else None
    except ProfilerError:
        return None


def _again(folder: Path) -> Recorded:
    """Nothing changed: the folder is as it would be made again."""
    from ..recording.folder_reader import read_run
    from .analysing import current_findings

    run = read_run(folder)
    shown = [name for name in ("report.html", "trace.json", "trace.pftrace") if (folder / name).exists()]
    raw = (folder / RECORDING_FILE).read_bytes()
    recording = decode_recording(raw, run, source=str(folder / RECORDING_FILE))
    return Recorded(run, current_findings(folder, run), recording, folder, tuple(shown), "run")
