"""opscope torq-compile, opscope torq-run-module, opscope iree-run-module"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from ..errors import printable
from .vendor_flags import say, show_help, take_all

RUN_EXAMPLES = """\
examples:
  opscope torq-run-module --device=torq --module=model.vmfb --input="1x1280xi8=0" --torq_profile=runtime.csv
  opscope torq-run-module --device=torq --module=model.vmfb --input=@x.npy --torq_profile_host=host.csv
"""


class TorqCompileCommand:
    """The Torq compiler's command line, for the simulated device: a program under the name asked for, the estimated
    timeline as CSV, and the dump that `opscope annotate` takes."""

    examples = """\
examples:
  opscope torq-compile fc.mlir -o model.vmfb --torq-enable-profiling --torq-dump-profiling=trace.csv
  opscope torq-compile fc.mlir -o model.vmfb --torq-hw=1:1024:4:coral_v1:nss_v1 --torq-enable-profiling --csv-version=C
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from ..dialects.torq import COMPILE

        take_all(parser, COMPILE)
        parser.usage = f"{parser.prog} MODEL -o FILE [--FLAG[=VALUE] …]"

    def run(self, args: Namespace) -> int:
        from ..dialects import torq

        call = torq.compile_call(args.words)
        if call is None:
            return show_help(args)
        say(call.notes)
        scheduled, written = torq.compile_program(call)
        uncosted = scheduled.uncosted
        say(scheduled.notes)
        if uncosted:
            first = printable(f"{uncosted[0].op} {uncosted[0].text}", 300)
            say([f"{len(uncosted)} ops are not costed and take no time here; {first}"])
        least = "at least " if uncosted else ""
        _summary(scheduled.program.clock_hz, scheduled.cycles, len(scheduled.sequence.jobs), "estimated", least)
        _wrote(written)
        return 0


class RunModuleCommand:
    """Run a program that `torq-compile` wrote on the simulated device. Times are simulated; outputs are computed from
    the model by a reference runtime."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.examples = RUN_EXAMPLES.replace("torq-run-module", tool)

    def add_arguments(self, parser: ArgumentParser) -> None:
        from ..dialects.torq import RUN

        take_all(parser, RUN)
        parser.usage = f"{parser.prog} --module=FILE [--input=BUFFER …] [--FLAG[=VALUE] …]"

    def run(self, args: Namespace) -> int:
        from ..api.slices import printed_outputs
        from ..dialects import torq

        call = torq.run_call(args.words, tool=self.tool)
        if call is None:
            return show_help(args)
        say(call.notes)
        ran, written = torq.run_program(call)
        print(f"EXEC @{printable(ran.program.name)}")
        for line in printed_outputs(ran):
            print(line)
        if ran.outputs is None:
            say([f"outputs are not computed: {ran.reason}"])
        cycles, least = max((end for _, end in ran.bounds), default=0.0), ""
        if ran.uncosted:
            say([f"{len(ran.uncosted)} ops are not costed and take no time here, first {printable(ran.uncosted[0])}"])
            least = "at least "
        _summary(ran.program.clock_hz, cycles, len(ran.bounds), "simulated", least)
        _wrote(written)
        return 0


def _summary(clock_hz: float, cycles: float, jobs: int, how: str, least: str = "") -> None:
    time, programs = cycles / clock_hz * 1e6, "NSS program" if jobs == 1 else "NSS programs"
    text = f"{least}{cycles:,.0f} cycles, {time:,.1f} us at {clock_hz / 1e6:g} MHz, {jobs} {programs} ({how})"
    print(text, file=sys.stderr)


def _wrote(paths: Sequence[object]) -> None:
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


COMMANDS = {
    "torq-compile": TorqCompileCommand(),
    "torq-run-module": RunModuleCommand("torq-run-module"),
    "iree-run-module": RunModuleCommand("iree-run-module"),
}
