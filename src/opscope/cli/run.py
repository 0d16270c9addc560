"""The verb `run`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from ..commands.options import add_options, options_from
from ..commands.outcomes import report_outcome
from ..commands.progress import counted
from ..options import RunOptions


class RunCommand:
    """Execute a compiled program on the simulated device many times, and write the profiles you ask for. Each
    activation has its own cores: with a program for c of C cores, floor(C/c) activations run at once and the others
    wait. Profiled inferences are simulated in full, and the first of several activations that share a memory; the
    others take the steady time, varied by the seed."""

    examples = """\
examples:
  opscope run build
  opscope run build --num-iter 100 --profile raw_device_stats --num-samples 5 --start-iter 1 --out-dir stats
  opscope run build --time 20 --activations 7 --profile latency --profile trace --out-dir stats
  opscope run build --input x=x.npy --save-outputs
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("program", type=Path, metavar="DIR", help="folder that `opscope compile` wrote")
        parser.add_argument(
            "--input",
            type=_named_file,
            action="append",
            default=[],
            metavar="NAME=FILE.npy",
            help="array of an input; give all inputs or none (default: random values)",
        )
        add_options(parser, RunOptions)

    def run(self, args: Namespace) -> int:
        from .. import api

        options = options_from(args, RunOptions)
        outcome = api.run(args.program, options, inputs=dict(args.input), progress=counted("running"))
        return report_outcome(outcome)


def _named_file(text: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise ArgumentTypeError(f"{text!r} is not of the form NAME=FILE.npy")
    return name, Path(file)


COMMANDS = {"run": RunCommand()}
