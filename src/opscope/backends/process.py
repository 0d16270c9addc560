"""One command in a process of its own: a time limit, no shell, and its words for when it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from tempfile import TemporaryDirectory
from threading import Timer

from ..core.errors import ModelError, UsageError, printable

_MOST_OUTPUT_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it said."""

    code: int
    output: str
    errors: str
    timed_out: bool

    @property
    def how(self) -> str:
        if self.timed_out:
            return "was stopped at its time limit"
        if self.code < 0:
            name = Signals(-self.code).name if -self.code in set(Signals) else str(-self.code)
            return f"crashed ({name})"
        return f"ended with code {self.code}"

    @property
    def last_words(self) -> str:
        """The last line of its errors, else of its output."""
        lines = [line for text in (self.errors, self.output) for line in reversed(text.splitlines()) if line.strip()]
        return printable(lines[0].strip(), 300) if lines else "no message"


def run(command: Sequence[str], folder: Path, *, longest_s: float, variables: Mapping[str, str] | None = None) -> Ended:
    """Run a command with `folder` as its working folder; its output goes through files beside that folder."""
    places = [folder.with_name(f"{folder.name}.{name}") for name in ("out", "err")]
    with places[0].open("wb") as output, places[1].open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603 – a list of words, no shell
            list(command),
            cwd=folder,
            env=os.environ | dict(variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        late = Timer(longest_s, process.kill)  # waiting with a timeout would poll, and be late by as much
        late.start()
        try:
            code = process.wait()
        finally:
            timed_out = not late.is_alive()
            late.cancel()
            process.kill()
    return Ended(code, _text(places[0]), _text(places[1]), timed_out)


def run_worker(
    module: str, request: Mapping[str, object], folder: Path, *, longest_s: float
) -> tuple[Mapping[str, object] | None, Ended]:
    """Run `python -m module REQUEST ANSWER`, a module of ours; None: it left no answer."""
    ask, answer = folder.with_name("request.json"), folder.with_name("answer.json")
    ask.write_text(json.dumps(request), encoding="utf-8")
    package = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-P", "-m", module, str(ask), str(answer)]
    ended = run(command, folder, longest_s=longest_s, variables={"PYTHONPATH": paths})
    return (json.loads(answer.read_text(encoding="utf-8")) if answer.is_file() else None), ended


@contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """An empty working folder for a process; request, answer and output lie beside it, and all go when it is done."""
    with TemporaryDirectory(prefix=f"opscope-{name}-") as place:
        folder = Path(place) / "work"
        folder.mkdir()
        yield folder


def checked_answer(
    answer: Mapping[str, object] | None, ended: Ended, *, runtime: str, model: Path
) -> Mapping[str, object]:
    """What a worker left; none at all, or one that names a problem, is an error of the model."""
    if answer is None:
        raise ModelError(str(model), "", f"{runtime} {ended.how}; it says: {ended.last_words}")
    if not answer["ok"]:
        raise ModelError(str(model), "", f"{runtime} cannot run it: {printable(str(answer['problem']), 600)}")
    return answer


def positive(name: str, value: object, *, least: int = 1, most: int = 1_000_000) -> int:
    """A whole number from an option."""
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise UsageError(f"--{name} {printable(str(value))}: expected a whole number from {least} to {most}")
    return number


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_MOST_OUTPUT_BYTES).decode("utf-8", "replace")
