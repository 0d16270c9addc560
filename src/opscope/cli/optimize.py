"""The verb `optimize`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.backend_options import add_option, add_source, all_options, source_of_verb
from ..commands.command import View, add_format, add_shape, command_line, keep_input, positive, write_result
from ..commands.progress import step
from ..core.errors import UsageError

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
        parser.add_argument(
            "--allow", metavar="WHAT,…", default="", help="also try rewrites that are not exact: approximate, quantize"
        )
        parser.add_argument(
            "--max-error",
            type=_share,
            metavar="E",
            help="with --allow: largest error of the outputs, as noise over signal (default 1%%)",
        )
        parser.add_argument("--data", type=Path, metavar="DIR|F.npz", help="also compare the outputs for these inputs")
        parser.add_argument(
            "--budget-minutes",
            type=_minutes,
            default=30.0,
            metavar="M",
            help="start no trial after so many minutes (default 30)",
        )
        parser.add_argument(
            "--replay", type=Path, metavar="STEPS", help="apply the steps in this file, without a search"
        )
        parser.add_argument("--jobs", type=positive, metavar="N", help="trials at once (default: cores)")
        add_format(parser, FORMATS)
        add_shape(parser)
        group = parser.add_argument_group("options of the judge, as for `opscope profile`")
        for option in all_options():
            if option.name not in _OWN:
                add_option(group, option)

    def run(self, args: Namespace) -> int:
        """Search, or replay, and print what it came to."""
        from ..rewrites.optimize import optimize
        from ..rewrites.proof import MAX_ERROR
        from ..rewrites.views import OptimizedJson, OptimizedMarkdown, OptimizedText

        keep_input(args.output, args.model)
        found = optimize(
            args.model,
            args.output,
            options=_judge_options(args),
            target=args.target,
            backend=args.backend,
            shapes=dict(args.shape),
            allow=[word.strip() for word in args.allow.split(",") if word.strip()],
            budget_minutes=args.budget_minutes,
            data=args.data,
            max_error=MAX_ERROR if args.max_error is None else args.max_error,
            replay=args.replay,
            jobs=args.jobs,
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


def _share(text: str) -> float:
    """An argparse type: 0.01 or 1%."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"{text!r} is not a share from 0 to 1, such as 0.01 or 1%")
    return number


def _minutes(text: str) -> float:
    """An argparse type: more than 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return number


COMMANDS = {"optimize": OptimizeCommand()}
