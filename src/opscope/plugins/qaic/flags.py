"""Qualcomm Cloud AI: `qaic-compile` (and `qaic-exec` of old) and `qaic-runner`, as tables from their flags to ours."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...commands.command import named_shape
from ...commands.vendor_flags import Flag, ParsedFlags, Takes, noted, read_words, spelt_as
from ...core.errors import UsageError, printable
from ...graph.graph import DType
from ...options import DEFAULT_OVERLAP_PARTS, CompileOptions, RunOptions
from ...program.program import OP_LEVEL, THREAD_LEVEL
from ...program.specializations import specialization_files, specialization_folder
from .configs import (
    PARTITION_FLAG,
    SPECIALIZATION_FLAG,
    Partition,
    Specialization,
    read_partition,
    read_specializations,
)
from .spelling import RUNNER as RUNNER_WORDS
from .spelling import compiler_words, spelt_for_compiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...machine.target import Target
    from ...workflows.execution import RunOutcome
    from ...workflows.model_compiler import Compiled

COMPILER = "qaic-compile"
DEFAULT_TARGET, SEVERAL_DEVICES_TARGET = "aic100-std", "aic100-ultra"

_SWITCH = Takes.NOTHING
_OWN = "accepted; the simulated compiler decides this by itself"
_NONE = "accepted; it has no effect on the simulated device"
_HALF_PRODUCTS = "-mxfp6-matmul: products run in f16, and so does all f32, as with -convert-to-fp16"
SINGLE_FLOATS = "f32 stays f32, which the HVX alone has: -convert-to-fp16 runs it as f16"
_SAME_INPUTS = "every inference has the same inputs: outputs are written once"
_INPUTS = "accepted; times do not depend on the values of inputs, which are bounded random"
_QUANTIZED = "the model runs in i8, as a quantiser leaves it; no value is looked at"

COMPILE: tuple[Flag, ...] = (
    Flag(("model", "m"), "model"),
    Flag(("aic-binary-dir",), "output"),
    Flag(("stats-level",), "stats_level"),
    Flag(("ddr-stats",), "ddr_stats", _SWITCH),
    Flag(("aic-pmu-recipe", "pmu-recipe"), "pmu_recipe"),  # the second of each is ours: so notes on a run call it
    Flag(("aic-pmu-events", "pmu-events"), "pmu_events"),
    Flag(("stats-batchsize",), "stats_batchsize"),
    Flag(("aic-perf-warnings",), "perf_warnings", _SWITCH),
    Flag(("aic-perf-metrics",), "perf_metrics", _SWITCH),
    Flag(("aic-num-cores",), "cores"),
    Flag(("batchsize",), "batch"),
    Flag(("mos",), "channel_parts"),
    Flag(("ols",), "overlap_parts"),
    Flag(("onnx-define-symbol",), "symbols"),
    Flag(("shape",), "shapes"),  # ours: NAME=1x3x224x224, for dimensions without a name
    Flag(("convert-to-fp16",), "half", _SWITCH),
    Flag(("target",), "target"),  # ours: a name of the catalogue or a TOML file
    Flag(("aic-profiling-type", "aic-profiling-format"), "profiling"),
    Flag(("aic-hw",), "", _SWITCH),
    Flag(("compile-only",), "", _SWITCH),
    Flag(("aic-hw-version",), "", note="accepted; the target says which hardware (-target=NAME)"),
    Flag(("mdp-load-partition-config",), "partition"),
    Flag(("network-specialization-config",), "specializations"),
    Flag(("retained-state",), "retained", _SWITCH),
    Flag(("mxfp6-matmul",), "mxfp6", _SWITCH),
    Flag(("convert-to-quantize",), "quantize", _SWITCH, _QUANTIZED),
    Flag(("load-profile",), "profile", note=_QUANTIZED),
    Flag(("mxint8-kv-cache",), "mxint8", _SWITCH),
    *noted(
        _SWITCH,
        _OWN,
        "multicast-weights aic-enable-depth-first use-producer-dma combine-inputs combine-outputs "
        "aic-userdma-async aic-hmx-async sub-functions allow-mxint8-mdp-io aic-preproc",
    ),
    *noted(
        Takes.VALUE,
        _OWN,
        "aic-depth-first-mem mdts-mos size-split-granularity vtcm-working-set-limit-ratio allocator-dealloc-delay "
        "sdp-cluster-sizes node-precision-info keep-original-precision-for-nodes execute-nodes-in-fp16 "
        "custom-IO-list-file operators-supported external-quantization",
    ),
    *noted(
        _SWITCH,
        _NONE,
        "time-passes v verbose aic-dump-dot-files enable-channelwise enable-rowwise io-crc host-preproc host-postproc",
    ),
    *noted(
        Takes.VALUE,
        _NONE,
        "aic-op-stats-verbosity aic-profiling-start-iter aic-profiling-num-samples aic-profiling-out-dir "
        "compile-thread-count quantization-schema quantization-precision quantization-calibration",
    ),
)

RUNNER: tuple[Flag, ...] = (
    Flag(("test-data", "t"), "folder"),
    Flag(("num-iter", "n"), "num_iter"),
    Flag(("time",), "time"),
    Flag(("aic-num-of-activations", "num-activations", "a"), "activations"),
    Flag(("set-size", "S"), "set_size"),
    Flag(("threads-per-queue", "T"), "threads"),
    Flag(("aic-profiling-type",), "profile"),
    Flag(("aic-profiling-format",), "profile"),  # of old: ascii, json
    Flag(("aic-profiling-out-dir",), "out_dir"),
    Flag(("aic-profiling-num-samples",), "num_samples"),
    Flag(("aic-profiling-start-iter",), "start_iter"),
    Flag(("aic-profiling-start-delay",), "start_delay"),
    Flag(("write-output-dir",), "output_dir"),
    Flag(("write-output-num-samples",), "save_outputs", note=_SAME_INPUTS),
    Flag(("write-output-start-iter",), "first_output"),
    Flag(("seed",), "seed"),  # ours
    Flag(("aic-device-id", "device-id", "dev", "d"), "", note="accepted; the device is simulated"),
    Flag(("dev-list", "D"), "", note="accepted; a program for several devices runs on as many simulated ones"),
    Flag(("unbound-random",), "", _SWITCH, _INPUTS),
    Flag(("bound-random",), "", _SWITCH),  # as it is without being asked
    Flag(("i", "input-file"), "inputs"),
    Flag(("aic-batch-json-input",), "input_list"),
    Flag(("specialization",), "specialization"),  # ours: which of a program's specializations runs
    *noted(Takes.VALUE, _INPUTS, "aic-batch-input aic-batch-input-directory aic-batch-input-file-list"),
    *noted(
        Takes.VALUE,
        _NONE,
        "aic-profiling-duration aic-profiling-sampling-rate aic-profiling-reporting-rate r live-reporting-period "
        "submit-timeout submit-retry-count p pre-post-processing",
    ),
    *noted(_SWITCH, _NONE, "l live-reporting s stats c v verbose"),
)

_PROFILES = {  # what they call it → what we call it
    "stats": "stats",
    "trace": "trace",
    "latency": "latency",
    "raw_device_stats": "raw_device_stats",
    "trace_stream": "trace",
    "latency_stream": "latency",
    "ascii": "stats",
    "json": "trace",
}


@dataclass(frozen=True, slots=True)
class CompileCall:
    """A `qaic-compile` line, in our words."""

    model: Path
    output: Path | None  # where programs go; None: nowhere
    target: str | Target
    options: CompileOptions
    specializations: tuple[Specialization, ...]  # a program each; empty: one program
    keeps_floats: bool  # f32 stays f32; else it runs as f16
    perf_metrics: bool
    perf_warnings: bool
    notes: tuple[str, ...]
    spelling: Mapping[str, str]  # our words → those of this line


@dataclass(frozen=True, slots=True)
class RunnerCall:
    """A `qaic-runner` line, in our words."""

    folders: tuple[Path, ...]  # a program each, run at once
    options: RunOptions
    inputs: tuple[Path, ...]  # in the order of the program's inputs; empty: random ones
    input_list: Path | None  # JSON with files by name
    outputs: Path | None  # where outputs go; None: none are written
    first_output: int  # number of the inference that their files are named after
    notes: tuple[str, ...]


def compile_call(words: Sequence[str], *, tool: str = COMPILER) -> CompileCall | None:
    """None when help is asked for."""
    found = read_words(tool, COMPILE, words)
    return None if found.help else call_of(found, tool=tool)


def call_of(found: ParsedFlags, *, tool: str = COMPILER) -> CompileCall:
    """What the words of the compiler ask for; that of old records nothing unless it is asked to."""
    level, profiles = found.number("stats_level", least=0), _profiles(found, "profiling")
    if level is None:
        level = OP_LEVEL if profiles else THREAD_LEVEL if tool == COMPILER else 0
        found.notes += [f"{found.spelt['profiling']}: stats level {level} is compiled in"] if profiles else []
    partition = _partition(found)
    symbols = _symbols(found) | _shapes(found)
    half = found.on("half")
    return CompileCall(
        model=Path(_needed(found, "model", tool, "-model=MODEL")),
        output=Path(_needed(found, "output", tool, "-aic-binary-dir=DIR")),
        target=found.last("target") or _default_target(found, partition),
        options=CompileOptions(
            cores=_cores(found, partition),
            devices=1 if partition is None else partition.devices,
            parallel="pipeline" if partition is not None and partition.is_pipeline else "auto",
            batch=found.number("batch"),
            shapes=symbols or None,
            precision=_precision(found),
            retained_state=found.on("retained"),
            channel_parts=found.number("channel_parts"),
            overlap_parts=found.number("overlap_parts") or DEFAULT_OVERLAP_PARTS,
            kv_cache="mxint8" if found.on("mxint8") else "as-is",
            stats_level=level,
            ddr_stats=found.on("ddr_stats"),
            pmu_recipe=found.last("pmu_recipe"),
            pmu_events=found.last("pmu_events"),
            stats_batchsize=found.number("stats_batchsize"),
        ),
        specializations=_specializations(found, symbols),
        keeps_floats=not half,
        perf_metrics=found.on("perf_metrics"),
        perf_warnings=found.on("perf_warnings"),
        notes=tuple(found.notes),
        spelling=compiler_words(None if partition is None else Path(found.values["partition"][-1])),
    )


def _precision(found: ParsedFlags) -> str | None:
    """The precision that the flags ask for; None: the types of the file."""
    profile = found.last("profile")
    if profile is not None and not Path(profile).is_file():
        raise UsageError(f"-load-profile={printable(profile)}: no such file; expected a profile of ranges")
    mxfp6, half, quantized = found.on("mxfp6"), found.on("half"), found.on("quantize") or profile is not None
    if mxfp6 and quantized:
        raise UsageError("-mxfp6-matmul: weights that are quantised have 8 bits; expected it without quantisation")
    if mxfp6 and "half" not in found.values:
        found.notes.append(_HALF_PRODUCTS)
    return "mxfp6" if mxfp6 else "i8" if quantized else "f16" if half else None


def _partition(found: ParsedFlags) -> Partition | None:
    """The devices of a partition file; what it says and is not followed becomes a note."""
    file = found.last("partition")
    if file is None:
        return None
    partition = read_partition(Path(file))
    found.notes += partition.notes
    return partition


def _cores(found: ParsedFlags, partition: Partition | None) -> int | None:
    asked = found.number("cores")
    if partition is None:
        return asked
    if asked not in (None, partition.cores):
        raise UsageError(
            f"-aic-num-cores={asked}: {PARTITION_FLAG} has {partition.cores} cores a device; expected the same"
        )
    return partition.cores


def _default_target(found: ParsedFlags, partition: Partition | None) -> str:
    if partition is None or partition.devices == 1:
        return DEFAULT_TARGET
    found.notes.append(f"{partition.devices} devices: compiled for {SEVERAL_DEVICES_TARGET} (-target=NAME for another)")
    return SEVERAL_DEVICES_TARGET


def _specializations(found: ParsedFlags, symbols: Mapping[str, tuple[int, ...]]) -> tuple[Specialization, ...]:
    file = found.last("specializations")
    rows = () if file is None else read_specializations(Path(file))
    for name in symbols:
        if any(name in row.sizes for row in rows):
            raise UsageError(
                f"{printable(name)}: sized by a flag and by {SPECIALIZATION_FLAG}; expected one of them to size it"
            )
    return rows


def runner_call(words: Sequence[str]) -> RunnerCall | None:
    """None when help is asked for."""
    found = read_words("qaic-runner", RUNNER, words)
    if found.help:
        return None
    first = found.number("first_output", least=0)
    saves = bool({"output_dir", "save_outputs", "first_output"} & found.values.keys())
    outputs = Path(found.last("output_dir") or ".") if saves else None
    if not all(found.values.get("folder", [""])):
        raise UsageError("qaic-runner: no --test-data; expected --test-data=DIR")
    given, listed = tuple(map(Path, found.values.get("inputs", []))), found.last("input_list")
    folders = tuple(_specialized(found, Path(folder)) for folder in found.values["folder"])
    if len(folders) > 1 and (given or listed or outputs):
        raise UsageError("-i and -write-output-dir: several programs run at once; expected one -t with them")
    if given and listed:
        raise UsageError("-i and -aic-batch-json-input exclude each other; expected one of them")
    if (given or listed) and outputs is None:
        found.notes.append("times do not depend on the values of inputs: -write-output-dir=DIR writes what they give")
    with spelt_as(RUNNER_WORDS):
        options = _run_options(found, saves=saves)
    return RunnerCall(
        folders=folders,
        inputs=given,
        input_list=None if listed is None else Path(listed),
        options=options,
        outputs=outputs,
        first_output=first or 0,
        notes=tuple(found.notes),
    )


def _run_options(found: ParsedFlags, *, saves: bool) -> RunOptions:
    """What the runner's words ask for, beside programs and inputs."""
    return RunOptions(
        num_iter=found.number("num_iter"),
        time=found.seconds("time"),
        activations=found.number("activations") or 1,
        set_size=found.number("set_size") or 10,
        threads=found.number("threads") or 4,
        profile=_profiles(found, "profile"),
        out_dir=Path(found.last("out_dir") or "."),
        num_samples=found.number("num_samples") or 1,
        start_iter=found.number("start_iter", least=0) or 0,
        start_delay=found.seconds("start_delay") or 0.0,
        seed=found.number("seed", least=0) or 0,
        save_outputs=saves,
    )


def compile_programs(call: CompileCall) -> Iterator[tuple[Path | None, Compiled]]:
    """The program in its folder; of several specializations, each in one of its own below the first."""
    from ...machine import catalogue
    from ...workflows.model_compiler import compile_model

    target = catalogue.load(call.target) if isinstance(call.target, str) else call.target
    if call.keeps_floats and call.options.precision is None:
        target = replace(target, precision=_floats(target))
    for number, each in enumerate(call.specializations or (Specialization("", {}),)):
        folder = None if call.output is None else call.output / specialization_folder(number)
        options = replace(call.options, shapes={**(call.options.shapes or {}), **each.sizes} or None)
        with spelt_for_compiler(call.spelling):
            compiled = compile_model(call.model, target, options, output=folder)
        yield folder, compiled
    if call.output is not None:
        _remove_old(call.output, max(1, len(call.specializations)))


def _remove_old(output: Path, kept: int) -> None:
    """Remove programs of specializations that an earlier compilation had and this one has not."""
    for file in specialization_files(output)[kept:]:
        file.unlink()
        with suppress(OSError):  # somebody's files are in it
            file.parent.rmdir()


def has_single_floats(compiled: Compiled) -> bool:
    """Whether an op works on tensors of f32."""
    graph = compiled.graph
    return any(graph.tensors[t].dtype is DType.F32 for op in graph.ops for t in op.outputs)


def _floats(target: Target) -> dict[str, str]:
    """As the vendor's compiler does without -convert-to-fp16: f32 stays, f64 becomes f32."""
    return {label: runs_as for label, runs_as in target.precision.items() if label != "f32"} | {"f64": "f32"}


def run_programs(call: RunnerCall, *, progress: Callable[[int, int], None] | None = None) -> tuple[RunOutcome, ...]:
    """One program, with its inputs where they are given; or several beside each other."""
    from ...workflows import execution, programs_together
    from .inputs import given_inputs, listed_inputs
    from .raw_outputs import write_raw

    for place in filter(None, (call.options.out_dir, call.outputs)):
        if not place.is_dir():  # the vendor's runner makes none
            raise UsageError(f"{place}: no such folder; expected one that is there and can be written to")
    with spelt_as(RUNNER_WORDS):
        if len(call.folders) > 1:
            return programs_together.run_programs(call.folders, call.options, progress=progress)
        (folder,), files, inputs = call.folders, call.input_list, None
        if call.inputs or files is not None:
            programs = [each.program for each in execution.load_programs(folder)]
            inputs = listed_inputs(programs, files) if files else given_inputs(programs, call.inputs)
        ran = execution.run_program(folder, call.options, inputs=inputs, outputs_to=call.outputs, progress=progress)
        if call.outputs is None or ran.interrupted:
            return (ran,)
        raw = write_raw(call.outputs, ran.outputs or {}, inference=call.first_output)
        return (replace(ran, written=(*ran.written, *raw)),)


def _specialized(found: ParsedFlags, folder: Path) -> Path:
    """The file of the specialization that is asked for; the folder where none is: inputs then say which one runs."""
    number, files = found.number("specialization", least=0), specialization_files(folder)
    if number is None:
        return folder
    if number >= len(files):
        raise UsageError(f"-specialization={number}: {folder} has {len(files)}; expected 0 to {len(files) - 1}")
    return files[number]


def _needed(found: ParsedFlags, parameter: str, tool: str, flag: str) -> str:
    value = found.last(parameter)
    if not value:
        raise UsageError(f"{tool}: no {flag.partition('=')[0]}; expected {flag}")
    return value


def _profiles(found: ParsedFlags, parameter: str) -> tuple[str, ...]:
    """What is to be written, in our words; a flag may be repeated, and have a list."""
    names = [name for text in found.values.get(parameter, []) for name in text.split(",")]
    for name in names:
        if name not in _PROFILES:
            flag = f"{found.spelt[parameter]}={printable(name)}"
            raise UsageError(f"{flag}: not known; expected one of {', '.join(_PROFILES)}")
    return tuple(dict.fromkeys(_PROFILES[name] for name in names))


def _symbols(found: ParsedFlags) -> dict[str, tuple[int, ...]]:
    """`-onnx-define-symbol=batch_size,8`: the size of a dimension that the model names."""
    sizes: dict[str, tuple[int, ...]] = {}
    for text in found.values.get("symbols", []):
        name, _, size = text.rpartition(",")
        if not name or not (size.isascii() and size.isdecimal()):
            raise UsageError(f"-onnx-define-symbol={printable(text)}: expected NAME,SIZE such as batch_size,8")
        if sizes.get(name, (int(size),)) != (int(size),):
            before = f"{printable(name)} was {sizes[name][0]} before"
            raise UsageError(f"-onnx-define-symbol={printable(text)}: {before}; expected one size")
        sizes[name] = (int(size),)
    return sizes


def _shapes(found: ParsedFlags) -> dict[str, tuple[int, ...]]:
    try:
        return dict(named_shape(text) for text in found.values.get("shapes", []))
    except ArgumentTypeError as error:
        raise UsageError(f"-shape: {printable(str(error))}") from None
