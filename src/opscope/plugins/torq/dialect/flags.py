"""Synaptics Torq: `torq-compile` and `torq-run-module` (or `iree-run-module`), as tables from their flags to ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....commands.vendor_flags import Flag, ParsedFlags, Takes, noted, read_words
from ....core.errors import UsageError, printable
from ....core.files import check_apart, write_bytes
from . import sequenced as slices
from .dump_writer import ExecutableTargets, debug_file, write_debug_info
from .hardware import hardware
from .tables import VERSIONS, compile_table, host_table, runtime_table

DEFAULT_TIMELINE = "timeline.csv"
_SWITCH = Takes.NOTHING
_OWN = "accepted; the simulated compiler decides this by itself"
_CONTENT = "accepted; the content of the file decides"
_NONE = "accepted; it has no effect here"


COMPILE: tuple[Flag, ...] = (
    Flag(("o",), "output"),
    Flag(("torq-enable-profiling",), "profiling", _SWITCH),
    Flag(("torq-dump-profiling",), "timeline"),
    Flag(("dump-compilation-phases-to",), "phases"),
    Flag(("torq-debug-info",), "debug"),
    Flag(("torq-hw", "hw"), "hw"),
    Flag(("csv-version",), "version"),  # ours: A (the manual's), B or C
    Flag(("precision",), "precision"),  # ours: what float tensors run as, such as bf16
    *noted(Takes.VALUE, _CONTENT, "iree-input-type"),
    *noted(
        Takes.VALUE,
        _NONE,
        "iree-hal-target-device iree-hal-target-backends torq-target-host-triple torq-target-host-cpu "
        "torq-target-host-cpu-features iree-opt-level",
    ),
    *noted(
        _SWITCH,
        _OWN,
        "torq-disable-slices torq-disable-css torq-disable-host torq-fallback-f32-to-host torq-disable-slicing "
        "torq-enable-torq-hl-tiling",
    ),
    *noted(_SWITCH, _NONE, "mlir-print-debuginfo mlir-print-op-generic torq-disable-ndl-cycle-check"),
)

RUN: tuple[Flag, ...] = (
    Flag(("module",), "module"),
    Flag(("input",), "input"),
    Flag(("function",), "function"),
    Flag(("torq_profile",), "profile"),
    Flag(("torq_profile_host",), "host"),
    Flag(("device",), "device"),
    Flag(("output",), "output"),
    Flag(("seed",), "seed"),  # ours
    *noted(Takes.VALUE, _NONE, "torq_hw_type torq_dump_dir torq_clock_mhz parameters task_topology_group_count"),
    *noted(_SWITCH, _NONE, "print_statistics trace_execution"),
)


@dataclass(frozen=True, slots=True)
class CompileCall:
    """A `torq-compile` line, in our words."""

    model: Path
    output: Path
    timeline: Path | None  # None: profiling is not asked for
    phases: Path | None
    debug: Path | None
    hw: str | None
    precision: str | None
    version: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunCall:
    """A `torq-run-module` line, in our words."""

    module: Path
    inputs: tuple[str, ...]
    function: str | None
    profile: Path | None
    host: Path | None
    outputs: tuple[str, ...]
    seed: int
    notes: tuple[str, ...]


def compile_call(words: Sequence[str]) -> CompileCall | None:
    """None when help is asked for."""
    found = read_words("torq-compile", COMPILE, words, positional="model")
    if found.help:
        return None
    models = found.values.get("model", [])
    if len(models) != 1:
        listed = f"{len(models)} model files" if models else "no model file"
        raise UsageError(f"torq-compile: {listed}; expected `torq-compile MODEL.mlir -o MODEL.vmfb`")
    version = (found.last("version") or VERSIONS[0]).upper()
    if version not in VERSIONS:
        raise UsageError(f"--csv-version={printable(version)}: not known; expected one of {', '.join(VERSIONS)}")
    timeline = found.last("timeline")
    if timeline is not None and not found.on("profiling"):
        found.notes.append("--torq-dump-profiling: no file without --torq-enable-profiling")
    return CompileCall(
        model=Path(models[0]),
        output=Path(_needed(found, "output", "torq-compile", "-o FILE")),
        timeline=Path(timeline or DEFAULT_TIMELINE) if found.on("profiling") else None,
        phases=_path(found, "phases"),
        debug=_path(found, "debug"),
        hw=found.last("hw"),
        precision=found.last("precision"),
        version=version,
        notes=tuple(found.notes),
    )


def run_call(words: Sequence[str], *, tool: str = "torq-run-module") -> RunCall | None:
    """None when help is asked for."""
    found = read_words(tool, RUN, words)
    if found.help:
        return None
    device = found.last("device")
    if device not in (None, "torq"):
        raise UsageError(f"--device={printable(device or '')}: not simulated here; expected torq")
    return RunCall(
        module=Path(_needed(found, "module", tool, "--module=FILE.vmfb")),
        inputs=tuple(found.values.get("input", [])),
        function=found.last("function"),
        profile=_path(found, "profile"),
        host=_path(found, "host"),
        outputs=tuple(found.values.get("output", [])),
        seed=found.number("seed", least=0) or 0,
        notes=tuple(found.notes),
    )


def _path(found: ParsedFlags, parameter: str) -> Path | None:
    value = found.last(parameter)
    return Path(value) if value else None


def _needed(found: ParsedFlags, parameter: str, tool: str, flag: str) -> str:
    value = found.last(parameter)
    if not value:
        raise UsageError(f"{tool}: no {flag.partition(' ')[0].partition('=')[0]}; expected {flag}")
    return value


def compile_program(call: CompileCall) -> tuple[slices.Scheduled, list[Path]]:
    """Compile, and write what is asked for; returns the files."""
    dump = None if call.phases is None else call.phases / f"{call.model.stem}.9.executable-targets.mlir"
    check_apart([path for path in (call.output, call.timeline, dump) if path is not None], [call.model])
    scheduled = slices.schedule_model(call.model, hardware(call.hw), precision=call.precision, phases=call.phases)
    if call.debug is not None:
        check_apart([debug_file(call.debug, scheduled), call.output], [call.model])
    slices.save_program(scheduled.program, call.output, call.model)
    written = [call.output]
    if call.timeline is not None:
        write_bytes(call.timeline, compile_table(scheduled, call.version).encode())
        written.append(call.timeline)
    if dump is not None:
        write_bytes(dump, ExecutableTargets(scheduled).render().encode())
        written.append(dump)
    if call.debug is not None:
        written.append(write_debug_info(call.debug, scheduled))
    return scheduled, written


def run_program(call: RunCall) -> tuple[slices.Ran, list[Path]]:
    """Run one inference, and write what is asked for; returns the files."""
    from .sequenced import load_buffers

    outputs = [Path(place[1:]) for place in call.outputs if place.startswith("@")]
    read = [Path(text.partition("@")[2]) for text in call.inputs if "@" in text]
    check_apart([path for path in (call.profile, call.host, *outputs) if path is not None], [call.module, *read])
    inputs = load_buffers(call.inputs)
    ran = slices.run_program(call.module, inputs, function=call.function, seed=call.seed)
    there = len(ran.program.outputs)
    if len(call.outputs) > there:
        raise UsageError(f"--output: given {len(call.outputs)} times; expected at most {there}, one per output")
    written = []
    for path, table in ((call.profile, runtime_table), (call.host, host_table)):
        if path is not None:
            write_bytes(path, table(ran).encode())
            written.append(path)
    written += slices.save_outputs(ran, call.outputs)
    return ran, written
