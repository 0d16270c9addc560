"""`opscope run` behind `api.run`: wires the device, the runtime, the decoder and the views of a run's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UsageError, printable
from ..core.files import make_folder, read_whole
from ..core.provenance import Provenance
from ..core.units import format_ns
from ..device import Inference, collect
from ..device.host.card import Card
from ..device.host.pipeline import Progress
from ..device.host.sampling import Sampling
from ..device.host.sharing import Slot
from ..device.host.stage_times import StageSource, decoding_ns, is_decoded
from ..device.host.statistics import counted, run_statistics
from ..machine.catalogue import words_of
from ..options import RunOptions
from ..program.bounds import check_capacity
from ..program.capture import Capture, encode_capture
from ..program.check import check_duration, check_limits
from ..program.file_names import PROGRAM_FILE, network_name
from ..program.program import OP_LEVEL, PORT_LEVEL, THREAD_LEVEL, Program
from ..program.program_file import decode_program, encode_program, program_id
from ..program.specializations import choose_specialization, specialization_files
from ..recording.host_times import HostTimes, Rows, RunStatistics
from ..recording.unknown import unknown_of

if TYPE_CHECKING:
    from ..analysis.totals.work import ProgramIndex
    from ..decode import LaneIndex
    from ..device.host.inputs import Array
    from ..device.host.outputs import Output
    from ..device.host.pace import Pace
    from ..device.host.reference import Reference
    from ..recording.trace import Trace
    from .profile_files import ProfileWriter


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
    raw = read_whole(file, "the folder that `opscope compile` wrote")
    program = decode_program(raw, source=str(file))
    program = replace(program, words=words_of(program.words, program.target))
    check_limits(program, source=str(file))
    check_capacity(program.bounds, target=f"{file}: {printable(program.target)}")
    return Loaded(program, program_id(raw), file.parent / program.model)


def load_programs(place: Path) -> list[Loaded]:
    """All specializations of a network in a folder; a file is one program."""
    return [load_program(file) for file in specialization_files(place)] if place.is_dir() else [load_program(place)]


def load_fitting(place: Path, inputs: Mapping[str, Array] | None) -> tuple[Loaded, list[str]]:
    """The program for these inputs, of several specializations, and a note on which that is."""
    several = len(specialization_files(place)) if place.is_dir() else 1
    if several == 1:
        return load_program(place), []
    if inputs is None:
        note = f"{place}: specialization 0 of {several} runs; inputs of their shape, or specialization-N, choose others"
        return load_program(place), [note]
    loaded = load_programs(place)
    shapes = {name: tuple(array.shape) for name, array in inputs.items()}
    number = choose_specialization([each.program for each in loaded], shapes, source=str(place))
    return loaded[number], [f"{place}: specialization {number} of {several} runs: the inputs have its shapes"]


def loaded_from(program: Program, model: Path) -> Loaded:
    """A program that is in no file."""
    return Loaded(program, program_id(encode_program(program)), model)


def check_profiles(program: Program, profiles: Sequence[str]) -> None:
    """Refuse what could not be written, before anything runs."""
    if "raw_device_stats" in profiles and program.stats.level < THREAD_LEVEL:
        raise UsageError(
            f"profile raw_device_stats: the program was compiled with stats level {program.stats.level} and leaves no "
            f"stats buffer; expected {THREAD_LEVEL} or more: compile with --stats-level 70"
        )


def _arrays_of(given: Mapping[str, str | Path | Array] | None) -> dict[str, Array] | None:
    """The given inputs, read; None where none are given."""
    from ..device.host.inputs import load_inputs

    if not given:
        return None
    files = {name: Path(value) for name, value in given.items() if isinstance(value, str | Path)}
    arrays = {name: value for name, value in given.items() if not isinstance(value, str | Path)}
    return {**arrays, **load_inputs(files)}


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
    """A program on its simulated card: times of every inference, and captures of those that are profiled."""

    def __init__(self, loaded: Loaded, options: RunOptions, *, card: Card | None = None, number: int = 0) -> None:
        """`card` has several programs, of which this is one by its number; None: the program has it to itself."""
        self.loaded, self.options, self.program = loaded, options, loaded.program
        self.card, self.number = card or Card([loaded.program], options), number
        check_duration(self.pace.steady_s, source=printable(self.program.name))

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Where its activations run that are at once, each with cores of its own."""
        return self.card.slots[self.number]

    @property
    def at_once(self) -> int:
        return min(self.options.activations, len(self.slots))

    @property
    def holds(self) -> float:
        """Part of the time of an inference after which its cores begin the next."""
        return self.card.holds[self.number]

    @property
    def pace(self) -> Pace:
        return self.card.paces[self.number]

    @property
    def sampling(self) -> Sampling:
        """The inferences that are profiled."""
        return self.card.samplings[self.number]

    @property
    def typical(self) -> Rows:
        """One inference of the first activation that stands for all."""
        return self.card.typical(self.number)

    def times(self, progress: Progress | None = None) -> HostTimes:
        return self.card.times(progress)[self.number]

    def exec_ticks(self, activation: int, inference: int) -> int:
        return self.pace.ticks(self.card.number(self.number, activation, inference))

    def lone_latency_ns(self, inference: int) -> int:
        """What the application sees of an inference that has host and device to itself."""
        return self.stages.lone_ns(inference) + round(self.exec_ticks(0, inference) * 1e9 / self.program.stats_hz)

    @cached_property
    def stages(self) -> StageSource:
        return StageSource(self.program, seed=self.options.seed, activation=0)

    def capture(self, row: Rows) -> Sample:
        """A profiled inference in full, on every device."""
        activation, inference = int(row["activation"][0]), int(row["inference"][0])
        clocked, timeline = self.card.timeline(self.number, activation, inference)
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

    def device_traces(self, sample: Sample, *, waits_of_threads: bool = False) -> Iterator[tuple[Capture, Trace]]:
        """What each device did in one inference, on the run's own time axis, through the bytes of its buffer."""
        from ..decode import Barriers, check_buffer, decode_buffer, decode_trace

        program, barriers = self.loaded.program, Barriers.LASTING if waits_of_threads else Barriers.NONE
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
        from ..analysis.totals.work import InferenceWork
        from ..decode import merge_traces

        merged = merge_traces([trace for _, trace in self.device_traces(sample)])
        return (
            timeline(InferenceWork.of(merged, self.program_index)) if self.program.stats.level >= OP_LEVEL else merged
        )


def profile_once(execution: Execution) -> tuple[Sample, Trace]:
    """The first profiled inference of a run: what it left, and devices under the stages of the host."""
    from ..decode import merge_traces
    from ..device.host.host_spans import host_spans

    execution.times()
    rows = execution.sampling.rows[0][:1]
    sample = execution.capture(rows)
    return sample, merge_traces([host_spans(rows), execution.trace(sample)])


def benchmark(loaded: Loaded, options: RunOptions) -> tuple[HostTimes, RunStatistics]:
    """A run that leaves no files."""
    execution = Execution(loaded, options)
    times = execution.times()
    return times, run_statistics(execution.program, times, [])


def run_program(
    place: Path,
    options: RunOptions,
    *,
    inputs: Mapping[str, str | Path | Array] | None = None,
    outputs_to: Path | None = None,
    progress: Progress | None = None,
) -> RunOutcome:
    """Run the program in a folder or file many times; write what is asked for; say what it comes to.

    Outputs that are to be saved go where all files of the run go, or to a folder of their own, `outputs_to`.
    """
    from ..device.host.inputs import check_inputs

    given = _arrays_of(inputs)
    loaded, notes = load_fitting(place, given)
    check_profiles(loaded.program, options.profile)
    arrays = None if given is None else check_inputs(loaded.program, given)
    for folder in {options.out_dir, outputs_to or options.out_dir}:
        make_folder(folder)
    outputs = _outputs_of(loaded, arrays, seed=options.seed) if options.save_outputs else None
    outcome = execute(loaded, options, outputs=outputs, outputs_to=outputs_to, progress=progress)
    return replace(outcome, notes=(*notes, *outcome.notes))


def execute(
    loaded: Loaded,
    options: RunOptions,
    *,
    outputs: Mapping[str, Output] | None = None,
    outputs_to: Path | None = None,
    progress: Progress | None = None,
) -> RunOutcome:
    """Run a loaded program that has the card to itself."""
    return finish(Execution(loaded, options), outputs=outputs, outputs_to=outputs_to, progress=progress)


def finish(
    execution: Execution,
    *,
    outputs: Mapping[str, Output] | None = None,
    outputs_to: Path | None = None,
    progress: Progress | None = None,
) -> RunOutcome:
    """Run, write the files of the profiles asked for, and sum up."""
    from .profile_files import ProfileWriter, write_outputs

    loaded, options = execution.loaded, execution.options
    times = execution.times(progress)
    sampling = execution.sampling
    writer = ProfileWriter(execution, times, sampling, options.profile, options.out_dir, progress)
    writer.run()
    kept = {} if writer.interrupted else outputs or {}
    saved, unwritten = write_outputs(outputs_to or options.out_dir, kept)
    samples = writer.samples or _first_sample(execution)
    return RunOutcome(
        program=loaded.program,
        times=times,
        sampling=sampling,
        statistics=run_statistics(execution.program, times, samples),
        outputs=outputs,
        written=(*writer.written, *saved),
        notes=(*loaded.program.notes, *unwritten, *_notes(execution, times, writer)),
        interrupted=writer.interrupted,
    )


def _first_sample(execution: Execution) -> list[dict[str, float]]:
    """Counters of one inference, where there are any and no files of profiles are asked for."""
    stats = execution.program.stats
    if stats.level < THREAD_LEVEL or not (stats.ddr or stats.events):
        return []
    return [counted(execution.program, execution.capture(execution.sampling.rows[0][:1]).captures)]


def _notes(execution: Execution, times: HostTimes, writer: ProfileWriter) -> list[str]:
    """What was simulated in full, and what limits the run."""
    options, level = execution.options, execution.program.stats.level
    simulated = max(1, len(writer.samples), execution.card.simulated(execution.number))
    count = len(times.rows)
    notes = [
        f"simulated {simulated} of {count} inferences in full; the others take the steady time with seeded variation"
    ]
    if options.activations > 1:
        if execution.program.device_cores is None:
            notes.append("the program does not say how many cores a device has: compile it again to use them all")
        notes.append(
            f"{execution.program.cores} cores an activation: {len(execution.slots)} run at once, more of them queue"
        )
    if writer.sampling.note and writer.profiles:
        notes.append(writer.sampling.note)
    notes += [*writer.notes, *_held_up(execution, times, writer.sampling)]
    if unknown_of(execution.program.ops) and writer.profiles:
        notes.append("times in the files are of the ops whose cost is known, which is the least that all of them take")
    if level < THREAD_LEVEL:
        notes.append(f"no device times at stats level {level}: compile with --stats-level 40 or more")
    elif level < PORT_LEVEL:
        notes.append(
            f"no waits of the device for input and output at stats level {level}: compile with --stats-level 50"
        )
    return notes


def _held_up(execution: Execution, times: HostTimes, sampling: Sampling) -> Iterator[str]:
    """How long the host's decoder and writer held the application up: inferences per second count that, too."""
    options, program = execution.options, execution.program
    if not is_decoded(program, options):
        return
    held = []
    for activation, rows in enumerate(sampling.rows):
        last = len(times.of_activation(activation)) - options.set_size  # whoever comes back later asks for no other
        asking = (number for number, row in enumerate(rows) if row["inference"] < last)
        held.append(sum(decoding_ns(program, is_first=number == 0) for number in asking))
    if longest := max(held):
        which = "the application" if options.set_size == 1 else f"one of {options.set_size} requests in flight"
        until = f"up for {format_ns(longest)}, which the inferences per second count"
        if longest >= times.duration_ns:  # the others did what was left
            until = f"until the run is over: for {format_ns(longest)}, which more inferences would wait for"
        later = "raw_device_stats alone leaves it for later"
        yield f"opening the decoder and decoding on the host hold {which} {until}; {later}"
