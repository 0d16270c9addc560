"""One function per user verb: the only place that wires stages together.

Options are the dataclasses of `opscope.options`, or their fields by name: `compile_model(model, target, cores=2)` is
`compile_model(model, target, options=CompileOptions(cores=2))`. What means the same everywhere:

- `model` is a model file or, where the type says so, a graph that `read` made of one, or a module of PyTorch;
  `shapes` are shapes of graph inputs by name, for dimensions that the model leaves open.
- `target` is a name from the catalogue (`targets`), the path of a target TOML file, or a Target.
- `command` and `created` are the command line and the time, ISO 8601 (now when not given), that a run is marked with.
- `progress` is called with how much is done, and of how much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from .core.errors import UsageError
from .core.files import sha256_of, write_bytes
from .options import (
    CompileOptions,
    OpstatsOptions,
    ProfileOptions,
    QuantizeOptions,
    ReportOptions,
    RunOptions,
    Shapes,
    WhatIfOptions,
    chosen,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import nn
    from torch.export import ExportedProgram

    from .backends.registry import BackendState
    from .calibration.calibrate import Calibrated, Prediction
    from .core.provenance import Provenance
    from .estimate.report import Report
    from .gate.comparison import Comparison, SideBySide
    from .graph.graph import Graph
    from .machine.entry import CatalogueEntry
    from .machine.target import Target
    from .recording.finding import Findings, LawCheck
    from .recording.quantized import Quantized
    from .recording.run import Run
    from .recording.what_if import WhatIf
    from .workflows.comparing import Source
    from .workflows.decoding import OpstatsOutcome
    from .workflows.execution import RunOutcome
    from .workflows.model_compiler import Compiled
    from .workflows.record import Recorded

    Model = str | Path | Graph  # a model file, or what `read` made of one
    Module: TypeAlias = nn.Module | ExportedProgram  # of torch
    AnyTarget = str | Path | Target  # a name of the catalogue, a TOML file, or what one of them describes
    Progress = Callable[[int, int], None]  # told how much is done, and of how much


def report_run(report: Report, *, command: Sequence[str] = (), created: str = "") -> Recorded:
    """A report as an analysed Run, for its page and all that takes a Run; without `created`, always the same one."""
    from .workflows.estimating import analysed_run

    return analysed_run(report, command=command, created=created)


def read(
    model: str | Path | Module,
    example_inputs: object = None,
    *,
    dynamic_shapes: object = None,
    shapes: Shapes | None = None,
    batch: int | None = None,
    shapes_from_run: str | Path | None = None,
) -> Graph:
    """Read a model file: ONNX, TensorFlow Lite, MLIR or .pt2, also packed; or a module of PyTorch with example inputs.

    Other verbs take the graph in its place. `example_inputs` are a tensor, several in order, or several by name;
    `dynamic_shapes` are those of torch.export.
    """
    from .readers import graph_of
    from .readers.torch import given_model

    given = given_model(model, example_inputs, dynamic_shapes)
    return graph_of(given, shapes=shapes, batch=batch, shapes_from_run=shapes_from_run)


def report(
    model: Model | Module,
    example_inputs: object = None,
    target: AnyTarget | ReportOptions | None = None,
    options: ReportOptions | None = None,
    *,
    dynamic_shapes: object = None,
    **named: object,
) -> Report:
    """Estimate memory, latency and energy of a model on a target, layer by layer.

    Call it as `report(file, target)` or as `report(module, example_inputs, target)`.

    Example:
        >>> report = opscope.report("model.onnx", "max32690-cm4")
        >>> report.totals.latency_s.value, report.memory.peak_bytes
    """
    from .estimate.build_report import report_model
    from .readers.torch import given_model

    inputs, place, asked = _in_place(example_inputs, target, options)
    if place is None:
        raise UsageError("report: no target; expected report(file, target), or report(module, example_inputs, target)")
    return report_model(given_model(model, inputs, dynamic_shapes), place, chosen(ReportOptions, asked, named))


def styled_report(
    model: Model, target: AnyTarget, style: str, options: ReportOptions | None = None, **named: object
) -> Report:
    """The report by the rules of a plug-in, such as a vendor's own counting."""
    from .workflows import reporting

    return reporting.styled_report(_file(model), target, style, chosen(ReportOptions, options, named))


def compile_model(
    model: Model,
    target: AnyTarget,
    output: str | Path | None = None,
    options: CompileOptions | None = None,
    *,
    phases: Path | None = None,
    **named: object,
) -> Compiled:
    """Compile a model for the simulated device.

    `output` is the folder for the program file; `phases` is a folder for one readable file per pass. Without them
    nothing is written.

    Example:
        >>> compiled = opscope.compile_model("model.onnx", "aic100-std", output="build", cores=2)
    """
    from .workflows import model_compiler

    choice = chosen(CompileOptions, options, named)
    return model_compiler.compile_model(_file(model), target, choice, output=_path(output), phases=phases)


def run(
    folder: str | Path,
    options: RunOptions | None = None,
    *,
    inputs: Mapping[str, str | Path | npt.NDArray[np.generic]] | None = None,
    progress: Progress | None = None,
    **named: object,
) -> RunOutcome:
    """Run a compiled program on the simulated device many times, with a host around it.

    `folder` is what `compile_model` wrote, or the program file itself. `inputs` are arrays or `.npy` files by name,
    one for every input; without them inputs are random.

    Example:
        >>> outcome = opscope.run("build", num_iter=100)
    """
    from .workflows import execution

    return execution.run_program(Path(folder), chosen(RunOptions, options, named), inputs=inputs, progress=progress)


def opstats(
    qpc: str | Path,
    input_dir: str | Path,
    output_dir: str | Path = ".",
    options: OpstatsOptions | None = None,
    *,
    command: Sequence[str] = (),
    created: str | None = None,
    progress: Progress | None = None,
    **named: object,
) -> OpstatsOutcome:
    """Decode raw stats buffers into summaries, timelines and a run.

    `qpc` is the program file that was run; `input_dir` is the folder with stats buffers, one per inference and device.

    Example:
        >>> opscope.opstats("build/programqpc.bin", "stats", "out", summary=True, run="profile.run")
    """
    from .workflows.decoding import decode_everything

    places = Path(qpc), Path(input_dir), Path(output_dir)
    choice, when = chosen(OpstatsOptions, options, named), _when(created)
    return decode_everything(*places, choice, command=tuple(command), created=when, progress=progress)


def profile(
    model: Model | Module,
    example_inputs: object = None,
    target: AnyTarget | None = None,
    *,
    dynamic_shapes: object = None,
    backend: str | None = None,
    options: ProfileOptions | Mapping[str, str | int | bool | None] | None = None,
    shapes: Shapes | None = None,
    advise: bool = False,
    run: str | Path | None = None,
    fresh: bool = False,
    command: Sequence[str] = (),
    created: str | None = None,
    step: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    **named: str | int | bool | None,
) -> Recorded:
    """Profile a model in one step, on the simulated device or on a real runtime.

    Call it as `profile(file, target)` or as `profile(module, example_inputs, target)`. `target` is any entry of the
    catalogue (`opscope targets`). Without `backend`, the best one that works here is used: a measurement, else the
    vendor's own model, else ours. `backend` is sim or estimate, which also take a graph as the model, or one that
    `backend_states` lists; without a target it uses its default hardware. `options` are ProfileOptions, or options of
    the backend by name, as {"cores": 2} or `cores=2`; `opscope profile --help` lists them. With `advise`, backends
    that can do so also try other options, so that findings cite what helps; findings of an ONNX model name the
    rewrites that `optimize` would try. `run` is the folder of the run to write; if it already has an up-to-date run,
    that run is used unless `fresh`. `step` is called with what is being done now.

    Example:
        >>> found = opscope.profile("model.onnx", "aic100-std", cores=2, run="model.run")
        >>> found.run.summary.latency.value_ns
    """
    from .changes.profile_model import profile_by
    from .readers.torch import given_model
    from .rewrites.editors import can_advise

    inputs, place, _ = _in_place(example_inputs, target, None)
    file = given_model(model, inputs, dynamic_shapes)
    names_rewrites = advise and isinstance(file, Path) and can_advise(file)
    if named:
        options = (
            chosen(ProfileOptions, options, named)
            if isinstance(options, ProfileOptions)
            else {**(options or {}), **{name.replace("_", "-"): value for name, value in named.items()}}
        )
    recorded = profile_by(
        backend,
        file,
        place,
        options or {},
        shapes=shapes,
        advise=advise,
        advise_if_able=names_rewrites,
        folder=_path(run),
        fresh=fresh,
        command=tuple(command),
        created=_when(created),
        step=step,
        progress=progress,
    )
    if not names_rewrites or not isinstance(file, Path):
        return recorded
    from .rewrites.advice import with_rewrites_named

    return with_rewrites_named(file, recorded, shapes)


def what_if_run(run: str | Path, changes: Sequence[str]) -> tuple[Run, Run]:
    """Simulate a run again, as it was and with changes such as "bandwidth*2", "cores=8" or "op:NAME=0".

    All changes are made together. Changes of bandwidth, clock and ops keep the program; the others compile the model
    again.

    Example:
        >>> before, after = opscope.what_if_run("model.run", ["bandwidth*2"])
    """
    from .changes.changes import what_if_run as time_again

    return time_again(Path(run), changes)


def what_if(
    model: str | Path,
    axes: Mapping[str, Sequence[str]],
    options: WhatIfOptions | None = None,
    *,
    backend: str | None = None,
    runs: str | Path | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
    progress: Progress | None = None,
    **named: object,
) -> WhatIf:
    """Profile an ONNX model with every combination of some options, several at once.

    `axes` are the values to try by option name, such as {"precision": ["as-is", "w8a8"]}. They run in `jobs`
    processes, by default one per core. `runs` is a folder for one run per combination.
    """
    from .workflows import profiling

    path, choice = Path(model), chosen(WhatIfOptions, options, named)
    result = profiling.what_if(path, axes, backend=backend, shapes=choice.shapes, jobs=choice.jobs, progress=progress)
    if runs is not None:
        when = _when(created)
        profiling.write_runs(
            result, Path(runs), command=command, created=when, sha256=sha256_of(path), write=write_bytes
        )
    return result


def calibrate(
    target: AnyTarget,
    measurements: Sequence[str | Path],
    *,
    models: str | Path | None = None,
    by_chip: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Calibrated:
    """Fit those figures of a target that have a range to measurements.

    Measurements are CSV files (columns model, latency_ms, also energy_uj, ram_bytes, …) and measured runs, which are
    used op by op. With `by_chip`, rows of several chips (column chip) are fitted together, each chip on the target of
    its name if the catalogue has one.
    """
    from .language_models import calibrated

    return calibrated.calibrate(target, measurements, models=_path(models), by_chip=by_chip, progress=progress)


def validate(
    target: AnyTarget,
    measurements: Sequence[str | Path],
    *,
    models: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> tuple[tuple[Prediction, ...], tuple[str, ...]]:
    """Compare predictions on a target with measurements.

    Predicts latencies, and energies and peaks of RAM if rows have them (`quantity` of a prediction). Returns the
    predictions, and why others could not be made.
    """
    from .language_models import calibrated

    return calibrated.validate(target, measurements, models=_path(models), progress=progress)


def quantize(
    model: str | Path,
    output: str | Path,
    options: QuantizeOptions | None = None,
    *,
    target: AnyTarget | None = None,
    backend: str | None = None,
    backend_options: Mapping[str, str | int | bool | None] | None = None,
    runs: str | Path | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
    step: Callable[[str], None] | None = None,
    **named: object,
) -> Quantized:
    """Write a quantised copy of an ONNX model; return its error against the float model, by output and by layer.

    With `target` or `backend` the copy is made for it, and model and copy are profiled there, in the folders `before`
    and `after` of `runs` if given; `backend_options` are the options of the backend.

    Example:
        >>> made = opscope.quantize("model.onnx", "model.w8a16.onnx", data="inputs.npz", precision="w8a16")
        >>> made.worst.difference.sqnr_db
    """
    from .changes.quantized_copy import Look, quantize_and_look

    look = Look(target, backend, backend_options or {}, _path(runs), command, _when(created))
    choice = chosen(QuantizeOptions, options, named)
    return quantize_and_look(Path(model), Path(output), choice, look, step=step)


def analyze(
    place: str | Path, *, target: AnyTarget | None = None, shapes: Shapes | None = None
) -> tuple[Run, Findings]:
    """Find what bounds a run and why, and what to change; `findings.json` is kept in its folder.

    `place` is the folder of a run, a profile file of another tool, or a model file, which is profiled first on
    `target`.

    Example:
        >>> run, findings = opscope.analyze("model.run")
        >>> findings.bound
    """
    from .readers import is_model
    from .workflows import analysing

    if target is None or not is_model(Path(place)):
        return analysing.analyze_place(Path(place), created=_when(None))
    recorded = profile(place, target, shapes=shapes)
    return recorded.run, recorded.findings


def check(run: str | Path) -> tuple[LawCheck, ...]:
    """Check the numbers of a run's folder against laws: each is held, violated, or not known."""
    from .workflows import analysing

    return analysing.check(Path(run))


def targets(search: str = "") -> tuple[CatalogueEntry, ...]:
    """The catalogue of everything that a model can be profiled on, with the backends that can do it here.

    `search` is a text whose words all occur in an entry's name, title or aliases.
    """
    from .workflows import catalogue

    return catalogue.search(catalogue.listed(), search)


def backend_states() -> tuple[BackendState, ...]:
    """Every backend that is known, and whether it works on this machine."""
    from .workflows import profiling

    return profiling.backend_states()


def import_profile(
    files: Sequence[str | Path],
    run: str | Path | None = None,
    *,
    form: str | None = None,
    provenance: Provenance | str | None = None,
    clock_hz: float | None = None,
    align: str | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
) -> Recorded:
    """Read profile files of other tools, or stats buffers with their program, into a run.

    All files are of the same execution. The format of each is detected by content, or is `form` if the content is not
    enough. `provenance` says how the times were obtained and `clock_hz` is the clock of the cycles, if the files do
    not tell. `align` says how a power log is aligned with the timeline or the run that is given with it: clock, marker
    or activity.
    """
    from .workflows.importing import import_files

    return import_files(
        [Path(file) for file in files],
        _path(run),
        form=form,
        provenance=provenance,
        clock_hz=clock_hz,
        align=align,
        command=tuple(command),
        created=_when(created),
    )


def compare(
    base: Source, new: Source, *, fail_on: Sequence[str] = (), allow: Collection[str] = (), seed: int = 0
) -> Comparison:
    """Compare two runs: what differs, which ops explain it, and whether every limit holds.

    A run is its folder, a baseline file, a Run in memory, or a cell of a store as "STORE:COMMIT". Limits are such as
    "latency>5%", "peak_memory>0" or "op:/layer.0/MatMul>100us". `allow` names differences to accept: target,
    provenance, model, batch. `seed` is that of the bootstrap, which judges measured samples.

    Example:
        >>> found = opscope.compare("perf/bert.json", "new.run", fail_on=["latency>5%"])
        >>> found.word, found.explanation.parts[0].name
    """
    from .workflows.comparing import compare as compare_sources

    one, other = _sides([base, new])
    return compare_sources(one, other, fail_on=fail_on, allow=allow, seed=seed)


def side_by_side(runs: Sequence[Source], *, by: str = "op") -> SideBySide:
    """Compare several runs, one column each, with ops matched to the first; by op, type, layer, block or engine."""
    from .workflows.comparing import side_by_side as put_side_by_side

    return put_side_by_side(_sides(runs), by=by)


def _sides(sources: Sequence[Source]) -> list[Source]:
    """Sources of a comparison, those that are in a store read; the others tell which cell of it is meant."""
    if not any(isinstance(source, str | Path) and ":" in str(source) for source in sources):
        return list(sources)
    from .fleet.sides import read_sides

    return read_sides(sources)


def _when(created: str | None) -> str:
    """The time a Run is stamped with: the one given, else now."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds") if created is None else created


def _path(place: str | Path | None) -> Path | None:
    return None if place is None else Path(place)


def _in_place(
    inputs: object, target: AnyTarget | ReportOptions | None, options: ReportOptions | None
) -> tuple[object, AnyTarget | None, ReportOptions | None]:
    """Arguments of a call without example inputs, whose target comes right behind the model, one place on."""
    from .machine.target import Target

    if isinstance(inputs, str | Path | Target):
        if target is not None and not isinstance(target, ReportOptions):
            raise UsageError(f"target {inputs}: given twice; expected example inputs of a module before the target")
        return None, inputs, target or options
    return (inputs, None, target) if isinstance(target, ReportOptions) else (inputs, target, options)


def _file(model: Model) -> Path | Graph:
    return Path(model) if isinstance(model, str) else model
