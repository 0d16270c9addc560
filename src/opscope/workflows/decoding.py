"""`opscope opstats` behind `api.opstats`: wires buffers, decoder, analysis and views, sample by sample.

Not named after the verb: a module `opstats` of this package would take the place of the function once imported.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from io import StringIO
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from ..analysis.run_totals import with_breakdown
from ..analysis.totals.summarise import summarise, summarise_device, timeline, typical
from ..analysis.totals.work import InferenceWork, ProgramIndex
from ..core.errors import CaptureError, UsageError, printable
from ..core.files import make_folder, read_whole, write_whole
from ..decode import (
    Barriers,
    Buffer,
    ForeignBufferError,
    LaneIndex,
    Threads,
    check_buffer,
    decode_buffer,
    decode_trace,
    merge_traces,
    origin_tick,
)
from ..importers.host_trace import ActivationError, near, read_host_trace
from ..machine.catalogue import words_of
from ..options import OpstatsOptions
from ..program.file_names import PROGRAM_FILE, plain_name
from ..program.program import OP_LEVEL, Program
from ..program.program_file import decode_program, encode_program, program_id
from ..program.specializations import specialization_files
from ..program.stats_files import EXPECTED, Sample, StatsFile, find_samples, output_name, program_of_trace
from ..recording.build import to_run
from ..recording.folder_reader import read_run
from ..recording.folder_writer import RunFolder, write_part
from ..recording.recording import Value, empty_trace
from ..recording.summary import Summary
from ..recording.summary_file import SUMMARY_FILE, encode_summary
from ..recording.trace import Trace
from ..views.text.opstats_text import OpstatsText
from ..views.timeline.chrome_trace import ChromeTrace
from ..views.timeline.perfetto_trace import PerfettoTrace
from .analysing import findings_for
from .program_recording import PROVENANCE, head_of, recording_of
from .record import Recorded, finish

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_WORTH_A_PROCESS = 4 << 20  # bytes of stats buffers; starting a process costs as much as decoding so many

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class SampleOutcome:
    """The result of decoding one sample: files, warnings and problems."""

    written: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # one line each; the rest was decoded
    foreign: list[str] = field(default_factory=list)  # the same, of buffers that another program left
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    summary: Summary | None = None
    origin: int = 0
    program: int = 0  # its number in the run, as file names have it
    activation: int = 0
    inferences: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OpstatsOutcome:
    """The results of all samples."""

    written: tuple[Path, ...]
    problems: tuple[str, ...]  # one line for each buffer that could not be decoded
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    recorded: Recorded | None = None  # the run that holds all samples, where one was asked for


@dataclass(frozen=True)
class _Decoded:
    """One buffer of a sample, with the spans of its device; what is derived from them is made at its first use."""

    file: StatsFile
    buffer: Buffer
    work: InferenceWork

    @cached_property
    def trace(self) -> Trace:
        return timeline(self.work)

    @cached_property
    def totals(self) -> Summary:
        return summarise(self.work, {self.buffer.capture.device: self.buffer.capture})


class Decoder:
    """A program, with what decoding any of its samples needs."""

    def __init__(self, program_file: Path, options: OpstatsOptions) -> None:
        raw = read_whole(program_file, f"the {PROGRAM_FILE} that the compiler wrote")
        self.source = str(program_file)
        self.options = options
        program = decode_program(raw, source=self.source)
        self.words = words_of(program.words, program.target)
        self.program: Program = replace(program, words=self.words)
        self.program_id = program_id(raw)
        self.lanes = LaneIndex.of(self.program)
        self.index = ProgramIndex.of(self.program)
        _check_selection(self.program, options)
        self.view = _view(self.program, options) if options.trace else None

    def sample(self, sample: Sample, folder: Path, part: Path | None) -> SampleOutcome:
        """Decode every buffer of a sample that can be decoded, and write what was asked for."""
        outcome = SampleOutcome()
        buffers = list(self._buffers(sample, outcome))
        if not buffers:
            return outcome
        outcome.origin = origin_tick(buffer for _, buffer in buffers)
        outcome.activation = buffers[0][1].capture.activation
        outcome.program = buffers[0][0].program
        decoded = [self._decoded(file, buffer, outcome.origin) for file, buffer in buffers]
        for each in decoded:
            self._summary(each, folder, outcome)
        if self.view is not None:
            self._traces(self.view, sample, decoded, folder, outcome)
        if part is not None:
            merged = merge_traces([each.trace for each in decoded])
            write_part(merged, part)
            outcome.summary = decoded[0].totals if len(decoded) == 1 else self._totals(merged, decoded)
            outcome.inferences = (buffers[0][1].capture.inference,)
        return outcome

    def _decoded(self, file: StatsFile, buffer: Buffer, origin: int) -> _Decoded:
        trace = decode_trace(self.program, buffer, self.lanes, origin=origin, provenance=PROVENANCE)
        return _Decoded(file, buffer, InferenceWork.of(trace, self.index))

    def _totals(self, merged: Trace, decoded: Sequence[_Decoded]) -> Summary:
        """Of all devices together."""
        captures = (each.buffer.capture for each in decoded)
        return summarise(InferenceWork.of(merged, self.index), {capture.device: capture for capture in captures})

    def _buffers(self, sample: Sample, outcome: SampleOutcome) -> Iterator[tuple[StatsFile, Buffer]]:
        """Buffers of one sample, one per device; those that cannot be used become problems of the outcome."""
        seen: set[int] = set()
        for file in sample.files:
            try:
                buffer = self._buffer(file)
            except ForeignBufferError as error:
                outcome.foreign.append(str(error))
                continue
            except (CaptureError, UsageError) as error:
                outcome.problems.append(str(error))
                continue
            if buffer.capture.device in seen:
                outcome.problems.append(f"{file.path}: a second buffer of device {buffer.capture.device}; left out")
                continue
            seen.add(buffer.capture.device)
            yield file, buffer
        present = {file.slice for file in sample.files}
        missing = [d for d in range(self.program.devices) if self.program.devices > 1 and d not in present]
        if missing:
            names = ", ".join(f"slice{d:02d}" for d in missing)
            outcome.problems.append(
                f"{sample.files[0].path.parent}: {sample.merged_stem}: {names} missing; expected "
                f"one buffer for each of {self.program.devices} devices"
            )

    def _buffer(self, file: StatsFile) -> Buffer:
        """Read and check; the name is believed only where the buffer says the same."""
        source = str(file.path)
        if file.network != plain_name(self.program.name):
            raise UsageError(
                f"{source}: network {printable(file.network)!r} is not in {self.source}; it has "
                f"{printable(self.program.name)!r}"
            )
        buffer = decode_buffer(read_whole(file.path, "a stats buffer"), source=source)
        check_buffer(buffer, self.program, program_id=self.program_id)
        capture = buffer.capture
        said = (("activation", file.activation, capture.activation), ("inference", file.inference, capture.inference))
        slices = (("device", file.slice, capture.device),) if file.slice is not None else ()
        for what, in_name, in_buffer in (*said, *slices):
            if in_name != in_buffer:
                raise UsageError(f"{source}: the name says {what} {in_name}, the buffer {in_buffer}; expected the same")
        return buffer

    def _summary(self, each: _Decoded, folder: Path, outcome: SampleOutcome) -> None:
        """Write the text of one buffer, and warn of what its stats level lacks."""
        file, capture = each.file, each.buffer.capture
        if capture.level < OP_LEVEL:
            outcome.warnings.append(
                f"stats level {capture.level} has no operator cycle counts: the summary has no op table and the trace "
                "no operators; compile with --stats-level 70"
            )
        if not self.options.summary:
            return
        network = self.program.name if file.slice is None else f"{self.program.name}_slice{file.slice:02d}"
        totals = each.totals if capture.level >= OP_LEVEL else None
        tables = summarise_device(each.work, capture, network=network, totals=totals)
        text = StringIO()
        OpstatsText().render(tables, text)
        path = folder / output_name(file.stem, self.words, OpstatsText.suffix)
        write_whole(path, lambda out: out.write(text.getvalue().encode()))
        outcome.written.append(path)
        outcome.notes += tables.notes

    def _traces(
        self,
        view: ChromeTrace | PerfettoTrace,
        sample: Sample,
        decoded: list[_Decoded],
        folder: Path,
        outcome: SampleOutcome,
    ) -> None:
        """Write the timelines of one sample: one for all devices, or one each of those that are asked for."""
        traces = [self._detailed(each, outcome.origin) for each in decoded]
        asked = range(self.program.devices) if self.options.devices is None else self.options.devices
        pairs = zip(decoded, traces, strict=True)
        parts = [(each.file.stem, [trace]) for each, trace in pairs if each.buffer.capture.device in asked]
        if self.options.merge_devices or sample.files[0].slice is None:
            parts = [(sample.merged_stem, traces)]
        for stem, chosen in parts:
            path = folder / output_name(stem, self.words, view.suffix)
            write_whole(path, partial(view.render, self._with_host(merge_traces(chosen), outcome)))
            outcome.written.append(path)

    def _detailed(self, each: _Decoded, origin: int) -> Trace:
        """With every thread or barrier where that is asked for; its counters are those of the plain trace."""
        options = self.options
        if options.merge_thread_groups and not options.barriers:
            return each.trace
        threads = Threads.MERGED if options.merge_thread_groups else Threads.APART
        fine = decode_trace(
            self.program,
            each.buffer,
            self.lanes,
            origin=origin,
            provenance=PROVENANCE,
            threads=threads,
            barriers=Barriers.ALL if options.barriers else Barriers.NONE,
        )
        return replace(fine, counters=each.trace.counters, samples=each.trace.samples)

    def _with_host(self, trace: Trace, outcome: SampleOutcome) -> Trace:
        """Host spans near the sample, on its axis; the axis starts with the first of all."""
        file = self.options.host_trace
        if file is None:
            return trace
        program = program_of_trace(file)
        if program not in (None, outcome.program):
            wanted = f"of program {program}; expected the host trace of program {outcome.program}"
            outcome.warnings.append(f"{file}: {wanted}; it is left out")
            return trace
        try:
            host = read_host_trace(
                file,
                stats_hz=self.program.stats_hz,
                origin_tick=outcome.origin,
                activation=outcome.activation,
            )
        except ActivationError as error:
            outcome.warnings.append(f"{error}; it is left out")
            return trace
        close = near(host, int(trace.spans["end_ns"].max(initial=0)))
        if not close.any():
            outcome.warnings.append(
                f"{file}: no event at the time of the samples; expected times in microseconds of "
                "the statistics timer, or otherData.ticks_at_zero"
            )
            return trace
        return merge_traces([trace, replace(host, spans=host.spans.take(np.flatnonzero(close)))]).from_zero()


def _view(program: Program, options: OpstatsOptions) -> ChromeTrace | PerfettoTrace:
    if options.trace_format not in ("json", "perfetto"):
        raise UsageError(f"trace format {options.trace_format!r}: not known; expected json or perfetto")
    view = PerfettoTrace if options.trace_format == "perfetto" else ChromeTrace
    return view(head_of(program), cores=options.cores, devices=options.devices, flows=options.flows)


def _check_selection(program: Program, options: OpstatsOptions) -> None:
    for word, chosen, have in (("cores", options.cores, program.cores), ("devices", options.devices, program.devices)):
        for number in chosen or ():
            if not 0 <= number < have:
                raise UsageError(f"--select-{word} {number}: the program has {have}; expected 0 to {have - 1}")


def samples_of(folder: Path) -> list[Sample]:
    """The samples in a folder; none is an error."""
    try:
        found = find_samples(folder)
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be read ({error.strerror}); expected a folder with stats buffers"
        ) from error
    if not found:
        raise UsageError(f"{folder}: holds no stats buffers; expected files such as {EXPECTED}")
    return found


def _programs_of(program_file: Path, samples: Sequence[Sample]) -> list[Path]:
    """The program that each sample is of: of several specializations, the one that its first buffer names."""
    files = specialization_files(program_file.parent) if program_file.name == PROGRAM_FILE else [program_file]
    if len(files) == 1:
        return [program_file] * len(samples)
    by_id: dict[int | None, Path] = {program_id(read_whole(file, "a program")): file for file in files}
    return [by_id.get(_written_by(sample), program_file) for sample in samples]


def _written_by(sample: Sample) -> int | None:
    """The id that a buffer carries; None where it cannot be read, which is told when it is decoded."""
    path = sample.files[0].path
    try:
        return decode_buffer(read_whole(path, "a stats buffer"), source=str(path)).capture.program_id
    except (CaptureError, UsageError):
        return None


@lru_cache(maxsize=4)
def decoder(program_file: Path, options: OpstatsOptions) -> Decoder:
    """Made once per process: a worker decodes the program once, however many samples it gets."""
    return Decoder(program_file, options)


def _one(program_file: Path, options: OpstatsOptions, sample: Sample, folder: Path, part: Path | None) -> SampleOutcome:
    return decoder(program_file, options).sample(sample, folder, part)


def decode_all(
    programs: Sequence[Path],
    options: OpstatsOptions,
    samples: Sequence[Sample],
    folder: Path,
    *,
    parts: Sequence[Path | None],
    workers: int,
    progress: Progress | None,
) -> list[SampleOutcome]:
    """Every sample, in this process or, where it pays, in several; in each, one sample at a time."""
    size = sum(file.path.stat().st_size for sample in samples for file in sample.files if file.path.exists())
    workers = min(workers, len(samples))
    if workers < 2 or size < _WORTH_A_PROCESS:
        outcomes = []
        for number, (program_file, sample, part) in enumerate(zip(programs, samples, parts, strict=True), start=1):
            outcomes.append(_one(program_file, options, sample, folder, part))
            if progress is not None:
                progress(number, len(samples))
        return outcomes
    context = get_context("fork" if os.name == "posix" else "spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_keep_memory) as pool:
        futures = [
            pool.submit(_one, program_file, options, sample, folder, part)
            for program_file, sample, part in zip(programs, samples, parts, strict=True)
        ]
        return list(_in_turn(futures, progress))


def _keep_memory() -> None:
    """In a worker, let freed arrays stay with the process: the next sample needs as much, and new pages are slow."""
    try:
        mallopt = ctypes.CDLL(None).mallopt  # of the GNU C library; others have none and do without
    except (AttributeError, OSError, TypeError):
        return
    for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
        mallopt(option, 1 << 30)


def _in_turn(futures: list[Future[SampleOutcome]], progress: Progress | None) -> Iterator[SampleOutcome]:
    for number, future in enumerate(futures, start=1):
        yield future.result()
        if progress is not None:
            progress(number, len(futures))


def decode_everything(
    program_file: Path,
    input_dir: Path,
    output_dir: Path,
    options: OpstatsOptions,
    *,
    command: tuple[str, ...],
    created: str,
    progress: Progress | None = None,
) -> OpstatsOutcome:
    """All samples of a folder, and the run that holds them."""
    decoder.cache_clear()  # the file may be another by now
    decoder(program_file, options)  # a program that cannot be read is told first
    samples = samples_of(input_dir)
    programs = _programs_of(program_file, samples)
    if options.run is not None and len(set(programs)) > 1:
        raise UsageError(f"{input_dir}: samples of several specializations; expected those of one to make a run of")
    if options.summary or options.trace:
        make_folder(output_dir)
    folder = None if options.run is None else RunFolder(options.run)
    whole = None
    try:
        parts = [None if folder is None else folder.part(number) for number in range(len(samples))]
        outcomes = decode_all(
            programs, options, samples, output_dir, parts=parts, workers=options.workers, progress=progress
        )
        written = [path for outcome in outcomes for path in outcome.written]
        if folder is not None and any(outcome.summary is not None for outcome in outcomes):
            done, made = _of_one_activation(outcomes, parts), decoder(programs[0], options)
            whole = _recorded(folder, programs[0], done, made, command, created)
            written.append(folder.path)
    finally:
        if folder is not None:
            folder.discard()
    beside = _sort_foreign(samples, outcomes)
    return OpstatsOutcome(
        written=tuple(written),
        problems=tuple(line for outcome in outcomes for line in outcome.problems),
        warnings=tuple(dict.fromkeys(line for outcome in outcomes for line in outcome.warnings)),
        notes=(*beside, *dict.fromkeys(line for outcome in outcomes for line in outcome.notes)),
        recorded=whole,
    )


def _of_one_activation(
    outcomes: Sequence[SampleOutcome], parts: Sequence[Path | None]
) -> list[tuple[SampleOutcome, Path]]:
    """The samples that one run can hold, as `profile` does: those of the first activation, on its own lanes.

    Others are at work at the same time on cores of their own, which buffers do not tell.
    """
    pairs = zip(outcomes, parts, strict=True)
    decoded = [(outcome, part) for outcome, part in pairs if part is not None and outcome.summary is not None]
    first = min(outcome.activation for outcome, _ in decoded)
    others = {outcome.activation for outcome, _ in decoded} - {first}
    if others:
        decoded[0][0].warnings.append(
            f"the run holds activation {first} of {len(others) + 1}: a run is of one; --summary and --trace show all"
        )
    return [pair for pair in decoded if pair[0].activation == first]


def _sort_foreign(samples: Sequence[Sample], outcomes: Sequence[SampleOutcome]) -> list[str]:
    """Notes on programs that ran beside this one and left buffers here; any other foreign buffer is a problem."""
    numbers = [sample.files[0].program for sample in samples]
    own = {number for number, outcome in zip(numbers, outcomes, strict=True) if not outcome.foreign}
    beside: dict[int, int] = {}
    for number, outcome in zip(numbers, outcomes, strict=True):
        if own and number not in own:
            beside[number] = beside.get(number, 0) + len(outcome.foreign)
        else:
            outcome.problems += outcome.foreign
    return [f"program {number}: {count} buffers of another program are left out" for number, count in beside.items()]


def _recorded(  # noqa: PLR0917 – as many as what a run is made of
    folder: RunFolder,
    program_file: Path,
    done: Sequence[tuple[SampleOutcome, Path]],
    made: Decoder,
    command: tuple[str, ...],
    created: str,
) -> Recorded:
    """The parts of samples on one axis, which starts with the earliest; analysed as every run is."""
    program = made.program
    origin = min(outcome.origin for outcome, _ in done)
    parts = [(part, round((outcome.origin - origin) * 1e9 / program.stats_hz)) for outcome, part in done]
    recording = recording_of(
        program,
        replace(empty_trace(PROVENANCE), edges=made.lanes.edges),
        typical([outcome.summary for outcome, _ in done if outcome.summary is not None]),
        numbers=tuple(number for outcome, _ in done for number in outcome.inferences),
        maker="opstats",
    )
    chosen: dict[str, Value] = {"stats_level": program.stats.level, "stats_batch_size": program.stats.batch_size}
    recording = replace(recording, model=str(program_file), options=chosen)
    head = to_run(recording, command=command, created=created, sha256=sha256(program_file.read_bytes()).hexdigest())
    folder.fill(head, parts)
    model = (program_file.parent / program.model).resolve()
    kept = replace(program, model=os.path.relpath(model, folder.path.resolve()) if program.model else "")
    folder.keep(PROGRAM_FILE, encode_program(kept))
    analysis = with_breakdown(read_run(folder.folder))
    folder.keep(SUMMARY_FILE, encode_summary(analysis.run.summary))
    findings = findings_for(analysis, recording)
    return Recorded(analysis.run, findings, recording, folder.path, finish(folder, analysis, findings, recording))
