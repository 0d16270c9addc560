"""The verb `profile`."""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands.command import (
    MODEL_HELP,
    add_shape,
    command_line,
    keep_input,
    positive,
    screen_width,
    wants_colour,
    write_result,
)
from ..commands.progress import counted, step
from ..core.errors import UsageError
from ..core.manifest import Can
from ..core.plugins import manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.manifest import Option, SummaryFile, Value
    from ..gate.figures import Figures
    from ..recording.recording import Recording
    from ..workflows.record import Recorded

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
        known = known_options()
        parser.usage = "opscope profile MODEL [--target T] [--backend B] [-o RUN] [OPTION …]"
        parser.add_argument("model", type=Path, metavar="MODEL", help=MODEL_HELP)
        parser.add_argument("--target", metavar="T", help="any name of `opscope targets`, or a TOML file")
        parser.add_argument(
            "--backend",
            metavar="B",
            help=f"what measures or predicts the times: {', '.join(known)} (see `opscope doctor`)",
        )
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
        groups = {}
        for option in merged([option for options in known.values() for option in options]):
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
        show(
            recorded,
            as_json=args.json,
            top=None if args.all else args.top,
            level=getattr(args, "profiling_level", None) or "detailed",
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


def known_options() -> dict[str, tuple[Option, ...]]:
    """Return every backend with its options: the built-in ones first, then real runtimes."""
    from ..backends import registry as backends
    from ..workflows import own_backends

    return {**own_backends.OWN, **{entry.name: entry.options for entry in backends.entries()}}


def merged(options: Sequence[Option]) -> list[Option]:
    """Merge options of the same name: help texts and choices of all backends that have it."""
    found: dict[str, Option] = {}
    for option in options:
        first = found.setdefault(option.name, option)
        if first is not option:
            both = tuple(dict.fromkeys((*first.choices, *option.choices)))
            words = first.help if option.help in first.help else f"{first.help}; or: {option.help}"
            found[option.name] = first._replace(help=words, choices=both if first.choices and option.choices else ())
    return list(found.values())


def add_option(parser: object, option: Option, *, several: bool = False) -> None:
    """Add an option of a backend as an argument; with `several` it takes a comma-separated list."""
    if not hasattr(parser, "add_argument"):
        raise TypeError("not a parser")
    if option.is_flag:
        parser.add_argument(f"--{option.name}", action="store_true", help=option.help)
    elif several:
        words = f"; of {', '.join(option.choices)}" if option.choices else ""
        parser.add_argument(f"--{option.name}", metavar="V,V,…", help=option.help.replace("%", "%%") + words)
    else:
        kind = positive if option.is_number else str
        parser.add_argument(
            f"--{option.name}",
            type=kind,
            choices=option.choices or None,
            metavar=None if option.choices else option.metavar,
            help=option.help.replace("%", "%%"),
            **({"nargs": "?", "const": option.bare} if option.bare else {}),
        )


def chosen_options(args: Namespace) -> dict[str, Value]:
    """Return the values of the backend's own options; an option of another backend is an error."""
    all_known = known_options()
    known = {option.name for option in all_known[args.backend]}
    given: dict[str, Value] = {}
    for option in merged([option for options in all_known.values() for option in options]):
        value = getattr(args, option.name.replace("-", "_"))
        if option.name in known:
            given[option.name] = value
        elif value:
            own = ", ".join(f"--{name}" for name in sorted(known))
            raise UsageError(f"--{option.name}: not an option of backend {args.backend}; expected of {own}")
    return given


def choose_source(args: Namespace) -> str:
    """Set the backend that is to tell about the target, and its part; return why, where several could."""
    from ..workflows import catalogue

    words = {option.name: option.name.replace("-", "_") for options in known_options().values() for option in options}
    given = {name: getattr(args, word) for name, word in words.items() if getattr(args, word)}
    choice = catalogue.choose(args.target, backend=args.backend, options=given, model=args.model)
    if args.target is None and choice.target is not None:
        args.target = choice.target.name  # a part's own option named it
    args.backend = choice.backend
    for name, word in words.items():
        if name in given or name in choice.options:
            setattr(args, word, choice.options.get(name))
    return choice.note


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
        if getattr(args, name.replace("-", "_")) and can not in able:
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


def show(recorded: Recorded, *, as_json: bool, top: int | None, level: str = "detailed", more: str = "--all") -> None:
    """The one screen that every profile has, whatever made it; or the same as JSON."""
    from ..views.json.recorded_json import RecordedJson
    from ..views.text.profile_text import ProfileText

    colour, width = wants_colour(sys.stdout), screen_width(sys.stdout)
    text = ProfileText(top=top, level=level, colour=colour, width=width, more=more, places=_places(recorded))
    view = RecordedJson() if as_json else text
    write_result(lambda out: view.render(recorded.run, recorded.findings, recorded.recording, out), None)
    if recorded.reused:
        print(f"note: nothing that the {recorded.reused} depends on has changed: it was re-used", file=sys.stderr)


def _places(recorded: Recorded) -> list[tuple[str, str]]:
    """Return the files to open next, and the command that shows them."""
    if recorded.folder is None:
        return []
    names = {"report.html": "page", "trace.json": "timeline", "trace.pftrace": "timeline"}
    files = [(names[name], str(recorded.folder / name)) for name in recorded.files if name in names]
    return [*files, ("both", f"opscope view {shlex.quote(str(recorded.folder))}")]


def _open(page: Path) -> None:
    import webbrowser

    webbrowser.open(page.resolve().as_uri())


def _summaries(args: Namespace) -> list[tuple[SummaryFile, str]]:
    """The summary files to write: those asked for, and those of an earlier profile in the same folder, made anew."""
    folder: Path | None = args.output
    chosen = []
    for file in _summary_files():
        asked = getattr(args, file.name.replace("-", "_")) or ()
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
