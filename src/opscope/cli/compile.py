"""opscope compile"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..commands.command import named_shape, positive
from ..commands.outcomes import report_compiled
from ..core.files import PROGRAM_FILE


class CompileCommand:
    """Compile a model into a multi-core program for the simulated device, and print its memory metrics."""

    examples = """\
examples:
  opscope compile bert.onnx --target aic100-std --cores 2 --stats-level 70 -o build
  opscope compile llm.onnx --target aic100-ultra --devices 4 -o build --perf-metrics --perf-warnings
  opscope compile model.onnx --target aic100-pro -o build --pmu-recipe KernelUtil --ddr-stats --timeline timeline.csv
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("model", type=Path, metavar="MODEL", help="ONNX, TensorFlow Lite or MLIR file")
        parser.add_argument("--target", required=True, metavar="T", help="name (see `opscope targets`) or TOML file")
        parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the program")
        parser.add_argument("--cores", type=positive, metavar="N", help="cores to use per device (default: all)")
        parser.add_argument("--devices", type=positive, default=1, metavar="N", help="devices to use (default 1)")
        parser.add_argument(
            "--parallel",
            choices=["tensor", "pipeline"],
            default="tensor",
            help="how devices share the work (default tensor)",
        )
        parser.add_argument("--batch", type=positive, metavar="N", help="leading dimension of every input")
        parser.add_argument(
            "--shape",
            type=named_shape,
            action="append",
            default=[],
            metavar="NAME=1x3x224x224",
            help="shape of an input that the model leaves open; may be repeated",
        )
        parser.add_argument(
            "--precision", metavar="P", help="run float tensors as this type: f16, i8 (default: as the target says)"
        )
        _add_statistics(parser)
        parser.add_argument("--perf-metrics", action="store_true", help="print memory and traffic metrics")
        parser.add_argument("--perf-warnings", action="store_true", help="print what costs time that it need not")
        parser.add_argument("--timeline", type=Path, metavar="FILE", help="write the estimated timeline as CSV")
        parser.add_argument("--dump-phases-to", type=Path, metavar="DIR", help="write one readable file per pass")

    def run(self, args: Namespace) -> int:
        from .. import api

        compiled = api.compile_model(
            args.model,
            args.target,
            args.output,
            cores=args.cores,
            devices=args.devices,
            batch=args.batch,
            shapes=dict(args.shape),
            precision=args.precision,
            stats_level=args.stats_level,
            ddr_stats=args.ddr_stats,
            pmu_recipe=args.pmu_recipe,
            pmu_events=args.pmu_events,
            stats_batchsize=args.stats_batchsize,
            parallel=args.parallel,
            phases=args.dump_phases_to,
        )
        report_compiled(compiled, metrics=args.perf_metrics, warnings=args.perf_warnings, timeline=args.timeline)
        print(f"wrote {args.output / PROGRAM_FILE}", file=sys.stderr)
        return 0


def _add_statistics(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("statistics")
    group.add_argument(
        "--stats-level",
        type=int,
        default=40,
        metavar="N",
        help="0, 40 (default), 50 (ports), 70 (every operator), 100 (their PMU)",
    )
    group.add_argument("--ddr-stats", action="store_true", help="count DDR traffic per core")
    group.add_argument("--pmu-recipe", metavar="R", help="count a named set of PMU events")
    group.add_argument("--pmu-events", metavar="HEX,…", help="count these PMU events, at most 8: 3F,70,200")
    group.add_argument("--stats-batchsize", type=positive, metavar="N", help="inferences in one batch (default: batch)")


COMMANDS = {"compile": CompileCommand()}
