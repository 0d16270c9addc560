"""ONNX Runtime on the CPU of this machine, and its session profiles."""

from __future__ import annotations

from ...core.manifest import BackendEntry, Entry, Format, Manifest, Option, Signature
from ...core.measuring_options import CPU, MEASURING
from ...core.provenance import Provenance

BACKEND = BackendEntry(
    name="ort",
    title="ONNX Runtime on the CPU of this machine",
    place=".backend:OrtBackend",
    models=("onnx",),
    options=(
        *MEASURING,
        Option(
            "graph-optimization",
            "graph optimisations of the runtime (default all)",
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
    entries=(Entry(*CPU, BACKEND.name, (Provenance.MEASURED,), aliases=("this CPU",), group="This machine"),),
    formats=(
        Format(
            "onnxruntime",
            "ONNX Runtime session profile (onnxruntime_profile_*.json)",
            (
                Signature(
                    rb"\s*\[",
                    finds=(rb'"cat" ?: ?"(?:Session|Node)"', rb'"model_loading|_kernel_time'),
                    lacks=(rb'"qnn_event_type"',),  # another plug-in reads what that provider adds
                ),
            ),
            ".importer:OrtProfile",
        ),
    ),
)
