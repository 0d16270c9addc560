"""The verb `bakeoff`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.command import MODEL_HELP, add_format, listed, write_result
from ..commands.options import add_options, options_from
from ..core.errors import UsageError, printable
from ..options import BakeoffOptions
from .sweep import ProgressDisplay

if TYPE_CHECKING:
    from typing import TextIO

    from ..selection.rows import Bakeoff

FORMATS = ("text", "md", "json", "html")
_DOCUMENTS = {".html": "html", ".md": "md", ".json": "json", ".txt": "text"}


class BakeoffCommand:
    """Compare a model on many chips: one row for each compiler, runtime and target that works here. Rows are ranked
    within one kind of number (measured, simulated, …), never across kinds. With -o the rows are kept and not run
    again."""

    examples = """\
examples:
  opscope bakeoff kws.tflite
  opscope bakeoff model.onnx --on 'cpu,ethos-u*,stm32n6' --precision as-is,i8 -o bakeoff.store
  opscope bakeoff model.onnx --on all --format html > bakeoff.html
  opscope bakeoff kws.tflite --budget latency=5ms,ram=256KB

Exit codes: 0 fine, 1 no row is within the budget, 2 wrong usage, unreadable input or no figures at all, 130
interrupted: with -o, finished rows are kept.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=Path, metavar="MODEL", help=MODEL_HELP)
        parser.add_argument(
            "--on",
            metavar="all|LIST",
            help="chips, patterns (ethos-u*), groups or backends (default: the best-known chips of each group)",
        )
        add_options(parser, BakeoffOptions)
        parser.add_argument(
            "-o", "--output", metavar="STORE", help="store to keep the rows in; rows that it has are not run again"
        )
        add_format(parser, FORMATS)
        parser.add_argument(
            "--budget",
            metavar="latency=20ms,ram=512KB,energy=1mJ,cpu-share=10%",
            help="exit 1 if no row is within these limits",
        )

    def run(self, args: Namespace) -> int:
        from ..selection.bakeoff import bakeoff
        from ..selection.rows import parse_limits, within

        limits = parse_limits(args.budget) if args.budget else {}
        on, options = listed("on", args.on) if args.on else (), options_from(args, BakeoffOptions)
        if args.output and Path(args.output).suffix.lower() in _DOCUMENTS:
            form = _DOCUMENTS[Path(args.output).suffix.lower()]
            what = f"-o {printable(args.output)}: is the name of a document, and -o is a store"
            raise UsageError(f"{what}; expected a folder, or `--format {form} > {printable(args.output)}`")
        display = ProgressDisplay(args.output or "", reasons=False)  # which the table has
        try:
            found = bakeoff(
                args.model,
                on,
                store=args.output,
                options=options,
                started=display.start,
                progress=display.show,
            )
        finally:
            display.end()
        write_result(_renderer(found, args.format), None)
        if args.output:
            print(f"wrote {args.output}", file=sys.stderr)
        if not found.kinds:
            raise UsageError(f"{args.model}: no row has a latency; expected a chip that takes it (see the reasons)")
        if not limits:
            return 0
        met = [row for row in found.rows if within(row, limits)]
        chips = ", ".join(f"{row.target} by {row.backend} ({row.provenance})" for row in met)
        print(f"ok    within the budget: {chips}" if met else "FAIL  no row is within the budget", file=sys.stderr)
        return 0 if met else 1


def _renderer(found: Bakeoff, form: str) -> Callable[[TextIO], None]:
    """What writes it; only its view is imported."""
    if form == "html":
        from ..selection.page import BakeoffPage

        return lambda out: BakeoffPage().render(found, out)
    from ..selection.views import BakeoffJson, BakeoffMarkdown, BakeoffText

    views = {"text": BakeoffText().render, "md": BakeoffMarkdown().render, "json": BakeoffJson().render}
    return lambda out: views[form](found, out)


COMMANDS = {"bakeoff": BakeoffCommand()}
