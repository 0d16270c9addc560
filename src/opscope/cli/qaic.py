"""opscope qaic-compile, opscope qaic-runner"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .compile import report_compiled
from .opstats import OpstatsCommand
from .run import report_outcome, show_progress

if TYPE_CHECKING:
    from ..dialects.flags import Flag


class QaicCompileCommand:
    """The Cloud AI compiler's command line: `-flag=value` or `-flag value`. Compiles for the simulated device;
    -target=NAME chooses another than aic100-std."""

    examples = """\
examples:
  opscope qaic-compile -model=model.onnx -aic-binary-dir=./binaries -stats-level=70
  opscope qaic-compile -model=model.onnx -aic-binary-dir=./binaries -stats-level=70 -aic-pmu-events=3F,70,200
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from ..dialects.qaic import COMPILE

        _take_all(parser, COMPILE)

    def run(self, args: Namespace) -> int:
        from .. import api
        from ..dialects import qaic

        call = qaic.compile_call(args.words)
        if call is None:
            return _help(args)
        _say(call.notes)
        report_compiled(qaic.compile_program(call), call.perf_metrics, call.perf_warnings, None)
        print(f"wrote {call.output / api.files.PROGRAM_FILE}", file=sys.stderr)
        return 0


class QaicRunnerCommand:
    """The Cloud AI runner's command line. Runs on the simulated device."""

    examples = """\
examples:
  opscope qaic-runner --test-data=./binaries --num-iter=100
  opscope qaic-runner -t ./binaries -a 7 -S 1 --time 20 --aic-profiling-type=latency --aic-profiling-out-dir=./stats
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from ..dialects.qaic import RUNNER

        _take_all(parser, RUNNER)

    def run(self, args: Namespace) -> int:
        from ..dialects import qaic

        call = qaic.runner_call(args.words)
        if call is None:
            return _help(args)
        _say(call.notes)
        return report_outcome(qaic.run_program(call, progress=show_progress if sys.stderr.isatty() else None))


def _take_all(parser: ArgumentParser, table: Sequence[Flag]) -> None:
    """Every word goes to the dialect's own table: single-dash words of several letters are not argparse's."""
    parser.prefix_chars = "\0"
    parser.usage = f"{parser.prog} -FLAG[=VALUE] …"
    used = "\n".join(f"  {flag.shown}" for flag in table if flag.parameter)
    noted = ", ".join(flag.shown for flag in table if not flag.parameter)
    parser.epilog = f"flags:\n{used}\n\naccepted, without effect here:\n  {noted}\n\n{parser.epilog}"
    parser.add_argument("words", nargs="*", metavar="FLAG", help="the vendor's flags")
    parser.set_defaults(print_help=parser.print_help)


def _help(args: Namespace) -> int:
    args.print_help()
    return 0


def _say(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


class QaicOpstatsCommand(OpstatsCommand):
    __doc__ = OpstatsCommand.__doc__
    examples = OpstatsCommand.examples.replace("opscope opstats", "opscope qaic-opstats")


COMMANDS = {
    "qaic-compile": QaicCompileCommand(),
    "qaic-runner": QaicRunnerCommand(),
    "qaic-opstats": QaicOpstatsCommand(),
}
