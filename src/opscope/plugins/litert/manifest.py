"""LiteRT (TensorFlow Lite) on the CPU of this machine, and what its benchmark tool prints."""

from __future__ import annotations

from ...core.manifest import BackendEntry, Entry, Format, Manifest, Option, Signature
from ...core.measuring_options import CPU, MEASURING
from ...core.provenance import Provenance

_TEXT = rb"[^\x00]{4096}|[^\x00]*\Z"  # no zero byte among the first: not a model file that holds the words
BACKEND = BackendEntry(
    name="litert",
    title="LiteRT (TensorFlow Lite) on the CPU of this machine",
    place=".backend:LitertBackend",
    models=("tflite",),
    options=(
        *MEASURING,
        Option(
            "kernels",
            "xnnpack: what an application gets; builtin and reference: the runtime's own, each op told "
            "exactly and with a timeline (default xnnpack)",
            ("xnnpack", "builtin", "reference"),
            "xnnpack",
        ),
    ),
)
MANIFEST = Manifest(
    name="litert",
    title="LiteRT (TensorFlow Lite)",
    package=__package__,
    order=40,
    backends=(BACKEND,),
    entries=(Entry(*CPU, BACKEND.name, (Provenance.MEASURED,), aliases=("this CPU",), group="This machine"),),
    formats=(
        Format(
            "tflite-benchmark",
            "TFLite / LiteRT benchmark_model with --enable_op_profiling=true (log or CSV)",
            tuple(
                Signature(_TEXT, contains=(mark,))
                for mark in (
                    b"Profiling Info for",
                    b"[node type]",
                    b"node type, ",
                    b"Inference timings in us:",
                    b"= BENCHMARK RESULTS =",
                )
            ),
            ".benchmark_importer:TfliteBenchmark",
        ),
    ),
)
