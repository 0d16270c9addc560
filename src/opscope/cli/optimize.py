"""The verb `optimize`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.backend_options import add_option, add_source, all_options, source_of_verb
from ..commands.command import View, add_format, command_line, keep_input, write_result
from ..commands.options import add_options, options_from
from ..commands.progress import step
from ..core.errors import UsageError
from ..options import OptimizeOptions

if TYPE_CHECKING:
    from ..core.manifest import Value
    from ..rewrites.outcome import Optimized

FORMATS = ("text", "md", "json")
_OWN = ("data",)  # of `optimize` itself; a backend that quantises gets the same


class OptimizeCommand:
    """Rewrite a model to run faster with the same outputs. Rewrites are tried on the slowest ops; each is timed by the
    compiler, runtime or target that you name, and its outputs are compared with the model's in a reference runtime."""

    examples = """\
examples:
  opscope optimize model.onnx --target aic100-std -o better.onnx
  opscope optimize model.onnx --backend ort -o better.onnx --budget-minutes 10
  opscope optimize model.onnx --target aic100-std -o better.onnx --allow approximate --max-error 0.1%
  opscope optimize exported-anew.onnx --replay better.optimize/steps.json -o better.onnx

The folder BETTER.optimize has the steps, runs before and after, a page with both timelines, and every trial: the same
command continues where it stopped. Exit codes: 0 fine, 2 wrong usage or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.usage = "opscope optimize MODEL (--target T | --backend B) -o BETTER [OPTION …]"
        parser.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TensorFlow Lite file")
        add_source(parser)
        parser.add_argument("-o", "--output", type=Path, metavar="BETTER", required=True, help="the rewritten model")
        add_options(parser, OptimizeOptions)
        add_format(parser, FORMATS)
        group = parser.add_argument_group("options of the judge, as for `opscope profile`")
        for option in all_options():
            if option.name not in _OWN:
                add_option(group, option)

    def run(self, args: Namespace) -> int:
        """Search, or replay, and print what it came to."""
        from ..rewrites.optimize import optimize
        from ..rewrites.views import OptimizedJson, OptimizedMarkdown, OptimizedText

        keep_input(args.output, args.model)
        found = optimize(
            args.model,
            args.output,
            options=_judge_options(args),
            target=args.target,
            backend=args.backend,
            choice=options_from(args, OptimizeOptions),
            command=command_line(),
            step=step,
        )
        step("")
        views: dict[str, View[Optimized]] = {
            "text": OptimizedText(),
            "md": OptimizedMarkdown(),
            "json": OptimizedJson(),
        }
        write_result(lambda out: views[args.format].render(found, out), None)
        for place in (found.output, found.folder):
            print(f"wrote {place}", file=sys.stderr)
        return 0


def _judge_options(args: Namespace) -> dict[str, Value]:
    """Options of the backend that judges; a replay needs none."""
    found, note = source_of_verb(args, _OWN)
    if found is None and args.replay is None:
        raise UsageError("optimize: nobody judges; expected --target T or --backend B (see `opscope targets`)")
    if note:
        print(f"note: {note}", file=sys.stderr)
    return found or {}


COMMANDS = {"optimize": OptimizeCommand()}
