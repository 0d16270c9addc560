"""Tables of ops that other tools print: TensorRT, OpenVINO."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

MANIFEST = Manifest(
    name="tables",
    title="Tables of TensorRT and OpenVINO",
    package=__package__,
    order=50,
    formats=(
        Format(
            "tensorrt-profile",
            "TensorRT layer times (trtexec --exportProfile)",
            (Signature(rb"\s*\[", contains=(b'"averageMs"', b'"timeMs"')),),
            ".tensorrt:TensorRtProfile",
        ),
        Format(
            "tensorrt-layers",
            "TensorRT engine layers (trtexec --exportLayerInfo)",
            (Signature(rb'\s*\{\s*"Layers"\s*:\s*\['),),
            ".tensorrt:TensorRtLayers",
        ),
        Format(
            "openvino-counters",
            "OpenVINO benchmark_app counters (benchmark_average_counters_report.csv, …detailed…, …sort…; .json)",
            (
                Signature(rb"\s*\{", contains=(b'"real_time"', b'"detailed_performance"')),
                Signature(rb"\s*\{", contains=(b'"real_time"', b'"avg_performance"')),
                Signature(rb"layerName([;,])execStatus\1layerType\1execType"),
            ),
            ".openvino:OpenVinoCounters",
        ),
        Format(
            "openvino-report",
            "OpenVINO benchmark_app totals (benchmark_report.csv)",
            (Signature(rb"Command line parameters|Configuration setup", contains=(b"target device;",)),),
            ".openvino:OpenVinoReport",
        ),
    ),
)
