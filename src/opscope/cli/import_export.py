"""The verbs `import` and `export`: files of other programs into a run, and a run into files of theirs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TextIO

from ..commands.command import command_line, positive, write_result
from ..commands.outcomes import show_profile
from ..core.errors import UsageError
from ..core.provenance import Provenance
from ..core.units import parse_hertz

ALIGN = ("clock", "marker", "activity")
PROVENANCES = tuple(word for word in Provenance if word not in (Provenance.CALIBRATED, Provenance.EMULATED))


class ImportCommand:
    """Read profile files of other tools into a run. The format is detected by content."""

    examples = """\
examples:
  opscope import onnxruntime_profile.json -o run
  opscope import model_per-layer.csv model_summary_system.csv -o run
  opscope import trace.json.gz -o run --top 20
  opscope import compile.csv runtime.csv -o run
  opscope import runtime.csv -o run --provenance simulated
  opscope import board.log -o run --clock 120MHz
  opscope import trace.json power.csv -o run --align activity
  opscope import measured.run power.csv -o with-power.run
  opscope import --list

Several files make one run: give files of the same execution. Exit codes: 0 fine, 2 unreadable or unknown format.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files",
            nargs="*",
            type=Path,
            metavar="FILE",
            help="profile files of one run; or a run and a power log",
        )
        parser.add_argument(
            "-o", "--output", type=Path, metavar="RUN", help="folder of the run to write (default: print only)"
        )
        parser.add_argument(
            "--format", metavar="NAME", help="format of the files (default: found by content; see --list)"
        )
        parser.add_argument(
            "--provenance",
            choices=PROVENANCES,
            metavar="WORD",
            help=f"how the times were obtained, if the file does not tell: {', '.join(PROVENANCES)}",
        )
        parser.add_argument(
            "--clock", metavar="HZ", help="clock of the cycles in the file, if it does not tell: 120MHz"
        )
        parser.add_argument(
            "--align",
            choices=ALIGN,
            help="how to align a power log with the timeline (default: by its marker, else as on one clock, "
            "else by activity)",
        )
        parser.add_argument("--top", type=positive, default=10, metavar="N", help="ops to print (default 10)")
        parser.add_argument("--json", action="store_true", help="print everything as JSON")
        parser.add_argument("--list", action="store_true", help="list the known formats")

    def run(self, args: Namespace) -> int:
        """List the formats, or import the files and print what they contain."""
        from .. import api

        if args.list:
            write_result(_list, None)
            return 0
        if not args.files:
            raise UsageError("import: no file given; expected profile files, or --list for the formats that are known")
        recorded = api.import_profile(
            args.files,
            args.output,
            form=args.format,
            provenance=args.provenance,
            clock_hz=None if args.clock is None else parse_hertz(args.clock),
            align=args.align,
            command=command_line(),
        )
        show_profile(recorded, as_json=args.json, top=args.top, more="--top N")
        if args.output is not None:
            print(f"wrote {args.output}", file=sys.stderr)
        return 0


def _list(out: TextIO) -> None:
    from ..importers.formats import formats
    from ..views.text.columns import pairs

    out.write("\n".join(pairs([(form.name, form.describe) for form in formats()], indent="")) + "\n")


class ExportCommand:
    """Write a run for another program: tables, node data, benchmark files, timelines."""

    examples = """\
examples:
  opscope export bert.run --format csv -o ops.csv
  opscope export bert.run --format csv --table spans -o spans.csv
  opscope export bert.run --format xlsx -o bert.xlsx
  opscope export base.run new.run --format xlsx -o compared.xlsx
  opscope export bert.run --format model-explorer -o times.json
  opscope export bert.run --format model-explorer --table findings -o findings.json
  opscope export bert.run --format pytest-benchmark -o bench.json
  opscope export bert.run --format perfetto -o bert.pftrace
  opscope export bert.run --format csv --list

Tables of a store: `opscope store export`. Exit codes: 0 fine, 2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from ..workflows.exporting import FORMS

        words = "; ".join(f"{name}: {form.help}" for name, form in FORMS.items())
        parser.add_argument(
            "runs", nargs="+", type=Path, metavar="RUN", help="a run, or two to export their comparison"
        )
        parser.add_argument("--format", required=True, choices=tuple(FORMS), metavar="NAME", help=words)
        parser.add_argument("--table", metavar="NAME", help="table to write, if the format has several (see --list)")
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write")
        parser.add_argument("--list", action="store_true", help="list the tables of the run")

    def run(self, args: Namespace) -> int:
        """List the tables, or write the file."""
        from ..workflows.exporting import export, tables_of

        if args.list:
            names = tables_of(args.runs, form=args.format)
            write_result(lambda out: print(*names, sep="\n", file=out), None)
            return 0
        if args.output is None:
            raise UsageError("export: no file given; expected -o FILE, or --list for the tables that there are")
        print(f"wrote {export(args.runs, args.output, form=args.format, table=args.table)}", file=sys.stderr)
        return 0


COMMANDS = {"import": ImportCommand(), "export": ExportCommand()}
