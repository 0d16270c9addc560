"""The command line: one module per verb, found through a table and the manifests of plug-ins, imported when used."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, cast

from .. import __version__
from ..commands.progress import step
from ..core.errors import ProfilerError, UsageError, did_you_mean, os_reason, printable
from ..core.plugins import load_place, manifests, problems

if TYPE_CHECKING:  # what a verb needs is imported when there is one
    from ..commands.command import Command
    from ..commands.parser import Parser

OWN_VERBS = {  # verb → module, line for --help
    "profile": (
        ".profile",
        "Profile a model in one step: what bounds it, where the time goes, a run with an HTML page",
    ),
    "analyze": (".analyze", "Explain the time of a run: what bounds it, causes, critical path, what to change"),
    "compare": (".compare", "Compare runs: what differs, which ops explain it, and whether limits hold"),
    "baseline": (".baseline", "Save the numbers of a run in a repository, and check later runs against them"),
    "ci": (".ci", "Check a change in CI: profile, compare with baselines, comment on the pull request"),
    "check": (".check", "Check the numbers of a run against laws of conservation and physics"),
    "view": (".view", "Show runs in the browser: pages, timelines, comparisons"),
    "report": (".report", "Estimate memory, latency and energy of a model on a target, layer by layer"),
    "whatif": (".whatif", "Compile with every combination of some options, and show the best"),
    "bakeoff": (".bakeoff", "Compare a model on every compiler, runtime and target that works here, in one table"),
    "llm": (".llm", "Estimate a language model from its config: time to first token, time per token, memory"),
    "sweep": (".sweep", "Profile every combination of models, targets and options, here or on a cluster"),
    "store": (".store", "Keep many profiles as rows: add runs, query in SQL, export"),
    "table": (".store", "Print one metric of a store as a table, models by targets"),
    "trend": (".store", "Follow a metric of a store from commit to commit, and find where it changed"),
    "optimize": (".optimize", "Rewrite a model to run faster on a target, and check that its outputs stay the same"),
    "quantize": (".quantize", "Quantise a model with your data, and measure the error layer by layer"),
    "calibrate": (".calibrate", "Fit the figures of a target to measurements of a chip"),
    "validate": (".calibrate", "Compare predictions on a target with measurements"),
    "import": (".import_export", "Read profile files of other tools into a run"),
    "export": (".import_export", "Write a run for another program: CSV, XLSX, Model Explorer, pytest-benchmark"),
    "compile": (".compile", "Compile a model into a program for the simulated device"),
    "run": (".run", "Run a compiled program on the simulated device, with a host around it"),
    "opstats": (".opstats", "Decode stats buffers into summaries, timelines and runs"),
    "targets": (".targets", "List what a model can be profiled on, by which backends, and the source of every figure"),
    "zoo": (".zoo", "Make a sample model without a download"),
    "setup": (".installed.setup", "Make an environment for a compiler that needs another Python or C library"),
    "mcp": (".mcp", "Serve the verbs to an assistant over the Model Context Protocol"),
    "completion": (
        ".installed.completion",
        "Print a completion script of verbs, options and targets for bash, zsh or fish",
    ),
    "man": (".installed.man", "Print the manual page, made from the help of every verb"),
    "doctor": (".installed.doctor", "Check which backends work here, and how to install the others"),
}

HELP = """\
usage: opscope VERB …

The open profiler for AI accelerators.

verbs (opscope VERB --help for each):
{verbs}

positional arguments:
  VERB        what to do

options:
  -h, --help  show this help message and exit
  --version   show program's version number and exit

{examples}"""

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
    gc.set_threshold(1_000_000, 50, 50)  # a command makes many objects and few cycles
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
        from ..commands.command import forget_reader

        forget_reader()
        return 0
    except UnicodeEncodeError as error:  # a file name that is not UTF-8
        step("")
        print(f"opscope: {printable(str(error.object))}: is not UTF-8; expected names in UTF-8", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a file that went away
        step("")
        place, reason = printable(str(error.filename or "output")), os_reason(error)
        print(f"opscope: {place}: cannot be used ({reason}); expected a place to read and write", file=sys.stderr)
        return 2
    except MemoryError:
        print("opscope: out of memory; the model needs more than this machine has", file=sys.stderr)
        return 2


def verbs() -> dict[str, str]:
    """Every verb with its line for --help: our own, then those of plug-ins."""
    of_plugins = {verb.name: verb.help for manifest in manifests() for verb in manifest.verbs}
    return {**{verb: line for verb, (_, line) in OWN_VERBS.items()}, **of_plugins}


def _run(arguments: list[str]) -> int:
    """Find the verb's command, parse its arguments and run it; return the exit code."""
    verb, rest = (arguments or ["--help"])[0], arguments[1:]
    for problem in problems():
        print(f"note: {problem}", file=sys.stderr)
    known = verbs()
    if verb == "--version":
        print(f"opscope {__version__}")
        return 0
    if verb in {"-h", "--help"}:
        width = max(map(len, known))
        listed = "\n".join(f"  {name:<{width}}  {line}" for name, line in known.items())
        print(HELP.format(verbs=listed, examples=EXAMPLES), end="")
        return 0
    if verb not in known:
        raise UsageError(f"{verb}: no such verb; {did_you_mean(verb, known)}see `opscope --help`")
    command, parser = parser_of(verb)
    return command.run(parser.parse_args(rest))


def parser_of(verb: str) -> tuple[Command, Parser]:
    """What does the work of a verb, and the parser of its arguments."""
    from argparse import RawDescriptionHelpFormatter

    from ..commands.parser import Parser

    command, original = command_of(verb)
    parser = Parser(
        prog=f"opscope {verb}",
        description="\n".join(line.strip() for line in (command.__doc__ or "").splitlines()),
        epilog=_examples(command, original).replace(f"opscope {original} ", f"opscope {verb} "),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return command, parser


def command_of(verb: str) -> tuple[Command, str]:
    """What does the work of a verb, and the verb that it was written for."""
    if verb in OWN_VERBS:
        own: Command = import_module(OWN_VERBS[verb][0], __package__).COMMANDS[verb]
        return own, verb
    found, manifest = next((entry, m) for m in manifests() for entry in m.verbs if entry.name == verb)
    if found.same_as:
        return command_of(found.same_as)
    table = cast("Mapping[str, Command]", load_place(manifest, f"{found.place}:COMMANDS"))
    return table[verb], verb


def _examples(command: Command, verb: str) -> str:
    """Examples of the help text: our own, then those of plug-ins."""
    lines = "".join(
        f"  {example.line}\n" for manifest in manifests() for example in manifest.examples if example.verb == verb
    )
    head, blank, tail = command.examples.partition("\n\n")
    return f"{head.rstrip()}\n{lines}{blank[1:]}{tail}" if lines else command.examples
