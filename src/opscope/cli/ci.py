"""The verb `ci`."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from ..core.errors import ProfilerError, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..gate.comparison import Comparison
    from ..pipelines.code_hosts import Host
    from ..pipelines.comment import JudgedModel

_VERDICTS = ("pass", "fail", "unknown")
_SAVE = ("never", "always", "default-branch")


class CiCommand:
    """Check a change in CI: profile models, compare each with its baseline, write the reports, and comment on the pull
    or merge request. The GitHub Action and the GitLab template of this repository only call this."""

    examples = """\
examples:
  opscope ci models/kws.onnx --target aic100-std --baselines perf
  opscope ci models/kws.onnx --target aic100-std --options="--cores 2 --batch 8" --baselines perf --save always
  opscope ci models/*.tflite --target ethos-u55-256 --fail-on="latency>2%" --fail-on="peak_memory>0"

A baseline is MODEL.json in --baselines. Use --save on the main branch: the baseline is written, and nothing fails.
In CI, $OPSCOPE_TOKEN is a token that can comment; without it, only the files and the summary of the job are written.
Exit codes: 0 every limit holds, or there is no baseline yet, 1 a regression, 2 a model could not be judged.
"""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "models", nargs="+", metavar="MODEL", help="model files; one argument may hold several, one per line"
        )
        parser.add_argument("--target", metavar="T", help="any name of `opscope targets`, or a TOML file")
        parser.add_argument(
            "--backend", metavar="B", help="what measures or predicts the times (default: the best that works here)"
        )
        parser.add_argument(
            "--options", default="", metavar="WORDS", help="more options of `opscope profile`, as one argument"
        )
        parser.add_argument(
            "--baselines", type=Path, default=Path("perf"), metavar="DIR", help="folder of baselines (default perf)"
        )
        parser.add_argument(
            "--save",
            choices=_SAVE,
            default="never",
            help="write the baselines; then no regression fails (default never)",
        )
        parser.add_argument(
            "--fail-on",
            action="append",
            default=[],
            metavar="LIMIT",
            help='limit of a change (default "latency>2%%"); may be repeated',
        )
        parser.add_argument(
            "--name", default="opscope", help="name of the comment, if a change gets several (default opscope)"
        )
        parser.add_argument("--no-comment", action="store_true", help="write the files, but no comment")
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            default=Path("performance"),
            metavar="DIR",
            help="folder of the files to write (default: performance)",
        )

    def run(self, args: Namespace) -> int:
        from ..pipelines.code_hosts import host_of
        from ..pipelines.comment import comment_of, job_notes

        models, limits = _lines(args.models), _lines(args.fail_on) or ["latency>2%"]
        if not models:
            raise UsageError("ci: no model; expected at least one file")
        words = _words(args.options)
        host = host_of(os.environ)
        saves = args.save == "always" or (args.save == "default-branch" and host is not None and host.is_default_branch)
        judged = [_judge(Path(model), words, limits, args, saves=saves) for model in models]
        marker = f"<!-- opscope ci: {printable(args.name.replace('--', '-').replace('>', ''), 80)} -->"
        text = comment_of(marker, judged)
        worst = max(0 if saves and each.code == 1 else each.code for each in judged)
        for note in job_notes(judged):
            print(f"note: {note}", file=sys.stderr)
        _tell(host, judged, marker, text, args)
        _append("GITHUB_OUTPUT", f"saved={str(saves).lower()}\nverdict={_VERDICTS[worst]}\n")
        return worst


def _lines(values: list[str]) -> list[str]:
    return [line.strip() for value in values for line in value.splitlines() if line.strip()]


def _words(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError as error:
        raise UsageError(f"--options {printable(options)}: {error}; expected options of `opscope profile`") from error


def _judge(model: Path, words: list[str], limits: list[str], args: Namespace, *, saves: bool) -> JudgedModel:
    """Profile a model, compare it with its baseline, and leave the files of both."""
    from .. import api
    from ..fleet.verbs import save_baseline
    from ..pipelines.comment import JudgedModel
    from . import main

    key = str(_below(model))
    run, base = args.output / f"{key}.run", args.baselines / f"{key}.json"
    chosen = [f"--{name}={value}" for name in ("target", "backend") if (value := getattr(args, name))]
    code = main(["profile", *chosen, *words, f"--output={run}", "--", str(model)])
    if code not in (0, 1):  # 1: an op has no known cost; then the limits say so
        return JudgedModel(key, code=2, problem="could not be profiled; the log says why")
    found, problem = None, ""
    try:
        found = api.compare(base, run, fail_on=limits) if base.exists() else None
    except ProfilerError as error:
        problem = printable(str(error), 300)
    if saves:
        base.unlink(missing_ok=True)
        save_baseline(run, base)
    if found is None:
        return JudgedModel(key, code=2 if problem and not saves else 0, problem=problem, latency_ns=_latency_ns(run))
    return JudgedModel(key, found, _write(found, args.output / key))


def _latency_ns(run: Path) -> float | None:
    from ..recording.summary_file import read_summary

    return read_summary(run).latency.value_ns


def _below(model: Path) -> PurePath:
    """The path of a model as a path below another folder: from here where it is here, else its name."""
    try:
        return model.resolve().relative_to(Path.cwd())
    except ValueError:
        return PurePath(model.name)


def _write(found: Comparison, place: Path) -> int:
    """Leave the comparison as JSON and as JUnit XML beside the run; return the exit code of its verdict."""
    from ..commands.command import write_result
    from ..views.json.compare_json import CompareJson
    from ..views.text.compare_junit import CompareJunit
    from .compare import exit_code

    for view in (CompareJson(), CompareJunit()):
        write_result(lambda out, view=view: view.render(found, out), Path(f"{place}{view.suffix}"))  # type: ignore[misc]
    return exit_code(found)


def _tell(host: Host | None, judged: Sequence[JudgedModel], marker: str, text: str, args: Namespace) -> None:
    """The comment as a file, in the log and the summary of the job, and where the change is reviewed."""
    from ..core.files import write_bytes
    from ..pipelines.code_hosts import CommentError, GitHub
    from ..views.text.compare_github import CompareGithub
    from ..views.text.compare_text import CompareText

    view = CompareGithub() if isinstance(host, GitHub) else CompareText()
    for each in judged:
        if each.comparison is not None:
            view.render(each.comparison, sys.stdout)
    write_bytes(_comment(args), text.encode())
    print(f"wrote {_comment(args)}", file=sys.stderr)
    _append("GITHUB_STEP_SUMMARY", text)
    if host is None or not host.can_comment or args.no_comment:
        return
    try:
        host.comment(marker, text)
    except CommentError as error:  # of a fork, say, whose token may only read
        print(f"note: {error}", file=sys.stderr)


def _comment(args: Namespace) -> Path:
    folder: Path = args.output
    return folder / "comment.md"


def _append(variable: str, text: str) -> None:
    """To the file that a variable of the CI system names, where there is one."""
    if place := os.environ.get(variable):
        with Path(place).open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)


COMMANDS = {"ci": CiCommand()}
