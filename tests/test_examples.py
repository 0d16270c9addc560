"""Every `opscope` command line of the README and of all pages runs, in the order printed, and prints what is shown.

In a `sh` block every line that starts with `opscope`, `mkdir` or `printf` (into a file) is run. In a `text` block lines
after a `$` are run, and what follows must be what they print, in order: `…` alone on a line stands for lines that are
left out, within a line for anything. Notes and results leave by two streams, which each have their own order.
`pytest tests/test_examples.py --update-golden` brings shown lines up to date with the nearest printed ones.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest

from opscope.cli import main

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MAY_FAIL = ("--budget", "--fail-on", "--max-regression")  # gates: exit 1 is an answer, too
NEEDS = {  # word or suffix of an argument → package of an extra; CI installs them all
    "htp": "onnxruntime_qnn",
    "whatif": "onnxruntime_qnn",
    "optimize": "onnx_ir",
    "vela": "ethosu",
    "ethos-u55-256": "ethosu",
    "litert": "ai_edge_litert",
    "mynet:net": "torch",
    **dict.fromkeys(("bakeoff", "sweep", "store", "table", "trend"), "duckdb"),
    ".mlir": "iree",
    ".vmfb": "iree",
}
SERVER = "view"
Printed = tuple[list[str], list[str]]  # results, notes


@dataclass(frozen=True, slots=True)
class Step:
    """A command line, and the lines that a page shows behind it."""

    line: str
    shown: tuple[str, ...] = ()


def pages() -> list[str]:
    """Pages with at least one command line."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in found if steps_of(path.read_text(encoding="utf-8"))]


def steps_of(text: str) -> list[Step]:
    """Commands of a page in order."""
    steps: list[Step] = []
    for language, block in BLOCK.findall(text):
        lines = block.splitlines()
        if language == "sh":
            steps += [
                Step(_command(line)) for line in _joined(lines) if line.startswith(("opscope ", "mkdir ", "printf "))
            ]
        else:
            steps += _shown_steps(lines)
    return steps


def _joined(lines: list[str]) -> list[str]:
    """Lines of a shell, with those that end in a backslash put together."""
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def _command(line: str) -> str:
    return line.split("  #", maxsplit=1)[0].strip()


def _shown_steps(lines: list[str]) -> Iterator[Step]:
    starts = [number for number, line in enumerate(lines) if line.startswith(("$ opscope ", "$ head -", "$ ls "))]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        yield Step(_command(lines[start].removeprefix("$ ")), tuple(lines[start + 1 : end]))


def run_step(step: Step, capsys: pytest.CaptureFixture[str]) -> Printed | None:
    """What the command prints; None where what it needs is not installed."""
    program, *arguments = shlex.split(step.line)
    if program != "opscope":
        return _around(program, arguments), []
    if any(_is_asked(word, arguments) and find_spec(package) is None for word, package in NEEDS.items()):
        return None
    if arguments[0] == SERVER and "-o" not in arguments:
        return _served(arguments), []
    code = _exit_code(arguments)
    output = capsys.readouterr()
    allowed = (0, 1) if set(arguments) & set(MAY_FAIL) else (0,)
    assert code in allowed, f"{step.line}: exit {code}\n{output.err}"
    assert output.out or output.err, step.line
    return output.out.splitlines(), output.err.splitlines()


def _is_asked(word: str, arguments: list[str]) -> bool:
    return any(argument.endswith(word) if word.startswith(".") else argument == word for argument in arguments)


def _around(program: str, arguments: list[str]) -> list[str]:
    """The few commands around ours that pages use."""
    if program == "mkdir":
        Path(arguments[0]).mkdir()
        return []
    if program == "printf":
        text, _, path = arguments
        Path(path).write_text(text.replace("\\n", "\n"), encoding="utf-8")
        return []
    if program == "ls":
        return sorted(path.name for path in Path(arguments[0]).iterdir())
    return Path(arguments[1]).read_text(encoding="utf-8").splitlines()[: int(arguments[0].removeprefix("-"))]


def _exit_code(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def _served(arguments: list[str]) -> list[str]:
    """A server prints its address, answers there, and ends by Ctrl-C."""
    code = "import sys; from opscope.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *arguments, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            with urlopen(address, timeout=60) as answer:  # noqa: S310 - of the server that was just started
                assert answer.status == 200
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert process.returncode == 0
    return [address]


class Reader:
    """What a command printed, read along with what a page shows."""

    def __init__(self, printed: Printed) -> None:
        self.left = [list(stream) for stream in printed]

    def take(self, shown: str) -> bool:
        """Whether a stream goes on with this line, sooner or later; what was before it is left behind."""
        for lines in self.left:
            found = next((number for number, line in enumerate(lines) if _matches(shown, line)), None)
            if found is not None:
                del lines[: found + 1]
                return True
        return False

    def nearest(self, shown: str) -> str | None:
        """The line that is most like this one, taken."""
        likeness = [
            (SequenceMatcher(None, shown, line).ratio(), line) for lines in self.left for line in lines if line.strip()
        ]
        best = max(likeness, default=(0.0, ""))[1]
        return best.rstrip() if best and self.take(best) else None


def is_left_out(line: str) -> bool:
    return line.strip() in ("", "…")


def _matches(shown: str, printed: str) -> bool:
    if shown.rstrip() == printed.rstrip():
        return True
    pattern = ".*".join(map(re.escape, shown.rstrip().split("…")))
    return "…" in shown and re.fullmatch(pattern, printed.rstrip()) is not None


def missing(step: Step, printed: Printed) -> list[str]:
    """Shown lines that were not printed, or not in this order."""
    reader = Reader(printed)
    return [line for line in step.shown if not is_left_out(line) and not reader.take(line)]


def brought_up_to_date(step: Step, printed: Printed) -> list[str]:
    """Shown lines, those that were not printed replaced by the ones that they are most like."""
    reader = Reader(printed)
    found = (line if is_left_out(line) or reader.take(line) else reader.nearest(line) for line in step.shown)
    return [line for line in found if line is not None]


@pytest.mark.parametrize("page", pages())
def test_every_command_of_a_page_runs_and_prints_what_is_shown(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    wrong: list[str] = []
    for step in steps_of(text):
        printed = run_step(step, capsys)
        if printed is not None and (absent := missing(step, printed)):
            wrong += [f"{step.line} does not print: {line}" for line in absent]
            old, new = (
                f"$ {step.line}\n" + "\n".join(lines) for lines in (step.shown, brought_up_to_date(step, printed))
            )
            text = text.replace(old, new)
    if wrong and request.config.getoption("--update-golden"):
        (ROOT / page).write_text(text, encoding="utf-8", newline="\n")
    assert not wrong


def test_a_line_that_is_not_printed_is_found() -> None:
    step = Step("opscope x", ("one", "…", "three 3.1…", "last"))
    assert missing(step, (["one", "two", "three 3.14 x", "last"], [])) == []
    assert missing(step, (["three 3.14 x", "last"], ["one"])) == []
    assert missing(step, (["one", "two", "three 3.24 x", "last"], [])) == ["three 3.1…"]
    assert missing(step, (["last", "one", "three 3.1"], [])) == ["last"]
    changed = (["one", "two", "three 3.24 x", "last"], [])
    assert brought_up_to_date(step, changed) == ["one", "…", "three 3.24 x", "last"]


def test_the_target_in_the_guide_is_valid() -> None:
    from opscope.machine.catalogue import parse

    text = (ROOT / "docs/targets.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    assert block is not None
    assert parse(block[1].encode(), source="docs/targets.md").name == "mychip"
