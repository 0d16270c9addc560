"""One function per user verb: the only place that wires stages together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .core.errors import UsageError
from .core.files import sha256_of, write_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .backends.registry import BackendState
    from .changes.what_if import WhatIf
    from .core.provenance import Provenance
    from .estimate.compatibility import Compatibility
    from .estimate.report import Report
    from .gate.comparison import Comparison, SideBySide
    from .gate.figures import Figures
    from .graph.graph import Graph
    from .machine.target import Target
    from .recording.finding import Findings, LawCheck
    from .recording.run import Run
    from .workflows.comparing import Source, Updated
    from .workflows.compiling import Compiled
    from .workflows.decoding import OpstatsOutcome
    from .workflows.execution import RunOutcome
    from .workflows.record import Recorded


def report(
    model: str | Path,
    target: str | Path | Target,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    cores: int | None = None,
    devices: int = 1,
    advise: bool = True,
    fingerprint: bool = True,
) -> Report:
    """Estimate what a model takes on a target.

    Args:
        model: path of an ONNX or TensorFlow Lite file.
        target: name from the catalogue, path of a target TOML file, or a Target.
        shapes: graph input name → shape, for dimensions the model leaves open.
        batch: leading dimension of every input.
        cores: cores to use per device; all of them when not given.
        devices: devices to use.
        advise: try changes to the graph and suggest those that help.
        fingerprint: put the SHA-256 of the model file into the report, which means reading all of it.
    """
    from .estimate.build_report import build_report
    from .estimate.machines import use_machine
    from .readers import read_model

    path = Path(model)
    machine = use_machine(target, cores=cores, devices=devices)
    graph = read_model(path, shapes=shapes, batch=batch)
    return build_report(graph, machine, sha256=sha256_of(path) if fingerprint else None, advise=advise)


def flat_report(
    model: str | Path,
    target: str | Path | Target,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    cores: int | None = None,
    devices: int = 1,
    advise: bool = True,
    fingerprint: bool = True,
) -> Report:
    """The report by flat counting: every operation priced like a MAC. Arguments as for `report`."""
    from .estimate.machines import use_machine
    from .plugins.cfs.flat import flat_report as count_flat
    from .readers import read_model

    path = Path(model)
    machine = use_machine(target, cores=cores, devices=devices)
    graph = read_model(path, shapes=shapes, batch=batch)
    flat = count_flat(graph, machine, sha256=sha256_of(path) if fingerprint else None)
    return flat if advise else replace(flat, suggestions=(), heavy_memory=(), heavy_macs=())


def compatibility(model: str | Path, target: str | Path | Target) -> tuple[Graph, Compatibility]:
    """What of a model a target cannot take, with the graph it was found in."""
    from .estimate.compatible import check_compatibility
    from .estimate.machines import use_machine
    from .readers import read_model

    graph = read_model(Path(model))
    return graph, check_compatibility(graph, use_machine(target))


def read(model: str | Path, *, shapes: Mapping[str, tuple[int, ...]] | None = None, batch: int | None = None) -> Graph:
    """Read a model file."""
    from .readers import read_model

    return read_model(Path(model), shapes=shapes, batch=batch)


def compile_model(
    model: str | Path,
    target: str | Path | Target,
    output: str | Path | None = None,
    *,
    cores: int | None = None,
    devices: int = 1,
    batch: int | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    precision: str | None = None,
    stats_level: int = 40,
    ddr_stats: bool = False,
    pmu_recipe: str | None = None,
    pmu_events: str | None = None,
    stats_batchsize: int | None = None,
    parallel: str = "tensor",
    network: str | None = None,
    phases: Path | None = None,
) -> Compiled:
    """Compile a model for the simulated device.

    Args:
        model: path of an ONNX or TensorFlow Lite file.
        target: name from the catalogue, path of a target TOML file, or a Target.
        output: folder that gets `programqpc.bin`; None writes nothing.
        cores: cores to use per device; all of them when not given.
        devices: devices to use.
        batch: leading dimension of every input.
        shapes: graph input name → shape, for dimensions the model leaves open.
        precision: data type that float tensors run as; None: as the target says.
        stats_level: 0, 40, 50, 70 or 100.
        ddr_stats: count DDR traffic per core.
        pmu_recipe: name of a set of PMU events.
        pmu_events: comma list of PMU event numbers, hexadecimal.
        stats_batchsize: inferences in one batch; the model's batch when not given.
        parallel: how devices share the work: tensor or pipeline.
        network: name of the network in file names and traces; the target's own when not given.
        phases: folder that gets one readable file per pass.
    """
    from .estimate.machines import with_precision
    from .workflows.compiling import Request, compile_request

    request = Request(
        Path(model),
        with_precision(target, precision),
        cores,
        devices,
        batch,
        shapes,
        stats_level,
        ddr_stats,
        pmu_recipe,
        pmu_events,
        stats_batchsize,
        parallel,
        network,
    )
    return compile_request(request, None if output is None else Path(output), phases)


def run(
    folder: str | Path,
    *,
    inputs: Mapping[str, str | Path | npt.NDArray[np.generic]] | None = None,
    num_iter: int | None = None,
    time: float | None = None,
    activations: int = 1,
    set_size: int = 10,
    threads: int = 4,
    profile: Sequence[str] = (),
    out_dir: str | Path = ".",
    num_samples: int = 1,
    start_iter: int = 0,
    start_delay: float = 0.0,
    seed: int = 0,
    save_outputs: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> RunOutcome:
    """Run a compiled program on the simulated device, many times, with a host around it.

    Args:
        folder: what `compile_model` wrote, or the program file itself.
        inputs: name → array or `.npy` file, for every input; random ones when not given.
        num_iter: inferences per activation; 40 when neither this nor `time` is given.
        time: seconds of simulated time, after which nothing is enqueued any more.
        activations: instances of the program on the device.
        set_size: inferences of an activation that are on their way at once.
        threads: of the runtime, per activation, that prepare inputs and outputs.
        profile: what to write: stats, trace, latency, raw_device_stats.
        out_dir: folder for the files; it must be there.
        num_samples: inferences of each activation to profile.
        start_iter: inference to start profiling at.
        start_delay: milliseconds of simulated time before profiling starts.
        seed: chooses everything that varies; the same seed gives the same bytes.
        save_outputs: run the original model and write its outputs as `.npy`.
        progress: called with how much is done, and of how much.
    """
    from .device.host.options import RunOptions
    from .workflows import execution

    options = RunOptions(num_iter, time, activations, set_size, threads, num_samples, start_iter, start_delay, seed)
    loaded = execution.load_program(Path(folder))
    execution.check_output_folder(Path(out_dir))
    execution.check_profiles(loaded.program, profile)
    arrays = execution.inputs_of(loaded, inputs)
    outputs = execution.outputs_of(loaded, arrays, seed=seed) if save_outputs else None
    return execution.execute(
        loaded, options, profiles=profile, folder=Path(out_dir), outputs=outputs, progress=progress
    )


def _when(created: str | None) -> str:
    """The time a Run is stamped with: the one given, else now."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds") if created is None else created


def opstats(
    qpc: str | Path,
    input_dir: str | Path,
    output_dir: str | Path = ".",
    *,
    summary: bool = False,
    trace: bool = False,
    trace_format: str = "json",
    host_trace: str | Path | None = None,
    cores: Sequence[int] | None = None,
    devices: Sequence[int] | None = None,
    merge_devices: bool = True,
    merge_thread_groups: bool = True,
    flows: bool = False,
    barriers: bool = False,
    run: str | Path | None = None,
    workers: int = 1,
    command: Sequence[str] = (),
    created: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> OpstatsOutcome:
    """Decode raw stats buffers into summaries, timelines and a run.

    Args:
        qpc: the program file that ran.
        input_dir: folder with stats buffers, one per inference and device.
        output_dir: folder for summaries and traces; made where it is not there.
        summary: write a text per buffer.
        trace: write a timeline per sample.
        trace_format: json (Chrome) or perfetto (protocol buffers).
        host_trace: Chrome JSON of host events to show above the device.
        cores: cores to show in the trace; all when not given.
        devices: devices to show in the trace; all when not given.
        merge_devices: all devices of a sample in one trace.
        merge_thread_groups: one row per thread group instead of one per thread.
        flows: show dependencies as arrows.
        barriers: show a row of barriers for every thread.
        run: folder to leave a run in.
        workers: processes to decode in; a script that asks for more than one needs the usual `__main__` guard.
        command: the command line, for the run.
        created: time of the run, ISO 8601; now when not given.
        progress: called with how many samples are done, and of how many.
    """
    from .workflows.decoding import OpstatsOptions, decode_everything

    options = OpstatsOptions(
        summary,
        trace,
        trace_format,
        None if host_trace is None else Path(host_trace),
        None if cores is None else tuple(cores),
        None if devices is None else tuple(devices),
        merge_devices,
        merge_thread_groups,
        flows,
        barriers,
    )
    when = _when(created)
    return decode_everything(
        Path(qpc),
        Path(input_dir),
        Path(output_dir),
        options,
        run=None if run is None else Path(run),
        workers=workers,
        command=tuple(command),
        created=when,
        progress=progress,
    )


def profile(
    model: str | Path,
    target: str | Path | Target | None = None,
    *,
    backend: str | None = None,
    options: Mapping[str, str | int | bool | None] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    advise: bool = False,
    run: str | Path | None = None,
    fresh: bool = False,
    command: Sequence[str] = (),
    created: str | None = None,
    step: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recorded:
    """Profile a model in one step: on the simulated device, or on a real runtime.

    Args:
        model: path of the model file.
        target: name from the catalogue, path of a target TOML file, or a Target; for the backends sim and estimate.
        backend: sim, estimate, or one that `backend_states` lists; when not given, sim where the target can be
            simulated, else estimate.
        options: the backend's own options by name, such as {"cores": 2} or {"soc": "SM8650", "vtcm-mb": 4}.
        shapes: graph input name → shape, for dimensions the model leaves open.
        advise: try other choices too, so that findings cite what helps; for backends that can.
        run: folder to leave a run in; a run that is there already and still true is re-used.
        fresh: re-use nothing.
        command: the command line, for the run.
        created: time of the run, ISO 8601; now when not given.
        step: told what is being done now.
        progress: called with how many what-if points are done, and of how many.
    """
    from .workflows import choices, profiling
    from .workflows.record import analysed

    path, folder, when = Path(model), None if run is None else Path(run), _when(created)
    if backend is not None and backend not in choices.OWN:
        if target is not None:
            raise UsageError(f"--target: backend {backend} has its own choice of hardware; expected none")
        result = profiling.profile(
            path, backend=backend, options=options or {}, shapes=shapes, advise=advise, progress=progress
        )
        return analysed(result, folder, command=command, created=when, sha256=sha256_of(path))
    from .workflows import one_step

    chosen, file = choices.load_target(target)
    request = one_step.Request(
        path, chosen, choices.choices_from(options or {}, shapes), folder, tuple(command), when, file, fresh
    )
    simulated = (backend or choices.own_backend(chosen)) == choices.SIMULATE
    make = one_step.simulate_model if simulated else one_step.estimate_model
    return make(request, step=step or (lambda _: None))


def what_if_run(run: str | Path, changes: Sequence[str]) -> tuple[Run, Run]:
    """A simulated run timed again as it was, and with changes made such as "bandwidth*2", "cores=8", "op:NAME=0".

    Args:
        run: folder of a run that was made on the simulated device.
        changes: all made at once. Bandwidth, clock and ops keep the program; the others compile the model again.
    """
    from .changes.changes import what_if_run as time_again

    return time_again(Path(run), changes)


def what_if(
    model: str | Path,
    axes: Mapping[str, Sequence[str]],
    *,
    backend: str = "htp",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    jobs: int | None = None,
    runs: str | Path | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> WhatIf:
    """Profile a model with every combination of some options, several at once.

    Args:
        model: path of an ONNX file.
        axes: option name → values to try, such as {"soc": ["SA8255"], "vtcm-mb": ["2", "4", "8"]}.
        backend: name of the backend.
        shapes: graph input name → shape, for dimensions the model leaves open.
        jobs: processes at once; as many as cores when not given.
        runs: folder to leave a run per point in.
        command: the command line, for the runs.
        created: time of the runs, ISO 8601; now when not given.
        progress: called with how many points are done, and of how many.
    """
    from .workflows import profiling

    path = Path(model)
    result = profiling.what_if(path, axes, backend=backend, shapes=shapes, jobs=jobs, progress=progress)
    if runs is not None:
        when = _when(created)
        profiling.write_runs(
            result, Path(runs), command=command, created=when, sha256=sha256_of(path), write=write_bytes
        )
    return result


def analyze(
    place: str | Path, *, target: str | Path | Target | None = None, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> tuple[Run, Findings]:
    """What a run is bound by, why, and what to do about it; `findings.json` is kept in its folder.

    Args:
        place: folder of a run; or a profile file of another tool; or a model file, which is profiled first.
        target: for a model: name from the catalogue, path of a target TOML file, or a Target.
        shapes: for a model: graph input name → shape, for dimensions the model leaves open.
    """
    from .workflows import analysing

    path = Path(place)
    if path.is_dir():
        return analysing.analyze(path)
    if not path.exists():
        raise UsageError(f"{path}: is not there; expected a run, a profile file, or a model file with --target")
    if target is None:
        from .importers.formats import is_profile

        if not is_profile(path):
            raise UsageError(f"{path}: is no run and no profile file; a model is profiled first, expected --target")
        return analysing.analyze_file(path, created=_when(None))
    recorded = profile(path, target, shapes=shapes)
    return recorded.run, recorded.findings


def check(run: str | Path) -> tuple[LawCheck, ...]:
    """Conservation laws on the numbers of a run: held, violated, or not knowable.

    Args:
        run: folder of a run.
    """
    from .workflows import analysing

    return analysing.check(Path(run))


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
    command: Sequence[str] = (),
    created: str | None = None,
) -> Recorded:
    """Read profile files of other tools, or stats buffers with their program, and leave a run.

    Args:
        files: about the same run: together they make one. The format of each is found by content.
        run: folder to leave a run in; None writes nothing.
        form: name of the format, where the content does not tell.
        provenance: how the times were obtained, where the files cannot say.
        command: the command line, for the run.
        created: time of the run, ISO 8601; now when not given.
    """
    from .core.provenance import Provenance
    from .workflows.importing import import_files

    if provenance is not None and provenance not in list(Provenance):
        raise UsageError(f"provenance {provenance!r}: not known; expected one of {', '.join(Provenance)}")
    return import_files(
        [Path(file) for file in files],
        None if run is None else Path(run),
        form=form,
        provenance=None if provenance is None else Provenance(provenance),
        command=tuple(command),
        created=_when(created),
    )


def compare(
    base: Source, new: Source, *, fail_on: Sequence[str] = (), allow: Collection[str] = (), seed: int = 0
) -> Comparison:
    """What differs between two runs, what explains it, and whether every limit holds.

    Args:
        base: folder of a run, a baseline file, or a Run in memory.
        new: the same.
        fail_on: limits such as "latency>5%", "peak_memory>0" or "op:/layer.0/MatMul>100us".
        allow: differences to insist on, of target, provenance, model and batch.
        seed: of the bootstrap that judges measured samples.
    """
    from .workflows.comparing import compare as compare_sources

    return compare_sources(base, new, fail_on=fail_on, allow=allow, seed=seed)


def side_by_side(runs: Sequence[Source], *, by: str = "op") -> SideBySide:
    """Two and more runs, one column each, ops matched to those of the first.

    Args:
        runs: folders, baseline files or Runs in memory.
        by: op, type, layer, block or engine.
    """
    from .workflows.comparing import side_by_side as put_side_by_side

    return put_side_by_side(runs, by=by)


def save_baseline(run: Source, file: str | Path) -> Figures:
    """Write the numbers of a run to a new file that is small enough for a repository."""
    from .workflows.comparing import save_baseline as save

    return save(run, Path(file))


def update_baseline(run: Source, file: str | Path) -> Updated:
    """Replace a baseline file by the numbers of a run; returns what that changes."""
    from .workflows.comparing import update_baseline as update

    return update(run, Path(file))
