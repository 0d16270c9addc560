"""opscope qaic-compile, opscope qaic-exec, opscope qaic-runner"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from ...commands.outcomes import report_compiled, report_outcome
from ...commands.progress import counted
from ...commands.vendor_command import say, show_help, take_all
from ...program.file_names import PROGRAM_FILE


class QaicCompileCommand:
    """The Cloud AI compiler's command line: `-flag=value` or `-flag value`. Compiles for the simulated device;
    -target=NAME chooses another than aic100-std."""

    examples = """\
examples:
  opscope qaic-compile -model=model.onnx -aic-binary-dir=./binaries -stats-level=70
  opscope qaic-compile -model=model.onnx -aic-binary-dir=./binaries -stats-level=70 -aic-pmu-events=3F,70,200
"""

    tool = "qaic-compile"

    def add_arguments(self, parser: ArgumentParser) -> None:
        from .flags import COMPILE

        take_all(parser, COMPILE)

    def run(self, args: Namespace) -> int:
        from . import flags as qaic

        call = qaic.compile_call(args.words, tool=self.tool)
        if call is None:
            return show_help(args)
        say(call.notes)
        for number, (folder, compiled) in enumerate(qaic.compile_programs(call)):
            if call.specializations:
                print(f"specialization {number}: {call.specializations[number]}")
            if call.keeps_floats and qaic.has_single_floats(compiled):
                say([qaic.SINGLE_FLOATS])
            report_compiled(compiled, metrics=call.perf_metrics, warnings=call.perf_warnings, spelling=call.spelling)
            if folder is not None:
                print(f"wrote {folder / PROGRAM_FILE}", file=sys.stderr)
        return 0


class QaicExecCommand(QaicCompileCommand):
    """The Cloud AI compiler's command line under its older name: as qaic-compile, but nothing is recorded unless
    -aic-profiling-type or -stats-level asks for it."""

    examples = """\
examples:
  opscope qaic-exec -m=model.onnx -aic-hw -compile-only -aic-binary-dir=./binaries -aic-profiling-type=stats
"""

    tool = "qaic-exec"


class QaicRunnerCommand:
    """The Cloud AI runner's command line. Runs on the simulated device."""

    examples = """\
examples:
  opscope qaic-runner --test-data=./binaries --num-iter=100
  opscope qaic-runner -t ./binaries -a 7 -S 1 --time 20 --aic-profiling-type=latency --aic-profiling-out-dir=./stats
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from .flags import RUNNER

        take_all(parser, RUNNER)

    def run(self, args: Namespace) -> int:
        from . import flags as qaic
        from .spelling import compiler_words

        call = qaic.runner_call(args.words)
        if call is None:
            return show_help(args)
        say(call.notes)
        code = 0
        for number, outcome in enumerate(qaic.run_programs(call, progress=counted("running"))):
            if len(call.folders) > 1:
                print(f"Program {number}: {call.folders[number]}")
            code = report_outcome(outcome, spelling=compiler_words()) or code  # notes of a program: on its compilation
        return code


COMMANDS = {
    "qaic-compile": QaicCompileCommand(),
    "qaic-exec": QaicExecCommand(),
    "qaic-runner": QaicRunnerCommand(),
}
