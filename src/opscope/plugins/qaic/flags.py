"""Qualcomm Cloud AI: `qaic-compile` (and `qaic-exec` of old) and `qaic-runner`, as tables from their flags to ours."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...commands.command import named_shape
from ...commands.vendor_flags import Flag, Takes, Words, read_words
from ...core.errors import UsageError, printable
from ...options import CompileOptions, RunOptions
from ...program.program import OP_LEVEL, THREAD_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...workflows.execution import RunOutcome
    from ...workflows.model_compiler import Compiled

DEFAULT_TARGET = "aic100-std"

_SWITCH = Takes.NOTHING
_OWN = "accepted; the simulated compiler decides this by itself"
_NONE = "accepted; it has no effect on the simulated device"
_ONE_DEVICE = "accepted; this compiles for one device: for several, see `opscope compile --devices`"
_SAME_INPUTS = "every inference has the same inputs: outputs are written once"
_INPUTS = "accepted; times do not depend on the values of inputs, which are bounded random"


def _noted(takes: Takes, note: str, names: str) -> tuple[Flag, ...]:
    return tuple(Flag((name,), "", takes, note) for name in names.split())


COMPILE: tuple[Flag, ...] = (
    Flag(("model", "m"), "model"),
    Flag(("aic-binary-dir",), "output"),
    Flag(("stats-level",), "stats_level"),
    Flag(("ddr-stats",), "ddr_stats", _SWITCH),
    Flag(("aic-pmu-recipe",), "pmu_recipe"),
    Flag(("aic-pmu-events",), "pmu_events"),
    Flag(("stats-batchsize",), "stats_batchsize"),
    Flag(("aic-perf-warnings",), "perf_warnings", _SWITCH),
    Flag(("aic-perf-metrics",), "perf_metrics", _SWITCH),
    Flag(("aic-num-cores",), "cores"),
    Flag(("batchsize",), "batch"),
    Flag(("onnx-define-symbol",), "symbols"),
    Flag(("shape",), "shapes"),  # ours: NAME=1x3x224x224, for dimensions without a name
    Flag(("convert-to-fp16",), "half", _SWITCH),
    Flag(("target",), "target"),  # ours: a name of the catalogue or a TOML file
    Flag(("aic-profiling-type", "aic-profiling-format"), "profiling", note="profiling compiled in: stats level 70"),
    Flag(("aic-hw",), "", _SWITCH),
    Flag(("compile-only",), "", _SWITCH),
    Flag(("aic-hw-version",), "", note="accepted; the target says which hardware (-target=NAME)"),
    Flag(("mdp-load-partition-config",), "", note=_ONE_DEVICE),
    Flag(("network-specialization-config",), "", note="accepted; compiles one specialization, of the model's shapes"),
    Flag(("mxfp6-matmul",), "", _SWITCH, "accepted; weights keep their type"),
    *_noted(
        _SWITCH,
        _OWN,
        "multicast-weights aic-enable-depth-first use-producer-dma combine-inputs combine-outputs retained-state "
        "mxint8-kv-cache aic-userdma-async aic-hmx-async",
    ),
    *_noted(
        Takes.VALUE,
        _OWN,
        "mos ols aic-depth-first-mem size-split-granularity vtcm-working-set-limit-ratio allocator-dealloc-delay "
        "sdp-cluster-sizes node-precision-info keep-original-precision-for-nodes execute-nodes-in-fp16 "
        "custom-IO-list-file operators-supported external-quantization",
    ),
    *_noted(
        _SWITCH,
        _NONE,
        "time-passes v verbose aic-dump-dot-files enable-channelwise enable-rowwise io-crc host-preproc host-postproc",
    ),
    *_noted(
        Takes.VALUE,
        _NONE,
        "aic-op-stats-verbosity aic-profiling-start-iter aic-profiling-num-samples aic-profiling-out-dir "
        "compile-thread-count quantization-schema quantization-precision quantization-calibration load-profile",
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
    Flag(("write-output-num-samples", "write-output-start-iter"), "save_outputs", note=_SAME_INPUTS),
    Flag(("seed",), "seed"),  # ours
    Flag(("aic-device-id", "device-id", "d"), "", note="accepted; the device is simulated"),
    Flag(("D",), "", note="accepted; a program for several devices runs on as many simulated ones"),
    Flag(("unbound-random",), "", _SWITCH, _INPUTS),
    *_noted(
        Takes.VALUE,
        _INPUTS,
        "i input-file aic-batch-input aic-batch-json-input aic-batch-input-directory aic-batch-input-file-list",
    ),
    *_noted(
        Takes.VALUE,
        _NONE,
        "aic-profiling-duration aic-profiling-sampling-rate aic-profiling-reporting-rate r live-reporting-period "
        "submit-timeout submit-retry-count p pre-post-processing",
    ),
    *_noted(_SWITCH, _NONE, "l live-reporting s stats c v verbose"),
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
    output: Path
    target: str
    options: CompileOptions
    perf_metrics: bool
    perf_warnings: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunnerCall:
    """A `qaic-runner` line, in our words."""

    folder: Path
    options: RunOptions
    notes: tuple[str, ...]


def compile_call(words: Sequence[str]) -> CompileCall | None:
    """None when help is asked for."""
    found = read_words("qaic-compile", COMPILE, words)
    if found.help:
        return None
    level = found.number("stats_level", "-stats-level", least=0)
    if level is None:
        level = OP_LEVEL if "profiling" in found.values else THREAD_LEVEL
    return CompileCall(
        model=Path(_needed(found, "model", "qaic-compile", "-model=MODEL")),
        output=Path(_needed(found, "output", "qaic-compile", "-aic-binary-dir=DIR")),
        target=found.last("target") or DEFAULT_TARGET,
        options=CompileOptions(
            cores=found.number("cores", "-aic-num-cores"),
            batch=found.number("batch", "-batchsize"),
            shapes=_symbols(found) | _shapes(found) or None,
            precision="f16" if found.on("half") else None,
            stats_level=level,
            ddr_stats=found.on("ddr_stats"),
            pmu_recipe=found.last("pmu_recipe"),
            pmu_events=found.last("pmu_events"),
            stats_batchsize=found.number("stats_batchsize", "-stats-batchsize"),
        ),
        perf_metrics=found.on("perf_metrics"),
        perf_warnings=found.on("perf_warnings"),
        notes=tuple(found.notes),
    )


def runner_call(words: Sequence[str]) -> RunnerCall | None:
    """None when help is asked for."""
    found = read_words("qaic-runner", RUNNER, words)
    if found.help:
        return None
    outputs = found.last("output_dir")
    if outputs is not None and found.last("out_dir") not in (None, outputs):
        found.notes.append(
            f"-write-output-dir={outputs}: outputs go to -aic-profiling-out-dir, like all files of a run"
        )
    return RunnerCall(
        folder=Path(_needed(found, "folder", "qaic-runner", "--test-data=DIR")),
        options=RunOptions(
            num_iter=found.number("num_iter", "--num-iter"),
            time=found.seconds("time", "--time"),
            activations=found.number("activations", "-a") or 1,
            set_size=found.number("set_size", "-S") or 10,
            threads=found.number("threads", "-T") or 4,
            profile=tuple(dict.fromkeys(_profile(name) for name in found.values.get("profile", []))),
            out_dir=Path(found.last("out_dir") or outputs or "."),
            num_samples=found.number("num_samples", "--aic-profiling-num-samples") or 1,
            start_iter=found.number("start_iter", "--aic-profiling-start-iter", least=0) or 0,
            start_delay=found.seconds("start_delay", "--aic-profiling-start-delay") or 0.0,
            seed=found.number("seed", "--seed", least=0) or 0,
            save_outputs=outputs is not None or "save_outputs" in found.values,
        ),
        notes=tuple(found.notes),
    )


def compile_program(call: CompileCall) -> Compiled:
    from ...workflows.model_compiler import compile_model

    return compile_model(call.model, call.target, call.options, output=call.output)


def run_program(call: RunnerCall, *, progress: Callable[[int, int], None] | None = None) -> RunOutcome:
    from ...workflows import execution

    return execution.run_program(call.folder, call.options, progress=progress)


def _needed(found: Words, parameter: str, tool: str, flag: str) -> str:
    value = found.last(parameter)
    if not value:
        raise UsageError(f"{tool}: no {flag.partition('=')[0]}; expected {flag}")
    return value


def _profile(name: str) -> str:
    if name not in _PROFILES:
        raise UsageError(
            f"--aic-profiling-type={printable(name)}: not known; expected one of {', '.join(dict.fromkeys(_PROFILES))}"
        )
    return _PROFILES[name]


def _symbols(found: Words) -> dict[str, tuple[int, ...]]:
    """`-onnx-define-symbol=batch_size,8`: the size of a dimension that the model names."""
    sizes: dict[str, tuple[int, ...]] = {}
    for text in found.values.get("symbols", []):
        name, _, size = text.rpartition(",")
        if not name or not (size.isascii() and size.isdecimal()):
            raise UsageError(f"-onnx-define-symbol={printable(text)}: expected NAME,SIZE such as batch_size,8")
        sizes[name] = (int(size),)
    return sizes


def _shapes(found: Words) -> dict[str, tuple[int, ...]]:
    try:
        return dict(named_shape(text) for text in found.values.get("shapes", []))
    except ArgumentTypeError as error:
        raise UsageError(f"-shape: {printable(str(error))}") from None
