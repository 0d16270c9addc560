"""Timelines in Trace Event JSON: of PyTorch's profiler, and of any other tool."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

MANIFEST = Manifest(
    name="traces",
    title="Trace Event JSON and PyTorch's profiler",
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
