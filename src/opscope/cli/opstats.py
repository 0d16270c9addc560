"""The verb `opstats`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..commands.command import positive
from ..commands.options import add_options, options_from
from ..commands.outcomes import show_profile
from ..commands.progress import counted
from ..core.errors import UsageError, printable
from ..options import OpstatsOptions
from ..program.file_names import PROGRAM_FILE


class OpstatsCommand:
    """Decode raw stats buffers into summaries, timelines and a run. At least one of --summary, --trace and --run is
    required. If a buffer is damaged or of another program, one line says so, the others are decoded, and the exit code
    is 1."""

    examples = f"""\
examples:
  opscope opstats --qpc build/{PROGRAM_FILE} -i stats -o out --summary --trace
  opscope opstats -q build/{PROGRAM_FILE} -i stats -o out --trace --flow-events full --select-cores 0,5,1
  opscope opstats -q build/{PROGRAM_FILE} -i stats -o out --trace --trace-format perfetto --host-trace host.json
  opscope opstats -q build/{PROGRAM_FILE} -i stats --run profile.run

Exit codes: 0 fine, 1 some buffers could not be decoded, 2 wrong usage or nothing to decode.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "-q", "--qpc", type=Path, required=True, metavar="F", help=f"{PROGRAM_FILE} of the compiler"
        )
        parser.add_argument(
            "-i", "--input-dir", type=Path, required=True, metavar="DIR", help="folder with stats buffers"
        )
        parser.add_argument(
            "-o", "--output-dir", type=Path, default=Path(), metavar="DIR", help="folder to write to (default: here)"
        )
        add_options(parser, OpstatsOptions)
        parser.add_argument("-v", "--verbose", action="store_true", help="print what was decoded, and what is missing")
        parser.add_argument(
            "--top", type=positive, default=10, metavar="N", help="ops of the run to print (default 10)"
        )
        parser.add_argument("--json", action="store_true", help="with --run: print the run as JSON")

    def run(self, args: Namespace) -> int:
        """Decode the buffers, show the run; return 2 if nothing could be written, 1 if some buffers are damaged."""
        from .. import api

        if not (args.summary or args.trace or args.run):
            raise UsageError("opstats: nothing to write; expected --summary, --trace or --run RUN")
        if args.json and not args.run:
            raise UsageError("opstats: --json prints a run; expected --run RUN too")
        options = options_from(args, OpstatsOptions, workers=os.cpu_count() or 1)
        outcome = api.opstats(
            args.qpc,
            args.input_dir,
            args.output_dir,
            options,
            command=tuple(sys.argv),
            progress=counted("decoding"),
        )
        for line in outcome.problems:
            print(f"opscope: {printable(line, 4000)}", file=sys.stderr)
        for line in (*outcome.warnings, *(outcome.notes if args.verbose else ())):
            print(f"note: {printable(line, 4000)}", file=sys.stderr)
        if outcome.recorded is not None:
            show_profile(outcome.recorded, as_json=args.json, top=args.top, more="--top N")
        for path in outcome.written:
            print(f"wrote {path}", file=sys.stderr)
        if not outcome.written:
            return 2
        return 1 if outcome.problems else 0


COMMANDS = {"opstats": OpstatsCommand()}
