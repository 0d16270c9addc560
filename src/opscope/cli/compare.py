"""The verb `compare`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.command import View, add_format, positive, write_result
from ..core.errors import UsageError, printable
from ..core.meaning import ALLOWABLE, COMPARED_BY
from ..options import comma_list

if TYPE_CHECKING:
    from ..gate.comparison import Comparison, SideBySide
    from ..gate.figures import Figures
    from ..recording.run import Run

FORMATS = ("text", "json", "md", "junit", "github")
SIDE_FORMATS = ("text", "md", "json")
EXIT_CODES = {"pass": 0, "fail": 1, "unknown": 2}


class CompareCommand:
    """Compare runs: what differs, which ops explain it, and whether limits hold."""

    examples = """\
examples:
  opscope compare base.run new.run
  opscope compare baseline.json new.run --fail-on "latency>5%" --fail-on "peak_memory>0"
  opscope compare base.run new.run --fail-on "op:/layer.0/MatMul>100us" --format md -o comment.md
  opscope compare std.run pro.run ultra.run --by type
  opscope compare estimate.run measured.run --page apart.html
  opscope compare old-trace.json new-trace.json
  opscope compare fleet.store:4f2a91c new.run

BASE and NEW are folders of runs, profile files of other tools, baseline files, or cells of a store by their commit. A
limit is METRIC[:SELECTOR] > or < CHANGE, relative (5%) or absolute (100us, 64KB, 0). Exact runs are compared exactly;
measured ones fail only where the samples leave no doubt.
Exit codes: 0 pass, 1 regression or a total that an op of unknown cost is part of, 2 not comparable.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "runs", nargs="+", metavar="RUN", help="base run and new run; or three and more, side by side"
        )
        add_gate_arguments(parser)
        parser.add_argument("--side-by-side", action="store_true", help="print a column per run, without a verdict")
        parser.add_argument(
            "--page", type=Path, metavar="FILE", help="also write an HTML page: timelines, and the ratio of every op"
        )

    def run(self, args: Namespace) -> int:
        from .. import api

        if args.page is not None:
            _write_page([Path(run) for run in args.runs], args.page)
        if len(args.runs) != 2 or args.side_by_side:
            return _columns(api.side_by_side(args.runs, by=args.by), args)
        try:
            return show(api.compare(*args.runs, fail_on=args.fail_on, allow=args.allow), args)
        except UsageError:  # of a prediction and a measurement there is no verdict, but how far they are apart
            found = None if args.fail_on or args.allow else api.side_by_side(args.runs, by=args.by)
            if found is None or not found.families or args.format not in SIDE_FORMATS:
                raise
        return _columns(found, args)


def _write_page(runs: list[Path], page: Path) -> None:
    from ..core.files import write_whole
    from ..workflows.viewing import looks_like_run, open_folder, write_compare_page

    for run in runs:
        if not looks_like_run(run):
            raise UsageError(f"--page: {printable(str(run))} is no folder of a run; expected what `profile -o` leaves")
    labelled = [(run.name, open_folder(run)) for run in runs]
    write_whole(page, lambda out: write_compare_page(labelled, out))
    print(f"wrote {page}", file=sys.stderr)


def add_gate_arguments(parser: ArgumentParser) -> None:
    """Add the options that `compare` and `baseline check` share."""
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="LIMIT",
        help='exit 1 on such a change: "latency>5%%"; may be repeated',
    )
    parser.add_argument(
        "--allow",
        type=comma_list,
        action="extend",
        default=[],
        metavar="WHAT,…",
        help=f"compare even if these differ: {', '.join(ALLOWABLE)}",
    )
    add_format(parser, FORMATS)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: stdout)")
    parser.add_argument("--top", type=positive, default=15, metavar="N", help="rows to print (default 15)")
    parser.add_argument(
        "--by", choices=COMPARED_BY, default="op", help="explain the change by op, type, … (default op)"
    )


def show(comparison: Comparison, args: Namespace) -> int:
    """Print the comparison in the requested format; return the exit code of its verdict."""
    from ..views.json.compare_json import CompareJson
    from ..views.text.compare_github import CompareGithub
    from ..views.text.compare_junit import CompareJunit
    from ..views.text.compare_markdown import CompareMarkdown
    from ..views.text.compare_text import CompareText

    views: dict[str, View[Comparison]] = {
        "text": CompareText(by=args.by, top=args.top),
        "md": CompareMarkdown(by=args.by, top=args.top),
        "github": CompareGithub(by=args.by, top=args.top),
        "json": CompareJson(),
        "junit": CompareJunit(),
    }
    if args.by != "op" and args.by not in comparison.rollups:
        raise UsageError(f"--by {args.by}: these runs do not tell it; expected runs of a model that PyTorch exported")
    view = views[args.format]
    write_result(lambda out: view.render(comparison, out), args.output)
    return exit_code(comparison)


def exit_code(comparison: Comparison) -> int:
    """Of its verdict; a limit on what an op of unknown cost is a part of is broken, and not wrong usage."""
    code = EXIT_CODES[comparison.word]
    return 1 if code == 2 and any(check.withheld for check in comparison.verdict.checks) else code


def show_against(baseline: Figures, run: Run, *, max_regression: str | None) -> int:
    """Print the differences of `profile --baseline` on stderr; return 1 if slower by more than `5%`, say."""
    from .. import api
    from ..core.units import parse_share
    from ..views.text.compare_text import CompareText

    limits = [] if max_regression is None else [f"latency>{100 * parse_share(max_regression):g}%"]
    comparison = api.compare(baseline, run, fail_on=limits)
    CompareText(top=5, brief=True).render(comparison, sys.stderr)
    return exit_code(comparison)


def _columns(found: SideBySide, args: Namespace) -> int:
    """Print several runs side by side, without a verdict."""
    from ..views.json.compare_json import SideBySideJson
    from ..views.text.compare_markdown import SideBySideMarkdown
    from ..views.text.compare_text import SideBySideText

    views: dict[str, View[SideBySide]] = {
        "text": SideBySideText(top=args.top),
        "md": SideBySideMarkdown(top=args.top),
        "json": SideBySideJson(),
    }
    if args.fail_on:
        raise UsageError("--fail-on: a limit needs a base and a new run; expected two runs, without --side-by-side")
    if args.format not in views:
        raise UsageError(f"--format {args.format}: shows a verdict; expected {', '.join(views)} for several runs")
    write_result(lambda out: views[args.format].render(found, out), args.output)
    return 0


COMMANDS = {"compare": CompareCommand()}
