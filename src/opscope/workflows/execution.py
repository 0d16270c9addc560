"""`opscope run` behind `api.run`: wires the device, the runtime, the decoder and the views of a run's files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from ..core.errors import UsageError, printable
from ..core.files import PROGRAM_FILE, write_whole
from ..core.provenance import Provenance
from ..device import Inference, collect, simulate
from ..device.host.inputs import Array
from ..device.host.limits import check_duration, check_limits
from ..device.host.pace import Pace
from ..device.host.pipeline import Pipeline, Progress
from ..device.host.sampling import Sampling, choose_samples
from ..device.host.sharing import beside_others, load_ns, slots_of
from ..device.host.stage_times import StageSource
from ..device.host.statistics import counted, run_statistics
from ..options import RunOptions
from ..program.bounds import check_capacity
from ..program.capture import Capture, encode_capture
from ..program.file_names import latency_name, network_name, output_names, raw_name, stats_name, trace_name
from ..program.program import OP_LEVEL, PORT_LEVEL, THREAD_LEVEL, Program
from ..program.program_file import decode_program, encode_program, program_id
from ..recording.host_times import HostTimes, Rows, RunStatistics
from ..recording.unknown import unknown_of

if TYPE_CHECKING:
    from ..analysis.totals.work import ProgramIndex
    from ..decode import LaneIndex
    from ..device.host.outputs import Output
    from ..device.host.reference import Reference
    from ..recording.trace import Trace

Render = Callable[[BinaryIO], object]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program with the id of its file, and the model it was compiled from."""

    program: Program
    identity: int
    model: Path


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of a run: its statistics, and the files that it wrote."""

    program: Program
    times: HostTimes
    sampling: Sampling
    statistics: RunStatistics
    outputs: Mapping[str, Output] | None
    written: tuple[Path, ...]
    notes: tuple[str, ...]
    interrupted: bool


def load_program(place: Path) -> Loaded:
    """The program in a folder, or in the file itself."""
    file = place / PROGRAM_FILE if place.is_dir() else place
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file}: cannot be read ({error.strerror}); expected the folder that `opscope compile` wrote"
        ) from error
    program = decode_program(raw, source=str(file))
    check_limits(program, source=str(file))
    check_capacity(program.bounds, target=f"{file}: {printable(program.target)}")
    return Loaded(program, program_id(raw), file.parent / program.model)


def loaded_from(program: Program, model: Path) -> Loaded:
    """A program that is in no file."""
    return Loaded(program, program_id(encode_program(program)), model)


def _check_output_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; expected one that is there and can be written to")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{folder}: cannot be written to; expected a writable folder")


def _put(data: bytes, out: BinaryIO) -> None:
    out.write(data)


def _put_array(array: Array, out: BinaryIO) -> None:
    np.save(out, array, allow_pickle=False)


def _put_arrays(arrays: Mapping[str, Array], out: BinaryIO) -> None:
    np.savez(out, **arrays)  # type: ignore[arg-type]  # strings are text here, so nothing is pickled


def _check_profiles(program: Program, profiles: Sequence[str]) -> None:
    if "raw_device_stats" in profiles and program.stats.level < THREAD_LEVEL:
        raise UsageError(
            f"profile raw_device_stats: the program was compiled with stats level {program.stats.level} and leaves no "
            f"stats buffer; expected {THREAD_LEVEL} or more: compile with --stats-level 70"
        )


def _inputs_of(loaded: Loaded, given: Mapping[str, str | Path | Array] | None) -> dict[str, Array] | None:
    """The given inputs, checked; None where none are given."""
    from ..device.host.inputs import check_inputs, load_inputs

    if not given:
        return None
    files = {name: Path(value) for name, value in given.items() if isinstance(value, str | Path)}
    arrays = {name: value for name, value in given.items() if not isinstance(value, str | Path)}
    return check_inputs(loaded.program, {**arrays, **load_inputs(files)})


def _outputs_of(loaded: Loaded, inputs: Mapping[str, Array] | None, *, seed: int) -> dict[str, Output]:
    """What the original model makes of the inputs, or of random ones."""
    from ..device.host.inputs import random_inputs

    return reference_of(loaded).run(random_inputs(loaded.program, seed=seed) if inputs is None else inputs)


def reference_of(loaded: Loaded) -> Reference:
    """The original model, ready to run."""
    from ..device.host.reference import open_reference
    from ..readers import unpacked

    names = [[name for name, _, _ in ports] for ports in (loaded.program.inputs, loaded.program.outputs)]
    with unpacked(loaded.model) as file:  # runtimes have loaded or mapped it when they are opened
        return open_reference(file, inputs=names[0], outputs=names[1])


@dataclass(frozen=True, slots=True)
class Sample:
    """One profiled inference: when it ran, and what it left on each device."""

    row: Rows  # the one inference
    captures: tuple[Capture, ...]  # per device


class Execution:
    """A program on its simulated device: times of every inference, and captures of those that are asked for."""

    def __init__(self, loaded: Loaded, options: RunOptions, *, device_cores: int | None) -> None:
        """`device_cores` is what a device of the target has; None: unknown, so activations take turns."""
        program = loaded.program
        self.loaded, self.options = loaded, options
        self.slots = 1 if device_cores is None else slots_of(program, device_cores)
        steady = simulate(program, seed=options.seed)
        others = min(options.activations, self.slots) - 1
        self.program = beside_others(program, steady.total_cycles, others)
        if others:
            steady = simulate(self.program, seed=options.seed)
        self.pace = Pace(self.program, steady.total_cycles, seed=options.seed)
        check_duration(steady.total_cycles / program.clock_hz, source=printable(program.name))

    def times(self, progress: Progress | None = None) -> HostTimes:
        return Pipeline(
            self.program,
            self.options,
            exec_ticks=self.exec_ticks,
            slots=self.slots,
            load_ns=load_ns(self.program),
            progress=progress,
        ).run()

    def exec_ticks(self, activation: int, inference: int) -> int:
        return self.pace.ticks(_number(activation, inference))

    def lone_latency_ns(self, inference: int) -> int:
        """What the application sees of an inference that has host and device to itself."""
        return self.stages.lone_ns(inference) + round(self.exec_ticks(0, inference) * 1e9 / self.program.stats_hz)

    @cached_property
    def stages(self) -> StageSource:
        return StageSource(self.program, seed=self.options.seed, activation=0)

    def capture(self, row: Rows) -> Sample:
        """One inference in full, on every device."""
        activation, inference = int(row["activation"][0]), int(row["inference"][0])
        clocked, timeline = self.pace.timeline(_number(activation, inference))
        tick = round(int(row["started_ns"][0]) * clocked.stats_hz / 1e9)
        waits = int(row["input_wait_ticks"][0]), int(row["output_wait_ticks"][0])
        ran = Inference(self.loaded.identity, activation, inference, tick, *waits)
        return Sample(row, tuple(collect(clocked, timeline, ran, device=device) for device in range(clocked.devices)))

    @cached_property
    def lane_index(self) -> LaneIndex:
        from ..decode import LaneIndex

        return LaneIndex.of(self.loaded.program)

    @cached_property
    def program_index(self) -> ProgramIndex:
        from ..analysis.totals.work import ProgramIndex

        return ProgramIndex.of(self.loaded.program)

    def device_traces(self, sample: Sample, *, barriers: bool = False) -> Iterator[tuple[Capture, Trace]]:
        """What each device did in one inference, on the run's own time axis, through the bytes of its buffer."""
        from ..decode import check_buffer, decode_buffer, decode_trace

        program = self.loaded.program
        for capture in sample.captures:
            buffer = decode_buffer(encode_capture(capture), source=network_name(program, capture.device))
            check_buffer(buffer, program, program_id=self.loaded.identity)
            trace = decode_trace(
                program, buffer, self.lane_index, origin=0, provenance=Provenance.SIMULATED, barriers=barriers
            )
            yield buffer.capture, trace

    def trace(self, sample: Sample) -> Trace:
        """All devices of one inference, with counters where operators are recorded."""
        from ..analysis.totals.summarise import timeline
        from ..decode import merge_traces

        merged = merge_traces([trace for _, trace in self.device_traces(sample)])
        return timeline(merged, self.program_index) if self.program.stats.level >= OP_LEVEL else merged


def _number(activation: int, inference: int) -> int:
    return activation << 32 | inference


@dataclass(slots=True)
class ProfileWriter:
    """Writes the files of profiled inferences, each as soon as it is done."""

    execution: Execution
    times: HostTimes
    sampling: Sampling
    profiles: Sequence[str]
    folder: Path
    progress: Progress | None = None
    written: list[Path] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)  # what each counted
    interrupted: bool = False

    def run(self) -> None:
        for activation, rows in enumerate(self.sampling.rows):
            traces: list[Trace] = []
            done = 0
            try:
                for row in rows.reshape(-1, 1):
                    self._sample(row, traces)
                    done += 1
            except KeyboardInterrupt:
                self.interrupted = True
            if done:
                self._activation(activation, rows[:done], traces)
            if self.interrupted:
                return

    def _sample(self, row: Rows, traces: list[Trace]) -> None:
        """Write the files of one profiled inference, and keep its traces."""
        if not {"stats", "trace", "raw_device_stats"} & set(self.profiles):
            return
        if not self._instrumented:  # the device leaves nothing: the host's side is all there is
            if "stats" in self.profiles:
                self._stats(Sample(row, ()))
            return
        sample = self.execution.capture(row)
        if "raw_device_stats" in self.profiles:
            self._raw(sample)
        if "stats" in self.profiles:
            self._stats(sample)
        if "trace" in self.profiles:
            traces.append(self.execution.trace(sample))
        self.samples.append(counted(self.execution.program, sample.captures))
        if self.progress is not None and self.sampling.count > 1:
            self.progress(len(self.samples), self.sampling.count)

    @property
    def _instrumented(self) -> bool:
        return self.execution.program.stats.level >= THREAD_LEVEL

    def _raw(self, sample: Sample) -> None:
        for capture in sample.captures:
            name = raw_name(self.execution.program, capture.activation, capture.inference, capture.device)
            self.save(name, partial(_put, encode_capture(capture)))

    def _stats(self, sample: Sample) -> None:
        from ..views.text.run_stdout import HostStages

        out = StringIO()
        HostStages().render(self.times, sample.row, out)
        self._summaries(sample, out)
        if not sample.captures:
            out.write("\nNo device statistics: compile with --stats-level 40 or more (70: every operator).\n")
        row = sample.row
        self.save(
            stats_name(int(row["activation"][0]), int(row["inference"][0])), partial(_put, out.getvalue().encode())
        )

    def _summaries(self, sample: Sample, out: StringIO) -> None:
        from ..analysis.totals.summarise import summarise_device
        from ..views.text.opstats_text import OpstatsText

        program, index = self.execution.program, self.execution.program_index
        for capture, trace in self.execution.device_traces(sample):
            network = network_name(program, capture.device)
            out.write(f"\n{network}\n" if program.devices > 1 else "")
            OpstatsText().render(summarise_device(trace, capture, index, network=network), out)

    def _activation(self, activation: int, rows: Rows, traces: list[Trace]) -> None:
        if "latency" in self.profiles:
            from ..views.text.latency_csv import LatencyCsv

            text = StringIO()
            LatencyCsv(self.execution.program, requested=self.sampling.requested).render(self.times, rows, text)
            self.save(latency_name(activation), partial(_put, text.getvalue().encode()))
        if "trace" in self.profiles:
            self._trace(activation, rows, traces)

    def _trace(self, activation: int, rows: Rows, traces: list[Trace]) -> None:
        """Host stages above the device; of an uninstrumented program, host stages alone."""
        from ..decode import merge_traces
        from ..device.host.host_spans import host_spans
        from ..views.timeline.chrome_trace import ChromeTrace
        from .program_recording import head_of

        view, merged = ChromeTrace(head_of(self.execution.loaded.program)), merge_traces([host_spans(rows), *traces])
        self.save(trace_name(activation), partial(view.render, merged))

    def save(self, name: str, render: Render) -> None:
        write_whole(self.folder / name, render)
        self.written.append(self.folder / name)


def profile_once(execution: Execution) -> Trace:
    """The first inference of a run in full, devices under the stages of the host."""
    from ..decode import merge_traces
    from ..device.host.host_spans import host_spans

    rows = execution.times().rows[:1]
    return merge_traces([host_spans(rows), execution.trace(execution.capture(rows))])


def benchmark(loaded: Loaded, options: RunOptions) -> tuple[HostTimes, RunStatistics]:
    """A run that leaves no files."""
    have_cores, _ = device_cores(loaded.program, options)
    execution = Execution(loaded, options, device_cores=have_cores)
    times = execution.times()
    return times, run_statistics(execution.program, times, [])


def run_program(
    place: Path,
    options: RunOptions,
    *,
    inputs: Mapping[str, str | Path | Array] | None = None,
    progress: Progress | None = None,
) -> RunOutcome:
    """Run the program in a folder or file many times; write what is asked for; say what it comes to."""
    loaded = load_program(place)
    _check_output_folder(options.out_dir)
    _check_profiles(loaded.program, options.profile)
    arrays = _inputs_of(loaded, inputs)
    outputs = _outputs_of(loaded, arrays, seed=options.seed) if options.save_outputs else None
    return execute(loaded, options, outputs=outputs, progress=progress)


def execute(
    loaded: Loaded,
    options: RunOptions,
    *,
    outputs: Mapping[str, Output] | None = None,
    progress: Progress | None = None,
) -> RunOutcome:
    """Run a loaded program, write the files of the profiles asked for, and sum up."""
    have_cores, notes = device_cores(loaded.program, options)
    execution = Execution(loaded, options, device_cores=have_cores)
    times = execution.times(progress)
    sampling = choose_samples(times, options)
    writer = ProfileWriter(execution, times, sampling, options.profile, options.out_dir, progress)
    writer.run()
    if not writer.interrupted:
        notes += _write_outputs(writer, outputs or {})
    samples = writer.samples or _steady_sample(execution, times)
    return RunOutcome(
        program=loaded.program,
        times=times,
        sampling=sampling,
        statistics=run_statistics(execution.program, times, samples),
        outputs=outputs,
        written=tuple(writer.written),
        notes=(*loaded.program.notes, *notes, *_notes(execution, times, writer)),
        interrupted=writer.interrupted,
    )


def _steady_sample(execution: Execution, times: HostTimes) -> list[dict[str, float]]:
    """Counters of one inference, where there are any and nothing else was simulated in full."""
    stats = execution.program.stats
    if stats.level < THREAD_LEVEL or not (stats.ddr or stats.events):
        return []
    return [counted(execution.program, execution.capture(times.rows[:1]).captures)]


def _write_outputs(writer: ProfileWriter, outputs: Mapping[str, Output]) -> list[str]:
    """Write each output that has a form to save; return notes on the others."""
    from ..device.host.outputs import saved_form

    notes = []
    for file, (name, value) in zip(output_names(list(outputs)), outputs.items(), strict=True):
        try:
            form = saved_form(value)
        except UsageError as error:
            notes.append(f"output {printable(name)} is not saved: {error}")
            continue
        if isinstance(form, dict):
            writer.save(file.removesuffix(".npy") + ".npz", partial(_put_arrays, form))
        else:
            writer.save(file, partial(_put_array, form))
    return notes


def device_cores(program: Program, options: RunOptions) -> tuple[int | None, list[str]]:
    """Of the catalogue only: a name in a program file must not make us read another file."""
    from ..machine import catalogue as targets

    if program.target in targets.catalogue():
        return round(targets.load(program.target).topology.cores.value), []
    if options.activations == 1:
        return None, []
    name = printable(program.target)
    return None, [f"target {name} is not in the catalogue, so its cores are unknown: activations take turns"]


def _notes(execution: Execution, times: HostTimes, writer: ProfileWriter) -> list[str]:
    """What was simulated in full, and what limits the run."""
    options, level = execution.options, execution.program.stats.level
    simulated, count = max(1, len(writer.samples)), len(times.rows)
    notes = [
        f"simulated {simulated} of {count} inferences in full; the others take the steady time with seeded variation"
    ]
    if options.activations > 1:
        notes.append(
            f"{execution.program.cores} cores an activation: {execution.slots} run at once, more of them queue"
        )
    if writer.sampling.note and writer.profiles:
        notes.append(writer.sampling.note)
    if unknown_of(execution.program.ops) and writer.profiles:
        notes.append("times in the files are of the ops whose cost is known, which is the least that all of them take")
    if level < THREAD_LEVEL:
        notes.append(f"no device times at stats level {level}: compile with --stats-level 40 or more")
    elif level < PORT_LEVEL:
        notes.append(
            f"no waits of the device for input and output at stats level {level}: compile with --stats-level 50"
        )
    return notes
