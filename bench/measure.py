"""Time child processes side by side, and print what came out as one table.

The machine may be busy with other things, so a figure alone says little: sides are run in turn, several times, and
compared by the median of their paired ratios. Nothing here passes or fails; a row only says whether its goal is met.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile
from threading import Timer
from time import perf_counter

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache"
CHILDREN = Path(__file__).parent / "children"
PYTHON = sys.executable
OPSCOPE = str(Path(sys.executable).with_name("opscope"))

# A user has byte-code caches and buffered output; a developer's shell may have switched both off.
NOT_A_USERS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


@dataclass(frozen=True, slots=True)
class Sample:
    """One child process: from its start to its end, or to the moment it was stopped."""

    seconds: float
    peak_bytes: int
    stopped: bool
    output: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. Columns say their unit; a text stands where there is no number."""

    what: str
    values: Mapping[str, float | str]
    goal: str = ""
    met: bool | None = None
    notes: tuple[str, ...] = field(default=())


class ChildError(Exception):
    """A measured process failed, so there is nothing to compare."""


def run_child(argv: Sequence[str], *, timeout: float, environment: Mapping[str, str] | None = None) -> Sample:
    """Run one process to its end, or stop it and its children after so many seconds.

    The peak is what the kernel counted. It includes this process at the moment of the fork, so a benchmark that
    measures memory must stay small: whatever needs numpy or onnx runs in a child of its own.
    """
    kept = {name: value for name, value in os.environ.items() if name not in NOT_A_USERS}
    late: list[bool] = []
    with TemporaryFile() as output:
        begin = perf_counter()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**kept, **(environment or {})},
            start_new_session=True,
        )
        timer = Timer(timeout, lambda: (late.append(True), os.killpg(process.pid, signal.SIGKILL)))
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
        seconds = perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode and not late:
        last = text.strip().splitlines()[-3:]
        raise ChildError(f"{' '.join(argv)}: exit code {process.returncode}: {' / '.join(last)}")
    return Sample(seconds, usage.ru_maxrss * 1024, bool(late), text)


def alternate(sides: Mapping[str, Sequence[str]], *, rounds: int, timeout: float = 120) -> dict[str, list[Sample]]:
    """Run every side once to warm the caches, then all sides in turn, in changing order."""
    for argv in sides.values():
        run_child(argv, timeout=timeout)
    samples: dict[str, list[Sample]] = {name: [] for name in sides}
    names = list(sides)
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            samples[name].append(run_child(sides[name], timeout=timeout))
    return samples


def best_seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """The best of some runs: what the machine can do when nothing else disturbs it."""
    times = []
    for _ in range(repeat):
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


def middle_seconds(samples: Iterable[Sample]) -> float:
    return median(sample.seconds for sample in samples)


def peak_bytes(samples: Iterable[Sample]) -> int:
    return max(sample.peak_bytes for sample in samples)


def times_slower(slow: Sequence[Sample], fast: Sequence[Sample]) -> float:
    """Median of the ratios of runs that stood next to each other."""
    return median(a.seconds / b.seconds for a, b in zip(slow, fast, strict=True))


def main(title: str, measure: Callable[[Namespace], Iterable[Row]]) -> None:
    """The command line that every benchmark has."""
    parser = ArgumentParser(description=title)
    parser.add_argument("--rounds", type=int, default=7, help="runs of each side (default 7)")
    parser.add_argument("--peers", action="store_true", help="also the peers that take minutes")
    parser.add_argument("--peer-seconds", type=float, default=120, help="stop such a peer after this (default 120)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    options = parser.parse_args()
    rows: list[Row] = []
    problem = ""
    try:
        for row in measure(options):
            rows.append(row)
    except (ChildError, KeyboardInterrupt) as error:  # what was measured until now is kept
        problem = f"bench: {error or 'interrupted'}"
    print(table(title, rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False) + "\n")
    sys.exit(problem or 0)


def table(title: str, rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row.values))
    lines = [["", *columns, "goal", ""]]
    for row in rows:
        cells = [_cell(row.values.get(name, "")) for name in columns]
        lines.append([row.what, *cells, row.goal, "" if row.met is None else "met" if row.met else "MISSED"])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = [f"\n{title}\n"]
    for line in lines:
        first, *middle = (
            cell.ljust(w) if i in (0, len(line) - 1) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        text.append("  ".join([first, *middle]).rstrip())
    notes = dict.fromkeys(note for row in rows for note in row.notes)
    return "\n".join([*text, *(f"note: {note}" for note in notes)])


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def progress(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)
