"""Qualcomm HTP: the vendor's compiler as a backend, what-ifs with it, and the files of its tools."""

from __future__ import annotations

import re

from ...core.converting_options import DATA_HELP, PRECISION_HELP
from ...core.manifest import (
    USUAL_SECTIONS,
    BackendEntry,
    Can,
    Example,
    Face,
    Format,
    Hint,
    Levels,
    Manifest,
    Option,
    Section,
    Signature,
    SummaryFile,
    TraceWords,
)

DEFAULT_SOC = "SA8255"
LEVELS: dict[str, tuple[Section, ...]] = {
    "basic": (),
    "detailed": USUAL_SECTIONS,
    "backend": (Section.LANES, Section.STAGES),
    "client": (Section.STAGES,),
    "linting": (Section.LANES, Section.WAITS, Section.PLACEMENT, Section.CAUSES),
    "optrace": (Section.LANES, Section.OPS, Section.KERNELS, Section.PLACEMENT, Section.CAUSES, Section.STAGES),
}
PERF_PROFILES = ("balanced", "high_performance", "extreme_performance", "burst")
PRECISIONS = ("as-is", "w8a8", "w8a16", "w4a8", "w4a16", "f16")
_ROOTS = re.escape(bytes(range(8, 256, 4)))
_LOG = (  # a length of 16 bytes to 2 GiB, then a FlatBuffer whose root, a multiple of 4, lies within 256 bytes
    rb"(?=[\s\S]{16})(?![\x00-\x0f]\x00\x00\x00)[\s\S]{3}[\x00-\x7f][" + _ROOTS + rb"]\x00{3}"
)
_OURS = rb'"otherData":\{"provenance":'  # timelines that opscope draws have the same words, in other units

BACKEND = BackendEntry(
    name="htp",
    title="Qualcomm HTP (Hexagon NPU) through onnxruntime-qnn",
    place=".backend:HtpBackend",
    can=frozenset(Can),
    what_if=".whatif:HtpWhatIf",
    axes=("soc", "vtcm-mb", "precision", "opt-level", "io-quant"),
    recipe=".recipe:QnnRecipe",
    models=("onnx",),
    part="soc",
    figures=".entries:figures_of",
    levels=Levels("profiling-level", tuple(LEVELS.items())),
    options=(
        Option(
            "soc",
            f"part: name, marketing name or id (default {DEFAULT_SOC})",
            default=DEFAULT_SOC,
            metavar="SOC",
        ),
        Option("profiling-level", "level of detail (default detailed)", tuple(LEVELS), "detailed"),
        Option(
            "perf-profile",
            "no effect, kept for scripts: estimates are for the highest clock",
            PERF_PROFILES,
            "balanced",
        ),
        Option("vtcm-mb", "VTCM that the compiler may use (default: all of the part's)", is_number=True, metavar="N"),
        Option("opt-level", "effort of the compiler, 0 to 3 (default: its own)", ("0", "1", "2", "3")),
        Option(
            "precision",
            PRECISION_HELP,
            PRECISIONS,
            "as-is",
            differs="htp: the quantised copy is kept in the run",
        ),
        Option("data", DATA_HELP, metavar="DIR|F.npz"),
        Option(
            "io-quant",
            "on: the accelerator quantises inputs and outputs; off: the CPU does (default on)",
            ("on", "off"),
            "on",
        ),
        Option(
            "proxy",
            "no effect, kept for scripts: a part without a vendor model always gets times of the nearest one",
            is_flag=True,
        ),
        Option("execute", "also run the model once in emulation and keep its outputs; gives no times", is_flag=True),
    ),
)
TRACE_WORDS = TraceWords(  # as in the op traces that the vendor's viewer makes of a device's files
    category="htp",
    ordinal="Place on Thread",
    arguments=(
        ("opName", "Model Node"),
        ("opShape", "Dims"),
        ("opPCycle", "Duration (cycles)"),
        ("pathCycles", "Dominant Path Cycles"),
        ("waitsOnName", "Waits For Model Node"),
        ("waitsOnEngine", "Waits For Thread"),
    ),
)
MANIFEST = Manifest(
    name="qnn",
    title="Qualcomm HTP (Hexagon NPU)",
    package=__package__,
    order=70,
    targets="targets",
    backends=(BACKEND,),
    entries=".entries:ENTRIES",
    examples=(
        Example("profile", "opscope profile model.onnx --target snapdragon-8-elite --precision w8a8"),
        Example("targets", "opscope targets --search snapdragon"),
        Example("whatif", "opscope whatif model.onnx --target sa8255,snapdragon-8-elite"),
        Example(
            "profile",
            "opscope profile model.onnx --backend htp --soc SM8650 --vtcm-mb 4 --profiling-level linting --advise",
        ),
        Example("profile", "opscope profile model.onnx --backend htp --output-chrome-trace --qhas html -o run"),
        Example("profile", "opscope profile model.onnx --backend htp --baseline run --max-regression 5%"),
        Example("whatif", "opscope whatif model.onnx --backend htp --vtcm-mb 1,2,4,8"),
        Example("whatif", "opscope whatif model.onnx --backend htp --soc SA8255,SA8797,SM8650"),
        Example(
            "whatif",
            "opscope whatif model.onnx --backend htp --precision as-is,w8a8,w8a16 --io-quant on,off -o runs",
        ),
    ),
    faces=(Face("HtpProfiler", ".profiler:HtpProfiler"),),
    trace_words=TRACE_WORDS,
    summary_files=(
        SummaryFile(
            "qhas",
            "write the analysis summary: MODEL.qhas.json or .html, or into RUN; may be repeated",
            ("json", "html"),
            ".qhas_files:analysis_summary",
        ),
    ),
    hints=(
        Hint(
            (
                Signature(rb"\xd5\n[\x02-\x04]\0|[\s\S]{4}(?:NETD|NETP|NR64)"),
                Signature(rb"PK", contains=(b"dlc.metadata",)),
            ),
            "a Qualcomm deep learning container (.dlc): a model, not a profile",
            "the profile that a device leaves when it runs it (CSV or log), or the ONNX model that it was made from, "
            "for `opscope profile MODEL.onnx --backend htp`",
        ),
    ),
    formats=(
        Format(
            "qnn-csv",
            "QNN profile CSV, of ONNX Runtime or of qnn-profile-viewer (7 or 8 columns)",
            (Signature(rb"Msg Timestamp,Message,Time"),),
            ".importers.device_files:QnnCsv",
        ),
        Format(
            "qnn-timeline",
            "ONNX Runtime session profile with the events of its QNN provider (onnxruntime_profile_*.json)",
            (Signature(rb"\s*\[", contains=(b'"qnn_event_type"',), finds=(rb'"cat" ?: ?"(?:Session|Node)"',)),),
            ".importers.session_timeline:QnnTimeline",
        ),
        Format(
            "qnn-qhas",
            "QNN HTP analysis summary (QHAS JSON)",
            (Signature(contains=(b'"QHAS"',)), Signature(contains=(b"htp_overall_summary",))),
            ".importers.device_files:QnnQhas",
        ),
        Format(
            "qnn-optrace",
            "QNN HTP op trace of a device (Chrome JSON of qnn-profile-viewer); with the QHAS file, times too",
            (
                Signature(contains=(b"OP_TRACE",)),
                Signature(contains=(b"traceEvents", b"HTP Op Type"), lacks=(_OURS,)),
                Signature(contains=(b"traceEvents", b"QNN Op"), lacks=(_OURS,)),
            ),
            ".importers.device_files:QnnOpTrace",
        ),
        Format(
            "qnn-profile-viewer",
            "text of qnn-profile-viewer",
            (Signature(contains=(b"Execute Stats",)), Signature(contains=(b" Stats", b"NetRun"))),
            ".importers.device_files:QnnViewerText",
        ),
        Format(
            "qnn-log",
            "QNN profile log (*_qnn.log, qnn-profiling-data_0.log), with schematics and op trace given or beside it",
            (Signature(_LOG, contains=(b"QNN",)),),
            ".importers.device_files:QnnLog",
            with_formats=("qnn-schematic", "qnn-op-mapping"),
        ),
        Format(
            "qnn-schematic",
            "schematic of the HTP compiler (*_schematic.bin): its decisions, no times; with the log, times too",
            (Signature(rb"# python_pprint_graph_summary"), Signature(rb"graph_before_optimization = \{")),
            ".importers.compiled_files:QnnSchematic",
            with_formats=("qnn-op-mapping",),
        ),
        Format(
            "qnn-op-mapping",
            "op trace of ONNX Runtime's QNN provider (qnn_op_trace.json): which nodes run where, and why",
            (Signature(rb"\s*\{", contains=(b'"subgraph_traces"',)),),
            ".importers.compiled_files:QnnOpMapping",
        ),
    ),
)
