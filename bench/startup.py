"""How long the command takes to start, against an empty Python."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from measure import OPSCOPE, PYTHON, Row, alternate, main, middle_seconds, times_slower

TITLE = "Start-up (median milliseconds)"


def measure(options: Namespace) -> Iterator[Row]:
    sides = {
        "python -c pass": [PYTHON, "-c", "pass"],
        "opscope --help": [OPSCOPE, "--help"],
        "opscope targets": [OPSCOPE, "targets"],
    }
    samples = alternate(sides, rounds=2 * options.rounds)
    empty = samples["python -c pass"]
    for name, runs in samples.items():
        millis = middle_seconds(runs) * 1000
        values = {"ms": millis, "÷ python -c pass": times_slower(runs, empty)}
        goal, met = ("< 150 ms", millis < 150) if name == "opscope --help" else ("", None)
        yield Row(name, values, goal, met)


if __name__ == "__main__":
    main(TITLE, measure)
