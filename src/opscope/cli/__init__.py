"""The command line: one module per verb, found through one table and imported only when used."""

from __future__ import annotations

import gc
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from .. import __version__
from ..commands.command import Command, forget_reader
from ..commands.parser import Parser
from ..commands.progress import step
from ..core.errors import ProfilerError, UsageError, did_you_mean, printable

VERBS = {  # verb → module, line for --help
    "profile": (".profile", "Profile a model in one step: the verdict, where the time goes, a run with its page"),
    "analyze": (".analyze", "Why a run takes as long as it does: the verdict, causes, critical path, what to do"),
    "compare": (".compare", "What differs between runs, what explains it, and whether it may pass"),
    "baseline": (".baseline", "Keep the numbers of a run in a repository, and hold later runs to them"),
    "check": (".check", "Hold the numbers of a run to conservation laws"),
    "view": (".view", "Show runs in the browser: pages, timelines, comparisons"),
    "report": (".report", "What a model takes on a target: memory, latency, energy, layer by layer"),
    "whatif": ("opscope.plugins.qnn.whatif_command", "Try choices with the vendor's own compiler and show the best"),
    "import": (".import_", "Profile files of other tools into a run"),
    "annotate": (
        "opscope.plugins.torq.annotate.command",
        "A compiler's dump with a runtime's log: units used, times, timeline",
    ),
    "compile": (".compile", "Compile a model into a program for the simulated device"),
    "run": (".run", "Run a compiled program on the simulated device, with a host around it"),
    "opstats": (".opstats", "Decode stats buffers into summaries, timelines and runs"),
    "targets": (".targets", "The hardware that is known, and the source of every figure"),
    "zoo": (".zoo", "Make a sample model on the spot"),
    "doctor": (".doctor", "Which backends work here, and how to get the rest"),
    "cfsai": ("opscope.plugins.cfs.commands", "CodeFusion Studio 2.0-2.1 command line: cfsai profile | compat"),
    "cfsutil": ("opscope.plugins.cfs.commands", "CodeFusion Studio 2.2 command line: cfsutil ai profile | compat"),
    "qaic-compile": ("opscope.plugins.qaic.commands", "Cloud AI command line: compile"),
    "qaic-runner": ("opscope.plugins.qaic.commands", "Cloud AI command line: run"),
    "qaic-opstats": ("opscope.plugins.qaic.commands", "Cloud AI command line: decode"),
    "torq-compile": ("opscope.plugins.torq.dialect.commands", "Torq command line: compile"),
    "torq-run-module": ("opscope.plugins.torq.dialect.commands", "Torq command line: run"),
    "iree-run-module": ("opscope.plugins.torq.dialect.commands", "Torq command line: run, under its other name"),
    "annotate_profiling.py": (
        "opscope.plugins.torq.annotate.command",
        "annotate with the arguments of the vendor's script",
    ),
}

EXAMPLES = """\
examples:
  opscope zoo kws-cnn --format tflite --precision int8 -o kws.tflite
  opscope profile kws.tflite --target aic100-std --open
  opscope report kws.tflite --target max32690-cm4
  opscope report model.onnx --target aic100-std --batch 8 --format html -o report.html
  opscope targets show max78002-cm4

Exit codes: 0 fine, 1 a budget or gate failed, 2 wrong usage or unreadable input.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `opscope` command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(200_000, 50, 50)  # a command makes many objects and few cycles
    for stream in (sys.stdout, sys.stderr):  # a terminal without — or µ gets an escape, not a traceback
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return _run(arguments)
    except ProfilerError as error:
        step("")
        print(f"opscope: {printable(str(error), 4000)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        step("")
        print("opscope: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        forget_reader()
        return 0
    except UnicodeEncodeError as error:  # a file name that is not UTF-8
        step("")
        print(f"opscope: {printable(str(error.object))}: is not UTF-8; expected names in UTF-8", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a file that went away
        step("")
        place, reason = printable(str(error.filename or "output")), error.strerror or type(error).__name__
        print(f"opscope: {place}: cannot be used ({reason}); expected a place to read and write", file=sys.stderr)
        return 2
    except MemoryError:
        print("opscope: out of memory; the model needs more than this machine has", file=sys.stderr)
        return 2


def _run(arguments: list[str]) -> int:
    """Find the verb's command, parse its arguments and run it; return the exit code."""
    verb, rest = (arguments or ["--help"])[0], arguments[1:]
    if verb.startswith("-"):
        _top_parser().parse_args([verb, *rest])
    if verb not in VERBS:
        raise UsageError(f"{verb}: no such verb; {did_you_mean(verb, VERBS)}see `opscope --help`")
    command: Command = import_module(VERBS[verb][0], __package__).COMMANDS[verb]
    parser = Parser(
        prog=f"opscope {verb}",
        description="\n".join(line.strip() for line in (command.__doc__ or "").splitlines()),
        epilog=command.examples,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return command.run(parser.parse_args(rest))


def _top_parser() -> Parser:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {line}" for verb, (_, line) in VERBS.items())
    parser = Parser(
        prog="opscope",
        description="The open profiler for AI accelerators.\n\nverbs (opscope VERB --help for each):\n" + verbs,
        epilog=EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        usage="opscope VERB …",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"opscope {__version__}")
    parser.add_argument("verb", choices=list(VERBS), metavar="VERB", help="what to do")
    return parser
