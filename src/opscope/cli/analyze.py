"""The verb `analyze`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..commands.command import positive, write_result
from ..core.errors import UsageError
from ..core.meaning import COMPARED_BY, ROLLUPS

if TYPE_CHECKING:
    from ..recording.finding import Findings
    from ..recording.run import Run


class AnalyzeCommand:
    """Print what bounds a run and why, what to change, and the most that each change can gain. A run is the folder that
    profile, opstats or import wrote; findings.json is kept in it. A profile file of another tool is read first, and a
    model is profiled first, which needs --target."""

    examples = """\
examples:
  opscope analyze profile.run
  opscope analyze profile.run --by block --top 20
  opscope analyze profile.run --path
  opscope analyze profile.run --json
  opscope analyze model.onnx --target aic100-std
  opscope analyze trace.json
  opscope analyze profile.run --what-if "bandwidth*2" --what-if "op:/layer.0/MatMul=0"

A what-if simulates the run again with the change made: bandwidth*2, bandwidth:ROUTE*2, clock*1.5, op:NAME=0 and
op:NAME*0.5 keep the program; cores=8, devices=2, batch=4, precision=i8, kv-cache=mxint8 compile it again. Several
changes are made together. Exit codes: 0 fine, 2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "places",
            nargs="+",
            type=Path,
            metavar="RUN|FILE|MODEL",
            help="folder of a run, a profile file of another tool, or a model file",
        )
        parser.add_argument("--target", metavar="T", help="hardware to profile a model on (see `opscope targets`)")
        parser.add_argument(
            "--top", type=positive, default=8, metavar="N", help="findings and rows to print (default 8)"
        )
        parser.add_argument("--by", choices=ROLLUPS, default="op", help="group ops by this (default op)")
        parser.add_argument("--path", action="store_true", help="print every step of the critical path")
        parser.add_argument(
            "--what-if",
            action="append",
            default=[],
            metavar="CHANGE",
            help="simulate the run again with a change, and print the difference; may be repeated",
        )
        parser.add_argument("--json", action="store_true", help="print everything as JSON")

    def run(self, args: Namespace) -> int:
        """Analyse each place and print its findings; with --what-if, print the effect of the changes."""
        from .. import api

        if args.target is not None and all(place.is_dir() for place in args.places):
            raise UsageError("--target: a run has its own; expected it with a model file only")
        if args.what_if:
            return _what_if(args)
        found = [api.analyze(place, target=args.target) for place in args.places]
        if args.json:
            write_result(lambda out: _json([findings for _, findings in found], out), None)
        else:
            write_result(lambda out: _text(found, args, out), None)
        for place in args.places:
            if place.is_dir():
                print(f"wrote {place / 'findings.json'}", file=sys.stderr)
        return 0


def _what_if(args: Namespace) -> int:
    """Print the difference between the run and the run with the changes applied."""
    from .. import api
    from ..views.json.compare_json import CompareJson
    from ..views.text.compare_text import CompareText
    from ..workflows.comparing import figures_of

    if len(args.places) != 1:
        raise UsageError("--what-if: changes are made to one run; expected one folder")
    if args.path:
        raise UsageError("--path: a what-if prints a difference, which has no path; expected one of the two")
    if args.by not in COMPARED_BY:
        raise UsageError(f"--by {args.by}: a what-if has no difference by it; expected one of {', '.join(COMPARED_BY)}")
    before, after = api.what_if_run(args.places[0], args.what_if)
    labelled = (figures_of(before, label="as it was"), figures_of(after, label=", ".join(args.what_if)))
    found = api.compare(*labelled, allow=("batch",))
    view = CompareJson() if args.json else CompareText(by=args.by, top=args.top)
    write_result(lambda out: view.render(found, out), None)
    return 0


def _json(found: list[Findings], out: TextIO) -> None:
    """Write one object, or a list if there are several places."""
    import msgspec

    from ..recording.findings_file import findings_fields

    fields = [findings_fields(findings) for findings in found]
    body = msgspec.json.encode(fields[0] if len(fields) == 1 else fields)
    out.write(msgspec.json.format(body, indent=2).decode() + "\n")


def _text(found: list[tuple[Run, Findings]], args: Namespace, out: TextIO) -> None:
    from ..commands.command import wants_colour
    from ..views.text.findings_text import FindingsText

    view = FindingsText(top=args.top, by=args.by, path=args.path, colour=wants_colour(sys.stdout))
    for number, (run, findings) in enumerate(found):
        out.write("\n\n" if number else "")
        view.render(run, findings, out)


COMMANDS = {"analyze": AnalyzeCommand()}
