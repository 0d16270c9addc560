"""Processor time of the demo's `opscope profile`, as a ratio to the one of an earlier commit, in one run.

`python bench/profile_ratio.py [--rounds N]`. The earlier commit is checked out into a temporary git worktree and run
by the same Python. Sides take turns, in changing order, and the median ratio of neighbouring runs is printed.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
BEFORE = "b1da6b3"  # reads and compiles the model for every range and trial
GOAL = 0.5
MODEL = ("bert-base", "--layers", "2", "--batch", "8", "--seq", "128", "--precision", "f16")
NOT_A_USERS = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")  # a user has byte-code caches


def opscope(source: Path, folder: Path, *words: str) -> float:
    """Seconds of processor time of one command with the package of a source folder; byte code goes beside the model."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_A_USERS}
    environment = {**kept, "PYTHONPATH": str(source), "PYTHONPYCACHEPREFIX": str(folder / "byte-code")}
    quiet = subprocess.DEVNULL
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "opscope", *words], check=True, env=environment, stdout=quiet, stderr=quiet)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def profile(source: Path, folder: Path) -> float:
    """The demo, with nothing to re-use."""
    words = ("--target", "aic100-std", "--cores", "2", "--fresh")
    return opscope(source, folder, "profile", str(folder / "bert.onnx"), *words, "-o", str(folder / "bert.run"))


def copy_built_loop(source: Path) -> None:
    """Extensions are not in git; the inner loop of the device has not changed since."""
    for built in (ROOT / "src").rglob("_core*.so"):
        for beside in source.rglob("_core.pyi"):
            shutil.copy(built, beside.parent)


def ratios(before: Path, folder: Path, rounds: int) -> list[float]:
    """Now ÷ before, pair by pair; the first pair fills the caches and is left out."""
    sides, found = {"now": ROOT / "src", "before": before}, []
    for number in range(rounds + 1):
        order = ("now", "before") if number % 2 else ("before", "now")
        seconds = {side: profile(sides[side], folder) for side in order}
        if number:
            found.append(seconds["now"] / seconds["before"])
            print(f"  now {seconds['now']:.2f} s, before {seconds['before']:.2f} s: {found[-1]:.2f}")
    return found


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="pairs of runs (default 7)")
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        tree = Path(scratch, "before")
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", tree, BEFORE], check=True)
        try:
            copy_built_loop(tree / "src")
            opscope(ROOT / "src", Path(scratch), "zoo", *MODEL, "-o", str(Path(scratch, "bert.onnx")))
            ratio = median(ratios(tree / "src", Path(scratch), options.rounds))
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)
    judged = "met" if ratio <= GOAL else "missed"
    print(f"processor time of `profile` ÷ that of {BEFORE}: {ratio:.2f} (goal ≤ {GOAL}: {judged})")


if __name__ == "__main__":
    main()
