"""opscope profile"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from .command import keep_input, named_shape, positive, write_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backends import Option, Value
    from ..profiled import Profiled

_BESIDE = Path()  # a file beside the run or in the working folder, named after the model


class ProfileCommand:
    """Profile a model on a real runtime: how long it takes, where the time goes, what holds it back."""

    examples = """\
examples:
  opscope profile model.onnx --backend htp
  opscope profile model.onnx --backend htp --soc SM8650 --vtcm-mb 4
  opscope profile model.onnx --backend htp --profiling-level linting --advise
  opscope profile model.onnx --backend htp --output-chrome-trace --qhas html -o run
  opscope profile model.onnx --backend htp --baseline run --max-regression 5%

Times are of the vendor's performance model and bytes are facts of its compiler; each figure says which.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        from .. import backends

        parser.add_argument("model", type=Path, metavar="MODEL", help="ONNX file")
        parser.add_argument("--backend", required=True, metavar="B", help=f"runtime: {', '.join(backends.names())}")
        parser.add_argument("-o", "--output", type=Path, metavar="RUN", help="folder to leave the run in")
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--top", type=positive, default=15, metavar="N", help="nodes to print (default 15)")
        parser.add_argument("--all", action="store_true", help="every node, in order")
        parser.add_argument("--shape", type=named_shape, action="append", default=[], metavar="NAME=1x3x224x224",
                            help="shape of an input that the model leaves open; may be repeated")  # fmt: skip
        parser.add_argument("--output-chrome-trace", type=Path, nargs="?", const=_BESIDE, metavar="F",
                            help="write the timeline (default: MODEL.trace.json, or trace.json in RUN)")  # fmt: skip
        parser.add_argument("--qhas", choices=["json", "html"],
                            help="write the analysis summary: MODEL.qhas.json or .html, or into RUN")  # fmt: skip
        parser.add_argument("--advise", action="store_true", help="try other choices, and cite those that help")
        parser.add_argument("--baseline", type=Path, metavar="RUN", help="compare with an earlier run or its JSON")
        parser.add_argument("--max-regression", metavar="P", help="with --baseline: exit 1 when slower by more (5%%)")
        parser.add_argument("--inputs", type=Path, metavar="F.npz", help="with --execute: arrays by input name")
        parser.add_argument("--outputs", type=Path, metavar="F.npz", help="with --execute: where the outputs go")
        known = {name: backends.load(name).options for name in backends.names()}
        groups = {}
        for option in merged([option for options in known.values() for option in options]):
            owners = ", ".join(name for name, options in known.items() if option.name in {o.name for o in options})
            if owners not in groups:
                groups[owners] = parser.add_argument_group(f"options of --backend {owners}")
            add_option(groups[owners], option)

    def run(self, args: Namespace) -> int:
        from .. import api

        keep_input(args.output, args.model)
        options = chosen_options(args)
        limit = _limit(args)
        result = api.profile(
            args.model, backend=args.backend, options=options, shapes=dict(args.shape), advise=args.advise,
            run=args.output, command=("opscope", *sys.argv[1:]), progress=show_progress,
        )  # fmt: skip
        _print(result, args)
        _write_files(result, args)
        if options.get("execute"):
            _execute(args, options)
        if args.output is not None:
            print(f"wrote {args.output}", file=sys.stderr)
        return 0 if args.baseline is None else _compare(result, args.baseline, limit)


def merged(options: Sequence[Option]) -> list[Option]:
    """One option per name: of two backends with the same, the words of the first and the choices of both."""
    found: dict[str, Option] = {}
    for option in options:
        first = found.setdefault(option.name, option)
        if first is not option:
            both = tuple(dict.fromkeys((*first.choices, *option.choices)))
            found[option.name] = replace(first, choices=both if first.choices and option.choices else ())
    return list(found.values())


def add_option(parser: object, option: Option, *, several: bool = False) -> None:
    """One option of a backend as an argument; `several` takes a comma list of values."""
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
            f"--{option.name}", type=kind, choices=option.choices or None,
            metavar=None if option.choices else option.metavar, help=option.help.replace("%", "%%"),
        )  # fmt: skip


def chosen_options(args: Namespace) -> dict[str, Value]:
    """What the command line says of the backend's own options; one of another backend is a mistake."""
    from .. import backends

    known = {option.name for option in backends.load(args.backend).options}
    given: dict[str, Value] = {}
    for option in merged([option for name in backends.names() for option in backends.load(name).options]):
        value = getattr(args, option.name.replace("-", "_"))
        if option.name in known:
            given[option.name] = value
        elif value:
            raise UsageError(f"--{option.name}: not an option of backend {args.backend}; expected one of its own")
    return given


def show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        filled = 30 * done // total
        end = "\n" if done == total else ""
        print(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done} of {total}", end=end, file=sys.stderr, flush=True)


def _print(result: Profiled, args: Namespace) -> None:
    from ..views.htp_json import ProfiledJson
    from ..views.htp_text import ProfiledText

    top = None if args.all else args.top
    view = (
        ProfiledJson()
        if args.json
        else ProfiledText(level=getattr(args, "profiling_level", None) or "detailed", top=top)
    )
    write_result(lambda out: view.render(result, out), None)


def _write_files(result: Profiled, args: Namespace) -> None:
    from ..api import profiling
    from ..api.files import write_bytes

    files: list[tuple[Path, bytes]] = []
    if args.output_chrome_trace is not None:
        place = _place(args, args.output_chrome_trace, "trace.json")
        files.append((place, profiling.chrome_trace(result)))
    if args.qhas:
        files.append((_place(args, _BESIDE, f"qhas.{args.qhas}"), profiling.analysis_summary(result, args.qhas)))
    for path, data in files:
        keep_input(path, args.model)
        write_bytes(path, data)
        print(f"wrote {path}", file=sys.stderr)


def _place(args: Namespace, asked: Path, name: str) -> Path:
    """Where the user says; else in the run; else in the working folder, named after the model."""
    if asked != _BESIDE:
        return asked
    folder: Path | None = args.output
    return folder / name if folder is not None else Path(f"{args.model.stem}.{name}")


def _execute(args: Namespace, options: dict[str, Value]) -> None:
    from ..backends.htp import HtpBackend

    output = args.outputs or _place(args, _BESIDE, "outputs.npz")
    HtpBackend().execute(args.model, options, output, inputs=args.inputs, shapes=dict(args.shape))
    print("ran once in emulation (emulated): outputs only, its timing says nothing about a device", file=sys.stderr)
    print(f"wrote {output}", file=sys.stderr)


def _limit(args: Namespace) -> float | None:
    from ..units import parse_share

    if args.max_regression is None:
        return None
    if args.baseline is None:
        raise UsageError("--max-regression: nothing to compare with; expected --baseline RUN too")
    return parse_share(args.max_regression)


def _compare(result: Profiled, baseline: Path, limit: float | None) -> int:
    """Print the differences; 1 when the limit is passed."""
    from ..gate.profile_baseline import compare_profiles, read_baseline

    lines, verdict = compare_profiles(read_baseline(baseline), result, limit=limit)
    for line in lines:
        print(line, file=sys.stderr)
    for check in verdict.checks:
        print(("ok    " if check.passed else "FAIL  ") + check.reason, file=sys.stderr)
    return 0 if verdict.passed else 1


COMMANDS = {"profile": ProfileCommand()}
