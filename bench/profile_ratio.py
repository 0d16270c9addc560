"""Processor time of the demo's `opscope profile`, as a ratio to the one of an earlier commit, in one run.

`python bench/profile_ratio.py [--rounds N]`. The earlier commit is checked out into a temporary git worktree and run
by the same Python. Sides take turns, in changing order, and the median ratio of neighbouring runs is printed.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from statistics import median

from earlier_commit import NOW, checked_out, opscope, ratios

BEFORE = "b1da6b3"  # reads and compiles the model for every range and trial
GOAL = 0.5
MODEL = ("bert-base", "--layers", "2", "--batch", "8", "--seq", "128", "--precision", "f16")


def profile(source: Path, folder: Path) -> float:
    """The demo, with nothing to re-use."""
    files = [str(folder / "bert.onnx"), "-o", str(folder / "bert.run")]
    return opscope(source, folder, ["profile", *files, "--target", "aic100-std", "--cores", "2", "--fresh"])


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="pairs of runs (default 7)")
    options = parser.parse_args()
    found = []
    with checked_out(BEFORE) as (before, folder):
        opscope(NOW, folder, ["zoo", *MODEL, "-o", str(folder / "bert.onnx")])
        for now, then in ratios(before, lambda source: profile(source, folder), options.rounds):
            found.append(now / then)
            print(f"  now {now:.2f} s, before {then:.2f} s: {found[-1]:.2f}")
    ratio = median(found)
    judged = "met" if ratio <= GOAL else "missed"
    print(f"processor time of `profile` ÷ that of {BEFORE}: {ratio:.2f} (goal ≤ {GOAL}: {judged})")


if __name__ == "__main__":
    main()
