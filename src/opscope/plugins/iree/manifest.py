"""Profiles that IREE exports."""

from __future__ import annotations

from ...core.manifest import Format, Hint, Manifest, Signature

MANIFEST = Manifest(
    name="iree",
    title="IREE",
    package=__package__,
    order=80,
    formats=(
        Format(
            "iree-perf",
            "IREE profile (iree-profile export --format=ireeperf-jsonl)",
            (Signature(rb'\s*\{[\s\S]{0,4096}?"ireeperf-jsonl"'),),
            ".iree_perf:IreePerf",
        ),
    ),
    hints=(
        Hint(
            (Signature(rb"IRPF"),),
            "a profile in IREE's binary form (.ireeprof)",
            "its export: `iree-profile export --format=ireeperf-jsonl --output=F.jsonl F.ireeprof`, to be imported",
        ),
        Hint(
            (Signature(contains=(b'"stream-aggregate"',)),),
            "statistics of IREE's compiler (--iree-scheduling-dump-statistics-format=json): counts, no times",
            "a profile of the module: run it with --device_profiling_output, then `iree-profile export`; "
            "or its model, for `opscope profile`",
        ),
        Hint(
            (Signature(rb"[\s\S]{4,8}IREE"),),
            "a compiled IREE module (.vmfb)",
            "a profile of it, or the model that it was compiled from for `opscope profile`",
        ),
    ),
)
