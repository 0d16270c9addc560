"""ONNX Runtime on the CPU of this machine, and its session profiles."""

from __future__ import annotations

from ...core.manifest import BackendEntry, Format, Manifest, Option, Signature
from ...core.measuring_options import MEASURING

BACKEND = BackendEntry(
    name="ort",
    title="ONNX Runtime on the CPU of this machine",
    place=".backend:OrtBackend",
    options=(
        *MEASURING,
        Option(
            "graph-optimization",
            "how far the runtime may change the graph (default all)",
            ("none", "basic", "extended", "all"),
            "all",
        ),
    ),
)
MANIFEST = Manifest(
    name="ort",
    title="ONNX Runtime",
    package=__package__,
    order=10,
    backends=(BACKEND,),
    formats=(
        Format(
            "onnxruntime",
            "ONNX Runtime session profile (onnxruntime_profile_*.json)",
            (Signature(rb"\s*\[", finds=(rb'"cat" ?: ?"(?:Session|Node)"', rb'"model_loading|_kernel_time')),),
            ".importer:OrtProfile",
        ),
    ),
)
