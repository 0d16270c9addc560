"""The verb `compile`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..commands.command import write_result
from ..commands.options import add_options, options_from
from ..core.files import PROGRAM_FILE
from ..options import CompileOptions


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
        add_options(parser, CompileOptions)
        parser.add_argument("--perf-metrics", action="store_true", help="print memory and traffic metrics")
        parser.add_argument("--perf-warnings", action="store_true", help="print what costs time that it need not")
        parser.add_argument("--timeline", type=Path, metavar="FILE", help="write the estimated timeline as CSV")
        parser.add_argument("--dump-phases-to", type=Path, metavar="DIR", help="write one readable file per pass")

    def run(self, args: Namespace) -> int:
        from .. import api

        options = options_from(args, CompileOptions)
        compiled = api.compile_model(args.model, args.target, args.output, options, phases=args.dump_phases_to)
        report_compiled(compiled, args.perf_metrics, args.perf_warnings, args.timeline)
        print(f"wrote {args.output / PROGRAM_FILE}", file=sys.stderr)
        return 0


def report_compiled(compiled: object, metrics: bool, warnings: bool, timeline: Path | None) -> None:
    """Print the requested parts of a compiled program."""
    from ..core.units import format_bytes
    from ..views.text.memory_metrics import MemoryMetricsText
    from ..views.text.timeline_csv import TimelineCsv
    from ..workflows.model_compiler import Compiled

    if not isinstance(compiled, Compiled):
        raise TypeError("not a compiled program")
    program = compiled.program
    read = sum(row.read for row in program.metrics.traffic)
    print(
        f"{len(program.ops)} ops → {len(program.commands):,} commands on {program.devices} × {program.cores} cores; "
        f"constants {format_bytes(program.metrics.constants_bytes)}, "
        f"local memory {format_bytes(max(program.metrics.local_bytes, default=0))} of "
        f"{format_bytes(program.metrics.local_capacity)}, DDR read {format_bytes(read)} per inference"
    )
    if metrics:
        MemoryMetricsText().render(program, sys.stdout)
    for warning in compiled.warnings if warnings else ():
        print(f"warning: {warning.kind}: {warning.op[:100]}: {warning.text}; {warning.cycles:,.0f} cycles")
    if timeline is not None:
        start, end = compiled.forecast()
        write_result(lambda out: TimelineCsv().render(program, start, end, out), timeline)


COMMANDS = {"compile": CompileCommand()}
