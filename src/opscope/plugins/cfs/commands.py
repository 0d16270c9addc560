"""opscope cfsai, opscope cfsutil"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ...commands.command import keep_input, write_result
from ...core.errors import UsageError

if TYPE_CHECKING:
    from .flags import Invocation


class CfsaiCommand:
    """The CodeFusion Studio command line of releases 2.0 and 2.1: a resource report or a compatibility check."""

    examples = """\
examples:
  opscope cfsai profile --model model.tflite --target MAX32690.CM4 --json-file profile.json --text-file profile.txt
  opscope cfsai compat --model model.tflite --target MAX78002
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["profile", "compat"], help="resource report, or compatibility check")
        parser.add_argument("--model", type=Path, required=True, metavar="M", help="model file")
        parser.add_argument("--target", required=True, metavar="SOC[(PKG)].CORE[.ACC]", help="such as MAX32690.CM4")
        parser.add_argument("--json-file", type=Path, metavar="F", help="write the report as JSON")
        parser.add_argument("--text-file", type=Path, metavar="F", help="profile only: write the report as text")

    def run(self, args: Namespace) -> int:
        from .flags import Invocation, target_name

        if args.action == "compat" and args.text_file is not None:
            raise UsageError("cfsai compat: --text-file is for profile; expected --json-file or neither")
        return _run(Invocation(args.action, args.model, target_name(args.target), args.text_file, args.json_file))


class CfsutilCommand:
    """The CodeFusion Studio command line of release 2.2: `cfsutil ai profile | compat`."""

    examples = """\
examples:
  opscope cfsutil ai profile --soc MAX32690 --core CM4 --model model.tflite
  opscope cfsutil ai compat --soc MAX78002 --core CM4 --model model.tflite --format json --report-file compat.json
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("group", choices=["ai"])
        parser.add_argument("action", choices=["profile", "compat"], help="resource report, or compatibility check")
        parser.add_argument("--model", type=Path, required=True, metavar="M", help="model file")
        parser.add_argument("--soc", required=True, help="part, such as MAX32690")
        parser.add_argument("--core", required=True, help="core, such as CM4")
        parser.add_argument("--package", help="accepted, without effect: the figures do not depend on it")
        parser.add_argument("--acc", help="accepted, without effect: the figures do not depend on it")
        parser.add_argument("--format", choices=["text", "json"], default="text", help="output format (default: text)")
        parser.add_argument("--report-format", choices=["text", "json"], help="profile only: format of the report file")
        parser.add_argument("--report-file", type=Path, metavar="F", help="file for the report")

    def run(self, args: Namespace) -> int:
        from .flags import Invocation, target_name

        form = args.report_format or args.format
        text, document = (args.report_file, None) if form == "text" else (None, args.report_file)
        invocation = Invocation(args.action, args.model, target_name(f"{args.soc}.{args.core}"), text, document)
        return _run(invocation, json_to_stdout=form == "json" and args.report_file is None)


def _run(invocation: Invocation, *, json_to_stdout: bool = False) -> int:
    """Print the tables or the JSON of a call, and write the files that it asks for."""
    from . import flags as cfs

    for output in (invocation.text, invocation.json):
        keep_input(output, invocation.model)
    if invocation.action == "profile":
        from .tables import ReportTables

        report = cfs.profile(invocation)
        document = cfs.profile_document(report)

        def write(out: TextIO) -> None:
            ReportTables().render(report, out)

    else:
        graph, found = cfs.compat(invocation)
        document = cfs.compat_document(graph, found, invocation.target)
        text = cfs.compat_text(graph, found, invocation.target)

        def write(out: TextIO) -> None:
            print(text, end="", file=out)

    if invocation.json is not None or json_to_stdout:
        write_result(lambda out: print(json.dumps(document, indent=2), file=out), invocation.json)
    if not json_to_stdout and (invocation.text is not None or invocation.json is None):
        write_result(write, invocation.text)
    return 0


COMMANDS = {"cfsai": CfsaiCommand(), "cfsutil": CfsutilCommand()}
