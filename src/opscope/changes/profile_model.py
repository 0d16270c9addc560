"""`opscope profile` behind `api.profile`: model → recorded Run on our own backends, with changes tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..backends import registry as backends
from ..core.errors import ModelError, ProfilerError, UsageError
from ..core.files import sha256_of
from ..core.manifest import Can, Value
from ..core.random_arrays import RANDOM_INPUTS
from ..graph.graph import Graph
from ..machine.target import Target
from ..options import ProfileOptions, Shapes
from ..program.program import Program
from ..recording.finding import Findings
from ..recording.recording_file import RECORDING_FILE, decode_recording
from ..recording.run import Run, RunInfo, graph_edges
from ..workflows import catalogue, own_backends, profiling
from ..workflows.model_compiler import ModelCompiler
from ..workflows.own_backends import SIMULATE
from ..workflows.record import Recorded, analysed, recorded, run_of
from ..workflows.simulated_run import Keys, Step, compile_options, range_ns, run_program, with_options, with_range
from .trials import MOST_COMPILED, run_trials

if TYPE_CHECKING:
    from ..readers.torch import TorchModel

COMPILING = "compiling"  # what `step` is told while our own compiler is at work


@dataclass(frozen=True, slots=True)
class Request:
    """What to profile, and where to leave it."""

    model: Path | Graph
    target: Target
    options: ProfileOptions
    folder: Path | None
    command: tuple[str, ...]
    created: str
    target_file: str = ""  # where the target came from; empty: the catalogue
    fresh: bool = False  # re-use nothing
    trials: bool = True  # also try changes, and tell what each would gain

    @property
    def path(self) -> Path:
        """File of the model, or that its graph was read from."""
        return Path(self.model.source) if isinstance(self.model, Graph) else self.model


def profile_by(
    backend: str | None,
    model: Path | Graph | TorchModel,
    target: str | Path | Target | None,
    options: ProfileOptions | Mapping[str, Value],
    *,
    shapes: Shapes | None = None,
    advise: bool = False,
    advise_if_able: bool = False,
    folder: Path | None = None,
    fresh: bool = False,
    trials: bool = True,
    command: tuple[str, ...] = (),
    created: str,
    step: Step | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recorded:
    """Profile by any backend: our own, or a plug-in's; None: the best source of the target that works here.

    Args:
        advise: also try other choices; a backend of a plug-in that cannot is an error, unless `advise_if_able`.
    """
    by_name = None if isinstance(options, ProfileOptions) else options
    file = None if isinstance(model, Graph) else model
    own_only = by_name is None or file is None
    choice = catalogue.choose(target, backend=backend, options=by_name, model=file, own_only=own_only)
    if choice.backend not in own_backends.OWN:
        if by_name is None or file is None:
            raise UsageError(f"backend {choice.backend}: expected a model file, and options by name")
        tell = step or (lambda _: None)
        result = profiling.profile(
            file,
            backend=choice.backend,
            options=choice.options,
            shapes=shapes,
            advise=advise and (Can.ADVISE in backends.find(choice.backend).can or not advise_if_able),
            step=step,
            progress=progress,
        )
        tell("analysing")
        return analysed(result, folder, command=command, created=created, sha256=_known_sha256(file))
    machine, place = own_backends.load_target(choice.target)[0], choice.file
    wanted = own_backends.profile_options(options if by_name is None else choice.options, shapes)
    given, wanted = _readable(model, wanted)
    request = Request(given, machine, wanted, folder, command, created, place, fresh, trials)
    return profile_model(request, choice.backend, step=step)


def _known_sha256(model: Path | TorchModel) -> str | None:
    return sha256_of(model) if isinstance(model, Path) and model.is_file() else None


def _readable(model: Path | Graph | TorchModel, options: ProfileOptions) -> tuple[Path | Graph, ProfileOptions]:
    """A model that is no file as a graph, read once; the shapes that were asked for are set in it then."""
    if isinstance(model, Graph) or (isinstance(model, Path) and model.exists()):
        return model, options
    from ..readers import graph_of, is_torch_model

    if isinstance(model, Path) and not is_torch_model(model):
        return model, options
    graph = graph_of(model, shapes=options.shapes, batch=options.batch, shapes_from_run=options.shapes_from_run)
    return graph, replace(options, shapes={}, batch=None, shapes_from_run=None)


def profile_model(request: Request, backend: str, *, step: Step | None = None) -> Recorded:
    """Profile by the backend of that name: the simulated device, or the estimate; `step` is told of every stage."""
    make = simulate_model if backend == SIMULATE else estimate_model
    return make(request, step=step or (lambda _: None))


def simulate_model(request: Request, *, step: Step) -> Recorded:
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
    recording = with_options(
        run_program(program, request.options, step=step),
        request.path,
        request.options,
        keys,
        target_file=request.target_file,
    )
    recording = replace(recording, graph=graph)
    if recording.totals is not None and len(program.commands) <= MOST_COMPILED:
        step("finding the range")
        span = range_ns(compiler, request.target, request.options)
        recording = replace(recording, totals=with_range(recording.totals, *span))
    run = run_of(recording, command=request.command, created=request.created, sha256=fingerprint)
    findings = _findings(run, program, compiler, request, step)
    findings = replace(findings, notes=(*findings.notes, *recording.notes))
    step("writing")
    return recorded(
        run,
        findings,
        recording,
        request.folder,
        program=None if in_memory else program,
        model=None if in_memory else request.path,
        reused="program" if same_program else "",
    )


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
    compiler: ModelCompiler, request: Request, step: Step, *, same: bool
) -> tuple[Program, npt.NDArray[np.void] | None]:
    """The program and the edges of its graph: read from the earlier run where it is the same, else compiled."""
    if same and request.folder is not None:
        from ..core.files import PROGRAM_FILE
        from ..recording.folder_reader import read_graph
        from ..workflows.execution import load_program

        program = load_program(request.folder / PROGRAM_FILE).program
        return program, read_graph(request.folder, len(program.ops))
    step(COMPILING)
    program, plan = compiler.compile(request.target, compile_options(request.options))
    return program, graph_edges(plan.graph)


def estimate_model(request: Request, *, step: Step) -> Recorded:
    """The resource report as a recorded Run."""
    from ..estimate.build_report import report_model
    from ..options import ReportOptions, part_of
    from ..workflows.estimating import analysed_run

    step("estimating")
    options = replace(part_of(ReportOptions, request.options), advise=request.trials)
    found = report_model(request.model, request.target, options)
    step("analysing")
    made = analysed_run(found, command=request.command, created=request.created)
    step("writing")
    return recorded(made.run, made.findings, made.recording, request.folder)


def _findings(run: Run, program: Program, compiler: ModelCompiler, request: Request, step: Step) -> Findings:
    """The findings of a run, with the simulated gain of smaller causes and of changes that could be made."""
    from ..analysis.analyse import analyse
    from .changes import with_predictions

    step("analysing")
    findings = analyse(run)
    device_ns = run.summary.latency.value_ns
    if device_ns is None or not request.trials:  # with a cost that is not known, no change can be said to be faster
        return findings
    findings = with_predictions(findings, program, device_ns=device_ns)
    step("trying changes")
    tried, failed = run_trials(program, compiler, request.target, request.options, device_ns=device_ns)
    return replace(findings, trials=tried, notes=(*findings.notes, *failed))


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

    run = with_known_breakdown(read_run(folder))
    shown = [name for name in ("report.html", "trace.json", "trace.pftrace") if (folder / name).exists()]
    raw = (folder / RECORDING_FILE).read_bytes()
    recording = decode_recording(raw, run, source=str(folder / RECORDING_FILE))
    return Recorded(run, current_findings(folder, run), recording, folder, tuple(shown), "run")
