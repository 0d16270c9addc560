"""opscope annotate, and the same under the name and the flags of the vendor's script"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ....commands.command import positive, write_result
from ....core.errors import printable

if TYPE_CHECKING:
    from .annotated import Annotated
    from .annotating import AnnotateChoices

_HEADERS = ("auto", "human", "snake")
_GAPS = ("apart", "charged")


def _megahertz(text: str) -> int:
    try:
        hertz = round(float(text) * 1e6)
    except (ValueError, OverflowError):
        hertz = 0
    if not 0 < hertz < 10**13:
        raise ArgumentTypeError(f"{text!r} is not a clock in MHz")
    return hertz


class AnnotateCommand:
    """Join a compiler's dump with what a runtime logged: which units each program used, when, and for how long."""

    examples = """\
examples:
  opscope annotate phases/fc.9.executable-targets.mlir runtime.csv annotated.csv
  opscope annotate phases/ host.csv annotated.xlsx --headers snake
  opscope annotate phases/fc.9.executable-targets.mlir runtime.csv annotated.pftrace

A log of jobs (id;time_since_open;…) gives a row per step, a log of the host (dispatch_name,…) a row per action.
Exit codes: 0 fine, 2 unreadable, or dump and log do not belong together.
"""
    gaps = "apart"

    def add_arguments(self, parser: ArgumentParser) -> None:
        option = parser.add_argument
        option("dump", type=Path, metavar="DUMP", help="NAME.9.executable-targets.mlir, its folder, or debug info")
        option("runtime", type=Path, metavar="RUNTIME", help="log of the runtime")
        option("output", type=Path, metavar="OUT", help="file to write: .csv, .xlsx, .json, .pftrace or .pb")
        option("--headers", choices=_HEADERS, default="auto", help="names of columns (auto: human in .xlsx)")
        gaps = f"host time between jobs: apart: a row of its own; charged: added to the later job (default {self.gaps})"
        option("--host-gaps", choices=_GAPS, default=self.gaps, dest="gaps", help=gaps)
        origin = "how the runtime's times were obtained (default: simulated if opscope wrote the dump, else measured)"
        option("--provenance", choices=("measured", "simulated"), help=origin)
        clock = "clock of the compiler's cycles (default 800)"
        option("--clock-mhz", type=_megahertz, default=None, metavar="MHZ", dest="clock_hz", help=clock)
        rounds = "inferences in the log, if ids of jobs do not start again with each"
        option("--inferences", type=positive, metavar="N", help=rounds)
        option("--source", type=Path, metavar="FILE", help="the model's .mlir, for the names of its ops")
        tool = "the vendor's iree-opt, for a dump in its own assembly (IREE_OPT, or beside torq-compile)"
        option("--iree-opt", type=Path, metavar="FILE", dest="tool", help=tool)
        option("--json", action="store_true", help="print the metrics as JSON")
        self.add_more(parser)

    def add_more(self, parser: ArgumentParser) -> None:
        """Options that only the vendor's script has."""

    def run(self, args: Namespace) -> int:
        from .annotating import CLOCK_HZ, AnnotateChoices

        choices = AnnotateChoices(
            args.headers,
            charge_gaps=args.gaps == "charged",
            provenance=args.provenance,
            clock_hz=args.clock_hz or CLOCK_HZ,
            source=args.source,
            tool=args.tool,
            inferences=args.inferences,
        )
        return self.annotate(args, [args.output], choices)

    def annotate(self, args: Namespace, outputs: list[Path], choices: AnnotateChoices) -> int:
        from .annotating import annotate

        annotated = annotate(args.dump, args.runtime, outputs, choices)
        write_result(lambda out: _json(annotated, out) if args.json else _text(annotated, out), None)
        for note in annotated.notes:
            print(f"note: {printable(note, 1000)}", file=sys.stderr)
        for output in outputs:
            print(f"wrote {output}", file=sys.stderr)
        return 0


class VendorAnnotateCommand(AnnotateCommand):
    """The vendor's script, with its order of arguments and its flags; host time is charged as it does."""

    examples = """\
examples:
  opscope annotate_profiling.py ./compilation_phases/fc.9.executable-targets.mlir ./runtime.csv ./annotated_runtime.csv
  opscope annotate_profiling.py debug_info/ host.csv annotated.xlsx --perfetto_file annotated.pb
"""
    gaps = "charged"

    def add_more(self, parser: ArgumentParser) -> None:
        parser.add_argument("--debug", action="store_true", help="accepted, without effect: notes are always printed")
        parser.add_argument(
            "--host_profiling", action="store_true", help="accepted, without effect: the content of the log decides"
        )
        parser.add_argument("--original_mlir_file", type=Path, dest="source", metavar="FILE", help="as --source")
        parser.add_argument("--perfetto_file", type=Path, metavar="FILE", help="also write a timeline here")

    def annotate(self, args: Namespace, outputs: list[Path], choices: AnnotateChoices) -> int:
        return super().annotate(args, [*outputs, *([args.perfetto_file] if args.perfetto_file else [])], choices)


def _json(annotated: Annotated, out: TextIO) -> None:
    import json

    metrics = [{"name": s.name, "time_ns": s.time_ns, "percent": s.percent} for s in annotated.shares]
    json.dump({"schema": "opscope.shares/1", "provenance": annotated.provenance, "metrics": metrics}, out, indent=2)
    out.write("\n")


def _text(annotated: Annotated, out: TextIO) -> None:
    from ....core.units import format_bytes, format_ns
    from ....views.text.columns import columns, pairs

    rows = [(s.name, format_ns(s.time_ns), _percent(s.percent)) for s in annotated.shares]
    lines = columns(("metric", f"time ({annotated.provenance})", "of all"), rows, align="<>>", limits={})
    uses = [
        (printable(f"{dispatch} {use.name}", 80), f"{format_bytes(use.peak_bytes)} at most at once")
        for dispatch, memories in annotated.memories.items()
        for use in memories
    ]
    if uses:
        lines += ["", "Memory", *pairs(uses)]
    out.write("\n".join(lines) + "\n")


def _percent(value: float | None) -> str:
    from ....core.units import UNKNOWN

    return UNKNOWN if value is None else f"{value:.2f} %"


COMMANDS = {"annotate": AnnotateCommand(), "annotate_profiling.py": VendorAnnotateCommand()}
