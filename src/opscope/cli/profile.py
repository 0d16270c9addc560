"""The verb `profile`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, _ArgumentGroup
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.backend_options import (
    add_option,
    add_source,
    all_options,
    attribute,
    choose_source,
    chosen_options,
    known_options,
    sections_shown,
)
from ..commands.command import MODEL_HELP, command_line, keep_input, positive
from ..commands.options import add_shape
from ..commands.outcomes import show_profile
from ..commands.progress import counted, step
from ..core.errors import UsageError
from ..core.manifest import Can
from ..core.plugins import manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.manifest import SummaryFile, Value
    from ..gate.figures import Figures
    from ..recording.recording import Recording

_DEFAULT_PLACE = Path()  # a file beside the run or in the working folder, named after the model


class ProfileCommand:
    """Profile a model in one step: compile, run, decode and analyse it, on the simulated device or on a real runtime;
    print a summary, and write a run folder with an HTML page. If the folder already has a run of the same model with
    the same options, that run is printed."""

    examples = """\
examples:
  opscope profile model.onnx --target aic100-std --cores 2 --batch 8 -o run --open
  opscope profile model.tflite --target max32690-cm4
  opscope profile model.onnx --target ./mychip.toml --backend estimate --json
  opscope profile model.onnx --target cpu

--target is any entry of `opscope targets`. Without --backend, the best one that works here is used: a measurement,
else the vendor's own model, else ours: calibrated, simulated, estimated. Each figure says how it was obtained. Exit
codes: 0 fine, 1 slower than the baseline allows, or an op has no known cost (with --allow-unknown: 0), 2 wrong usage
or unreadable input.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.usage = "opscope profile MODEL [--target T] [--backend B] [-o RUN] [OPTION …]"
        parser.add_argument("model", type=Path, metavar="MODEL", help=MODEL_HELP)
        add_source(parser)
        parser.add_argument("-o", "--output", type=Path, metavar="RUN", help="folder of the run (default: MODEL.run)")
        parser.add_argument("--open", action="store_true", help="open the HTML page in a browser")
        parser.add_argument("--fresh", action="store_true", help="profile again, even if RUN is up to date")
        parser.add_argument(
            "--allow-unknown", action="store_true", help="exit 0 even if the cost of an op is not known"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--top", type=positive, default=10, metavar="N", help="ops to print (default 10)")
        parser.add_argument("--all", action="store_true", help="print every op")
        add_shape(parser)
        parser.add_argument(
            "--advise",
            action="store_true",
            help=_of(Can.ADVISE, "also compile with other options, and list those that are faster")
            + "; of an ONNX model, name the rewrites that `opscope optimize` would try",
        )
        parser.add_argument(
            "--baseline", type=Path, metavar="RUN", help="compare with an earlier run or a baseline file"
        )
        parser.add_argument(
            "--max-regression", metavar="P", help="with --baseline: exit 1 if slower by more than this: 5%%"
        )
        _add_files(parser)
        known, groups = known_options(), dict[str, _ArgumentGroup]()
        for option in all_options():
            owners = ", ".join(name for name, options in known.items() if option.name in {o.name for o in options})
            if owners not in groups:
                groups[owners] = parser.add_argument_group(f"options of --backend {owners}")
            add_option(groups[owners], option)

    def run(self, args: Namespace) -> int:
        """Profile the model, print the result, write the files asked for, and compare with the baseline."""
        from .. import api
        from ..readers.torch import name_of

        keep_input(args.output, args.model)
        base = _baseline(args)  # read before a run of the same name replaces it
        note = choose_source(args)
        options = chosen_options(args)
        _check_options_apply(args, options)
        summaries = _summaries(args)  # before the folder is replaced
        if note:
            print(f"note: {note}", file=sys.stderr)
        recorded = api.profile(
            args.model,
            target=args.target,
            backend=args.backend,
            options=options,
            shapes=dict(args.shape),
            advise=args.advise,
            run=args.output or Path(f"{name_of(args.model)}.run"),
            fresh=args.fresh,
            command=command_line(),
            step=step,
            progress=counted("compiling"),
        )
        step("")
        show_profile(
            recorded,
            as_json=args.json,
            top=None if args.all else args.top,
            sections=sections_shown(args.backend, options),
        )
        _write_files(recorded.recording, args, summaries)
        if options.get("execute"):
            _execute(args, options)
        print(f"wrote {recorded.folder}", file=sys.stderr)
        if args.open and recorded.folder is not None:
            _open(recorded.folder / "report.html")
        code = 1 if recorded.run.unknown_ops and not args.allow_unknown else 0
        if base is None:
            return code
        from .compare import show_against

        return max(code, show_against(base, recorded.run, max_regression=args.max_regression))


def _of(can: Can, words: str) -> str:
    """Help of an option that only some backends have."""
    from ..backends import registry as backends

    return f"{words} ({', '.join(backends.names(can)) or 'no backend here can'})"


def _summary_files() -> list[SummaryFile]:
    return [file for manifest in manifests() for file in manifest.summary_files]


def _add_files(parser: ArgumentParser) -> None:
    """Add the options for further output files of real runtimes."""
    from ..backends import registry as backends

    group = parser.add_argument_group(f"further files of a runtime: {', '.join(backends.names(Can.CHROME_TRACE))}")
    group.add_argument(
        "--output-chrome-trace",
        type=Path,
        nargs="?",
        const=_DEFAULT_PLACE,
        metavar="F",
        help="write the timeline as Chrome JSON (default: MODEL.trace.json, or trace.json in RUN)",
    )
    for file in _summary_files():
        group.add_argument(f"--{file.name}", choices=file.forms, action="append", help=file.help)
    group.add_argument("--inputs", type=Path, metavar="F.npz", help="with --execute: arrays of the inputs, by name")
    group.add_argument("--outputs", type=Path, metavar="F.npz", help="with --execute: write the outputs here")


def _check_options_apply(args: Namespace, options: dict[str, Value]) -> None:
    """Refuse options that would have no effect with this backend."""
    from ..backends import registry as backends
    from ..workflows import own_backends

    able = frozenset() if args.backend in own_backends.OWN else backends.find(args.backend).can
    needed = {str(Can.ADVISE): Can.ADVISE, str(Can.CHROME_TRACE): Can.CHROME_TRACE}
    needed |= {file.name: Can.SUMMARY_FILES for file in _summary_files()}
    if args.advise and Can.ADVISE not in able and _has_rewrites(args.model):
        del needed[str(Can.ADVISE)]
    for name, can in needed.items():
        if getattr(args, attribute(name)) and can not in able:
            words = f"expected a runtime such as {', '.join(backends.names(can)) or '(none here)'}"
            own = "; the run holds its own timeline and findings" if args.backend in own_backends.OWN else ""
            raise UsageError(f"--{name}: not an option of backend {args.backend}; {words}{own}")
    for name in ("inputs", "outputs"):
        if getattr(args, name) and not options.get("execute"):
            who = " or ".join(backends.names(Can.EXECUTE)) or "of a runtime that can"
            raise UsageError(f"--{name}: nothing is executed; expected --backend {who} --execute too")


def _has_rewrites(model: Path) -> bool:
    from ..rewrites.editors import can_advise

    return can_advise(model)


def _open(page: Path) -> None:
    import webbrowser

    webbrowser.open(page.resolve().as_uri())


def _summaries(args: Namespace) -> list[tuple[SummaryFile, str]]:
    """The summary files to write: those asked for, and those of an earlier profile in the same folder, made anew."""
    folder: Path | None = args.output
    chosen = []
    for file in _summary_files():
        asked = getattr(args, attribute(file.name)) or ()
        for form in file.forms:
            if form in asked or (asked and folder is not None and (folder / f"{file.name}.{form}").is_file()):
                chosen.append((file, form))
    return chosen


def _write_files(result: Recording, args: Namespace, summaries: Sequence[tuple[SummaryFile, str]]) -> None:
    """Write the timeline and the summary files that were asked for."""
    from ..core.files import write_bytes
    from ..workflows import profiling

    files: list[tuple[Path, bytes]] = []
    if args.output_chrome_trace is not None:
        place = _place(args, args.output_chrome_trace, "trace.json")
        files.append((place, profiling.chrome_trace(result)))
    for file, form in summaries:
        place = _place(args, _DEFAULT_PLACE, f"{file.name}.{form}")
        files.append((place, profiling.summary_file(result, file.name, form)))
    for path, data in files:
        keep_input(path, args.model)
        write_bytes(path, data)
        print(f"wrote {path}", file=sys.stderr)


def _place(args: Namespace, asked: Path, name: str) -> Path:
    """Return the requested path; by default in the run folder, or in the working folder named after the model."""
    from ..readers.torch import name_of

    if asked != _DEFAULT_PLACE:
        return asked
    folder: Path | None = args.output
    return folder / name if folder is not None else Path(f"{name_of(args.model)}.{name}")


def _execute(args: Namespace, options: dict[str, Value]) -> None:
    from ..workflows import profiling

    output = args.outputs or _place(args, _DEFAULT_PLACE, "outputs.npz")
    profiling.execute(
        args.model, output, backend=args.backend, options=options, inputs=args.inputs, shapes=dict(args.shape)
    )
    print("ran once in emulation (emulated): outputs only, its timing says nothing about a device", file=sys.stderr)
    print(f"wrote {output}", file=sys.stderr)


def _baseline(args: Namespace) -> Figures | None:
    """Return the figures to compare with, if any; a wrong --max-regression is reported before the work starts."""
    from ..core.units import parse_share

    if args.max_regression is not None:
        try:
            parse_share(args.max_regression)  # report a mistake before the work, not after
        except UsageError as error:
            raise UsageError(f"--max-regression {error}") from error
    if args.baseline is not None:
        from ..workflows.comparing import figures_of

        return figures_of(args.baseline)
    if args.max_regression is not None:
        raise UsageError("--max-regression: nothing to compare with; expected --baseline RUN too")
    return None


COMMANDS = {"profile": ProfileCommand()}
