"""The verb `compile`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..commands.command import MODEL_HELP
from ..commands.options import add_options, options_from
from ..commands.outcomes import report_compiled
from ..options import CompileOptions
from ..program.file_names import PROGRAM_FILE


class CompileCommand:
    """Compile a model into a multi-core program for the simulated device, and print its memory metrics."""

    examples = """\
examples:
  opscope compile bert.onnx --target aic100-std --cores 2 --stats-level 70 -o build
  opscope compile llm.onnx --target aic100-ultra --devices 4 -o build --perf-metrics --perf-warnings
  opscope compile model.onnx --target aic100-pro -o build --pmu-recipe KernelUtil --ddr-stats --timeline timeline.csv
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=Path, metavar="MODEL", help=MODEL_HELP)
        parser.add_argument("--target", required=True, metavar="T", help="name (see `opscope targets`) or TOML file")
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the program")
        add_options(parser, CompileOptions)
        parser.add_argument("--perf-metrics", action="store_true", help="print memory and traffic metrics")
        parser.add_argument(
            "--perf-warnings",
            action="store_true",
            help="print avoidable costs: spills, poor tiling, imbalance, layout changes, slow engines",
        )
        parser.add_argument("--timeline", type=Path, metavar="FILE", help="write the estimated timeline as CSV")
        parser.add_argument("--dump-phases-to", type=Path, metavar="DIR", help="write one readable file per pass")

    def run(self, args: Namespace) -> int:
        from .. import api

        options = options_from(args, CompileOptions)
        compiled = api.compile_model(args.model, args.target, args.output, options, phases=args.dump_phases_to)
        report_compiled(compiled, metrics=args.perf_metrics, warnings=args.perf_warnings, timeline=args.timeline)
        print(f"wrote {args.output / PROGRAM_FILE}", file=sys.stderr)
        return 0


COMMANDS = {"compile": CompileCommand()}
