"""Qualcomm Cloud AI: targets, command lines, files of its tools, and a session in Python."""

from __future__ import annotations

from ...core.manifest import Face, Format, Manifest, Signature, Verb

MANIFEST = Manifest(
    name="qaic",
    title="Qualcomm Cloud AI",
    package=__package__,
    order=60,
    targets="targets",
    faces=(Face("Session", ".session:Session"),),
    verbs=(
        Verb("qaic-compile", "Cloud AI command line: compile", ".commands"),
        Verb("qaic-exec", "Cloud AI command line: compile, by its older name", ".commands"),
        Verb("qaic-runner", "Cloud AI command line: run", ".commands"),
        Verb("qaic-opstats", "Cloud AI command line: decode", same_as="opstats"),
    ),
    formats=(
        Format(
            "qaic-summary",
            "qaic-opstats summary (…-inf-N.txt, *.qaic-opstats.summary.txt)",
            (Signature(contains=(b"ucycles(%)",)), Signature(contains=(b" ucycles [", b"% utilization"))),
            ".summary_importer:OpstatsSummary",
        ),
        Format(
            "qaic-runner-stdout",
            "qaic-runner standard output (---- Stats ----)",
            (Signature(contains=(b"InferenceCnt ", b"TotalDuration ")),),
            ".runner_files:RunnerStdout",
        ),
        Format(
            "qaic-latency",
            "qaic-runner latency file (aic-profiling-program-N-latency.txt)",
            (Signature(rb"Profiling Data[\s\S]{0,4096}?NumSamples"),),
            ".runner_files:LatencyFile",
        ),
        Format(
            "qaic-latency-percentiles",
            "percentiles of a qaic-runner latency file (mean min 50% … max)",
            (Signature(rb"[\s\S]{0,4096}?50%", contains=(b"hostRoundTrip ", b"execToComplete ")),),
            ".runner_files:LatencyPercentiles",
        ),
        Format(
            "qaic-compile-metrics",
            "Cloud AI compiler's memory metrics (-aic-perf-metrics)",
            (Signature(contains=(b"Compiler estimated memory traffic:",), finds=(rb" traffic\s+(?:read|write):",)),),
            ".compile_metrics:CompileMetrics",
        ),
    ),
)
