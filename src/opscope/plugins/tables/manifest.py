"""Tables of ops that other tools print: ST Edge AI Core, TensorRT, OpenVINO."""

from __future__ import annotations

from itertools import combinations

from ...core.manifest import Format, Manifest, Signature

_ST_KEYS = (b'"mpool_id"', b'"offset_start"', b'"is_param"', b'"memory_footprint"', b'"sw_functions"')
_ST_NAMES = rb"ST Edge AI Core|ST\.EdgeAI\.Core|STM32Cube\.AI|Neural Network Tools for STM32(?:AI| family)?"
_FIRST_4K = rb"(?=[\s\S]{0,4096}?%b)"

MANIFEST = Manifest(
    name="tables",
    title="Tables of ST Edge AI Core, TensorRT and OpenVINO",
    package=__package__,
    order=50,
    formats=(
        Format(
            "stedgeai-json",
            "ST Edge AI Core network_c_info.json",
            (  # two of its keys, or its name
                *(Signature(rb"\s*\{", contains=pair) for pair in combinations(_ST_KEYS, 2)),
                Signature(rb"\s*\{", file_name="network_c_info.json"),
            ),
            ".stedgeai:StEdgeAiInfo",
        ),
        Format(
            "stedgeai-text",
            "ST Edge AI Core text report (network_analyze_report.txt, …generate…, …validate…)",
            (
                Signature(rb"\s*(?:" + _ST_NAMES + rb")\s+v?\d"),
                Signature(_FIRST_4K % b"Exec/report summary" + _FIRST_4K % b"c_name"),
            ),
            ".stedgeai_text:StEdgeAiReport",
        ),
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
