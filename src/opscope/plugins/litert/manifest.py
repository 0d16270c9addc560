"""LiteRT (TensorFlow Lite) on the CPU of this machine, and what its benchmark tool prints."""

from __future__ import annotations

from ...core.manifest import BackendEntry, Conversion, Entry, Environment, Form, Format, Manifest, Option, Signature
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
            "xnnpack: as an application runs; builtin, reference: the runtime's own kernels, with a "
            "timeline of every op (default xnnpack)",
            ("xnnpack", "builtin", "reference"),
            "xnnpack",
        ),
    ),
)
CONVERT = Environment(
    name="convert",
    title="ONNX to TFLite (onnx2tf) and float to int8 (ai-edge-quantizer)",
    programs=("onnx2tf", "aeq"),
    packages=(
        "onnx2tf==2.6.9",
        "ai-edge-quantizer==0.10.0",
        "ai-edge-litert==2.3.0",
        "numpy==2.2.6",
        "onnx==1.20.1",
        "onnxruntime==1.26.0",
        "onnxsim==0.6.5",
        "onnxoptimizer==0.4.2",
        "sne4onnx==2.0.1",
        "sng4onnx==2.0.1",
        "psutil==5.9.5",
        "protobuf==7.35.1",
        "ml-dtypes==0.5.4",
        "flatbuffers==25.12.19",
        "tqdm==4.67.1",
        "typing-extensions==4.16.0",
        "backports-strenum==1.2.8",
        "absl-py==2.5.1",
        "immutabledict==4.3.1",
        "scipy==1.17.1",
        "litert-lm-builder==0.18.1",
        "packaging==26.3",
    ),
    licence="MIT (onnx2tf), Apache-2.0 (ai-edge-quantizer, ai-edge-litert)",
    megabytes=500,
    python="3.12",
    with_dependencies=False,  # the two tools want different versions of what both work with
)
_QUANTISER = "ai-edge-quantizer"
CONVERSIONS = (
    Conversion(
        "onnx2tf",
        Form("onnx", "float"),
        Form("tflite", "float"),
        ".conversion.onnx_to_tflite:convert",
        CONVERT.name,
    ),
    *(
        Conversion(
            _QUANTISER,
            Form("tflite", "float"),
            Form("tflite", precision),
            ".conversion.quantise_tflite:convert",
            CONVERT.name,
        )
        for precision in ("w8a8", "w8a16")
    ),
)
MANIFEST = Manifest(
    name="litert",
    title="LiteRT (TensorFlow Lite)",
    package=__package__,
    order=40,
    backends=(BACKEND,),
    environments=(CONVERT,),
    conversions=CONVERSIONS,
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
