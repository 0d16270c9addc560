"""Model → Run on the simulated device: compile, run, decode and sum up, re-using what did not change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING

from .. import __version__
from ..core.errors import UsageError
from ..core.keys import code_of, digest_of
from ..machine.corners import Corner, range_with
from ..machine.target import Target
from ..options import CompileOptions, ProfileOptions, RunOptions, part_of, shapes_of, shapes_text
from ..options.run import DEFAULT_ITERATIONS
from ..readers.torch.sources import name_of
from ..recording.host_times import STAGES, Rows, between, stage_of
from ..recording.recording import Recording
from ..recording.run import RunInfo
from .execution import Execution, Loaded, loaded_from
from .program_recording import recording_of

if TYPE_CHECKING:
    from ..program.program import Program
    from ..recording.summary import Summary
    from ..recording.trace import Trace
    from .model_compiler import ModelCompiler

COMPILING = (  # code that a program comes from
    *("core", "options", "graph", "machine", "program", "recording", "readers", "estimate", "simulation", "compiler"),
)
RUNNING = ("decode", "device", "analysis", "views", "workflows", "changes")  # and a run, beside those

Tell = Callable[[str], None]  # told what is being done now


@dataclass(frozen=True, slots=True)
class Keys:
    """What a program, and a run, depend on, as hashes: the same key, the same bytes."""

    program: str
    run: str

    @classmethod
    def of(cls, model_sha256: str, target: Target, options: ProfileOptions) -> Keys:
        base = (__version__, code_of(*COMPILING), model_sha256, repr(target), repr(compile_options(options)))
        rest = code_of(*RUNNING)
        return cls(digest_of(*base), digest_of(*base, rest, repr(options)))


def compile_options(options: ProfileOptions) -> CompileOptions:
    """The options that the program depends on."""
    return part_of(CompileOptions, options)


def range_ns(
    compiler: ModelCompiler, target: Target, options: ProfileOptions, *, typical: Execution
) -> tuple[int, int]:
    """Latency with every figure of the target at the fast, and at the slow end of its range, and the model's error.

    Activations that run at once share the memory at both ends, too, as many as in the execution with typical figures.
    Nothing is faster than the peaks of the machine, of which the model's error knows nothing.
    """
    from ..device.host.card import Card
    from ..program.least_time import least_seconds

    found, least = [], [least_seconds(typical.program) * 1e9]
    for corner in (Corner.FAST, Corner.SLOW):
        program, _ = compiler.compile(target, compile_options(options), corner=corner, timed_only=True)
        (pace,) = Card([program], part_of(RunOptions, options)).paces
        found.append(pace.cycles / program.clock_hz * 1e9)
        least.append(least_seconds(program) * 1e9)
    usual = typical.pace.cycles / typical.program.clock_hz * 1e9
    low, high = range_with(target.model_error, usual, found)
    return round(max(low, min(usual, *found, *least))), round(high)


def with_range(totals: Summary, low: int, high: int) -> Summary:
    """Totals with the range of the latency; an inference that was seen lies in it. One at least so long has no end."""
    latency = totals.latency
    seen = [ns for ns in (latency.value_ns, latency.low_ns, latency.high_ns) if ns is not None]
    most = None if latency.value_ns is None else max(high, *seen)
    return replace(totals, latency=replace(latency, low_ns=min(low, *seen), high_ns=most))


def execution_of(loaded: Loaded, options: ProfileOptions) -> Execution:
    """A program on its device, with what the options of a profile say of a run.

    One sample alone is of the steady time: what it would draw, some percent more or less, says nothing of the others.
    Several activations run for as long as `run` lets them, so that they lie to each other as they do there.
    """
    from ..device.variation import without_spread

    run = part_of(RunOptions, options)
    if options.activations > 1:
        return Execution(loaded, replace(run, num_iter=max(options.num_iter, DEFAULT_ITERATIONS)))
    program = loaded.program if options.num_samples > 1 else without_spread(loaded.program)
    return Execution(replace(loaded, program=program), run)


def run_program(program: Program, options: ProfileOptions, *, step: Tell) -> Recording:
    """Run a program that is in no file."""
    step("running")
    return record_run(execution_of(loaded_from(program, Path()), options), step=step)


def record_run(execution: Execution, *, step: Tell) -> Recording:
    """Run a program and decode what its device wrote down: the samples of the first activation, under the host.

    One sample alone is the inference that says most of the others: the one whose time is next to the steady time.
    """
    from ..decode import merge_traces
    from ..device.host.host_spans import host_spans

    program, times = execution.loaded.program, execution.times()
    rows = execution.sampling.rows[0] if execution.options.num_samples > 1 else execution.typical
    step("decoding")
    decoded = [_decode(execution, row) for row in rows.reshape(-1, 1)]
    trace = merge_traces([host_spans(rows), *(trace for trace, _ in decoded)]).from_zero()
    totals = _with_host([summary for _, summary in decoded], times.rows)
    if totals.throughput_per_s is not None:  # of the card: activations with cores of their own, and stages, run at once
        at_once = execution.at_once / execution.holds
        totals = replace(totals, throughput_per_s=totals.throughput_per_s * at_once)
    return recording_of(program, trace, totals, numbers=tuple(int(number) for number in rows["inference"]))


def _decode(execution: Execution, row: Rows) -> tuple[Trace, Summary]:
    from ..analysis.totals.summarise import summarise, timeline
    from ..analysis.totals.work import InferenceWork
    from ..decode import merge_traces

    pairs = list(execution.device_traces(execution.capture(row), waits_of_threads=True))
    work = InferenceWork.of(merge_traces([trace for _, trace in pairs]), execution.program_index)
    return timeline(work), summarise(work, {capture.device: capture for capture, _ in pairs})


def _with_host(summaries: list[Summary], rows: Rows) -> Summary:
    """The typical inference, with the median of every stage of the host over all inferences."""
    from ..analysis.totals.summarise import typical

    medians = {stage: median_low(between(rows, *ends).tolist()) for stage, ends in STAGES.items()}
    return replace(typical(summaries), host=tuple(stage_of(stage, ns) for stage, ns in medians.items() if ns))


def with_options(
    recording: Recording, model: Path, options: ProfileOptions, keys: Keys, *, target_file: str
) -> Recording:
    """With what a simulated run was made from: enough to make it again."""
    chosen = {name: value for name, value in asdict(options).items() if value is not None and name != "shapes"}
    shapes = shapes_text(options.shapes)
    marks = {"program_key": keys.program, "run_key": keys.run}
    marks |= ({"shapes": shapes} if shapes else {}) | ({"target_file": target_file} if target_file else {})
    return replace(recording, model=str(model), network=name_of(model), options={**chosen, **marks})


def options_of_run(info: RunInfo) -> ProfileOptions:
    """What a simulated run was made with, or the nearest that one decoded from stats buffers tells."""
    known = {name: value for name, value in info.options.items() if name in ProfileOptions.__dataclass_fields__}
    known = {"cores": info.cores, "devices": info.devices, **known}
    shapes = shapes_of(str(known.pop("shapes", "")))
    try:
        return ProfileOptions(**known, shapes=shapes)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise UsageError(f"run.json: options do not say how the run was made ({error})") from error


def target_of(info: RunInfo) -> Target:
    """What a simulated run was made for: a file, or a name of the catalogue."""
    from ..machine import catalogue as targets

    return targets.load(str(info.options.get("target_file", info.target)))
