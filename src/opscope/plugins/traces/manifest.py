"""Timelines in Trace Event JSON, of PyTorch's profiler and of any other tool; and logs of power beside them."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

MANIFEST = Manifest(
    name="traces",
    title="Trace Event JSON, PyTorch's profiler, logs of power",
    package=__package__,
    order=20,
    formats=(
        Format(
            "kineto",
            "PyTorch profiler trace (Kineto JSON, plain or gzip)",
            tuple(
                Signature(rb"\s*\{", contains=(b'"schemaVersion"', word))
                for word in (b'"cpu_op"', b'"baseTimeNanoseconds"', b'"record_shapes"', b'"deviceProperties"')
            ),
            ".kineto:Kineto",
        ),
        Format(
            "power-log",
            "power over time (CSV or JSON): a bench meter's, or of a sampler beside a measurement",
            (
                Signature(rb"(?i)[^\n]*\btime", finds=(rb"(?i)\A[^\n]*(watts|power|\bamperes\b)", rb"\A[^\n{}]*,")),
                Signature(rb"\s*\[\s*\{", finds=(rb'(?i)"time', rb'(?i)"(watts|milliwatts|power_|amperes)')),
            ),
            ".power_log:PowerLog",
        ),
        Format(
            "trace-events",
            "Trace Event JSON of any tool (Chrome, Perfetto): object or array, plain or gzip",
            (
                Signature(rb"\s*\{", contains=(b'"traceEvents"',)),
                Signature(rb"\s*\[", finds=(rb'"ph"\s*:\s*"',)),
            ),
            ".trace_json:TraceJson",
            is_generic=True,
        ),
    ),
)
