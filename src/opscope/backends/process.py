"""One command in a process of its own: a time limit, no shell, and its words for when it fails."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

from ..core.errors import ModelError, UsageError, printable
from . import worker as other_end

_MOST_OUTPUT_BYTES = 1 << 24
_LACKING = (  # what the loader of programs, a shell and Python say → what is lacking
    (re.compile(r"version [`'‘]?(\w+_\d[\w.]*)['’]? not found"), "{}, and a shared library here is older"),
    (re.compile(r"([^\s:]+\.so[^\s:]*): cannot open shared object file"), "the shared library {}"),
    (re.compile(r"No module named '?([\w.]+)'?"), "the Python module {}"),
    (re.compile(r"exec: ([^\s:]+): not found$"), "{}"),
)


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
        if self.lacking:
            return f"did not work here: it needs {self.lacking}"
        if self.code < 0:
            name = signal.Signals(-self.code).name if -self.code in set(signal.Signals) else str(-self.code)
            return f"crashed ({name})"
        return f"ended with code {self.code}"

    @property
    def lacking(self) -> str:
        """What is not on this machine, where it failed for that."""
        return lacking(self.errors) if self.code else ""

    @property
    def last_words(self) -> str:
        """The last line of its errors, else of its output."""
        lines = [line for text in (self.errors, self.output) for line in reversed(text.splitlines()) if line.strip()]
        return printable(lines[0].strip(), 300) if lines else "no message"


def lacking(words: str) -> str:
    """What is not on this machine, by the last words of something that failed; empty: that was not why."""
    line = next((line for line in reversed(words.splitlines()) if line.strip()), "")
    for pattern, text in _LACKING:
        if match := pattern.search(line):
            return printable(text.format(match[1]))
    return ""


def run(command: Sequence[str], folder: Path, *, longest_s: float, variables: Mapping[str, str] | None = None) -> Ended:
    """Run a command with `folder` as its working folder; its output goes through files beside that folder.

    At the time limit it ends with everything that it started. It stays in our process group, so that who ends us ends
    it too.
    """
    places = [folder.with_name(f"{folder.name}.{name}") for name in ("out", "err")]
    with places[0].open("wb") as output, places[1].open("wb") as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 – a list of words, no shell
                list(command),
                cwd=folder,
                env=os.environ | dict(variables or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"{printable(command[0])}: {_why_not_started(command[0], error)}") from error
        late = Timer(longest_s, _end, [process])  # waiting with a timeout would poll, and be late by as much
        late.start()
        try:
            code = process.wait()
        finally:
            timed_out = not late.is_alive()
            late.cancel()
            if process.returncode is None:  # an interrupt
                _end(process)
    return Ended(code, _text(places[0]), _text(places[1]), timed_out)


def _why_not_started(program: str, error: OSError | ValueError) -> str:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if isinstance(error, FileNotFoundError) and Path(program).is_file():
        reason = "the interpreter that its first line names is not there"
    return f"cannot be started ({reason}); expected a program that runs on this machine"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all its descendants; they are halted first, as who runs can start another meanwhile."""
    halted: set[int] = set()
    if sys.platform != "win32":
        while new := _descendants(process.pid) - halted:
            _tell(new, signal.SIGSTOP)
            halted |= new
        _tell(halted, signal.SIGKILL)
    process.kill()


def _tell(processes: Iterable[int], what: signal.Signals) -> None:
    for each in processes:
        with suppress(OSError):
            os.kill(each, what)


def _descendants(process: int) -> set[int]:
    """A process and everything below it; where a system has no /proc, the process alone."""
    parents: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(place.parent.name)] = int(place.read_text(errors="replace").rpartition(")")[2].split()[1])
    found, left = {process}, [process]
    while left:
        above = left.pop()
        below = {child for child, parent in parents.items() if parent == above} - found
        found |= below
        left += below
    return found


def run_worker(
    worker: str | Path,
    request: Mapping[str, object],
    folder: Path,
    *,
    longest_s: float,
    python: Path | None = None,
) -> tuple[Mapping[str, object] | None, Ended]:
    """Have a request answered by another process; None: it left no answer. `backends/worker.py` is the other end.

    Args:
        worker: a module of ours that calls `worker.answer`, or a file with a function `work`, for another Python.
        python: the interpreter for such a file; ours when not given.
    """
    ask, reply = folder.with_name("request.json"), folder.with_name("answer.json")
    ask.write_text(json.dumps({**request, "schema": other_end.SCHEMA}), encoding="utf-8")
    reply.unlink(missing_ok=True)
    interpreter = str(python or sys.executable)
    if isinstance(worker, Path):
        command = [interpreter, other_end.__file__, str(worker), str(ask), str(reply)]
        ours = {"PYTHONPATH": ""}  # which is for our Python
    else:
        command = [interpreter, "-P", "-m", worker, str(ask), str(reply)]
        package = str(Path(__file__).resolve().parents[2])
        ours = {"PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])}
    ended = run(command, folder, longest_s=longest_s, variables=ours)
    return _read_answer(reply, str(worker)), ended


def _read_answer(reply: Path, worker: str) -> Mapping[str, object] | None:
    if not reply.is_file():
        return None
    try:
        answer = json.loads(reply.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{worker}: its answer cannot be read ({error}); expected JSON") from error
    schema = answer.get("schema") if isinstance(answer, dict) else None
    if schema != other_end.SCHEMA:
        told = printable(str(schema))
        raise UsageError(f"{worker}: its answer is of {told}; expected {other_end.SCHEMA}")
    checked: dict[str, object] = answer
    return checked


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
        problem = str(answer["problem"])
        if needs := lacking(problem):
            raise ModelError(str(model), "", f"{runtime} did not work here: it needs {needs}; it says: {_cut(problem)}")
        raise ModelError(str(model), "", f"{runtime} cannot run it: {_cut(problem)}")
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


def _cut(problem: str) -> str:
    return printable(problem, 600)


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_MOST_OUTPUT_BYTES).decode("utf-8", "replace")
