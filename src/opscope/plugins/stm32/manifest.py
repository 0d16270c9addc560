"""STM32: reports of ST Edge AI Core, and what its test applications print on a board."""

from __future__ import annotations

from itertools import combinations

from ...core.manifest import Format, Manifest, Signature

_KEYS = (b'"mpool_id"', b'"offset_start"', b'"is_param"', b'"memory_footprint"', b'"sw_functions"')
_NAMES = rb"ST Edge AI Core|ST\.EdgeAI\.Core|STM32Cube\.AI|Neural Network Tools for STM32(?:AI| family)?"
_FIRST_4K = rb"(?=[\s\S]{0,4096}?%b)"
_TEXT = rb"[^\x00]{4096}|[^\x00]*\Z"  # no zero byte among the first: not a firmware image that holds the words

MANIFEST = Manifest(
    name="stm32",
    title="STM32 and ST Edge AI Core",
    package=__package__,
    order=51,
    formats=(
        Format(
            "stedgeai-json",
            "ST Edge AI Core network_c_info.json",
            (  # two of its keys, or its name
                *(Signature(rb"\s*\{", contains=pair) for pair in combinations(_KEYS, 2)),
                Signature(rb"\s*\{", file_name="network_c_info.json"),
            ),
            ".stedgeai:StEdgeAiInfo",
        ),
        Format(
            "stedgeai-text",
            "ST Edge AI Core text report (network_analyze_report.txt, …generate…, …validate…)",
            (
                Signature(rb"\s*(?:" + _NAMES + rb")\s+v?\d"),
                Signature(_FIRST_4K % b"Exec/report summary" + _FIRST_4K % b"c_name"),
            ),
            ".stedgeai_text:StEdgeAiReport",
        ),
        Format(
            "stm32-console",
            "console log of ST's system performance application (aiSystemPerformance), of TensorFlow Lite Micro too",
            (
                Signature(_TEXT, finds=(rb"Results [^\n]{1,120}, \d+ inferences @\d+MHz/\d+MHz",)),
                Signature(_TEXT, finds=(rb"(?:Inference time by|Performance per) c-node", rb"time \(ms\)")),
            ),
            ".console:PerformanceLog",
        ),
    ),
)
