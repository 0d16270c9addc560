"""Synaptics Torq: targets, command lines, `annotate`, and the files of its compiler and runtime."""

from __future__ import annotations

from ...core.manifest import (
    BackendEntry,
    Can,
    Entry,
    Environment,
    Example,
    Format,
    Hint,
    Manifest,
    Option,
    Signature,
    Unpacked,
    Verb,
)
from ...core.provenance import Provenance

_ID = rb'"?(?:DI\d|DO\d|S\d+(?:_\d+)?"?,|CSS\d|CDMA_)'
_COMPILE = rb"\s*(?:(?i:id\s*,\s*start\s*,\s*end\s*,)|(?=[^\r\n]*,[^\r\n]*,[^\r\n]*,)" + _ID + rb")"
_B_ID = rb'(?:\A\s*|[\r\n])"?(?:CSS\d|CDMA_|S\d+_\d)'
_B_BYTES = rb'(?:\A\s*|[\r\n])"?D[IO]\d[^\r\n]*,\d+(?:[\r\n]|\Z)'
_ACTIONS = rb"actionIndex,\s*elapsed_time\(us\),\s*timestamp\(us\),\s*event,\s*location[ \t]*(?:[\r\n]|\Z)"
_QUOTED = rb'\s*(?:[^,\r\n]*,){4}[ \t]*"loc\('  # the location of the first row

JOBS = Format(
    "torq-runtime",
    "Torq runtime CSV of jobs (id;time_since_open;time_since_start[;location])",
    (Signature(rb"(?i)id\s*;\s*time_since_open\s*;\s*time_since_start"),),
    ".importers.runtime_csv:TorqRuntime",
)
HOST_LOGS = {  # form → format
    "H1": Format(
        "torq-host-h1",
        "Torq host log, form H1 (actionIndex, …, location)",
        (Signature(_ACTIONS + rb"(?!" + _QUOTED + rb")"),),
        ".importers.host:H1",
    ),
    "H2": Format(
        "torq-host-h2",
        "Torq host log, form H2 (the same, location in quotes)",
        (Signature(_ACTIONS + _QUOTED),),
        ".importers.host:H2",
    ),
    "H3": Format(
        "torq-host",
        "Torq host log, form H3 (dispatch_name,…,event)",
        (Signature(rb"dispatch_name,\s*invocation_id,\s*action_id,\s*timestamp_us,\s*event[ \t]*(?:[\r\n]|\Z)"),),
        ".importers.host:H3",
    ),
}
ENVIRONMENT = Environment(
    "torq",
    "Synaptics' Torq compiler and runtime",
    programs=("torq-compile", "torq-run-module", "iree-opt", "iree-dump-module", "tosa-converter-for-tflite"),
    packages=(),
    unpacked=(
        Unpacked(
            ("torq-compiler==2.3.0", "torq-runtime==2.3.0"),
            python="3.12",
            platforms=("manylinux_2_39_x86_64", "manylinux_2_28_x86_64"),
        ),
        Unpacked(("tosa-converter-for-tflite==2026.2.0",), platforms=("manylinux_2_28_x86_64",)),
    ),
    licence="Apache-2.0 with LLVM exception",
    megabytes=480,
    systems=("linux-x86_64",),
    finish=".environment:finish",
    version_words=(),  # the compiler tells that of LLVM
)
PARTS = {  # as `--torq-hw` has it → the same, described; that of SR200 gives the very schedules of its name
    "SL2610": "1:512:2:coral_v1:nss_v1:8:0.65",
    "SR200": "1:256:1:coral_v1:nss_v1:4:0.66",
}
BACKEND = BackendEntry(
    name="torq",
    title="Synaptics Torq through its compiler, torq-compile",
    place=".compiler.backend:TorqBackend",
    can=frozenset({Can.CHROME_TRACE, Can.SUMMARY_FILES, Can.EXECUTE}),
    models=("tflite", "mlir"),
    precisions=("w8a8", "w8a16"),
    part="torq-hw",
    environment=ENVIRONMENT.name,
    options=(
        Option(
            "torq-hw",
            f"{' or '.join(PARTS)}, or your own hardware as fields separated by colons (default SL2610)",
            default="SL2610",
            metavar="HW",
        ),
        Option(
            "torq-clock-mhz",
            "clock that converts cycles to time (default 800 on SL2610; on others none, and only cycles are given)",
            metavar="MHZ",
        ),
        Option(
            "torq-prefetch",
            "how transfers overlap with work of the slices (default: the compiler's)",
            ("auto", "none", "constant-loads", "stream-schedule"),
        ),
        Option(
            "torq-fuse",
            "how the compiler fuses ops: max-size: larger tiles; max-producers: more ops in one (default: its own)",
            ("max-size", "max-producers", "only-patterns"),
        ),
        Option("torq-convert-dtypes", "let the compiler convert floats to bf16, which slices support", is_flag=True),
        Option("torq-flags", "more flags of torq-compile, as one argument", metavar="FLAGS"),
    ),
)
MANIFEST = Manifest(
    name="torq",
    title="Synaptics Torq",
    package=__package__,
    order=90,
    targets="targets",
    environments=(ENVIRONMENT,),
    backends=(BACKEND,),
    entries=tuple(
        Entry(
            f"torq-{part.lower()}",
            f"Synaptics {part}, Torq NPU",
            BACKEND.name,
            (Provenance.VENDOR_MODEL, Provenance.COMPILER_FACT),
            part=part,
        )
        for part in PARTS
    ),
    examples=(Example("profile", "opscope profile model.tflite --target torq-sl2610"),),
    verbs=(
        Verb(
            "annotate", "Join a compiler's dump with a runtime's log: units used, times, timeline", ".annotate.command"
        ),
        Verb("torq-compile", "Torq command line: compile", ".dialect.commands"),
        Verb("torq-run-module", "Torq command line: run", ".dialect.commands"),
        Verb("iree-run-module", "Torq command line: run, under its other name", ".dialect.commands"),
        Verb("annotate_profiling.py", "annotate with the arguments of the vendor's script", ".annotate.command"),
    ),
    hints=(
        Hint(
            (Signature(finds=(rb"\btorq_h[lw]\.",)),),
            "a dump of the Torq compiler (MLIR)",
            "`opscope annotate DUMP RUNTIME.csv OUT`, with the log of a run; `opscope import` takes the logs",
        ),
    ),
    formats=(
        Format(
            "torq-compile-a",
            "Torq compile-time CSV, form A (ID,start,end,location,type)",
            (Signature(_COMPILE, lacks=(_B_ID, _B_BYTES)),),
            ".importers.compile_csv:FORM_A",
        ),
        Format(
            "torq-compile-b",
            "Torq compile-time CSV, form B (as A, with bytes)",
            (Signature(_COMPILE, finds=(_B_ID,)), Signature(_COMPILE, finds=(_B_BYTES,))),
            ".importers.compile_csv:FORM_B",
        ),
        Format(
            "torq-compile-c",
            "Torq compile-time CSV, form C (taskId, elapsed_time(us), …)",
            (
                Signature(
                    rb"\s*(?:taskId|actionIndex),\s*elapsed_time\(us\),\s*timestamp\(us\),\s*event,\s*location,\s*bytes"
                ),
            ),
            ".importers.compile_csv:FORM_C",
        ),
        JOBS,
        *HOST_LOGS.values(),
    ),
)
