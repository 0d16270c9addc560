"""Rockchip's RKNN: tables that its toolkit and its runtime print."""

from __future__ import annotations

from ...core.manifest import Format, Hint, Manifest, Signature

MANIFEST = Manifest(
    name="rknn",
    title="Rockchip RKNN",
    package=__package__,
    order=50,
    formats=(
        Format(
            "rknn-log",
            "Rockchip RKNN console output: eval_perf, eval_memory, verbose build, RKNN_LOG_LEVEL=4, rknn_benchmark",
            (
                Signature(finds=(rb"\bID[ \t]+OpType[ \t]+DataType[ \t]+Target\b",)),
                Signature(finds=(rb"Layer ID[ \t]+Name[ \t]+(?:Operator[ \t]+Uid[ \t]+)?Time\(us\)",)),
                Signature(finds=(rb"\bOpType[ \t]+Call ?Number[ \t]+CPU ?Time\(us\)",)),
                Signature(contains=(b"Memory Profile Info Dump",)),
                Signature(finds=(rb"Total Time\(us\):\s*\d", rb"FPS(?:\(\d+MHz\))?:\s*\d")),
                Signature(finds=(rb"Avg Time [\d.]+ ?ms, Avg FPS = \d|\d: Elapse Time = [\d.]+ms, FPS = \d",)),
                # the table may lie beyond what a format is told by: a build prints megabytes before it
                Signature(finds=(rb"(?m)^.{0,80}[DIWE] RKNN ?: \[\d\d:\d\d:\d\d",)),
            ),
            ".importer:RknnLog",
        ),
        Format(
            "rknn-csv",
            "Rockchip RKNN eval_perf.csv",
            (Signature(rb"ID,\s*OpType,\s*DataType,|\d+,InputOperator,\w+,(?:CPU|NPU|GPU),"),),
            ".importer:RknnCsv",
        ),
    ),
    hints=(
        Hint(
            (Signature(rb"(?:CYPT)?RKNN[\x00-\x08]"),),
            "a model compiled for Rockchip's NPU (.rknn)",
            "what the toolkit prints about it (`rknn.eval_perf()`), or the model that it was built from "
            "for `opscope profile`",
        ),
    ),
)
