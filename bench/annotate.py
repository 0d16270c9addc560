"""How fast are long runtime logs imported and annotated, and in how much memory?

Each row is a process of its own, from its start to its end, with everything it reads and writes; the best of some runs.
The goal is for the wall clock, as a user reads it; processor time, of all threads, stands beside it, since the machine
may be busy. Last, the share of that time in which Python's csv module only splits the same lines.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from typing import TextIO

from measure import OPSCOPE, PYTHON, Row, Sample, main, progress, run_child

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.plugins.torq_dumps import DMA_IN, function, job, module

TITLE = "Runtime logs: rows per second, and memory"
ROWS, FEW_ROWS = 5_000_000, 1_000_000
JOBS = 100
GOAL = 1_000_000
SPLIT = "import csv,sys\nfor row in csv.reader(open(sys.argv[1]), delimiter=sys.argv[2]): pass"


def write_jobs(out: TextIO, rows: int) -> None:
    """A row per job, inference after inference, with locations."""
    places = [f'loc(fused["net.mlir":{number}:10, "net.mlir":{number + 1}:10])' for number in range(JOBS)]
    out.write("id;time_since_open;time_since_start;location\n")
    time = 1000
    for number in range(rows):
        time += 137 + number % 13
        out.write(f"{number % JOBS};{time};{90 + number % 29};{places[number % JOBS]}\n")


def write_events(out: TextIO, rows: int) -> None:
    """Begin and end of a start and of a wait for every job, invocation after invocation."""
    out.write("dispatch_name,invocation_id,action_id,timestamp_us,event\n")
    time = 1000
    for number in range(rows // 4):
        place = f"main_dispatch_0,{number // JOBS},"
        start, wait = 2 * (number % JOBS), 2 * (number % JOBS) + 1
        out.write(f"{place}{start},{time},NSS_START_BEGIN\n{place}{start},{time + 2},NSS_START_END\n")
        out.write(f"{place}{wait},{time + 2},NSS_WAIT_BEGIN\n{place}{wait},{time + 90},NSS_WAIT_END\n")
        time += 95


def best(argv: Sequence[str], rounds: int) -> tuple[Sample, float]:
    """The run that took least time by the wall clock, and the least processor time of all."""
    found: list[tuple[Sample, float]] = []
    for _ in range(rounds):
        before = getrusage(RUSAGE_CHILDREN)
        sample = run_child(argv, timeout=300)
        after = getrusage(RUSAGE_CHILDREN)
        found.append((sample, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min((sample for sample, _ in found), key=lambda sample: sample.seconds), min(spent for _, spent in found)


def row(what: str, argv: Sequence[str], path: Path, separator: str, rounds: int) -> Row:
    progress(what)
    ours, seconds = best(argv, rounds)
    _, splitting = best([PYTHON, "-c", SPLIT, str(path), separator], 1)
    values: dict[str, float | str] = {
        "rows/s": ROWS / ours.seconds,
        "rows per processor s": ROWS / seconds,
        "peak MB": ours.peak_bytes / 1e6,
        "csv.reader alone": splitting / seconds,
    }
    return Row(what, values, f"≥ {GOAL:,} rows/s", ROWS / ours.seconds >= GOAL)


def memory(what: str, path: Path, few: Path) -> Row:
    """How much each further row takes."""
    progress(what)
    large, small = (run_child([OPSCOPE, "import", str(file)], timeout=300).peak_bytes for file in (path, few))
    per_row = (large - small) / (ROWS - FEW_ROWS)
    return Row(
        what, {"bytes per row": per_row, "file bytes per row": path.stat().st_size / ROWS}, "< 400 bytes", per_row < 400
    )


def measure(options: Namespace) -> Iterator[Row]:
    rounds = min(options.rounds, 3)
    with TemporaryDirectory() as name:
        folder = Path(name)
        progress(f"writing two logs of {ROWS:,} rows")
        files = {}
        for kind, write in (("jobs", write_jobs), ("events", write_events)):
            for count in (ROWS, FEW_ROWS):
                files[kind, count] = folder / f"{kind}{count}.csv"
                with files[kind, count].open("w") as out:
                    write(out, count)
        dump, result = folder / "net.9.executable-targets.mlir", folder / "out.csv"
        dump.write_text(module(function([job(number, [[DMA_IN[0]], [DMA_IN[1]]]) for number in range(JOBS)])))
        for kind, separator in (("jobs", ";"), ("events", ",")):
            path = files[kind, ROWS]
            yield row(f"import {kind}, {ROWS:,} rows", [OPSCOPE, "import", str(path)], path, separator, rounds)
            annotate = [OPSCOPE, "annotate", str(dump), str(path), str(result)]
            yield row(f"annotate {kind}, {ROWS:,} rows, to CSV", annotate, path, separator, rounds)
            yield memory(f"memory of importing {kind}", path, files[kind, FEW_ROWS])


if __name__ == "__main__":
    main(TITLE, measure)
