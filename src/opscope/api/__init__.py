"""One function per user verb: the only place that wires stages together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import targets
from ..errors import UsageError
from ..estimate.build_report import build_report
from ..estimate.price import Machine
from ..graph import DType, Graph
from ..readers import read_model
from ..report import Report
from ..target import Target
from .files import PROGRAM_FILE, write_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..backends import BackendState
    from ..compatibility import Compatibility
    from ..compiler.plan import Plan
    from ..compiler.warn import PerformanceWarning
    from ..imported import Imported
    from ..profiled import Profiled, WhatIf
    from ..program import Program
    from .decoding import OpstatsOutcome
    from .execution import RunOutcome

_CHUNK_BYTES = 1 << 20


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
    from ..estimate.flat import flat_report as count_flat

    path = Path(model)
    machine = use_machine(target, cores=cores, devices=devices)
    graph = read_model(path, shapes=shapes, batch=batch)
    flat = count_flat(graph, machine, sha256=sha256_of(path) if fingerprint else None)
    return flat if advise else replace(flat, suggestions=(), heavy_memory=(), heavy_macs=())


def compatibility(model: str | Path, target: str | Path | Target) -> tuple[Graph, Compatibility]:
    """What of a model a target cannot take, with the graph it was found in."""
    from ..estimate.compatible import check_compatibility

    graph = read_model(Path(model))
    return graph, check_compatibility(graph, use_machine(target))


def read(model: str | Path, *, shapes: Mapping[str, tuple[int, ...]] | None = None, batch: int | None = None) -> Graph:
    """Read a model file."""
    return read_model(Path(model), shapes=shapes, batch=batch)


def use_machine(target: str | Path | Target, *, cores: int | None = None, devices: int = 1) -> Machine:
    """So many cores and devices of a target."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    have_cores, have_devices = round(chosen.topology.cores.value), round(chosen.topology.devices.value)
    for word, asked, have in (("cores", cores, have_cores), ("devices", devices, have_devices)):
        if asked is not None and not 1 <= asked <= have:
            raise UsageError(f"--{word} {asked}: {chosen.name} has {have}; expected 1 to {have}")
    return Machine(chosen, devices=devices, cores=have_cores if cores is None else cores)


def sha256_of(path: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program with what the compiler has to say about it."""

    program: Program
    warnings: tuple[PerformanceWarning, ...]

    def forecast(self) -> tuple[list[float], list[float]]:
        """Estimated start and end of every command, in core cycles."""
        from ..compiler.forecast import forecast

        start, end = forecast(self.program)
        return start.tolist(), end.tolist()


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
    from ..compiler import compile_graph
    from ..compiler.phases import phase_text
    from ..compiler.plan import CompileOptions
    from ..compiler.stats_options import stats_options
    from ..compiler.warn import performance_warnings
    from ..program_file import encode_program

    machine = use_machine(with_precision(target, precision), cores=cores, devices=devices)
    graph = read_model(Path(model), shapes=shapes, batch=batch)
    lead = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    options = CompileOptions(
        stats=stats_options(
            machine.target, level=stats_level, ddr=ddr_stats, recipe=pmu_recipe, events=pmu_events,
            batch_size=stats_batchsize or (lead[0] if lead else 1),
        ),
        parallel=parallel,
        network=network or machine.target.runtime.network,
    )  # fmt: skip
    plans: list[Plan] = []

    def after_pass(name: str, plan: Plan) -> None:
        plans.append(plan)
        if phases is not None:
            write_bytes(phases / f"{len(plans)}.{name}.txt", phase_text(name, plan).encode())

    program = compile_graph(graph, machine, options, after_pass=after_pass)
    if output is not None:
        folder = Path(output)
        located = replace(program, model=os.path.relpath(Path(model).resolve(), folder.resolve()))
        write_bytes(folder / PROGRAM_FILE, encode_program(located))
        program = located
    return Compiled(program, tuple(performance_warnings(plans[-1], program)))


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
    from ..runtime.options import RunOptions
    from . import execution

    options = RunOptions(num_iter, time, activations, set_size, threads, num_samples, start_iter, start_delay, seed)
    loaded = execution.load_program(Path(folder))
    execution.check_output_folder(Path(out_dir))
    execution.check_profiles(loaded.program, profile)
    arrays = execution.inputs_of(loaded, inputs)
    outputs = execution.outputs_of(loaded, arrays, seed=seed) if save_outputs else None
    return execution.execute(
        loaded, options, profiles=profile, folder=Path(out_dir), outputs=outputs, progress=progress
    )


def with_precision(target: str | Path | Target, precision: str | None) -> Target:
    """The target, running float tensors as another type."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    if precision is None:
        return chosen
    known = {dtype.label for dtype in DType if dtype.bits}
    if precision not in known:
        raise UsageError(f"precision {precision!r}: not known; expected one of {', '.join(sorted(known))}")
    floats = [dtype.label for dtype in DType if dtype.is_float and dtype.bits]
    return replace(chosen, precision={label: precision for label in floats if label != precision})


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
    from .decoding import OpstatsOptions, decode_everything

    options = OpstatsOptions(
        summary, trace, trace_format, None if host_trace is None else Path(host_trace),
        None if cores is None else tuple(cores), None if devices is None else tuple(devices), merge_devices,
        merge_thread_groups, flows, barriers,
    )  # fmt: skip
    when = _when(created)
    return decode_everything(
        Path(qpc), Path(input_dir), Path(output_dir), options, run=None if run is None else Path(run), workers=workers,
        command=tuple(command), created=when, progress=progress,
    )  # fmt: skip


def profile(
    model: str | Path,
    *,
    backend: str = "htp",
    options: Mapping[str, str | int | bool | None] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    advise: bool = False,
    run: str | Path | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Profiled:
    """Profile a model on a real runtime.

    Args:
        model: path of an ONNX file.
        backend: name of the backend; `backend_states` lists them.
        options: the backend's own options by name, such as {"soc": "SM8650", "vtcm-mb": 4}.
        shapes: graph input name → shape, for dimensions the model leaves open.
        advise: try other choices too, so that bottlenecks cite what helps.
        run: folder to leave a run in.
        command: the command line, for the run.
        created: time of the run, ISO 8601; now when not given.
        progress: called with how many what-if points are done, and of how many.
    """
    from . import profiling

    path = Path(model)
    result = profiling.profile(
        path, backend=backend, options=options or {}, shapes=shapes, advise=advise, progress=progress
    )
    if run is not None:
        when = _when(created)
        profiling.write_run(result, Path(run), command=command, created=when, sha256=sha256_of(path))
    return result


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
    from . import profiling

    path = Path(model)
    result = profiling.what_if(path, axes, backend=backend, shapes=shapes, jobs=jobs, progress=progress)
    if runs is not None:
        when = _when(created)
        profiling.write_runs(
            result, Path(runs), command=command, created=when, sha256=sha256_of(path), write=write_bytes
        )
    return result


def backend_states() -> tuple[BackendState, ...]:
    """Every backend that is known, and whether it works on this machine."""
    from . import profiling

    return profiling.backend_states()


def import_profile(
    files: Sequence[str | Path],
    run: str | Path | None = None,
    *,
    form: str | None = None,
    command: Sequence[str] = (),
    created: str | None = None,
) -> Imported:
    """Read profile files of other tools, or stats buffers with their program, and leave a run.

    Args:
        files: about the same run: together they make one. The format of each is found by content.
        run: folder to leave a run in; None writes nothing.
        form: name of the format, where the content does not tell.
        command: the command line, for the run.
        created: time of the run, ISO 8601; now when not given.
    """
    from ..importers import as_run, combine, imported_file, read_profile, reading
    from ..wire import PROGRAM_MAGIC, STATS_MAGIC

    paths = [Path(file) for file in files]
    when = _when(created)
    kinds = {path: reading.head_of(path)[:8] for path in paths}
    if {PROGRAM_MAGIC, STATS_MAGIC} & set(kinds.values()):
        return _import_captures(kinds, run, command=command, created=when)
    imported = combine.combine([read_profile(path, form=form) for path in paths])
    if run is not None:
        from ..views.run_folder import RunFolder, write_part

        whole, program = as_run.as_run(imported, command=command, created=when)
        folder = RunFolder(Path(run))
        try:
            write_part(whole.trace, folder.part(0))
            folder.keep(imported_file.FILE, imported_file.encode_imported(imported))
            folder.finish(whole.info, program, whole.summary, [(folder.part(0), 0)])
        finally:
            folder.discard()
    return imported


def _import_captures(
    kinds: Mapping[Path, bytes], run: str | Path | None, *, command: Sequence[str], created: str
) -> Imported:
    """Stats buffers of our own, decoded with the program that left them."""
    from tempfile import TemporaryDirectory

    from ..importers.as_run import from_run
    from ..importers.run_folder import read_run
    from ..wire import PROGRAM_MAGIC, STATS_MAGIC

    programs = [path for path, kind in kinds.items() if kind == PROGRAM_MAGIC]
    captures = [path for path, kind in kinds.items() if kind == STATS_MAGIC]
    if len(programs) != 1 or not captures or len(kinds) > 1 + len(captures):
        words = f"{len(programs)} programs, {len(captures)} stats buffers, {len(kinds)} files in all"
        raise UsageError(f"{words}; expected one {PROGRAM_FILE} with the stats buffers of its runs, and nothing else")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch, "in")
        folder.mkdir()
        for capture in captures:
            (folder / capture.name).symlink_to(capture.resolve())
        leave = Path(scratch, "run") if run is None else Path(run)
        opstats(programs[0], folder, Path(scratch, "out"), run=leave, command=command, created=created)
        return from_run(read_run(leave), source=", ".join(map(str, kinds)))
