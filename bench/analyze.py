"""Analyse: spans per second from Parquet to findings; and the same questions side by side with HolisticTraceAnalysis.

Figures are of the work alone, without starting Python; the best of some rounds is what the machine can do when nothing
else disturbs it, and sides are compared by the best of each. "ask" are the questions that both answer: where device
time goes, which kernels take it, why the device is idle; "all" is everything `opscope analyze` answers.

"whole" are whole processes, which take turns: `opscope analyze TRACE`, which answers all of its questions, against one
that imports HTA, reads the trace and asks the questions that both answer. Neither keeps anything.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import models
from measure import (
    CHILDREN,
    OPSCOPE,
    PYTHON,
    Row,
    alternate,
    main,
    middle_seconds,
    progress,
    run_child,
    times_slower,
)
from peers import HTA

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.plugins.kineto_build import device_bound, launch_bound, two_streams

TITLE = "Analyse a run: read its tables, find path, slack, causes, rollups, checks"
SAMPLES = 40  # inferences of BERT-base, some 26,000 spans each
SPANS = 1_000_000
GOAL = 2e6  # spans per second
TIMES_FASTER = 10
REPEATS = 20  # of one iteration, in the long trace
TRACES = {"short kernels": launch_bound, "long kernels": device_bound, "two streams": two_streams}


def recorded(folder: Path) -> Path:
    """Forty profiled inferences of BERT-base on 14 cores, decoded into one run."""
    model = models.zoo("bert-base", "bert-analyze.onnx", "--batch", "8", "--seq", "128", "--no-weights")
    progress("recording a run of a million spans")
    options = ("--target", "aic100-std", "--precision", "f16", "--stats-level", "70")
    number = str(SAMPLES)
    for argv in (
        ["compile", str(model), *options, "-o", str(folder)],
        [
            "run",
            str(folder),
            "--num-iter",
            number,
            "--num-samples",
            number,
            "--profile",
            "raw_device_stats",
            "--out-dir",
            str(folder),
        ],
        ["opstats", "-q", str(folder / "programqpc.bin"), "-i", str(folder), "--run", str(folder / "run")],
    ):
        run_child([OPSCOPE, *argv], timeout=600)
    return folder / "run"


def drawn(folder: Path) -> Path:
    """A million spans on 192 lanes, of which an inference holds a quarter; no dependencies."""
    run_child([PYTHON, str(CHILDREN / "make_run.py"), str(SPANS), "1", str(folder / "drawn")], timeout=600)
    return folder / "drawn"


def speed(what: str, run: Path, rounds: int) -> Row:
    found = json.loads(run_child([PYTHON, str(CHILDREN / "analyze_run.py"), str(run), str(rounds)], timeout=600).output)
    best = min(found["seconds"])
    rate = found["spans"] / best
    values: dict[str, float | str] = {"spans": found["spans"], "seconds": best, "M spans/s": rate / 1e6}
    return Row(what, values, "≥ 2 M spans/s", rate >= GOAL)


def against_hta(rounds: int, folder: Path) -> Iterator[Row]:
    """Traces of a few inferences each, and a long one: the first of them many times."""
    python = HTA.tool("python")
    if python is None:
        return
    traces = {name: make(folder / f"{number}.json.gz") for number, (name, make) in enumerate(TRACES.items())}
    for name, path in traces.items():
        yield side_by_side(name, path, str(python), rounds)
        yield whole_processes(name, path, str(python), rounds)
    name, source = next(iter(traces.items()))
    long = folder / "long.json.gz"
    run_child([PYTHON, str(CHILDREN / "long_kineto.py"), str(source), str(REPEATS), str(long)], timeout=300)
    yield side_by_side(f"{name} × {REPEATS}", long, str(python), 2)
    yield whole_processes(f"{name} × {REPEATS}", long, str(python), 3)


def side_by_side(what: str, path: Path, python: str, rounds: int) -> Row:
    sides = {"ours": (PYTHON, "analyze_trace.py"), "HTA": (python, "hta_trace.py")}
    found = {}
    for name, (runner, child) in sides.items():
        output = run_child([runner, str(CHILDREN / child), str(path), str(rounds)], timeout=900).output
        found[name] = json.loads(output.strip().splitlines()[-1])
    values: dict[str, float | str] = {}
    ratios = {}
    for part in ("read", "ask"):
        ours, theirs = (min(found[name][part]) for name in sides)
        values |= {f"{part} s": ours, f"HTA {part} s": theirs}
        ratios[part] = theirs / ours
    whole = [sum(min(found[name][part]) for part in ("read", "ask")) for name in sides]
    values |= {
        "all s": min(found["ours"]["all"]),
        "read ×": ratios["read"],
        "ask ×": ratios["ask"],
        "both ×": whole[1] / whole[0],
    }
    failed = found["HTA"]["failed"]
    notes = (f"HTA gives up on {what}: {', '.join(failed)}; its time until then counts",) if failed else ()
    met = ratios["ask"] >= TIMES_FASTER
    return Row(f"{what}, Kineto", values, f"≥ {TIMES_FASTER} × to ask", met, notes)


def whole_processes(what: str, path: Path, python: str, rounds: int) -> Row:
    sides = {
        "ours": [OPSCOPE, "analyze", str(path)],
        "HTA": [python, str(CHILDREN / "hta_trace.py"), str(path), "0"],
    }
    samples = alternate(sides, rounds=rounds)
    values: dict[str, float | str] = {f"{name} whole s": middle_seconds(found) for name, found in samples.items()}
    ratio = times_slower(samples["HTA"], samples["ours"])
    return Row(f"{what}, whole processes", values | {"whole ×": ratio}, f"≥ {TIMES_FASTER} ×", ratio >= TIMES_FASTER)


def measure(options: Namespace) -> Iterator[Row]:
    with TemporaryDirectory() as scratch:
        yield speed("BERT-base, 40 inferences", recorded(Path(scratch, "bert")), options.rounds)
        yield speed("192 lanes, 4 inferences, drawn", drawn(Path(scratch)), options.rounds)
        yield from against_hta(options.rounds, Path(scratch))


if __name__ == "__main__":
    main(TITLE, measure)
