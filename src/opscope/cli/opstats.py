"""The verb `opstats`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from ..commands.progress import counted
from ..core.errors import UsageError, printable


class OpstatsCommand:
    """Decode raw stats buffers into summaries, timelines and a run. At least one of --summary, --trace and --run is
    required. A buffer that is damaged or does not belong to the program is named in one line, the others are decoded,
    and the exit code is 1."""

    examples = """\
examples:
  opscope opstats --qpc build/programqpc.bin -i stats -o out --summary --trace
  opscope opstats -q build/programqpc.bin -i stats -o out --trace --flow-events full --select-cores 0,5,1
  opscope opstats -q build/programqpc.bin -i stats -o out --trace --trace-format perfetto --host-trace host.json
  opscope opstats -q build/programqpc.bin -i stats --run profile.run

Exit codes: 0 fine, 1 some buffers could not be decoded, 2 wrong usage or nothing to decode.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("-q", "--qpc", type=Path, required=True, metavar="F", help="programqpc.bin of the compiler")
        parser.add_argument(
            "-i", "--input-dir", type=Path, required=True, metavar="DIR", help="folder with stats buffers"
        )
        parser.add_argument("-o", "--output-dir", type=Path, default=Path(), metavar="DIR", help="default: here")
        parser.add_argument("--summary", action="store_true", help="text: op tables, totals, and where the time goes")
        parser.add_argument("--trace", action="store_true", help="timeline for chrome://tracing and Perfetto")
        parser.add_argument("--run", type=Path, metavar="RUN", help="leave a run folder for analyze, compare and view")
        parser.add_argument("-v", "--verbose", action="store_true", help="say what was decoded and what it lacks")
        group = parser.add_argument_group("trace")
        group.add_argument("--trace-format", choices=("json", "perfetto"), default="json", help="default: json")
        group.add_argument("--host-trace", type=Path, metavar="F", help="Chrome JSON of host events, shown above")
        group.add_argument("-c", "--select-cores", type=_numbers, metavar="0,5,1", help="default: all")
        group.add_argument("-d", "--select-devices", type=_numbers, metavar="0,1", help="default: all")
        group.add_argument(
            "--merge-mq-traces",
            type=_truth,
            default=True,
            metavar="true|false",
            help="all devices of a sample in one file (default true)",
        )
        group.add_argument(
            "--merge-thread-groups",
            type=_truth,
            default=True,
            metavar="true|false",
            help="one row per thread group instead of one per thread (default true)",
        )
        group.add_argument("--flow-events", choices=("none", "full"), default="none", help="dependency arrows")
        group.add_argument("--show-barrier-events", action="store_true", help="a row of barriers for every thread")

    def run(self, args: Namespace) -> int:
        """Decode the buffers; return 2 if nothing could be written, 1 if some buffers are damaged."""
        from .. import api

        if not (args.summary or args.trace or args.run):
            raise UsageError("opstats: nothing to write; expected --summary, --trace or --run RUN")
        outcome = api.opstats(
            args.qpc,
            args.input_dir,
            args.output_dir,
            summary=args.summary,
            trace=args.trace,
            trace_format=args.trace_format,
            host_trace=args.host_trace,
            cores=args.select_cores,
            devices=args.select_devices,
            merge_devices=args.merge_mq_traces,
            merge_thread_groups=args.merge_thread_groups,
            flows=args.flow_events == "full",
            barriers=args.show_barrier_events,
            run=args.run,
            workers=os.cpu_count() or 1,
            command=tuple(sys.argv),
            progress=counted("decoding"),
        )
        for line in outcome.problems:
            print(f"opscope: {printable(line, 4000)}", file=sys.stderr)
        for line in (*outcome.warnings, *(outcome.notes if args.verbose else ())):
            print(f"note: {printable(line, 4000)}", file=sys.stderr)
        for path in outcome.written:
            print(f"wrote {path}", file=sys.stderr)
        if not outcome.written:
            return 2
        return 1 if outcome.problems else 0


def _numbers(text: str) -> tuple[int, ...]:
    """An argparse type: 0,5,1."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 8 for part in parts):
        raise ArgumentTypeError(f"{text!r} is not a list such as 0,5,1")
    return tuple(map(int, parts))


def _truth(text: str) -> bool:
    """An argparse type: true or false."""
    if text.lower() not in ("true", "false"):
        raise ArgumentTypeError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


COMMANDS = {"opstats": OpstatsCommand()}
