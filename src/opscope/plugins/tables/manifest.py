"""What TensorRT's and OpenVINO's own tools write: tables of ops, totals, timelines."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

MANIFEST = Manifest(
    name="tables",
    title="Files of TensorRT and OpenVINO",
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
            "tensorrt-times",
            "TensorRT times of every inference (trtexec --exportTimes)",
            (Signature(rb"\s*\[", contains=(b'"startEnqMs"', b'"startComputeMs"', b'"latencyMs"')),),
            ".tensorrt_times:TensorRtTimes",
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
            "OpenVINO benchmark_app totals (benchmark_report.csv, .json)",
            (
                Signature(rb"Command line parameters|Configuration setup", contains=(b"target device;",)),
                Signature(rb"\s*\{", contains=(b'"configuration_setup"', b'"execution_results"')),
            ),
            ".openvino:OpenVinoReport",
        ),
        Format(
            "openvino-npu",
            "OpenVINO NPU timeline (NPU_PRINT_PROFILING=JSON: profiling.json; prof_parser -f json)",
            (
                Signature(
                    rb"\s*\{",
                    contains=(b'"traceEvents"', b'"process_name"'),
                    finds=(
                        rb'"name"\s*:\s*"(?:DMA|UPA|M2I|Cluster(?: \(\d+\))?|Layers?)"\s*\}',
                        rb'"cat"\s*:\s*"(?:DMA|DPU|SW|Shave|M2I|UPA)"',
                    ),
                ),
            ),
            ".openvino_npu:OpenVinoNpu",
        ),
    ),
)
