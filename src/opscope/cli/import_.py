"""The verb `import`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..commands.command import positive, write_result
from ..core.errors import UsageError, printable
from ..recording.imported import PROVENANCES

if TYPE_CHECKING:
    from ..recording.imported import Imported, ImportedOp, Metric


class ImportCommand:
    """Read profile files of other tools into a run, whatever their format: it is found by content."""

    examples = """\
examples:
  opscope import onnxruntime_profile.json -o run
  opscope import model_per-layer.csv model_summary_system.csv -o run
  opscope import trace.json.gz -o run --top 20
  opscope import compile.csv runtime.csv -o run
  opscope import runtime.csv -o run --provenance simulated
  opscope import --list

Several files make one run: give those that are about the same one. Exit codes: 0 fine, 2 unreadable or unknown.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="profile files about one run")
        parser.add_argument("-o", "--output", type=Path, metavar="RUN", help="folder of the run; none: print only")
        parser.add_argument("--format", metavar="NAME", help="take the files to be of this format (see --list)")
        parser.add_argument(
            "--provenance",
            choices=PROVENANCES,
            metavar="WORD",
            help=f"how the times were obtained, where the file cannot say: {', '.join(PROVENANCES)}",
        )
        parser.add_argument("--top", type=positive, default=10, metavar="N", help="ops to print (default 10)")
        parser.add_argument("--json", action="store_true", help="print everything as JSON")
        parser.add_argument("--list", action="store_true", help="print the formats that are known")

    def run(self, args: Namespace) -> int:
        """List the formats, or import the files and print what they contain."""
        from .. import api

        if args.list:
            write_result(_list, None)
            return 0
        if not args.files:
            raise UsageError("import: no file given; expected profile files, or --list for the formats that are known")
        imported = api.import_profile(
            args.files, args.output, form=args.format, provenance=args.provenance, command=("opscope", *sys.argv[1:])
        )
        write_result(lambda out: _json(imported, out) if args.json else _text(imported, args.top, out), None)
        for note in imported.notes:
            print(f"note: {printable(note, 1000)}", file=sys.stderr)
        if args.output is not None:
            print(f"wrote {args.output}", file=sys.stderr)
        return 0


def _list(out: TextIO) -> None:
    from ..importers.formats import formats
    from ..views.text.columns import pairs

    out.write("\n".join(pairs([(form.name, form.describe) for form in formats()], indent="")) + "\n")


def _json(imported: Imported, out: TextIO) -> None:
    from ..recording.imported_file import encode_imported

    out.write(encode_imported(imported).decode())


def _text(imported: Imported, top: int, out: TextIO) -> None:
    """Write the imported profile: header, ops, totals and checks."""
    from ..core.units import UNKNOWN, format_count, format_seconds
    from ..views.text.columns import pairs

    latency = imported.latency_ns
    head = [
        ("tool", imported.tool),
        ("model", imported.model or UNKNOWN),
        ("target", imported.target or UNKNOWN),
        ("provenance", imported.provenance),
        ("latency", format_seconds(None if latency is None else latency * 1e-9)),
        ("spans", format_count(len(imported.trace.spans)) if len(imported.trace.spans) else UNKNOWN),
        ("ops", format_count(len(imported.ops)) if imported.ops else UNKNOWN),
    ]
    lines = pairs([(name, printable(value, 200)) for name, value in head], indent="")
    if imported.ops:
        lines += ["", *_ops(imported, top)]
    if imported.metrics:
        lines += ["", "Totals", *pairs([(printable(m.name, 60), _value(m)) for m in imported.metrics])]
    if imported.checks:
        marks = [("ok" if c.holds else "VIOLATED", printable(f"{c.name} ({c.detail})", 400)) for c in imported.checks]
        lines += ["", "Checks", *pairs(marks)]
    out.write("\n".join(lines) + "\n")


def _ops(imported: Imported, top: int) -> list[str]:
    """Return the table of the costliest ops; with an estimate per op, its columns replace cycles and MACs."""
    from ..core.units import UNKNOWN, format_count, format_percent, format_seconds
    from ..views.text.columns import columns

    total_ns = sum(op.time_ns or 0 for op in imported.ops)
    ranked = sorted(imported.ops, key=lambda op: (-(op.time_ns or 0), -(op.cycles or 0), -(op.macs or 0)))[:top]

    modelled = any(op.estimated_ns is not None for op in imported.ops)

    def row(op: ImportedOp) -> tuple[str, ...]:
        share = None if op.time_ns is None or not total_ns else op.time_ns / total_ns
        seconds = None if op.time_ns is None else op.time_ns * 1e-9
        estimate = format_seconds(None if op.estimated_ns is None else op.estimated_ns * 1e-9)
        ratio = UNKNOWN if op.ratio is None else f"{op.ratio:,.3g}"
        return (
            op.name,
            op.type or UNKNOWN,
            op.engine or UNKNOWN,
            format_seconds(seconds),
            format_percent(share),
            *((estimate, ratio) if modelled else (format_count(op.cycles), format_count(op.macs))),
        )

    header = (
        "op",
        "type",
        "engine",
        "time",
        "share",
        *(("estimate", "time ÷ est.") if modelled else ("cycles", "MACs")),
    )
    table = columns(header, [row(op) for op in ranked], align="<<<>>>>", limits={0: 44, 1: 24, 2: 22})
    omitted = len(imported.ops) - len(ranked)
    return [*table, *([f"… and {omitted} more"] if omitted > 0 else [])]


def _value(metric: Metric) -> str:
    from ..core.units import format_bytes, format_seconds

    if metric.unit == "ns":
        return format_seconds(metric.value * 1e-9)
    if metric.unit == "bytes":
        return format_bytes(metric.value)
    if metric.unit == "Hz":
        return f"{metric.value / 1e6:,.6g} MHz"
    is_integer = float(metric.value).is_integer()
    return (f"{metric.value:,.0f}" if is_integer else f"{metric.value:,.6g}") + (
        f" {metric.unit}" if metric.unit != "1" else ""
    )


COMMANDS = {"import": ImportCommand()}
