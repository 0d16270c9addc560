"""Profiles that IREE exports."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

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
)
