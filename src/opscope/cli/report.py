"""The verb `report`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.command import MODEL_HELP, add_format, command_line, keep_input, positive, print_checks, write_result
from ..commands.options import add_options, options_from
from ..core.errors import UsageError
from ..core.plugins import manifests
from ..options import ReportOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from ..estimate.report import Report

FORMATS = ("text", "json", "md", "html", "svg")


class ReportCommand:
    """Estimate a model on a target: memory and whether it fits, latency, energy, the cost of every layer, what to
    change."""

    examples = """\
examples:
  opscope report kws.tflite --target max32690-cm4
  opscope report bert.onnx --target aic100-std --batch 8 --cores 2
  opscope report model.onnx --target ./mychip.toml --shape input=1x3x224x224 --format html -o report.html
  opscope report model.tflite --target max78002-cm4 --budget ram=256KB,flash=1MB,latency=20ms

Exit codes: 0 fine, 1 a budget is exceeded, 2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        styles = [style.name for manifest in manifests() for style in manifest.report_styles]
        parser.add_argument("model", type=Path, metavar="MODEL", help=MODEL_HELP)
        parser.add_argument("--target", required=True, metavar="T", help="name (see `opscope targets`) or TOML file")
        add_format(parser, FORMATS, "output format (default: text); svg: a drawing of the arena")
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: stdout)")
        parser.add_argument(
            "--top", type=positive, default=15, metavar="N", help="layers to print in text and md (default 15)"
        )
        parser.add_argument("--all", action="store_true", help="print every layer, in order")
        add_options(parser, ReportOptions)
        parser.add_argument(
            "--budget",
            metavar="ram=512KB,flash=1MB,latency=20ms,energy=1mJ,cpu-share=10%",
            help="exit 1 if one of these limits is exceeded",
        )
        parser.add_argument("--compat", choices=styles, help="count and print as a vendor's tool does")

    def run(self, args: Namespace) -> int:
        """Write the report; return 1 if a limit of --budget is exceeded."""
        from .. import api
        from ..gate.budget import judge, parse_budget

        keep_input(args.output, args.model)
        limits = parse_budget(args.budget) if args.budget else {}
        options = options_from(args, ReportOptions, fingerprint=args.format in ("json", "html"))
        if args.compat:
            report = api.styled_report(args.model, args.target, args.compat, options)
        else:
            report = api.report(args.model, target=args.target, options=options)
        write_result(_renderer(report, args), args.output)
        return print_checks(judge(report, limits))


def _renderer(report: Report, args: Namespace) -> Callable[[TextIO], None]:
    """Return the function that writes the report in the requested format; only its view is imported."""
    top = None if args.all else args.top
    if args.format == "json":
        from ..views.json.report_json import ReportJson

        return lambda out: ReportJson().render(report, out)
    if args.format == "md":
        from ..views.text.report_markdown import ReportMarkdown

        return lambda out: ReportMarkdown(top=top).render(report, out)
    if args.format == "html":
        from .. import api
        from ..views.page.page import RunPage

        recorded = api.report_run(report, command=command_line())
        return lambda out: RunPage().render(recorded.run, recorded.findings, out)
    if args.format == "svg":
        if not report.arena:
            raise UsageError("--format svg: no arena was planned; expected a model with tensors, and no --compat")
        from ..views.page.arena_picture import ArenaPicture

        return lambda out: ArenaPicture().render(report, out)
    if args.compat:
        from ..workflows.reporting import load_style

        style = load_style(args.compat)
        return lambda out: style.render(report, out)
    from ..views.text.report_text import ReportText

    return lambda out: ReportText(top=top).render(report, out)


COMMANDS = {"report": ReportCommand()}
